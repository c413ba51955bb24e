//! How much earlier than due a publisher's thread wakes: by what waking and making messages take, but for the rare times
//! when they take much longer.
//!
//! Waking early has a price: a cycle then wakes twice. It buys what a bare timer loop does not have: the second time the
//! processor was asleep for some microseconds only, and is back in less than half of the time.

/// One of so many values is larger than what [`Usual`] says.
const RARE: u64 = 20;
/// Values that are taken as they are before there is something to compare with.
const FIRST: u32 = 4;

/// Follows the nanoseconds that something takes, but for one time in twenty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usual {
    nanos: u64,
    count: u32,
}

impl Usual {
    pub(super) fn nanos(self) -> u64 {
        self.nanos
    }

    /// Rises by an eighth, however long it took this once, and falls by so little that both balance where one of twenty is
    /// larger.
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

    /// Values without an order, from 0 to 99 999.
    fn spread(index: u64) -> u64 {
        (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 100_000
    }

    #[test]
    fn one_of_twenty_is_larger() {
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
    fn what_happens_once_does_not_count() {
        let mut usual = Usual::default();
        (0..100).for_each(|_| usual.saw(10_000));
        usual.saw(50_000_000);
        assert!(usual.nanos() < 15_000, "{usual:?}");
        (0..40).for_each(|_| usual.saw(1_000_000));
        assert!(usual.nanos() > 900_000, "what stays is followed: {usual:?}");
    }
}
