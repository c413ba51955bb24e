//! Fair scheduling: long requests are processed in slices, and connections take turns (deficit round robin).
//!
//! A connection may spend a quantum of work units (see [`crate::work`]) per turn. A request that fits is answered at
//! once, in one pass and without a copy. A longer one is postponed: its bytes and its response so far are kept here,
//! and [`Shard::timer`](super::Shard::timer) continues it after publishing and all other due work. If a connection
//! exceeds its quantum because a single operation was long, the excess is deducted from its next quantum.
//!
//! Requests of one connection are answered in order, so that a Read after a Write gets the written value. Two kinds of
//! requests may overtake a postponed one: a Cancel, which must be able to end it, and a Publish, because its
//! subscriptions must not be late.

use super::Shard;
use crate::connection::outbox::finish;
use crate::ids::{ConnectionId, ReplyTo};
use crate::now::Now;
use crate::reply::Reply;
use crate::request::Request;
use crate::service::turns::{Backlog, Suspended, Waiting};
use crate::service::{Outcome, resume};
use taktwerk_types::StatusCode;

impl Shard {
    /// Queues a request if an earlier one is postponed. Returns false if it can be answered now.
    pub(super) fn waits(&mut self, id: ConnectionId, request_id: u32, body: &[u8], now: Now) -> bool {
        if !self.turns.is_busy(id) || self.turns.overtakes(id, body) {
            return false;
        }
        self.turns.wait(id, Waiting { request_id, body: body.to_vec(), arrived: now.instant });
        self.account_backlog(id);
        true
    }

    /// Gives turns to connections with a backlog.
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
            self.update_connection(id, now);
            self.check_account(id, now);
        }
    }

    /// Processes a connection's backlog, up to its allowance. Returns false if it must wait for its client.
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
            // Some requests are processed in shorter slices than a turn.
            if self.turns.backlogs.get(&id).is_some_and(|backlog| backlog.current.is_some()) {
                return true;
            }
        }
        true
    }

    /// Continues a postponed request.
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
                    connection.ensure_buffer(&mut self.output.buffers);
                    let start = connection.channel.begin(&mut connection.out);
                    connection.out.extend_from_slice(&response);
                    finish(connection, start, request_id, handle, now);
                }
            }
            // Services with lists never move a connection.
            Outcome::Deferred | Outcome::Move(_) => {}
        }
        self.after_request(now);
    }

    /// Subtracts the cost of a request from the connection's allowance.
    #[inline]
    pub(super) fn spend(&mut self, id: ConnectionId, units: i64) {
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.allowance -= units;
        }
        self.turns.spent += units;
        self.work.units += u64::try_from(units).unwrap_or(0);
    }

    /// Updates the charge for a connection's requests.
    pub(super) fn account_backlog(&mut self, id: ConnectionId) {
        let len = self.turns.backlogs.get(&id).map_or(0, Backlog::len);
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.account_backlog(len);
        }
    }
}
