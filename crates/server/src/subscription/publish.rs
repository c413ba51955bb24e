//! Publishing cycles, NotificationMessages and the sessions' queues of Publish requests (Part 4 §5.14.5).

use super::journal::Answer;
use super::phase::Expiry;
use super::response::{respond_keep_alive, respond_notifications, respond_status_change};
use super::state::{Action, Conditions, Event, State, step};
use super::timer::Due;
use super::triggering::{LINK_BYTES, LINKS_PER_MESSAGE};
use super::{Engine, SessionKey};
use crate::account::{Account, Category, Charge};
use crate::ids::ConnectionId;
use crate::now::Now;
use crate::space::AddressSpace;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_types::{Instant, StatusCode};

/// A Publish request that waits for notifications.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// The destination of the response.
    pub(crate) connection: ConnectionId,
    /// The RequestId of the channel.
    pub(crate) request_id: u32,
    pub(crate) request_handle: u32,
    /// When the client stops waiting (timeoutHint); [`Instant::FAR`] for never.
    pub(crate) expires: Instant,
    /// The results of the request's acknowledgements.
    pub(crate) results: SmallVec<[StatusCode; 4]>,
    /// Charge for the results, if they exceed the inline capacity.
    pub(crate) charge: Option<Charge>,
}

/// The services of the shard that the engine needs for responding.
pub(crate) trait Responder {
    /// Whether the connection's client reads too slowly to get more data.
    fn is_congested(&self, connection: ConnectionId) -> bool;
    /// Longest response body that the client accepts, in bytes.
    fn body_len_max(&self, connection: ConnectionId) -> usize;
    /// Sends a response; `body` appends everything from the type id on.
    fn respond(&mut self, ticket: &Ticket, body: &mut dyn FnMut(&mut Vec<u8>));
    /// Sends a ServiceFault.
    fn fault(&mut self, ticket: &Ticket, status: StatusCode);
}

/// One session's Publish requests and subscriptions.
#[derive(Debug)]
pub(crate) struct PublishQueue {
    /// The session's account.
    account: Arc<Account>,
    /// Charge for the lists here.
    charge: Charge,
    pub(super) requests: VecDeque<Ticket>,
    /// Positions of the session's subscriptions.
    pub(super) subscriptions: Vec<u32>,
    /// StatusChangeNotifications of ended subscriptions: id, sequence number, status.
    pub(super) status_changes: VecDeque<(u32, u32, StatusCode)>,
    /// Whether it is among the sessions whose requests wait for the next turn.
    is_postponed: bool,
}

impl PublishQueue {
    /// For the session with the account.
    pub(super) fn new(account: &Arc<Account>) -> Self {
        Self {
            charge: account.nothing(Category::Requests),
            account: Arc::clone(account),
            requests: VecDeque::new(),
            subscriptions: Vec::new(),
            status_changes: VecDeque::new(),
            is_postponed: false,
        }
    }

    /// The session's account.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Adjusts the charge if a list has grown. Each list is limited, so the charge is unconditional.
    pub(super) fn measure(&mut self) {
        let bytes = self.requests.capacity() * size_of::<Ticket>()
            + self.subscriptions.capacity() * size_of::<u32>()
            + self.status_changes.capacity() * size_of::<(u32, u32, StatusCode)>();
        if bytes != self.charge.amount() {
            self.charge.resize_anyway(bytes);
        }
    }
}

/// Publish responses per call of [`Engine::run`]; the driver sends in between.
const PUBLISHES_PER_RUN: usize = 64;
/// Bytes per call of [`Engine::run`], about a socket buffer.
const BYTES_PER_RUN: usize = 256 << 10;
/// Maximum weight of the events in one message: 32 events encoded for one client alone, or hundreds of shared ones (see
/// [`weight`](crate::event::queue::weight)). The former take some 3 µs each to encode and free, far more than a value
/// of the same size: other clients wait 0.1 ms while a message is written. With four times this limit they waited ten
/// times as long as on an idle server (`alarm_storm`).
pub(super) const EVENT_WEIGHT_PER_MESSAGE: u32 = 1024;
/// Bytes of a run charged per unit of weight, in addition to the events' own bytes, so that a run has as many as a
/// message.
const WEIGHT_BYTES: usize = BYTES_PER_RUN / EVENT_WEIGHT_PER_MESSAGE as usize;

/// How long an expired request may wait for its Bad_Timeout while its subscriptions have no notifications, in ns.
const LOOK_FOR_EXPIRED: u64 = 100_000_000;

/// The remaining budget of a run.
struct Budget {
    publishes: usize,
    bytes: usize,
}

impl Budget {
    fn spend(&mut self, bytes: usize) {
        self.publishes = self.publishes.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Charges followed links of triggering items.
    fn spend_links(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_sub(count * LINK_BYTES);
    }

    fn is_spent(&self) -> bool {
        self.publishes == 0 || self.bytes == 0
    }
}

/// The weight of events with which requests of one turn were answered, and of the links followed for them. When many
/// events occur, many clients request them at once. Requests beyond the turn's budget are answered in the next turns,
/// and other clients wait for one turn only.
#[derive(Debug, Default)]
pub(super) struct ServedEvents {
    turn: Instant,
    weight: u32,
}

impl ServedEvents {
    fn add(&mut self, turn: Instant, weight: u32) {
        if self.turn != turn {
            *self = Self { turn, weight: 0 };
        }
        self.weight = self.weight.saturating_add(weight);
    }

    fn are_enough(&self, turn: Instant) -> bool {
        self.turn == turn && self.weight >= EVENT_WEIGHT_PER_MESSAGE
    }
}

impl Engine {
    /// Handles what is due at `now`, up to a bound. If more remains, [`Engine::next_deadline`] is still due.
    pub(crate) fn run(&mut self, now: Now, space: &AddressSpace, responder: &mut dyn Responder) {
        if self.store.take_pressed(self.shard) {
            // Before values are lost that would otherwise wait until the next deadline.
            self.refresh_pages();
            self.want_queued();
        }
        if self.events.take_pressed(self.shard) {
            self.want_events();
        }
        if self.next_deadline().is_none_or(|at| at > now.instant) {
            return;
        }
        self.refresh(space, now);
        self.refresh_pages();
        if self.take_queued_slice() {
            return;
        }
        // A flood of events: a turn is for items, or for messages, so that others wait for one of both. Requests that were
        // answered with events in this turn count, unless the last turn was for items: a turn has at most twice the weight.
        let is_for_messages = core::mem::replace(&mut self.messages_first, false);
        if !is_for_messages
            && (self.take_event_slice(space, now) || self.served_events.are_enough(now.instant))
        {
            self.messages_first = true;
            return;
        }
        let mut budget = Budget { publishes: PUBLISHES_PER_RUN, bytes: BYTES_PER_RUN };
        let mut fresh = false;
        while !budget.is_spent() {
            let Some((place, at)) = self.event_items.next_waiting() else { break };
            self.cycle_if_due(place, at, now, responder, &mut budget);
        }
        // A client that fetches events continuously would delay the timers of others, and vice versa: they alternate.
        self.timers_first = !self.timers_first;
        if !self.timers_first {
            self.serve_postponed(now, responder, &mut budget);
        }
        while !budget.is_spent() {
            let Some((at, due)) = self.timers.pop(now.instant) else { break };
            match due {
                Due::Group(group) => {
                    let valid = self.groups.get(group).is_some_and(|state| state.armed && state.next == at);
                    if valid {
                        self.tick(group, now, space);
                    }
                }
                Due::Publish(place) => {
                    if self.subscription(place).is_none_or(|subscription| subscription.next_publish != at) {
                        continue;
                    }
                    if !fresh {
                        self.drain_changes(now.instant);
                        fresh = true;
                    }
                    if let Some(until) = self.events_before(place, space, now) {
                        self.event_items.wait(place, at, until);
                        continue;
                    }
                    self.cycle(place, now, responder, &mut budget);
                }
            }
        }
        self.serve_postponed(now, responder, &mut budget);
    }

    /// Serves the sessions whose requests waited for this run. If the budget is exhausted, the rest keeps waiting.
    fn serve_postponed(&mut self, now: Now, responder: &mut dyn Responder, budget: &mut Budget) {
        while !budget.is_spent() {
            let Some(session) = self.postponed.pop_front() else { return };
            if let Some(Some(queue)) = self.queues.get_mut(session.0 as usize) {
                queue.is_postponed = false;
            }
            self.serve_waiting(session, now, responder, budget);
            if budget.is_spent()
                && let Some(place) = self.most_urgent(session)
                && self.has_ticket(place, now.instant, responder)
            {
                self.postpone(session);
            }
        }
    }

    /// Charges the run and the turn for followed links of triggering items.
    fn spend_links(&mut self, turn: Instant, budget: &mut Budget) {
        let count = core::mem::take(&mut self.links_followed);
        if count > 0 {
            budget.spend_links(count);
            let weight = count * EVENT_WEIGHT_PER_MESSAGE as usize / LINKS_PER_MESSAGE;
            self.served_events.add(turn, u32::try_from(weight).unwrap_or(u32::MAX));
        }
    }

    /// Postpones a session's requests to the next run.
    fn postpone(&mut self, session: SessionKey) {
        if let Some(Some(queue)) = self.queues.get_mut(session.0 as usize)
            && !core::mem::replace(&mut queue.is_postponed, true)
        {
            self.postponed.push_back(session);
        }
    }

    /// The event up to which a subscription's cycle must wait; `None` if all raised events have been given to its
    /// items. A small number of events is given at once.
    pub(crate) fn events_before(&mut self, place: u32, space: &AddressSpace, now: Now) -> Option<u64> {
        if self.event_items.of(place).is_empty() {
            return None;
        }
        self.catch_up_events(space, now)
    }

    /// Runs a cycle that waited for events, unless its timer was set again since.
    fn cycle_if_due(
        &mut self,
        place: u32,
        at: Instant,
        now: Now,
        responder: &mut dyn Responder,
        budget: &mut Budget,
    ) {
        if self.subscription(place).is_some_and(|subscription| subscription.next_publish == at) {
            self.cycle(place, now, responder, budget);
        }
    }

    /// A subscription's publishing timer has expired.
    fn cycle(&mut self, place: u32, now: Now, responder: &mut dyn Responder, budget: &mut Budget) {
        let Self { subscriptions, phases, timers, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return };
        let expiry = subscription.phase.expired(now.instant, subscription.ready.len(), phases);
        let (Expiry::Publish(next) | Expiry::Wait(next)) = expiry;
        subscription.next_publish = next;
        timers.push(next, Due::Publish(place));
        if matches!(expiry, Expiry::Wait(_)) {
            return;
        }
        if self.subscription(place).is_some_and(|subscription| !subscription.aggregates.is_empty()) {
            self.calculate_aggregates(place, now);
        }
        // Called once per cycle, because it samples items.
        let has_notifications = self.has_notifications(place);
        self.spend_links(now.instant, budget);
        if !has_notifications && self.stays_silent(place) {
            return;
        }
        let mut conditions = self.conditions(place, has_notifications, now.instant, responder);
        let Some(subscription) = self.subscription_mut(place) else { return };
        let state = subscription.state;
        let mut row = step(state, Event::TimerExpired, conditions);
        if row.action == Action::ReturnNotifications && !self.notify(place, now, responder, budget) {
            conditions.found_nothing();
            row = step(state, Event::TimerExpired, conditions);
        }
        let Some(subscription) = self.subscription_mut(place) else { return };
        let was_late = state == State::Late;
        subscription.state = row.next;
        if row.action == Action::ReturnNotifications {
            return;
        }
        subscription.lifetime_counter = subscription.lifetime_counter.saturating_sub(1);
        match row.action {
            Action::ReturnKeepAlive => self.keep_alive(place, now, responder, budget),
            Action::ResetKeepAlive => {
                subscription.reset_keep_alive();
                // This cycle is the first without a message.
                subscription.keep_alive_counter = subscription.keep_alive_counter.saturating_sub(1).max(1);
            }
            Action::CountKeepAlive => subscription.keep_alive_counter -= 1,
            Action::Wait => {
                if !was_late {
                    subscription.counters.late += 1;
                }
            }
            Action::Close => self.expire(place, responder),
            Action::Enqueue | Action::ReturnNotifications => {}
        }
    }

    /// Counts a cycle without notifications that needs no response whether or not a request is queued (row 16 of the
    /// table). This avoids touching the session's queue, its request and its connection, which are no longer in the CPU
    /// caches; with thousands of subscriptions with short intervals, most cycles are of this kind. From time to time it
    /// returns false, so that expired requests are answered.
    fn stays_silent(&mut self, place: u32) -> bool {
        let Some(subscription) = self.subscription_mut(place) else { return false };
        let looks_after = (LOOK_FOR_EXPIRED / subscription.interval.max(1)).max(1);
        let is_silent = subscription.state == State::KeepAlive
            && subscription.keep_alive_counter > 1
            && subscription.lifetime_counter > 1
            && !u64::from(subscription.keep_alive_counter).is_multiple_of(looks_after);
        if is_silent {
            subscription.keep_alive_counter -= 1;
            subscription.lifetime_counter -= 1;
        }
        is_silent
    }

    /// The state variables for the table.
    fn conditions(
        &mut self,
        place: u32,
        notifications_available: bool,
        now: Instant,
        responder: &mut dyn Responder,
    ) -> Conditions {
        let request_queued = self.has_ticket(place, now, responder);
        let Some(subscription) = self.subscription(place) else {
            return Conditions {
                publishing_enabled: false,
                notifications_available: false,
                more_notifications: false,
                request_queued: false,
                message_sent: false,
                keep_alive_due: false,
                lifetime_over: true,
            };
        };
        Conditions {
            publishing_enabled: subscription.publishing_enabled,
            notifications_available,
            more_notifications: subscription.more_notifications,
            request_queued,
            message_sent: subscription.message_sent,
            keep_alive_due: subscription.keep_alive_counter <= 1,
            lifetime_over: subscription.lifetime_counter <= 1,
        }
    }

    /// A Publish request has arrived (Part 4 §5.14.5).
    ///
    /// # Errors
    /// Bad_NoSubscription if the session has no subscriptions and no waiting notifications.
    pub(crate) fn publish(
        &mut self,
        session: SessionKey,
        ticket: Ticket,
        now: Now,
        responder: &mut dyn Responder,
    ) -> Result<(), StatusCode> {
        let Some(Some(queue)) = self.queues.get_mut(session.0 as usize) else {
            return Err(StatusCode::BAD_NO_SUBSCRIPTION);
        };
        if let Some((id, sequence_number, status)) = queue.status_changes.pop_front() {
            respond_status_change(responder, &ticket, now, id, sequence_number, status);
            return Ok(());
        }
        if queue.subscriptions.is_empty() {
            return Err(StatusCode::BAD_NO_SUBSCRIPTION);
        }
        queue.requests.push_back(ticket);
        queue.measure();
        if queue.requests.len() > self.limits.publish_requests_per_session_max as usize {
            // Part 4 §5.14.5.3: the oldest request is dropped.
            if let Some(oldest) = queue.requests.pop_front() {
                responder.fault(&oldest, StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS);
            }
        }
        if self.served_events.are_enough(now.instant) {
            self.postpone(session);
            return Ok(());
        }
        let mut budget = Budget { publishes: 1, bytes: BYTES_PER_RUN };
        self.serve_waiting(session, now, responder, &mut budget);
        Ok(())
    }

    /// Lets late subscriptions of a session use its queued requests, after a Publish request arrived or a congested
    /// connection became writable.
    pub(crate) fn connection_ready(&mut self, session: SessionKey, now: Now, responder: &mut dyn Responder) {
        let mut budget = Budget { publishes: PUBLISHES_PER_RUN, bytes: BYTES_PER_RUN };
        self.serve_waiting(session, now, responder, &mut budget);
    }

    fn serve_waiting(
        &mut self,
        session: SessionKey,
        now: Now,
        responder: &mut dyn Responder,
        budget: &mut Budget,
    ) {
        while !budget.is_spent() {
            let Some(place) = self.most_urgent(session) else { return };
            if !self.has_ticket(place, now.instant, responder) {
                return;
            }
            self.refresh_pages();
            let has_notifications = self.has_notifications(place);
            self.spend_links(now.instant, budget);
            let mut conditions = self.conditions(place, has_notifications, now.instant, responder);
            let Some(subscription) = self.subscription_mut(place) else { return };
            let state = subscription.state;
            let mut row = step(state, Event::PublishReceived, conditions);
            if row.action == Action::ReturnNotifications && !self.notify(place, now, responder, budget) {
                conditions.found_nothing();
                row = step(state, Event::PublishReceived, conditions);
            }
            let Some(subscription) = self.subscription_mut(place) else { return };
            subscription.state = row.next;
            match row.action {
                // More notifications were announced, but they no longer exist.
                Action::Enqueue => subscription.more_notifications = false,
                Action::ReturnKeepAlive => self.keep_alive(place, now, responder, budget),
                _ => {}
            }
        }
    }

    /// The session's subscription for a new Publish request: one that is late or has more to send, the highest priority
    /// first, then the longest waiting.
    fn most_urgent(&self, session: SessionKey) -> Option<u32> {
        let queue = self.queues.get(session.0 as usize)?.as_ref()?;
        queue
            .subscriptions
            .iter()
            .filter_map(|place| Some((*place, self.subscription(*place)?)))
            .filter(|(_, subscription)| {
                subscription.state == State::Late
                    || (subscription.state == State::Normal
                        && subscription.publishing_enabled
                        && subscription.more_notifications)
            })
            .max_by_key(|(_, subscription)| {
                (subscription.parameters.priority, core::cmp::Reverse(subscription.served))
            })
            .map(|(place, _)| place)
    }

    /// Whether a queued request can be answered now. Expired ones are answered with Bad_Timeout.
    fn has_ticket(&mut self, place: u32, now: Instant, responder: &mut dyn Responder) -> bool {
        let Some(session) = self.subscription(place).and_then(|subscription| subscription.session) else {
            return false;
        };
        if self.holds_all(place) {
            return false;
        }
        let Some(Some(queue)) = self.queues.get_mut(session.0 as usize) else { return false };
        while let Some(first) = queue.requests.front() {
            if first.expires > now {
                return !responder.is_congested(first.connection);
            }
            if let Some(expired) = queue.requests.pop_front() {
                responder.fault(&expired, StatusCode::BAD_TIMEOUT);
            }
        }
        false
    }

    fn take_ticket(&mut self, place: u32, now: Instant, responder: &mut dyn Responder) -> Option<Ticket> {
        if !self.has_ticket(place, now, responder) {
            return None;
        }
        let session = self.subscription(place)?.session?;
        self.queues.get_mut(session.0 as usize)?.as_mut()?.requests.pop_front()
    }

    /// Answers with notifications, as many messages as there are requests. Returns whether there were any: a value may
    /// have returned to the last reported one.
    fn notify(&mut self, place: u32, now: Now, responder: &mut dyn Responder, budget: &mut Budget) -> bool {
        let mut is_first = true;
        // Part 4 §5.14.1.4, ReturnNotifications: further requests carry the rest.
        while let Some(ticket) = self.take_ticket(place, now.instant, responder) {
            let body_max = responder.body_len_max(ticket.connection);
            let Some((message, weight)) = self.create_message(place, now, body_max) else {
                self.spend_links(now.instant, budget);
                self.give_ticket_back(place, ticket);
                if let Some(subscription) = self.subscription_mut(place) {
                    subscription.more_notifications = false;
                }
                return !is_first;
            };
            if core::mem::take(&mut is_first) {
                self.serve(place);
            }
            self.work.publish_responses += 1;
            let more = self.has_notifications(place);
            let len = message.len();
            let len_max = self.limits.retransmission_len_max as usize;
            let bytes_max = self.limits.retransmission_bytes_max;
            let Self { subscriptions, pool, .. } = self;
            let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return true };
            let sequence_number = subscription.take_sequence_number();
            subscription.more_notifications = more;
            subscription.counters.publish_requests += 1;
            let discarded =
                subscription.retransmission.push(sequence_number, message, len_max, bytes_max, pool);
            subscription.counters.discarded_messages += discarded;
            let next = subscription.next_sequence_number;
            let is_sent = subscription.journal.as_mut().is_none_or(|journal| {
                if self.durables.is_failing() {
                    journal.give_up_before(next);
                }
                journal.has_written(sequence_number)
            });
            if is_sent {
                respond_notifications(responder, &ticket, now, subscription, sequence_number);
                subscription.counters.discarded_messages += subscription.retransmission.forget_excess(pool);
            } else {
                self.hold(place, ticket, Answer::Publish(sequence_number));
            }
            self.served_events.add(now.instant, weight);
            budget.spend(len + weight as usize * WEIGHT_BYTES);
            self.spend_links(now.instant, budget);
            if !more || budget.is_spent() {
                break;
            }
        }
        !is_first
    }

    /// Sends waiting events at once, as far as there are requests, because the sessions are about to end. Durable
    /// subscriptions keep theirs.
    pub(crate) fn publish_events(&mut self, space: &AddressSpace, now: Now, responder: &mut dyn Responder) {
        self.drain_events(space, now);
        let mut budget = Budget { publishes: usize::MAX, bytes: usize::MAX };
        for place in self.event_items.places() {
            let wants = self.subscription(place).is_some_and(|subscription| {
                subscription.publishing_enabled && subscription.journal.is_none()
            });
            if wants && self.has_notifications(place) {
                self.notify(place, now, responder, &mut budget);
            }
        }
    }

    /// Answers with a keep-alive.
    fn keep_alive(&mut self, place: u32, now: Now, responder: &mut dyn Responder, budget: &mut Budget) {
        let Some(ticket) = self.take_ticket(place, now.instant, responder) else { return };
        self.work.publish_responses += 1;
        self.serve(place);
        let Some(subscription) = self.subscription_mut(place) else { return };
        subscription.more_notifications = false;
        subscription.counters.publish_requests += 1;
        respond_keep_alive(responder, &ticket, now, subscription);
        budget.spend(64);
    }

    /// A subscription will answer a request.
    fn serve(&mut self, place: u32) {
        self.served += 1;
        let served = self.served;
        let Some(subscription) = self.subscription_mut(place) else { return };
        subscription.served = served;
        subscription.message_sent = true;
        subscription.reset_lifetime();
        subscription.reset_keep_alive();
    }

    /// Returns a request to the front of the queue.
    fn give_ticket_back(&mut self, place: u32, ticket: Ticket) {
        let session = self.subscription(place).and_then(|subscription| subscription.session);
        let queue = session.and_then(|session| self.queues.get_mut(session.0 as usize)?.as_mut());
        if let Some(queue) = queue {
            queue.requests.push_front(ticket);
        }
    }

    /// Answers all queued requests of a session with a fault.
    pub(crate) fn refuse_requests(
        &mut self,
        session: SessionKey,
        status: StatusCode,
        responder: &mut dyn Responder,
    ) {
        self.refuse_held(session, status, responder);
        if let Some(Some(queue)) = self.queues.get_mut(session.0 as usize) {
            while let Some(ticket) = queue.requests.pop_front() {
                responder.fault(&ticket, status);
            }
        }
    }

    /// Cancels queued Publish requests by handle (Part 4 §5.7.5). Returns how many.
    pub(crate) fn cancel(
        &mut self,
        session: SessionKey,
        request_handle: u32,
        responder: &mut dyn Responder,
    ) -> u32 {
        let Some(Some(queue)) = self.queues.get_mut(session.0 as usize) else { return 0 };
        let before = queue.requests.len();
        queue.requests.retain(|ticket| {
            let cancelled = ticket.request_handle == request_handle;
            if cancelled {
                responder.fault(ticket, StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT);
            }
            !cancelled
        });
        u32::try_from(before - queue.requests.len()).unwrap_or(u32::MAX)
    }

    /// Answers queued requests with waiting StatusChangeNotifications.
    pub(super) fn send_status_changes(
        &mut self,
        session: SessionKey,
        now: Now,
        responder: &mut dyn Responder,
    ) {
        let Some(Some(queue)) = self.queues.get_mut(session.0 as usize) else { return };
        while !queue.status_changes.is_empty() {
            let Some(ticket) = queue.requests.pop_front() else { return };
            if let Some((id, sequence_number, status)) = queue.status_changes.pop_front() {
                respond_status_change(responder, &ticket, now, id, sequence_number, status);
            }
        }
    }
}
