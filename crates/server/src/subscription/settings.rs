//! How items sample and queue: what clients ask for, what they get, and how to go on after they have modified it.

use super::Engine;
use super::aggregate_item::AggregateItem;
use super::changes::mark_dirty;
use super::groups::on_grid;
use super::item::{AT_PUBLISH, EVERY_WRITE, INTERVAL_UNIT, flag};
use super::item::{ItemExt, Trigger};
use super::manage::{Revised, Settings, id_of};
use crate::durable::marks::Marks;
use crate::now::Now;
use taktwerk_types::TimestampsToReturn;
use taktwerk_types::time::nanos_from_millis;

impl Engine {
    /// Row of ModifyMonitoredItems (Part 4 §5.13.3). What the item has not told yet it tells all the same.
    pub(crate) fn modify_item(
        &mut self,
        index: u32,
        client_handle: u32,
        timestamps: TimestampsToReturn,
        settings: Settings,
        now: Now,
    ) -> Revised {
        self.refresh_pages();
        // Writes until now belong to the old settings.
        self.drain_changes(now.instant);
        if let Some(item) = self.items.get(index as usize).filter(|item| item.group == EVERY_WRITE)
            && let Some(slot) = item.slot_index()
            && let Some(present) = super::read_slot(&self.pages, slot)
        {
            self.catch_up(&mut vec![(slot, present)]);
        }
        if let Some(item) = self.items.get_mut(index as usize) {
            item.client_handle = client_handle;
            item.timestamps = timestamps;
        }
        self.apply_settings(index, settings, now)
    }

    /// Revises the sampling and queue settings and puts the item into its group.
    pub(super) fn apply_settings(&mut self, index: u32, settings: Settings, now: Now) -> Revised {
        let limits = &self.limits;
        let Some(item) = self.items.get(index as usize) else {
            return Revised { item_id: 0, sampling_interval: 0.0, queue_size: 0 };
        };
        let publishing =
            self.subscription(item.subscription).map_or(1000.0, |it| it.parameters.publishing_interval);
        let polled = item.ext.as_ref().is_some_and(|ext| ext.polled.is_some());
        let fastest = limits.sampling_interval_min.max(settings.minimum_sampling_interval);
        let slowest = limits.sampling_interval_max.max(fastest);
        let sampling_interval = match settings.sampling_interval {
            asked if asked.is_nan() || asked < 0.0 => publishing.max(settings.minimum_sampling_interval),
            0.0 if polled || settings.minimum_sampling_interval > 0.0 => fastest,
            0.0 => 0.0,
            // Not lifted beyond the publishing interval: it would be sampled apart from publishing.
            asked if asked <= publishing => on_grid(asked).min(publishing).clamp(fastest, slowest),
            asked => on_grid(asked).clamp(fastest, slowest),
        };
        let mut queue_size = settings.queue_size.clamp(1, self.queue_size_max(item.subscription));
        let aggregate = settings.aggregate.map(|spec| spec.revised(now.utc));
        let rare = queue_size > 1
            || aggregate.is_some()
            || settings.filter.deadband.is_some()
            || settings.filter.trigger == Trigger::StatusValueTimestamp;
        let Self { items, subscriptions, .. } = self;
        let mut is_new = false;
        if let Some(item) = items.get_mut(index as usize)
            && let Some(Some(subscription)) = subscriptions.get(item.subscription as usize)
            && (rare || item.ext.is_some())
        {
            is_new = item.ext.is_none();
            let ext = item.ext.get_or_insert_with(|| Box::new(ItemExt::new(subscription.kept.account())));
            queue_size = ext.values.resize(queue_size);
            if subscription.journal.is_some() && !ext.values.is_marked() {
                ext.values.mark(Marks::default());
            }
            match (&mut ext.aggregate, aggregate) {
                (Some(present), Some(spec)) => present.modify(spec),
                (none, Some(spec)) => {
                    *none = Some(Box::new(AggregateItem::new(spec, subscription.kept.account())));
                }
                (present, None) => *present = None,
            }
        }
        // An aggregate is made of all values.
        let takes_all = aggregate.is_some() && !polled;
        let sampling_interval = if takes_all { 0.0 } else { sampling_interval };
        let group = if sampling_interval == 0.0 && (queue_size > 1 || takes_all) {
            EVERY_WRITE
        } else if queue_size == 1 && !polled && sampling_interval <= publishing {
            AT_PUBLISH | units(nanos_from_millis(sampling_interval))
        } else {
            self.groups.enter(nanos_from_millis(sampling_interval).max(1))
        };
        let waits = self.begin_change(index, group);
        let before = self.items.get(index as usize);
        let goes_on = before
            .is_some_and(|item| item.is_queued() && (group != EVERY_WRITE || item.group == EVERY_WRITE));
        let Some(item) = self.items.get_mut(index as usize) else {
            self.groups.leave(group);
            return Revised { item_id: 0, sampling_interval: 0.0, queue_size: 0 };
        };
        item.set_trigger(settings.filter.trigger);
        if let Some(ext) = &mut item.ext {
            ext.deadband = settings.filter.deadband;
            item.resize_queue(queue_size, settings.discard_oldest);
            if let Some(Some(subscription)) = self.subscriptions.get_mut(item.subscription as usize) {
                super::durable::note(index, item, subscription);
            }
            if is_new && let Some(present) = item.sample(&self.pages) {
                item.complete_memory(&present);
            }
        }
        self.end_change(index, group, waits, now);
        if aggregate.is_some() {
            self.note_aggregate(index);
        }
        let item = self.items.get(index as usize);
        let may_sample =
            item.is_some_and(|item| item.has(flag::ENABLED) && item.is_queued() && !item.waits_for_first());
        if !goes_on && may_sample {
            // What changed since the last report is the first value in the queue.
            let news = item.and_then(|item| item.sample(&self.pages).map(|present| item.passes(&present)));
            if news == Some(true) {
                self.sample_now(index);
            }
        }
        Revised { item_id: self.id_of(index), sampling_interval, queue_size }
    }

    /// The publishing interval has changed, and with it which items are sampled at publish. Sampling intervals stay as
    /// they are (Part 4 §7.21).
    pub(super) fn regroup_items(&mut self, place: u32, now: Now) {
        let Some(subscription) = self.subscription(place) else { return };
        let publishing = nanos_from_millis(subscription.parameters.publishing_interval);
        for at in 0..subscription.items.len() {
            let index = self.subscription(place).and_then(|it| it.items.get(at).copied());
            let Some(index) = index else { return };
            let Some(item) = self.items.get(index as usize) else { continue };
            let polled = item.ext.as_ref().is_some_and(|ext| ext.polled.is_some());
            if item.group == EVERY_WRITE || polled || item.is_queued() {
                continue;
            }
            let interval = match self.groups.get(item.group) {
                Some(group) => group.interval,
                None => u64::from(item.group & !AT_PUBLISH) * INTERVAL_UNIT,
            };
            let (was_at_publish, is_at_publish) = (item.is_at_publish(), interval <= publishing);
            if was_at_publish == is_at_publish {
                continue;
            }
            let group =
                if is_at_publish { AT_PUBLISH | units(interval) } else { self.groups.enter(interval) };
            let waits = self.begin_change(index, group);
            self.end_change(index, group, waits, now);
        }
    }

    /// Takes an item out of its group before its settings change. Returns whether a change of its variable waits to be
    /// looked at.
    fn begin_change(&mut self, index: u32, group: u32) -> bool {
        let Some(item) = self.items.get(index as usize) else { return false };
        let waits = item.has(flag::PENDING | flag::DIRTY);
        // An item that goes on wanting every write must not miss one.
        if item.has(flag::ENABLED) && !(item.group == EVERY_WRITE && group == EVERY_WRITE) {
            self.leave_group(index);
        }
        waits
    }

    /// Puts it into its new one, which counts it already.
    fn end_change(&mut self, index: u32, group: u32, waits: bool, now: Now) {
        let Some(item) = self.items.get_mut(index as usize) else { return self.groups.leave(group) };
        let goes_on = item.group == EVERY_WRITE && group == EVERY_WRITE;
        // After it has entered the new one, so that a group that it stays in is not made anew.
        self.groups.leave(core::mem::replace(&mut item.group, group));
        if !item.has(flag::ENABLED) || goes_on {
            return;
        }
        self.join_group(index, now, false);
        let Self { items, subscriptions, groups, timers, phases, .. } = self;
        let Some(item) = items.get_mut(index as usize) else { return };
        if waits && item.slot.is_some() && group != EVERY_WRITE {
            mark_dirty(index, item, subscriptions, groups, &mut |group, state| {
                state.arm(group, now.instant, phases, timers);
            });
        }
    }

    /// Puts the present value into an item's queue, whatever its filter says.
    pub(super) fn sample_now(&mut self, index: u32) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        let Some(present) = item.sample(&self.pages) else { return };
        item.remember(&present);
        let sample = item.reported(present);
        let lost = item.enqueue(sample);
        self.after_enqueue(index, lost);
    }

    /// The id that the client knows an item by.
    fn id_of(&self, index: u32) -> u32 {
        let Some(item) = self.items.get(index as usize) else { return 0 };
        self.subscription(item.subscription).map_or(0, |subscription| id_of(subscription, item, index))
    }

    /// Lets an item that watches its slot be sampled as its group is. `resumes` says whether it knows which write it
    /// has seen last; otherwise those from now on are news.
    pub(super) fn join_group(&mut self, index: u32, now: Now, resumes: bool) {
        let Some(item) = self.items.get_mut(index as usize).filter(|item| !item.has(flag::EVENTS)) else {
            return;
        };
        let group = item.group;
        if group == EVERY_WRITE {
            let Some(slot) = item.slot_index() else { return };
            let Some(page) = super::page_of(&self.pages, slot) else { return };
            let present = page.set_queued(slot, self.shard, true);
            if resumes {
                self.take_write(index, &present);
            } else if let Some(ext) = &mut item.ext {
                ext.seen = present.write;
            }
            return;
        }
        let polled = item.ext.as_ref().is_some_and(|ext| ext.polled.is_some());
        let queued = item.is_queued();
        if let Some(state) = self.groups.get_mut(group) {
            if polled {
                if !state.polled.contains(&index) {
                    state.polled.push(index);
                }
            } else if queued {
                state.every_tick += 1;
            }
            if polled || queued {
                self.arm_group(group, now.instant);
            }
        }
    }

    pub(super) fn leave_group(&mut self, index: u32) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        item.flags &= !flag::PENDING;
        if !item.has(flag::ENABLED) {
            return;
        }
        let group = item.group;
        if group == EVERY_WRITE {
            let Some(slot) = item.slot_index() else { return };
            let (shard, mut others) = (self.shard, false);
            let mut other = self.watch.first(slot as usize);
            while let Some(item) = self.items.get(other as usize).filter(|_| !others) {
                others = other != index && item.group == EVERY_WRITE;
                other = item.next;
            }
            if let Some(page) = super::page_of(&self.pages, slot).filter(|_| !others) {
                page.set_queued(slot, shard, false);
            }
            return;
        }
        let polled = item.ext.as_ref().is_some_and(|ext| ext.polled.is_some());
        let queued = item.is_queued();
        if let Some(state) = self.groups.get_mut(group) {
            if polled {
                // Those that go together go from the end.
                if let Some(at) = state.polled.iter().rposition(|other| *other == index) {
                    state.polled.remove(at);
                }
            } else if queued {
                state.every_tick = state.every_tick.saturating_sub(1);
            }
        }
    }
}

/// A sampling interval (ns) in [`INTERVAL_UNIT`], not shorter than it is.
fn units(interval: u64) -> u32 {
    u32::try_from(interval.div_ceil(INTERVAL_UNIT)).unwrap_or(u32::MAX).min(!AT_PUBLISH)
}
