//! A single connection on a link: the duration of a transfer. For predictions, and for comparison with an operating
//! system.

use super::Segment;
use super::config::Config;
use super::endpoint::{Endpoint, Event};
use crate::Profile;
use crate::emulator::{Counters, Fate, Line};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The transferred data: the client sends a request, the server responds, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of a request, at least 1.
    pub request: usize,
    /// Bytes of a response, at least 1.
    pub response: usize,
    /// Number of requests, one after the other.
    pub count: usize,
}

/// Results. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exchanged {
    /// From the SYN until the client can write.
    pub connected: u64,
    /// From the first byte of the first request to the last byte of the last response.
    pub took: u64,
    /// Duration of each request with its response.
    pub each: Vec<u64>,
    /// Counters of the two directions, client to server first.
    pub lines: [Counters; 2],
    /// Retransmitted segments of client and server.
    pub repetitions: [u64; 2],
    /// Number of simulated segments.
    pub segments: u64,
}

/// Why an exchange fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// There is no request, or an empty one.
    #[error("an exchange needs at least one request, with at least one byte in request and response")]
    Empty,
    /// A peer did not answer for too long, or the time limit was reached.
    #[error(
        "the exchange did not finish within {0} s of virtual time: check rate, loss and delay of the link"
    )]
    Unfinished(u64),
}

/// Maximum simulated time.
const LONGEST: u64 = 24 * 3600 * 1_000_000_000;

struct Pair<'a> {
    ends: [Option<Endpoint>; 2],
    lines: [Line; 2],
    flying: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Segments in flight, by number.
    segments: Vec<Option<Segment>>,
    spare: Vec<usize>,
    sequence: u64,
    now: u64,
    count: u64,
    config: &'a Config,
}

/// Sends requests and responses over a link.
///
/// # Errors
/// There is nothing to send, or the link loses everything.
pub fn exchange(
    link: &Profile,
    config: &Config,
    what: &Exchange,
    seed: u64,
) -> Result<Exchanged, ExchangeError> {
    if what.request == 0 || what.response == 0 || what.count == 0 {
        return Err(ExchangeError::Empty);
    }
    let mut pair = Pair {
        ends: [Some(Endpoint::connect(*config, 0)), None],
        lines: [Line::new(link.up.clone(), seed), Line::new(link.down.clone(), seed ^ 0x5bd1_e995)],
        flying: BinaryHeap::new(),
        segments: Vec::new(),
        spare: Vec::new(),
        sequence: 0,
        now: 0,
        count: 0,
        config,
    };
    let mut exchanged = Exchanged::default();
    // Bytes of the current message that are still to be written and to be read.
    let mut unwritten = [0usize; 2];
    let mut unread = [what.response, what.request];
    let mut began = None;
    pair.transmit(0);
    while pair.step() {
        for side in 0..2 {
            let Some(end) = &mut pair.ends[side] else { continue };
            while let Some(event) = end.poll_event() {
                match event {
                    Event::Connected => {
                        exchanged.connected = pair.now;
                        unwritten[0] = what.request;
                        began = Some(pair.now);
                    }
                    Event::Reset | Event::TimedOut => {
                        return Err(ExchangeError::Unfinished(pair.now / 1_000_000_000));
                    }
                    Event::Readable | Event::Writable => {}
                }
            }
            let readable = end.readable();
            end.read(readable);
            unread[side] = unread[side].saturating_sub(readable);
            if readable > 0 && unread[side] == 0 {
                if side == 1 {
                    unread[1] = what.request;
                    unwritten[1] = what.response;
                } else {
                    unread[0] = what.response;
                    exchanged.each.push(pair.now - began.unwrap_or_default());
                    if exchanged.each.len() == what.count {
                        exchanged.took = pair.now - exchanged.connected;
                        exchanged.lines = [pair.lines[0].counters(), pair.lines[1].counters()];
                        let repetitions =
                            |end: &Option<Endpoint>| end.as_ref().map_or(0, Endpoint::repetitions);
                        exchanged.repetitions = [repetitions(&pair.ends[0]), repetitions(&pair.ends[1])];
                        exchanged.segments = pair.count;
                        return Ok(exchanged);
                    }
                    began = Some(pair.now);
                    unwritten[0] = what.request;
                }
            }
        }
        for (side, unwritten) in unwritten.iter_mut().enumerate() {
            let Some(end) = &mut pair.ends[side] else { continue };
            *unwritten -= end.write(*unwritten);
            pair.transmit(side);
        }
    }
    Err(ExchangeError::Unfinished(pair.now / 1_000_000_000))
}

impl Pair<'_> {
    /// Puts the segments of an endpoint on its line.
    fn transmit(&mut self, side: usize) {
        let Some(end) = &mut self.ends[side] else { return };
        while let Some(segment) = end.poll_transmit(self.now) {
            self.count += 1;
            let line = &mut self.lines[side];
            let Fate::Arrives(at) = line.send(self.now, segment.packet_len(Config::HEADERS)) else {
                continue;
            };
            let twice = line.twice();
            for _ in 0..=usize::from(twice) {
                let slot = self.spare.pop().unwrap_or(self.segments.len());
                if slot == self.segments.len() {
                    self.segments.push(None);
                }
                self.segments[slot] = Some(segment);
                self.sequence += 1;
                self.flying.push(Reverse((at, self.sequence << 1 | (1 - side) as u64, slot)));
            }
        }
    }

    /// Processes the next arrival or timeout.
    fn step(&mut self) -> bool {
        let timer = |end: &Option<Endpoint>| end.as_ref().and_then(Endpoint::poll_timeout);
        let timers = [timer(&self.ends[0]), timer(&self.ends[1])].into_iter().flatten().min();
        let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
        let Some(at) = timers.into_iter().chain(arrival).min().filter(|at| *at < LONGEST) else {
            return false;
        };
        self.now = self.now.max(at);
        if arrival.is_some_and(|arrival| arrival <= at) {
            let Some(Reverse((_, key, slot))) = self.flying.pop() else { return false };
            let to = (key & 1) as usize;
            self.spare.push(slot);
            let Some(segment) = self.segments.get_mut(slot).and_then(Option::take) else { return true };
            match &mut self.ends[to] {
                Some(end) => end.receive(&segment, self.now),
                none => *none = segment.syn.then(|| Endpoint::accept(*self.config, &segment, self.now)),
            }
            // Before the application wakes up, as in an operating system.
            self.transmit(to);
        } else {
            for end in self.ends.iter_mut().flatten() {
                end.handle_timeout(self.now);
            }
        }
        true
    }
}
