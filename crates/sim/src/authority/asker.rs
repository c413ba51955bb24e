//! Asks the authorities of a chain about certificates, without sockets.
//!
//! Each check has one connection at a time. Checks do not wait for each other.

use super::{AuthorityFigures, Protocol, Query, Unknown, Verdict, Work, http};
use crate::network::LinkId;
use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use taktwerk_types::Instant;

#[derive(Debug)]
struct Check {
    /// The place of the authority that is asked.
    place: usize,
    since: Instant,
    until: Instant,
    link: Option<LinkId>,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// The process that asks for one server or one group of clients.
#[derive(Debug)]
pub(crate) struct Asker {
    chain: Rc<[Query]>,
    checks: BTreeMap<u64, Check>,
    of_link: BTreeMap<LinkId, u64>,
    deadlines: BTreeSet<(Instant, u64)>,
    connecting: VecDeque<u64>,
    closing: VecDeque<LinkId>,
    done: VecDeque<(u64, Verdict)>,
    /// Until when the revocation list of an authority is valid.
    lists: BTreeMap<usize, Instant>,
    /// Of each authority of the chain.
    figures: Vec<Rc<RefCell<AuthorityFigures>>>,
    work: Work,
}

impl Asker {
    pub(crate) fn new(chain: Rc<[Query]>, figures: Vec<Rc<RefCell<AuthorityFigures>>>) -> Self {
        Self {
            chain,
            checks: BTreeMap::new(),
            of_link: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            connecting: VecDeque::new(),
            closing: VecDeque::new(),
            done: VecDeque::new(),
            lists: BTreeMap::new(),
            figures,
            work: Work::default(),
        }
    }

    pub(crate) fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.work)
    }

    /// Begins a check.
    pub(crate) fn check(&mut self, ticket: u64, now: Instant) {
        self.ask(ticket, 0, now);
    }

    /// Asks the authority at a place, or the next one if its list is still valid.
    fn ask(&mut self, ticket: u64, mut place: usize, now: Instant) {
        while self.lists.get(&place).is_some_and(|until| *until > now) {
            place += 1;
        }
        let Some(query) = self.chain.get(place) else {
            return self.done.push_back((ticket, Ok(())));
        };
        let output = http::request(&query.authority);
        let until = now + query.timeout;
        self.deadlines.insert((until, ticket));
        let check = Check { place, since: now, until, link: None, input: Vec::new(), output };
        self.checks.insert(ticket, check);
        self.connecting.push_back(ticket);
    }

    /// The next check that needs a connection, with the authority that it asks.
    pub(crate) fn poll_connect(&mut self) -> Option<(u64, Query)> {
        loop {
            let ticket = self.connecting.pop_front()?;
            let place = self.checks.get(&ticket).map(|check| check.place);
            if let Some(query) = place.and_then(|place| self.chain.get(place)) {
                return Some((ticket, query.clone()));
            }
        }
    }

    /// The driver has begun to connect for a check.
    pub(crate) fn opening(&mut self, ticket: u64, link: LinkId) {
        if let Some(check) = self.checks.get_mut(&ticket) {
            check.link = Some(link);
            self.of_link.insert(link, ticket);
            self.work.client.chunks_sent += 1;
            self.work.client.bytes_sent += check.output.len() as u64;
        }
    }

    /// Unsent bytes of a connection.
    pub(crate) fn transmit(&mut self, link: LinkId) -> Option<&mut Vec<u8>> {
        let ticket = self.of_link.get(&link)?;
        self.checks.get_mut(ticket).map(|check| &mut check.output)
    }

    pub(crate) fn receive(&mut self, link: LinkId, bytes: &[u8], now: Instant) {
        self.work.client.bytes_received += bytes.len() as u64;
        let Some(ticket) = self.of_link.get(&link).copied() else { return };
        let Some(check) = self.checks.get_mut(&ticket) else { return };
        check.input.extend_from_slice(bytes);
        match http::complete(&check.input) {
            Ok(None) => {}
            Ok(Some(_)) => {
                self.work.client.chunks_received += 1;
                self.work.verified += 1;
                let Some(check) = self.end(ticket) else { return };
                if let Some(figures) = self.figures.get(check.place) {
                    let nanos = u64::try_from(now.since(check.since).as_nanos()).unwrap_or(u64::MAX);
                    figures.borrow_mut().times.record(nanos);
                }
                if let Some(Protocol::Crl(valid)) =
                    self.chain.get(check.place).map(|query| query.authority.protocol)
                {
                    self.lists.insert(check.place, now + valid);
                }
                self.ask(ticket, check.place + 1, now);
            }
            Err(http::Malformed) => self.fail(ticket, now),
        }
    }

    /// A connection is gone, or could not be opened.
    pub(crate) fn closed(&mut self, link: LinkId, now: Instant) {
        if let Some(ticket) = self.of_link.remove(&link) {
            self.fail(ticket, now);
        }
    }

    /// Ends the request of a check.
    fn end(&mut self, ticket: u64) -> Option<Check> {
        let check = self.checks.remove(&ticket)?;
        self.deadlines.remove(&(check.until, ticket));
        self.connecting.retain(|other| *other != ticket);
        if let Some(link) = check.link {
            self.of_link.remove(&link);
            self.closing.push_back(link);
        }
        Some(check)
    }

    /// An authority has not answered.
    fn fail(&mut self, ticket: u64, now: Instant) {
        let Some(check) = self.end(ticket) else { return };
        if let Some(figures) = self.figures.get(check.place) {
            figures.borrow_mut().unanswered += 1;
        }
        match self.chain.get(check.place).map(|query| query.unknown) {
            Some(Unknown::Accept) => self.ask(ticket, check.place + 1, now),
            _ => self.done.push_back((ticket, Err(check.place))),
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, ticket)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.fail(ticket, now);
        }
    }

    /// The next finished check.
    pub(crate) fn poll_done(&mut self) -> Option<(u64, Verdict)> {
        self.done.pop_front()
    }

    /// The next connection that the driver has to close.
    pub(crate) fn poll_close(&mut self) -> Option<LinkId> {
        self.closing.pop_front()
    }
}
