//! When a warm-up is over: not after a time that somebody guessed, but when the load looks the same for a while.

use std::collections::VecDeque;
use std::time::Duration;

/// Publishing intervals that have to be alike before a load is steady. Servers go on adjusting for a while: this project's
/// watches its first six cycles and then may move once, away from the times at which values are written, so that one
/// message comes up to half an interval late. A window that contained it would seem to miss a message.
pub const INTERVALS: usize = 10;

/// How many intervals to wait for that. A load that has not become steady until then will not: its server is overloaded, or
/// the machine is.
const INTERVALS_MAX: u32 = 40;

/// How long a load with this interval may take to become steady.
#[must_use]
pub fn patience(interval: Duration) -> Duration {
    (interval * INTERVALS_MAX).clamp(Duration::from_secs(4), Duration::from_secs(40))
}

/// How far the time between two messages may be from the interval before the message counts as late or early: a quarter, and
/// what a machine with sleeping CPUs adds to any.
#[must_use]
pub fn slip(interval: Duration) -> Duration {
    (interval / 4).max(Duration::from_millis(5))
}

/// What came in one interval, over all clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Messages with values.
    pub messages: u64,
    /// Those of them that came too long, or too short, after the one before.
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

/// Looks at what comes in each interval and says when the last ones are alike.
///
/// It does not count messages of an interval: one that comes every 100 ms, a hair before the end of an interval or a hair
/// after it, is twice in one interval and not at all in the next, though nothing could be steadier. What it looks at is the
/// time since the message before, and how many values a message has.
#[derive(Debug, Clone)]
pub struct Steady {
    tolerance: f64,
    slices: usize,
    recent: VecDeque<Slice>,
}

impl Steady {
    /// Steady is when in `slices` intervals in a row no more than `tolerance` of the messages (a share, 0.05 for 5 %) came
    /// out of time, and messages have as many values in all of them, within `tolerance` or half a value.
    #[must_use]
    pub fn new(slices: usize, tolerance: f64) -> Self {
        Self { tolerance, slices: slices.max(2), recent: VecDeque::new() }
    }

    /// Notes the next interval; returns whether the last ones are alike. Nothing at all is not steady.
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
    fn a_message_at_the_edge_of_an_interval_is_steady() {
        let mut steady = Steady::new(4, 0.05);
        let answers: Vec<bool> =
            [1, 0, 2, 1, 0, 2].iter().map(|count| steady.observe(slice(*count, 0, count * 500))).collect();
        assert_eq!(answers, [false, false, false, true, true, true]);
        // Few items, shared by a few clients: who is at the edge decides how many values a message has on average.
        let mut steady = Steady::new(2, 0.05);
        assert!(!steady.observe(slice(3, 0, 5)) && steady.observe(slice(2, 0, 4)));
    }

    #[test]
    fn one_that_moves_begins_anew() {
        let mut steady = Steady::new(3, 0.05);
        assert!((0..2).all(|_| !steady.observe(slice(10, 0, 100))));
        assert!(!steady.observe(slice(10, 1, 100)));
        let answers: Vec<bool> = (0..3).map(|_| steady.observe(slice(10, 0, 100))).collect();
        assert_eq!(answers, [false, false, true]);
        // One of thirty is a neighbour of the machine, not a server that adjusts.
        assert!(steady.observe(slice(30, 1, 300)));
    }

    #[test]
    fn silence_is_never_steady() {
        let mut steady = Steady::new(3, 0.5);
        assert!((0..10).all(|_| !steady.observe(Slice::default())));
        assert!((0..10).all(|_| !steady.observe(slice(3, 0, 0))), "messages without values");
    }

    #[test]
    fn waiting_has_an_end() {
        assert_eq!(patience(Duration::from_millis(100)), Duration::from_secs(4));
        assert_eq!(patience(Duration::from_millis(500)), Duration::from_secs(20));
        assert_eq!(patience(Duration::from_secs(60)), Duration::from_secs(40));
        assert_eq!(slip(Duration::from_millis(100)), Duration::from_millis(25));
        assert_eq!(slip(Duration::from_millis(1)), Duration::from_millis(5));
    }
}
