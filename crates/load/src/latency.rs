//! Latency histograms, with and without correction for coordinated omission.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// One hour; longer times are recorded as this.
const LONGEST: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds with three significant digits.
#[derive(Debug, Clone)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

impl Times {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        // The bounds are constants that satisfy the constructor's conditions, and so does the fallback.
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3).unwrap_or_else(|_| {
            Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are allowed"))
        });
        Self(histogram)
    }

    /// Records one sample.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos.max(1));
    }

    /// Records equal samples.
    pub fn record_many(&mut self, nanos: u64, count: u64) {
        self.0.saturating_record_n(nanos.max(1), count);
    }

    /// Adds the samples of another histogram. Histograms are merged; percentiles are never averaged.
    pub fn merge(&mut self, other: &Self) {
        // Adding fails only for different bounds; these are equal.
        let _ = self.0.add(&other.0);
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value below which `percent` of the samples lie, in nanoseconds.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        self.0.value_at_percentile(percent)
    }

    /// The largest sample.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The complete histogram in HdrHistogram's lossless compressed V2 form, which every HdrHistogram library reads.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory does not fail, and the bounds are within the limits of the format.
        if V2DeflateSerializer::new().serialize(&self.0, &mut bytes).is_err() {
            bytes.clear();
        }
        bytes
    }

    /// Parses the output of [`Self::to_bytes`]; `None` if it is invalid.
    #[must_use]
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        Deserializer::new().deserialize(&mut bytes).ok().map(Self)
    }

    /// The recorded values in ascending order with their counts.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The figures for display.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let us = |nanos: u64| nanos as f64 / 1e3;
        if self.0.is_empty() {
            return Summary::default();
        }
        Summary {
            count: self.0.len(),
            min_us: us(self.0.min()),
            mean_us: self.0.mean() / 1e3,
            std_us: self.0.stdev() / 1e3,
            p50_us: us(self.percentile(50.0)),
            p90_us: us(self.percentile(90.0)),
            p99_us: us(self.percentile(99.0)),
            p999_us: us(self.percentile(99.9)),
            max_us: us(self.0.max()),
        }
    }
}

/// Percentiles of a [`Times`] in microseconds; all zero if it is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct Summary {
    pub count: u64,
    pub min_us: f64,
    pub mean_us: f64,
    pub std_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

/// Samples of an open-loop load, measured from two starting points.
#[derive(Debug, Clone, Default)]
pub struct Latency {
    /// From the *scheduled* send time: as seen by a user who does not wait for the generator.
    pub corrected: Times,
    /// From the real send time, as most tools report it; too optimistic when the system stalls.
    pub uncorrected: Times,
    /// Lateness of the generator: real minus scheduled time.
    pub lateness: Times,
    /// Requests without an answer; they count with the time they have waited.
    pub unanswered: u64,
}

impl Latency {
    /// Empty histograms.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The relevant times: from the schedule if there is one.
    #[must_use]
    pub fn counted(&self, is_scheduled: bool) -> &Times {
        if is_scheduled { &self.corrected } else { &self.uncorrected }
    }

    /// Records one request; all times in monotonic nanoseconds.
    #[inline]
    pub fn record(&mut self, scheduled: u64, sent: u64, done: u64) {
        self.corrected.record(done.saturating_sub(scheduled));
        self.uncorrected.record(done.saturating_sub(sent));
        self.lateness.record(sent.saturating_sub(scheduled));
    }

    /// Records a request that had no answer when waiting ended; it counts with the time it has waited. Without these,
    /// the slowest requests would be missing, and percentiles would look best when the system stalls.
    pub fn record_unanswered(&mut self, scheduled: u64, sent: u64, given_up: u64) {
        self.record(scheduled, sent, given_up);
        self.unanswered += 1;
    }

    /// Records a request that was due but not sent at `now`. It has no real send time.
    pub fn record_unsent(&mut self, scheduled: u64, now: u64) {
        self.corrected.record(now.saturating_sub(scheduled));
        self.lateness.record(now.saturating_sub(scheduled));
    }

    /// Adds the samples of another load.
    pub fn merge(&mut self, other: &Self) {
        self.unanswered += other.unanswered;
        self.corrected.merge(&other.corrected);
        self.uncorrected.merge(&other.uncorrected);
        self.lateness.merge(&other.lateness);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_shows_in_the_corrected_figures_only() {
        // 1 000 requests, one per millisecond; the system stalls for 100 ms and then answers within 10 µs.
        let mut latency = Latency::new();
        for index in 0u64..1_000 {
            let scheduled = index * 1_000_000;
            let sent = if (500..600).contains(&index) { 600_000_000 } else { scheduled };
            latency.record(scheduled, sent, sent + 10_000);
        }
        let (corrected, uncorrected) = (latency.corrected.summary(), latency.uncorrected.summary());
        assert!((uncorrected.p99_us - 10.0).abs() < 0.1 && (uncorrected.max_us - 10.0).abs() < 0.1);
        assert!(corrected.p99_us > 80_000.0, "{corrected:?}");
        assert!((corrected.p50_us - 10.0).abs() < 0.1);
        assert!(latency.lateness.max() > 99_000_000);
    }

    #[test]
    fn a_stall_at_the_end_shows_in_the_corrected_figures() {
        // 1 000 requests, one per millisecond; the system stalls from request 900 until waiting ends.
        let mut latency = Latency::new();
        for scheduled in (0u64..1_000).map(|index| index * 1_000_000) {
            match scheduled {
                0..900_000_000 => latency.record(scheduled, scheduled, scheduled + 10_000),
                _ => latency.record_unanswered(scheduled, scheduled, 3_000_000_000),
            }
        }
        let corrected = latency.corrected.summary();
        assert_eq!((corrected.count, latency.unanswered), (1_000, 100));
        assert!(corrected.p99_us > 2_000_000.0 && corrected.p50_us < 11.0, "{corrected:?}");
        latency.record_unsent(1_000_000_000, 3_000_000_000);
        assert_eq!((latency.corrected.count(), latency.uncorrected.count()), (1_001, 1_000));
        assert!(latency.lateness.max() >= 1_990_000_000);
        let mut all = Latency::new();
        all.merge(&latency);
        assert_eq!((all.unanswered, all.corrected.count()), (100, 1_001));
    }

    #[test]
    fn serialization_is_lossless() {
        let mut times = Times::new();
        (1..=1_000u64).for_each(|value| times.record(value * value));
        let again = Times::from_bytes(&times.to_bytes()).unwrap();
        assert_eq!(again.summary(), times.summary());
        assert_eq!(again.values().collect::<Vec<_>>(), times.values().collect::<Vec<_>>());
        assert_eq!(times.values().map(|(_, count)| count).sum::<u64>(), 1_000);
        assert!(Times::from_bytes(b"no histogram").is_none());
    }

    #[test]
    fn histograms_merge_and_empty_ones_are_zero() {
        let (mut one, mut two) = (Times::new(), Times::new());
        assert_eq!(one.summary(), Summary::default());
        (1..=100).for_each(|value| one.record(value * 1_000));
        (101..=200).for_each(|value| two.record(value * 1_000));
        one.merge(&two);
        assert_eq!(one.count(), 200);
        assert!((one.summary().p50_us - 100.0).abs() < 0.2);
        one.record(u64::MAX);
        assert!(one.max() >= LONGEST);
    }
}
