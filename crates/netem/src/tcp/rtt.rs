//! Round-trip estimation and the retransmission timer (RFC 6298).

use super::config::Config;
use crate::emulator::nanos;

/// Observed round trips and the resulting timeout.
#[derive(Debug, Clone)]
pub(super) struct RoundTrip {
    smoothed: Option<u64>,
    variation: u64,
    min: u64,
    backoff: u32,
}

impl RoundTrip {
    pub(super) fn new() -> Self {
        Self { smoothed: None, variation: 0, min: u64::MAX, backoff: 0 }
    }

    /// Records the round trip of a segment that was sent once.
    pub(super) fn sample(&mut self, nanos: u64) {
        self.min = self.min.min(nanos);
        match self.smoothed {
            None => {
                self.smoothed = Some(nanos);
                self.variation = nanos / 2;
            }
            Some(smoothed) => {
                self.variation = (3 * self.variation + smoothed.abs_diff(nanos)) / 4;
                self.smoothed = Some((7 * smoothed + nanos) / 8);
            }
        }
    }

    pub(super) fn smoothed(&self) -> Option<u64> {
        self.smoothed
    }

    /// Minimum round trip; zero before the first sample.
    pub(super) fn min(&self) -> u64 {
        if self.smoothed.is_some() { self.min } else { 0 }
    }

    /// The timer expired: doubles the timeout.
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Data was acknowledged: resets the backoff.
    pub(super) fn progress(&mut self) {
        self.backoff = 0;
    }

    /// The current retransmission timeout.
    pub(super) fn timeout(&self, config: &Config) -> u64 {
        let first = match self.smoothed {
            None => nanos(config.rto_initial),
            // The minimum applies to the variation, as in Linux.
            Some(smoothed) => smoothed.saturating_add((4 * self.variation).max(nanos(config.rto_min))),
        };
        first.saturating_mul(1 << self.backoff).min(nanos(config.rto_max))
    }
}
