//! Minimum, Maximum and Range, with and without bounding values (Part 13 §5.4.3.10 to §5.4.3.19).

use super::bits;
use super::bound::{like, number};
use super::interval::Interval;
use super::made::{Made, SUB_NORMAL, calculated};
use crate::history::store::HistoryValue;
use taktwerk_types::{StatusCode, UtcTime};

/// Whether to find the smallest or the largest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Minimum,
    Maximum,
}

impl Extreme {
    fn is_beyond(self, number: f64, known: f64) -> bool {
        match self {
            Self::Minimum => number < known,
            Self::Maximum => number > known,
        }
    }
}

/// The extreme of some values, and whether it occurs at several times. Returns the earliest one.
fn best<'a>(
    values: impl Iterator<Item = &'a HistoryValue>,
    extreme: Extreme,
) -> Option<(f64, &'a HistoryValue, bool)> {
    let mut best: Option<(f64, &HistoryValue, bool)> = None;
    for value in values {
        let Some(number) = number(&value.value).filter(|number| !number.is_nan()) else { continue };
        match &mut best {
            Some((known, ..)) if extreme.is_beyond(number, *known) => best = Some((number, value, false)),
            Some((known, _, several)) => *several |= number == *known,
            None => best = Some((number, value, false)),
        }
    }
    best
}

/// The smallest or largest good raw value. Bad values, and uncertain values beyond it, make it sub-normal.
pub(super) fn raw(interval: &Interval<'_>, extreme: Extreme, actual_time: bool) -> Option<Made> {
    let (known, value, several) = best(interval.good(), extreme)?;
    let is_doubtful = interval.inside().iter().any(|other| {
        let is_beyond = || number(&other.value).is_some_and(|number| extreme.is_beyond(number, known));
        let is_usable = interval.rules.configuration.is_usable(other.status);
        !is_usable || (!other.status.is_good() && is_beyond())
    });
    let status = if is_doubtful { SUB_NORMAL } else { StatusCode::GOOD };
    let time = actual_time.then_some(value.source);
    let bits = if actual_time || value.source == interval.start { 0 } else { bits::CALCULATED };
    Some(Made { time, ..Made::new(value.value.clone(), status, bits | multiple(several)) })
}

fn multiple(several: bool) -> u32 {
    if several { bits::MULTI_VALUE } else { 0 }
}

/// Ticks between the end of an interval and the time reported for a value there (the EffectiveEndTime, Part 13 §3.1.3).
const BEFORE_END: i64 = 10_000;

/// The smallest or largest usable value, including the simple bounding values.
pub(super) fn with_bounds(interval: &Interval<'_>, extreme: Extreme, actual_time: bool) -> Option<Made> {
    let (low, high) = (interval.low(), interval.high());
    let start = interval.bound(low);
    // A stepped value already holds before the end. After the last value, the end adds nothing.
    let end = (!interval.rules.stepped && interval.reaches_end()).then(|| interval.bound(high));
    let effective = if interval.len() > BEFORE_END { high.ticks() - BEFORE_END } else { high.ticks() - 1 };
    let end = end
        .filter(|end| end.is_usable)
        .map(|end| HistoryValue { source: UtcTime::from_ticks(effective.max(low.ticks())), ..end.value });
    let configuration = interval.rules.configuration;
    let inner = interval
        .values
        .iter()
        .filter(|value| value.source > low && value.source < high && configuration.is_usable(value.status));
    let first = Some(&start.value).filter(|_| start.is_usable);
    let (_, value, several) = best(first.into_iter().chain(inner).chain(end.as_ref()), extreme)?;
    let is_start = first.is_some_and(|first| core::ptr::eq(first, value));
    let is_end = end.as_ref().is_some_and(|end| core::ptr::eq(end, value));
    let bits = match (is_start, is_end) {
        (true, _) if !start.is_raw => bits::INTERPOLATED,
        (_, true) => bits::INTERPOLATED,
        _ if actual_time || value.source == interval.start => 0,
        _ => bits::CALCULATED,
    };
    let time = actual_time.then_some(value.source);
    let status = interval.status_by_time();
    Some(Made { time, ..Made::new(value.value.clone(), status, bits | multiple(several)) })
}

/// The difference of both, with the worse status.
pub(super) fn range(low: Option<Made>, high: Option<Made>) -> Option<Made> {
    let (low, high) = (low?, high?);
    let value = like(&high.value, number(&high.value)? - number(&low.value)?);
    let status = if low.status.0 >> 30 > high.status.0 >> 30 { low.status } else { high.status };
    Some(calculated(value, status))
}
