//! One direction of a connection: what TCP makes of a [`Path`].
//!
//! The bytes stay in the sender's buffer until they are acknowledged, so segments are only ranges of offsets. Segments
//! overtake each other and get lost; the receiver reads the bytes in order (head-of-line blocking).

use super::path::Path;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_types::Instant;

/// Repeating a lost segment is never put off longer than this (Linux: TCP_RTO_MAX).
const RETRANSMISSION_MAX: Duration = Duration::from_secs(120);

/// What crossed the wire in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes that the application wrote.
    pub stream_bytes: u64,
    /// Bytes on the wire: with framing and repetitions, without acknowledgements.
    pub wire_bytes: u64,
    /// Segments sent, with repetitions.
    pub segments: u64,
    /// Segments that were sent again.
    pub repetitions: u64,
}

/// A part of the stream on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    /// Zero: the end of the stream.
    pub(crate) len: usize,
    pub(crate) first_sent: Instant,
    pub(crate) repetitions: u32,
}

/// What becomes of a segment that was put on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives.
    Arrives(Instant),
    /// It is lost; the sender notices and repeats it.
    Repeat(Instant),
}

#[derive(Debug)]
pub(crate) struct Stream {
    path: Path,
    round_trip: Duration,
    /// Starts at offset `acknowledged`.
    buffer: VecDeque<u8>,
    acknowledged: u64,
    sent: u64,
    /// The receiver takes bytes before this offset, as far as the sender knows.
    window_end: u64,
    congestion_window: usize,
    slow_start_threshold: usize,
    /// Losses before this offset belong to one event, which halves the window once.
    recovery_end: u64,
    wire_free: Instant,
    /// A write did not fit: the sender wants to know when there is room.
    wants_room: bool,
    /// The sender has closed; the end of the stream follows the last byte.
    finishing: bool,
    finish_sent: bool,
    /// Segments behind a missing one, from offset to offset.
    ahead: BTreeMap<u64, u64>,
    received: u64,
    /// Received in order, not read yet.
    unread: VecDeque<u8>,
    advertised: u64,
    finish_arrived: bool,
    /// The connection breaks when this many bytes have been delivered.
    cut_at: Option<u64>,
    traffic: Traffic,
}

impl Stream {
    pub(crate) fn new(path: Path, round_trip: Duration) -> Self {
        Self {
            path,
            round_trip,
            buffer: VecDeque::new(),
            acknowledged: 0,
            sent: 0,
            window_end: path.receive_buffer as u64,
            congestion_window: path.initial_window.max(1) * path.segment_len,
            slow_start_threshold: usize::MAX,
            recovery_end: 0,
            wire_free: Instant::ZERO,
            wants_room: false,
            finishing: false,
            finish_sent: false,
            ahead: BTreeMap::new(),
            received: 0,
            unread: VecDeque::new(),
            advertised: path.receive_buffer as u64,
            finish_arrived: false,
            cut_at: None,
            traffic: Traffic::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic
    }

    pub(crate) fn set_cut(&mut self, at: u64) {
        self.cut_at = Some(at);
    }

    fn written(&self) -> u64 {
        self.acknowledged + self.buffer.len() as u64
    }

    fn in_flight(&self) -> usize {
        (self.sent - self.acknowledged) as usize
    }

    fn room(&self) -> usize {
        self.path.send_buffer.saturating_sub(self.buffer.len())
    }

    /// The sender writes; says how many bytes fit.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        if self.finishing {
            return 0;
        }
        let taken = bytes.get(..self.room()).unwrap_or(bytes);
        self.buffer.extend(taken);
        self.traffic.stream_bytes += taken.len() as u64;
        self.wants_room |= taken.len() < bytes.len();
        taken.len()
    }

    /// The sender writes no more.
    pub(crate) fn finish(&mut self) {
        self.finishing = true;
        self.wants_room = false;
    }

    /// The next segment that the windows let go. There is no waiting for more bytes: servers and clients switch that
    /// off (TCP_NODELAY).
    pub(crate) fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        let fresh = |offset, len| Segment { offset, len, first_sent: now, repetitions: 0 };
        let unsent = (self.written() - self.sent) as usize;
        if unsent == 0 {
            let ends = self.finishing && !self.finish_sent;
            self.finish_sent |= ends;
            return ends.then(|| fresh(self.sent, 0));
        }
        let congestion = self.congestion_window.saturating_sub(self.in_flight());
        let window = self.window_end.saturating_sub(self.sent) as usize;
        let len = unsent.min(self.path.segment_len).min(window);
        // A segment goes whole or waits, as far as congestion is concerned.
        if len == 0 || (len > congestion && self.in_flight() > 0) {
            return None;
        }
        let segment = fresh(self.sent, len);
        self.sent += len as u64;
        Some(segment)
    }

    /// Puts a segment on the wire.
    pub(crate) fn transmit(&mut self, segment: Segment, now: Instant, entropy: &mut SeededEntropy) -> Fate {
        self.traffic.segments += 1;
        self.traffic.repetitions += u64::from(segment.repetitions > 0);
        self.traffic.wire_bytes += (segment.len + self.path.overhead) as u64;
        self.wire_free = self.wire_free.max(now) + self.path.serialisation(segment.len);
        if self.path.loss_ppm > 0 && entropy.below(1_000_000) < u64::from(self.path.loss_ppm) {
            return Fate::Repeat(self.repeat_at(segment));
        }
        let jitter = self.path.jitter.as_nanos();
        let jitter = if jitter == 0 { 0 } else { entropy.below(u64::try_from(jitter).unwrap_or(u64::MAX)) };
        Fate::Arrives(self.wire_free + self.path.delay + Duration::from_nanos(jitter))
    }

    /// When the sender repeats a segment that it has just put on the wire.
    pub(crate) fn repeat_at(&self, segment: Segment) -> Instant {
        let first = self.path.retransmission_min.max(self.round_trip * 2);
        let backoff = 1u32 << segment.repetitions.min(16);
        self.wire_free + first.saturating_mul(backoff).min(RETRANSMISSION_MAX)
    }

    /// The segment to send again; `None` if the sender gives up.
    pub(crate) fn repeat(&mut self, segment: Segment, now: Instant) -> Option<Segment> {
        if now.since(segment.first_sent) > self.path.give_up {
            return None;
        }
        if segment.offset >= self.recovery_end {
            let one = self.path.segment_len;
            self.slow_start_threshold = (self.in_flight() / 2).max(2 * one);
            self.congestion_window = one;
            self.recovery_end = self.sent;
        }
        Some(Segment { repetitions: segment.repetitions + 1, ..segment })
    }

    /// A segment arrives. Says whether the connection breaks behind it.
    pub(crate) fn arrive(&mut self, segment: Segment) -> bool {
        self.finish_arrived |= segment.len == 0;
        let before = self.received;
        self.ahead.insert(segment.offset, segment.offset + segment.len as u64);
        while let Some(entry) = self.ahead.first_entry() {
            if *entry.key() > self.received {
                break;
            }
            self.received = self.received.max(entry.remove());
        }
        let cut = self.cut_at.filter(|cut| self.received >= *cut);
        self.received = cut.unwrap_or(self.received).max(before);
        let (from, to) = (before - self.acknowledged, self.received - self.acknowledged);
        self.unread.extend(self.buffer.range(from as usize..to as usize));
        cut.is_some()
    }

    /// What the receiver tells the sender: everything before the first has come, everything before the second fits.
    pub(crate) fn acknowledgement(&mut self) -> (u64, u64) {
        self.advertised = self.window();
        (self.received, self.advertised)
    }

    /// The sender learns what the receiver has. Says whether a sender that waits for room has it now.
    pub(crate) fn acknowledge(&mut self, received: u64, window_end: u64) -> bool {
        self.window_end = self.window_end.max(window_end);
        let fresh = received.saturating_sub(self.acknowledged) as usize;
        if fresh > 0 {
            self.buffer.drain(..fresh.min(self.buffer.len()));
            self.acknowledged = received;
            let one = self.path.segment_len;
            let growth = if self.congestion_window < self.slow_start_threshold {
                fresh
            } else {
                (one * fresh / self.congestion_window).max(1)
            };
            self.congestion_window = self.congestion_window.saturating_add(growth);
        }
        // As Linux does: a wake-up for a few bytes is not worth it.
        let has_room = self.wants_room && self.room() * 3 >= self.path.send_buffer;
        self.wants_room &= !has_room;
        has_room
    }

    /// The receiver takes bytes before this offset.
    fn window(&self) -> u64 {
        self.received - self.unread.len() as u64 + self.path.receive_buffer as u64
    }

    /// How many bytes the receiver can read.
    pub(crate) fn readable(&self) -> usize {
        self.unread.len()
    }

    /// Whether the receiver has read everything and the sender has closed.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish_arrived && self.unread.is_empty() && self.received == self.written()
    }

    /// The receiver reads at most `max` bytes. Says whether the sender should hear of the room this makes.
    pub(crate) fn read(&mut self, max: usize, into: &mut Vec<u8>) -> bool {
        let len = self.unread.len().min(max);
        into.extend(self.unread.drain(..len));
        // Receivers do not announce every byte (RFC 9293 §3.8.6.2.2).
        (self.window() - self.advertised) * 2 >= self.path.receive_buffer as u64
    }
}
