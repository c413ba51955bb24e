//! The sending half: segments in flight, lost segments, and what may be sent.

use super::config::Config;
use super::congestion::Congestion;
use super::rtt::RoundTrip;
use super::{SACK_MAX, Segment};
use crate::emulator::nanos;
use std::collections::VecDeque;

/// Number of selectively acknowledged later segments after which a segment counts as lost (RFC 5681).
const DUPLICATES: u32 = 3;
/// Minimum time until a tail loss probe (Linux: TCP_TIMEOUT_MIN).
const PROBE_MIN: u64 = 2_000_000;

/// A segment that was sent but not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Sent {
    start: u64,
    /// Including the end of the stream.
    end: u64,
    fin: bool,
    sent_at: u64,
    times: u32,
    is_sacked: bool,
    is_lost: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No loss to repair.
    Open,
    /// Fast recovery: until this offset is acknowledged.
    Recovery { until: u64 },
    /// After a retransmission timeout: until this offset is acknowledged.
    Loss { until: u64 },
}

/// Proportional rate reduction.
#[derive(Debug, Clone, Copy, Default)]
struct Reduction {
    delivered: u32,
    out: u32,
    prior_window: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Sender {
    /// Oldest unacknowledged byte.
    pub(super) una: u64,
    pub(super) next: u64,
    written: u64,
    is_finishing: bool,
    window_end: u64,
    sent: VecDeque<Sent>,
    sacked: u32,
    lost: u32,
    congestion: Congestion,
    pub(super) round_trip: RoundTrip,
    phase: Phase,
    reduction: Reduction,
    /// Send time of the most recently delivered segment, and its round trip (RFC 8985).
    rack: Option<(u64, u64, u64)>,
    /// One segment may be sent regardless of the windows.
    forced: bool,
    wants_room: bool,
    last_sent: u64,
    /// Since when the oldest byte has been waiting.
    waits_since: Option<u64>,
    timer: Option<u64>,
    /// The timer belongs to a tail loss probe.
    is_probe: bool,
    has_probed: bool,
    /// A tail loss probe retransmitted the last segment: its end, and the time.
    probed: Option<(u64, u64)>,
    reorder_at: Option<u64>,
    persist: u32,
    /// The window is closed: send a window probe.
    asks: bool,
    pub(super) repetitions: u64,
}

impl Sender {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            una: 0,
            next: 0,
            written: 0,
            is_finishing: false,
            window_end: 0,
            sent: VecDeque::new(),
            sacked: 0,
            lost: 0,
            congestion: Congestion::new(config.algorithm, config.initial_window),
            round_trip: RoundTrip::new(),
            phase: Phase::Open,
            reduction: Reduction::default(),
            rack: None,
            forced: false,
            wants_room: false,
            last_sent: 0,
            waits_since: None,
            timer: None,
            is_probe: false,
            has_probed: false,
            probed: None,
            reorder_at: None,
            persist: 0,
            asks: false,
            repetitions: 0,
        }
    }

    pub(super) fn window(&self) -> u32 {
        self.congestion.window()
    }

    /// Number of bytes written but not acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        self.written.saturating_sub(self.una)
    }

    /// Whether everything is acknowledged, including the end of the stream if there is one.
    pub(super) fn is_done(&self) -> bool {
        self.una >= self.written + u64::from(self.is_finishing)
    }

    pub(super) fn set_window_end(&mut self, end: u64) {
        self.window_end = self.window_end.max(end);
    }

    /// The application writes. Returns the number of bytes that fit.
    pub(super) fn write(&mut self, bytes: usize, config: &Config) -> usize {
        if self.is_finishing {
            return 0;
        }
        let room = (config.send_buffer as u64).saturating_sub(self.unacknowledged());
        let taken = bytes.min(usize::try_from(room).unwrap_or(usize::MAX));
        self.written += taken as u64;
        self.wants_room |= taken < bytes;
        taken
    }

    /// The application closes the stream.
    pub(super) fn finish(&mut self) {
        self.is_finishing = true;
        self.wants_room = false;
    }

    fn in_flight(&self) -> u32 {
        (self.sent.len() as u32).saturating_sub(self.sacked + self.lost)
    }

    // ---- acknowledgements

    /// Processes an acknowledgement. Returns whether a waiting writer can write again.
    pub(super) fn acknowledge(&mut self, segment: &Segment, config: &Config, now: u64) -> bool {
        self.set_window_end(segment.window_end);
        let has_window = self.window_end > self.next;
        if has_window {
            self.persist = 0;
        }
        let acknowledged = segment.acknowledged.min(self.next);
        let bytes = acknowledged.saturating_sub(self.una);
        let in_flight = self.in_flight();
        let mut delivered = 0;
        let mut newest: Option<Sent> = None;
        let mut sample = None;
        while let Some(front) = self.sent.front_mut() {
            if front.end > acknowledged {
                if acknowledged > front.start {
                    front.start = acknowledged;
                }
                break;
            }
            let one = *front;
            self.sent.pop_front();
            self.sacked -= u32::from(one.is_sacked);
            self.lost -= u32::from(one.is_lost);
            if !one.is_sacked {
                delivered += 1;
                later(&mut newest, one);
                // The first segment: a delayed acknowledgement counts from the segment that it was delayed for.
                if one.times == 1 {
                    sample.get_or_insert(now - one.sent_at);
                }
            }
        }
        self.una = self.una.max(acknowledged);
        let newly_sacked = self.mark_sacked(&segment.sack, now, &mut newest, &mut sample);
        delivered += newly_sacked;
        if let Some(nanos) = sample {
            self.round_trip.sample(nanos);
            self.congestion.observe(nanos, self.round_trip.min(), self.una, self.next, now);
        }
        if bytes > 0 {
            self.round_trip.progress();
            self.has_probed = false;
            self.waits_since = Some(now);
        }
        if self.sent.is_empty() {
            self.waits_since = None;
        }
        self.end_probe(now);
        if let Some(one) = newest {
            self.remember(one, now);
        }
        let lost_before = self.lost;
        self.detect(now);
        self.change_phase(delivered, self.lost > lost_before, bytes > 0);
        let can_grow = match self.phase {
            Phase::Open => self.congestion.is_limiting(in_flight),
            Phase::Loss { .. } => true,
            Phase::Recovery { .. } => false,
        };
        if delivered > 0 && can_grow {
            self.congestion.acknowledged(delivered, now, self.round_trip.min());
        }
        if bytes > 0 || newly_sacked > 0 {
            self.arm(config, now);
        }
        // As in Linux, a few free bytes are not worth a wake-up.
        let room = (config.send_buffer as u64).saturating_sub(self.unacknowledged());
        let has_room = self.wants_room && room * 3 >= config.send_buffer as u64;
        self.wants_room &= !has_room;
        has_room
    }

    fn mark_sacked(
        &mut self,
        blocks: &[Option<(u64, u64)>; SACK_MAX],
        now: u64,
        newest: &mut Option<Sent>,
        sample: &mut Option<u64>,
    ) -> u32 {
        let mut count = 0;
        for (from, to) in blocks.iter().flatten() {
            let first = self.sent.partition_point(|one| one.start < *from);
            for one in self.sent.iter_mut().skip(first).take_while(|one| one.end <= *to) {
                if one.is_sacked {
                    continue;
                }
                one.is_sacked = true;
                self.lost -= u32::from(one.is_lost);
                one.is_lost = false;
                self.sacked += 1;
                count += 1;
                later(newest, *one);
                if one.times == 1 {
                    sample.get_or_insert(now - one.sent_at);
                }
            }
        }
        count
    }

    /// Records the most recently sent segment that is known to have arrived.
    fn remember(&mut self, one: Sent, now: u64) {
        let round_trip = now - one.sent_at;
        // An acknowledgement faster than any round trip belongs to the original, not to the retransmission.
        if one.times > 1 && round_trip < self.round_trip.min() {
            return;
        }
        if self.rack.is_none_or(|(sent_at, end, _)| (sent_at, end) < (one.sent_at, one.end)) {
            self.rack = Some((one.sent_at, one.end, round_trip));
        }
    }

    /// Segments are lost if they were sent before a delivered one and should have arrived by now.
    fn detect(&mut self, now: u64) {
        self.reorder_at = None;
        let Some((rack_sent, rack_end, rack_round_trip)) = self.rack else { return };
        if self.sacked == 0 && self.phase == Phase::Open {
            return;
        }
        let is_sure = self.phase != Phase::Open || self.sacked >= DUPLICATES;
        let wait = if is_sure { 0 } else { self.round_trip.min() / 4 };
        let mut lost = 0;
        let mut next: Option<u64> = None;
        for one in self.sent.iter_mut().filter(|one| !one.is_sacked && !one.is_lost) {
            if (one.sent_at, one.end) >= (rack_sent, rack_end) {
                // Segments sent once are in the order of sending.
                if one.times == 1 {
                    break;
                }
                continue;
            }
            let due = one.sent_at.saturating_add(rack_round_trip).saturating_add(wait);
            if due <= now {
                one.is_lost = true;
                lost += 1;
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        self.lost += lost;
        self.reorder_at = next;
    }

    fn change_phase(&mut self, delivered: u32, has_new_loss: bool, has_progress: bool) {
        match self.phase {
            Phase::Recovery { until } if self.una >= until => {
                self.phase = Phase::Open;
                self.congestion.set_window(self.congestion.threshold());
            }
            Phase::Loss { until } if self.una >= until => self.phase = Phase::Open,
            Phase::Open if self.lost > 0 => self.recover(),
            Phase::Recovery { .. } => {}
            Phase::Open | Phase::Loss { .. } => return,
        }
        if matches!(self.phase, Phase::Recovery { .. }) {
            self.reduce(delivered, has_progress && !has_new_loss);
        }
    }

    fn recover(&mut self) {
        let prior_window = self.congestion.window();
        self.congestion.lost();
        self.reduction = Reduction { prior_window, ..Reduction::default() };
        self.phase = Phase::Recovery { until: self.next };
        self.forced = true;
    }

    /// RFC 6937.
    fn reduce(&mut self, delivered: u32, is_safe: bool) {
        let threshold = self.congestion.threshold();
        let in_flight = self.in_flight();
        let reduction = &mut self.reduction;
        reduction.delivered += delivered;
        let allowed = if in_flight > threshold {
            let share = u64::from(reduction.delivered) * u64::from(threshold);
            let share = share.div_ceil(u64::from(reduction.prior_window.max(1)));
            u32::try_from(share).unwrap_or(u32::MAX).saturating_sub(reduction.out)
        } else {
            let limit = reduction.delivered.saturating_sub(reduction.out).max(delivered);
            (threshold - in_flight).min(limit + u32::from(is_safe))
        };
        let allowed = allowed.max(u32::from(self.forced));
        self.congestion.set_window(in_flight + allowed);
    }

    // ---- sending

    /// The next segment that may be sent.
    pub(super) fn transmit(&mut self, config: &Config, now: u64) -> Option<Segment> {
        if core::mem::take(&mut self.asks) {
            // An old byte as a window probe; its receiver answers with an acknowledgement.
            return Some(Segment { sequence: self.una, push: true, ..Segment::default() });
        }
        let is_free = self.in_flight() < self.congestion.window() || self.forced;
        if self.lost > 0 && is_free {
            return self.repeat_lost(config, now);
        }
        self.fresh(config, now, is_free)
    }

    fn repeat_lost(&mut self, config: &Config, now: u64) -> Option<Segment> {
        let at = self.sent.iter().position(|one| one.is_lost)?;
        self.lost -= 1;
        self.forced = false;
        self.repeat(at, config, now)
    }

    fn repeat(&mut self, at: usize, config: &Config, now: u64) -> Option<Segment> {
        let one = self.sent.get_mut(at)?;
        one.is_lost = false;
        one.times += 1;
        one.sent_at = now;
        let one = *one;
        self.repetitions += 1;
        self.went(config, now);
        if at == 0 && !self.is_probe {
            self.arm(config, now);
        }
        Some(self.segment(one))
    }

    fn segment(&self, one: Sent) -> Segment {
        Segment {
            sequence: one.start,
            len: (one.end - one.start - u64::from(one.fin)) as usize,
            fin: one.fin,
            push: one.end >= self.written,
            ..Segment::default()
        }
    }

    fn fresh(&mut self, config: &Config, now: u64, is_free: bool) -> Option<Segment> {
        let unsent = self.written.saturating_sub(self.next);
        if unsent == 0 {
            let ends = self.is_finishing && self.next == self.written;
            // The end of the stream is sent regardless of the windows.
            return ends.then(|| self.send_new(0, true, config, now));
        }
        let room = self.window_end.saturating_sub(self.next);
        let len = unsent.min(config.mss as u64).min(room);
        if len == 0 && self.sent.is_empty() && self.timer.is_none() {
            self.arm(config, now);
        }
        let is_small = len < config.mss as u64 && !self.sent.is_empty();
        // Nearly closed windows are not used until they open (RFC 9293 §3.8.6.2.1); small segments wait with Nagle's
        // algorithm.
        if len == 0 || !is_free || (is_small && (len < unsent || config.nagle)) {
            return None;
        }
        if self.sent.is_empty() && self.last_sent > 0 {
            let idle = (now - self.last_sent) / self.round_trip.timeout(config).max(1);
            if idle > 0 && self.phase == Phase::Open {
                self.congestion.idle(u32::try_from(idle).unwrap_or(u32::MAX));
            }
        }
        let fin = self.is_finishing && len == unsent;
        Some(self.send_new(len, fin, config, now))
    }

    fn send_new(&mut self, len: u64, fin: bool, config: &Config, now: u64) -> Segment {
        let end = self.next + len + u64::from(fin);
        let one =
            Sent { start: self.next, end, fin, sent_at: now, times: 1, is_sacked: false, is_lost: false };
        if self.sent.is_empty() {
            self.waits_since = Some(now);
        }
        self.sent.push_back(one);
        self.next = end;
        self.forced = false;
        self.last_sent = now;
        self.went(config, now);
        self.segment(one)
    }

    fn went(&mut self, config: &Config, now: u64) {
        self.reduction.out += 1;
        if self.timer.is_none() || self.is_probe || self.sent.len() == 1 {
            self.arm(config, now);
        }
    }

    // ---- timers

    /// Sets the timer for the oldest segment or for a window probe.
    fn arm(&mut self, config: &Config, now: u64) {
        self.is_probe = false;
        let timeout = self.round_trip.timeout(config);
        if self.sent.is_empty() {
            let is_shut = self.written > self.next && self.window_end <= self.next;
            let wait = timeout.saturating_mul(1 << self.persist.min(16)).min(nanos(config.rto_max));
            self.timer = is_shut.then(|| now.saturating_add(wait));
            return;
        }
        let mut wait = timeout;
        if let Some(smoothed) = self.round_trip.smoothed()
            && config.tail_loss_probe
            && self.phase == Phase::Open
            && self.sacked == 0
            && !self.has_probed
        {
            // The acknowledgement of a single segment may be delayed.
            let more = if self.sent.len() == 1 { nanos(config.rto_min) } else { PROBE_MIN };
            self.is_probe = true;
            wait = (2 * smoothed).saturating_add(more).min(timeout);
        }
        self.timer = Some(now.saturating_add(wait));
    }

    pub(super) fn deadline(&self, config: &Config) -> Option<u64> {
        let give_up = self.waits_since.map(|since| since.saturating_add(nanos(config.give_up)));
        [self.timer, self.reorder_at, give_up].into_iter().flatten().min()
    }

    /// Handles an expired timer. Returns whether to end the connection.
    pub(super) fn handle_timeout(&mut self, config: &Config, now: u64) -> bool {
        if self.waits_since.is_some_and(|since| now >= since.saturating_add(nanos(config.give_up))) {
            return true;
        }
        if self.reorder_at.is_some_and(|at| at <= now) {
            self.detect(now);
            self.change_phase(0, true, false);
        }
        if self.timer.is_none_or(|at| at > now) {
            return false;
        }
        self.timer = None;
        if self.sent.is_empty() {
            self.persist += 1;
            self.asks = true;
            self.waits_since.get_or_insert(now);
            self.arm(config, now);
        } else if core::mem::take(&mut self.is_probe) {
            self.probe(config, now);
        } else {
            self.time_out(config, now);
        }
        false
    }

    /// Sends a tail loss probe: its acknowledgement shows which segments are missing.
    fn probe(&mut self, config: &Config, now: u64) {
        self.has_probed = true;
        let unsent = self.written.saturating_sub(self.next);
        if unsent > 0 && self.window_end > self.next {
            self.forced = true;
        } else if let Some(last) = self.sent.back_mut()
            && !last.is_lost
        {
            last.is_lost = true;
            self.lost += 1;
            self.forced = true;
            self.probed = Some((self.next, now));
        }
        self.arm(config, now);
    }

    /// A tail loss probe that retransmitted the last segment was acknowledged. If it repaired a loss, reduce the window
    /// (RFC 8985 §7.4.2).
    fn end_probe(&mut self, now: u64) {
        let Some((end, sent_at)) = self.probed.filter(|(end, _)| self.una >= *end) else { return };
        self.probed = None;
        let is_repair = now - sent_at >= self.round_trip.min();
        if is_repair && self.phase == Phase::Open && end > 0 {
            let threshold = self.congestion.lost();
            self.congestion.set_window(threshold);
        }
    }

    /// The retransmission timer has expired (RFC 5681 §3.1): all segments in flight count as lost.
    fn time_out(&mut self, config: &Config, now: u64) {
        if self.phase == Phase::Open {
            self.congestion.lost();
        }
        let mut lost = 0;
        for one in self.sent.iter_mut().filter(|one| !one.is_sacked) {
            one.is_lost = true;
            lost += 1;
        }
        self.lost = lost;
        self.congestion.set_window(1);
        self.phase = Phase::Loss { until: self.next };
        self.round_trip.back_off();
        self.forced = true;
        self.arm(config, now);
    }
}

fn later(newest: &mut Option<Sent>, one: Sent) {
    if newest.is_none_or(|known| (known.sent_at, known.end) < (one.sent_at, one.end)) {
        *newest = Some(one);
    }
}
