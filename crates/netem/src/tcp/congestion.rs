//! The congestion window, in segments.

use super::config::Algorithm;

/// CUBIC's factor after a loss (RFC 9438 §4.6), as Linux rounds it.
const BETA: f64 = 717.0 / 1024.0;
/// CUBIC's speed, in segments per second³.
const C: f64 = 0.4;
/// Reno-friendly growth of CUBIC (RFC 9438 §4.3).
const FRIENDLY: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// HyStart begins at this window.
const HYSTART_WINDOW: u32 = 16;
/// Round trips that HyStart looks at in each round.
const HYSTART_SAMPLES: u32 = 8;
const MILLISECOND: u64 = 1_000_000;

#[derive(Debug, Clone)]
pub(super) struct Congestion {
    algorithm: Algorithm,
    /// In segments.
    window: u32,
    threshold: u32,
    initial: u32,
    /// Acknowledged segments that have not yet made the window larger.
    credit: f64,
    cubic: Cubic,
    hystart: HyStart,
}

#[derive(Debug, Clone, Default)]
struct Cubic {
    epoch: Option<u64>,
    last_max: f64,
    origin: f64,
    k: f64,
    friendly: f64,
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
            credit: 0.0,
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

    /// Whether a sender with so many segments under way is held back by the window.
    pub(super) fn is_limiting(&self, in_flight: u32) -> bool {
        in_flight >= self.window || (self.in_slow_start() && self.window < 2 * in_flight)
    }

    /// So many segments were acknowledged while the window was the limit.
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
            Algorithm::Reno => f64::from(self.window),
            Algorithm::Cubic => self.cubic.segments_for_one(self.window, rest, now, min_round_trip),
        };
        self.credit += f64::from(rest);
        if self.credit >= per_segment {
            let grown = (self.credit / per_segment).floor();
            self.credit -= grown * per_segment;
            // `as` saturates.
            self.window = self.window.saturating_add(grown as u32);
        }
    }

    /// A segment was lost: sets the threshold and says what it is.
    pub(super) fn lost(&mut self) -> u32 {
        let window = f64::from(self.window);
        let next = match self.algorithm {
            Algorithm::Reno => window / 2.0,
            Algorithm::Cubic => {
                self.cubic.lost(window);
                window * BETA
            }
        };
        self.credit = 0.0;
        self.threshold = (next as u32).max(2);
        self.threshold
    }

    /// Nothing was sent for so many retransmission timers (RFC 2861).
    pub(super) fn idle(&mut self, timers: u32) {
        let restart = self.initial.min(self.window);
        self.threshold = self.threshold.max(self.window / 4 * 3);
        self.window = (self.window >> timers.min(31)).max(restart);
        self.cubic.epoch = None;
    }

    /// HyStart (RFC 9406 in the form that Linux has): leaves slow start when round trips grow, or when the acknowledgements of
    /// one round take as long as the path.
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
    /// Acknowledged segments for which the window grows by one.
    fn segments_for_one(&mut self, window: u32, acknowledged: u32, now: u64, min_round_trip: u64) -> f64 {
        let window = f64::from(window);
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.friendly = window;
                if self.last_max <= window {
                    (self.k, self.origin) = (0.0, window);
                } else {
                    (self.k, self.origin) = (((self.last_max - window) / C).cbrt(), self.last_max);
                }
                *self.epoch.insert(now)
            }
        };
        let t = (now - epoch + min_round_trip) as f64 / 1e9;
        let target = self.origin + C * (t - self.k).powi(3);
        let mut wanted = if target > window { window / (target - window) } else { 100.0 * window };
        if self.last_max == 0.0 {
            wanted = wanted.min(20.0);
        }
        self.friendly += FRIENDLY * f64::from(acknowledged) / window;
        if self.friendly > window {
            wanted = wanted.min(window / (self.friendly - window));
        }
        wanted.max(2.0)
    }

    fn lost(&mut self, window: f64) {
        self.epoch = None;
        self.last_max = if window < self.last_max { window * (1.0 + BETA) / 2.0 } else { window };
    }
}
