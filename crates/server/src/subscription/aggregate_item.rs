//! What a MonitoredItem with an AggregateFilter keeps, and its results (Part 4 §7.22.4, Part 13 §4.3).

use crate::account::{Account, Category, Charge, allocation};
use crate::history::HistoryValue;
use crate::history::aggregate::bound::Rules;
use crate::history::aggregate::{Aggregate, Interval, compute};
use std::sync::Arc;
use taktwerk_types::{DataValue, StatusCode, UtcTime};

/// The shortest interval, ticks.
const AGGREGATE_INTERVAL_MIN: i64 = 100_000;
/// Values that an item keeps of one interval. Beyond, results are Uncertain and have the Overflow bit.
const VALUES_MAX: usize = 20_000;
/// Intervals that one cycle makes up for, if no cycle came for long.
const CATCH_UP_MAX: i64 = 1_000;

/// A checked AggregateFilter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AggregateSpec {
    pub(crate) aggregate: Aggregate,
    /// Where the first interval starts; null is now.
    pub(crate) start: UtcTime,
    /// Ticks of an interval.
    pub(crate) interval: i64,
    pub(crate) rules: Rules,
}

impl AggregateSpec {
    /// What the client gets: no interval that is over already, but on the same grid (Part 4 §7.22.4).
    pub(super) fn revised(mut self, now: UtcTime) -> Self {
        self.interval = self.interval.max(AGGREGATE_INTERVAL_MIN);
        if self.start.is_null() {
            self.start = now;
        } else if self.start < now {
            let past = now.ticks().saturating_sub(self.start.ticks());
            let intervals = past / self.interval * self.interval;
            self.start = UtcTime::from_ticks(self.start.ticks().saturating_add(intervals));
        }
        self
    }
}

/// What an item with an AggregateFilter keeps.
#[derive(Debug)]
pub(crate) struct AggregateItem {
    pub(crate) spec: AggregateSpec,
    /// Where the interval under way starts.
    next: UtcTime,
    /// In the order of time: those of the interval under way and later, and what bounding values need.
    values: Vec<HistoryValue>,
    /// Values of the interval under way are missing.
    has_lost: bool,
    /// The last result, for ResendData.
    pub(super) last: Option<DataValue>,
    charge: Charge,
}

impl AggregateItem {
    pub(super) fn new(spec: AggregateSpec, account: &Arc<Account>) -> Self {
        let own = allocation(size_of::<Self>()) + size_of::<u32>();
        Self {
            next: spec.start,
            spec,
            values: Vec::new(),
            has_lost: false,
            last: None,
            // As many as there are items at most: the account has room.
            charge: account.charge_anyway(Category::MonitoredItems, own),
        }
    }

    /// Goes on with another filter; values that are there stay.
    pub(super) fn modify(&mut self, spec: AggregateSpec) {
        (self.spec, self.next) = (spec, spec.start);
    }

    /// Takes a value.
    pub(super) fn collect(&mut self, mut value: HistoryValue) {
        if value.status.has_overflow() {
            self.has_lost = true;
            value.status = value.status.code();
        }
        let at = self.values.partition_point(|known| known.source < value.source);
        if let Some(known) = self.values.get_mut(at).filter(|known| known.source == value.source) {
            *known = value;
            return;
        }
        if self.values.len() == self.values.capacity() && !self.grow() {
            // The newest value is the one that holds.
            self.has_lost = true;
            self.values.pop();
        }
        self.values.insert(at.min(self.values.len()), value);
    }

    /// Makes room for more values, if there may be more.
    fn grow(&mut self) -> bool {
        let more = (self.values.len()).clamp(8, 4_096).min(VALUES_MAX - self.values.len().min(VALUES_MAX));
        let bytes = more * size_of::<HistoryValue>();
        if more == 0 || self.charge.resize(self.charge.amount() + bytes).is_err() {
            return false;
        }
        self.values.reserve_exact(more);
        true
    }

    /// Appends the results of the intervals that are over.
    pub(super) fn calculate(&mut self, now: UtcTime, out: &mut Vec<DataValue>) {
        let AggregateSpec { aggregate, interval, rules, .. } = self.spec;
        let over = now.ticks().saturating_sub(self.next.ticks()) / interval;
        if over > CATCH_UP_MAX {
            let skipped = (over - CATCH_UP_MAX) * interval;
            self.next = UtcTime::from_ticks(self.next.ticks() + skipped);
        }
        while let Some(end) = self.next.ticks().checked_add(interval).filter(|end| *end <= now.ticks()) {
            let end = UtcTime::from_ticks(end);
            let held = self.hold_until(end);
            let result = compute(
                aggregate,
                &Interval {
                    values: &self.values,
                    start: self.next,
                    end,
                    is_short: false,
                    annotations: 0,
                    rules,
                },
            );
            if let Some(held) = held {
                self.values.remove(held);
            }
            let mut status = result.status;
            if core::mem::take(&mut self.has_lost) {
                let doubt =
                    if status.is_good() { StatusCode::UNCERTAIN_DATA_SUB_NORMAL } else { status.code() };
                status = StatusCode(doubt.0 | (status.0 & 0x1f)).with_overflow();
            }
            let value = DataValue {
                value: Some(result.value).filter(|value| !value.is_empty()),
                status: (status != StatusCode::GOOD).then_some(status),
                source_timestamp: Some(result.source),
                server_timestamp: Some(now),
                ..DataValue::default()
            };
            self.last = Some(value.clone());
            out.push(value);
            self.next = end;
            self.forget();
        }
    }

    /// The present value holds until the end of the interval, which no later one may have told yet. Returns where that
    /// was put.
    fn hold_until(&mut self, end: UtcTime) -> Option<usize> {
        let at = self.values.partition_point(|value| value.source < end);
        let last = self.values.get(at.checked_sub(1)?)?;
        if at < self.values.len() {
            return None;
        }
        let held = HistoryValue { source: end, server: end, ..last.clone() };
        self.values.push(held);
        Some(at)
    }

    /// Forgets what no further interval needs: all but the last two usable values before it.
    fn forget(&mut self) {
        let at = self.values.partition_point(|value| value.source <= self.next);
        let mut usable = 0;
        let before = self.values.get(..at).unwrap_or_default();
        let keep = before.iter().rposition(|value| {
            usable += usize::from(self.spec.rules.configuration.is_usable(value.status));
            usable == 2
        });
        if let Some(keep) = keep {
            self.values.drain(..keep);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::aggregate::{Configuration, bits};
    use taktwerk_types::Variant;

    const SECOND: i64 = 10_000_000;

    fn time(seconds: i64) -> UtcTime {
        UtcTime::from_ticks(133_000_000_000_000_000 + seconds * SECOND)
    }

    fn spec(aggregate: Aggregate) -> AggregateSpec {
        let rules = Rules::new(true, Configuration::default());
        AggregateSpec { aggregate, start: time(0), interval: 10 * SECOND, rules }
    }

    fn sample(seconds: i64, number: f64) -> HistoryValue {
        at(time(seconds), number)
    }

    fn at(time: UtcTime, number: f64) -> HistoryValue {
        HistoryValue { source: time, server: time, status: StatusCode::GOOD, value: number.into() }
    }

    fn account() -> Arc<Account> {
        Account::server(crate::Limits::default().maxima())
    }

    #[test]
    fn the_present_value_holds_until_the_interval_ends() {
        let account = account();
        let mut item = AggregateItem::new(spec(Aggregate::TimeAverage2), &account);
        let mut out = Vec::new();
        item.collect(sample(-5, 10.0));
        item.collect(sample(5, 20.0));
        item.calculate(time(9), &mut out);
        assert!(out.is_empty(), "the interval is under way");
        item.calculate(time(31), &mut out);
        let numbers: Vec<_> = out.iter().map(|value| value.value.clone().unwrap()).collect();
        assert_eq!(numbers, [Variant::from(15.0), 20.0.into(), 20.0.into()]);
        assert!(out.iter().all(|value| value.status().0 & 0x1f == bits::CALCULATED), "{out:?}");
        assert_eq!(out[1].source_timestamp, Some(time(10)));
        assert!(item.values.len() <= 2, "old values are forgotten");
        // A value that comes late belongs to its time.
        item.collect(sample(38, 40.0));
        item.collect(sample(32, 30.0));
        item.calculate(time(40), &mut out);
        assert_eq!(out[3].value, Some((0.2 * 20.0 + 0.6 * 30.0 + 0.2 * 40.0).into()));
        drop(item);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn values_are_bounded_and_lost_ones_are_told() {
        let account = account();
        let mut item = AggregateItem::new(spec(Aggregate::Count), &account);
        for step in 0..2 * VALUES_MAX as i64 {
            let time = UtcTime::from_ticks(time(0).ticks() + step * 1_000);
            item.collect(at(time, 1.0));
        }
        assert_eq!(item.values.len(), VALUES_MAX);
        assert!(account.bytes() >= VALUES_MAX * size_of::<HistoryValue>());
        let mut out = Vec::new();
        item.calculate(time(20), &mut out);
        assert!(out[0].status().has_overflow() && out[0].status().is_uncertain());
        assert!(out[1].status().is_good() && !out[1].status().has_overflow());
        // After a long sleep only the last intervals are made up for.
        out.clear();
        item.calculate(time(1_000_000), &mut out);
        assert_eq!(out.len(), CATCH_UP_MAX as usize);
        assert_eq!(out.last().unwrap().source_timestamp, Some(time(999_990)));
    }

    #[test]
    fn the_start_stays_on_its_grid() {
        let start_of = |start, now| AggregateSpec { start, ..spec(Aggregate::Average) }.revised(now).start;
        assert_eq!(start_of(time(3), time(27)), time(23));
        assert_eq!(start_of(time(30), time(27)), time(30));
        assert_eq!(start_of(UtcTime::NULL, time(27)), time(27));
        let short = AggregateSpec { interval: 1, ..spec(Aggregate::Average) }.revised(time(5));
        assert_eq!(short.interval, AGGREGATE_INTERVAL_MIN);
        let far = AggregateSpec { start: UtcTime::from_ticks(1), ..spec(Aggregate::Average) };
        assert!(far.revised(time(5)).start <= time(5));
    }
}
