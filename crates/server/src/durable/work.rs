//! The job that writes what has changed of a shard's durable subscriptions.

use super::saved::Saved;
use super::store::{Change, DurableStore};
use crate::history::StoreError;
use std::sync::Arc;

/// What a job is to do.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Shared with the shard, which writes them again if they could not be written.
    pub(crate) changes: Arc<Vec<Change>>,
    /// Subscriptions whose log has become long.
    pub(crate) shorten: Vec<u32>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) result: Result<(), StoreError>,
    /// The bytes of logs that were made shorter.
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
                    // The log is as good as it was, only longer than it had to be.
                    Err(error) => {
                        tracing::warn!(subscription, %error, "the log of a durable subscription stays long");
                    }
                }
            }
        }
        Written { result, shortened }
    }
}

/// Writes one record that says the same as all those of a subscription. Gives its length.
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
