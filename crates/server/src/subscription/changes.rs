//! From dirty slots to the ready lists of subscriptions.

use super::Engine;
use super::groups::{Group, Groups};
use super::item::{AT_PUBLISH, EVERY_WRITE, Item, flag};
use super::subscription::Subscription;
use taktwerk_slots::{PAGE_SLOTS, Snapshot};
use taktwerk_types::Instant;

/// Maximum number of items visited with queued values per turn, about 0.1 µs each.
const WALKED_PER_SLICE: u64 = 2_048;

impl Engine {
    /// Processes everything that writers have marked since the last call.
    pub(super) fn drain_changes(&mut self, now: Instant) {
        self.drain_queued();
        let mut walked = 0;
        let (mut behind, mut meanings) =
            (core::mem::take(&mut self.behind), core::mem::take(&mut self.meanings));
        let Self { shard, store, pages, watch, items, subscriptions, groups, timers, phases, .. } = self;
        store.take_dirty_pages(*shard, pages.len(), |number| {
            let Some(page) = pages.get(number) else { return };
            page.take_meanings(*shard, |at| meanings.push((number * PAGE_SLOTS + at) as u32));
            page.take_dirty(*shard, |at| {
                let slot = number * PAGE_SLOTS + at;
                let mut index = watch.first(slot);
                let mut newest: Option<Snapshot> = None;
                let mut is_behind = false;
                while let Some(item) = items.get_mut(index as usize) {
                    let next = item.next;
                    if item.group == EVERY_WRITE {
                        let newest = newest.get_or_insert_with(|| page.read(slot as u32));
                        is_behind |= newest.is_after(item.seen());
                    } else {
                        mark_dirty(index, item, subscriptions, groups, &mut |group, state| {
                            state.arm(group, now, phases, timers);
                        });
                    }
                    index = next;
                    walked += 1;
                }
                behind.extend(newest.filter(|_| is_behind).map(|newest| (slot as u32, newest)));
            });
        });
        self.work.items_walked += walked;
        for slot in meanings.drain(..) {
            self.semantics_changed(slot, &mut behind);
        }
        if !behind.is_empty() {
            self.catch_up(&mut behind);
        }
        (self.behind, self.meanings) = (behind, meanings);
    }

    /// Distributes queued values to the items that want every write.
    pub(super) fn drain_queued(&mut self) {
        // Bounded, so that a writer in a tight loop cannot block the shard.
        self.take_queued(self.store.queued_len(self.shard), u64::MAX);
        self.queued_due = 0;
    }

    /// Distributes a slice of the values that are due; if none are due yet, all queued ones become due. Thousands of
    /// items on one variable take longer than a turn allows. Returns whether some remain.
    pub(super) fn take_queued_slice(&mut self) -> bool {
        if self.queued_due == 0 {
            self.want_queued();
        }
        if self.queued_due > 0 {
            self.queued_due -= self.take_queued(self.queued_due, WALKED_PER_SLICE);
        }
        self.queued_due > 0
    }

    /// Marks the values that are queued now as due.
    pub(super) fn want_queued(&mut self) {
        self.queued_due = self.store.queued_len(self.shard);
    }

    /// Distributes up to `count` values to the items that want every write, until `walked_max` items were visited.
    /// Returns how many values were completed.
    fn take_queued(&mut self, count: usize, walked_max: u64) -> usize {
        let mut walked = 0;
        for taken in 0..count {
            if walked >= walked_max {
                return taken;
            }
            // Another call has taken them.
            let Some(queued) = self.store.pop_queued(self.shard) else { break };
            self.work.writes_queued += 1;
            let mut index = self.watch.first(queued.slot as usize);
            while let Some(item) = self.items.get(index as usize) {
                let (here, wants) = (index, item.group == EVERY_WRITE);
                index = item.next;
                self.work.items_walked += 1;
                walked += 1;
                if wants {
                    self.take_write(here, &queued.value);
                }
            }
        }
        count
    }

    /// Updates the items on slots with the values found there. Those values were handed over before they could be
    /// found, so one that is not queued now did not fit into the queue.
    pub(super) fn catch_up(&mut self, behind: &mut Vec<(u32, Snapshot)>) {
        self.drain_queued();
        for (slot, value) in behind.drain(..) {
            let mut index = self.watch.first(slot as usize);
            while let Some(item) = self.items.get(index as usize) {
                let (here, wants) = (index, item.group == EVERY_WRITE);
                index = item.next;
                if wants {
                    self.take_write(here, &value);
                    self.repeat(here, &value);
                }
            }
        }
    }

    /// Adds a write to an item that wants every write, unless the item has it already.
    pub(super) fn take_write(&mut self, index: u32, value: &Snapshot) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        if !value.is_after(item.seen()) {
            return;
        }
        if item.has(flag::DENIED) {
            item.see(value);
            return;
        }
        let missed = item.has_missed(value);
        if !missed && !item.passes(value) {
            item.see(value);
            return;
        }
        item.remember(value);
        let mut sample = item.reported(value.clone());
        if missed {
            sample.set_overflow();
        }
        let lost = item.enqueue(sample);
        self.after_enqueue(index, lost || missed);
    }

    /// Reports a value again if its semantics have changed since it was reported.
    fn repeat(&mut self, index: u32, value: &Snapshot) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        if item.has(flag::SEMANTICS) && !item.has(flag::DENIED) && item.seen() == value.write {
            let sample = item.reported(value.clone());
            let lost = item.enqueue(sample);
            self.after_enqueue(index, lost);
        }
    }

    /// A property that defines the semantics of a variable was written: every item on the variable sets the
    /// SemanticsChanged bit in its next value (Part 8 §5.2).
    fn semantics_changed(&mut self, slot: u32, behind: &mut Vec<(u32, Snapshot)>) {
        let mut index = self.watch.first(slot as usize);
        let mut is_waited_for = false;
        while let Some(item) = self.items.get_mut(index as usize) {
            let here = index;
            index = item.next;
            item.flags |= flag::SEMANTICS | flag::DIRTY;
            if item.group == EVERY_WRITE {
                is_waited_for = true;
            } else if item.is_queued() {
                if let Some(snapshot) = item.sample(&self.pages) {
                    let sample = item.reported(snapshot);
                    let lost = item.enqueue(sample);
                    self.after_enqueue(here, lost);
                }
            } else {
                self.after_enqueue(here, false);
            }
        }
        if is_waited_for {
            behind.extend(super::read_slot(&self.pages, slot).map(|value| (slot, value)));
        }
    }

    /// Counts a lost value, and puts the item into its ready list.
    pub(super) fn after_enqueue(&mut self, index: u32, lost: bool) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        let Some(Some(subscription)) = self.subscriptions.get_mut(item.subscription as usize) else { return };
        subscription.counters.queue_overflows += u32::from(lost);
        super::durable::note(index, item, subscription);
        make_ready(index, item, subscription);
    }
}

/// Records a write for items that do not want every write.
#[inline]
pub(super) fn mark_dirty(
    index: u32,
    item: &mut Item,
    subscriptions: &mut [Option<Box<Subscription>>],
    groups: &mut Groups,
    arm: &mut impl FnMut(u32, &mut Group),
) {
    if item.group & AT_PUBLISH != 0 {
        item.flags |= flag::DIRTY;
        if !item.has(flag::READY) {
            if let Some(Some(subscription)) = subscriptions.get_mut(item.subscription as usize) {
                make_ready(index, item, subscription);
            }
        }
    } else if !item.has(flag::PENDING) {
        let group = item.group;
        if let Some(state) = groups.get_mut(group) {
            item.flags |= flag::PENDING;
            state.pending.push(index);
            arm(group, state);
        }
    }
}

/// Puts an item into its subscription's ready list, unless it is there already or has no reason to be: items in
/// Sampling mode are listed only to fire the items that they trigger.
pub(super) fn make_ready(index: u32, item: &mut Item, subscription: &mut Subscription) {
    let wanted = item.has(flag::REPORTING | flag::TRIGGERED) || item.has_links();
    if wanted && !item.has(flag::READY) {
        item.flags |= flag::READY;
        subscription.ready.push_back(index);
    }
}
