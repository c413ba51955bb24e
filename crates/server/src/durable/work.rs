//! The job that writes the changes of a shard's durable subscriptions.

use super::saved::Saved;
use super::store::{Change, DurableStore};
use crate::history::StoreError;
use std::sync::Arc;

/// The work of a job.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Shared with the shard, which retries them if writing fails.
    pub(crate) changes: Arc<Vec<Change>>,
    /// Subscriptions whose log needs compaction.
    pub(crate) shorten: Vec<u32>,
}

/// The result of a job.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) result: Result<(), StoreError>,
    /// New sizes of compacted logs, in bytes.
    pub(crate) shortened: Vec<(u32, usize)>,
}

impl Batch {
    /// Runs on a thread that may block.
    pub(crate) fn run(self, store: &dyn DurableStore) -> Written {
        let result = store.write(&self.changes);
        let mut shortened = Vec::new();
        if result.is_ok() {
            for subscription in self.shorten {
                match shorten(store, subscription) {
                    Ok(Some(bytes)) => shortened.push((subscription, bytes)),
                    Ok(None) => {}
                    // The log is still valid, only longer than necessary.
                    Err(error) => {
                        tracing::warn!(subscription, %error, "cannot compact the log of a durable subscription; it stays valid");
                    }
                }
            }
        }
        Written { result, shortened }
    }
}

/// Replaces all records of a subscription by a single one. Returns its length.
fn shorten(store: &dyn DurableStore, subscription: u32) -> Result<Option<usize>, StoreError> {
    let records = store.records(subscription)?;
    if records.is_empty() {
        return Ok(None);
    }
    let saved = Saved::from_entries(subscription, &records).map_err(|error| {
        StoreError::corrupted(format!("the log of durable subscription {subscription} is damaged: {error}"))
    })?;
    let record = saved.to_entry();
    let bytes = record.len();
    store.write(&[Change::Replace { subscription, record }])?;
    Ok(Some(bytes))
}
