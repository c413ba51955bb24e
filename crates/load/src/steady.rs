//! Detects the end of the warm-up: when the load has been constant for a while, instead of after a fixed time.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of equal publishing intervals for a steady load. Servers adjust for a while. For example, Taktwerk observes
/// six cycles and then may shift its phase once, away from the times at which values are written. One message is then
/// up to half an interval late, and a window that contains it would appear to miss a message.
pub const INTERVALS: usize = 10;

/// Maximum number of intervals to wait. If the load is not steady by then, the server or the machine is overloaded.
const INTERVALS_MAX: u32 = 40;

/// Maximum time for a load with this interval to become steady.
#[must_use]
pub fn patience(interval: Duration) -> Duration {
    (interval * INTERVALS_MAX).clamp(Duration::from_secs(4), Duration::from_secs(40))
}

/// Maximum deviation of the time between two messages from the interval: a quarter of it, plus the wake-up time of
/// sleeping CPUs.
#[must_use]
pub fn slip(interval: Duration) -> Duration {
    (interval / 4).max(Duration::from_millis(5))
}

/// Messages and values of one interval, over all clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Messages with values.
    pub messages: u64,
    /// Messages that arrived too early or too late after the previous one.
    pub irregular: u64,
    /// Values in them.
    pub values: u64,
}

impl Slice {
    fn values_per_message(&self) -> f64 {
        self.values as f64 / self.messages.max(1) as f64
    }

    fn is_regular(&self, tolerance: f64) -> bool {
        self.irregular as f64 <= self.messages as f64 * tolerance
    }
}

/// Detects when the latest intervals are equal.
///
/// It does not count the messages per interval. A message every 100 ms that arrives near the end of an interval can be
/// counted twice in one interval and not in the next, although the load is steady. Instead, it checks the time since
/// the previous message, and the number of values per message.
#[derive(Debug, Clone)]
pub struct Steady {
    tolerance: f64,
    slices: usize,
    recent: VecDeque<Slice>,
}

impl Steady {
    /// Steady means: in `slices` consecutive intervals, at most a share of `tolerance` of the messages (0.05 for 5 %)
    /// were irregular, and the number of values per message was equal within `tolerance` or half a value.
    #[must_use]
    pub fn new(slices: usize, tolerance: f64) -> Self {
        Self { tolerance, slices: slices.max(2), recent: VecDeque::new() }
    }

    /// Records the next interval. Returns whether the latest intervals are equal. Intervals without messages are not
    /// steady.
    pub fn observe(&mut self, slice: Slice) -> bool {
        let silent = |slice: Option<&Slice>| slice.is_none_or(|slice| slice.messages == 0);
        if slice.messages == 0 && silent(self.recent.back()) || !slice.is_regular(self.tolerance) {
            self.recent.clear();
            return false;
        }
        if self.recent.len() == self.slices {
            self.recent.pop_front();
        }
        self.recent.push_back(slice);
        self.recent.len() == self.slices && self.has_equal_messages()
    }

    fn has_equal_messages(&self) -> bool {
        let heard = || self.recent.iter().filter(|slice| slice.messages > 0).map(Slice::values_per_message);
        let mean = heard().sum::<f64>() / heard().count().max(1) as f64;
        let allowed = (mean * self.tolerance).max(0.5);
        mean > 0.0 && heard().all(|values| (values - mean).abs() <= allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(messages: u64, irregular: u64, values: u64) -> Slice {
        Slice { messages, irregular, values }
    }

    #[test]
    fn a_ramp_is_not_steady_and_a_plateau_is() {
        let mut steady = Steady::new(3, 0.05);
        let figures = [10, 50, 90, 100, 101, 99];
        let answers: Vec<bool> = figures.iter().map(|values| steady.observe(slice(1, 0, *values))).collect();
        assert_eq!(answers, [false, false, false, false, false, true]);
    }

    #[test]
    fn messages_at_the_edge_of_an_interval_are_steady() {
        let mut steady = Steady::new(4, 0.05);
        let answers: Vec<bool> =
            [1, 0, 2, 1, 0, 2].iter().map(|count| steady.observe(slice(*count, 0, count * 500))).collect();
        assert_eq!(answers, [false, false, false, true, true, true]);
        // Few items on few clients: the mean number of values per message depends on which client is at the edge.
        let mut steady = Steady::new(2, 0.05);
        assert!(!steady.observe(slice(3, 0, 5)) && steady.observe(slice(2, 0, 4)));
    }

    #[test]
    fn a_shift_restarts_the_detection() {
        let mut steady = Steady::new(3, 0.05);
        assert!((0..2).all(|_| !steady.observe(slice(10, 0, 100))));
        assert!(!steady.observe(slice(10, 1, 100)));
        let answers: Vec<bool> = (0..3).map(|_| steady.observe(slice(10, 0, 100))).collect();
        assert_eq!(answers, [false, false, true]);
        // One in thirty is noise of the machine, not an adjusting server.
        assert!(steady.observe(slice(30, 1, 300)));
    }

    #[test]
    fn silence_is_never_steady() {
        let mut steady = Steady::new(3, 0.5);
        assert!((0..10).all(|_| !steady.observe(Slice::default())));
        assert!((0..10).all(|_| !steady.observe(slice(3, 0, 0))), "messages without values");
    }

    #[test]
    fn waiting_is_limited() {
        assert_eq!(patience(Duration::from_millis(100)), Duration::from_secs(4));
        assert_eq!(patience(Duration::from_millis(500)), Duration::from_secs(20));
        assert_eq!(patience(Duration::from_secs(60)), Duration::from_secs(40));
        assert_eq!(slip(Duration::from_millis(100)), Duration::from_millis(25));
        assert_eq!(slip(Duration::from_millis(1)), Duration::from_millis(5));
    }
}
