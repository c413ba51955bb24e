//! Estimates how long waking up and encoding usually take, so that a publisher's thread wakes that much earlier than a
//! cycle is due. Rare long times do not count.
//!
//! A cycle then wakes twice. The second sleep lasts only some microseconds, after which the processor wakes in less
//! than half the time.

/// One value in this many is larger than the estimate of [`Usual`].
const RARE: u64 = 20;
/// Number of first values of which the maximum is taken.
const FIRST: u32 = 4;

/// Estimates the 95th percentile of a duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usual {
    nanos: u64,
    count: u32,
}

impl Usual {
    pub(super) fn nanos(self) -> u64 {
        self.nanos
    }

    /// Raises the estimate by an eighth if the value is larger, however large it is, and lowers it by a nineteenth of
    /// that otherwise. Both balance where one value in twenty is larger.
    pub(super) fn saw(&mut self, nanos: u64) {
        if self.count < FIRST {
            self.count += 1;
            self.nanos = self.nanos.max(nanos);
            return;
        }
        let step = self.nanos / 8 + 1_000;
        if nanos > self.nanos {
            self.nanos = self.nanos.saturating_add(step);
        } else {
            self.nanos -= (step / (RARE - 1)).min(self.nanos);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values in pseudo-random order, from 0 to 99 999.
    fn spread(index: u64) -> u64 {
        (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 100_000
    }

    #[test]
    fn one_value_in_twenty_is_larger() {
        let mut usual = Usual::default();
        let (mut larger, mut count) = (0u64, 0u64);
        for index in 0..40_000 {
            let nanos = spread(index);
            if index > 1_000 {
                larger += u64::from(nanos > usual.nanos());
                count += 1;
            }
            usual.saw(nanos);
        }
        let share = larger as f64 / count as f64;
        assert!((0.02..0.1).contains(&share), "{share}");
    }

    #[test]
    fn single_outliers_are_ignored() {
        let mut usual = Usual::default();
        (0..100).for_each(|_| usual.saw(10_000));
        usual.saw(50_000_000);
        assert!(usual.nanos() < 15_000, "{usual:?}");
        (0..40).for_each(|_| usual.saw(1_000_000));
        assert!(usual.nanos() > 900_000, "a lasting change is followed: {usual:?}");
    }
}
