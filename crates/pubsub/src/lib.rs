//! OPC UA PubSub (Part 14) without I/O.
//!
//! - [`uadp`]: binary NetworkMessages of every form, borrowed when read;
//! - `json` (feature `json`): JSON NetworkMessages;
//! - [`publisher`], [`subscriber`]: the engines;
//! - [`config`]: the configuration, typed; from and to the standard structures, the standard file, TOML;
//! - [`security`]: message security, key rings, the key service and its clients;
//! - [`action`]: requestors and responders of Actions;
//! - [`component`]: all components with their states, as a server shows and switches them;
//! - `index`, `network_message`, [`transmit`]: positions and messages, which engines share;
//! - [`state`], [`sequence`], [`publisher_id`], [`time`]: what both engines need.

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
