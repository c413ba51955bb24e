//! The interface of a store for durable subscriptions.

use crate::history::StoreError;
use core::fmt;

/// A change of a subscription's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Appends a record.
    Append {
        /// The SubscriptionId.
        subscription: u32,
        /// The record.
        record: Vec<u8>,
    },
    /// Replaces all records by one.
    Replace {
        /// The SubscriptionId.
        subscription: u32,
        /// The record.
        record: Vec<u8>,
    },
    /// Deletes all records.
    Delete {
        /// The SubscriptionId.
        subscription: u32,
    },
}

impl Change {
    /// The SubscriptionId.
    #[must_use]
    pub const fn subscription(&self) -> u32 {
        match self {
            Self::Append { subscription, .. }
            | Self::Replace { subscription, .. }
            | Self::Delete { subscription } => *subscription,
        }
    }

    /// Bytes held until the change is written.
    pub(crate) const fn kept(&self) -> usize {
        match self {
            Self::Append { record, .. } | Self::Replace { record, .. } => record.capacity(),
            Self::Delete { .. } => 0,
        }
    }
}

/// The log of one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The SubscriptionId.
    pub subscription: u32,
    /// Its records, the oldest first.
    pub records: Vec<Vec<u8>>,
}

/// Stores the logs of durable subscriptions. All calls may block: the server calls [`load`](Self::load) before it
/// starts, and the other functions on worker threads.
pub trait DurableStore: Send + Sync + fmt::Debug {
    /// All logs.
    ///
    /// # Errors
    /// The logs cannot be read.
    fn load(&self) -> Result<Vec<Log>, StoreError>;

    /// Applies all changes or none. They must be persistent when it returns.
    ///
    /// # Errors
    /// Nothing was changed.
    fn write(&self, changes: &[Change]) -> Result<(), StoreError>;

    /// The records of one subscription, the oldest first.
    ///
    /// # Errors
    /// The records cannot be read.
    fn records(&self, subscription: u32) -> Result<Vec<Vec<u8>>, StoreError>;
}
