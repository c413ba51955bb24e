//! Postponed requests, and those queued behind them, by connection. The shard gives the turns.

use super::list::Paused;
use super::table::Service;
use crate::ids::{ConnectionId, ReplyTo};
use crate::request::Request;
use crate::session::SessionKey;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_schema as schema;
use taktwerk_types::{Decode, DecodeLimits, Decoder, IdentifierRef, Instant, NodeIdRef, Structure};

/// Work units that one call of [`Shard::timer`](crate::Shard::timer) spends on requests: about a millisecond.
const TURN_UNITS: i64 = 40_000;
/// Minimum work units of a connection per turn: enough for most requests.
const QUANTUM_MIN: i64 = 2_000;
/// Maximum bytes of requests queued behind a postponed one. Beyond, the connection is no longer read.
const WAITING_LEN_MAX: usize = 16 << 10;

/// The postponed requests, and those queued behind them.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(crate) backlogs: BTreeMap<ConnectionId, Backlog>,
    /// The order of turns: every connection with a backlog once, except those whose client does not read its responses.
    pub(crate) order: VecDeque<ConnectionId>,
    pub(crate) turn_units: i64,
    pub(crate) quantum_min: i64,
    /// When work units were last spent, and how many.
    pub(crate) spent_at: Instant,
    pub(crate) spent: i64,
}

/// The backlog of a connection.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) current: Option<Box<Suspended>>,
    /// In order of arrival.
    pub(crate) waiting: VecDeque<Waiting>,
    /// The connection has used up its quantum: it is read again in the next turn.
    pub(crate) is_resting: bool,
}

/// A postponed request.
#[derive(Debug)]
pub(crate) struct Suspended {
    pub(crate) request_id: u32,
    pub(crate) handle: u32,
    pub(crate) session: SessionKey,
    pub(crate) service: &'static Service,
    pub(crate) paused: Box<Paused>,
    /// The whole request.
    pub(crate) body: Vec<u8>,
    /// The response so far.
    pub(crate) response: Vec<u8>,
    /// The request's deadline.
    pub(crate) deadline: Instant,
}

/// A request queued behind another one.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request_id: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) arrived: Instant,
}

impl Backlog {
    pub(crate) fn len(&self) -> usize {
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
    /// Sets the work per turn.
    #[cfg(test)]
    pub(crate) fn set_units(&mut self, turn: i64, quantum_min: i64) {
        (self.turn_units, self.quantum_min) = (turn, quantum_min);
    }

    /// Whether there is no backlog.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether a request of a connection must be queued.
    #[inline]
    pub(crate) fn is_busy(&self, id: ConnectionId) -> bool {
        !self.backlogs.is_empty() && self.backlogs.contains_key(&id)
    }

    /// Whether further requests of a connection should be read.
    #[inline]
    pub(crate) fn accepts(&self, id: ConnectionId) -> bool {
        self.backlogs.is_empty()
            || self.backlogs.get(&id).is_none_or(|backlog| {
                let waiting: usize = backlog.waiting.iter().map(|waiting| waiting.body.len()).sum();
                !backlog.is_resting && waiting < WAITING_LEN_MAX
            })
    }

    /// Work units that a connection may spend on newly received requests.
    #[inline]
    pub(crate) fn quantum(&mut self, now: Instant) -> i64 {
        if self.spent_at != now {
            (self.spent_at, self.spent) = (now, 0);
        }
        self.share(self.turn_units - self.spent)
    }

    /// A connection's share of the available work units.
    #[inline]
    pub(crate) fn share(&self, units: i64) -> i64 {
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

    /// Postpones a request until the connection's next turn.
    pub(crate) fn suspend(&mut self, id: ConnectionId, request: Suspended) {
        self.backlog(id).current = Some(Box::new(request));
    }

    /// Queues a request behind earlier ones.
    pub(crate) fn wait(&mut self, id: ConnectionId, request: Waiting) {
        self.backlog(id).waiting.push_back(request);
    }

    /// Queues a request in front of the others.
    pub(crate) fn hold(&mut self, id: ConnectionId, request: Waiting) {
        self.backlog(id).waiting.push_front(request);
    }

    /// Stops reading a connection until the next turn.
    pub(crate) fn rest(&mut self, id: ConnectionId) {
        self.backlog(id).is_resting = true;
    }

    /// The client of a connection reads again.
    pub(crate) fn unblock(&mut self, id: ConnectionId) {
        if self.is_busy(id) && !self.order.contains(&id) {
            self.order.push_back(id);
        }
    }

    /// Removes a connection. Returns its queued requests.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> VecDeque<Waiting> {
        let Some(backlog) = self.backlogs.remove(&id) else { return VecDeque::new() };
        self.order.retain(|other| *other != id);
        backlog.waiting
    }

    /// Whether a request may overtake the postponed one.
    pub(crate) fn overtakes(&self, id: ConnectionId, body: &[u8]) -> bool {
        let mut decoder = Decoder::new(body, DecodeLimits::DEFAULT);
        let type_id = match NodeIdRef::decode(&mut decoder) {
            Ok(NodeIdRef { namespace_index: 0, identifier: IdentifierRef::Numeric(id) }) => id,
            _ => return false,
        };
        match type_id {
            schema::CancelRequest::BINARY_ENCODING_ID => true,
            // A queued request may be the CreateSubscription that it refers to.
            schema::PublishRequest::BINARY_ENCODING_ID => {
                self.backlogs.get(&id).is_none_or(|backlog| backlog.waiting.is_empty())
            }
            _ => false,
        }
    }

    /// Removes the postponed requests of a session, or the one with a handle.
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

    /// Removes the queued requests of a session on a connection, or the one with a handle.
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
