//! A second implementation of the aggregates, for tests. It keeps no regions and no bounding values: it examines every
//! millisecond of an interval and searches its raw neighbours each time. All its data have times in whole milliseconds.

use super::Aggregate as A;
use super::bound::{self, Rules};
use super::{Aggregate, bits, with_bits};
use crate::history::store::HistoryValue;
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Ticks per millisecond.
pub(super) const UNIT: i64 = 10_000;
const SUB: StatusCode = StatusCode::UNCERTAIN_DATA_SUB_NORMAL;

/// A result: number, status with bits, time in milliseconds.
pub(super) type Expected = (Option<f64>, StatusCode, i64);

pub(super) struct Naive<'a> {
    pub(super) values: &'a [HistoryValue],
    pub(super) rules: Rules,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) annotations: i32,
    /// The time of millisecond 0.
    pub(super) origin: UtcTime,
}

/// A number, its status, whether it is usable, whether it is a raw value.
type At = (f64, StatusCode, bool, bool);

impl Naive<'_> {
    fn at(&self, value: &HistoryValue) -> i64 {
        (value.source.ticks() - self.origin.ticks()) / UNIT
    }

    fn number(value: &HistoryValue) -> f64 {
        bound::number(&value.value).unwrap()
    }

    fn usable(&self, value: &HistoryValue) -> bool {
        value.status.is_good() || (!value.status.is_bad() && !self.rules.configuration.treat_uncertain_as_bad)
    }

    fn before(&self, ms: i64) -> Option<&HistoryValue> {
        self.values.iter().rfind(|value| self.at(value) <= ms)
    }

    fn after(&self, ms: i64) -> Option<&HistoryValue> {
        self.values.iter().find(|value| self.at(value) > ms)
    }

    fn inside(&self) -> Vec<&HistoryValue> {
        let (start, end) = (self.start, self.end);
        let is_in = |at: i64| if start < end { start <= at && at < end } else { end < at && at <= start };
        self.values.iter().filter(|value| is_in(self.at(value))).collect()
    }

    /// A line through two values.
    fn line(&self, one: &HistoryValue, other: &HistoryValue, ms: f64) -> f64 {
        let (from, to) = (self.at(one) as f64, self.at(other) as f64);
        Self::number(one) + (Self::number(other) - Self::number(one)) * (ms - from) / (to - from)
    }

    /// The simple bounding value.
    fn simple(&self, ms: i64) -> Option<At> {
        let one = self.before(ms)?;
        if self.at(one) == ms {
            return Some((Self::number(one), one.status, self.usable(one), true));
        }
        if !self.usable(one) {
            return None;
        }
        let good = |is_good| if is_good { StatusCode::GOOD } else { SUB };
        let other = self.after(ms);
        if self.rules.stepped {
            return Some((Self::number(one), good(one.status.is_good()), true, false));
        }
        Some(match other.filter(|other| self.usable(other)) {
            Some(other) => (
                self.line(one, other, ms as f64),
                good(one.status.is_good() && other.status.is_good()),
                true,
                false,
            ),
            None => (Self::number(one), SUB, true, false),
        })
    }

    /// The milliseconds of the interval that the data cover.
    fn milliseconds(&self) -> impl Iterator<Item = i64> {
        let (low, high) = (self.start.min(self.end), self.start.max(self.end));
        let end = self.values.last().map_or(low, |last| self.at(last) + 1);
        low..high.min(end.max(low))
    }

    /// The quality of a millisecond: 2 good, 1 uncertain, 0 bad.
    fn quality(&self, ms: i64, stepped: bool) -> u8 {
        let Some(one) = self.before(ms).filter(|one| self.usable(one)) else { return 0 };
        let next_is_good = self.after(ms).is_some_and(|next| next.status.is_good());
        1 + u8::from(one.status.is_good() && (stepped || next_is_good))
    }

    fn calculate(&self, qualities: impl Iterator<Item = u8>) -> StatusCode {
        let mut counts = [0u32; 3];
        qualities.for_each(|quality| counts[usize::from(quality)] += 1);
        let [bad, uncertain, good] = counts.map(f64::from);
        let all = bad + uncertain + good;
        let configuration = self.rules.configuration;
        if bad > 0.0 && bad / all * 100.0 >= f64::from(configuration.percent_data_bad) {
            StatusCode::BAD
        } else if all == 0.0 {
            StatusCode::GOOD
        } else if (good + uncertain) / all * 100.0 < f64::from(configuration.percent_data_good)
            || uncertain > 0.0
        {
            SUB
        } else {
            StatusCode::GOOD
        }
    }

    fn by_time(&self, stepped: bool) -> StatusCode {
        self.calculate(self.milliseconds().map(|ms| self.quality(ms, stepped)))
    }

    fn by_values(&self) -> StatusCode {
        let quality = |value: &&HistoryValue| match (value.status.is_good(), self.usable(value)) {
            (true, _) => 2,
            (_, true) => 1,
            _ => 0,
        };
        self.calculate(self.inside().iter().map(quality))
    }

    /// The sum of simple values, and the number of milliseconds with a value.
    fn simple_sum(&self) -> (f64, f64) {
        let (mut sum, mut count) = (0.0, 0.0);
        for ms in self.milliseconds() {
            let Some(one) = self.before(ms).filter(|one| self.usable(one)) else { continue };
            let next = self.after(ms).filter(|next| self.usable(next) && !self.rules.stepped);
            sum += next.map_or_else(|| Self::number(one), |next| self.line(one, next, ms as f64 + 0.5));
            count += 1.0;
        }
        (sum, count)
    }

    /// The same with lines through usable values only, including after the last one.
    fn interpolated_sum(&self) -> (f64, f64) {
        let usable: Vec<&HistoryValue> = self.values.iter().filter(|value| self.usable(value)).collect();
        let (mut sum, mut count) = (0.0, 0.0);
        for ms in self.start.min(self.end)..self.start.max(self.end) {
            let Some(at) = usable.iter().rposition(|value| self.at(value) <= ms) else { continue };
            let middle = ms as f64 + 0.5;
            sum += if let Some(next) = usable.get(at + 1) {
                self.line(usable[at], next, middle)
            } else if at > 0 && self.rules.configuration.use_sloped_extrapolation {
                self.line(usable[at - 1], usable[at], middle)
            } else {
                Self::number(usable[at])
            };
            count += 1.0;
        }
        (sum, count)
    }

    fn is_good_at(&self, ms: i64) -> bool {
        let is_good = |value: Option<&HistoryValue>| value.is_some_and(|value| value.status.is_good());
        let one = self.before(ms);
        is_good(one) && (one.is_some_and(|one| self.at(one) == ms) || is_good(self.after(ms)))
    }

    fn is_partial(&self) -> bool {
        let (low, high) = (self.start.min(self.end), self.start.max(self.end));
        self.before(low).is_none() || !self.values.iter().any(|value| self.at(value) >= high)
    }

    fn is_without_data(&self, aggregate: Aggregate) -> bool {
        let (low, high) = (self.start.min(self.end), self.start.max(self.end));
        let (Some(first), Some(last)) = (self.values.first(), self.values.last()) else { return true };
        let (first, last) = (self.at(first), self.at(last));
        let is_forward = self.start < self.end;
        let is_before = if is_forward { first >= high } else { first > high };
        let is_after = if is_forward { last < low } else { last <= low };
        is_before || (is_after && !matches!(aggregate, A::TimeAverage | A::Total))
    }

    /// The candidates of Minimum2 and Maximum2, sorted by time: time, number, kind.
    fn candidates(&self) -> Vec<(i64, f64, char)> {
        let (low, high) = (self.start.min(self.end), self.start.max(self.end));
        let mut all = Vec::new();
        if let Some((number, _, true, is_raw)) = self.simple(low) {
            all.push((low, number, if is_raw { 'r' } else { 'b' }));
        }
        let is_inner = |at: i64| low < at && at < high;
        let inner = self.values.iter().filter(|value| is_inner(self.at(value)) && self.usable(value));
        all.extend(inner.map(|value| (self.at(value), Self::number(value), 'r')));
        let reaches = self.values.iter().any(|value| self.at(value) >= high);
        if let Some((number, _, true, _)) = self.simple(high).filter(|_| reaches && !self.rules.stepped) {
            all.push((if high - low > 1 { high - 1 } else { -1 }, number, 'b'));
        }
        all
    }

    fn pick(aggregate: Aggregate, all: &[(i64, f64, char)]) -> Option<((i64, f64, char), bool)> {
        let is_low =
            matches!(aggregate, A::Minimum | A::MinimumActualTime | A::Minimum2 | A::MinimumActualTime2);
        let numbers = all.iter().map(|candidate| candidate.1);
        let best = if is_low { numbers.reduce(f64::min) } else { numbers.reduce(f64::max) }?;
        let mut ties = all.iter().filter(|candidate| candidate.1 == best);
        ties.next().map(|first| (*first, ties.next().is_some()))
    }

    fn raw_status(&self, aggregate: Aggregate, best: f64) -> StatusCode {
        let is_low = matches!(aggregate, A::Minimum | A::MinimumActualTime);
        let doubtful = |value: &&HistoryValue| {
            let number = Self::number(value);
            !self.usable(value)
                || (value.status.is_uncertain() && if is_low { number < best } else { number > best })
        };
        if self.inside().iter().any(doubtful) { SUB } else { StatusCode::GOOD }
    }

    /// Number, status, bits, time, and whether Partial may be added.
    fn result(&self, aggregate: Aggregate) -> Option<(f64, StatusCode, u32, Option<i64>, bool)> {
        const C: u32 = bits::CALCULATED;
        let (low, high) = (self.start.min(self.end), self.start.max(self.end));
        let inside = self.inside();
        let good: Vec<f64> =
            inside.iter().filter(|value| value.status.is_good()).map(|value| Self::number(value)).collect();
        let n = good.len() as f64;
        let mean = good.iter().sum::<f64>() / n;
        let squares: f64 = good.iter().map(|value| (value - mean).powi(2)).sum();
        let any = if good.len() == inside.len() { StatusCode::GOOD } else { SUB };
        let ok = StatusCode::GOOD;
        let of = |value: f64, status| Some((value, status, C, None, true));
        let multi = |several: bool| if several { bits::MULTI_VALUE } else { 0 };
        match aggregate {
            A::Interpolative => None,
            A::Average => (n > 0.0).then(|| (mean, self.by_values(), C, None, false)),
            A::TimeAverage | A::Total => {
                let (sum, count) = self.interpolated_sum();
                let is_good = self.is_good_at(low)
                    && self.is_good_at(high)
                    && inside.iter().all(|value| value.status.is_good());
                let late = self.values.iter().any(|value| self.usable(value) && self.at(value) <= low);
                let bits = C | if late { 0 } else { bits::PARTIAL };
                let by = if aggregate == A::Total { 1000.0 } else { count };
                (count > 0.0).then(|| (sum / by, if is_good { ok } else { SUB }, bits, None, false))
            }
            A::TimeAverage2 | A::Total2 => {
                let (sum, count) = self.simple_sum();
                let by = if aggregate == A::Total2 { 1000.0 } else { count };
                (count > 0.0).then(|| (sum / by, self.by_time(self.rules.stepped), C, None, true))
            }
            A::Minimum | A::Maximum | A::MinimumActualTime | A::MaximumActualTime => {
                let all: Vec<_> = inside.iter().filter(|value| value.status.is_good()).collect();
                let all: Vec<_> =
                    all.iter().map(|value| (self.at(value), Self::number(value), 'r')).collect();
                let ((at, number, _), several) = Self::pick(aggregate, &all)?;
                let actual = matches!(aggregate, A::MinimumActualTime | A::MaximumActualTime);
                let bits = if actual || at == self.start { 0 } else { C };
                let status = self.raw_status(aggregate, number);
                Some((number, status, bits | multi(several), actual.then_some(at), true))
            }
            A::Range => {
                let (low, high) = (self.result(A::Minimum)?, self.result(A::Maximum)?);
                let status = if low.1.is_good() && high.1.is_good() { ok } else { SUB };
                of(high.0 - low.0, status)
            }
            A::Minimum2 | A::Maximum2 | A::MinimumActualTime2 | A::MaximumActualTime2 => {
                let ((at, number, what), several) = Self::pick(aggregate, &self.candidates())?;
                let actual = matches!(aggregate, A::MinimumActualTime2 | A::MaximumActualTime2);
                let bits = match what {
                    'b' => bits::INTERPOLATED,
                    _ if actual || at == self.start => 0,
                    _ => C,
                };
                let status = self.by_time(self.rules.stepped);
                Some((number, status, bits | multi(several), actual.then_some(at), true))
            }
            A::Range2 => {
                let (low, high) = (self.result(A::Minimum2)?, self.result(A::Maximum2)?);
                of(high.0 - low.0, self.by_time(self.rules.stepped))
            }
            A::AnnotationCount => of(f64::from(self.annotations), ok),
            A::Count => of(n, self.by_values()),
            A::DurationInStateZero | A::DurationInStateNonZero => {
                let zero = aggregate == A::DurationInStateZero;
                let held =
                    self.milliseconds().filter_map(|ms| self.before(ms).filter(|one| self.usable(one)));
                let held: Vec<bool> = held.map(|one| (Self::number(one) == 0.0) == zero).collect();
                if held.is_empty() {
                    return None;
                }
                of(held.iter().filter(|is| **is).count() as f64, self.by_time(true))
            }
            A::NumberOfTransitions => {
                let not_bad = |value: &&&HistoryValue| !value.status.is_bad();
                let inner: Vec<&HistoryValue> = inside.iter().filter(not_bad).copied().collect();
                let first = inside.first().map_or(high, |first| self.at(first));
                let before =
                    self.values.iter().rfind(|value| self.at(value) < first && !value.status.is_bad());
                let chain: Vec<Option<f64>> = core::iter::once(before)
                    .chain(inner.into_iter().map(Some))
                    .map(|value| value.map(Self::number))
                    .collect();
                of(chain.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64, self.by_values())
            }
            A::Start | A::End => {
                let first = (aggregate == A::Start) == (self.start < self.end);
                let value = if first { inside.first() } else { inside.last() }?;
                Some((Self::number(value), value.status, 0, Some(self.at(value)), true))
            }
            A::Delta => {
                let usable: Vec<_> = inside.iter().filter(|value| self.usable(value)).collect();
                let (one, other) = (usable.first()?, usable.last()?);
                let edges =
                    self.at(one) == self.at(inside[0]) && self.at(other) == self.at(inside[inside.len() - 1]);
                let change = Self::number(other) - Self::number(one);
                of(if self.start < self.end { change } else { -change }, if edges { ok } else { SUB })
            }
            A::StartBound => {
                let (number, status, is_usable, is_raw) = self.simple(self.start)?;
                let bits = if is_raw { 0 } else { bits::INTERPOLATED };
                is_usable.then_some((number, status, bits, None, true))
            }
            A::EndBound => {
                let (number, status, is_usable, _) = self.simple(self.end)?;
                let reaches = self.end < self.start || self.values.iter().any(|value| self.at(value) >= high);
                (is_usable && reaches).then_some((number, status, C, None, true))
            }
            A::DeltaBounds => {
                let (start, end) = (self.result(A::StartBound)?, self.result(A::EndBound)?);
                of(end.0 - start.0, if start.1.is_good() && end.1.is_good() { ok } else { SUB })
            }
            A::DurationGood | A::DurationBad | A::PercentGood | A::PercentBad => {
                let status = |ms: i64| match self.before(ms) {
                    Some(one) if self.at(one) >= low => one.status,
                    _ => self.simple(low).map_or(StatusCode::BAD_NO_DATA, |bound| bound.1),
                };
                let wants_good = matches!(aggregate, A::DurationGood | A::PercentGood);
                let strict = self.rules.configuration.treat_uncertain_as_bad;
                let counts = |status: StatusCode| match (wants_good, status.is_good(), status.is_bad()) {
                    (true, is_good, _) => is_good,
                    (false, false, is_bad) => is_bad || strict,
                    _ => false,
                };
                let all = self.milliseconds().count() as f64;
                let count = self.milliseconds().filter(|ms| counts(status(*ms))).count() as f64;
                let percent = matches!(aggregate, A::PercentGood | A::PercentBad);
                of(if percent { count / all.max(1.0 / UNIT as f64) * 100.0 } else { count }, ok)
            }
            A::WorstQuality | A::WorstQuality2 => {
                let bound = (aggregate == A::WorstQuality2)
                    .then(|| self.simple(low).map_or(StatusCode::BAD_NO_DATA, |bound| bound.1));
                let all: Vec<_> = bound.into_iter().chain(inside.iter().map(|value| value.status)).collect();
                let severity = all.iter().map(|status| status.0 >> 30).max()?;
                let mut worst = all.iter().filter(|status| status.0 >> 30 == severity);
                let first = worst.next()?;
                let several = worst.any(|status| status != first);
                Some((f64::from(first.0), ok, C | multi(several), None, true))
            }
            A::VarianceSample | A::StandardDeviationSample if n > 0.0 => {
                let variance = if n > 1.0 { squares / (n - 1.0) } else { 0.0 };
                of(if aggregate == A::VarianceSample { variance } else { variance.sqrt() }, any)
            }
            A::VariancePopulation if n > 0.0 => of(squares / n, any),
            A::StandardDeviationPopulation if n > 0.0 => of((squares / n).sqrt(), any),
            _ => None,
        }
    }

    /// The expected result of an aggregate. Interpolative has a separate test.
    pub(super) fn expected(&self, aggregate: Aggregate) -> Expected {
        let no_data = StatusCode::BAD_NO_DATA;
        if self.is_without_data(aggregate) {
            return (None, no_data, self.start);
        }
        let result = self.result(aggregate);
        // Without data, averages and totals get no Partial bit.
        let (number, status, bits, at, may) = result.unwrap_or((f64::NAN, no_data, 0, None, true));
        let partial = if may && self.is_partial() { bits::PARTIAL } else { 0 };
        let number = (!status.is_bad()).then_some(number);
        (number, with_bits(status, bits | partial), at.unwrap_or(self.start))
    }
}

/// The result as a number; StatusCodes by their code.
pub(super) fn shown(value: &Variant) -> Option<f64> {
    match value {
        Variant::StatusCode(status) => Some(f64::from(status.0)),
        value => bound::number(value),
    }
}
