//! A histogram of delays with logarithmic buckets: constant memory, percentiles within 1.6 %.

/// Logarithm of the number of buckets per power of two.
const FINE: u32 = 6;

/// Counts of durations in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
    sum: u128,
}

impl Histogram {
    /// Records a duration.
    pub fn record(&mut self, nanos: u64) {
        let at = bucket(nanos);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.min = if self.total == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.total += 1;
        self.sum += u128::from(nanos);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.total == 0 {
            return;
        }
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.min = if self.total == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.total += other.total;
        self.sum += other.sum;
    }

    /// Durations in nanoseconds in ascending order, with their counts.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(at, count)| (upper(at).clamp(self.min, self.max), *count))
    }

    /// Number of recorded durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The mean in nanoseconds; 0 if empty.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 }
    }

    /// The minimum in nanoseconds; 0 if empty.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The maximum in nanoseconds; 0 if empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The quantile at `share` (0 to 1) in nanoseconds; 0 if empty.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = ((self.total as f64 * share.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper(at).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(FINE + 1);
    ((u64::from(shift) << FINE) + (nanos >> shift)) as usize
}

/// Upper limit of a bucket.
fn upper(bucket: usize) -> u64 {
    let shift = (bucket as u64 >> FINE).saturating_sub(1);
    let fine = bucket as u64 - (shift << FINE);
    (((u128::from(fine) + 1) << shift) - 1).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_the_right_bucket() {
        for nanos in (0..100_000).chain([1 << 40, u64::MAX / 3, u64::MAX - 1, u64::MAX]) {
            let at = bucket(nanos);
            assert!(upper(at) >= nanos, "{nanos}");
            assert!(at == 0 || upper(at - 1) < nanos, "{nanos}");
            assert!((upper(at) - nanos) as f64 <= nanos as f64 / 63.0, "{nanos} {}", upper(at));
        }
    }

    #[test]
    fn percentiles() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.mean()), (0, 0.0));
        (1..=1000).for_each(|number| histogram.record(number * 1000));
        assert_eq!((histogram.min(), histogram.max(), histogram.count()), (1000, 1_000_000, 1000));
        assert!((histogram.mean() - 500_500.0).abs() < 1e-6);
        let mut twice = Histogram::default();
        twice.merge(&histogram);
        assert_eq!(twice, histogram);
        twice.merge(&histogram);
        assert_eq!((twice.count(), twice.max()), (2000, 1_000_000));
        assert_eq!(twice.buckets().map(|(_, count)| count).sum::<u64>(), 2000);
        for (share, expected) in [(0.5, 500e3), (0.99, 990e3), (1.0, 1e6), (0.0, 1e3)] {
            let found = histogram.quantile(share) as f64;
            assert!((found / expected - 1.0).abs() < 0.017, "{share}: {found}");
        }
    }
}
