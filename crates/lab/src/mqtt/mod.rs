//! MQTT for measuring: 3.1.1 and 5, as little of them as a round trip needs, and exact about bytes.
//!
//! - [`packet`]: packets to bytes and back (MQTT 3.1.1 §2 and §3, MQTT 5 §2 and §3);
//! - [`session`]: one client as a state machine without a socket: acknowledgements of all three qualities of service;
//! - [`fleet`]: many of them on one thread.
//!
//! It is no client to build an application on: no wills, no retained messages, no resending after a lost connection.

pub mod fleet;
pub use taktwerk_load::mqtt as packet;
pub mod session;

pub use fleet::{Fleet, Happened};
pub use packet::{MqttError, Qos, Version};
pub use session::{Event, Session};
