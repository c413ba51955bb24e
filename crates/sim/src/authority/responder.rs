//! A certificate authority without sockets: bytes and time in, bytes and deadlines out.

use super::http::{self, Malformed};
use super::{Authority, AuthorityFigures, Protocol, Work};
use crate::network::LinkId;
use core::cell::RefCell;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use taktwerk_types::Instant;

/// Time after which the authority closes a connection that has not ended.
const IDLE: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct Connection {
    input: Vec<u8>,
    output: Vec<u8>,
    closes_at: Instant,
    is_blocked: bool,
}

/// The process of an authority.
#[derive(Debug)]
pub(crate) struct Responder {
    authority: Authority,
    answer: Vec<u8>,
    /// A fault: additional processing time for each answer.
    slow: Duration,
    connections: BTreeMap<LinkId, Connection>,
    /// When connections are closed.
    deadlines: BTreeSet<(Instant, LinkId)>,
    /// Requests that wait for the one being processed; only without a processor.
    waiting: VecDeque<LinkId>,
    /// When the first of them is answered.
    ready_at: Option<Instant>,
    /// Connections that have bytes to send and whose sockets accept them.
    ready: BTreeSet<LinkId>,
    closing: VecDeque<LinkId>,
    figures: Rc<RefCell<AuthorityFigures>>,
    work: Work,
}

impl Responder {
    pub(crate) fn new(authority: Authority, figures: Rc<RefCell<AuthorityFigures>>) -> Self {
        let answer = http::answer(&authority);
        Self {
            authority,
            answer,
            slow: Duration::ZERO,
            connections: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            waiting: VecDeque::new(),
            ready_at: None,
            ready: BTreeSet::new(),
            closing: VecDeque::new(),
            figures,
            work: Work::default(),
        }
    }

    /// Each answer takes this much longer from now on.
    pub(crate) fn set_slow(&mut self, slow: Duration) {
        self.slow = slow;
    }

    pub(crate) fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.work)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn accepted(&mut self, link: LinkId, now: Instant) {
        let closes_at = now + IDLE;
        let connection = Connection { input: Vec::new(), output: Vec::new(), closes_at, is_blocked: false };
        self.connections.insert(link, connection);
        self.deadlines.insert((closes_at, link));
        let mut figures = self.figures.borrow_mut();
        figures.connections_max = figures.connections_max.max(self.connections.len() as u64);
    }

    pub(crate) fn closed(&mut self, link: LinkId) {
        self.ready.remove(&link);
        if let Some(connection) = self.connections.remove(&link) {
            self.deadlines.remove(&(connection.closes_at, link));
        }
    }

    /// Handles bytes of a connection. Without a processor, an answer takes the processing time and nothing else.
    pub(crate) fn receive(&mut self, link: LinkId, bytes: &[u8], now: Instant, has_processor: bool) {
        self.work.server.bytes_received += bytes.len() as u64;
        let Some(connection) = self.connections.get_mut(&link) else { return };
        connection.input.extend_from_slice(bytes);
        let mut requests = 0u64;
        loop {
            match http::complete(&connection.input) {
                Ok(Some(len)) => {
                    connection.input.drain(..len);
                    requests += 1;
                }
                Ok(None) => break,
                Err(Malformed) => {
                    self.closing.push_back(link);
                    break;
                }
            }
        }
        self.figures.borrow_mut().requests += requests;
        self.work.server.chunks_received += requests;
        let span = self.authority.processing + self.slow;
        for _ in 0..requests {
            if has_processor {
                self.work.span += span;
                self.answer(link);
            } else {
                self.waiting.push_back(link);
                self.ready_at.get_or_insert(now + span);
            }
        }
    }

    fn answer(&mut self, link: LinkId) {
        let Some(connection) = self.connections.get_mut(&link) else { return };
        connection.output.extend_from_slice(&self.answer);
        if !connection.is_blocked {
            self.ready.insert(link);
        }
        self.work.server.chunks_sent += 1;
        self.work.server.bytes_sent += self.answer.len() as u64;
        self.work.signed += u32::from(self.authority.protocol == Protocol::Ocsp);
        self.figures.borrow_mut().answers += 1;
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let idle = self.deadlines.first().map(|(at, _)| *at);
        self.ready_at.into_iter().chain(idle).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(at) = self.ready_at.filter(|at| *at <= now) {
            if let Some(link) = self.waiting.pop_front() {
                self.answer(link);
            }
            let next = at + self.authority.processing + self.slow;
            self.ready_at = (!self.waiting.is_empty()).then_some(next);
        }
        while let Some((at, link)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.pop_first();
            self.closing.push_back(link);
        }
    }

    /// Unsent bytes of a connection.
    pub(crate) fn transmit(&mut self, link: LinkId) -> Option<&mut Vec<u8>> {
        self.connections.get_mut(&link).map(|connection| &mut connection.output)
    }

    /// The next connection that has bytes to send and can send them.
    pub(crate) fn next_ready(&mut self) -> Option<LinkId> {
        while let Some(link) = self.ready.first().copied() {
            if self.connections.get(&link).is_some_and(|connection| !connection.output.is_empty()) {
                return Some(link);
            }
            self.ready.remove(&link);
        }
        None
    }

    /// A socket has stopped accepting bytes, or accepts them again.
    pub(crate) fn set_blocked(&mut self, link: LinkId, is_blocked: bool) {
        if let Some(connection) = self.connections.get_mut(&link) {
            connection.is_blocked = is_blocked;
            if is_blocked {
                self.ready.remove(&link);
            } else {
                self.ready.insert(link);
            }
        }
    }

    /// The next connection that the driver has to close.
    pub(crate) fn poll_close(&mut self) -> Option<LinkId> {
        let link = self.closing.pop_front()?;
        self.closed(link);
        Some(link)
    }
}
