//! The rate limit for storing values, and the queue of readings beyond it.

use super::held::Held;
use std::collections::VecDeque;
use taktwerk_types::UtcTime;
use tokio::time::Instant;

/// The number of values that may be stored now; refilled over time.
#[derive(Debug)]
pub(super) struct Budget {
    left: f64,
    filled: Instant,
    /// Tags with a queued reading, in the order of queueing.
    pub(super) line: VecDeque<usize>,
}

/// What happened to readings.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) stored: usize,
    pub(super) replaced: usize,
    pub(super) invalid: usize,
}

impl Budget {
    /// Allows the values of one second.
    pub(super) fn full(per_second: u64) -> Self {
        Self { left: per_second as f64, filled: Instant::now(), line: VecDeque::new() }
    }

    /// Takes up to `wanted` from the budget. Returns how many.
    pub(super) fn take(&mut self, per_second: u64, wanted: usize, now: Instant) -> usize {
        let per_second = per_second as f64;
        let filled = self.left + now.duration_since(self.filled).as_secs_f64() * per_second;
        self.filled = now;
        let granted = (filled.min(per_second) as usize).min(wanted);
        self.left = filled.min(per_second) - granted as f64;
        granted
    }

    /// Subtracts values that were stored in any case. The debt is no more than these: a source that often loses its connection
    /// must not be without values for longer than they take.
    fn charge(&mut self, per_second: u64, stored: usize, now: Instant) {
        self.take(per_second, 0, now);
        let stored = stored as f64;
        self.left = (self.left - stored).max(-stored);
    }

    /// Stores all queued readings, and charges the budget.
    pub(super) fn store_all(
        &mut self,
        all: &mut [Held],
        per_second: u64,
        times: (Instant, UtcTime),
        outcome: &mut Outcome,
    ) {
        let before = outcome.stored;
        self.store_waiting(all, None, times, outcome);
        self.charge(per_second, outcome.stored - before, times.0);
    }

    /// Stores queued readings: as many as the budget allows, or all.
    pub(super) fn store_waiting(
        &mut self,
        all: &mut [Held],
        per_second: Option<u64>,
        (now, utc): (Instant, UtcTime),
        outcome: &mut Outcome,
    ) {
        while let Some(position) = self.line.front() {
            if let Some(held) = all.get_mut(*position) {
                let may = |budget: &mut Self| per_second.is_none_or(|most| budget.take(most, 1, now) > 0);
                if held.waits.is_some() && !may(self) {
                    return;
                }
                held.is_queued = false;
                if let Some(reading) = held.waits.take() {
                    outcome.stored += 1;
                    outcome.invalid += usize::from(!held.store(*reading, now, utc));
                }
            }
            self.line.pop_front();
        }
    }
}
