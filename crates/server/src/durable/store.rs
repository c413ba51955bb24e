//! What a store of durable subscriptions has to do.

use crate::history::StoreError;
use core::fmt;

/// What is to be done with the log of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Adds a record behind those that are there.
    Append {
        /// The SubscriptionId.
        subscription: u32,
        /// The record.
        record: Vec<u8>,
    },
    /// Puts one record in place of all that are there.
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

    /// Bytes that are kept until it is done.
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

/// Keeps the logs of durable subscriptions. All calls may block: the server makes them on worker threads, and
/// [`load`](Self::load) before it starts.
pub trait DurableStore: Send + Sync + fmt::Debug {
    /// All logs.
    ///
    /// # Errors
    /// They cannot be read.
    fn load(&self) -> Result<Vec<Log>, StoreError>;

    /// Makes changes, all of them or none. When it returns, they survive the end of the process.
    ///
    /// # Errors
    /// Nothing was changed.
    fn write(&self, changes: &[Change]) -> Result<(), StoreError>;

    /// The records of one subscription, the oldest first.
    ///
    /// # Errors
    /// They cannot be read.
    fn records(&self, subscription: u32) -> Result<Vec<Vec<u8>>, StoreError>;
}
