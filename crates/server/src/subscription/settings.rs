//! Sampling and queue settings of items: revising them, and applying modifications.

use super::Engine;
use super::aggregate_item::AggregateItem;
use super::changes::mark_dirty;
use super::groups::on_grid;
use super::item::{AT_PUBLISH, EVERY_WRITE, INTERVAL_UNIT, flag};
use super::item::{ItemExt, Trigger};
use super::manage::{Revised, Settings, id_of};
use crate::durable::marks::Marks;
use crate::now::Now;
use crate::work::unit;
use taktwerk_types::TimestampsToReturn;
use taktwerk_types::time::nanos_from_millis;

impl Engine {
    /// Row of ModifyMonitoredItems (Part 4 §5.13.3). Unreported values are still reported.
    pub(crate) fn modify_item(
        &mut self,
        index: u32,
        client_handle: u32,
        timestamps: TimestampsToReturn,
        settings: Settings,
        now: Now,
    ) -> Revised {
        self.refresh_pages();
        // Earlier writes belong to the old settings.
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

    /// The publishing interval of a subscription, in ms.
    fn publishing_interval(&self, place: u32) -> f64 {
        self.subscription(place).map_or(1000.0, |it| it.parameters.publishing_interval)
    }

    /// The revised sampling interval (ms) and queue size of an item of a subscription.
    pub(super) fn revised_settings(&self, place: u32, settings: &Settings, polled: bool) -> (f64, u32) {
        let (limits, publishing) = (&self.limits, self.publishing_interval(place));
        let fastest = limits.sampling_interval_min.max(settings.minimum_sampling_interval);
        let slowest = limits.sampling_interval_max.max(fastest);
        let sampling_interval = match settings.sampling_interval {
            asked if asked.is_nan() || asked < 0.0 => publishing.max(settings.minimum_sampling_interval),
            0.0 if polled || settings.minimum_sampling_interval > 0.0 => fastest,
            0.0 => 0.0,
            // Not raised above the publishing interval, because the item would then be sampled apart from publishing.
            asked if asked <= publishing => on_grid(asked).min(publishing).clamp(fastest, slowest),
            asked => on_grid(asked).clamp(fastest, slowest),
        };
        (sampling_interval, settings.queue_size.clamp(1, self.queue_size_max(place)))
    }

    /// Revises the sampling and queue settings and puts the item into its group.
    pub(super) fn apply_settings(&mut self, index: u32, settings: Settings, now: Now) -> Revised {
        let Some(item) = self.items.get(index as usize) else {
            return Revised { item_id: 0, sampling_interval: 0.0, queue_size: 0 };
        };
        let (place, values_before) = (item.subscription, self.values_of(index));
        let polled = item.ext.as_ref().is_some_and(|ext| ext.polled.is_some());
        let publishing = self.publishing_interval(place);
        let (sampling_interval, mut queue_size) = self.revised_settings(place, &settings, polled);
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
        // An aggregate needs all values.
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
        self.update_demand(index, values_before);
        if aggregate.is_some() {
            self.note_aggregate(index);
        }
        let item = self.items.get(index as usize);
        let may_sample =
            item.is_some_and(|item| item.has(flag::ENABLED) && item.is_queued() && !item.waits_for_first());
        if !goes_on && may_sample {
            // A change since the last report is the first value in the queue.
            let news = item.and_then(|item| item.sample(&self.pages).map(|present| item.passes(&present)));
            if news == Some(true) {
                self.sample_now(index);
            }
        }
        Revised { item_id: self.id_of(index), sampling_interval, queue_size }
    }

    /// The publishing interval has changed, and thus which items are sampled at publish. Sampling intervals do not
    /// change (Part 4 §7.21).
    pub(super) fn regroup_items(&mut self, place: u32, now: Now) {
        let Some(subscription) = self.subscription(place) else { return };
        let publishing = nanos_from_millis(subscription.parameters.publishing_interval);
        let count = subscription.items.len();
        self.owe_for_items(count);
        for at in 0..count {
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
            self.owed += unit::ITEM;
        }
    }

    /// Removes an item from its group before its settings change. Returns whether a change of its variable has not been
    /// processed.
    fn begin_change(&mut self, index: u32, group: u32) -> bool {
        let Some(item) = self.items.get(index as usize) else { return false };
        let waits = item.has(flag::PENDING | flag::DIRTY);
        // An item that continues to want every write must not miss one.
        if item.has(flag::ENABLED) && !(item.group == EVERY_WRITE && group == EVERY_WRITE) {
            self.leave_group(index);
        }
        waits
    }

    /// Adds it to its new group, which counts it already.
    fn end_change(&mut self, index: u32, group: u32, waits: bool, now: Now) {
        let Some(item) = self.items.get_mut(index as usize) else { return self.groups.leave(group) };
        let goes_on = item.group == EVERY_WRITE && group == EVERY_WRITE;
        // After it has entered the new group, so that its old group is not recreated if it is the same.
        self.groups.leave(core::mem::replace(&mut item.group, group));
        self.forget_stale_timers();
        let Some(item) = self.items.get_mut(index as usize) else { return };
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

    /// Puts the present value into an item's queue without checking the filter.
    pub(super) fn sample_now(&mut self, index: u32) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        let Some(present) = item.sample(&self.pages) else { return };
        item.remember(&present);
        let sample = item.reported(present);
        let lost = item.enqueue(sample);
        self.after_enqueue(index, lost);
    }

    /// The id of an item for the client.
    fn id_of(&self, index: u32) -> u32 {
        let Some(item) = self.items.get(index as usize) else { return 0 };
        self.subscription(item.subscription).map_or(0, |subscription| id_of(subscription, item, index))
    }

    /// Starts sampling an item according to its group. `resumes`: it knows the last write it has seen; otherwise only
    /// writes from now on count.
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
                // Items deleted together are removed from the end.
                if let Some(at) = state.polled.iter().rposition(|other| *other == index) {
                    state.polled.remove(at);
                }
            } else if queued {
                state.every_tick = state.every_tick.saturating_sub(1);
            }
        }
    }
}

/// A sampling interval (ns) in units of [`INTERVAL_UNIT`], rounded up.
fn units(interval: u64) -> u32 {
    u32::try_from(interval.div_ceil(INTERVAL_UNIT)).unwrap_or(u32::MAX).min(!AT_PUBLISH)
}
