//! Alarm metrics (Part 9 §9.2): number of alarms, their longest durations, and their rates.

use std::collections::{BTreeMap, BTreeSet};
use taktwerk_types::UtcTime;

/// Number of parts that the time span of a rate is divided into.
const PARTS: usize = 60;
/// Ticks of a millisecond.
const TICKS_PER_MS: f64 = 10_000.0;
const TICKS_PER_MINUTE: i64 = 600_000_000;

/// The values of an AlarmMetricsType's Variables. Durations are in milliseconds, rates in alarms per
/// [`Metrics::rate_minutes`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MetricValues {
    /// AlarmCount: alarms since StartTime.
    pub count: u32,
    /// StartTime: the start of the server, or the last Reset.
    pub start: UtcTime,
    /// MaximumActiveState: the longest time that an alarm was active, including alarms that still are.
    pub active_max: f64,
    /// MaximumUnAck: the longest time that an alarm was not acknowledged.
    pub unacked_max: f64,
    /// CurrentAlarmRate.
    pub rate: f64,
    /// MaximumAlarmRate.
    pub rate_max: f64,
    /// MaximumReAlarmCount.
    pub re_alarms_max: u32,
    /// AverageAlarmRate.
    pub rate_average: f64,
}

/// Alarms in a state, with the time since when.
#[derive(Debug, Clone, Default, PartialEq)]
struct Since {
    by_alarm: BTreeMap<u32, i64>,
    by_time: BTreeSet<(i64, u32)>,
    /// The longest completed duration, in ticks.
    longest: i64,
}

impl Since {
    /// Sets whether an alarm is in the state. Returns whether it has just entered it.
    fn set(&mut self, alarm: u32, is_in: bool, now: i64) -> bool {
        match (self.by_alarm.get(&alarm).copied(), is_in) {
            (None, true) => {
                self.by_alarm.insert(alarm, now);
                self.by_time.insert((now, alarm));
                true
            }
            (Some(since), false) => {
                self.by_alarm.remove(&alarm);
                self.by_time.remove(&(since, alarm));
                self.longest = self.longest.max(now.saturating_sub(since));
                false
            }
            _ => false,
        }
    }

    /// The longest duration up to now, in milliseconds.
    fn longest(&self, now: i64) -> f64 {
        let open = self.by_time.first().map_or(0, |(since, _)| now.saturating_sub(*since));
        open.max(self.longest) as f64 / TICKS_PER_MS
    }

    /// Restarts the current durations now.
    fn reset(&mut self, now: i64) {
        self.longest = 0;
        self.by_alarm.values_mut().for_each(|since| *since = now);
        self.by_time = self.by_alarm.keys().map(|alarm| (now, *alarm)).collect();
    }
}

/// The metrics of the alarms at and below an Object.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    minutes: u16,
    start: i64,
    count: u32,
    active: Since,
    unacked: Since,
    re_alarms_max: u32,
    /// Number of alarms in each part of the last time span.
    parts: [u32; PARTS],
    /// The number of the newest part, counted from the epoch.
    part: i64,
    rate_max: u32,
}

impl Metrics {
    /// Creates empty metrics. Rates are alarms per `minutes`, at least one.
    #[must_use]
    pub fn new(minutes: u16, now: UtcTime) -> Self {
        let mut this = Self {
            minutes: minutes.max(1),
            start: now.ticks(),
            count: 0,
            active: Since::default(),
            unacked: Since::default(),
            re_alarms_max: 0,
            parts: [0; PARTS],
            part: 0,
            rate_max: 0,
        };
        this.part = now.ticks().div_euclid(this.part_len());
        this
    }

    /// Rate: the minutes over which a rate is counted (§9.3).
    #[must_use]
    pub fn rate_minutes(&self) -> u16 {
        self.minutes
    }

    fn span(&self) -> i64 {
        i64::from(self.minutes) * TICKS_PER_MINUTE
    }

    fn part_len(&self) -> i64 {
        self.span() / PARTS as i64
    }

    /// Drops parts that are older than the time span.
    fn advance(&mut self, now: i64) {
        let part = now.div_euclid(self.part_len());
        let steps = usize::try_from(part - self.part).unwrap_or(0).min(PARTS);
        for step in 1..=steps {
            let at =
                usize::try_from((part - steps as i64 + step as i64).rem_euclid(PARTS as i64)).unwrap_or(0);
            if let Some(count) = self.parts.get_mut(at) {
                *count = 0;
            }
        }
        self.part = self.part.max(part);
    }

    fn recent(&self) -> u32 {
        self.parts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Records the state of an alarm.
    pub fn observe(&mut self, alarm: u32, is_active: bool, is_acked: bool, re_alarms: i16, now: UtcTime) {
        let now = now.ticks();
        if self.active.set(alarm, is_active, now) {
            self.advance(now);
            self.count = self.count.saturating_add(1);
            let at = usize::try_from(self.part.rem_euclid(PARTS as i64)).unwrap_or(0);
            if let Some(count) = self.parts.get_mut(at) {
                *count = count.saturating_add(1);
            }
            self.rate_max = self.rate_max.max(self.recent());
        }
        self.unacked.set(alarm, !is_acked, now);
        if is_active {
            self.re_alarms_max = self.re_alarms_max.max(u32::try_from(re_alarms).unwrap_or(0));
        }
    }

    /// Reset: clears the counts. Durations of active alarms restart now.
    pub fn reset(&mut self, now: UtcTime) {
        let now = now.ticks();
        (self.start, self.count, self.re_alarms_max, self.rate_max) = (now, 0, 0, 0);
        self.parts = [0; PARTS];
        self.active.reset(now);
        self.unacked.reset(now);
    }

    /// The current values.
    pub fn values(&mut self, now: UtcTime) -> MetricValues {
        let at = now.ticks();
        self.advance(at);
        let spans = (at.saturating_sub(self.start) as f64 / self.span() as f64).max(1.0);
        MetricValues {
            count: self.count,
            start: UtcTime::from_ticks(self.start),
            active_max: self.active.longest(at),
            unacked_max: self.unacked.longest(at),
            rate: f64::from(self.recent()),
            rate_max: f64::from(self.rate_max),
            re_alarms_max: self.re_alarms_max,
            rate_average: f64::from(self.count) / spans,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> UtcTime {
        UtcTime::from_ticks(1_000 * TICKS_PER_MINUTE + seconds * 10_000_000)
    }

    #[test]
    fn alarms_are_counted_and_longest_durations_kept() {
        let mut metrics = Metrics::new(10, at(0));
        metrics.observe(1, true, false, 0, at(10));
        metrics.observe(2, true, false, 0, at(20));
        metrics.observe(1, true, true, 3, at(30));
        metrics.observe(1, false, true, 3, at(70));
        let values = metrics.values(at(75));
        assert_eq!((values.count, values.re_alarms_max, values.start), (2, 3, at(0)));
        // The first one was active for 60 s. The second one has been active and unacknowledged for 55 s.
        assert_eq!((values.active_max, values.unacked_max), (60_000.0, 55_000.0));
        assert_eq!(metrics.values(at(90)).active_max, 70_000.0);
    }

    #[test]
    fn rates_cover_the_last_minutes() {
        let mut metrics = Metrics::new(10, at(0));
        for alarm in 0..30 {
            metrics.observe(alarm, true, true, 0, at(i64::from(alarm)));
        }
        let values = metrics.values(at(60));
        assert_eq!((values.rate, values.rate_max, values.rate_average), (30.0, 30.0, 30.0));
        metrics.observe(99, true, true, 0, at(605));
        // The alarms of the first seconds are outside the span of ten minutes.
        let values = metrics.values(at(615));
        assert_eq!((values.rate, values.rate_max), (11.0, 30.0));
        let values = metrics.values(at(6_000));
        assert_eq!((values.rate, values.rate_average), (0.0, 3.1));
    }

    #[test]
    fn a_reset_clears_counts_but_keeps_active_alarms() {
        let mut metrics = Metrics::new(10, at(0));
        metrics.observe(1, true, false, 2, at(0));
        metrics.reset(at(100));
        let values = metrics.values(at(130));
        let expected = MetricValues {
            start: at(100),
            active_max: 30_000.0,
            unacked_max: 30_000.0,
            ..Default::default()
        };
        assert_eq!(values, expected);
        metrics.observe(1, false, true, 2, at(140));
        metrics.observe(1, true, false, 0, at(150));
        assert_eq!(metrics.values(at(150)).count, 1);
    }
}
