//! Durable subscriptions (Part 4 §6.8, Part 5 §9.3): what is written down of them, so that they survive the server.
//!
//! A shard describes what has changed of its durable subscriptions as records, and a job gives them to a store. The queues
//! stay in memory, and the store has a log from which they are made again. Nothing here does I/O but the stores.
//!
//! - [`store`]: what a store has to do;
//! - `marks`: how far queues are written; `record`: one entry of the log; `saved`: a subscription that is made from its entries, and made shorter;
//! - `work`: the job that writes; `users`: the accounts of the users that durable subscriptions belong to.

pub(crate) mod marks;
pub(crate) mod record;
pub(crate) mod saved;
pub mod store;
pub(crate) mod users;
pub(crate) mod work;

pub use store::{Change, DurableStore, Log};

use std::sync::Arc;

/// Whether and how clients may have durable subscriptions.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DurableConfig {
    /// Where they are kept.
    pub store: Arc<dyn DurableStore>,
    /// The longest lifetime of a durable subscription without its client, in hours. Default: one week.
    pub lifetime_hours_max: u32,
    /// Longest queue of a MonitoredItem of a durable subscription, in values. Default: 100 000.
    pub queue_size_max: u32,
    /// Most bytes that the durable subscriptions of one user keep in memory; values beyond are lost with the Overflow bit.
    /// The log in the store takes about as much again, and up to twice as much before it is made shorter. Default: 256 MiB.
    pub bytes_per_user_max: usize,
    /// How often queues are written while no client takes their values, in ms: what a crash loses at most. Messages are
    /// written before they are sent. Default: 100.
    pub write_interval: f64,
}

impl DurableConfig {
    /// Durable subscriptions that are kept in a store, with the default limits.
    #[must_use]
    pub fn new(store: Arc<dyn DurableStore>) -> Self {
        Self {
            store,
            lifetime_hours_max: 7 * 24,
            queue_size_max: 100_000,
            bytes_per_user_max: 256 << 20,
            write_interval: 100.0,
        }
    }

    /// The lifetime that a client gets that asks for one; 0 asks for the longest (Part 4 §6.8).
    pub(crate) fn revised_hours(&self, asked: u32) -> u32 {
        let max = self.lifetime_hours_max.max(1);
        if asked == 0 { max } else { asked.min(max) }
    }
}

/// How many publishing cycles a lifetime of so many hours has.
pub(crate) fn lifetime_count(hours: u32, publishing_interval_ms: f64) -> u32 {
    let count = f64::from(hours) * 3_600_000.0 / publishing_interval_ms.max(1e-3);
    // At least three keep-alives of one cycle (Part 4 §5.14.2.2); the conversion saturates.
    (count.ceil() as u32).max(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_counted_in_cycles() {
        assert_eq!(lifetime_count(1, 1_000.0), 3_600);
        assert_eq!(lifetime_count(1, 3_600_000.0), 3);
        assert_eq!(lifetime_count(u32::MAX, 1.0), u32::MAX);
    }
}
