//! Messages between shards: transfers of subscriptions to a session of another shard (Part 4 §5.14.7), and evictions.
//!
//! The session's shard asks the shard that has the subscription. That shard checks whether the session's user may have
//! it, and either refuses or removes it from its engine and sends it. Messages between two shards stay in order; no
//! shard waits. A subscription that was sent is always accepted, even if the request no longer exists: it then has no
//! session, and its user can request it again until its lifetime ends.

use super::{Shard, outbox};
use crate::eviction::Kind;
use crate::ids::ConnectionId;
use crate::now::Now;
use crate::service::shard_message::{Ask, Content, Given, ShardMessage, Waiting};
use crate::service::transfer::{self, Transferred};
use crate::session::Session;
use crate::slab::Key;
use std::sync::Arc;
use taktwerk_types::StatusCode;

/// Maximum number of times a transfer request is forwarded. A subscription moves at most once per round trip of its
/// client, so one that keeps moving away is not requested in good faith.
const HOPS_MAX: u8 = 8;

impl Shard {
    /// The next message for another shard or for this one: the shard's number, and the argument for its
    /// [`Self::message`].
    #[inline]
    pub fn poll_message(&mut self) -> Option<(usize, ShardMessage)> {
        self.transfers.messages.pop_front()
    }

    /// A message from a shard has arrived.
    pub fn message(&mut self, message: ShardMessage, now: Now) {
        self.restore(now);
        match message.0 {
            Content::Ask(ask) => self.asked(ask, now),
            Content::Refused(waiting, status) => self.transferred(waiting, Err(status), now),
            Content::Given(given) => self.given(*given, now),
            Content::Evict(kind, key) => self.evict(kind, key, now),
        }
        self.count_engine();
    }

    /// Another shard needs capacity. If the chosen member was activated in the meantime, it stays.
    fn evict(&mut self, kind: Kind, key: Key, now: Now) {
        match kind {
            Kind::Session => {
                if self.sessions.get(key).is_some_and(|session| !session.is_activated()) {
                    self.context(None, now).evict_session(key);
                    self.apply_attached(now);
                    self.audit_deferred(now);
                }
            }
            Kind::Connection => {
                if self.is_evictable(ConnectionId(key)) {
                    self.evict_connection(ConnectionId(key), now);
                }
            }
        }
        self.shared.evictable().carried_out(kind);
    }

    /// A session of any shard requests a subscription.
    pub(super) fn asked(&mut self, mut ask: Ask, now: Now) {
        let locations = self.shared.locations();
        let Some(place) = self.engine.find_any(ask.id) else {
            match locations.moved_to(ask.id) {
                Some(location) if location == self.index => self.transfers.postponed.push(ask),
                location => {
                    let location = location.unwrap_or_else(|| locations.creating_shard(ask.id));
                    if location == self.index || ask.hops >= HOPS_MAX {
                        self.transfers.refuse(&ask, StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
                    } else {
                        ask.hops += 1;
                        ask.behind_event = None;
                        self.transfers.ask(location, ask);
                    }
                }
            }
            return;
        };
        if ask.shard == self.index {
            // It was moved here in the meantime, by another operation.
            let Some((session, send_initial_values)) = self.deferrals.transfer(ask.waiting.request) else {
                return;
            };
            let mut cx = self.context(None, now);
            let result = transfer::within_shard(&mut cx, session, ask.id, send_initial_values);
            return self.transferred(ask.waiting, result, now);
        }
        let from = self.engine.subscription(place).and_then(|subscription| subscription.session);
        if !self.sessions.may_take(&ask.owner, from, ask.id) {
            return self.transfers.refuse(&ask, StatusCode::BAD_USER_ACCESS_DENIED);
        }
        if self.engine.is_writing(place) {
            // Its log must have only one writer at a time.
            return self.transfers.postponed.push(ask);
        }
        let until = match ask.behind_event {
            None => self.engine.events_before(place, self.shared.space(), now),
            Some(until) => Some(until).filter(|until| !self.engine.has_taken_events(*until)),
        };
        if until.is_some() {
            // Many events enter the queues in slices; the subscription takes along those raised until now.
            ask.behind_event = until;
            return self.transfers.postponed.push(ask);
        }
        let limits = &self.shared.config().limits;
        let mut outbox =
            outbox(&mut self.connections, &mut self.output.transmit, &mut self.output.buffers, now, limits);
        self.engine.count_transfer(place, from.is_none());
        let to = ask.shard;
        if let Some(moved) = self.engine.export(place, to, now, &mut outbox) {
            self.sessions.hand_over(ask.id);
            let given = Content::Given(Box::new(Given { ask, moved }));
            self.transfers.messages.push_back((to, ShardMessage(given)));
        }
    }

    /// A subscription requested by a session of this shard has arrived.
    fn given(&mut self, given: Given, now: Now) {
        let Given { ask, moved } = given;
        let id = moved.id();
        // The request may have been abandoned, its connection lost, or its session closed or taken over by another
        // user.
        let request = self.deferrals.transfer(ask.waiting.request).filter(|(session, _)| {
            let owner = self.sessions.get(*session).and_then(Session::owner);
            owner.is_some_and(|owner| owner.is_same_as(&ask.owner))
        });
        let session = request.map(|(session, _)| session.into());
        let place = self.engine.import(moved, session, now);
        self.authorize_arrival(place, request.map(|(session, _)| session), now);
        let result = match request {
            Some((_, send_initial_values)) => {
                if send_initial_values {
                    self.engine.resend_data(place);
                }
                Ok(self.engine.available(place))
            }
            None => {
                self.sessions.keep_owner(core::iter::once(id), &ask.owner, self.shared.account());
                Err(StatusCode::BAD_USER_ACCESS_DENIED)
            }
        };
        self.transferred(ask.waiting, result, now);
        let (known, later) = self.transfers.postponed.drain(..).partition(|other| other.id == id);
        self.transfers.postponed = later;
        for ask in known {
            self.asked(ask, now);
        }
    }

    /// Applies the permissions of the new session to an arrived subscription, or those of the previous session.
    fn authorize_arrival(&mut self, place: u32, session: Option<Key>, now: Now) {
        let decisions = match session.and_then(|key| self.sessions.get(key)) {
            Some(session) => Arc::clone(&session.decisions),
            None => match self.engine.subscription(place).map(|subscription| subscription.grant()) {
                Some(grant) => self.authorizer.decisions(&self.shared, grant),
                None => return,
            },
        };
        self.engine.authorize(place, &decisions, now, self.shared.space());
    }

    /// Stores the result of an operation. The last one sends the response.
    fn transferred(&mut self, waiting: Waiting, result: Transferred, now: Now) {
        if let Some((to, results)) = self.deferrals.transferred(waiting, result) {
            transfer::respond(&mut self.context(None, now).outbox, to, &results);
        }
    }
}
