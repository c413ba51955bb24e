//! From dirty slots to ready lists.

use super::Engine;
use super::item::{AT_PUBLISH, EVERY_WRITE, Item, Sample, flag};
use super::sampling::Group;
use super::subscription::Subscription;
use crate::space::slot::{PAGE_SLOTS, QueuedChange};
use taktwerk_types::Instant;

impl Engine {
    /// Takes over everything that writers have marked since the last call.
    pub(super) fn drain_changes(&mut self, now: Instant) {
        self.drain_queued();
        let mut walked = 0;
        let Self { shard, store, pages, watch, items, subscriptions, groups, timers, phases, .. } = self;
        store.take_dirty_pages(*shard, pages.len(), |number| {
            let Some(page) = pages.get(number) else { return };
            page.take_dirty(*shard, |at| {
                let slot = number * PAGE_SLOTS + at;
                let mut index = watch.first(slot);
                while let Some(item) = items.get_mut(index as usize) {
                    let next = item.next;
                    mark_dirty(index, item, subscriptions, groups, &mut |group, state| {
                        state.arm(group, now, phases, timers);
                    });
                    index = next;
                    walked += 1;
                }
            });
        });
        self.work.items_walked += walked;
    }

    /// Moves single values to the items that want every write.
    pub(super) fn drain_queued(&mut self) {
        // Asked before the ring is emptied: a value lost after that belongs to the next call.
        let overflowed = self.store.take_overflowed(self.shard);
        // Bounded, so that a writer in a tight loop cannot hold the shard here.
        for _ in 0..65_536 {
            let Some(change) = self.store.pop_queued(self.shard) else { break };
            let (slot, value) = match change {
                QueuedChange::Value { slot, value } => (slot, value),
                QueuedChange::Semantics { slot } => {
                    self.semantics_changed(slot);
                    continue;
                }
            };
            let mut index = self.watch.first(slot as usize);
            while let Some(item) = self.items.get_mut(index as usize) {
                let here = index;
                index = item.next;
                self.work.items_walked += 1;
                if item.has(flag::DENIED) {
                    continue;
                }
                if item.group == EVERY_WRITE && item.is_news(&value) {
                    if !item.passes(&value) {
                        item.see(&value);
                        continue;
                    }
                    item.remember(&value);
                    let lost = item.enqueue(Sample::Slot(value.clone()));
                    self.after_enqueue(here, lost);
                }
            }
        }
        if overflowed {
            for item in self.items.iter_mut().filter(|item| item.group == EVERY_WRITE) {
                item.mark_overflow();
            }
        }
    }

    /// Counts a lost value and puts the item into its ready list.
    pub(super) fn after_enqueue(&mut self, index: u32, lost: bool) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        let Some(Some(subscription)) = self.subscriptions.get_mut(item.subscription as usize) else { return };
        subscription.counters.queue_overflows += u32::from(lost);
        make_ready(index, item, subscription);
    }
}

/// Notes that an item's variable was written.
#[inline]
fn mark_dirty(
    index: u32,
    item: &mut Item,
    subscriptions: &mut [Option<Box<Subscription>>],
    groups: &mut [Group],
    arm: &mut impl FnMut(u32, &mut Group),
) {
    match item.group {
        AT_PUBLISH => {
            item.flags |= flag::DIRTY;
            if !item.has(flag::READY) {
                if let Some(Some(subscription)) = subscriptions.get_mut(item.subscription as usize) {
                    make_ready(index, item, subscription);
                }
            }
        }
        EVERY_WRITE => {}
        group => {
            if item.has(flag::PENDING) {
                return;
            }
            let Some(state) = groups.get_mut(group as usize) else { return };
            item.flags |= flag::PENDING;
            state.pending.push(index);
            arm(group, state);
        }
    }
}

/// Puts an item into its subscription's ready list, unless it is there or has no reason to be: items in Sampling mode
/// go there only to fire the items that they trigger.
pub(super) fn make_ready(index: u32, item: &mut Item, subscription: &mut Subscription) {
    let wanted = item.has(flag::REPORTING | flag::TRIGGERED)
        || item.ext.as_ref().is_some_and(|ext| !ext.links.is_empty());
    if wanted && !item.has(flag::READY) {
        item.flags |= flag::READY;
        subscription.push_ready(index);
    }
}
