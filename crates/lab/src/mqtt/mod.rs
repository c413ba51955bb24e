//! A minimal MQTT client for measurements, versions 3.1.1 and 5, with exact byte counts.
//!
//! - [`packet`]: packets to bytes and back (MQTT 3.1.1 §2 and §3, MQTT 5 §2 and §3);
//! - [`session`]: one client as a state machine without a socket, with all three QoS levels;
//! - [`fleet`]: many clients on one thread.
//!
//! Not suitable for applications: no wills, no retained messages, no retransmission after a lost connection.

pub mod fleet;
pub use taktwerk_load::mqtt as packet;
pub mod session;

pub use fleet::{Fleet, Happened};
pub use packet::{MqttError, Qos, Version};
pub use session::{Event, Session};
