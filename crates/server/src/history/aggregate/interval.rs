//! The raw values that an aggregate of one interval looks at.

use super::bound::{self, Rules};
use crate::history::store::HistoryValue;
use taktwerk_types::{StatusCode, UtcTime};

/// An interval and the raw values in and around it.
#[derive(Debug, Clone, Copy)]
pub struct Interval<'a> {
    /// In the order of time: those of the interval, and enough on both sides for bounding values.
    pub values: &'a [HistoryValue],
    /// Where it starts. A time belongs to it.
    pub start: UtcTime,
    /// Where it ends; earlier than its start if time flows backwards. The time does not belong to it.
    pub end: UtcTime,
    /// It is shorter than the processing interval.
    pub is_short: bool,
    /// How many annotations are in it.
    pub annotations: usize,
    /// How values in between are made.
    pub rules: Rules,
}

/// A part of an interval in which one raw value holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    /// Ticks.
    pub(super) len: i64,
    /// The status of the value; Bad_NoData where there is none.
    pub(super) status: StatusCode,
    /// The value at both ends, if they are numbers that can be used.
    pub(super) ends: Option<(f64, f64)>,
}

impl<'a> Interval<'a> {
    /// Whether time flows backwards.
    #[must_use]
    pub fn is_reverse(&self) -> bool {
        self.end < self.start
    }

    /// The earlier end.
    pub(super) fn low(&self) -> UtcTime {
        self.start.min(self.end)
    }

    /// The later end.
    pub(super) fn high(&self) -> UtcTime {
        self.start.max(self.end)
    }

    /// Ticks.
    pub(super) fn len(&self) -> i64 {
        self.high().ticks() - self.low().ticks()
    }

    /// The raw values that belong to it, in the order of time.
    pub(super) fn inside(&self) -> &'a [HistoryValue] {
        let (low, high) = (self.low(), self.high());
        let (from, to) = if self.is_reverse() {
            (
                self.values.partition_point(|value| value.source <= low),
                self.values.partition_point(|value| value.source <= high),
            )
        } else {
            (
                self.values.partition_point(|value| value.source < low),
                self.values.partition_point(|value| value.source < high),
            )
        };
        self.values.get(from..to).unwrap_or_default()
    }

    pub(super) fn usable(&self) -> impl Iterator<Item = &'a HistoryValue> {
        let configuration = self.rules.configuration;
        self.inside().iter().filter(move |value| configuration.is_usable(value.status))
    }

    /// Whether it is short, or reaches beyond the first or last value.
    pub(super) fn is_partial(&self) -> bool {
        let begins = self.values.first().is_some_and(|first| first.source <= self.low());
        let ends = self.values.last().is_some_and(|last| last.source >= self.high());
        self.is_short || !begins || !ends
    }

    pub(super) fn interpolated(&self, time: UtcTime) -> HistoryValue {
        bound::interpolated(self.values, time, self.rules)
    }

    pub(super) fn simple(&self, time: UtcTime) -> HistoryValue {
        bound::simple(self.values, time, self.rules)
    }

    /// The interval in regions between simple bounding values and raw values (Part 13 §5.4.3).
    pub(super) fn regions(&self) -> Vec<Region> {
        let (low, high) = (self.low(), self.high());
        let usable = |status| self.rules.configuration.is_usable(status);
        let (start, end) = (self.simple(low), self.simple(high));
        let between = self.inside().iter().filter(|value| value.source > low && value.source < high);
        let mut points = vec![&start];
        points.extend(between);
        points.push(&end);
        // What holds is the raw value, whatever is known of the line to the next one.
        let raw = self.values.partition_point(|value| value.source <= low).checked_sub(1);
        let raw = raw.and_then(|raw| self.values.get(raw)).map(|raw| raw.status);
        let raw = raw.unwrap_or(StatusCode::BAD_NO_DATA);
        let region = |pair: &[&HistoryValue]| {
            let [left, right] = pair else { return None };
            let status = if left.source == low { raw } else { left.status };
            let held = bound::number(&left.value).filter(|_| usable(status));
            let to = bound::number(&right.value).filter(|_| usable(right.status) && !self.rules.stepped);
            Some(Region {
                len: right.source.ticks() - left.source.ticks(),
                status,
                ends: held.map(|held| (held, to.unwrap_or(held))),
            })
        };
        points.windows(2).filter_map(region).collect()
    }
}
