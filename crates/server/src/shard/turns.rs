//! Fair turns: a long request is worked on in slices, and connections take turns (deficit round robin).
//!
//! A connection may spend a quantum of work units (see [`crate::work`]) per turn. A request that fits is answered where it
//! was received, in one pass and without a copy. One that does not is left: its bytes and its response so far are kept
//! here, and [`Shard::timer`](super::Shard::timer) goes on with it when publishing and everything else that is due has
//! been done. What a connection spends beyond its quantum, because a single operation was long, it has less the next time.
//!
//! Requests of one connection are answered one after the other: whoever writes and then reads gets what was written. Two
//! kinds of request may overtake one that was left. A Cancel must be able to end it, and a Publish has nothing to do with
//! it: its subscriptions would be late.

use super::Shard;
use super::connection::Connection;
use super::outbox::finish;
use crate::ids::{ConnectionId, ReplyTo};
use crate::now::Now;
use crate::service::list::Paused;
use crate::service::reply::Reply;
use crate::service::request::Request;
use crate::service::table::Service;
use crate::service::{Outcome, resume};
use crate::session::SessionKey;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_schema as schema;
use taktwerk_types::{
    Decode, DecodeLimits, Decoder, IdentifierRef, Instant, NodeIdRef, StatusCode, Structure,
};

/// Units that one call of [`Shard::timer`] spends on requests: about a millisecond.
const TURN_UNITS: i64 = 40_000;
/// Units that a connection has per turn in any case: most requests fit.
const QUANTUM_MIN: i64 = 2_000;
/// Bytes of requests that wait behind one that was left. Beyond, the connection is not read any more.
const WAITING_LEN_MAX: usize = 16 << 10;

/// The requests that were left, and those that wait behind them.
#[derive(Debug)]
pub(crate) struct Turns {
    backlogs: BTreeMap<ConnectionId, Backlog>,
    /// Whose turn it is next: every connection with a backlog, once, but for those whose client does not take what it was
    /// sent.
    order: VecDeque<ConnectionId>,
    turn_units: i64,
    quantum_min: i64,
    /// When units were spent last, and how many at that time.
    spent_at: Instant,
    spent: i64,
}

/// What a connection has to do.
#[derive(Debug, Default)]
struct Backlog {
    current: Option<Box<Suspended>>,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
    /// The connection has used up its quantum: it is read again in the next turn.
    is_resting: bool,
}

/// A request that was left.
#[derive(Debug)]
pub(crate) struct Suspended {
    pub(crate) request_id: u32,
    pub(crate) handle: u32,
    pub(crate) session: SessionKey,
    pub(crate) service: &'static Service,
    pub(crate) paused: Box<Paused>,
    /// The whole request.
    pub(crate) body: Vec<u8>,
    /// The response, as far as it got.
    pub(crate) response: Vec<u8>,
    /// When it is given up.
    pub(crate) deadline: Instant,
}

/// A request that waits behind another one.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request_id: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) arrived: Instant,
}

impl Backlog {
    fn len(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(|waiting| waiting.body.capacity()).sum();
        let current = self.current.as_ref();
        waiting + current.map_or(0, |current| current.body.capacity() + current.response.capacity())
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            backlogs: BTreeMap::new(),
            order: VecDeque::new(),
            turn_units: TURN_UNITS,
            quantum_min: QUANTUM_MIN,
            spent_at: Instant::ZERO,
            spent: 0,
        }
    }
}

impl Turns {
    /// Sets how much is done in a turn.
    #[cfg(test)]
    pub(crate) fn set_units(&mut self, turn: i64, quantum_min: i64) {
        (self.turn_units, self.quantum_min) = (turn, quantum_min);
    }

    /// Whether there is nothing to do.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether a request of a connection has to wait.
    #[inline]
    pub(crate) fn is_busy(&self, id: ConnectionId) -> bool {
        !self.backlogs.is_empty() && self.backlogs.contains_key(&id)
    }

    /// Whether more requests of a connection are wanted.
    #[inline]
    pub(crate) fn accepts(&self, id: ConnectionId) -> bool {
        self.backlogs.is_empty()
            || self.backlogs.get(&id).is_none_or(|backlog| {
                let waiting: usize = backlog.waiting.iter().map(|waiting| waiting.body.len()).sum();
                !backlog.is_resting && waiting < WAITING_LEN_MAX
            })
    }

    /// Units that a connection may spend on what it has just sent.
    #[inline]
    pub(crate) fn quantum(&mut self, now: Instant) -> i64 {
        if self.spent_at != now {
            (self.spent_at, self.spent) = (now, 0);
        }
        self.share(self.turn_units - self.spent)
    }

    /// A connection's share of what can be spent.
    #[inline]
    fn share(&self, units: i64) -> i64 {
        let busy = self.order.len() as i64 + 1;
        (units / busy).max(self.quantum_min)
    }

    fn backlog(&mut self, id: ConnectionId) -> &mut Backlog {
        let Self { backlogs, order, .. } = self;
        backlogs.entry(id).or_insert_with(|| {
            order.push_back(id);
            Backlog::default()
        })
    }

    /// Leaves a request until the connection's next turn.
    pub(crate) fn suspend(&mut self, id: ConnectionId, request: Suspended) {
        self.backlog(id).current = Some(Box::new(request));
    }

    /// Lets a request wait for those before it.
    pub(crate) fn wait(&mut self, id: ConnectionId, request: Waiting) {
        self.backlog(id).waiting.push_back(request);
    }

    /// Puts a request before those that wait.
    pub(crate) fn hold(&mut self, id: ConnectionId, request: Waiting) {
        self.backlog(id).waiting.push_front(request);
    }

    /// Lets a connection rest until the next turn.
    pub(crate) fn rest(&mut self, id: ConnectionId) {
        self.backlog(id).is_resting = true;
    }

    /// The client of a connection takes bytes again.
    pub(crate) fn unblock(&mut self, id: ConnectionId) {
        if self.is_busy(id) && !self.order.contains(&id) {
            self.order.push_back(id);
        }
    }

    /// Forgets a connection; gives the requests that wait.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> VecDeque<Waiting> {
        let Some(backlog) = self.backlogs.remove(&id) else { return VecDeque::new() };
        self.order.retain(|other| *other != id);
        backlog.waiting
    }

    /// Whether a request may overtake the one that was left.
    fn overtakes(&self, id: ConnectionId, body: &[u8]) -> bool {
        let mut decoder = Decoder::new(body, DecodeLimits::DEFAULT);
        let type_id = match NodeIdRef::decode(&mut decoder) {
            Ok(NodeIdRef { namespace_index: 0, identifier: IdentifierRef::Numeric(id) }) => id,
            _ => return false,
        };
        match type_id {
            schema::CancelRequest::BINARY_ENCODING_ID => true,
            // What waits may be the CreateSubscription that it is for.
            schema::PublishRequest::BINARY_ENCODING_ID => {
                self.backlogs.get(&id).is_none_or(|backlog| backlog.waiting.is_empty())
            }
            _ => false,
        }
    }

    /// Takes the requests of a session out that were left, or the one of them with a handle.
    pub(crate) fn cancel(&mut self, session: SessionKey, handle: Option<u32>) -> Vec<ReplyTo> {
        let mut cancelled = Vec::new();
        for (id, backlog) in &mut self.backlogs {
            let is_meant = |current: &Suspended| {
                current.session == session && handle.is_none_or(|handle| handle == current.handle)
            };
            if let Some(current) = backlog.current.take_if(|current| is_meant(current)) {
                let Suspended { request_id, handle: request_handle, .. } = *current;
                cancelled.push(ReplyTo { connection: *id, request_id, request_handle });
            }
        }
        cancelled
    }

    /// The same of the requests of a connection that wait behind it, by their handle.
    pub(crate) fn cancel_waiting(
        &mut self,
        id: ConnectionId,
        limits: DecodeLimits,
        is_meant: impl Fn(&Request<'_>) -> bool,
    ) -> Vec<ReplyTo> {
        let mut cancelled = Vec::new();
        let Some(backlog) = self.backlogs.get_mut(&id) else { return cancelled };
        backlog.waiting.retain(|waiting| match Request::parse(&waiting.body, limits) {
            Ok(request) if is_meant(&request) => {
                let (request_id, request_handle) = (waiting.request_id, request.header.handle);
                cancelled.push(ReplyTo { connection: id, request_id, request_handle });
                false
            }
            _ => true,
        });
        cancelled
    }
}

impl Shard {
    /// Lets a request wait if one before it was left. False if it is to be answered now.
    pub(super) fn waits(&mut self, id: ConnectionId, request_id: u32, body: &[u8], now: Now) -> bool {
        if !self.turns.is_busy(id) || self.turns.overtakes(id, body) {
            return false;
        }
        self.turns.wait(id, Waiting { request_id, body: body.to_vec(), arrived: now.instant });
        self.account_backlog(id);
        true
    }

    /// Gives connections with a backlog their turns.
    pub(super) fn take_turns(&mut self, now: Now) {
        let mut left = self.turns.turn_units;
        for _ in 0..self.turns.order.len() {
            if left <= 0 {
                return;
            }
            let Some(id) = self.turns.order.pop_front() else { return };
            let quantum = self.turns.share(left);
            let Some(connection) = self.connections.get_mut(id.0) else {
                self.turns.remove(id);
                continue;
            };
            connection.refill(quantum, now.instant);
            let before = connection.allowance;
            let is_blocked = !self.proceed(id, now);
            if let Some(connection) = self.connections.get(id.0) {
                left -= before - connection.allowance;
            }
            if self.turns.is_busy(id) && !is_blocked {
                self.turns.order.push_back(id);
            }
            self.account_backlog(id);
            self.settle(id, now);
            self.check_account(id, now);
        }
    }

    /// Goes on with what a connection has to do, as far as its allowance goes. False if it has to wait for its client.
    fn proceed(&mut self, id: ConnectionId, now: Now) -> bool {
        let send_budget = self.shared.config().limits.send_budget;
        while let Some(connection) = self.connections.get(id.0) {
            if connection.is_ending() {
                self.turns.remove(id);
                return true;
            }
            if connection.is_moving || connection.unsent_len() > send_budget {
                return false;
            }
            if connection.allowance <= 0 {
                return true;
            }
            let Some(backlog) = self.turns.backlogs.get_mut(&id) else { return true };
            backlog.is_resting = false;
            if let Some(suspended) = backlog.current.take() {
                self.go_on(id, *suspended, now);
            } else if let Some(waiting) = backlog.waiting.pop_front() {
                self.answer(id, waiting.request_id, &waiting.body, waiting.arrived, now);
            } else {
                self.turns.remove(id);
                return true;
            }
        }
        true
    }

    /// Goes on with a request that was left.
    fn go_on(&mut self, id: ConnectionId, suspended: Suspended, now: Now) {
        let Suspended { request_id, handle, session, service, paused, body, mut response, deadline } =
            suspended;
        let to = ReplyTo { connection: id, request_id, request_handle: handle };
        if deadline <= now.instant {
            return self.context(None, now).outbox.fault_to(to, StatusCode::BAD_TIMEOUT);
        }
        let limits = self.shared.config().limits.decode();
        let (Some(peer), Ok(request)) = (self.peer(id, request_id), Request::parse(&body, limits)) else {
            return;
        };
        let mut reply = Reply::resume(&mut response, handle, now.utc);
        let units = self.connections.get(id.0).map_or(0, |connection| connection.allowance);
        let mut cx = self.context(Some(peer), now);
        cx.units = units;
        let outcome = resume(&mut cx, service, session, *paused, &request, &mut reply);
        let after = cx.units;
        self.spend(id, units - after);
        match outcome {
            Outcome::Suspended(session, paused) => {
                self.work.suspensions += 1;
                let left =
                    Suspended { request_id, handle, session, service, paused, body, response, deadline };
                self.turns.suspend(id, left);
            }
            Outcome::Answered => {
                if let Some(connection) = self.connections.get_mut(id.0) {
                    connection.ensure_buffer(&mut self.buffers);
                    let start = connection.channel.begin(&mut connection.out);
                    connection.out.extend_from_slice(&response);
                    finish(connection, start, request_id, handle, now);
                }
            }
            // No service with a list moves a connection.
            Outcome::Deferred | Outcome::Move(_) => {}
        }
        self.after_request(now);
    }

    /// Takes what a request has cost from the connection's allowance.
    #[inline]
    pub(super) fn spend(&mut self, id: ConnectionId, units: i64) {
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.allowance -= units;
        }
        self.turns.spent += units;
        self.work.units += u64::try_from(units).unwrap_or(0);
    }

    /// Brings the charge for a connection's requests up to date.
    pub(super) fn account_backlog(&mut self, id: ConnectionId) {
        let len = self.turns.backlogs.get(&id).map_or(0, Backlog::len);
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.account_backlog(len);
        }
    }
}

impl Connection {
    /// Gives the connection what it may spend in this turn. Debts of the turn before are taken from it.
    #[inline]
    pub(super) fn refill(&mut self, quantum: i64, now: Instant) {
        self.allowance = (self.allowance + quantum).min(quantum);
        self.refilled = now;
    }
}
