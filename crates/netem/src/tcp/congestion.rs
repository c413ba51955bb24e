//! The congestion window, in segments.

use super::config::Algorithm;

/// CUBIC's factor after a loss (RFC 9438 §4.6), rounded as in Linux.
const BETA: f64 = 717.0 / 1024.0;
/// CUBIC's scaling constant, in segments per second³.
const C: f64 = 0.4;
/// Reno-friendly growth of CUBIC (RFC 9438 §4.3): acknowledged eighths of a window per additional segment.
const FRIENDLY_EIGHTHS: u32 = 15;
/// Interval after which CUBIC recomputes its curve if the window has not changed.
const UPDATE: u64 = 1_000_000_000 / 32;
/// Minimum window for HyStart.
const HYSTART_WINDOW: u32 = 16;
/// Number of round trips that HyStart samples per round.
const HYSTART_SAMPLES: u32 = 8;
const MILLISECOND: u64 = 1_000_000;

#[derive(Debug, Clone)]
pub(super) struct Congestion {
    algorithm: Algorithm,
    /// Congestion window in segments.
    window: u32,
    threshold: u32,
    initial: u32,
    /// Acknowledged segments that have not increased the window yet.
    credit: u32,
    cubic: Cubic,
    hystart: HyStart,
}

#[derive(Debug, Clone, Default)]
struct Cubic {
    epoch: Option<u64>,
    last_max: u32,
    origin: u32,
    k: f64,
    /// The window of Reno.
    friendly: u32,
    acknowledged: u32,
    count: u32,
    last_window: u32,
    last_time: u64,
}

#[derive(Debug, Clone, Default)]
struct HyStart {
    /// The round ends when this offset is acknowledged.
    end: u64,
    began: u64,
    last_ack: u64,
    smallest: u64,
    samples: u32,
}

impl Congestion {
    pub(super) fn new(algorithm: Algorithm, initial: u32) -> Self {
        let initial = initial.max(1);
        Self {
            algorithm,
            window: initial,
            threshold: u32::MAX,
            initial,
            credit: 0,
            cubic: Cubic::default(),
            hystart: HyStart::default(),
        }
    }

    pub(super) fn window(&self) -> u32 {
        self.window
    }

    pub(super) fn threshold(&self) -> u32 {
        self.threshold
    }

    pub(super) fn set_window(&mut self, window: u32) {
        self.window = window.max(1);
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Whether the window limits a sender with this many segments in flight.
    pub(super) fn is_limiting(&self, in_flight: u32) -> bool {
        in_flight >= self.window || (self.in_slow_start() && self.window < 2 * in_flight)
    }

    /// Called when segments were acknowledged while the window was the limit.
    pub(super) fn acknowledged(&mut self, segments: u32, now: u64, min_round_trip: u64) {
        let mut rest = segments;
        if self.in_slow_start() {
            let grown = rest.min(self.threshold - self.window);
            self.window += grown;
            rest -= grown;
        }
        if rest == 0 {
            return;
        }
        let per_segment = match self.algorithm {
            Algorithm::Reno => self.window,
            Algorithm::Cubic => self.cubic.segments_for_one(self.window, rest, now, min_round_trip),
        };
        if self.credit >= per_segment {
            self.credit = 0;
            self.window = self.window.saturating_add(1);
        }
        self.credit = self.credit.saturating_add(rest);
        let grown = self.credit / per_segment.max(1);
        self.credit -= grown * per_segment;
        self.window = self.window.saturating_add(grown);
    }

    /// A segment was lost: sets the threshold and returns it.
    pub(super) fn lost(&mut self) -> u32 {
        let window = f64::from(self.window);
        let next = match self.algorithm {
            Algorithm::Reno => window / 2.0,
            Algorithm::Cubic => {
                self.cubic.lost(self.window);
                window * BETA
            }
        };
        self.credit = 0;
        self.threshold = (next as u32).max(2);
        self.threshold
    }

    /// Called after an idle time of this many retransmission timeouts (RFC 2861).
    pub(super) fn idle(&mut self, timers: u32) {
        let restart = self.initial.min(self.window);
        self.threshold = self.threshold.max(self.window / 4 * 3);
        self.window = (self.window >> timers.min(31)).max(restart);
        self.cubic.epoch = None;
    }

    /// HyStart (RFC 9406, as implemented in Linux): leaves slow start when round trips grow, or when the
    /// acknowledgements of one round take as long as the path.
    pub(super) fn observe(&mut self, round_trip: u64, min: u64, acknowledged: u64, sent: u64, now: u64) {
        if self.algorithm != Algorithm::Cubic || !self.in_slow_start() {
            return;
        }
        let hystart = &mut self.hystart;
        if acknowledged > hystart.end || hystart.began == 0 {
            *hystart = HyStart { end: sent, began: now, last_ack: now, smallest: u64::MAX, samples: 0 };
        }
        if self.window < HYSTART_WINDOW {
            return;
        }
        if now - hystart.last_ack <= 2 * MILLISECOND {
            hystart.last_ack = now;
            if now - hystart.began > min / 2 {
                self.threshold = self.window;
                return;
            }
        }
        hystart.smallest = hystart.smallest.min(round_trip);
        hystart.samples += 1;
        let more = (min / 8).clamp(4 * MILLISECOND, 16 * MILLISECOND);
        if hystart.samples >= HYSTART_SAMPLES && hystart.smallest > min + more {
            self.threshold = self.window;
        }
    }
}

impl Cubic {
    /// Number of acknowledged segments per increase of the window by one. In whole segments, as in Linux; for windows
    /// of a few segments this is slower than the formulas of the RFC.
    fn segments_for_one(&mut self, window: u32, acknowledged: u32, now: u64, min_round_trip: u64) -> u32 {
        self.acknowledged += acknowledged;
        let is_known = self.epoch.is_some();
        if is_known && self.last_window == window && now - self.last_time <= UPDATE {
            return self.count;
        }
        if !is_known || now - self.last_time >= MILLISECOND {
            self.last_time = now;
            self.count = self.by_time(window, acknowledged, now, min_round_trip);
        }
        self.last_window = window;
        let step = (window * FRIENDLY_EIGHTHS / 8).max(1);
        while self.acknowledged > step {
            self.acknowledged -= step;
            self.friendly += 1;
        }
        if self.friendly > window {
            self.count = self.count.min(window / (self.friendly - window));
        }
        self.count = self.count.max(2);
        self.count
    }

    fn by_time(&mut self, window: u32, acknowledged: u32, now: u64, min_round_trip: u64) -> u32 {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.acknowledged = acknowledged;
                self.friendly = window;
                if self.last_max <= window {
                    (self.k, self.origin) = (0.0, window);
                } else {
                    let fallen = f64::from(self.last_max - window);
                    (self.k, self.origin) = ((fallen / C).cbrt(), self.last_max);
                }
                *self.epoch.insert(now)
            }
        };
        let t = (now - epoch + min_round_trip) as f64 / 1e9;
        let offset = C * (t - self.k).powi(3);
        // Rounded towards the origin; `as` saturates.
        let target = f64::from(self.origin) + offset.trunc();
        let count = if target > f64::from(window) {
            (f64::from(window) / (target - f64::from(window))) as u32
        } else {
            window.saturating_mul(100)
        };
        if self.last_max == 0 { count.min(20) } else { count }
    }

    fn lost(&mut self, window: u32) {
        self.epoch = None;
        let converged = f64::from(window) * (1.0 + BETA) / 2.0;
        self.last_max = if window < self.last_max { converged as u32 } else { window };
    }
}
