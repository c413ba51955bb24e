//! The state and results of a MonitoredItem with an AggregateFilter (Part 4 §7.22.4, Part 13 §4.3).

use crate::account::{Account, Category, Charge, HeapSize, allocation};
use crate::history::HistoryValue;
use crate::history::aggregate::bound::Rules;
use crate::history::aggregate::{Aggregate, Interval, compute};
use std::sync::Arc;
use taktwerk_types::{DataValue, StatusCode, UtcTime, Variant};

/// The shortest interval, in ticks.
const AGGREGATE_INTERVAL_MIN: i64 = 100_000;
/// Maximum number of values kept per interval. Beyond it, results are Uncertain and have the Overflow bit.
const VALUES_MAX: usize = 20_000;
/// Maximum number of missed intervals calculated in one cycle.
const CATCH_UP_MAX: i64 = 1_000;

/// A checked AggregateFilter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AggregateSpec {
    pub(crate) aggregate: Aggregate,
    /// Start of the first interval; null means now.
    pub(crate) start: UtcTime,
    /// Interval in ticks.
    pub(crate) interval: i64,
    pub(crate) rules: Rules,
}

impl AggregateSpec {
    /// The revised filter: intervals on the same grid, but none that has already ended (Part 4 §7.22.4).
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

/// The state of an item with an AggregateFilter.
#[derive(Debug)]
pub(crate) struct AggregateItem {
    pub(crate) spec: AggregateSpec,
    /// Start of the current interval.
    next: UtcTime,
    /// Sorted by time: values of the current interval and later, and those needed for bounding values.
    values: Vec<HistoryValue>,
    /// Values of the current interval were lost.
    has_lost: bool,
    /// The last result, for ResendData.
    pub(super) last: Option<DataValue>,
    /// Charge for the item itself.
    _own: Charge,
    /// Charge for the capacity of `values`.
    places: Charge,
    /// Charge for the payloads of `values` and `last`.
    payloads: Charge,
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
            // There are at most as many as items, so the account has capacity.
            _own: account.charge_anyway(Category::MonitoredItems, own),
            places: account.nothing(Category::QueuePlaces),
            payloads: account.nothing(Category::QueuedValues),
        }
    }

    /// Replaces the filter; existing values stay.
    pub(super) fn modify(&mut self, spec: AggregateSpec) {
        (self.spec, self.next) = (spec, spec.start);
    }

    /// Adds a value.
    pub(super) fn collect(&mut self, mut value: HistoryValue) {
        if value.status.has_overflow() {
            self.has_lost = true;
            value.status = value.status.code();
        }
        let at = self.values.partition_point(|known| known.source < value.source);
        let known = self.values.get(at).filter(|known| known.source == value.source);
        if let Some(replaced) = known.map(|known| known.value.heap_size()) {
            self.give_back(replaced);
            self.pay(&mut value);
            if let Some(known) = self.values.get_mut(at) {
                *known = value;
            }
            return;
        }
        // One entry is reserved for the value that holds until the end of the interval.
        if self.values.len() + 1 >= self.values.capacity() && !self.grow() {
            self.has_lost = true;
            // The newest value is the one that holds.
            match self.values.pop() {
                Some(newest) => self.give_back(newest.value.heap_size()),
                None => return,
            }
        }
        self.pay(&mut value);
        self.values.insert(at.min(self.values.len()), value);
    }

    /// Increases the capacity if the limits allow.
    fn grow(&mut self) -> bool {
        let have = self.values.len();
        let more = have.clamp(8, 4_096).min(VALUES_MAX.saturating_sub(have));
        let capacity = have + more + 1;
        if more == 0 || self.places.resize(allocation(capacity * size_of::<HistoryValue>())).is_err() {
            return false;
        }
        self.values.reserve_exact(more + 1);
        true
    }

    /// Charges for the payload of a value. If the account is full, only a status is kept.
    fn pay(&mut self, value: &mut HistoryValue) {
        let bytes = value.value.heap_size();
        if bytes > 0 && self.payloads.resize(self.payloads.amount() + bytes).is_err() {
            self.has_lost = true;
            (value.status, value.value) = (StatusCode::BAD_OUT_OF_MEMORY, Variant::Empty);
        }
    }

    fn give_back(&mut self, bytes: usize) {
        if bytes > 0 {
            self.payloads.resize_anyway(self.payloads.amount().saturating_sub(bytes));
        }
    }

    /// Keeps the last result if the account allows.
    fn keep_last(&mut self, value: &DataValue) {
        let bytes = |value: &Option<DataValue>| value.as_ref().map_or(0, HeapSize::heap_size);
        self.give_back(bytes(&self.last));
        self.last = Some(value.clone());
        let wanted = bytes(&self.last);
        if wanted > 0 && self.payloads.resize(self.payloads.amount() + wanted).is_err() {
            self.last = None;
        }
    }

    /// Appends the results of completed intervals.
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
            self.keep_last(&value);
            out.push(value);
            self.next = end;
            self.forget();
        }
    }

    /// The present value holds until the end of the interval, but there may be no later value yet to show it. Returns
    /// the position where it was added.
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

    /// Drops values that no further interval needs: all but the last two usable values before it.
    fn forget(&mut self) {
        let at = self.values.partition_point(|value| value.source <= self.next);
        let mut usable = 0;
        let before = self.values.get(..at).unwrap_or_default();
        let keep = before.iter().rposition(|value| {
            usable += usize::from(self.spec.rules.configuration.is_usable(value.status));
            usable == 2
        });
        if let Some(keep) = keep {
            let bytes = self.values.drain(..keep).map(|value| value.value.heap_size()).sum();
            self.give_back(bytes);
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
        assert!(out.is_empty(), "the interval has not ended");
        item.calculate(time(31), &mut out);
        let numbers: Vec<_> = out.iter().map(|value| value.value.clone().unwrap()).collect();
        assert_eq!(numbers, [Variant::from(15.0), 20.0.into(), 20.0.into()]);
        assert!(out.iter().all(|value| value.status().0 & 0x1f == bits::CALCULATED), "{out:?}");
        assert_eq!(out[1].source_timestamp, Some(time(10)));
        assert!(item.values.len() <= 2, "old values are dropped");
        // A late value is inserted at its own time.
        item.collect(sample(38, 40.0));
        item.collect(sample(32, 30.0));
        item.calculate(time(40), &mut out);
        assert_eq!(out[3].value, Some((0.2 * 20.0 + 0.6 * 30.0 + 0.2 * 40.0).into()));
        drop(item);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn values_are_bounded_and_losses_are_reported() {
        let account = account();
        let mut item = AggregateItem::new(spec(Aggregate::Count), &account);
        for step in 0..2 * VALUES_MAX as i64 {
            let time = UtcTime::from_ticks(time(0).ticks() + step * 1_000);
            item.collect(at(time, 1.0));
        }
        assert_eq!(item.values.len(), VALUES_MAX);
        assert!(account.used(Category::QueuePlaces) >= VALUES_MAX * size_of::<HistoryValue>());
        let mut out = Vec::new();
        item.calculate(time(20), &mut out);
        assert!(out[0].status().has_overflow() && out[0].status().is_uncertain());
        assert!(out[1].status().is_good() && !out[1].status().has_overflow());
        // After a long pause only the last intervals are calculated.
        out.clear();
        item.calculate(time(1_000_000), &mut out);
        assert_eq!(out.len(), CATCH_UP_MAX as usize);
        assert_eq!(out.last().unwrap().source_timestamp, Some(time(999_990)));
    }

    #[test]
    fn capacity_and_payloads_are_charged() {
        let account = account();
        let mut item = AggregateItem::new(spec(Aggregate::End), &account);
        let text = |seconds, len| HistoryValue {
            value: Variant::String("x".repeat(len).as_str().into()),
            ..sample(seconds, 0.0)
        };
        for second in 0..100 {
            item.collect(text(second, 1_000));
        }
        let places = item.values.capacity() * size_of::<HistoryValue>();
        let queue_places = account.used(Category::QueuePlaces);
        assert!((places..places + 64).contains(&queue_places), "{queue_places} for {places}");
        let payloads: usize = item.values.iter().map(|value| value.value.heap_size()).sum();
        assert!(payloads >= 100_000 && account.used(Category::QueuedValues) == payloads);
        // A value that replaces another one.
        item.collect(text(50, 11_000));
        assert!((payloads + 10_000..payloads + 10_100).contains(&account.used(Category::QueuedValues)));
        let capacity = item.values.capacity();
        item.calculate(time(100), &mut Vec::new());
        assert_eq!(item.values.capacity(), capacity, "the holding value has its entry");
        assert!(
            account.used(Category::QueuedValues) < 10_000,
            "charges of old values and results are returned"
        );
        drop(item);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn without_memory_a_status_is_kept_and_the_result_is_uncertain() {
        let maxima = crate::account::Maxima::bytes(usize::MAX).with(Category::QueuedValues, 5_000);
        let account = Account::server(maxima);
        let mut item = AggregateItem::new(spec(Aggregate::Count), &account);
        for second in 0..10 {
            let value = Variant::String("x".repeat(1_000).as_str().into());
            item.collect(HistoryValue { value, ..sample(second, 0.0) });
        }
        assert_eq!(item.values.len(), 10);
        assert_eq!(item.values[9].status, StatusCode::BAD_OUT_OF_MEMORY);
        assert!(account.used(Category::QueuedValues) <= 5_000);
        let mut out = Vec::new();
        item.calculate(time(10), &mut out);
        assert!(out[0].status().has_overflow(), "{out:?}");
        drop(item);
        assert_eq!(account.bytes(), 0);
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
