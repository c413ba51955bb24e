//! Destinations: where values of tags are sent, stored on disk until the destination has confirmed them.
//!
//! - [`block`]: values as they are stored; [`tap`]: collects values from the feeds; [`pattern`]: which tags; [`nodes`]: variables
//!   of other nodes;
//! - [`queue`]: the queue on disk, `parked`: what waits in it for single variables; [`forward`]: from the tap to the queue;
//!   [`sending`]: from the queue to the destination; [`counters`]: what is counted;
//! - [`settings`]: what every destination has; [`template`]: texts with placeholders;
//! - `publishing`: messages that an MQTT broker confirms;
//! - [`file`], [`influx`], [`mqtt`], [`opcua`], [`pubsub`], [`sparkplug`], `kafka`, `nats`, `parquet`, `postgres`: the kinds of
//!   destinations.

pub mod block;
pub mod counters;
pub mod file;
pub mod forward;
pub mod influx;
mod isolation;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod mqtt;
#[cfg(feature = "nats")]
pub mod nats;
pub mod nodes;
pub mod opcua;
mod parked;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod pattern;
#[cfg(feature = "postgres")]
pub mod postgres;
mod publishing;
pub mod pubsub;
pub mod queue;
pub mod sending;
pub mod settings;
pub mod sparkplug;
pub mod tap;
pub mod template;

use crate::fault::Fault;
use block::Record;
use core::time::Duration;
use futures_util::future::BoxFuture;

/// Values that are sent together. They are sent again until the destination has confirmed them.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The queue. With the number of a record it makes a key that no other record has.
    pub queue: String,
    /// The records, oldest first.
    pub records: Vec<Record>,
    /// Whether nothing else waited in the queue when it was taken.
    pub is_last: bool,
}

impl Batch {
    /// The key of a record: the same each time that it is sent, so that the destination can recognize duplicates.
    #[must_use]
    pub fn key(&self, record: &Record) -> String {
        format!("{}-{}", self.queue, record.number)
    }
}

/// What a destination says of a batch that it has taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// Records that it will never take, whatever is tried.
    pub refused: usize,
    /// Why, or why records are parked.
    pub reason: Option<String>,
    /// The numbers of records that it does not take now, although it takes others. They are sent again later, also behind
    /// records of other tags. If a record is among them, all records of its tag behind it are.
    pub parked: Vec<u64>,
}

/// What is allowed in a destination's settings but cannot work with the tags that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// The setting.
    pub key: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

/// A kind of destination. One value is one destination.
pub trait Sink: Send {
    /// What it is, in a few words for people: `MQTT 5 broker:1883`.
    fn describe(&self) -> String;

    /// Looks at the names of the tags that it gets.
    fn review(&self, tags: &[String]) -> Option<Concern> {
        let _ = tags;
        None
    }

    /// Most records that it takes together, if it has a limit of its own.
    fn batch_max(&self) -> Option<usize> {
        None
    }

    /// Whether a batch is worth it now, if so many records wait and the oldest has waited so long.
    fn is_worth_it(&self, queued: u64, waited: Duration) -> bool {
        let _ = (queued, waited);
        true
    }

    /// Sends a batch, and connects first if there is no connection. It returns when the destination has confirmed the
    /// batch. After an error the same batch is sent again. Dropping the future must leave the sink usable.
    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>>;
}
