//! PubSub on a real network: transports, the publisher's timer thread, the subscriber's receiving thread.
//!
//! - [`publisher`]: WriterGroups on an absolute timer; [`subscriber`]: datagrams into the subscriber engine;
//! - [`action`]: Action requestors and responders;
//! - [`udp`], [`ethernet`]: datagrams; [`interface`]: network interfaces; [`address`]: the URLs of Part 14 §7.3;
//! - `mqtt` (feature `mqtt`): brokers;
//! - [`timer`]: sleeping with microsecond precision, real-time scheduling; [`lateness`]: how late each cycle was, and
//!   why;
//! - `early`, `rhythm`, `expecting`: waking before a cycle is due, or before a message is expected;
//! - `floor`: received sequence numbers, kept across restarts;
//! - [`keys`]: sources of the keys of security groups; `nonces`: nonce numbers, kept across restarts;
//! - [`error`]: errors with advice.

pub mod action;
pub mod address;
mod early;
pub mod error;
pub mod ethernet;
mod expecting;
mod floor;
mod inlet;
pub mod interface;
pub mod keys;
pub mod lateness;
mod link;
#[cfg(feature = "mqtt")]
pub mod mqtt;
mod nonces;
pub mod publisher;
mod rhythm;
pub mod subscriber;
pub mod timer;
pub mod udp;

pub use action::{ActionDriverOptions, ActionUser, Commander, RunningActions};
pub use address::{Address, VlanTag};
pub use error::PubSubError;
pub use inlet::{Closing, Inlet, receives_alike};
pub use keys::{KeySource, StaticKeys};
pub use lateness::{Histogram, HistogramSnapshot, Lateness, LatenessSnapshot};
pub use link::{Link, sends_alike};
pub use nonces::NonceFile;
pub use publisher::{
    Prepare, PreparedChange, PublisherChange, PublisherDriverOptions, RunningPublisher, SentTotals,
};
pub use subscriber::{RunningSubscriber, SubscriberChange, SubscriberDriverOptions};
pub use timer::{RealTime, sleep_until};
pub use udp::{UdpOptions, UdpReceiver, UdpSender};
