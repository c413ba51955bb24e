//! A store of durable subscriptions (Part 4 §6.8) that outlives the processes of a server.
//!
//! Writes are jobs of the server and take time. A crash loses those that have not ended: the tail of the log.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_schema::{CallMethodRequest, CallRequest};
use taktwerk_server::durable::{Change, DurableConfig, DurableStore, Log};
use taktwerk_server::history::StoreError;

/// Lifetime of a durable subscription without its client, in hours: the shortest.
pub(super) const LIFETIME_HOURS: u32 = 1;
/// Range of the duration of a write.
pub(super) const WRITE_TIME: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(40));

/// The logs, by SubscriptionId.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<u32, Vec<Vec<u8>>>>);

impl Memory {
    /// The settings of a server with this store.
    pub(super) fn config(self: &Arc<Self>) -> DurableConfig {
        let mut config = DurableConfig::new(Arc::clone(self) as Arc<dyn DurableStore>);
        config.lifetime_hours_max = LIFETIME_HOURS;
        config
    }

    /// Number of subscriptions.
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl DurableStore for Memory {
    fn load(&self) -> Result<Vec<Log>, StoreError> {
        let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(logs.iter().map(|(id, records)| Log { subscription: *id, records: records.clone() }).collect())
    }

    fn write(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            match change.clone() {
                Change::Append { subscription, record } => logs.entry(subscription).or_default().push(record),
                Change::Replace { subscription, record } => {
                    logs.insert(subscription, vec![record]);
                }
                Change::Delete { subscription } => {
                    logs.remove(&subscription);
                }
            }
        }
        Ok(())
    }

    fn records(&self, subscription: u32) -> Result<Vec<Vec<u8>>, StoreError> {
        let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(logs.get(&subscription).cloned().unwrap_or_default())
    }
}

/// A call of SetSubscriptionDurable (Part 5 §9.3).
pub(super) fn call(subscription: u32) -> CallRequest {
    let method = CallMethodRequest {
        object_id: object_ids::SERVER.into(),
        method_id: method_ids::SERVER_SET_SUBSCRIPTION_DURABLE.into(),
        input_arguments: vec![subscription.into(), LIFETIME_HOURS.into()],
    };
    CallRequest { methods_to_call: vec![method], ..CallRequest::default() }
}
