//! MonitoredItems that report events (Part 4 §5.13.1, §7.22.3).
//!
//! Before publishing, the engine takes events from its ring and visits the items on their notifiers. The item's filter
//! decides; accepted events are queued as shared references. The selected fields are encoded with the message, or once
//! for all items with the same filter (`shared_filters`).

use super::Engine;
use super::durable::note;
use super::event_items::Begun;
use super::item::{Item, ItemExt, NONE, flag};
use super::manage::{Revised, id_of};
use super::notifications::sweep;
use super::retained::{Leaving, Retained, RetainedChange};
use super::shared_filters::{Answers, Batch, ENTRY_SIZE};
use super::subscription::Subscription;
use super::triggering::{Following, fire_links};
use crate::account::{Category, Charge, Exhausted, HeapSize, allocation};
use crate::authorization::{Decisions, Denial};
use crate::durable::marks::Marks;
use crate::durable::record::Section;
use crate::event::bus::Departed;
use crate::event::filter::{Around, EventFilter};
use crate::event::queue::{EventQueue, Room};
use crate::event::{Event, EventBus};
use crate::now::Now;
use crate::query::around::EventSurroundings;
use crate::space::view::attribute;
use crate::space::{AddressSpace, NodeIx};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_schema::{MonitoringMode, PermissionType};
use taktwerk_types::codec::encode_len;

/// Queue size if the client leaves it to the server (Part 4 §7.21).
const QUEUE_SIZE_DEFAULT: u32 = 1000;
/// The shortest queue, granted to clients that request size 1 (Part 4 §7.21).
const QUEUE_SIZE_MIN: u32 = 10;

/// Items that events are offered to per slice, some 0.2 to 0.5 µs each. Half as many cost a steady load of events 5 % more CPU.
const ASKED_PER_SLICE: usize = 256;
/// Maximum number of events offered to the items together.
const BATCH_MAX: usize = 32;
/// Events with a known filter result that can be queued in the time of offering one.
const TAKEN_PER_ASKED: usize = 4;
/// References that can be followed in the time of offering one event.
const FOLLOWED_PER_ASKED: usize = 4;

/// The state of an event item.
#[derive(Debug)]
pub(crate) struct EventItem {
    filter: Arc<EventFilter>,
    pub(super) queue: EventQueue,
    filter_charge: Charge,
    /// The number of its first event: earlier ones were raised before it was created or enabled.
    since: u64,
    /// Its previous filters, for events raised before it was modified: the earliest first.
    earlier: SmallVec<[Earlier; 0]>,
    /// Set while the item moves between shards.
    departed: Option<Departed>,
    /// The conditions that the client retains.
    retained: Retained,
}

/// A filter that applies to events before a number.
#[derive(Debug)]
struct Earlier {
    until: u64,
    filter: Arc<EventFilter>,
}

impl EventItem {
    /// Whether only its current filter applies from event `number` on.
    fn has_only_current_filter(&mut self, number: u64) -> bool {
        self.forget_earlier(number);
        number >= self.since && self.earlier.is_empty()
    }

    /// Whether the item reports the event with the number `number`.
    fn wants(&mut self, number: u64, event: &Event, around: &dyn Around) -> bool {
        self.forget_earlier(number);
        let filter = self.earlier.first().map_or(&self.filter, |earlier| &earlier.filter);
        number >= self.since && filter.passes(event, around)
    }

    /// Drops filters that apply only to events before `number`: events arrive in order.
    fn forget_earlier(&mut self, number: u64) {
        let before = self.earlier.len();
        self.earlier.retain(|earlier| number < earlier.until);
        if self.earlier.len() < before {
            self.filter_charge.resize_anyway(self.filters_size());
        }
    }

    /// Appends the changes of the client's retained conditions to a log entry.
    pub(super) fn write_retained(&mut self, item: u32, out: &mut Vec<u8>) {
        if let Some(RetainedChange { cleared, added, removed }) = self.retained.take_change() {
            Section::Retained { item, cleared, added, removed }.encode(out);
        }
    }

    fn filters_size(&self) -> usize {
        let earlier = self.earlier.iter().map(|earlier| size_of::<Earlier>() + filter_size(&earlier.filter));
        filter_size(&self.filter) + earlier.sum::<usize>()
    }

    /// Replaces the filter, and returns the previous one. `raised`: the number of the next event, if earlier ones may
    /// still arrive.
    fn set_filter(
        &mut self,
        filter: Arc<EventFilter>,
        raised: Option<u64>,
    ) -> Result<Arc<EventFilter>, Exhausted> {
        if raised.is_none() {
            self.earlier.clear();
        }
        let earlier = self.filters_size() - filter_size(&self.filter);
        self.filter_charge.resize(earlier + filter_size(&filter))?;
        let old = core::mem::replace(&mut self.filter, filter);
        // If it was already modified since the last event, no event needs the filter in between.
        if let Some(until) = raised.filter(|until| self.earlier.last().is_none_or(|last| last.until < *until))
        {
            self.earlier.push(Earlier { until, filter: Arc::clone(&old) });
            if self.filter_charge.resize(self.filters_size()).is_err() {
                // If the account is full, the new filter applies to these events too.
                self.earlier.pop();
            }
        }
        Ok(old)
    }
}

/// A checked item: the service's data about the node and the request.
#[derive(Debug)]
pub(crate) struct EventSpec {
    pub(crate) node: NodeIx,
    pub(crate) denial: Denial,
    pub(crate) mode: MonitoringMode,
    pub(crate) settings: EventSettings,
}

/// Settings that a client can modify later.
#[derive(Debug)]
pub(crate) struct EventSettings {
    pub(crate) client_handle: u32,
    pub(crate) queue_size: u32,
    pub(crate) discard_oldest: bool,
    pub(crate) filter: EventFilter,
}

impl Item {
    fn events(&self) -> Option<&EventItem> {
        self.ext.as_ref()?.events.as_deref()
    }

    /// Whether its filter accepts an event.
    pub(super) fn filter_passes(&self, event: &Event, around: &dyn Around) -> bool {
        self.events().is_some_and(|events| events.filter.passes(event, around))
    }

    /// The queue of an event item.
    pub(super) fn event_queue_mut(&mut self) -> Option<&mut EventQueue> {
        Some(&mut self.events_mut()?.queue)
    }

    pub(super) fn events_mut(&mut self) -> Option<&mut EventItem> {
        self.ext.as_mut()?.events.as_deref_mut()
    }
}

/// Size of a filter in bytes.
fn filter_size(filter: &EventFilter) -> usize {
    allocation(size_of::<EventFilter>() + 16)
        + allocation(size_of::<EventItem>())
        + ENTRY_SIZE
        + filter.heap_size()
}

impl Engine {
    /// The granted queue size.
    fn event_queue_size(&self, place: u32, asked: u32) -> u32 {
        let max = self.queue_size_max(place);
        match asked {
            0 => QUEUE_SIZE_DEFAULT.min(max),
            asked => asked.max(QUEUE_SIZE_MIN).min(max),
        }
    }

    /// Adds an event item.
    pub(crate) fn create_event_item(
        &mut self,
        place: u32,
        spec: EventSpec,
    ) -> Result<Revised, taktwerk_types::StatusCode> {
        use taktwerk_types::StatusCode;
        let EventSpec { node, denial, mode, settings } = spec;
        let queue_size = self.event_queue_size(place, settings.queue_size);
        let per_subscription = self.limits.monitored_items_per_subscription_max as usize;
        let subscription = self.subscription_mut(place).ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        if subscription.items.len() >= per_subscription {
            return Err(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
        }
        let account = Arc::clone(subscription.kept.account());
        if mode != MonitoringMode::DISABLED {
            self.admit_new_event_item(place)?;
        }
        let subscription = self.subscription_mut(place).ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        let filter_charge = account
            .charge(Category::MonitoredItems, filter_size(&settings.filter))
            .map_err(Exhausted::status)?;
        subscription.kept.resize(subscription.items.len() + 1).map_err(Exhausted::status)?;
        let position = u32::try_from(subscription.items.len()).unwrap_or(NONE);
        let is_durable = subscription.journal.is_some();
        let mut ext = Box::new(ItemExt::new(&account));
        ext.polled = Some(attribute::EVENT_NOTIFIER);
        let mut queue = EventQueue::new(&account, queue_size, settings.discard_oldest);
        if is_durable {
            queue.mark(Marks::default());
        }
        let filter = self.filters.share(Arc::new(settings.filter));
        let retained = Retained::new(account.nothing(Category::MonitoredItems), is_durable);
        ext.events = Some(Box::new(EventItem {
            filter,
            queue,
            filter_charge,
            since: 0,
            earlier: SmallVec::new(),
            departed: None,
            retained,
        }));
        let mut item = Item::new(place, settings.client_handle, None, node);
        item.flags = flag::ALIVE | flag::EVENTS;
        item.position = position;
        item.deny(denial);
        item.ext = Some(ext);
        let index = self.insert_item(item);
        if let Some(subscription) = self.subscription_mut(place) {
            subscription.items.push(index);
            if let Some(ids) = &mut subscription.ids {
                ids.create(index);
            }
        }
        self.set_event_mode(index, mode);
        Ok(self.revised_event_item(index, queue_size))
    }

    /// Row of ModifyMonitoredItems. Queued events stay as far as they fit into the new queue. The previous filter
    /// applies to events that were raised before and are still in transit.
    pub(crate) fn modify_event_item(
        &mut self,
        index: u32,
        settings: EventSettings,
    ) -> Result<Revised, taktwerk_types::StatusCode> {
        let is_behind = self.events.len(self.shard) > 0 || self.event_items.is_behind();
        let on_their_way = is_behind.then(|| self.events.raised());
        let place = self.items.get(index as usize).map_or(NONE, |item| item.subscription);
        let queue_size = self.event_queue_size(place, settings.queue_size);
        let Self { items, subscriptions, filters, .. } = self;
        let invalid = taktwerk_types::StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
        let item = items.get_mut(index as usize).ok_or(invalid)?;
        let events = item.events_mut().ok_or(invalid)?;
        let filter = filters.share(Arc::new(settings.filter));
        match events.set_filter(Arc::clone(&filter), on_their_way) {
            Ok(old) => filters.release(&old),
            Err(exhausted) => {
                filters.release(&filter);
                return Err(exhausted.status());
            }
        }
        let lost = events.queue.modify(queue_size, settings.discard_oldest);
        // A refused modification changes nothing.
        item.client_handle = settings.client_handle;
        if let Some(Some(subscription)) = subscriptions.get_mut(place as usize) {
            subscription.counters.event_queue_overflows += u32::from(lost);
            note(index, item, subscription);
        }
        Ok(self.revised_event_item(index, queue_size))
    }

    fn revised_event_item(&self, index: u32, queue_size: u32) -> Revised {
        let item = self.items.get(index as usize);
        let id = item.and_then(|item| Some(id_of(self.subscription(item.subscription)?, item, index)));
        // Part 4 §7.21: events are not sampled.
        Revised { item_id: id.unwrap_or(0), sampling_interval: 0.0, queue_size }
    }

    /// Whether an item monitors events.
    pub(crate) fn is_event_item(&self, index: u32) -> bool {
        self.items.get(index as usize).is_some_and(|item| item.has(flag::EVENTS))
    }

    /// SetMonitoringMode of an event item.
    pub(super) fn set_event_mode(&mut self, index: u32, mode: MonitoringMode) {
        let before = self.values_of(index);
        let Some(item) = self.items.get_mut(index as usize) else { return };
        let (was_enabled, enabled) = (item.has(flag::ENABLED), mode != MonitoringMode::DISABLED);
        item.set(flag::REPORTING, mode == MonitoringMode::REPORTING);
        item.set(flag::ENABLED, enabled);
        if !enabled {
            item.flags &= !(flag::READY | flag::TRIGGERED);
            // Part 4 §5.13.1.3: disabling deletes the queue.
            if let Some(events) = item.events_mut() {
                events.queue.clear();
                events.retained.clear();
            }
        }
        let place = item.subscription;
        if let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) {
            note(index, item, subscription);
            sweep(place, &mut self.items, subscription);
        }
        if was_enabled != enabled
            && let Some(subscription) = self.subscription_mut(place)
        {
            subscription.enabled_items = if enabled {
                subscription.enabled_items + 1
            } else {
                subscription.enabled_items.saturating_sub(1)
            };
            self.update_demand(index, before);
        }
        match (was_enabled, enabled) {
            (false, true) => self.watch_events(index),
            (true, false) => self.unwatch_events(index),
            // Events collected in Sampling mode are reported from now on.
            _ => self.make_events_ready(index),
        }
    }

    /// Registers an event item.
    pub(super) fn watch_events(&mut self, index: u32) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        let node = item.node;
        self.event_items.add(node, item.subscription, index);
        // Events raised before are not for this item, even if they are still in transit.
        let since = self.events.watch(self.shard, node);
        if let Some(events) = item.events_mut() {
            events.since = since;
        }
    }

    /// Unregisters an event item.
    pub(super) fn unwatch_events(&mut self, index: u32) {
        let Some(item) = self.items.get(index as usize) else { return };
        let node = item.node;
        if self.event_items.remove(node, item.subscription, index) {
            self.events.unwatch(self.shard, node);
            if self.event_items.is_empty() {
                // Events still in the ring are for no item.
                self.want_events();
            }
        }
    }

    /// Takes all events raised before the call. Only at shutdown, when a turn may take long.
    #[inline]
    pub(super) fn drain_events(&mut self, space: &AddressSpace, now: Now) {
        if self.want_events().is_some() {
            self.take_events(usize::MAX, space, now);
        }
    }

    /// Marks the events in the ring as to be taken. Returns up to which; `None` if there are none.
    #[inline]
    pub(super) fn want_events(&mut self) -> Option<u64> {
        if !self.event_items.were_used() {
            return None;
        }
        let until = self.event_items.want(self.events.len(self.shard));
        if !self.event_items.is_behind() {
            self.take_lost();
        }
        (!self.event_items.has_taken(until)).then_some(until)
    }

    /// Takes a slice of the events that are due. Returns whether more are due.
    pub(super) fn take_event_slice(&mut self, space: &AddressSpace, now: Now) -> bool {
        if self.event_items.is_behind() {
            self.take_events(ASKED_PER_SLICE, space, now);
        }
        if let Some((items, newest)) = self.event_items.next_losing(ASKED_PER_SLICE) {
            self.work.items_walked += items.len() as u64;
            for index in items {
                let item = self.items.get(index as usize);
                if item.and_then(Item::events).is_some_and(|events| events.since <= newest) {
                    self.note_lost(index);
                }
            }
        }
        self.event_items.is_behind()
    }

    /// The same, at most once per turn. Returns whether events raised before the call remain.
    pub(super) fn catch_up_events(&mut self, space: &AddressSpace, now: Now) -> Option<u64> {
        let was_behind = self.event_items.is_behind();
        let until = self.want_events()?;
        if !was_behind {
            self.take_event_slice(space, now);
        }
        (!self.event_items.has_taken(until)).then_some(until)
    }

    /// Whether the events have been taken that [`Self::catch_up_events`] left over.
    pub(crate) fn has_taken_events(&self, until: u64) -> bool {
        self.event_items.has_taken(until)
    }

    /// Takes events that are due, until `asked_max` items were visited.
    fn take_events(&mut self, asked_max: usize, space: &AddressSpace, now: Now) {
        let mut asked = 0;
        while self.event_items.is_behind() {
            if asked >= asked_max {
                return;
            }
            let (batch, left) = match self.event_items.take_begun() {
                Some(Begun { batch, items, answers, leaving }) => (batch, Some((items, answers, leaving))),
                None => (self.next_batch(), None),
            };
            if batch.is_empty() {
                self.event_items.took_all();
                break;
            }
            asked += self.deliver(batch, left, asked_max - asked, space, now);
        }
        self.take_lost();
    }

    /// If the ring overflowed, every item reports it.
    fn take_lost(&mut self) {
        if let Some(newest) = self.events.take_lost(self.shard) {
            self.event_items.lost(newest);
        }
    }

    /// The next events to take, as long as they go to the same items.
    fn next_batch(&mut self) -> Batch {
        let max = self.event_items.behind().min(BATCH_MAX);
        let mut batch = Batch::new();
        while batch.len() < max {
            let next = self.event_items.take_ahead().or_else(|| self.events.pop(self.shard));
            let Some(next) = next else { break };
            let goes_with = batch.first().is_none_or(|first| {
                first.event.notifiers() == next.event.notifiers()
                    && first.event.access() == next.event.access()
            });
            if !goes_with {
                self.event_items.keep_ahead(next);
                break;
            }
            batch.push(next);
        }
        batch
    }

    /// Offers events to the items on their nodes, or to the remaining ones. If more than `asked_max` would have to be
    /// visited, the rest is kept for the next slice. Returns the cost: items times events, plus the number of events;
    /// slow filters count several times.
    fn deliver(
        &mut self,
        batch: Batch,
        left: Option<(Vec<u32>, Answers, Leaving)>,
        asked_max: usize,
        space: &AddressSpace,
        now: Now,
    ) -> usize {
        let Self { event_items, items, subscriptions, work, .. } = self;
        let mut asked = batch.len();
        let mut rest = Vec::new();
        let (left, mut answers, mut leaving) = match left {
            Some((items, answers, leaving)) => (Some(items), answers, leaving),
            None => (None, Answers::default(), Leaving::default()),
        };
        let mut ask = |index: u32| {
            if asked >= asked_max {
                rest.push(index);
                return;
            }
            work.items_walked += batch.len() as u64;
            let shared = (&mut answers, &mut leaving);
            asked += offer(index, &batch, shared, items, subscriptions, space, now);
        };
        match left {
            // Taken from the end, so that the rest need not be moved.
            Some(mut left) => {
                let count = left.len().min(asked_max);
                left.drain(left.len() - count..).rev().for_each(&mut ask);
                rest.reverse();
                left.append(&mut rest);
                rest = left;
            }
            None => {
                if let Some(first) = batch.first() {
                    let notifiers = first.event.notifiers().iter();
                    notifiers.flat_map(|node| event_items.on(*node)).for_each(|index| ask(*index));
                }
                rest.reverse();
            }
        }
        if rest.is_empty() {
            event_items.took(batch.len());
        } else {
            event_items.begin(Begun { batch, items: rest, answers: answers.kept(), leaving });
        }
        asked
    }

    /// Events were lost on the way to an item.
    pub(super) fn note_lost(&mut self, index: u32) {
        let Self { items, subscriptions, .. } = self;
        let Some(item) = items.get_mut(index as usize) else { return };
        let place = item.subscription;
        if let Some(events) = item.events_mut() {
            events.queue.note_lost();
        }
        if let Some(Some(subscription)) = subscriptions.get_mut(place as usize) {
            subscription.counters.event_queue_overflows += 1;
            ready(index, item, subscription);
        }
    }

    /// How many events fit into an item's queue before one is lost; `None` without a queue.
    pub(super) fn event_queue_room(&self, index: u32) -> Option<usize> {
        Some(self.items.get(index as usize)?.events()?.queue.room())
    }

    /// Puts an event into an item's queue without checking the filter.
    pub(super) fn queue_event(&mut self, index: u32, event: &Arc<Event>) {
        let Self { items, subscriptions, .. } = self;
        let Some(item) = items.get_mut(index as usize) else { return };
        let Some(Some(subscription)) = subscriptions.get_mut(item.subscription as usize) else { return };
        let Some(events) = item.events_mut() else { return };
        let lost = events.queue.push(Arc::clone(event));
        subscription.counters.event_queue_overflows += u32::from(lost);
        ready(index, item, subscription);
    }

    /// A refresh begins for an item, or a condition was refreshed: updates the client's retained conditions.
    pub(super) fn note_refreshed(&mut self, index: u32, event: Option<&Event>) {
        let Some(events) = self.items.get_mut(index as usize).and_then(Item::events_mut) else { return };
        match event {
            None => events.retained.clear(),
            Some(event) => {
                // The event passes, so no condition has left.
                events.retained.has_left(&events.filter, event, true);
            }
        }
    }

    /// Restores the retained conditions of an item's client.
    pub(crate) fn restore_retained(&mut self, index: u32, keys: BTreeSet<u64>) {
        if let Some(events) = self.items.get_mut(index as usize).and_then(Item::events_mut) {
            events.retained.restore(keys);
        }
    }

    pub(super) fn make_events_ready(&mut self, index: u32) {
        let Self { items, subscriptions, .. } = self;
        let Some(item) = items.get_mut(index as usize) else { return };
        if let Some(Some(subscription)) = subscriptions.get_mut(item.subscription as usize) {
            ready(index, item, subscription);
        }
    }

    /// Deletes queued events that a client may no longer see.
    pub(super) fn authorize_events(&mut self, place: u32, decisions: &Decisions, space: &AddressSpace) {
        let Self { items, subscriptions, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return };
        for at in 0..subscription.items.len() {
            let Some(index) = subscription.items.get(at) else { break };
            if let Some(events) = items.get_mut(*index as usize).and_then(Item::events_mut)
                && !events.queue.is_empty()
            {
                let nodes = space.read();
                // The permissions of its nodes may differ from those when it was raised.
                events.queue.retain(|event| {
                    let access = nodes.event_access(event).into_iter();
                    access
                        .into_iter()
                        .all(|set| decisions.of_set(set).contains(PermissionType::RECEIVE_EVENTS))
                });
                let index = *index;
                if let Some(item) = items.get_mut(index as usize) {
                    note(index, item, subscription);
                }
            }
        }
    }

    // ---- moving

    /// An item ends or leaves the engine: releases its shared filter.
    pub(super) fn release_filter(&mut self, index: u32) {
        let Self { items, filters, .. } = self;
        let events = items.get(index as usize).and_then(|item| item.ext.as_ref()?.events.as_ref());
        if let Some(events) = events {
            filters.release(&events.filter);
        }
    }

    /// Number of different event filters of the items.
    #[cfg(test)]
    pub(crate) fn filter_count(&self) -> usize {
        self.filters.len()
    }

    /// An item leaves for another shard's engine.
    pub(super) fn depart_events(&mut self, index: u32) {
        self.release_filter(index);
        let has_left = self.events.len(self.shard) > 0 || self.event_items.is_behind();
        let Some(item) = self.items.get_mut(index as usize) else { return };
        let is_watching = item.has(flag::ENABLED);
        if let Some(events) = item.events_mut().filter(|_| is_watching) {
            events.departed = Some(self.events.depart(has_left));
        }
    }

    /// An item has arrived from another shard's engine. It may have missed events in the meantime.
    pub(super) fn arrive_events(&mut self, index: u32) {
        let Self { items, filters, .. } = self;
        let Some(item) = items.get_mut(index as usize) else { return };
        let Some(events) = item.events_mut() else { return };
        events.filter = filters.share(Arc::clone(&events.filter));
        if let Some(departed) = events.departed.take() {
            if departed.has_missed() {
                self.note_lost(index);
            }
        }
        self.make_events_ready(index);
    }
}

/// Queues the events that an item wants. Returns the cost, in items offered one event.
fn offer(
    index: u32,
    batch: &Batch,
    (answers, leaving): (&mut Answers, &mut Leaving),
    items: &mut [Item],
    subscriptions: &mut [Option<Box<Subscription>>],
    space: &AddressSpace,
    now: Now,
) -> usize {
    let Some(first) = batch.first() else { return 1 };
    let Some(item) = items.get_mut(index as usize) else { return 1 };
    let Some(Some(subscription)) = subscriptions.get_mut(item.subscription as usize) else { return 1 };
    // An item kept for the next slice may have been deleted since. All events of the batch have the same permissions.
    if item.has(flag::DENIED) || !item.has(flag::ENABLED) || !may_see(&subscription.decisions, &first.event) {
        return 1;
    }
    let Some(events) = item.events_mut() else { return 1 };
    let around = EventSurroundings::new(space, &subscription.decisions, now);
    let (mut is_wanted, mut lost, mut cost) = (false, 0, batch.len());
    if Answers::are_shared(&events.filter) && events.has_only_current_filter(first.number) {
        let EventItem { filter, retained, queue, .. } = events;
        let (answer, took) = answers.about(filter, batch, &around);
        cost = took + batch.len().div_ceil(TAKEN_PER_ASKED);
        for (at, (handed, passing)) in batch.iter().zip(&answer.passing).enumerate() {
            if let Some(written) = passing {
                is_wanted = true;
                lost += u32::from(queue.push_written(&answer.written, *written));
            }
            if retained.has_left(filter, &handed.event, passing.is_some()) {
                is_wanted = true;
                lost += u32::from(queue.push(leaving.of(at, &handed.event)));
            }
        }
    } else {
        for (at, handed) in batch.iter().enumerate() {
            let passes = events.wants(handed.number, &handed.event, &around);
            let has_left = events.retained.has_left(&events.filter, &handed.event, passes);
            let left = has_left.then(|| leaving.of(at, &handed.event));
            for event in passes.then(|| Arc::clone(&handed.event)).into_iter().chain(left) {
                is_wanted = true;
                lost += u32::from(events.queue.push(event));
            }
        }
    }
    cost += around.followed() / FOLLOWED_PER_ASKED;
    subscription.counters.event_queue_overflows += lost;
    if is_wanted {
        ready(index, item, subscription);
    }
    cost
}

/// Whether a client may see an event: ReceiveEvents on its type and on its source (Part 3 §8.55).
pub(super) fn may_see(decisions: &Decisions, event: &Event) -> bool {
    event.access().into_iter().all(|set| decisions.of_set(set).contains(PermissionType::RECEIVE_EVENTS))
}

/// Puts an item with events into its subscription's list if it should report them.
fn ready(index: u32, item: &mut Item, subscription: &mut Subscription) {
    note(index, item, subscription);
    let wanted = item.has(flag::REPORTING | flag::TRIGGERED) || item.has_links();
    let has_events = item.events().is_some_and(|events| !events.queue.is_empty());
    if wanted && has_events && !item.has(flag::READY) {
        item.flags |= flag::READY;
        subscription.ready_events.push_back(index);
    }
}

/// A triggering item has fired: an item in Sampling mode reports its queue (Part 4 §5.13.1.6).
pub(super) fn trigger(index: u32, place: u32, item: &mut Item, subscription: &mut Subscription) {
    if item.subscription == place && item.has(flag::ENABLED) && !item.has(flag::REPORTING) {
        item.flags |= flag::TRIGGERED;
        ready(index, item, subscription);
        if !item.has(flag::READY) {
            item.flags &= !flag::TRIGGERED;
        }
    }
}

fn is_ready(item: &Item, place: u32) -> bool {
    item.flags & (flag::READY | flag::ALIVE | flag::EVENTS) == flag::READY | flag::ALIVE | flag::EVENTS
        && item.subscription == place
}

/// Whether at least one event would be sent. Drops entries without events on the way.
pub(super) fn has_events(
    place: u32,
    items: &mut [Item],
    subscription: &mut Subscription,
    links: &mut Following,
) -> bool {
    while let Some(index) = subscription.ready_events.front().copied() {
        if let Some(item) = items.get_mut(index as usize).filter(|item| is_ready(item, place)) {
            let has_events = item.events().is_some_and(|events| !events.queue.is_empty());
            if has_events && item.has(flag::REPORTING | flag::TRIGGERED) {
                return true;
            }
            if has_events && links.are_enough() && item.has_links() {
                return false;
            }
            item.flags &= !(flag::READY | flag::TRIGGERED);
            if has_events {
                // In Sampling mode it only fires the items that it triggers.
                fire_links(index, place, items, subscription, links);
            }
        }
        subscription.ready_events.pop_front();
    }
    false
}

/// Appends an EventNotificationList (Part 4 §7.25.3) with at most `count_max` events, up to a total weight of
/// `weight_max`. Returns their number and their [`weight`].
#[allow(clippy::too_many_arguments)] // parts of the engine that are borrowed one by one
pub(super) fn encode_events(
    out: &mut Vec<u8>,
    place: u32,
    items: &mut [Item],
    subscription: &mut Subscription,
    (count_max, weight_max): (u32, u32),
    len_max: usize,
    bus: &EventBus,
    now: Now,
    links: &mut Following,
) -> (u32, u32) {
    let count_at = out.len();
    encode_len(0, out);
    let mut room = Room { count: count_max, weight: weight_max, len_max };
    while room.has_some(out) && !links.are_enough() && has_events(place, items, subscription, links) {
        let Some(index) = subscription.ready_events.front().copied() else { break };
        let Some(item) = items.get_mut(index as usize) else { break };
        note(index, item, subscription);
        let client_handle = item.client_handle;
        let Some(events) = item.events_mut() else { break };
        let overflow = || Event::overflow(bus.next_event_id(), now.utc);
        events.queue.encode(client_handle, &events.filter, &mut room, out, overflow);
        if events.queue.is_empty() {
            item.flags &= !(flag::READY | flag::TRIGGERED);
            subscription.ready_events.pop_front();
            if item.has_links() {
                fire_links(index, place, items, subscription, links);
            }
        } else {
            // The message is full: next time another item is first.
            subscription.ready_events.rotate_left(1);
        }
    }
    let count = count_max - room.count;
    if let Some(gap) = out.get_mut(count_at..count_at + 4) {
        gap.copy_from_slice(&count.to_le_bytes());
    }
    (count, weight_max - room.weight)
}
