//! The receiving half: received data, and when to acknowledge it.

use super::config::Config;
use super::{SACK_MAX, Segment};
use crate::emulator::nanos;
use std::collections::BTreeMap;

/// Number of segments that are acknowledged at once at the start (Linux: TCP_MAX_QUICKACKS).
const QUICK: u32 = 16;
/// Maximum number of separate ranges beyond gaps. A window of small segments of which every second one arrives has no
/// more.
const RANGES_MAX: usize = 4096;

#[derive(Debug, Clone)]
pub(super) struct Receiver {
    /// Everything before this offset has arrived, including the end of the stream.
    next: u64,
    /// The end of the stream, if known.
    end: Option<u64>,
    /// Offset up to which the application has read.
    read: u64,
    /// Received ranges beyond a gap.
    ahead: BTreeMap<u64, u64>,
    /// Recently changed ranges, newest first: the order of SACK blocks (RFC 2018 §4).
    recent: [Option<u64>; SACK_MAX],
    /// Last acknowledged offset.
    said: u64,
    window_end: u64,
    quick: u32,
    /// Whether answers are sent within the time of a delayed acknowledgement.
    is_interactive: bool,
    last_data: Option<u64>,
    pushed: bool,
    pub(super) ack_now: bool,
    pub(super) ack_at: Option<u64>,
}

impl Receiver {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            next: 0,
            end: None,
            read: 0,
            ahead: BTreeMap::new(),
            recent: [None; SACK_MAX],
            said: 0,
            window_end: config.receive_buffer as u64,
            quick: QUICK,
            is_interactive: false,
            last_data: None,
            pushed: false,
            ack_now: false,
            ack_at: None,
        }
    }

    /// Number of bytes that have arrived in order.
    pub(super) fn arrived(&self) -> u64 {
        match self.end {
            Some(end) if self.next > end => end,
            _ => self.next,
        }
    }

    pub(super) fn readable(&self) -> usize {
        (self.arrived() - self.read) as usize
    }

    /// Whether the stream has ended and everything was read.
    pub(super) fn is_finished(&self) -> bool {
        self.end.is_some_and(|end| self.next > end && self.read == end)
    }

    /// Processes a segment with data or the end of the stream.
    pub(super) fn receive(&mut self, segment: &Segment, config: &Config, now: u64) {
        if segment.end() == segment.sequence {
            return;
        }
        if segment.fin {
            self.end = Some(segment.sequence + segment.len as u64);
        }
        self.last_data = Some(now);
        self.pushed |= segment.push || segment.len < config.mss;
        // Ignore data beyond the offered window.
        let limit = self.window_end + u64::from(segment.fin);
        let (from, to) = (segment.sequence.max(self.next), segment.end().min(limit));
        if to <= self.next {
            // A retransmission: acknowledge it at once.
            self.ack_now = true;
            return;
        }
        let had_gap = !self.ahead.is_empty();
        if from > self.next {
            self.keep(from, to);
            self.ack_now = true;
            return;
        }
        self.next = to;
        while let Some(entry) = self.ahead.first_entry() {
            if *entry.key() > self.next {
                break;
            }
            self.next = self.next.max(entry.remove());
        }
        let unsaid = self.next - self.said;
        let is_quick = self.quick > 0 && !self.is_interactive;
        if had_gap || is_quick || segment.fin || unsaid > config.mss as u64 || config.delayed_ack.is_zero() {
            self.ack_now = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now.saturating_add(nanos(config.delayed_ack)));
        }
    }

    /// Stores a range beyond a gap.
    fn keep(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to);
        while let Some((&start, &end)) = self.ahead.range(..=to).next_back() {
            if end < from {
                break;
            }
            self.ahead.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        if self.ahead.len() < RANGES_MAX {
            self.ahead.insert(from, to);
            let old = self.recent.into_iter().flatten().filter(|start| *start != from);
            let mut recent = [None; SACK_MAX];
            recent.iter_mut().zip(core::iter::once(from).chain(old)).for_each(|(to, from)| *to = Some(from));
            self.recent = recent;
        }
    }

    /// The application reads bytes.
    pub(super) fn read(&mut self, bytes: usize, config: &Config) {
        self.read += bytes.min(self.readable()) as u64;
        let is_drained = self.readable() == 0;
        if self.ack_at.is_some() && is_drained && self.pushed && !self.is_interactive {
            self.ack_now = true;
        }
        // Small window updates are not announced (RFC 9293 §3.8.6.2.2).
        if (self.offer(config) - self.window_end) * 2 >= config.receive_buffer as u64 {
            self.ack_now = true;
        }
    }

    fn offer(&self, config: &Config) -> u64 {
        (self.read + config.receive_buffer as u64).max(self.window_end)
    }

    /// Writes the acknowledgement fields of a segment.
    pub(super) fn say(&mut self, config: &Config, segment: &mut Segment) {
        let offer = self.offer(config);
        // Opening the window by less than a segment would cause small segments.
        if offer - self.window_end >= (config.mss as u64).min(config.receive_buffer as u64 / 2) {
            self.window_end = offer;
        }
        segment.ack = true;
        segment.acknowledged = self.next;
        segment.window_end = self.window_end;
        let blocks =
            self.recent.into_iter().flatten().filter_map(|start| Some((start, *self.ahead.get(&start)?)));
        segment.sack.iter_mut().zip(blocks).for_each(|(to, block)| *to = Some(block));
        self.said = self.next;
        self.ack_now = false;
        self.ack_at = None;
        self.pushed = false;
        self.quick = self.quick.saturating_sub(1);
    }

    /// Called when data is sent.
    pub(super) fn sends(&mut self, config: &Config, now: u64) {
        if self.last_data.is_some_and(|at| now - at < nanos(config.delayed_ack)) {
            self.is_interactive = true;
        }
    }
}
