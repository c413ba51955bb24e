//! Creating, modifying and deleting subscriptions and items, for the services.

use super::aggregate_item::AggregateSpec;
use super::filter::Filter;
use super::item::{Item, ItemExt, NONE, flag};
use super::journal::Answer;
use super::notifications::sweep;
use super::phase::Phase;
use super::publish::{PublishQueue, Responder, Ticket};
#[cfg(test)]
use super::state::State;
use super::subscription::{Kept, Parameters, Subscription};
use super::timer::Due;
use super::{Engine, SessionKey};
use crate::account::{Account, Exhausted};
use crate::authorization::{Decisions, Denial};
use crate::headroom::Share;
use crate::now::Now;
use crate::space::view::attribute;
use crate::space::{AddressSpace, NodeIx};
use std::sync::Arc;
use taktwerk_schema::MonitoringMode;
use taktwerk_slots::SlotHandle;
use taktwerk_types::time::nanos_from_millis;
use taktwerk_types::{NumericRange, StatusCode, TimestampsToReturn};

/// A checked MonitoredItem: the service's data about the node and the request.
#[derive(Debug)]
pub(crate) struct ItemSpec {
    pub(crate) node: NodeIx,
    pub(crate) attribute_id: u32,
    /// The slot of the Value attribute, if the value has one.
    pub(crate) slot: Option<SlotHandle>,
    /// Whether the value must be read at each sampling.
    pub(crate) is_polled: bool,
    /// Why the client must not see values.
    pub(crate) denial: Denial,
    pub(crate) mode: MonitoringMode,
    pub(crate) client_handle: u32,
    pub(crate) timestamps: TimestampsToReturn,
    pub(crate) index_range: Option<NumericRange>,
    pub(crate) settings: Settings,
}

/// Settings that a client can modify later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// In ms; negative means the publishing interval, 0 every change.
    pub(crate) sampling_interval: f64,
    /// The variable's MinimumSamplingInterval, in ms.
    pub(crate) minimum_sampling_interval: f64,
    pub(crate) queue_size: u32,
    pub(crate) discard_oldest: bool,
    pub(crate) filter: Filter,
    /// An AggregateFilter, which replaces the other filter.
    pub(crate) aggregate: Option<AggregateSpec>,
}

/// The revised values for the client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Revised {
    pub(crate) item_id: u32,
    /// In ms.
    pub(crate) sampling_interval: f64,
    pub(crate) queue_size: u32,
}

impl Engine {
    pub(super) fn queue_mut(&mut self, session: SessionKey) -> &mut PublishQueue {
        let at = session.0 as usize;
        if self.queues.len() <= at {
            self.queues.resize_with(at + 1, || None);
        }
        self.queues[at].get_or_insert_with(|| Box::new(PublishQueue::new(&self.account)))
    }

    /// A session begins: its data are charged to its account.
    pub(crate) fn open_session(&mut self, session: SessionKey, account: &Arc<Account>) {
        *self.queue_mut(session) = PublishQueue::new(account);
    }

    pub(super) fn refresh_pages(&mut self) {
        let known = self.pages.len();
        let fresh = self.store.page_count();
        if fresh > known {
            self.pages.extend(self.store.pages_from(known));
        }
    }

    /// Finds a session's subscription.
    ///
    /// # Errors
    /// Bad_SubscriptionIdInvalid if it does not exist or belongs to another session.
    pub(crate) fn find(&self, session: SessionKey, id: u32) -> Result<u32, StatusCode> {
        let invalid = StatusCode::BAD_SUBSCRIPTION_ID_INVALID;
        let place = *self.by_id.get(&id).ok_or(invalid)?;
        let subscription = self.subscription(place).ok_or(invalid)?;
        if subscription.session == Some(session) { Ok(place) } else { Err(invalid) }
    }

    /// Finds a subscription of any session.
    pub(crate) fn find_any(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// Number of waiting Publish requests of a session.
    pub(crate) fn publish_request_count(&self, session: SessionKey) -> usize {
        self.queues.get(session.0 as usize).and_then(Option::as_ref).map_or(0, |queue| queue.requests.len())
    }

    /// A session's subscriptions.
    pub(crate) fn session_subscriptions(&self, session: SessionKey) -> impl Iterator<Item = &Subscription> {
        let places = self.queues.get(session.0 as usize).and_then(Option::as_ref);
        places
            .into_iter()
            .flat_map(|queue| &queue.subscriptions)
            .filter_map(|place| self.subscription(*place))
    }

    /// Number of subscriptions of a session.
    pub(crate) fn session_subscription_count(&self, session: SessionKey) -> usize {
        self.queues
            .get(session.0 as usize)
            .and_then(Option::as_ref)
            .map_or(0, |queue| queue.subscriptions.len())
    }

    // ---- subscriptions

    /// Rows 1 to 3 of the state table. Returns the position; parameters must be revised.
    pub(crate) fn create_subscription(
        &mut self,
        session: SessionKey,
        parameters: Parameters,
        publishing_enabled: bool,
        decisions: Arc<Decisions>,
        now: Now,
    ) -> Result<u32, StatusCode> {
        if self.session_subscription_count(session) >= self.limits.subscriptions_per_session_max as usize {
            return Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
        }
        let kept = Kept::new(self.queue_mut(session).account()).map_err(Exhausted::status)?;
        let id = self.take_id();
        let interval = nanos_from_millis(parameters.publishing_interval);
        let phase = Phase::new(now.instant, interval, &mut self.phases);
        let first = phase.first();
        let mut subscription =
            Box::new(Subscription::new(id, session, parameters, publishing_enabled, decisions, phase, kept));
        subscription.share = self.headroom.as_ref().map(|headroom| Box::new(Share::new(headroom)));
        let place = self.insert_subscription(subscription);
        let queue = self.queue_mut(session);
        queue.subscriptions.push(place);
        queue.measure();
        self.timers.push(first, Due::Publish(place));
        Ok(place)
    }

    pub(super) fn insert_subscription(&mut self, subscription: Box<Subscription>) -> u32 {
        let id = subscription.id;
        let place = match self.free_subscriptions.pop() {
            Some(place) => {
                if let Some(entry) = self.subscriptions.get_mut(place as usize) {
                    *entry = Some(subscription);
                }
                place
            }
            None => {
                self.subscriptions.push(Some(subscription));
                u32::try_from(self.subscriptions.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.by_id.insert(id, place);
        place
    }

    fn take_id(&mut self) -> u32 {
        let step = u32::try_from(self.store.shards()).unwrap_or(1);
        loop {
            let id = self.next_id;
            self.next_id = id.checked_add(step).unwrap_or(1 + self.shard as u32);
            if !self.by_id.contains_key(&id) && self.locations.moved_to(id).is_none() {
                return id;
            }
        }
    }

    /// Row 18. Parameters must be revised.
    pub(crate) fn modify_subscription(&mut self, place: u32, parameters: Parameters, now: Now) {
        let Some(subscription) = self.subscription_mut(place) else { return };
        subscription.counters.modify += 1;
        let interval = nanos_from_millis(parameters.publishing_interval);
        if let Some(journal) = &mut subscription.journal {
            journal.header_changed = true;
        }
        let changed = interval != subscription.interval;
        subscription.parameters = parameters;
        subscription.interval = interval;
        subscription.reset_lifetime();
        subscription.reset_keep_alive();
        if changed {
            self.sum_demand(place);
            let phase = Phase::new(now.instant, interval, &mut self.phases);
            let first = phase.first();
            if let Some(subscription) = self.subscription_mut(place) {
                (subscription.next_publish, subscription.phase) = (first, phase);
            }
            self.timers.push(first, Due::Publish(place));
            self.regroup_items(place, now);
            self.forget_stale_timers();
        }
    }

    /// Row 19.
    pub(crate) fn set_publishing_mode(&mut self, place: u32, enabled: bool) {
        let Some(subscription) = self.subscription_mut(place) else { return };
        if enabled {
            subscription.counters.enable += 1;
        } else {
            subscription.counters.disable += 1;
        }
        subscription.publishing_enabled = enabled;
        if let Some(journal) = &mut subscription.journal {
            journal.header_changed = true;
        }
        subscription.demand();
        subscription.more_notifications = false;
        subscription.reset_lifetime();
    }

    /// Any other service request for a subscription keeps it alive.
    pub(crate) fn touch(&mut self, place: u32) {
        if let Some(subscription) = self.subscription_mut(place) {
            subscription.reset_lifetime();
        }
    }

    /// Row 25: deletes a subscription with its items.
    pub(crate) fn delete_subscription(&mut self, place: u32, responder: &mut dyn Responder) {
        let session = self.subscription(place).and_then(|subscription| subscription.session);
        self.remove(place, responder);
        if let Some(session) = session {
            self.refuse_if_unused(session, responder);
        }
    }

    /// Part 4 §5.14.8: without subscriptions, Publish requests cannot be answered.
    pub(super) fn refuse_if_unused(&mut self, session: SessionKey, responder: &mut dyn Responder) {
        if self.session_subscription_count(session) == 0 {
            self.refuse_requests(session, StatusCode::BAD_NO_SUBSCRIPTION, responder);
        }
    }

    /// Removes deadlines of subscriptions and sampling groups that are gone or have another deadline now.
    pub(super) fn forget_stale_timers(&mut self) {
        let Self { timers, subscriptions, groups, by_id, .. } = self;
        timers.retain(by_id.len() + groups.count(), |at, due| match due {
            Due::Group(group) => groups.get(group).is_some_and(|group| group.armed && group.next == at),
            Due::Publish(place) => {
                let subscription = subscriptions.get(place as usize).and_then(Option::as_ref);
                subscription.is_some_and(|subscription| subscription.next_publish == at)
            }
        });
    }

    /// Number of deadlines that are kept.
    #[cfg(test)]
    pub(crate) fn deadlines(&self) -> usize {
        self.timers.len()
    }

    pub(super) fn remove(&mut self, place: u32, responder: &mut dyn Responder) {
        self.forget_stale_timers();
        self.release_held(place, responder);
        let Some(mut subscription) = self.subscriptions.get_mut(place as usize).and_then(Option::take) else {
            return;
        };
        for index in core::mem::take(&mut subscription.items) {
            self.forget_item(index);
        }
        subscription.retransmission.clear(&mut self.pool);
        if let Some(journal) = &subscription.journal {
            self.durable_gone(place, subscription.id, journal);
        }
        self.by_id.remove(&subscription.id);
        self.locations.forget(subscription.id, self.shard);
        self.free_subscriptions.push(place);
        if let Some(session) = subscription.session {
            self.queue_mut(session).subscriptions.retain(|other| *other != place);
        }
    }

    /// Stores a StatusChangeNotification until the session's next Publish request. Beyond the limit, the oldest is
    /// dropped.
    pub(super) fn push_status_change(&mut self, session: SessionKey, status_change: (u32, u32, StatusCode)) {
        let max = (self.limits.subscriptions_per_session_max as usize).max(1);
        let status_changes = &mut self.queue_mut(session).status_changes;
        if status_changes.len() >= max {
            status_changes.pop_front();
        }
        status_changes.push_back(status_change);
        self.queue_mut(session).measure();
    }

    /// Row 27: the lifetime has expired.
    pub(super) fn expire(&mut self, place: u32, responder: &mut dyn Responder) {
        let Some(subscription) = self.subscription(place) else { return };
        let status_change = (subscription.id, subscription.next_sequence_number, StatusCode::BAD_TIMEOUT);
        let session = subscription.session;
        self.remove(place, responder);
        if let Some(session) = session {
            self.push_status_change(session, status_change);
            self.refuse_if_unused(session, responder);
        }
    }

    /// A session ends: its subscriptions are deleted, or wait for a transfer until their lifetime expires.
    pub(crate) fn close_session(&mut self, session: SessionKey, delete: bool, responder: &mut dyn Responder) {
        self.refuse_requests(session, StatusCode::BAD_SESSION_CLOSED, responder);
        let Some(queue) = self.queues.get_mut(session.0 as usize).and_then(Option::take) else { return };
        for place in queue.subscriptions {
            if delete && !self.keeps(place) {
                self.remove(place, responder);
            } else if let Some(subscription) = self.subscription_mut(place) {
                subscription.session = None;
                if subscription.journal.is_none() {
                    subscription.kept.account().move_up();
                }
            }
        }
    }

    /// Acknowledges a message (Part 4 §5.14.5): the result for the Publish response.
    pub(crate) fn acknowledge(&mut self, session: SessionKey, id: u32, sequence_number: u32) -> StatusCode {
        let Ok(place) = self.find(session, id) else { return StatusCode::BAD_SUBSCRIPTION_ID_INVALID };
        let Self { subscriptions, pool, .. } = self;
        let known = subscriptions
            .get_mut(place as usize)
            .and_then(Option::as_mut)
            .is_some_and(|subscription| subscription.retransmission.acknowledge(sequence_number, pool));
        if known { StatusCode::GOOD } else { StatusCode::BAD_SEQUENCE_NUMBER_UNKNOWN }
    }

    /// The encoded message for Republish (rows 20 and 21). `None`: it must be written first, and `ticket` is answered
    /// then.
    ///
    /// # Errors
    /// Bad_MessageNotAvailable if it was never sent, was acknowledged, or was dropped for newer ones.
    /// Bad_TooManyOperations if too many requests wait.
    pub(crate) fn republish(
        &mut self,
        place: u32,
        sequence_number: u32,
        ticket: impl FnOnce() -> Ticket,
    ) -> Result<Option<&[u8]>, StatusCode> {
        let none = StatusCode::BAD_MESSAGE_NOT_AVAILABLE;
        let subscription = self.subscription_mut(place).ok_or(none)?;
        subscription.reset_lifetime();
        subscription.counters.republish_requests += 1;
        let found = subscription.retransmission.find(sequence_number).is_some();
        subscription.counters.republished += u32::from(found);
        if found && self.must_be_written(place, sequence_number) {
            if self.holds_all(place) {
                return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
            }
            self.hold(place, ticket(), Answer::Republish(sequence_number));
            return Ok(None);
        }
        let subscription = self.subscription(place).ok_or(none)?;
        subscription.retransmission.find(sequence_number).map(Some).ok_or(none)
    }

    // ---- items

    /// Adds an item.
    pub(crate) fn create_item(
        &mut self,
        place: u32,
        spec: ItemSpec,
        now: Now,
        space: &AddressSpace,
    ) -> Result<Revised, StatusCode> {
        let per_subscription = self.limits.monitored_items_per_subscription_max as usize;
        let subscription = self.subscription_mut(place).ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        if subscription.items.len() >= per_subscription {
            return Err(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
        }
        let is_polled = spec.is_polled || spec.slot.is_none();
        if spec.mode != MonitoringMode::DISABLED {
            self.admit_new_item(place, &spec.settings, is_polled)?;
        }
        let subscription = self.subscription_mut(place).ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        let ext = if is_polled || spec.index_range.is_some() {
            let mut ext = Box::new(ItemExt::new(subscription.kept.account()));
            ext.polled = is_polled.then_some(spec.attribute_id);
            ext.set_index_range(spec.index_range).map_err(Exhausted::status)?;
            Some(ext)
        } else {
            None
        };
        subscription.kept.resize(subscription.items.len() + 1).map_err(Exhausted::status)?;
        let position = u32::try_from(subscription.items.len()).unwrap_or(NONE);
        let slot = spec.slot.map(|slot| slot.share());
        let mut item = Item::new(place, spec.client_handle, slot, spec.node);
        item.timestamps = spec.timestamps;
        item.position = position;
        item.deny(spec.denial);
        item.ext = ext;
        let index = self.insert_item(item);
        if let Some(subscription) = self.subscription_mut(place) {
            subscription.items.push(index);
            if let Some(ids) = &mut subscription.ids {
                ids.create(index);
            }
        }
        self.refresh_pages();
        let revised = self.apply_settings(index, spec.settings, now);
        self.set_mode(index, spec.mode, now, space);
        Ok(revised)
    }

    /// Finds an item of a subscription.
    ///
    /// # Errors
    /// Bad_MonitoredItemIdInvalid.
    pub(crate) fn find_item(&self, place: u32, item_id: u32) -> Result<u32, StatusCode> {
        let invalid = StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
        let index = match self.subscription(place).and_then(|subscription| subscription.ids.as_ref()) {
            None => item_id.checked_sub(1),
            Some(ids) => ids.find(item_id),
        };
        let index = index.ok_or(invalid)?;
        let item = self.items.get(index as usize).ok_or(invalid)?;
        if item.has(flag::ALIVE) && item.subscription == place { Ok(index) } else { Err(invalid) }
    }

    /// The node and attribute that an item monitors.
    pub(crate) fn item_target(&self, index: u32) -> Option<(NodeIx, u32)> {
        let item = self.items.get(index as usize)?;
        let attribute_id = item.ext.as_ref().and_then(|ext| ext.polled).unwrap_or(attribute::VALUE);
        Some((item.node, attribute_id))
    }

    /// SetMonitoringMode (Part 4 §5.13.4).
    pub(crate) fn set_mode(&mut self, index: u32, mode: MonitoringMode, now: Now, space: &AddressSpace) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        if item.has(flag::EVENTS) {
            return self.set_event_mode(index, mode);
        }
        let was_enabled = item.has(flag::ENABLED);
        let enabled = mode != MonitoringMode::DISABLED;
        let place = item.subscription;
        item.set(flag::REPORTING, mode == MonitoringMode::REPORTING);
        if was_enabled == enabled {
            if enabled {
                // Values collected in Sampling mode are reported from now on.
                let waits = item.has(flag::DIRTY | flag::FORCED) && !item.waits_for_first()
                    || item.ext.as_ref().is_some_and(|ext| !ext.values.is_empty());
                if waits {
                    self.after_enqueue(index, false);
                }
            }
            return;
        }
        let before = self.values_of(index);
        if let Some(subscription) = self.subscription_mut(place) {
            subscription.enabled_items = if enabled {
                subscription.enabled_items + 1
            } else {
                subscription.enabled_items.saturating_sub(1)
            };
        }
        if enabled {
            if let Some(item) = self.items.get_mut(index as usize) {
                item.flags |= flag::ENABLED | flag::FORCED | flag::DIRTY;
            }
            self.update_demand(index, before);
            self.start_watching(index);
            self.join_group(index, now, false);
            self.first_sample(index, now, space);
        } else {
            // Part 4 §5.13.1.3: disabling deletes the queue.
            self.leave_group(index);
            self.stop_watching(index);
            if let Some(item) = self.items.get_mut(index as usize) {
                item.flags &= !(flag::ENABLED | flag::DIRTY | flag::READY | flag::TRIGGERED);
                if let Some(ext) = &mut item.ext {
                    ext.values.clear();
                }
                let place = item.subscription;
                if let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) {
                    super::durable::note(index, item, subscription);
                    sweep(place, &mut self.items, subscription);
                }
            }
            self.update_demand(index, before);
        }
    }

    /// The value at creation or enabling is always the first one reported. If its source needs time to answer, this
    /// report waits for the answer: the slot's present value is from the previous request.
    fn first_sample(&mut self, index: u32, now: Now, space: &AddressSpace) {
        self.fetch(index, now, space);
        self.report_first(index);
    }

    /// Reports the value in an item's slot, unless its source is being read.
    pub(super) fn report_first(&mut self, index: u32) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        if item.slot.is_none() || item.waits_for_first() {
            return;
        }
        if item.is_queued() {
            self.sample_now(index);
        } else {
            self.after_enqueue(index, false);
        }
    }

    /// DeleteMonitoredItems (Part 4 §5.13.6). Returns how many other items were searched for links to this one.
    pub(crate) fn delete_item(&mut self, index: u32) -> usize {
        let Some(item) = self.items.get(index as usize) else { return 0 };
        let (place, position) = (item.subscription, item.position as usize);
        let was_enabled = item.has(flag::ENABLED);
        let values = self.values_of(index);
        let mut moved = None;
        if let Some(subscription) = self.subscription_mut(place) {
            subscription.enabled_items = subscription.enabled_items.saturating_sub(u32::from(was_enabled));
            subscription.replace_values(values, 0);
            subscription.has_lost_items |= !subscription.retransmission.is_empty();
            if position < subscription.items.len() {
                subscription.items.swap_remove(position);
                if let Some(ids) = &mut subscription.ids {
                    ids.swap_remove(position);
                }
                moved = subscription.items.get(position).copied();
                subscription.items.shrink_to(2 * subscription.items.len());
            }
            let left = subscription.items.len();
            subscription.kept.shrink(left);
        }
        if let Some(other) = moved.and_then(|other| self.items.get_mut(other as usize)) {
            other.position = u32::try_from(position).unwrap_or(NONE);
        }
        self.forget_item(index);
        // No link may trigger the next item that gets this index.
        let Self { subscriptions, items, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return 0 };
        sweep(place, items, subscription);
        if !subscription.has_links {
            return 0;
        }
        for other in &subscription.items {
            if let Some(ext) = items.get_mut(*other as usize).and_then(|item| item.ext.as_mut()) {
                ext.links.retain(|linked| *linked != index);
            }
        }
        subscription.items.len()
    }

    fn forget_item(&mut self, index: u32) {
        self.forget_stale_timers();
        self.leave_group(index);
        if self.items.get(index as usize).is_some_and(|item| item.has(flag::ENABLED)) {
            self.stop_watching(index);
        }
        self.release_filter(index);
        if let Some(item) = self.items.get_mut(index as usize) {
            item.flags = 0;
            item.ext = None;
            self.groups.leave(item.group);
            if let Some(slot) = item.slot.take() {
                self.store.release(slot);
            }
            self.free_item_index(index);
        }
    }

    /// Whether a subscription waits for a Publish request.
    #[cfg(test)]
    pub(crate) fn is_late(&self, place: u32) -> bool {
        self.subscription(place).is_some_and(|subscription| subscription.state == State::Late)
    }
}

pub(super) fn id_of(subscription: &Subscription, item: &Item, index: u32) -> u32 {
    let moved = subscription.ids.as_ref().and_then(|ids| ids.at(item.position as usize));
    moved.unwrap_or(item_id(index))
}

/// The id of an item for clients, as long as it stays on the shard where it was created.
pub(crate) const fn item_id(index: u32) -> u32 {
    index + 1
}
