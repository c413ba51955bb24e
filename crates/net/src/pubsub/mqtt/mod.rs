//! NetworkMessages over an MQTT broker (Part 14 §7.3.4): MQTT 3.1.1 and 5, with and without TLS.
//!
//! - [`options`]: the broker's URL and how to talk to it; [`topics`]: where messages go and come from;
//! - [`status`]: whether a publisher is there, as brokers tell it with the last will or as it says itself again and again;
//! - [`outbox`]: what waits while the broker is away, bounded; `client`: the connection's threads; `left`: what a connection that
//!   broke leaves to the next one;
//! - [`broker`]: what publishers and subscribers see.
//!
//! The publisher's timer thread only puts messages into the outbox. Metadata is retained, and announced anew whenever a
//! connection was made: a broker that has lost its memory gets it back.

pub mod broker;
mod client;
mod left;
pub mod options;
pub mod outbox;
pub mod status;
pub mod tls;
pub mod topics;

pub use broker::{BrokerStatus, action_inlet, publisher_link, subscriber_inlet};
pub use options::{Credentials, MqttOptions, MqttVersion, QualityOfService, StatusMessages};
