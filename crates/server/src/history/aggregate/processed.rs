//! A range of a store, one aggregate per interval (Part 11 §6.5.4, Part 13 §5.4.2).

use super::bound::{self, Rules};
use super::interval::Interval;
use super::{Aggregate, compute};
use crate::history::NodeHistory;
use crate::history::read::{ProcessedPosition, QUERY};
use crate::history::store::{HistoryValue, Order, Span, StoreError};
use taktwerk_types::{StatusCode, UtcTime};

/// Raw values that are read at once.
const READ_AHEAD: usize = 16_384;
/// Annotations of an interval that are counted.
const ANNOTATIONS_MAX: usize = 100_000;

/// Raw values in the order of time, read a piece at a time.
struct Window<'a> {
    target: &'a NodeHistory,
    rules: Rules,
    values: Vec<HistoryValue>,
    /// The store has nothing later.
    is_end: bool,
    /// Values that may be held.
    held_max: usize,
}

impl Window<'_> {
    /// Makes sure that the values up to a time are there, and the usable one behind it.
    fn reach(&mut self, time: UtcTime, raw_left: &mut usize) -> Result<(), StoreError> {
        while !self.is_end && !self.reaches(time) {
            let from = self.values.last().map_or(i64::MIN, |last| last.source.ticks() + 1);
            let span = Span { first: UtcTime::from_ticks(from), ..Span::ALL };
            let before = self.values.len();
            let (store, key) = (&self.target.store, &self.target.key);
            store.read(key, span, Order::Forward, READ_AHEAD, &mut self.values)?;
            let count = self.values.len() - before;
            self.is_end = count < READ_AHEAD;
            *raw_left = raw_left.saturating_sub(count);
            if self.values.len() > self.held_max {
                return Err(StoreError {
                    status: StatusCode::BAD_QUERY_TOO_COMPLEX,
                    message: format!(
                        "an interval has more than {} raw values: ask for shorter intervals",
                        self.held_max
                    ),
                });
            }
        }
        Ok(())
    }

    fn reaches(&self, time: UtcTime) -> bool {
        let mut late = self.values.iter().rev().take_while(|value| value.source >= time);
        late.any(|value| self.rules.configuration.is_usable(value.status))
    }

    /// Forgets what no interval from a time on needs: all but the last two usable ones before it.
    fn forget(&mut self, time: UtcTime) {
        let at = self.values.partition_point(|value| value.source <= time);
        let mut usable = 0;
        let keep = self.values.get(..at).unwrap_or_default().iter().rposition(|value| {
            usable += usize::from(self.rules.configuration.is_usable(value.status));
            usable == 3
        });
        // Moving what is left costs, so it is done when there is much to forget.
        if let Some(keep) = keep.filter(|keep| *keep >= READ_AHEAD / 2) {
            self.values.drain(..keep);
        }
    }
}

/// Calculates up to `max` intervals from a position on; gives where it goes on.
pub(crate) fn read(
    target: &NodeHistory,
    position: ProcessedPosition,
    max: usize,
    raw_max: usize,
    raw_left: &mut usize,
    out: &mut Vec<HistoryValue>,
) -> Result<Option<ProcessedPosition>, StoreError> {
    let rules = Rules::new(target.stepped, position.configuration);
    let (start, end) = (position.next, position.end);
    let is_reverse = end < start;
    if max == 0 {
        return Ok(Some(position));
    }
    let mut next = start;
    let mut window = Window { target, rules, values: Vec::new(), is_end: false, held_max: raw_max };
    let step = if position.interval == 0 { (end.ticks() - start.ticks()).abs() } else { position.interval };
    while if is_reverse { next > end } else { next < end } {
        if out.len() >= max || (*raw_left == 0 && !out.is_empty()) {
            return Ok(Some(ProcessedPosition { next, ..position }));
        }
        let stop = next.ticks().saturating_add(if is_reverse { -step } else { step });
        let is_short = if is_reverse { stop < end.ticks() } else { stop > end.ticks() };
        let stop = if is_short { end } else { UtcTime::from_ticks(stop) };
        let (low, high) = (next.min(stop), next.max(stop));
        if is_reverse || window.values.is_empty() {
            let store = &*target.store;
            *raw_left = raw_left.saturating_sub(QUERY);
            window.values = bound::neighbours(store, &target.key, low, Order::Backward, 3, rules)?;
            window.is_end = false;
        }
        window.reach(high, raw_left)?;
        let annotations = if position.aggregate == Aggregate::AnnotationCount {
            let span = Span { first: low, last: UtcTime::from_ticks(high.ticks() - 1) };
            let found = target.store.annotations(&target.key, span, ANNOTATIONS_MAX)?.len();
            *raw_left = raw_left.saturating_sub(QUERY + found);
            found
        } else {
            0
        };
        let values = &window.values;
        let interval = Interval { values, start: next, end: stop, is_short, annotations, rules };
        out.push(compute(position.aggregate, &interval));
        window.forget(stop);
        next = stop;
    }
    Ok(None)
}
