//! What items may deliver, for admission by predicted CPU load (see [`crate::headroom`]).
//!
//! Each subscription keeps the sum over its enabled items. The sum changes only when items or intervals change; sampling
//! and publishing do not use it.

use super::Engine;
use super::aggregate_item::AggregateSpec;
use super::item::{EVERY_WRITE, Item, flag};
use super::manage::Settings;
use super::subscription::Subscription;
use crate::headroom::{Items, Load, Share, VALUE, values_per_cycle};
use taktwerk_schema::MonitoringMode;
use taktwerk_types::StatusCode;

const NANOS_PER_MS: f64 = 1e6;
const TICKS_PER_MS: f64 = 1e4;

impl Engine {
    /// The queue size of an item and the time between its values, in ms.
    fn queue_of(&self, item: &Item) -> (u32, f64) {
        // When events are raised is unknown; they count as one per interval.
        let Some(ext) = item.ext.as_ref().filter(|_| !item.has(flag::EVENTS)) else { return (1, 0.0) };
        let between = match (&ext.aggregate, self.groups.get(item.group)) {
            (Some(aggregate), _) => aggregate.spec.interval as f64 / TICKS_PER_MS,
            (None, Some(group)) => group.interval as f64 / NANOS_PER_MS,
            (None, None) if item.group == EVERY_WRITE => self.limits.sampling_interval_min,
            (None, None) => 0.0,
        };
        (ext.queue_size.max(1), between)
    }

    /// What an item adds to the load of its subscription: nothing if it is disabled.
    pub(super) fn values_of(&self, index: u32) -> u64 {
        if self.headroom.is_none() {
            return 0;
        }
        let Some(item) = self.items.get(index as usize).filter(|item| item.has(flag::ENABLED)) else {
            return 0;
        };
        self.values_if_enabled(item)
    }

    fn values_if_enabled(&self, item: &Item) -> u64 {
        let Some(subscription) = self.subscription(item.subscription) else { return 0 };
        let (queue, between) = self.queue_of(item);
        values_per_cycle(queue, between, subscription.parameters.publishing_interval)
    }

    /// Updates the load of a subscription after a change of an item that added `before`.
    pub(super) fn update_demand(&mut self, index: u32, before: u64) {
        if self.headroom.is_none() {
            return;
        }
        let after = self.values_of(index);
        let place = self.items.get(index as usize).map(|item| item.subscription);
        if let Some(subscription) = place.and_then(|place| self.subscription_mut(place)) {
            subscription.replace_values(before, after);
        }
    }

    /// Sums the load of a subscription again, for a changed publishing interval.
    pub(super) fn sum_demand(&mut self, place: u32) {
        let Some(subscription) = self.subscription(place).filter(|it| it.share.is_some()) else { return };
        let values = subscription.items.iter().map(|index| self.values_of(*index)).sum();
        if let Some(share) = self.subscription_mut(place).and_then(|it| it.share.as_mut()) {
            share.values = values;
        }
        if let Some(subscription) = self.subscription_mut(place) {
            subscription.demand();
        }
    }

    /// The shortest publishing interval in ms, at least `interval_ms`, with which a subscription fits.
    pub(crate) fn fitting_interval(&self, place: Option<u32>, interval_ms: f64) -> f64 {
        let Some(headroom) = &self.headroom else { return interval_ms };
        let longest = self.limits.publishing_interval_max;
        match place.and_then(|place| self.subscription(place)) {
            Some(subscription) => {
                let Some(share) = subscription.share.as_ref().filter(|share| share.can_refuse()) else {
                    return interval_ms;
                };
                let mut items = Items::default();
                for index in &subscription.items {
                    let item = self.items.get(*index as usize).filter(|item| item.has(flag::ENABLED));
                    match item.map(|item| self.queue_of(item)) {
                        None => {}
                        Some((1, _)) => items.single += 1,
                        Some(queued) => items.queued.push(queued),
                    }
                }
                share.revise(&items, interval_ms, longest)
            }
            // A new subscription will have at least one item.
            None => {
                let items = Items { single: 1, ..Items::default() };
                Share::new(headroom).revise(&items, interval_ms, longest)
            }
        }
    }

    /// Whether a subscription may have one more enabled item with these settings.
    ///
    /// # Errors
    /// Bad_TooManyMonitoredItems.
    pub(super) fn admit_new_item(
        &self,
        place: u32,
        settings: &Settings,
        is_polled: bool,
    ) -> Result<(), StatusCode> {
        if self.headroom.is_none() {
            return Ok(());
        }
        let values = self.values_of_settings(place, settings, is_polled);
        self.admit(place, 1, 0, values)
    }

    /// Whether a subscription may have one more event item.
    ///
    /// # Errors
    /// Bad_TooManyMonitoredItems.
    pub(super) fn admit_new_event_item(&self, place: u32) -> Result<(), StatusCode> {
        self.admit(place, 1, 0, VALUE)
    }

    /// Whether an item may get other settings.
    ///
    /// # Errors
    /// Bad_TooManyMonitoredItems: it would deliver more, and that does not fit.
    pub(crate) fn admit_settings(&self, index: u32, settings: &Settings) -> Result<(), StatusCode> {
        let before = self.values_of(index);
        let Some(item) = self.items.get(index as usize).filter(|_| before > 0) else { return Ok(()) };
        let is_polled = item.ext.as_ref().is_some_and(|ext| ext.polled.is_some());
        let after = self.values_of_settings(item.subscription, settings, is_polled);
        if after > before { self.admit(item.subscription, 0, before, after) } else { Ok(()) }
    }

    /// Whether an item may get a mode. Part 4 §5.13.4.4 has no StatusCode for this; the one of CreateMonitoredItems
    /// (§5.13.2.4) tells clients what happened.
    ///
    /// # Errors
    /// Bad_TooManyMonitoredItems: it is disabled, and what it would deliver does not fit.
    pub(crate) fn admit_mode(&self, index: u32, mode: MonitoringMode) -> Result<(), StatusCode> {
        let item = self.items.get(index as usize).filter(|_| self.headroom.is_some());
        match item.filter(|item| mode != MonitoringMode::DISABLED && !item.has(flag::ENABLED)) {
            Some(item) => self.admit(item.subscription, 1, 0, self.values_if_enabled(item)),
            None => Ok(()),
        }
    }

    /// Whether publishing may be enabled for a subscription. Part 4 §5.14.4.4 has no StatusCode for this, so it is a
    /// common one (§7.39.2).
    ///
    /// # Errors
    /// Bad_ResourceUnavailable: what its items deliver does not fit.
    pub(crate) fn admit_publishing(&self, place: u32, enabled: bool) -> Result<(), StatusCode> {
        match self.subscription(place) {
            Some(subscription) if enabled && !subscription.publishing_enabled => {
                self.admit(place, 0, 0, 0).map_err(|_| StatusCode::BAD_RESOURCE_UNAVAILABLE)
            }
            _ => Ok(()),
        }
    }

    fn admit(&self, place: u32, items: u32, before: u64, after: u64) -> Result<(), StatusCode> {
        let Some(subscription) = self.subscription(place) else { return Ok(()) };
        let Some(share) = &subscription.share else { return Ok(()) };
        let present = subscription.load();
        let load = Load {
            items: present.items.saturating_add(items),
            values: present.values.saturating_sub(before).saturating_add(after),
        };
        // Without items there are only keep-alives.
        if load.items == 0 || share.admits(load, subscription.parameters.publishing_interval) {
            Ok(())
        } else {
            Err(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS)
        }
    }

    fn values_of_settings(&self, place: u32, settings: &Settings, is_polled: bool) -> u64 {
        let Some(subscription) = self.subscription(place) else { return 0 };
        let publishing = subscription.parameters.publishing_interval;
        let (sampling, queue) = self.revised_settings(place, settings, is_polled);
        let every_write = sampling == 0.0 && queue > 1;
        let between = match settings.aggregate {
            Some(AggregateSpec { interval, .. }) => interval as f64 / TICKS_PER_MS,
            None if every_write => self.limits.sampling_interval_min,
            None => sampling,
        };
        values_per_cycle(queue, between, publishing)
    }
}

impl Subscription {
    /// What its enabled items deliver at most.
    pub(super) fn load(&self) -> Load {
        let values = self.share.as_ref().map_or(0, |share| share.values);
        Load { items: self.enabled_items, values }
    }

    /// Updates the predicted load after a change of what one item delivers.
    pub(super) fn replace_values(&mut self, before: u64, after: u64) {
        if let Some(share) = &mut self.share {
            share.values = share.values.saturating_sub(before).saturating_add(after);
        }
        self.demand();
    }

    /// Updates the predicted load after a change of items or interval.
    pub(crate) fn demand(&mut self) {
        let load = self.load();
        if let Some(share) = &mut self.share {
            share.set(load, self.parameters.publishing_interval, self.publishing_enabled);
        }
    }
}
