//! Destinations: values of tags are sent there. They are stored on disk until the destination has confirmed them.
//!
//! - [`block`]: storage format of values; [`tap`]: collects values from the feeds; [`pattern`]: selects tags; [`nodes`]:
//!   variables of other nodes;
//! - [`queue`]: the queue on disk, `parked`: records that wait for single variables; [`forward`]: from the tap into the queue;
//!   [`sending`]: from the queue to the destination; [`counters`]: counters, `losses`: why values are lost;
//! - [`settings`]: settings common to all destinations; [`template`]: texts with placeholders;
//! - `publishing`: messages confirmed by an MQTT broker;
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
mod losses;
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
use std::sync::Arc;
use taktwerk_types::{StatusCode, Variant};

/// Values that are sent together. They are sent again until the destination has confirmed them.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The id of the queue. Together with the number of a record it forms a unique key.
    pub queue: String,
    /// The records, oldest first.
    pub records: Vec<Record>,
    /// Whether the queue contained nothing else when the batch was taken.
    pub is_last: bool,
    /// The number of the next new record of the queue. All records that were ever sent have smaller ones.
    pub next: u64,
    /// Whether the records were parked. Then later records of other tags may have been sent before.
    pub is_parked: bool,
}

impl Batch {
    /// The key of a record. It does not change when the record is sent again, so the destination can detect duplicates.
    #[must_use]
    pub fn key(&self, record: &Record) -> String {
        format!("{}-{}", self.queue, record.number)
    }
}

/// The destination's answer to an accepted batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of records that it rejects permanently.
    pub refused: usize,
    /// The reason for rejected or parked records.
    pub reason: Option<String>,
    /// The numbers of records that it does not accept now, although it accepts others. They are sent again later, possibly after
    /// records of other tags. If a record is listed, all later records of its tag must be listed too.
    pub parked: Vec<u64>,
}

/// Valid settings of a destination that cannot work with its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// The setting.
    pub key: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

/// Writes the value of a tag, as a client of the server would. Returns what the client would get.
pub type WriteTag = Arc<dyn Fn(&str, Variant) -> StatusCode + Send + Sync>;

/// A destination of some kind.
pub trait Sink: Send {
    /// A short description for users: `MQTT 5 broker:1883`.
    fn describe(&self) -> String;

    /// Checks the names of its tags.
    fn review(&self, tags: &[String]) -> Option<Concern> {
        let _ = tags;
        None
    }

    /// Maximum number of records per batch, if the destination has its own limit.
    fn batch_max(&self) -> Option<usize> {
        None
    }

    /// Whether to send a batch now, given the number of queued records and the age of the oldest.
    fn is_worth_it(&self, queued: u64, waited: Duration) -> bool {
        let _ = (queued, waited);
        true
    }

    /// Receives the way to write tags, before the first batch, if it takes commands.
    fn take_commands(&mut self, write: WriteTag) {
        drop(write);
    }

    /// Sends a batch, connecting first if necessary. Returns when the destination has confirmed the batch. After an error the
    /// same batch is sent again. Dropping the future must leave the sink usable.
    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>>;
}
