//! Publishers, subscribers and MQTT brokers in virtual time.
//!
//! The engines are those of `taktwerk-pubsub`; state and packets of MQTT clients are those of `rumqttc`, which is also
//! used in production. Here are the engines with their transports, and a broker implemented as a state machine; their
//! processes are in [`node`](crate::node).
//!
//! - `publisher`, `subscriber`: the engines with their transport; `application`: what a subscriber does with values;
//! - `session`: an MQTT client without a socket; [`broker`]: the broker without sockets;
//! - `keys`: the key service, which answers immediately; `nonces`: an observer of what publishers send;
//! - [`figures`]: what all of them count.

pub(crate) mod application;
pub mod broker;
pub mod figures;
pub(crate) mod keys;
pub(crate) mod nonces;
mod output;
pub(crate) mod publisher;
pub(crate) mod session;
pub(crate) mod subscriber;

use taktwerk_server::Now;

/// The time in the form that the engines use.
pub(crate) fn engine_now(now: Now) -> taktwerk_pubsub::Now {
    taktwerk_pubsub::Now { instant: now.instant, utc: now.utc }
}
