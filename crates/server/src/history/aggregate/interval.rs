//! The raw values for one aggregate interval.

use super::bound::{self, Rules};
use crate::history::store::HistoryValue;
use taktwerk_types::{StatusCode, UtcTime};

/// An interval and the raw values in and around it.
#[derive(Debug, Clone, Copy)]
pub struct Interval<'a> {
    /// Sorted by time: the values in the interval, and enough on both sides for bounding values.
    pub values: &'a [HistoryValue],
    /// Start, inclusive.
    pub start: UtcTime,
    /// End, exclusive; earlier than the start if time flows backwards.
    pub end: UtcTime,
    /// Whether it is shorter than the processing interval.
    pub is_short: bool,
    /// Number of annotations in it.
    pub annotations: usize,
    /// How values between raw values are determined.
    pub rules: Rules,
}

/// The position of an interval relative to the data of its Variable (Part 13 §5.4.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// It ends before the first value.
    Before,
    /// It overlaps the data.
    Within,
    /// It starts after the last value.
    After,
}

/// How far the data extend after the last value. Part 13 Annex A uses one millisecond.
const LAST_VALUE: i64 = 10_000;

/// A part of an interval between two values or bounding values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    /// Length in ticks.
    pub(super) len: i64,
    /// The status at its start; Bad_NoData without a value.
    pub(super) status: StatusCode,
    /// The values at both ends, if they are usable numbers.
    pub(super) ends: Option<(f64, f64)>,
    /// Its quality in the StatusCode Calculation.
    pub(super) quality: Quality,
}

/// The quality of a region or value in the StatusCode Calculation (Part 13 §5.4.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quality {
    Good,
    Uncertain,
    Bad,
}

/// A value or bounding value, and whether calculations may use it.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) value: HistoryValue,
    pub(super) is_usable: bool,
    /// Whether it is a raw value at exactly that time.
    pub(super) is_raw: bool,
}

/// The data of a value that regions need.
#[derive(Debug, Clone, Copy)]
struct Point {
    time: UtcTime,
    status: StatusCode,
    is_usable: bool,
    number: Option<f64>,
}

impl Point {
    fn of(bound: &Bound) -> Self {
        let Bound { value, is_usable, .. } = bound;
        let number = bound::number(&value.value);
        Self { time: value.source, status: value.status, is_usable: *is_usable, number }
    }
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

    /// Length in ticks.
    pub(super) fn len(&self) -> i64 {
        self.high().ticks() - self.low().ticks()
    }

    /// The raw values in the interval, sorted by time.
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

    /// The raw values of good quality in the interval.
    pub(super) fn good(&self) -> impl Iterator<Item = &'a HistoryValue> {
        self.inside().iter().filter(|value| value.status.is_good())
    }

    /// Its position relative to the data.
    pub(super) fn extent(&self) -> Extent {
        let (Some(first), Some(last)) = (self.values.first(), self.values.last()) else {
            return Extent::Before;
        };
        let (low, high) = (self.low(), self.high());
        let is_reverse = self.is_reverse();
        if first.source > high || (!is_reverse && first.source == high) {
            Extent::Before
        } else if last.source < low || (is_reverse && last.source == low) {
            Extent::After
        } else {
            Extent::Within
        }
    }

    /// Whether the data extend to its later end.
    pub(super) fn reaches_end(&self) -> bool {
        self.values.last().is_some_and(|last| last.source >= self.high())
    }

    /// Whether it is short, or extends beyond the first or last value.
    pub(super) fn is_partial(&self) -> bool {
        let begins = self.values.first().is_some_and(|first| first.source <= self.low());
        self.is_short || !begins || !self.reaches_end()
    }

    pub(super) fn interpolated(&self, time: UtcTime) -> HistoryValue {
        bound::interpolated(self.values, time, self.rules)
    }

    /// The simple bounding value at a time.
    pub(super) fn bound(&self, time: UtcTime) -> Bound {
        let value = bound::simple(self.values, time, self.rules);
        let is_raw = self.values.binary_search_by_key(&time, |value| value.source).is_ok();
        // A bounding value made from usable values is usable, even if it is uncertain.
        let is_usable =
            if is_raw { self.rules.configuration.is_usable(value.status) } else { !value.status.is_bad() };
        Bound { value, is_usable, is_raw }
    }

    /// The quality of a raw value in the StatusCode Calculation.
    pub(super) fn quality(&self, status: StatusCode) -> Quality {
        match (status.is_good(), self.rules.configuration.is_usable(status)) {
            (true, _) => Quality::Good,
            (_, true) => Quality::Uncertain,
            _ => Quality::Bad,
        }
    }

    /// The interval split into regions between simple bounding values and raw values (Part 13 §5.4.3.2), up to the end
    /// of data.
    pub(super) fn regions(&self) -> Vec<Region> {
        let (low, high) = (self.low(), self.high());
        let from = self.values.partition_point(|value| value.source <= low);
        let to = self.values.partition_point(|value| value.source < high);
        let between = self.values.get(from..to).unwrap_or_default();
        let start = Point::of(&self.bound(low));
        let end = self.end_of_data().unwrap_or_else(|| Point::of(&self.bound(high)));
        let mut left = start;
        let mut regions = Vec::with_capacity(between.len() + 1);
        let inner = between.iter().map(|value| Point {
            time: value.source,
            status: value.status,
            is_usable: self.rules.configuration.is_usable(value.status),
            number: bound::number(&value.value),
        });
        for right in inner.chain([end]) {
            regions.push(self.region(left, right));
            left = right;
        }
        regions
    }

    /// A point directly after the last value, if it is before the end of the interval.
    fn end_of_data(&self) -> Option<Point> {
        let last = self.values.last().filter(|_| !self.reaches_end())?;
        let end = last.source.ticks().saturating_add(LAST_VALUE).min(self.high().ticks());
        let time = UtcTime::from_ticks(end);
        Some(Point { time, status: StatusCode::BAD_NO_DATA, is_usable: false, number: None })
    }

    fn region(&self, left: Point, right: Point) -> Region {
        let stepped = self.rules.stepped;
        let held = left.number.filter(|_| left.is_usable);
        let to = right.number.filter(|_| right.is_usable && !stepped);
        let is_sure = left.status.is_good() && (stepped || right.status.is_good());
        Region {
            len: right.time.ticks() - left.time.ticks(),
            status: left.status,
            ends: held.map(|held| (held, to.unwrap_or(held))),
            quality: match (left.is_usable, is_sure) {
                (false, _) => Quality::Bad,
                (true, true) => Quality::Good,
                (true, false) => Quality::Uncertain,
            },
        }
    }
}
