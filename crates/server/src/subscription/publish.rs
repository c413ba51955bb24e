//! Publishing cycles, NotificationMessages and the sessions' queues of Publish requests (Part 4 §5.14.5).

use super::item::{Item, SEMANTICS_BITS, encode_sample, encode_snapshot, flag};
use super::message::MessageWriter;
use super::phase::{Expiry, SAMPLES};
use super::state::{Action, Conditions, Event, State, step};
use super::subscription::Subscription;
use super::timer::Due;
use super::{Engine, SessionKey};
use crate::account::{Account, Category, Charge};
use crate::ids::ConnectionId;
use crate::now::Now;
use crate::space::AddressSpace;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_schema::ids::encoding_ids;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{Encode, Instant, NodeId, StatusCode, UtcTime};

/// A Publish request that waits for something to answer with.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// Where the answer goes.
    pub(crate) connection: ConnectionId,
    /// The RequestId of the channel.
    pub(crate) request_id: u32,
    pub(crate) request_handle: u32,
    /// When the client stops waiting (timeoutHint); [`Instant::FAR`] for never.
    pub(crate) expires: Instant,
    /// The results of the request's acknowledgements.
    pub(crate) results: SmallVec<[StatusCode; 4]>,
    /// For the results, if they are more than the ticket has room for.
    pub(crate) charge: Option<Charge>,
}

/// What the engine needs from the shard to answer.
pub(crate) trait Responder {
    /// Whether the connection's client reads too slowly to be given more.
    fn is_congested(&self, connection: ConnectionId) -> bool;
    /// Most bytes of a response body that the client takes.
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
    /// For the lists here.
    charge: Charge,
    pub(super) requests: VecDeque<Ticket>,
    /// Places of the session's subscriptions.
    pub(super) subscriptions: Vec<u32>,
    /// StatusChangeNotifications of subscriptions that are gone: id, sequence number, status.
    pub(super) farewells: VecDeque<(u32, u32, StatusCode)>,
}

impl PublishQueue {
    /// For the session that has the account.
    pub(super) fn new(account: &Arc<Account>) -> Self {
        Self {
            charge: account.nothing(Category::Requests),
            account: Arc::clone(account),
            requests: VecDeque::new(),
            subscriptions: Vec::new(),
            farewells: VecDeque::new(),
        }
    }

    /// The session's account.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Charges the lists anew if one has grown. Each has a limit, so this is for what is there already.
    pub(super) fn measure(&mut self) {
        let bytes = self.requests.capacity() * size_of::<Ticket>()
            + self.subscriptions.capacity() * size_of::<u32>()
            + self.farewells.capacity() * size_of::<(u32, u32, StatusCode)>();
        if bytes != self.charge.amount() {
            self.charge.resize_anyway(bytes);
        }
    }
}

/// Publishes of one call of [`Engine::run`]; the driver sends in between.
const PUBLISHES_PER_RUN: usize = 64;
/// Bytes of one call of [`Engine::run`], about a socket buffer.
const BYTES_PER_RUN: usize = 256 << 10;

/// How long a request whose time is over may wait for its Bad_Timeout while its subscriptions have nothing to say, ns.
const LOOK_FOR_EXPIRED: u64 = 100_000_000;

/// What a run has left to do.
struct Budget {
    publishes: usize,
    bytes: usize,
}

impl Budget {
    fn spend(&mut self, bytes: usize) {
        self.publishes = self.publishes.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    fn is_spent(&self) -> bool {
        self.publishes == 0 || self.bytes == 0
    }
}

impl Engine {
    /// Does what is due at `now`, a bounded amount of it; [`Engine::next_deadline`] is still due if more is left.
    pub(crate) fn run(&mut self, now: Now, space: &AddressSpace, responder: &mut dyn Responder) {
        if self.store.take_pressed(self.shard) {
            // Before values are lost that nobody would look at until the next deadline.
            self.refresh_pages();
            self.drain_queued();
        }
        if self.events.take_pressed(self.shard) {
            self.drain_events();
        }
        if self.next_deadline().is_none_or(|at| at > now.instant) {
            return;
        }
        self.refresh(space, now);
        self.refresh_pages();
        let mut budget = Budget { publishes: PUBLISHES_PER_RUN, bytes: BYTES_PER_RUN };
        let mut fresh = false;
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
                        self.drain_events();
                        fresh = true;
                    }
                    self.cycle(place, now, responder, &mut budget);
                }
            }
        }
    }

    /// A subscription's publishing timer has expired.
    fn cycle(&mut self, place: u32, now: Now, responder: &mut dyn Responder, budget: &mut Budget) {
        let Self { subscriptions, phases, timers, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return };
        let expiry = subscription.phase.expired(now.instant, subscription.ready_len(), phases);
        let (Expiry::Publish(next) | Expiry::Wait(next)) = expiry;
        subscription.next_publish = next;
        timers.push(next, Due::Publish(place));
        if matches!(expiry, Expiry::Wait(_)) {
            return;
        }
        if self.subscription(place).is_some_and(|subscription| !subscription.aggregates.is_empty()) {
            self.calculate_aggregates(place, now);
        }
        // Looked for once in a cycle: it samples items.
        let has_notifications = self.has_notifications(place);
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

    /// Counts a cycle without notifications in which the subscription says nothing whether or not a request is queued (row 16 of the table),
    /// without looking for one: that touches the session's queue, its request and its connection, which the caches have
    /// forgotten since the cycle before, and of thousands of subscriptions with short intervals most are silent. From
    /// time to time it looks all the same, so that requests whose time is over are answered.
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

    /// The state variables that the table asks for.
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

    /// A Publish request has come (Part 4 §5.14.5).
    ///
    /// # Errors
    /// Bad_NoSubscription if the session has none and nothing is left to tell.
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
        if let Some((id, sequence_number, status)) = queue.farewells.pop_front() {
            respond_status_change(responder, &ticket, now, id, sequence_number, status);
            return Ok(());
        }
        if queue.subscriptions.is_empty() {
            return Err(StatusCode::BAD_NO_SUBSCRIPTION);
        }
        queue.requests.push_back(ticket);
        queue.measure();
        if queue.requests.len() > self.limits.publish_requests_per_session_max as usize {
            // Part 4 §5.14.5.3: the oldest request makes room.
            if let Some(oldest) = queue.requests.pop_front() {
                responder.fault(&oldest, StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS);
            }
        }
        let mut budget = Budget { publishes: 1, bytes: BYTES_PER_RUN };
        self.serve_waiting(session, now, responder, &mut budget);
        Ok(())
    }

    /// Lets late subscriptions of a session use its queued requests: after a Publish request came, or after a
    /// congested connection became writable.
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
                // More notifications were announced, but what was left has gone since.
                Action::Enqueue => subscription.more_notifications = false,
                Action::ReturnKeepAlive => self.keep_alive(place, now, responder, budget),
                _ => {}
            }
        }
    }

    /// The session's subscription that a new Publish request is for: one that is late or has more to send, the
    /// highest priority first, then the one that waited longest.
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

    /// Whether a request is queued that can be answered now; expired ones are answered Bad_Timeout.
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

    /// Answers with notifications, as many messages as there are requests for. Says whether there were any: a value may
    /// be again what it was when it was told of last.
    fn notify(&mut self, place: u32, now: Now, responder: &mut dyn Responder, budget: &mut Budget) -> bool {
        let mut is_first = true;
        // Part 4 §5.14.1.4, ReturnNotifications: further requests carry what did not fit.
        while let Some(ticket) = self.take_ticket(place, now.instant, responder) {
            let body_max = responder.body_len_max(ticket.connection);
            let Some(message) = self.create_message(place, now, body_max) else {
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
            if subscription.journal.is_none() || self.durables.is_failing() {
                respond_notifications(responder, &ticket, now, subscription, sequence_number);
                subscription.counters.discarded_messages += subscription.retransmission.forget_excess(pool);
            } else {
                self.hold(place, ticket, sequence_number);
            }
            budget.spend(len);
            if !more || budget.is_spent() {
                break;
            }
        }
        !is_first
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

    /// A subscription is going to answer a request.
    fn serve(&mut self, place: u32) {
        self.served += 1;
        let served = self.served;
        let Some(subscription) = self.subscription_mut(place) else { return };
        subscription.served = served;
        subscription.message_sent = true;
        subscription.reset_lifetime();
        subscription.reset_keep_alive();
    }

    /// A request that was taken is the next one again.
    fn give_ticket_back(&mut self, place: u32, ticket: Ticket) {
        let session = self.subscription(place).and_then(|subscription| subscription.session);
        let queue = session.and_then(|session| self.queues.get_mut(session.0 as usize)?.as_mut());
        if let Some(queue) = queue {
            queue.requests.push_front(ticket);
        }
    }

    /// Whether at least one notification would be sent. Entries of the ready list that turn out to have nothing to
    /// report are dropped on the way, so no work is done twice.
    pub(super) fn has_notifications(&mut self, place: u32) -> bool {
        let Self { subscriptions, items, pages, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return false };
        if !subscription.ready_events.is_empty() && super::events::has_events(place, items, subscription) {
            return true;
        }
        while let Some(index) = subscription.ready.get(subscription.ready_head).copied() {
            if let Some(item) = items.get_mut(index as usize).filter(|item| is_ready(item, place)) {
                if !item.has(flag::REPORTING | flag::TRIGGERED) {
                    look_silently(index, place, items, pages, subscription);
                } else if item.has_samples() {
                    return true;
                } else if !item.is_queued()
                    && let Some(snapshot) = item.sample(pages)
                {
                    if item.passes(&snapshot) {
                        return true;
                    }
                    item.flags &= !flag::DIRTY;
                }
                if let Some(item) = items.get_mut(index as usize) {
                    item.flags &= !(flag::READY | flag::TRIGGERED);
                }
            }
            subscription.ready_head += 1;
        }
        subscription.ready.clear();
        subscription.ready_head = 0;
        false
    }

    /// Encodes the next NotificationMessage from the ready list (Part 4 §7.26), up to the subscription's number of
    /// notifications and `body_max` bytes; none if there is nothing to tell after all.
    fn create_message(&mut self, place: u32, now: Now, body_max: usize) -> Option<Vec<u8>> {
        let mut out = self.pool.take();
        let Self { subscriptions, items, pages, pool, events, .. } = self;
        let subscription = subscriptions.get_mut(place as usize)?.as_mut()?;
        // Response header, acknowledgement results and available sequence numbers also need room.
        let len_max = body_max.saturating_sub(1024).max(1024);
        let count_max = subscription.parameters.max_notifications;
        let events_max = match (subscription.ready_events.is_empty(), subscription.ready_len()) {
            (true, _) => 0,
            (false, 0) => count_max,
            // Values get their share of a message, however many events there are.
            (false, _) => (count_max / 2).max(1),
        };
        // A large message that grows by doubling leaves holes of its own size in the heap.
        let waiting = subscription.ready.len() - subscription.ready_head;
        let expected = waiting.min(count_max as usize).saturating_mul(subscription.notification_len) + 64;
        out.reserve_exact(expected.min(len_max));
        let mut message = MessageWriter::begin(&mut out, subscription.next_sequence_number, now.utc);
        // When a sample of the values was written, ns.
        let mut written = SmallVec::<[i64; SAMPLES]>::new();
        let sample_every = waiting.div_ceil(SAMPLES).max(1) as u32;
        let event_count = if events_max == 0 {
            0
        } else {
            message.block(encoding_ids::EVENT_NOTIFICATION_LIST_BINARY, |out| {
                super::events::encode_events(
                    out,
                    place,
                    items,
                    subscription,
                    events_max,
                    len_max,
                    events,
                    now,
                )
            })
        };
        let count_max = count_max - event_count;
        let count = message.block(encoding_ids::DATA_CHANGE_NOTIFICATION_BINARY, |out| {
            let count_at = out.len();
            let mut count = 0u32;
            encode_len(0, out);
            while count < count_max && out.len() < len_max {
                let Some(index) = subscription.ready.get(subscription.ready_head).copied() else { break };
                let Some(item) = items.get_mut(index as usize).filter(|item| is_ready(item, place)) else {
                    subscription.ready_head += 1;
                    continue;
                };
                if !item.has(flag::REPORTING | flag::TRIGGERED) {
                    look_silently(index, place, items, pages, subscription);
                    if let Some(item) = items.get_mut(index as usize) {
                        item.flags &= !flag::READY;
                    }
                    subscription.ready_head += 1;
                    continue;
                }
                let fired = if item.is_plain() {
                    let Some(snapshot) = item.sample(pages) else {
                        subscription.ready_head += 1;
                        continue;
                    };
                    let passes = item.passes(&snapshot);
                    if passes {
                        let bits = if item.has(flag::SEMANTICS) { SEMANTICS_BITS } else { 0 };
                        let status = StatusCode(snapshot.status.0 | bits);
                        encode_snapshot(out, item.client_handle, &snapshot, status, item.timestamps);
                        // The first report has a value that was there before.
                        if count.is_multiple_of(sample_every) && !item.has(flag::FORCED) {
                            note(&mut written, now, snapshot.server);
                        }
                        item.remember(&snapshot);
                        item.flags &= !flag::SEMANTICS;
                        count += 1;
                    }
                    item.flags &= !(flag::DIRTY | flag::READY | flag::TRIGGERED);
                    subscription.ready_head += 1;
                    continue;
                } else {
                    super::durable::note(index, item, subscription);
                    let is_first = item.has(flag::FORCED);
                    let (encoded, newest, left) = encode_item(out, item, pages, count_max - count, len_max);
                    if count.is_multiple_of(sample_every) && !is_first {
                        note(&mut written, now, newest);
                    }
                    count += encoded;
                    if left {
                        break;
                    }
                    item.flags &= !(flag::READY | flag::TRIGGERED);
                    subscription.ready_head += 1;
                    encoded > 0
                };
                if fired {
                    fire_links(index, place, items, subscription);
                }
            }
            if let Some(gap) = out.get_mut(count_at..count_at + 4) {
                gap.copy_from_slice(&count.to_le_bytes());
            }
            encode_len(0, out);
            count
        });
        let says_something = message.finish();
        subscription.phase.observe(&written);
        compact(subscription);
        let values = count;
        let count = values + event_count;
        self.work.notifications += u64::from(count);
        if !says_something {
            pool.give(out);
            return None;
        }
        subscription.counters.data_changes += u32::from(values > 0);
        subscription.counters.events = subscription.counters.events.wrapping_add(event_count);
        subscription.notification_len = out.len() / count.max(1) as usize + 1;
        subscription.counters.notifications = subscription.counters.notifications.wrapping_add(count);
        Some(out)
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

    /// Cancels queued Publish requests by handle (Part 4 §5.7.5); returns how many.
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

    /// Gives waiting StatusChangeNotifications to queued requests.
    pub(super) fn send_farewells(&mut self, session: SessionKey, now: Now, responder: &mut dyn Responder) {
        let Some(Some(queue)) = self.queues.get_mut(session.0 as usize) else { return };
        while !queue.farewells.is_empty() {
            let Some(ticket) = queue.requests.pop_front() else { return };
            if let Some((id, sequence_number, status)) = queue.farewells.pop_front() {
                respond_status_change(responder, &ticket, now, id, sequence_number, status);
            }
        }
    }
}

fn is_ready(item: &Item, place: u32) -> bool {
    item.flags & (flag::READY | flag::ALIVE) == flag::READY | flag::ALIVE && item.subscription == place
}

/// Notes when a value was written, by the driver's clock.
#[inline]
fn note(written: &mut SmallVec<[i64; SAMPLES]>, now: Now, time: UtcTime) {
    if written.len() < SAMPLES && !time.is_null() {
        let age = now.utc.ticks().saturating_sub(time.ticks()).saturating_mul(100);
        written.push(i64::try_from(now.instant.as_nanos()).unwrap_or(i64::MAX).saturating_sub(age));
    }
}

/// Encodes what an item that is not plain has to say. Returns the number of notifications, the server time of the newest,
/// and whether some are left.
fn encode_item(
    out: &mut Vec<u8>,
    item: &mut Item,
    pages: &[std::sync::Arc<crate::space::page::Page>],
    count_max: u32,
    len_max: usize,
) -> (u32, UtcTime, bool) {
    let (mut written, mut newest) = (0, UtcTime::NULL);
    if item.is_queued() {
        while written < count_max && out.len() < len_max {
            let Some(sample) = item.ext.as_mut().and_then(|ext| ext.values.pop_front()) else { break };
            encode_sample(out, item, &sample, 0);
            newest = sample.server();
            written += 1;
        }
        let left = item.ext.as_ref().is_some_and(|ext| !ext.values.is_empty());
        return (written, newest, left);
    }
    if let Some(snapshot) = item.sample(pages) {
        // What a queue of more than one had left is older.
        let kept = item.ext.as_mut().and_then(|ext| ext.values.pop_front());
        if item.passes(&snapshot) {
            let bits = if item.has(flag::SEMANTICS) { SEMANTICS_BITS } else { 0 };
            item.remember(&snapshot);
            item.flags &= !flag::SEMANTICS;
            newest = snapshot.server;
            let sample = item.reported(snapshot);
            encode_sample(out, item, &sample, bits);
            written = 1;
        } else if let Some(kept) = kept {
            newest = kept.server();
            encode_sample(out, item, &kept, 0);
            written = 1;
        }
    }
    item.flags &= !flag::DIRTY;
    (written, newest, false)
}

/// Looks at an item in Sampling mode: if it has a new value, it fires the items that it triggers and keeps the value.
fn look_silently(
    index: u32,
    place: u32,
    items: &mut [Item],
    pages: &[std::sync::Arc<crate::space::page::Page>],
    subscription: &mut Subscription,
) {
    let Some(item) = items.get_mut(index as usize) else { return };
    if item.is_queued() {
        if item.has_samples() {
            fire_links(index, place, items, subscription);
        }
    } else if item.ext.as_ref().is_some_and(|ext| !ext.links.is_empty())
        && let Some(snapshot) = item.sample(pages)
    {
        if item.passes(&snapshot) {
            item.remember(&snapshot);
            fire_links(index, place, items, subscription);
        } else {
            item.flags &= !flag::DIRTY;
        }
    }
}

/// Makes the items ready that a triggering item fires (Part 4 §5.13.1.6).
pub(super) fn fire_links(index: u32, place: u32, items: &mut [Item], subscription: &mut Subscription) {
    let links = match items.get_mut(index as usize).and_then(|item| item.ext.as_mut()) {
        Some(ext) if !ext.links.is_empty() => core::mem::take(&mut ext.links),
        _ => return,
    };
    for linked in &links {
        if let Some(item) = items.get_mut(*linked as usize) {
            let waits = item.has(flag::DIRTY) || item.ext.as_ref().is_some_and(|ext| !ext.values.is_empty());
            if item.has(flag::EVENTS) {
                super::events::trigger(*linked, place, item, subscription);
                continue;
            }
            // Reporting items report on their own.
            if item.subscription == place
                && item.has(flag::ENABLED)
                && !item.has(flag::REPORTING)
                && waits
                && !item.has(flag::TRIGGERED)
            {
                item.flags |= flag::TRIGGERED;
                if !item.has(flag::READY) {
                    item.flags |= flag::READY;
                    subscription.ready.push(*linked);
                }
            }
        }
    }
    if let Some(ext) = items.get_mut(index as usize).and_then(|item| item.ext.as_mut()) {
        ext.links = links;
    }
}

/// Gives the room of finished entries back, without allocating.
fn compact(subscription: &mut Subscription) {
    if subscription.ready_head == subscription.ready.len() {
        subscription.ready.clear();
        subscription.ready_head = 0;
    } else if subscription.ready_head > subscription.ready.len() / 2 {
        subscription.ready.drain(..subscription.ready_head);
        subscription.ready_head = 0;
    }
}

/// Appends the type id and a good response header (Part 4 §7.33).
fn encode_header(out: &mut Vec<u8>, ticket: &Ticket, now: Now) {
    NodeId::numeric(0, encoding_ids::PUBLISH_RESPONSE_BINARY).encode(out);
    now.utc.encode(out);
    ticket.request_handle.encode(out);
    StatusCode::GOOD.encode(out);
    // No diagnostics, an empty string table and no additional header.
    out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0]);
}

/// Appends everything of the response before the NotificationMessage.
fn encode_before(
    out: &mut Vec<u8>,
    id: u32,
    available: impl ExactSizeIterator<Item = u32>,
    more_notifications: bool,
) {
    id.encode(out);
    encode_len(available.len(), out);
    available.for_each(|number| number.encode(out));
    more_notifications.encode(out);
}

/// Appends everything of the response after the NotificationMessage.
fn encode_after(out: &mut Vec<u8>, ticket: &Ticket) {
    ticket.results.as_slice().encode(out);
    encode_len(0, out);
}

pub(super) fn respond_notifications(
    responder: &mut dyn Responder,
    ticket: &Ticket,
    now: Now,
    subscription: &Subscription,
    sequence_number: u32,
) {
    let sent = &subscription.retransmission;
    responder.respond(ticket, &mut |out| {
        let message = sent.find(sequence_number).unwrap_or_default();
        // The heads of its chunks come on top.
        out.reserve_exact(message.len() + message.len() / 64 + 256);
        encode_header(out, ticket, now);
        encode_before(out, subscription.id, sent.sequence_numbers(), subscription.more_notifications);
        out.extend_from_slice(message);
        encode_after(out, ticket);
    });
}

fn respond_keep_alive(responder: &mut dyn Responder, ticket: &Ticket, now: Now, subscription: &Subscription) {
    responder.respond(ticket, &mut |out| {
        encode_header(out, ticket, now);
        encode_before(out, subscription.id, subscription.retransmission.sequence_numbers(), false);
        // The number that the next message with notifications will have.
        MessageWriter::begin(out, subscription.next_sequence_number, now.utc).finish();
        encode_after(out, ticket);
    });
}

fn respond_status_change(
    responder: &mut dyn Responder,
    ticket: &Ticket,
    now: Now,
    id: u32,
    sequence_number: u32,
    status: StatusCode,
) {
    responder.respond(ticket, &mut |out| {
        encode_header(out, ticket, now);
        encode_before(out, id, core::iter::empty(), false);
        let mut message = MessageWriter::begin(out, sequence_number, now.utc);
        message.block(encoding_ids::STATUS_CHANGE_NOTIFICATION_BINARY, |out| {
            status.encode(out);
            // An empty DiagnosticInfo.
            out.push(0);
            1
        });
        message.finish();
        encode_after(out, ticket);
    });
}
