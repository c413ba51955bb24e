//! Predicts the next message of a publisher with a steady interval, so that the receiver is awake by then.
//!
//! A DataSetReader configures the PublishingInterval of its messages (Part 14 §6.3.1.4.7), but not their phase, which
//! is learned from their arrivals. If messages do not arrive as predicted (other interval, too much jitter, no
//! publisher), the thread does not wake early.

use super::early::Usual;
use super::timer::awake_max;
use taktwerk_types::Instant;

/// From this trust on, the thread spins for the next cycle. Each cycle that arrives as predicted adds one.
const TRUSTED: u8 = 4;
/// Maximum trust.
const TRUST_MAX: u8 = 8;
/// Trust lost by a cycle that does not: three of four have to arrive as predicted.
const LOSS: u8 = 3;

/// The time in which the thread spins for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// When to wake.
    pub(super) from: Instant,
    /// When to sleep again if the message has not arrived.
    pub(super) until: Instant,
}

/// Tracks the cycles of a connection's messages. Times are nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rhythm {
    interval: u64,
    /// When a cycle's first message is expected; zero before the first message.
    expected: u64,
    /// How well recent cycles matched the prediction, up to [`TRUST_MAX`].
    trust: u8,
    /// How late the thread wakes.
    waking: Usual,
}

impl Rhythm {
    /// For a PublishingInterval in milliseconds; `None` if it is out of range.
    pub(super) fn new(publishing_interval: f64) -> Option<Self> {
        let nanos = publishing_interval * 1e6;
        // With shorter intervals, the processor sleeps so lightly that waking early gains nothing (measured at 1 ms).
        // Intervals above eleven days are too long to learn.
        (2e6..1e15).contains(&nanos).then(|| Self {
            interval: nanos as u64,
            expected: 0,
            trust: 0,
            waking: Usual::default(),
        })
    }

    /// Messages have arrived.
    pub(super) fn arrived(&mut self, at: Instant) {
        let at = at.as_nanos();
        let half = self.interval / 2;
        if self.expected == 0 {
            self.expected = at.saturating_add(self.interval);
        }
        if at.saturating_add(half) < self.expected {
            // A further message of the current cycle.
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
            // One late message is no new phase; several in a row are.
            self.expected = at;
        }
        if within {
            // Waking too late costs a wake-up, waking too early a short spin. So early arrivals have more weight.
            match self.expected.checked_sub(at) {
                Some(early) => self.expected -= early / 2,
                None => self.expected += (at - self.expected) / 8,
            }
        }
        self.expected = self.expected.saturating_add(self.interval);
    }

    /// The thread wanted to wake at one time and woke at another.
    pub(super) fn woken(&mut self, wanted: Instant, at: Instant) {
        self.waking.saw(at.as_nanos().saturating_sub(wanted.as_nanos()));
    }

    /// The window for the next message if it has not passed; `None` if the time is not known.
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

    /// Messages every 100 ms from one second on, with these delays in nanoseconds.
    fn following(late: impl IntoIterator<Item = u64>) -> (Rhythm, u64) {
        let mut rhythm = Rhythm::new(100.0).unwrap();
        let mut due = 1_000 * MS;
        for late in late {
            rhythm.arrived(at(due + late));
            // The remaining datagrams of the cycle.
            (1..5).for_each(|more| rhythm.arrived(at(due + late + more * 10_000)));
            due += 100 * MS;
        }
        (rhythm, due)
    }

    #[test]
    fn only_valid_intervals_are_accepted() {
        for none in [0.0, -1.0, 1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e300] {
            assert_eq!(Rhythm::new(none), None, "{none}");
        }
        assert!(Rhythm::new(2.0).is_some());
    }

    #[test]
    fn a_steady_publisher_is_expected_and_waited_for_within_bounds() {
        let (rhythm, due) = following([0; 3]);
        assert_eq!(rhythm.window(at(due - MS)), None, "three cycles are not enough");
        let (rhythm, due) = following([0; 6]);
        let window = rhythm.window(at(due - MS)).unwrap();
        assert!(window.from < at(due) && at(due) < window.until, "{window:?} of {due}");
        assert!(window.until.as_nanos() - window.from.as_nanos() < 400_000, "{window:?}");
        assert_eq!(rhythm.window(window.until), None, "no longer than the window");
    }

    #[test]
    fn late_wakers_wake_earlier_within_the_limit() {
        let (mut rhythm, due) = following([0; 6]);
        let before = rhythm.window(at(due - MS)).unwrap();
        (0..20).for_each(|_| rhythm.woken(at(5), at(100_005)));
        let after = rhythm.window(at(due - MS)).unwrap();
        assert!(before.from.as_nanos() - after.from.as_nanos() >= 100_000, "{before:?} {after:?}");
        (0..200).for_each(|_| rhythm.woken(at(5), at(50 * MS)));
        assert!(due - rhythm.window(at(due - MS)).unwrap().from.as_nanos() <= 250_000);
    }

    #[test]
    fn a_late_or_lost_message_reduces_trust_only() {
        for lost in [false, true] {
            let (mut rhythm, mut due) = following([0; 10]);
            if !lost {
                rhythm.arrived(at(due + 5 * MS));
            }
            due += 100 * MS;
            let late = if lost { 0 } else { 5 * MS };
            rhythm.arrived(at(due + late));
            let window = rhythm.window(at(due + 6 * MS));
            assert_eq!(window.is_some(), lost, "one deviation is tolerated, two are not: {window:?}");
            for _ in 0..2 {
                due += 100 * MS;
                rhythm.arrived(at(due));
            }
            let window = rhythm.window(at(due + MS)).unwrap();
            assert!(window.from < at(due + 100 * MS) && at(due + 100 * MS) < window.until, "{lost}");
        }
    }

    #[test]
    fn a_restarted_publisher_is_learned_again() {
        let (mut rhythm, due) = following([0; 10]);
        let start = due + 30 * MS;
        (0..9).for_each(|cycle| rhythm.arrived(at(start + cycle * 100 * MS)));
        let next = start + 900 * MS;
        let window = rhythm.window(at(next - MS)).unwrap();
        assert!(window.from < at(next) && at(next) < window.until, "{window:?} of {next}");
    }

    #[test]
    fn clock_drift_is_followed() {
        // 100 ppm: 10 µs in each cycle, in either direction.
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
    fn messages_with_too_much_jitter_have_no_window() {
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
        fn windows_are_always_short(
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
