//! One aggregate of one interval.

use super::bound::{like, no_data, number};
use super::interval::Interval;
use super::{Aggregate, bits, with_bits};
use crate::history::store::HistoryValue;
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Ticks of a second.
const SECOND: f64 = 1e7;
/// Ticks of a millisecond.
const MILLISECOND: f64 = 1e4;

const SUB_NORMAL: StatusCode = StatusCode::UNCERTAIN_DATA_SUB_NORMAL;

/// Calculates an aggregate of an interval.
#[must_use]
pub fn compute(aggregate: Aggregate, interval: &Interval<'_>) -> HistoryValue {
    use Aggregate as A;
    let result = match aggregate {
        A::Interpolative => return interval.interpolated(interval.start).at(interval.start),
        A::Average => average(interval),
        A::TimeAverage => time_average(interval)
            .map(|(average, status, partial)| calculated_partial(average.into(), status, partial)),
        A::Total => time_average(interval).map(|(average, status, partial)| {
            calculated_partial((average * interval.len() as f64 / SECOND).into(), status, partial)
        }),
        A::TimeAverage2 => {
            area(interval).map(|area| calculated((area.sum / area.len).into(), interval.status_by_time()))
        }
        A::Total2 => {
            area(interval).map(|area| calculated((area.sum / SECOND).into(), interval.status_by_time()))
        }
        A::Minimum | A::MinimumActualTime => extreme(interval, f64::lt, aggregate == A::MinimumActualTime),
        A::Maximum | A::MaximumActualTime => extreme(interval, f64::gt, aggregate == A::MaximumActualTime),
        A::Minimum2 | A::MinimumActualTime2 => {
            extreme2(interval, f64::lt, aggregate == A::MinimumActualTime2)
        }
        A::Maximum2 | A::MaximumActualTime2 => {
            extreme2(interval, f64::gt, aggregate == A::MaximumActualTime2)
        }
        A::Range => range(extreme(interval, f64::lt, false), extreme(interval, f64::gt, false)),
        A::Range2 => range(extreme2(interval, f64::lt, false), extreme2(interval, f64::gt, false)),
        A::AnnotationCount => {
            Some(Made::new(count(interval.annotations), StatusCode::GOOD, bits::CALCULATED))
        }
        A::Count => Some(calculated(count(interval.usable().count()), interval.status_by_values())),
        A::DurationInStateZero => in_state(interval, |value| value == 0.0),
        A::DurationInStateNonZero => in_state(interval, |value| value != 0.0),
        A::NumberOfTransitions => transitions(interval),
        A::Start => edge(interval, !interval.is_reverse()),
        A::End => edge(interval, interval.is_reverse()),
        A::Delta => delta(interval),
        A::StartBound => Some(bounding(interval, interval.start)),
        A::EndBound => Some(bounding(interval, interval.end)),
        A::DeltaBounds => delta_bounds(interval),
        A::DurationGood | A::DurationBad | A::PercentGood | A::PercentBad => duration(aggregate, interval),
        A::WorstQuality => worst(interval.inside().iter().map(|value| value.status)),
        A::WorstQuality2 => {
            let bound = interval.simple(interval.low()).status;
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
    /// The same with both times set.
    fn at(mut self, time: UtcTime) -> Self {
        (self.source, self.server) = (time, time);
        self
    }
}

/// A result.
struct Made {
    value: Variant,
    status: StatusCode,
    bits: u32,
    /// Where it is not the start of the interval.
    time: Option<UtcTime>,
    /// Whether the interval matters: values with a time of their own are whole.
    may_be_partial: bool,
}

impl Made {
    fn new(value: Variant, status: StatusCode, bits: u32) -> Self {
        Self { value, status, bits, time: None, may_be_partial: true }
    }

    fn with(mut self, change: impl FnOnce(f64) -> f64) -> Self {
        if let Some(value) = number(&self.value) {
            self.value = change(value).into();
        }
        self
    }
}

fn finish(result: Option<Made>, interval: &Interval<'_>) -> HistoryValue {
    let Some(made) = result else { return no_data(interval.start) };
    let mut bits = made.bits;
    if made.may_be_partial && interval.is_partial() {
        bits |= bits::PARTIAL;
    }
    let time = made.time.unwrap_or(interval.start);
    // A bad result has no value that could be taken for one.
    let value = if made.status.is_bad() { Variant::Empty } else { made.value };
    HistoryValue { source: time, server: time, status: with_bits(made.status, bits), value }
}

fn calculated(value: Variant, status: StatusCode) -> Made {
    Made::new(value, status, bits::CALCULATED)
}

fn calculated_partial(value: Variant, status: StatusCode, partial: bool) -> Made {
    Made::new(value, status, bits::CALCULATED | if partial { bits::PARTIAL } else { 0 })
}

fn count(count: usize) -> Variant {
    i32::try_from(count).unwrap_or(i32::MAX).into()
}

impl Interval<'_> {
    /// The status by how much of the data is good (Part 13 §5.4.3, PercentDataGood and PercentDataBad).
    fn status_of(&self, good: f64, bad: f64) -> StatusCode {
        let all = good + bad;
        let configuration = self.rules.configuration;
        if all <= 0.0 || good * 100.0 >= f64::from(configuration.percent_data_good) * all {
            StatusCode::GOOD
        } else if bad * 100.0 >= f64::from(configuration.percent_data_bad) * all {
            StatusCode::BAD
        } else {
            SUB_NORMAL
        }
    }

    /// By the number of values.
    fn status_by_values(&self) -> StatusCode {
        let good = self.usable().count();
        self.status_of(good as f64, (self.inside().len() - good) as f64)
    }

    /// By the time for which values hold.
    fn status_by_time(&self) -> StatusCode {
        let (mut good, mut bad) = (0.0, 0.0);
        for region in self.regions() {
            let is_good = self.rules.configuration.is_usable(region.status);
            *(if is_good { &mut good } else { &mut bad }) += region.len as f64;
        }
        self.status_of(good, bad)
    }

    /// Sub-normal if a value of the interval could not be used.
    fn status_by_any(&self) -> StatusCode {
        if self.usable().count() == self.inside().len() { StatusCode::GOOD } else { SUB_NORMAL }
    }

    fn numbers(&self) -> impl Iterator<Item = f64> {
        self.usable().filter_map(|value| number(&value.value))
    }
}

fn average(interval: &Interval<'_>) -> Option<Made> {
    let (sum, count) = interval.numbers().fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| calculated((sum / count as f64).into(), interval.status_by_values()))
}

/// The average of the line through usable values with interpolated bounds; its status, and whether it starts late.
fn time_average(interval: &Interval<'_>) -> Option<(f64, StatusCode, bool)> {
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
        let right = if interval.rules.stepped { left } else { right };
        area += (left + right) / 2.0 * (to - from) as f64;
    }
    let len = points.last()?.0 - points.first()?.0;
    if len <= 0 {
        return None;
    }
    let is_good = start.status.is_good() && end.status.is_good() && interval.status_by_any().is_good();
    Some((area / len as f64, if is_good { StatusCode::GOOD } else { SUB_NORMAL }, starts_late))
}

struct Area {
    /// Values times ticks.
    sum: f64,
    /// Ticks in which there are values.
    len: f64,
}

/// The area under the regions whose values can be used.
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

/// The smallest or largest raw value. Several at different times: the first one, and the MultiValue bit with its time.
fn extreme(
    interval: &Interval<'_>,
    is_beyond: impl Fn(&f64, &f64) -> bool,
    actual_time: bool,
) -> Option<Made> {
    let mut best: Option<(f64, &HistoryValue)> = None;
    let mut several = false;
    for value in interval.usable() {
        let Some(number) = number(&value.value) else { continue };
        match best {
            Some((known, _)) if is_beyond(&number, &known) => {
                best = Some((number, value));
                several = false;
            }
            Some((known, _)) => several |= number == known,
            None => best = Some((number, value)),
        }
    }
    let (_, value) = best?;
    let status = interval.status_by_any();
    if actual_time {
        let bits = if several { bits::MULTI_VALUE } else { 0 };
        let made = Made::new(value.value.clone(), status, bits);
        return Some(Made { time: Some(value.source), ..made });
    }
    let bits = if value.source == interval.start { 0 } else { bits::CALCULATED };
    Some(Made::new(value.value.clone(), status, bits))
}

/// The smallest or largest value, the simple bounding values included.
fn extreme2(
    interval: &Interval<'_>,
    is_beyond: impl Fn(&f64, &f64) -> bool,
    actual_time: bool,
) -> Option<Made> {
    let (low, high) = (interval.low(), interval.high());
    let usable = |value: &HistoryValue| interval.rules.configuration.is_usable(value.status);
    let mut bounds = vec![interval.simple(low)];
    if !interval.rules.stepped {
        // Immediately before the end, which does not belong to the interval (Part 13 §5.4.2.4).
        let end = interval.simple(high);
        bounds.push(HistoryValue { source: UtcTime::from_ticks(high.ticks() - 1), ..end });
    }
    let is_inner = |value: &&HistoryValue| value.source != low && value.source != high;
    let inner: Vec<&HistoryValue> = interval.usable().filter(is_inner).collect();
    let first = bounds.first().into_iter();
    let all = first.chain(inner).chain(bounds.get(1)).filter(|value| usable(value));
    let mut best: Option<(f64, &HistoryValue)> = None;
    let mut several = false;
    for value in all {
        let Some(number) = number(&value.value) else { continue };
        match best {
            Some((known, _)) if is_beyond(&number, &known) => {
                best = Some((number, value));
                several = false;
            }
            Some((known, _)) => several |= number == known,
            None => best = Some((number, value)),
        }
    }
    let (_, value) = best?;
    let is_raw = interval.values.iter().any(|raw| raw.source == value.source);
    let status = interval.status_by_time();
    if actual_time {
        let bits = if is_raw { 0 } else { bits::INTERPOLATED } | if several { bits::MULTI_VALUE } else { 0 };
        let made = Made::new(value.value.clone(), status, bits);
        return Some(Made { time: Some(value.source), ..made });
    }
    let bits = match (is_raw, value.source == interval.start) {
        (true, true) => 0,
        (false, true) => bits::INTERPOLATED,
        (_, false) => bits::CALCULATED,
    };
    Some(Made::new(value.value.clone(), status, bits))
}

fn range(low: Option<Made>, high: Option<Made>) -> Option<Made> {
    let (low, high) = (low?, high?);
    let value = like(&high.value, number(&high.value)? - number(&low.value)?);
    Some(calculated(value, high.status))
}

fn in_state(interval: &Interval<'_>, is_in: impl Fn(f64) -> bool) -> Option<Made> {
    // A state holds until the next one, whatever lines values lie on.
    let rules = super::bound::Rules { stepped: true, ..interval.rules };
    let regions = Interval { rules, ..*interval }.regions();
    if regions.iter().all(|region| region.ends.is_none()) {
        return None;
    }
    let inside = regions.iter().filter(|region| region.ends.is_some_and(|(value, _)| is_in(value)));
    let ticks: i64 = inside.map(|region| region.len).sum();
    Some(calculated((ticks as f64 / MILLISECOND).into(), interval.status_by_time()))
}

fn transitions(interval: &Interval<'_>) -> Option<Made> {
    let configuration = interval.rules.configuration;
    let first = interval.inside().first().map_or(interval.high(), |first| first.source);
    let before = interval
        .values
        .iter()
        .rev()
        .find(|value| value.source < first && configuration.is_usable(value.status));
    let mut last = before.map(|value| &value.value);
    let mut changes = 0;
    for value in interval.usable() {
        if last.is_some_and(|last| !last.same_as(&value.value)) {
            changes += 1;
        }
        last = Some(&value.value);
    }
    last?;
    Some(calculated(count(changes), interval.status_by_values()))
}

/// The first or last raw value, whatever its quality.
fn edge(interval: &Interval<'_>, first: bool) -> Option<Made> {
    let inside = interval.inside();
    let value = if first { inside.first() } else { inside.last() }?;
    let made = Made::new(value.value.clone(), value.status, 0);
    Some(Made { time: Some(value.source), may_be_partial: false, ..made })
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

fn bounding(interval: &Interval<'_>, time: UtcTime) -> Made {
    let value = interval.simple(time);
    Made { value: value.value, status: value.status, bits: 0, time: Some(time), may_be_partial: false }
}

fn delta_bounds(interval: &Interval<'_>) -> Option<Made> {
    let (start, end) = (interval.simple(interval.start), interval.simple(interval.end));
    let usable = |value: &HistoryValue| interval.rules.configuration.is_usable(value.status);
    if !usable(&start) || !usable(&end) {
        return None;
    }
    let change = number(&end.value)? - number(&start.value)?;
    let is_good = start.status.is_good() && end.status.is_good();
    Some(calculated(like(&end.value, change), if is_good { StatusCode::GOOD } else { SUB_NORMAL }))
}

fn duration(aggregate: Aggregate, interval: &Interval<'_>) -> Option<Made> {
    let (mut good, mut bad) = (0i64, 0i64);
    for region in interval.regions() {
        if interval.rules.configuration.is_usable(region.status) {
            good += region.len;
        } else {
            bad += region.len;
        }
    }
    let len = interval.len().max(1) as f64;
    let value = match aggregate {
        Aggregate::DurationGood => good as f64 / MILLISECOND,
        Aggregate::DurationBad => bad as f64 / MILLISECOND,
        Aggregate::PercentGood => good as f64 / len * 100.0,
        _ => bad as f64 / len * 100.0,
    };
    Some(calculated(value.into(), StatusCode::GOOD))
}

/// The worst status; several different ones of the same severity: the first, and the MultiValue bit.
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
    Some(Made::new(Variant::StatusCode(worst?), StatusCode::GOOD, bits))
}

fn variance(interval: &Interval<'_>, is_sample: bool) -> Option<Made> {
    // Welford's method: it does not lose the digits that the values have in common.
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
    Some(calculated(variance.into(), interval.status_by_values()))
}
