//! When the next message of a publisher with a steady interval will come, so that who waits for it is awake by then.
//!
//! A DataSetReader says at what PublishingInterval its messages are sent (Part 14 §6.3.1.4.7), not when they arrive; that is
//! learned from those that came. While they do not come as expected (another interval, a network that delays them more than
//! waiting awake may cost, no publisher), nobody is woken early.

use super::early::Usual;
use super::timer::awake_max;
use taktwerk_types::Instant;

/// From so much trust on, the next cycle is waited for awake. A cycle that comes as expected adds one.
const TRUSTED: u8 = 4;
/// More is not counted.
const TRUST_MAX: u8 = 8;
/// What one costs that does not: three of four have to come as expected.
const LOSS: u8 = 3;

/// The time in which a message is waited for awake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// When to wake.
    pub(super) from: Instant,
    /// When to sleep again if it has not come.
    pub(super) until: Instant,
}

/// Follows the cycles of a connection's messages; times in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rhythm {
    interval: u64,
    /// When a cycle's first message is expected; zero: none has come yet.
    expected: u64,
    /// How well cycles came as expected lately, up to [`TRUST_MAX`].
    trust: u8,
    /// How late the thread wakes.
    waking: Usual,
}

impl Rhythm {
    /// Messages every so many milliseconds, the PublishingInterval of a reader; `None` if that is not a time.
    pub(super) fn new(publishing_interval: f64) -> Option<Self> {
        let nanos = publishing_interval * 1e6;
        // In shorter ones a processor sleeps so lightly that waking early gains nothing (measured at 1 ms); longer ones than
        // eleven days are nothing to learn.
        (2e6..1e15).contains(&nanos).then(|| Self {
            interval: nanos as u64,
            expected: 0,
            trust: 0,
            waking: Usual::default(),
        })
    }

    /// Messages have come.
    pub(super) fn arrived(&mut self, at: Instant) {
        let at = at.as_nanos();
        let half = self.interval / 2;
        if self.expected == 0 {
            self.expected = at.saturating_add(self.interval);
        }
        if at.saturating_add(half) < self.expected {
            // More of the cycle that has begun.
            return;
        }
        let missed = at.saturating_sub(self.expected).saturating_add(half) / self.interval;
        self.expected = self.expected.saturating_add(missed.saturating_mul(self.interval));
        let within = self.expected.abs_diff(at) <= awake_max(self.interval);
        if missed == 0 && within {
            self.trust = TRUST_MAX.min(self.trust + 1);
        } else if self.trust > 0 {
            self.trust = self.trust.saturating_sub(LOSS);
        } else {
            // One that is late once is no other rhythm; some that follow each other are.
            self.expected = at;
        }
        if within {
            // Who wakes too late has to be woken, who wakes too early waits a little longer: earlier ones count more.
            match self.expected.checked_sub(at) {
                Some(early) => self.expected -= early / 2,
                None => self.expected += (at - self.expected) / 8,
            }
        }
        self.expected = self.expected.saturating_add(self.interval);
    }

    /// The thread had asked to be woken at a time, and was at another.
    pub(super) fn woken(&mut self, wanted: Instant, at: Instant) {
        self.waking.saw(at.as_nanos().saturating_sub(wanted.as_nanos()));
    }

    /// When the next message is to be waited for awake, if that is not over; `None`: it is not known when it comes.
    pub(super) fn window(&self, now: Instant) -> Option<Window> {
        let awake = awake_max(self.interval);
        let lead = self.waking.nanos().saturating_add(awake / 8).min(awake);
        let window = Window {
            from: Instant::from_nanos(self.expected.saturating_sub(lead)),
            until: Instant::from_nanos(self.expected.saturating_add(awake / 2)),
        };
        (self.trust >= TRUSTED && now < window.until).then_some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Messages every 100 ms from one second on, each so many nanoseconds late.
    fn following(late: impl IntoIterator<Item = u64>) -> (Rhythm, u64) {
        let mut rhythm = Rhythm::new(100.0).unwrap();
        let mut due = 1_000 * MS;
        for late in late {
            rhythm.arrived(at(due + late));
            // The rest of a cycle's datagrams.
            (1..5).for_each(|more| rhythm.arrived(at(due + late + more * 10_000)));
            due += 100 * MS;
        }
        (rhythm, due)
    }

    #[test]
    fn only_times_are_intervals() {
        for none in [0.0, -1.0, 1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e300] {
            assert_eq!(Rhythm::new(none), None, "{none}");
        }
        assert!(Rhythm::new(2.0).is_some());
    }

    #[test]
    fn a_steady_publisher_is_expected_and_waited_for_within_bounds() {
        let (rhythm, due) = following([0; 3]);
        assert_eq!(rhythm.window(at(due - MS)), None, "three cycles are no rhythm");
        let (rhythm, due) = following([0; 6]);
        let window = rhythm.window(at(due - MS)).unwrap();
        assert!(window.from < at(due) && at(due) < window.until, "{window:?} of {due}");
        assert!(window.until.as_nanos() - window.from.as_nanos() < 400_000, "{window:?}");
        assert_eq!(rhythm.window(window.until), None, "not longer, if it does not come");
    }

    #[test]
    fn who_wakes_late_is_woken_earlier_but_not_by_more_than_it_may_cost() {
        let (mut rhythm, due) = following([0; 6]);
        let before = rhythm.window(at(due - MS)).unwrap();
        (0..20).for_each(|_| rhythm.woken(at(5), at(100_005)));
        let after = rhythm.window(at(due - MS)).unwrap();
        assert!(before.from.as_nanos() - after.from.as_nanos() >= 100_000, "{before:?} {after:?}");
        (0..200).for_each(|_| rhythm.woken(at(5), at(50 * MS)));
        assert!(due - rhythm.window(at(due - MS)).unwrap().from.as_nanos() <= 250_000);
    }

    #[test]
    fn a_late_or_lost_message_costs_trust_and_not_the_rhythm() {
        for lost in [false, true] {
            let (mut rhythm, mut due) = following([0; 10]);
            if !lost {
                rhythm.arrived(at(due + 5 * MS));
            }
            due += 100 * MS;
            let late = if lost { 0 } else { 5 * MS };
            rhythm.arrived(at(due + late));
            let window = rhythm.window(at(due + 6 * MS));
            assert_eq!(window.is_some(), lost, "one is forgiven, two are not: {window:?}");
            for _ in 0..2 {
                due += 100 * MS;
                rhythm.arrived(at(due));
            }
            let window = rhythm.window(at(due + MS)).unwrap();
            assert!(window.from < at(due + 100 * MS) && at(due + 100 * MS) < window.until, "{lost}");
        }
    }

    #[test]
    fn a_publisher_that_starts_anew_has_a_new_rhythm() {
        let (mut rhythm, due) = following([0; 10]);
        let start = due + 30 * MS;
        (0..9).for_each(|cycle| rhythm.arrived(at(start + cycle * 100 * MS)));
        let next = start + 900 * MS;
        let window = rhythm.window(at(next - MS)).unwrap();
        assert!(window.from < at(next) && at(next) < window.until, "{window:?} of {next}");
    }

    #[test]
    fn another_clock_is_followed() {
        // 100 ppm: 10 µs in each cycle, either way.
        for late in [0u64, 20_000] {
            let mut rhythm = Rhythm::new(100.0).unwrap();
            let (mut due, mut hits) = (1_000 * MS, 0);
            for _ in 0..500 {
                let window = rhythm.window(at(due - 10 * MS));
                hits +=
                    u32::from(window.is_some_and(|window| window.from <= at(due) && at(due) < window.until));
                rhythm.arrived(at(due));
                due += 100 * MS + late - 10_000;
            }
            assert!(hits > 480, "{hits} of 500, {late}");
        }
    }

    #[test]
    fn what_jitters_by_more_than_waiting_may_cost_is_not_waited_for() {
        let jitter = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % (5 * MS);
        let mut rhythm = Rhythm::new(100.0).unwrap();
        let awake = (0..1_000u64).filter(|cycle| {
            rhythm.arrived(at(1_000 * MS + cycle * 100 * MS + jitter(*cycle)));
            rhythm.window(at(1_000 * MS + cycle * 100 * MS + 50 * MS)).is_some()
        });
        assert!(awake.count() < 20);
    }

    proptest! {
        #[test]
        fn whatever_comes_a_window_is_short(
            interval in 2.0f64..1e6,
            steps in proptest::collection::vec(0u64..3_000_000_000, 1..50),
        ) {
            let mut rhythm = Rhythm::new(interval).unwrap();
            let mut now = 0;
            for step in steps {
                now += step;
                rhythm.arrived(at(now));
                rhythm.woken(at(now), at(now + step));
                if let Some(window) = rhythm.window(at(now)) {
                    prop_assert!(window.from < window.until && window.until > at(now));
                    prop_assert!(window.until.as_nanos() - window.from.as_nanos() <= 375_000);
                }
            }
        }
    }
}
