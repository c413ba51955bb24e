//! Requests that were left, and those that wait behind them, by connection. The shard gives the turns.

use super::list::Paused;
use super::table::Service;
use crate::ids::{ConnectionId, ReplyTo};
use crate::request::Request;
use crate::session::SessionKey;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_schema as schema;
use taktwerk_types::{Decode, DecodeLimits, Decoder, IdentifierRef, Instant, NodeIdRef, Structure};

/// Units that one call of [`Shard::timer`](crate::Shard::timer) spends on requests: about a millisecond.
const TURN_UNITS: i64 = 40_000;
/// Units that a connection has per turn in any case: most requests fit.
const QUANTUM_MIN: i64 = 2_000;
/// Bytes of requests that wait behind one that was left. Beyond, the connection is not read any more.
const WAITING_LEN_MAX: usize = 16 << 10;

/// The requests that were left, and those that wait behind them.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(crate) backlogs: BTreeMap<ConnectionId, Backlog>,
    /// Whose turn it is next: every connection with a backlog, once, but for those whose client does not take what it was
    /// sent.
    pub(crate) order: VecDeque<ConnectionId>,
    pub(crate) turn_units: i64,
    pub(crate) quantum_min: i64,
    /// When units were spent last, and how many at that time.
    pub(crate) spent_at: Instant,
    pub(crate) spent: i64,
}

/// What a connection has to do.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) current: Option<Box<Suspended>>,
    /// In the order in which they came.
    pub(crate) waiting: VecDeque<Waiting>,
    /// The connection has used up its quantum: it is read again in the next turn.
    pub(crate) is_resting: bool,
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
    pub(crate) fn overtakes(&self, id: ConnectionId, body: &[u8]) -> bool {
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
