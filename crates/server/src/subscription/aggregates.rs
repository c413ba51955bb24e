//! MonitoredItems with an AggregateFilter (Part 4 §7.22.4, Part 13 §4.3).
//!
//! Such an item takes every write of its variable, like one with a queue and sampling interval 0, and keeps the values
//! itself. In each publishing cycle, completed intervals become results in the item's queue. Only subscriptions with
//! such items check for them.

use super::Engine;
use super::aggregate_item::{AggregateItem, AggregateSpec};
use super::item::{Item, flag};
use super::sample::Sample;
use crate::now::Now;
use taktwerk_types::DataValue;

impl Item {
    /// The item's state for its AggregateFilter.
    pub(crate) fn aggregate(&self) -> Option<&AggregateItem> {
        self.ext.as_ref()?.aggregate.as_deref()
    }

    /// The last result.
    pub(super) fn last_aggregate(&self) -> Option<DataValue> {
        self.aggregate()?.last.clone()
    }
}

impl Engine {
    /// The revised AggregateFilter of an item.
    pub(crate) fn aggregate_of(&self, place: u32, item_id: u32) -> Option<AggregateSpec> {
        let index = self.find_item(place, item_id).ok()?;
        Some(self.items.get(index as usize)?.aggregate()?.spec)
    }

    /// Records that a subscription has an item with an AggregateFilter.
    pub(super) fn note_aggregate(&mut self, index: u32) {
        let Some(item) = self.items.get(index as usize).filter(|item| item.aggregate().is_some()) else {
            return;
        };
        let place = item.subscription;
        if let Some(subscription) = self.subscription_mut(place)
            && !subscription.aggregates.contains(&index)
        {
            subscription.aggregates.push(index);
        }
    }

    /// Puts the results of completed intervals into the queues of a subscription's items.
    pub(super) fn calculate_aggregates(&mut self, place: u32, now: Now) {
        let Some(subscription) = self.subscription_mut(place) else { return };
        let mut aggregates = core::mem::take(&mut subscription.aggregates);
        let mut results = Vec::new();
        aggregates.retain(|index| {
            let Some(item) = self.items.get_mut(*index as usize).filter(|item| {
                item.has(flag::ALIVE) && item.subscription == place && item.aggregate().is_some()
            }) else {
                // It was deleted or has another filter now.
                return false;
            };
            if !item.has(flag::ENABLED) {
                return true;
            }
            let denied = item.has(flag::DENIED).then(|| item.denial().status());
            let Some(aggregate) = item.ext.as_mut().and_then(|ext| ext.aggregate.as_mut()) else {
                return false;
            };
            aggregate.calculate(now.utc, &mut results);
            let is_news = !results.is_empty();
            let mut lost = false;
            for mut value in results.drain(..) {
                if let Some(status) = denied {
                    value = DataValue { server_timestamp: Some(now.utc), ..DataValue::from_status(status) };
                }
                lost |= item.keep(Sample::Value(Box::new(value)));
            }
            if is_news {
                self.after_enqueue(*index, lost);
            }
            true
        });
        if let Some(subscription) = self.subscription_mut(place) {
            subscription.aggregates = aggregates;
        }
    }
}
