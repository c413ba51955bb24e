//! One aggregate of one interval.

use super::bound::{Rules, like, no_data, number};
use super::extreme::{Extreme, range, raw, with_bounds};
use super::interval::{Extent, Interval, Quality};
use super::made::{Made, SUB_NORMAL, calculated};
use super::{Aggregate, bits, with_bits};
use crate::history::store::HistoryValue;
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Ticks per second.
const SECOND: f64 = 1e7;
/// Ticks per millisecond.
const MILLISECOND: f64 = 1e4;

/// Calculates an aggregate of an interval.
///
/// `interval.values` is the Variable's history around the interval. If the last value is before the end of the
/// interval, no later ones exist; if the first value is after its start, no earlier ones exist.
#[must_use]
pub fn compute(aggregate: Aggregate, interval: &Interval<'_>) -> HistoryValue {
    use Aggregate as A;
    use Extreme::{Maximum, Minimum};
    let is_extrapolated = matches!(aggregate, A::TimeAverage | A::Total);
    if aggregate == A::Interpolative {
        return interval.interpolated(interval.start).at(interval.start);
    }
    if interval.extent() != Extent::Within && !(is_extrapolated && interval.extent() == Extent::After) {
        return no_data(interval.start);
    }
    let result = match aggregate {
        A::Interpolative => None,
        A::Average => average(interval),
        A::TimeAverage => time_average(interval, false),
        A::Total => time_average(interval, true),
        A::TimeAverage2 => area(interval).map(|area| area.made(interval, area.len)),
        A::Total2 => area(interval).map(|area| area.made(interval, SECOND)),
        A::Minimum | A::MinimumActualTime => raw(interval, Minimum, aggregate == A::MinimumActualTime),
        A::Maximum | A::MaximumActualTime => raw(interval, Maximum, aggregate == A::MaximumActualTime),
        A::Minimum2 | A::MinimumActualTime2 => {
            with_bounds(interval, Minimum, aggregate == A::MinimumActualTime2)
        }
        A::Maximum2 | A::MaximumActualTime2 => {
            with_bounds(interval, Maximum, aggregate == A::MaximumActualTime2)
        }
        A::Range => range(raw(interval, Minimum, false), raw(interval, Maximum, false)),
        A::Range2 => range(with_bounds(interval, Minimum, false), with_bounds(interval, Maximum, false)),
        A::AnnotationCount => Some(calculated(count(interval.annotations), StatusCode::GOOD)),
        A::Count => Some(calculated(count(interval.good().count()), interval.status_by_values())),
        A::DurationInStateZero => in_state(interval, |value| value == 0.0),
        A::DurationInStateNonZero => in_state(interval, |value| value != 0.0),
        A::NumberOfTransitions => Some(transitions(interval)),
        A::Start => edge(interval, !interval.is_reverse()),
        A::End => edge(interval, interval.is_reverse()),
        A::Delta => delta(interval),
        A::StartBound => start_bound(interval),
        A::EndBound => end_bound(interval),
        A::DeltaBounds => delta_bounds(interval),
        A::DurationGood | A::DurationBad | A::PercentGood | A::PercentBad => duration(aggregate, interval),
        A::WorstQuality => worst(interval.inside().iter().map(|value| value.status)),
        A::WorstQuality2 => {
            let bound = interval.bound(interval.low()).value.status;
            worst(core::iter::once(bound).chain(interval.inside().iter().map(|value| value.status)))
        }
        A::StandardDeviationSample => variance(interval, true).map(|made| made.with(f64::sqrt)),
        A::StandardDeviationPopulation => variance(interval, false).map(|made| made.with(f64::sqrt)),
        A::VarianceSample => variance(interval, true),
        A::VariancePopulation => variance(interval, false),
    };
    finish(result, interval)
}

impl HistoryValue {
    /// The same result with both times set.
    fn at(mut self, time: UtcTime) -> Self {
        (self.source, self.server) = (time, time);
        self
    }
}

fn finish(result: Option<Made>, interval: &Interval<'_>) -> HistoryValue {
    let made = result.unwrap_or_else(|| Made::new(Variant::Empty, StatusCode::BAD_NO_DATA, 0));
    let mut bits = made.bits;
    if made.may_be_partial && interval.is_partial() {
        bits |= bits::PARTIAL;
    }
    let time = made.time.unwrap_or(interval.start);
    // A bad result has no value, so that it cannot be mistaken for one.
    let value = if made.status.is_bad() { Variant::Empty } else { made.value };
    HistoryValue { source: time, server: time, status: with_bits(made.status, bits), value }
}

fn count(count: usize) -> Variant {
    i32::try_from(count).unwrap_or(i32::MAX).into()
}

/// The amount of each quality, as number of values or in ticks.
#[derive(Default)]
struct Shares {
    good: f64,
    uncertain: f64,
    bad: f64,
}

impl Shares {
    fn add(&mut self, quality: Quality, much: f64) {
        match quality {
            Quality::Good => self.good += much,
            Quality::Uncertain => self.uncertain += much,
            Quality::Bad => self.bad += much,
        }
    }
}

impl Interval<'_> {
    /// The StatusCode Calculation (Part 13 §5.4.3.2). PercentDataBad is checked first; with uncertain data the result
    /// is uncertain at best.
    fn status_of(&self, shares: &Shares) -> StatusCode {
        let Shares { good, uncertain, bad } = *shares;
        let all = good + uncertain + bad;
        let configuration = self.rules.configuration;
        if bad > 0.0 && bad * 100.0 >= f64::from(configuration.percent_data_bad) * all {
            StatusCode::BAD
        } else if uncertain > 0.0 || good * 100.0 < f64::from(configuration.percent_data_good) * all {
            SUB_NORMAL
        } else {
            StatusCode::GOOD
        }
    }

    /// Status by number of values.
    fn status_by_values(&self) -> StatusCode {
        let mut shares = Shares::default();
        self.inside().iter().for_each(|value| shares.add(self.quality(value.status), 1.0));
        self.status_of(&shares)
    }

    /// Status by the time for which values hold.
    pub(super) fn status_by_time(&self) -> StatusCode {
        let mut shares = Shares::default();
        self.regions().iter().for_each(|region| shares.add(region.quality, region.len as f64));
        self.status_of(&shares)
    }

    /// Sub-normal if any value in the interval is not good.
    fn status_by_any(&self) -> StatusCode {
        if self.good().count() == self.inside().len() { StatusCode::GOOD } else { SUB_NORMAL }
    }

    /// The good values as numbers.
    fn numbers(&self) -> impl Iterator<Item = f64> {
        self.good().filter_map(|value| number(&value.value))
    }
}

fn average(interval: &Interval<'_>) -> Option<Made> {
    let (sum, count) = interval.numbers().fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| Made {
        may_be_partial: false,
        ..calculated((sum / count as f64).into(), interval.status_by_values())
    })
}

/// The average, or the total, of the line through usable values with interpolated bounds. Lines are also used for
/// stepped Variables (Part 13 §5.4.3.8).
fn time_average(interval: &Interval<'_>, is_total: bool) -> Option<Made> {
    let rules = Rules { stepped: false, ..interval.rules };
    let interval = &Interval { rules, ..*interval };
    let (low, high) = (interval.low(), interval.high());
    let (start, end) = (interval.interpolated(low), interval.interpolated(high));
    let mut points: Vec<(i64, f64)> = Vec::with_capacity(interval.inside().len() + 2);
    let starts_late = start.status.is_bad();
    if !starts_late {
        points.push((low.ticks(), number(&start.value)?));
    }
    for value in interval.usable().filter(|value| value.source > low && value.source < high) {
        points.push((value.source.ticks(), number(&value.value)?));
    }
    if !end.status.is_bad() {
        points.push((high.ticks(), number(&end.value)?));
    }
    let mut area = 0.0;
    for pair in points.windows(2) {
        let [(from, left), (to, right)] = pair else { continue };
        area += (left + right) / 2.0 * (to - from) as f64;
    }
    let len = points.last()?.0 - points.first()?.0;
    if len <= 0 {
        return None;
    }
    let is_good = start.status.is_good() && end.status.is_good() && interval.status_by_any().is_good();
    let partial = if starts_late || interval.is_short { bits::PARTIAL } else { 0 };
    let value = area / if is_total { SECOND } else { len as f64 };
    let status = if is_good { StatusCode::GOOD } else { SUB_NORMAL };
    // After the last value the line continues, so the result is not partial.
    Some(Made { may_be_partial: false, ..Made::new(value.into(), status, bits::CALCULATED | partial) })
}

struct Area {
    /// Sum of value times ticks.
    sum: f64,
    /// Ticks with values.
    len: f64,
}

impl Area {
    fn made(&self, interval: &Interval<'_>, by: f64) -> Made {
        calculated((self.sum / by).into(), interval.status_by_time())
    }
}

/// The area under the regions with usable values.
fn area(interval: &Interval<'_>) -> Option<Area> {
    let mut area = Area { sum: 0.0, len: 0.0 };
    for region in interval.regions() {
        if let Some((from, to)) = region.ends {
            area.sum += (from + to) / 2.0 * region.len as f64;
            area.len += region.len as f64;
        }
    }
    (area.len > 0.0).then_some(area)
}

fn in_state(interval: &Interval<'_>, is_in: impl Fn(f64) -> bool) -> Option<Made> {
    // A state holds until the next one, even if values are interpolated.
    let rules = Rules { stepped: true, ..interval.rules };
    let interval = Interval { rules, ..*interval };
    let regions = interval.regions();
    if regions.iter().all(|region| region.ends.is_none()) {
        return None;
    }
    let inside = regions.iter().filter(|region| region.ends.is_some_and(|(value, _)| is_in(value)));
    let ticks: i64 = inside.map(|region| region.len).sum();
    Some(calculated((ticks as f64 / MILLISECOND).into(), interval.status_by_time()))
}

/// Number of value changes. The very first value counts as a change.
fn transitions(interval: &Interval<'_>) -> Made {
    let inside = interval.inside();
    let first = inside.first().map_or(interval.high(), |first| first.source);
    let mut earlier = interval.values.iter().rev().skip_while(|value| value.source >= first);
    let mut last = earlier.find(|value| !value.status.is_bad()).map(|value| &value.value);
    let mut changes = 0;
    for value in inside.iter().filter(|value| !value.status.is_bad()) {
        changes += usize::from(last.is_none_or(|last| !last.same_as(&value.value)));
        last = Some(&value.value);
    }
    calculated(count(changes), interval.status_by_values())
}

/// The first or last raw value, of any quality.
fn edge(interval: &Interval<'_>, first: bool) -> Option<Made> {
    let inside = interval.inside();
    let value = if first { inside.first() } else { inside.last() }?;
    Some(Made { time: Some(value.source), ..Made::new(value.value.clone(), value.status, 0) })
}

fn delta(interval: &Interval<'_>) -> Option<Made> {
    let mut usable = interval.usable();
    let first = usable.next()?;
    let last = usable.last().unwrap_or(first);
    let is_edge = interval.inside().first().map(|value| value.source) == Some(first.source)
        && interval.inside().last().map(|value| value.source) == Some(last.source);
    let change = number(&last.value)? - number(&first.value)?;
    let change = if interval.is_reverse() { -change } else { change };
    Some(calculated(like(&last.value, change), if is_edge { StatusCode::GOOD } else { SUB_NORMAL }))
}

/// The simple bounding value at the start.
fn start_bound(interval: &Interval<'_>) -> Option<Made> {
    let bound = interval.bound(interval.start);
    let bits = if bound.is_raw { 0 } else { bits::INTERPOLATED };
    bound.is_usable.then(|| Made::new(bound.value.value, bound.value.status, bits))
}

/// The simple bounding value at the end, with the start time of the interval.
fn end_bound(interval: &Interval<'_>) -> Option<Made> {
    let bound = interval.bound(interval.end);
    let is_there = bound.is_usable && (interval.is_reverse() || interval.reaches_end());
    is_there.then(|| calculated(bound.value.value, bound.value.status.code()))
}

fn delta_bounds(interval: &Interval<'_>) -> Option<Made> {
    let (start, end) = (start_bound(interval)?, end_bound(interval)?);
    let change = number(&end.value)? - number(&start.value)?;
    let is_good = start.status.is_good() && end.status.is_good();
    Some(calculated(like(&end.value, change), if is_good { StatusCode::GOOD } else { SUB_NORMAL }))
}

/// By the status at the start of each region, from its raw value or bounding value (Part 13 §5.4.3.31).
fn duration(aggregate: Aggregate, interval: &Interval<'_>) -> Option<Made> {
    let (mut good, mut bad, mut all) = (0i64, 0i64, 0i64);
    for region in interval.regions() {
        let is_bad = region.status.is_bad()
            || (!region.status.is_good() && interval.rules.configuration.treat_uncertain_as_bad);
        good += if region.status.is_good() { region.len } else { 0 };
        bad += if is_bad { region.len } else { 0 };
        all += region.len;
    }
    let all = all.max(1) as f64;
    let value = match aggregate {
        Aggregate::DurationGood => good as f64 / MILLISECOND,
        Aggregate::DurationBad => bad as f64 / MILLISECOND,
        Aggregate::PercentGood => good as f64 / all * 100.0,
        _ => bad as f64 / all * 100.0,
    };
    Some(calculated(value.into(), StatusCode::GOOD))
}

/// The worst status. If several different ones have the same severity: the first, with the MultiValue bit.
fn worst(statuses: impl Iterator<Item = StatusCode>) -> Option<Made> {
    let mut worst: Option<StatusCode> = None;
    let mut several = false;
    for status in statuses {
        let severity = status.0 >> 30;
        match worst {
            Some(known) if severity > known.0 >> 30 => {
                worst = Some(status);
                several = false;
            }
            Some(known) => several |= severity == known.0 >> 30 && status.code() != known.code(),
            None => worst = Some(status),
        }
    }
    let bits = bits::CALCULATED | if several { bits::MULTI_VALUE } else { 0 };
    Some(Made::new(Variant::StatusCode(worst?.code()), StatusCode::GOOD, bits))
}

fn variance(interval: &Interval<'_>, is_sample: bool) -> Option<Made> {
    // Welford's method: no cancellation of common leading digits.
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for value in interval.numbers() {
        n += 1.0;
        let off = value - mean;
        mean += off / n;
        squares += off * (value - mean);
    }
    if n == 0.0 {
        return None;
    }
    let by = if is_sample { n - 1.0 } else { n };
    let variance = if by > 0.0 { squares / by } else { 0.0 };
    Some(calculated(variance.into(), interval.status_by_any()))
}
