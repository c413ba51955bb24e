//! NetworkMessages over an MQTT broker (Part 14 §7.3.4): MQTT 3.1.1 and 5, with and without TLS.
//!
//! - [`options`]: the broker's URL and options; [`topics`]: topics of messages;
//! - [`status`]: Status messages of a publisher, by last will or cyclic;
//! - [`outbox`]: messages that wait while the broker is unavailable, bounded; `client`: the connection's threads;
//!   `left`: pending requests of a broken connection;
//! - [`broker`]: the interface for publishers and subscribers.
//!
//! The publisher's timer thread only puts messages into the outbox. Metadata is retained and is announced again after
//! each connect, in case the broker has lost its memory.

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
