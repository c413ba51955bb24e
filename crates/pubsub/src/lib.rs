//! OPC UA PubSub (Part 14) without I/O.
//!
//! - [`uadp`]: binary NetworkMessages in all forms, borrowed when decoded;
//! - `json` (feature `json`): JSON NetworkMessages;
//! - [`publisher`], [`subscriber`]: the engines;
//! - [`config`]: the typed configuration; conversion to the standard structures, the standard file, and TOML;
//! - [`security`]: message security, key rings, the key service and its clients;
//! - [`action`]: Action requestors and responders;
//! - [`component`]: all components with their states, which a server shows and switches;
//! - `index`, `network_message`, [`transmit`]: positions and messages, shared by the engines;
//! - [`state`], [`sequence`], [`publisher_id`], [`time`]: common types.

#![forbid(unsafe_code)]

pub mod action;
pub mod component;
pub mod config;
mod index;
#[cfg(feature = "json")]
pub mod json;
mod network_message;
mod pauses;
pub mod publisher;
pub mod publisher_id;
pub mod security;
pub mod sequence;
pub mod state;
pub mod subscriber;
pub mod time;
pub mod transmit;
pub mod uadp;

pub use index::{GroupIndex, ReaderIndex};
pub use publisher::{FieldWriter, InPlace, Number, Publisher, PublisherEvent, PublisherOptions, Values};
pub use publisher_id::{PublisherId, PublisherIdRef};
pub use subscriber::{DataSetMessage, Sink, Subscriber, SubscriberEvent, SubscriberOptions};
pub use time::Now;
pub use transmit::{Datagram, DatagramKind, Transmit};
