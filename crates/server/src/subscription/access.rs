//! Permissions of monitored items' clients to see the values (Part 4 §5.13.2.1).
//!
//! The decision is stored in two bits of each item. It is made when the item is created, and again when the client's
//! identity or permissions change. Sampling and publishing only check these bits.

use super::item::flag;
use super::{Engine, SessionKey};
use crate::authorization::{Decisions, Denial, Grant};
use crate::now::Now;
use crate::space::AddressSpace;
use crate::space::attribute_permission;
use std::sync::Arc;

impl Engine {
    /// Applies the permissions of a session to all its subscriptions.
    pub(crate) fn authorize_session(
        &mut self,
        session: SessionKey,
        decisions: &Arc<Decisions>,
        now: Now,
        space: &AddressSpace,
    ) {
        let Some(Some(queue)) = self.queues.get(session.0 as usize) else { return };
        for place in queue.subscriptions.clone() {
            self.authorize(place, decisions, now, space);
        }
    }

    /// The subscriptions without a session, with the grant of their last authorization.
    pub(crate) fn orphans(&self) -> Vec<(u32, Grant)> {
        let without = |place: &&u32| self.subscription(**place).is_some_and(|it| it.session.is_none());
        let grant = |place: &u32| Some((*place, self.subscription(*place)?.grant()));
        self.by_id.values().filter(without).filter_map(grant).collect()
    }

    /// Applies the permissions of a client to a subscription. Items that it may no longer see report only that status,
    /// and their earlier messages can no longer be republished. Items that it may see now report their value. Whether
    /// the client may see notifications of deleted items is unknown, so these can no longer be republished either. The
    /// same applies to events if the client may receive fewer of them.
    pub(crate) fn authorize(
        &mut self,
        place: u32,
        decisions: &Arc<Decisions>,
        now: Now,
        space: &AddressSpace,
    ) {
        let Some(subscription) = self.subscription_mut(place) else { return };
        if Arc::ptr_eq(&subscription.decisions, decisions) {
            return;
        }
        let before = core::mem::replace(&mut subscription.decisions, Arc::clone(decisions));
        if let Some(journal) = &mut subscription.journal {
            journal.header_changed = true;
        }
        self.authorize_events(place, decisions, space);
        let mut changed: Vec<(u32, Denial)> = Vec::new();
        if let Some(subscription) = self.subscription(place) {
            let nodes = space.read();
            for index in &subscription.items {
                let Some((node, attribute_id)) = self.item_target(*index) else { continue };
                let denial = Denial::of(decisions.check(&nodes, node, attribute_permission(attribute_id)));
                if self.items.get(*index as usize).is_some_and(|item| item.denial() != denial) {
                    changed.push((*index, denial));
                }
            }
        }
        let is_denied = changed.iter().any(|(_, denial)| *denial != Denial::No);
        let Self { subscriptions, items, pool, .. } = self;
        if let Some(Some(subscription)) = subscriptions.get_mut(place as usize) {
            let is_event_item =
                |index: &u32| items.get(*index as usize).is_some_and(|it| it.has(flag::EVENTS));
            let has_events = subscription.items.iter().any(is_event_item);
            let is_other = before.grant != decisions.grant;
            let hides_events =
                decisions.hides_events_of(&before) || (is_other && subscription.has_old_events);
            if is_denied || subscription.has_lost_items || (has_events && hides_events) {
                subscription.has_lost_items = false;
                subscription.has_old_events = false;
                subscription.retransmission.clear(pool);
            } else {
                // Nodes may have other permissions now than when their events were sent.
                subscription.has_old_events |= has_events && !subscription.retransmission.is_empty();
            }
        }
        for (index, denial) in changed {
            self.set_denial(index, denial, now, space);
        }
    }

    /// Denies items of a restored subscription, which were created with all permissions.
    pub(crate) fn deny_restored(&mut self, place: u32, now: Now, space: &AddressSpace) {
        let Some(subscription) = self.subscription(place) else { return };
        let mut denied: Vec<(u32, Denial)> = Vec::new();
        {
            let nodes = space.read();
            for index in &subscription.items {
                let Some((node, attribute_id)) = self.item_target(*index) else { continue };
                let permission = attribute_permission(attribute_id);
                let denial = Denial::of(subscription.decisions.check(&nodes, node, permission));
                if denial != Denial::No {
                    denied.push((*index, denial));
                }
            }
        }
        for (index, denial) in denied {
            self.set_denial(index, denial, now, space);
        }
    }

    fn set_denial(&mut self, index: u32, denial: Denial, now: Now, space: &AddressSpace) {
        self.refresh_pages();
        let Some(item) = self.items.get_mut(index as usize) else { return };
        item.deny(denial);
        if let Some(ext) = &mut item.ext {
            ext.values.clear();
        }
        if let Some(events) =
            item.ext.as_mut().and_then(|ext| ext.events.as_mut()).filter(|_| denial != Denial::No)
        {
            events.queue.clear();
        }
        if let Some(Some(subscription)) = self.subscriptions.get_mut(item.subscription as usize) {
            super::durable::note(index, item, subscription);
        }
        if !item.has(flag::ENABLED) || item.has(flag::EVENTS) {
            return;
        }
        if item.slot.is_none() {
            return self.fetch(index, now, space);
        }
        if !item.is_queued() {
            item.flags |= flag::DIRTY;
            return self.after_enqueue(index, false);
        }
        let Some(snapshot) = item.sample(&self.pages) else { return };
        // Writes still in transit are older than this.
        item.remember(&snapshot);
        let sample = item.reported(snapshot);
        let lost = item.enqueue(sample);
        self.after_enqueue(index, lost);
    }
}
