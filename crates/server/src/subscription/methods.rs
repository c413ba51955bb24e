//! The Server object's methods for subscriptions (Part 5 §9.1, §9.2).

use super::Engine;
use super::item::{EVERY_WRITE, Item, flag};
use super::manage::id_of;
use super::sample::Sample;
use crate::work::unit;

impl Engine {
    /// ResendData (Part 5 §9.2): the current value of every reporting item goes into the next message.
    pub(crate) fn resend_data(&mut self, place: u32) {
        // Values in transit precede the present one.
        let slots = self.subscription(place).into_iter().flat_map(|subscription| &subscription.items);
        let slots = slots.filter_map(|index| self.items.get(*index as usize));
        let slots = slots.filter(|item| item.group == EVERY_WRITE).filter_map(Item::slot_index);
        let mut present: Vec<_> =
            slots.filter_map(|slot| Some((slot, super::read_slot(&self.pages, slot)?))).collect();
        self.catch_up(&mut present);
        let Self { subscriptions, items, pages, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return };
        subscription.reset_lifetime();
        self.owed += subscription.items.len() as i64 * unit::ITEM / 4;
        for at in 0..subscription.items.len() {
            let index = subscription.items[at];
            let Some(item) = items.get_mut(index as usize) else { continue };
            if !item.has(flag::REPORTING) || item.has(flag::EVENTS) {
                continue;
            }
            if !item.is_queued() {
                item.flags |= flag::FORCED | flag::DIRTY;
            } else if item.ext.as_ref().is_some_and(|ext| ext.values.is_empty()) {
                if item.aggregate().is_some() {
                    if let Some(value) = item.last_aggregate() {
                        item.keep(Sample::Value(Box::new(value)));
                    }
                } else if let Some(snapshot) = item.sample(pages) {
                    // A write since then may still be in transit: it is then reported here.
                    let missed = item.group == EVERY_WRITE && item.has_missed(&snapshot);
                    item.remember(&snapshot);
                    let mut sample = item.reported(snapshot);
                    if missed {
                        sample.set_overflow();
                    }
                    item.enqueue(sample);
                } else if let Some(value) = item.last_other() {
                    item.enqueue(Sample::Value(Box::new(value)));
                }
            }
            super::durable::note(index, item, subscription);
            super::changes::make_ready(index, item, subscription);
        }
    }

    /// Server and client handles of a subscription's items, for GetMonitoredItems (Part 5 §9.1).
    pub(crate) fn item_handles(&self, place: u32) -> (Vec<u32>, Vec<u32>) {
        let Some(subscription) = self.subscription(place) else { return (Vec::new(), Vec::new()) };
        subscription
            .items
            .iter()
            .filter_map(|index| {
                let item = self.items.get(*index as usize)?;
                Some((id_of(subscription, item, *index), item.client_handle))
            })
            .unzip()
    }
}
