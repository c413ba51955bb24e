//! Values received by each item of a subscription. The worst item decides, not the mean: a server that serves half of
//! its items twice and the others never has a perfect mean.

use crate::latency::Times;
use serde::{Deserialize, Serialize};

/// Number of notifications of each item within a window.
#[derive(Debug, Clone)]
pub struct Progress {
    received: Vec<u32>,
    last: Vec<u64>,
    gaps: Times,
    worst_gap: u64,
    open: bool,
    window_start: u64,
    overflows: u64,
    bad: u64,
}

/// The figures of a [`Progress`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgressSummary {
    /// Number of items.
    pub items: usize,
    /// Number of notifications within the window.
    pub notifications: u64,
    /// Expected notifications per item.
    pub expected_per_item: f64,
    /// Mean notifications per item.
    pub mean_per_item: f64,
    /// Notifications of the worst item.
    pub min_per_item: u32,
    /// Notifications of the best item.
    pub max_per_item: u32,
    /// Received share of the expected notifications of the worst item.
    pub worst_item_ratio: f64,
    /// Index of the worst item.
    pub worst_item: usize,
    /// Items with less than 99 % of the expected notifications. One missing notification is tolerated, because it may
    /// be at an edge of the window.
    pub items_behind: usize,
    /// Median time between two notifications of an item, milliseconds.
    pub cycle_p50_ms: f64,
    /// 99th percentile of the same.
    pub cycle_p99_ms: f64,
    /// The longest time without a notification of an item.
    pub worst_gap_ms: f64,
    /// Notifications with the Overflow bit, which means lost values.
    pub overflows: u64,
    /// Notifications with a Bad status.
    pub bad: u64,
}

impl Progress {
    /// For `items` items; counting starts with [`Self::open`].
    #[must_use]
    pub fn new(items: usize) -> Self {
        Self {
            received: vec![0; items],
            last: vec![0; items],
            gaps: Times::new(),
            worst_gap: 0,
            open: false,
            window_start: 0,
            overflows: 0,
            bad: 0,
        }
    }

    /// Starts the window.
    pub fn open(&mut self, now: u64) {
        self.open = true;
        self.window_start = now;
        self.received.fill(0);
        self.gaps = Times::new();
        (self.worst_gap, self.overflows, self.bad) = (0, 0, 0);
    }

    /// Ends the window.
    pub fn close(&mut self, now: u64) {
        // Silent items have a gap until the end of the window.
        if self.open {
            let quietest = self.last.iter().copied().map(|last| last.max(self.window_start)).min();
            self.worst_gap = self.worst_gap.max(now.saturating_sub(quietest.unwrap_or(now)));
        }
        self.open = false;
    }

    /// Counts a notification of `item` at `now`.
    #[inline]
    pub fn notify(&mut self, item: usize, now: u64) {
        let (Some(received), Some(last)) = (self.received.get_mut(item), self.last.get_mut(item)) else {
            return;
        };
        if self.open {
            *received += 1;
            if *last >= self.window_start {
                let gap = now.saturating_sub(*last);
                // Updating a histogram for each notification would cost more than decoding it. Percentiles use a sample
                // of items; the worst gap is exact.
                if item.is_multiple_of(64) {
                    self.gaps.record(gap);
                }
                self.worst_gap = self.worst_gap.max(gap);
            }
        }
        *last = now;
    }

    /// Counts a notification that reports lost values.
    pub fn overflow(&mut self) {
        self.overflows += u64::from(self.open);
    }

    /// Counts a notification with a Bad status.
    pub fn bad(&mut self) {
        self.bad += u64::from(self.open);
    }

    /// Whether every item has had a notification, before or within the window.
    #[must_use]
    pub fn all_heard(&self) -> bool {
        self.last.iter().all(|last| *last != 0)
    }

    /// Number of items without any notification.
    #[must_use]
    pub fn unheard(&self) -> usize {
        self.last.iter().filter(|last| **last == 0).count()
    }

    /// Times between two notifications, for every 64th item.
    #[must_use]
    pub fn cycles(&self) -> &Times {
        &self.gaps
    }

    /// Notifications per item so far within the window.
    #[must_use]
    pub fn counts(&self) -> Vec<f64> {
        self.received.iter().map(|count| f64::from(*count)).collect()
    }

    /// Notifications so far within the window.
    #[must_use]
    pub fn notifications(&self) -> u64 {
        self.received.iter().map(|count| u64::from(*count)).sum()
    }

    /// The figures, for an expected number of notifications per item.
    #[must_use]
    pub fn summary(&self, expected: f64) -> ProgressSummary {
        let items = self.received.len();
        let notifications = self.notifications();
        let (worst_item, min) =
            self.received.iter().copied().enumerate().min_by_key(|(_, count)| *count).unwrap_or((0, 0));
        let ratio = |count: f64| if expected > 0.0 { count / expected } else { 0.0 };
        ProgressSummary {
            items,
            notifications,
            expected_per_item: expected,
            mean_per_item: if items == 0 { 0.0 } else { notifications as f64 / items as f64 },
            min_per_item: min,
            max_per_item: self.received.iter().copied().max().unwrap_or(0),
            worst_item_ratio: ratio(f64::from(min)),
            worst_item,
            // One missing notification at the edges of the window is not a loss.
            items_behind: self
                .received
                .iter()
                .filter(|count| ratio(f64::from(**count) + 1.0) < 0.99 || **count == 0)
                .count(),
            cycle_p50_ms: self.gaps.percentile(50.0) as f64 / 1e6,
            cycle_p99_ms: self.gaps.percentile(99.0) as f64 / 1e6,
            worst_gap_ms: self.worst_gap as f64 / 1e6,
            overflows: self.overflows,
            bad: self.bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_item_decides() {
        let ms = 1_000_000;
        let mut progress = Progress::new(3);
        (0..3).for_each(|item| progress.notify(item, 50 * ms));
        assert!(progress.all_heard());
        progress.open(100 * ms);
        for cycle in 1..=100u64 {
            progress.notify(0, (100 + cycle * 100) * ms);
            progress.notify(1, (100 + cycle * 100) * ms);
            if cycle > 50 {
                progress.notify(2, (100 + cycle * 100) * ms);
            }
        }
        progress.close(10_100 * ms);
        let summary = progress.summary(100.0);
        assert_eq!((summary.min_per_item, summary.max_per_item, summary.worst_item), (50, 100, 2));
        assert_eq!((summary.items_behind, summary.notifications), (1, 250));
        assert!((summary.worst_item_ratio - 0.5).abs() < 1e-9);
        assert!((summary.cycle_p50_ms - 100.0).abs() < 0.2);
    }

    #[test]
    fn silence_is_a_gap() {
        let mut progress = Progress::new(2);
        progress.notify(0, 1);
        assert_eq!(progress.unheard(), 1);
        progress.open(1_000_000);
        progress.notify(0, 2_000_000);
        progress.close(9_000_000);
        assert!((progress.summary(8.0).worst_gap_ms - 8.0).abs() < 1e-9);
        // An unknown item must not corrupt the counters.
        progress.notify(7, 1);
    }
}
