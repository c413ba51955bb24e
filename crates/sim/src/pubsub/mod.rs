//! Publishers, subscribers and MQTT brokers in virtual time.
//!
//! The engines are those of `taktwerk-pubsub`, and the state and packets of MQTT clients those of `rumqttc`, which run in
//! production. Here are their drivers, and a broker that is a state machine of its own.
//!
//! - [`NodeHost`]: a process with its inputs, sockets and deadlines, on a processor or on none;
//! - `publisher`, `subscriber`: the engines with their transport; `application`: what a subscriber does with values;
//! - `session`: an MQTT client without a socket; [`broker`]: the broker without sockets;
//! - `keys`: the key service, which answers at once; `nonces`: an observer of what publishers send;
//! - [`figures`]: what is counted.

pub(crate) mod application;
pub mod broker;
pub mod figures;
mod host;
pub(crate) mod keys;
pub(crate) mod nonces;
mod output;
pub(crate) mod publisher;
pub(crate) mod session;
pub(crate) mod subscriber;

pub use host::NodeHost;
pub(crate) use host::{Node, Peer};

use taktwerk_server::Now;

/// The time as the engines take it.
pub(crate) fn engine_now(now: Now) -> taktwerk_pubsub::Now {
    taktwerk_pubsub::Now { instant: now.instant, utc: now.utc }
}
