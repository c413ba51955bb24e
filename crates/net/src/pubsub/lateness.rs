//! How late each cycle was, and which part of it caused that.

use core::sync::atomic::{AtomicU64, Ordering};

/// Number of buckets per power of two: values are known to 3 %.
const PARTS: usize = 32;
const PARTS_BITS: u32 = PARTS.trailing_zeros();
/// Powers of two above the first, linear part: up to 2^40 ns, 18 minutes.
const POWERS: usize = 36;
const BUCKETS: usize = PARTS * (POWERS + 1);

/// A histogram of nanoseconds that one thread fills and others read, without locks and without allocation.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    count: AtomicU64,
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < PARTS as u64 {
        return nanos as usize;
    }
    let power = nanos.ilog2() - PARTS_BITS;
    let part = (nanos >> power) as usize - PARTS;
    ((power as usize + 1) * PARTS + part).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    if bucket < PARTS {
        return bucket as u64;
    }
    let (power, part) = (bucket / PARTS - 1, bucket % PARTS);
    (((PARTS + part + 1) as u64) << power) - 1
}

impl Histogram {
    /// Adds a value. Only one thread may do so.
    pub fn record(&self, nanos: u64) {
        let add = |cell: &AtomicU64, value: u64| {
            cell.store(cell.load(Ordering::Relaxed).saturating_add(value), Ordering::Relaxed);
        };
        if let Some(cell) = self.buckets.get(bucket(nanos)) {
            add(cell, 1);
        }
        add(&self.count, 1);
        add(&self.sum, nanos);
        self.max.fetch_max(nanos, Ordering::Relaxed);
    }

    /// A snapshot of the current contents.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot {
            buckets: self.buckets.iter().map(|cell| cell.load(Ordering::Relaxed)).collect(),
            count: self.count.load(Ordering::Relaxed),
            sum: self.sum.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
        }
    }
}

/// The contents of a [`Histogram`] at some time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistogramSnapshot {
    buckets: Vec<u64>,
    /// Number of values.
    pub count: u64,
    sum: u64,
    /// The largest value, in nanoseconds.
    pub max: u64,
}

impl HistogramSnapshot {
    /// The mean in nanoseconds; 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The quantile of a share from 0 to 1, in nanoseconds; 0 without values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.buckets.iter().sum();
        let rank = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper(index).min(self.max);
            }
        }
        0
    }

    /// The values added since an earlier snapshot of the same histogram. The maximum is known to 3 %.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = earlier.buckets.iter().copied().chain(core::iter::repeat(0));
        let buckets: Vec<u64> =
            self.buckets.iter().zip(before).map(|(now, then)| now.saturating_sub(then)).collect();
        let max = buckets.iter().rposition(|count| *count > 0).map_or(0, upper).min(self.max);
        Self {
            buckets,
            count: self.count.saturating_sub(earlier.count),
            sum: self.sum.saturating_sub(earlier.sum),
            max,
        }
    }

    /// The values, rounded up to the bounds of their buckets, with their counts.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let buckets = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        buckets.map(|(index, count)| (upper(index).min(self.max), *count))
    }
}

/// Statistics of a publisher's timer thread. All times are nanoseconds.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Lateness {
    /// From the time a cycle's messages were due to the call that sends them.
    pub total: Histogram,
    /// From the time the thread wanted to wake to the time it did.
    pub timer: Histogram,
    /// Sampling values and encoding messages.
    pub encode: Histogram,
    /// Passing the messages to the kernel or the broker's client.
    pub send: Histogram,
    late_timer: AtomicU64,
    late_encode: AtomicU64,
    late_send: AtomicU64,
    missed_asleep: AtomicU64,
    missed_busy: AtomicU64,
}

/// One turn of the timer thread, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnTimes {
    pub(crate) total: u64,
    pub(crate) timer: u64,
    pub(crate) encode: u64,
    pub(crate) send: u64,
}

impl Lateness {
    pub(crate) fn record(&self, turn: TurnTimes, late_after: u64) {
        self.total.record(turn.total);
        self.timer.record(turn.timer);
        self.encode.record(turn.encode);
        self.send.record(turn.send);
        if turn.total.saturating_add(turn.send) <= late_after {
            return;
        }
        let blame = if turn.timer >= turn.encode.max(turn.send) {
            &self.late_timer
        } else if turn.encode >= turn.send {
            &self.late_encode
        } else {
            &self.late_send
        };
        blame.store(blame.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts missed cycles, by whether the thread was `busy`.
    pub(crate) fn missed(&self, cycles: u64, busy: bool) {
        let cell = if busy { &self.missed_busy } else { &self.missed_asleep };
        cell.store(cell.load(Ordering::Relaxed).saturating_add(cycles), Ordering::Relaxed);
    }

    /// A snapshot of the current contents.
    #[must_use]
    pub fn snapshot(&self) -> LatenessSnapshot {
        LatenessSnapshot {
            total: self.total.snapshot(),
            timer: self.timer.snapshot(),
            encode: self.encode.snapshot(),
            send: self.send.snapshot(),
            late_timer: self.late_timer.load(Ordering::Relaxed),
            late_encode: self.late_encode.load(Ordering::Relaxed),
            late_send: self.late_send.load(Ordering::Relaxed),
            missed_asleep: self.missed_asleep.load(Ordering::Relaxed),
            missed_busy: self.missed_busy.load(Ordering::Relaxed),
        }
    }
}

/// The contents of a [`Lateness`] at some time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LatenessSnapshot {
    /// From the time a cycle's messages were due to the call that sends them.
    pub total: HistogramSnapshot,
    /// From the time the thread wanted to wake to the time it did.
    pub timer: HistogramSnapshot,
    /// Sampling values and encoding messages.
    pub encode: HistogramSnapshot,
    /// Passing the messages to the kernel or the broker's client.
    pub send: HistogramSnapshot,
    /// Late cycles mostly caused by the kernel: the thread was woken late or was preempted.
    pub late_timer: u64,
    /// Late cycles mostly caused by sampling and encoding.
    pub late_encode: u64,
    /// Late cycles mostly caused by sending.
    pub late_send: u64,
    /// Cycles not sent because the thread did not run: it was woken after the next cycle was due, or was preempted.
    /// Every timer loop loses these.
    pub missed_asleep: u64,
    /// Cycles not sent because encoding and sending the previous one took too long, or because a virtual machine was
    /// paused in between, which looks the same.
    pub missed_busy: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_and_differences() {
        let histogram = Histogram::default();
        for nanos in 1..=1000u64 {
            histogram.record(nanos * 1000);
        }
        let first = histogram.snapshot();
        assert_eq!((first.count, first.max), (1000, 1_000_000));
        assert!((first.mean() - 500_500.0).abs() < 1.0);
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let got = first.quantile(share) as f64;
            assert!(got >= exact && got <= exact * 1.04, "{share}: {got}");
        }
        for _ in 0..10 {
            histogram.record(7);
        }
        let since = histogram.snapshot().since(&first);
        assert_eq!((since.count, since.quantile(1.0)), (10, 7));
        assert_eq!(HistogramSnapshot::default().quantile(0.5), 0);
    }

    #[test]
    fn lateness_is_attributed_to_the_largest_part() {
        let lateness = Lateness::default();
        lateness.record(TurnTimes { total: 900, timer: 800, encode: 100, send: 50 }, 500);
        lateness.record(TurnTimes { total: 900, timer: 100, encode: 800, send: 50 }, 500);
        lateness.record(TurnTimes { total: 100, timer: 100, encode: 10, send: 950 }, 500);
        lateness.record(TurnTimes { total: 400, timer: 400, encode: 10, send: 10 }, 500);
        let got = lateness.snapshot();
        assert_eq!((got.late_timer, got.late_encode, got.late_send, got.total.count), (1, 1, 1, 4));
        lateness.missed(3, false);
        lateness.missed(2, true);
        lateness.missed(1, true);
        let got = lateness.snapshot();
        assert_eq!((got.missed_asleep, got.missed_busy), (3, 3));
    }

    proptest! {
        #[test]
        fn every_value_is_in_a_bucket_of_its_size(nanos in 0u64..1 << 40) {
            let bound = upper(bucket(nanos));
            prop_assert!(bound >= nanos);
            prop_assert!(bound as f64 <= nanos as f64 * 1.04 + 1.0);
        }
    }

    #[test]
    fn the_largest_value_has_a_bucket() {
        let histogram = Histogram::default();
        histogram.record(u64::MAX);
        assert_eq!(histogram.snapshot().count, 1);
    }
}
