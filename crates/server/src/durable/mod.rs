//! Durable subscriptions (Part 4 §6.8, Part 5 §9.3): their persistent log, so that they survive a restart of the
//! server.
//!
//! A shard describes changes of its durable subscriptions as records, and a job passes them to a store. The queues stay
//! in memory; the store's log restores them. Only the stores do I/O.
//!
//! - [`store`]: the interface of a store;
//! - `marks`: how much of a queue is written; `record`: one entry of the log; `saved`: a subscription restored from its
//!   entries, and log compaction;
//! - `work`: the job that writes; `users`: the accounts of the users that own durable subscriptions.

pub(crate) mod marks;
pub(crate) mod record;
pub(crate) mod saved;
pub mod store;
pub(crate) mod users;
pub(crate) mod work;

pub use store::{Change, DurableStore, Log};

use std::sync::Arc;

/// Settings of durable subscriptions.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DurableConfig {
    /// The store.
    pub store: Arc<dyn DurableStore>,
    /// The longest lifetime of a durable subscription without its client, in hours. Default: one week.
    pub lifetime_hours_max: u32,
    /// Longest queue of a MonitoredItem of a durable subscription, in values. Default: 100 000.
    pub queue_size_max: u32,
    /// Maximum bytes that the durable subscriptions of one user use in memory; further values are lost and the Overflow
    /// bit is set. The log in the store uses about as much again, and up to twice that before compaction. Default: 256
    /// MiB.
    pub bytes_per_user_max: usize,
    /// Interval in milliseconds at which queues are written while clients do not fetch their values: the most that a
    /// crash can lose. Messages are written before they are sent. Default: 100.
    pub write_interval: f64,
}

impl DurableConfig {
    /// Durable subscriptions in a store, with the default limits.
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

    /// The lifetime granted for a requested one, in hours; 0 requests the longest (Part 4 §6.8).
    pub(crate) fn revised_hours(&self, asked: u32) -> u32 {
        let max = self.lifetime_hours_max.max(1);
        if asked == 0 { max } else { asked.min(max) }
    }
}

/// The number of publishing cycles in a lifetime.
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
