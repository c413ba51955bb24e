//! Subscriptions that move to another session, and to another shard's engine (design §6, Part 4 §5.14.7).
//!
//! A subscription moves as an owned value with its complete state: parameters, phase and sequence numbers, messages for
//! Republish, and items with their queues and last reported values. So nothing is watched during the move: on arrival
//! each item is compared with its variable. One write in the meantime is a change; several set the Overflow bit of
//! items that want every write.

use super::item::{Item, ItemExt, NONE, flag};
use super::item_ids::ItemIds;
use super::manage::item_id;
use super::publish::Responder;
use super::subscription::Subscription;
use super::timer::Due;
use super::{Engine, SessionKey};
use crate::now::Now;
use crate::space::NodeIx;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_types::StatusCode;

/// A subscription between two engines. It has no session.
#[derive(Debug)]
pub(crate) struct MovedSubscription {
    subscription: Box<Subscription>,
    /// In the order of the subscription's list.
    items: Vec<MovedItem>,
    /// Positions of the items that may have something to report, in order of arrival.
    ready: Vec<usize>,
}

impl MovedSubscription {
    pub(crate) fn id(&self) -> u32 {
        self.subscription.id
    }
}

/// An item between two engines. Its links are positions in its subscription's list.
#[derive(Debug)]
struct MovedItem {
    id: u32,
    item: Item,
    /// The interval of its rate group in ns, if it has one.
    interval: Option<u64>,
}

impl Subscription {
    /// The notification for the session that loses it: id, sequence number, status.
    fn status_change(&self) -> (u32, u32, StatusCode) {
        (self.id, self.next_sequence_number, StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED)
    }
}

impl Engine {
    /// Row 23: moves a subscription to another session of this shard. Returns the sequence numbers available for
    /// Republish.
    pub(crate) fn transfer(
        &mut self,
        place: u32,
        to: SessionKey,
        send_initial_values: bool,
        same_client: bool,
        now: Now,
        responder: &mut dyn Responder,
    ) -> Vec<u32> {
        self.count_transfer(place, same_client);
        self.release_held(place, responder);
        let Some(subscription) = self.subscription_mut(place) else { return Vec::new() };
        let from = subscription.session.replace(to);
        let status_change = subscription.status_change();
        let (account, is_durable) = (Arc::clone(subscription.kept.account()), subscription.journal.is_some());
        if !is_durable {
            account.move_to(self.queue_mut(to).account());
        }
        self.give_to(to, place, status_change.0);
        if let Some(from) = from {
            self.tell_transferred(from, place, status_change, now, responder);
        }
        if send_initial_values {
            self.resend_data(place);
        }
        self.available(place)
    }

    /// Counts a transfer to another session.
    pub(crate) fn count_transfer(&mut self, place: u32, same_client: bool) {
        let Some(subscription) = self.subscription_mut(place) else { return };
        subscription.reset_lifetime();
        subscription.counters.transfer_requests += 1;
        if same_client {
            subscription.counters.transferred_to_same_client += 1;
        } else {
            subscription.counters.transferred_to_alt_client += 1;
        }
    }

    /// The sequence numbers available for Republish.
    pub(crate) fn available(&self, place: u32) -> Vec<u32> {
        let subscription = self.subscription(place);
        subscription.map_or_else(Vec::new, |it| it.available().collect())
    }

    /// Removes a subscription for another engine. Its session is notified as after every transfer.
    pub(crate) fn export(
        &mut self,
        place: u32,
        to: usize,
        now: Now,
        responder: &mut dyn Responder,
    ) -> Option<MovedSubscription> {
        // Earlier writes must be processed by this engine: values in its ring would not find their item.
        self.refresh_pages();
        self.drain_changes(now.instant);
        self.abandon_refreshes(place);
        self.release_held(place, responder);
        let mut subscription = self.subscriptions.get_mut(place as usize).and_then(Option::take)?;
        self.by_id.remove(&subscription.id);
        self.free_subscriptions.push(place);
        if let Some(journal) = &mut subscription.journal {
            self.durable_leaves(place, subscription.id, journal);
        } else {
            // It is no longer charged to its session, but to the address until it has arrived.
            subscription.kept.account().move_up();
        }
        // Before other shards can ask where it is.
        self.locations.depart(subscription.id, to);
        if let Some(from) = subscription.session.take() {
            self.tell_transferred(from, place, subscription.status_change(), now, responder);
        }
        let ready = subscription
            .ready
            .iter()
            .filter_map(|index| self.items.get(*index as usize))
            .filter(|item| item.subscription == place && item.has(flag::ALIVE) && item.has(flag::READY))
            .map(|item| item.position as usize)
            .collect();
        subscription.ready = VecDeque::new();
        subscription.ready_events = VecDeque::new();
        subscription.aggregates = Vec::new();
        let indexes = core::mem::take(&mut subscription.items);
        let ids = subscription.ids.take();
        // Links use item indexes, which are not valid in another engine. They are converted while their targets are
        // still here.
        if subscription.has_links {
            for index in &indexes {
                self.links_to_positions(*index);
            }
        }
        let items = indexes
            .into_iter()
            .enumerate()
            .filter_map(|(position, index)| {
                let id = ids.as_ref().and_then(|ids| ids.at(position)).unwrap_or(item_id(index));
                self.export_item(index, id)
            })
            .collect();
        Some(MovedSubscription { subscription, items, ready })
    }

    fn give_to(&mut self, session: SessionKey, place: u32, id: u32) {
        let queue = self.queue_mut(session);
        queue.subscriptions.push(place);
        // A session that gets it back need not be notified that it was transferred.
        queue.status_changes.retain(|(other, ..)| *other != id);
    }

    /// Notifies the previous session that the subscription was transferred.
    fn tell_transferred(
        &mut self,
        from: SessionKey,
        place: u32,
        status_change: (u32, u32, StatusCode),
        now: Now,
        responder: &mut dyn Responder,
    ) {
        self.queue_mut(from).subscriptions.retain(|other| *other != place);
        self.push_status_change(from, status_change);
        self.send_status_changes(from, now, responder);
        self.refuse_if_unused(from, responder);
    }

    fn links_to_positions(&mut self, index: u32) {
        let Some(ext) = self.items.get_mut(index as usize).and_then(|item| item.ext.as_mut()) else { return };
        let mut links = core::mem::take(&mut ext.links);
        for link in &mut links {
            *link = self.items.get(*link as usize).map_or(NONE, |item| item.position);
        }
        if let Some(ext) = self.items.get_mut(index as usize).and_then(|item| item.ext.as_mut()) {
            ext.links = links;
        }
    }

    fn export_item(&mut self, index: u32, id: u32) -> Option<MovedItem> {
        let group = self.items.get(index as usize)?.group;
        let interval = self.groups.get(group).map(|group| group.interval);
        self.leave_group(index);
        self.depart_events(index);
        if self.items.get(index as usize).is_some_and(|item| item.has(flag::ENABLED)) {
            self.stop_watching(index);
        }
        let mut gone = Item::new(NONE, 0, None, NodeIx::ns0(0));
        gone.flags = 0;
        let mut item = core::mem::replace(self.items.get_mut(index as usize)?, gone);
        self.groups.leave(group);
        self.free_item_index(index);
        // A source read in progress answers to this engine; the other engine reads again.
        item.flags &= !(flag::READY | flag::PENDING | flag::NOTED);
        if let Some(ext) = &mut item.ext {
            ext.sampling = 0;
        }
        Some(MovedItem { id, item, interval })
    }

    /// Adds a moved subscription, with or without a session. Returns its position.
    pub(crate) fn import(&mut self, moved: MovedSubscription, session: Option<SessionKey>, now: Now) -> u32 {
        let MovedSubscription { mut subscription, items, ready } = moved;
        subscription.session = session;
        subscription.served = self.served;
        let (id, next_publish) = (subscription.id, subscription.next_publish);
        let has_links = subscription.has_links;
        let (account, is_durable) = (Arc::clone(subscription.kept.account()), subscription.journal.is_some());
        let place = self.insert_subscription(subscription);
        self.locations.arrive(id, self.shard);
        if let Some(session) = session {
            if !is_durable {
                account.move_to(self.queue_mut(session).account());
            }
            self.give_to(session, place, id);
        }
        // The phase stays; a cycle missed during the move runs at once.
        self.timers.push(next_publish, Due::Publish(place));
        self.refresh_pages();
        let mut ids = ItemIds::default();
        let mut indexes = Vec::with_capacity(items.len());
        for MovedItem { id, item, interval } in items {
            let index = self.insert_moved_item(item, interval, place, indexes.len());
            ids.push(id, index);
            indexes.push(index);
        }
        if has_links {
            for index in &indexes {
                self.links_to_indexes(*index, &indexes);
            }
        }
        if let Some(subscription) = self.subscription_mut(place) {
            subscription.items.clone_from(&indexes);
            subscription.ids = Some(Box::new(ids));
        }
        if is_durable {
            self.durable_arrives(place, now);
        }
        // Items that were already ready precede those with changes found now.
        for index in ready.into_iter().filter_map(|position| indexes.get(position)) {
            self.after_enqueue(*index, false);
        }
        for index in &indexes {
            self.note_aggregate(*index);
            self.resume_item(*index, now);
            self.arrive_events(*index);
        }
        place
    }

    fn insert_moved_item(
        &mut self,
        mut item: Item,
        interval: Option<u64>,
        place: u32,
        position: usize,
    ) -> u32 {
        item.group = match interval {
            Some(interval) => self.groups.enter(interval),
            None => item.group,
        };
        item.subscription = place;
        item.position = u32::try_from(position).unwrap_or(NONE);
        (item.next, item.previous) = (NONE, NONE);
        self.insert_item(item)
    }

    fn links_to_indexes(&mut self, index: u32, indexes: &[u32]) {
        let ext = self.items.get_mut(index as usize).and_then(|item| item.ext.as_mut());
        if let Some(ItemExt { links, .. }) = ext.map(|ext| &mut **ext) {
            links.retain_mut(|link| match indexes.get(*link as usize) {
                Some(index) => {
                    *link = *index;
                    true
                }
                None => false,
            });
        }
    }

    /// Resumes an item that came from another engine.
    fn resume_item(&mut self, index: u32, now: Now) {
        if !self.items.get(index as usize).is_some_and(|item| item.has(flag::ENABLED)) {
            return;
        }
        // This marks the slot, so that writes made during the move are processed with the next change.
        self.start_watching(index);
        self.join_group(index, now, true);
    }
}
