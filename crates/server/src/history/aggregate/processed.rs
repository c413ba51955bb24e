//! Processed reads: a time range of a store, with one aggregate per interval (Part 11 §6.5.4, Part 13 §5.4.2).

use super::bound::{self, Rules};
use super::interval::Interval;
use super::{Aggregate, compute};
use crate::account::HeapSize;
use crate::history::NodeHistory;
use crate::history::read::{HEAP_MAX, ProcessedPosition, QUERY};
use crate::history::store::{HistoryValue, Order, ReadLimit, Span, StoreError};
use taktwerk_types::{StatusCode, UtcTime};

/// Raw values per read.
const READ_AHEAD: usize = 16_384;
/// Bytes of raw values per read.
const READ_AHEAD_BYTES: usize = 1 << 20;
/// Maximum number of annotations counted per interval.
const ANNOTATIONS_MAX: usize = 100_000;
/// Maximum size of those annotations, in bytes.
const ANNOTATION_BYTES_MAX: usize = 16 << 20;

/// Raw values sorted by time, read in pieces.
struct Window<'a> {
    target: &'a NodeHistory,
    rules: Rules,
    values: Vec<HistoryValue>,
    /// Whether the store has no later values.
    is_end: bool,
    /// Maximum number of values held.
    held_max: usize,
    /// Heap of the values held, in bytes.
    held_bytes: usize,
}

impl Window<'_> {
    /// Reads the values up to a time, and the usable one after it.
    fn reach(&mut self, time: UtcTime, raw_left: &mut usize) -> Result<(), StoreError> {
        while !self.is_end && !self.reaches(time) {
            let last = self.values.last().map(|last| last.source.ticks());
            // A client may have written a value at the largest possible time.
            let Some(from) = last.map_or(Some(i64::MIN), |last| last.checked_add(1)) else {
                self.is_end = true;
                break;
            };
            let span = Span { first: UtcTime::from_ticks(from), ..Span::ALL };
            let before = self.values.len();
            let (store, key) = (&self.target.store, &self.target.key);
            let limit = ReadLimit { count: READ_AHEAD, bytes: READ_AHEAD_BYTES };
            store.read(key, span, Order::Forward, limit, &mut self.values)?;
            let new = self.values.get(before..).unwrap_or_default();
            self.is_end = !limit.behind(new).is_reached();
            self.held_bytes += new.iter().map(HeapSize::heap_size).sum::<usize>();
            *raw_left = raw_left.saturating_sub(new.len());
            if self.values.len() > self.held_max || self.held_bytes > HEAP_MAX {
                return Err(StoreError {
                    status: StatusCode::BAD_QUERY_TOO_COMPLEX,
                    message: format!(
                        "an interval has more than {} raw values or more than {HEAP_MAX} bytes of them: ask for shorter intervals",
                        self.held_max,
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

    /// Drops values that no interval from a time on needs: all but the last two usable ones before it.
    fn forget(&mut self, time: UtcTime) {
        let at = self.values.partition_point(|value| value.source <= time);
        let mut usable = 0;
        let keep = self.values.get(..at).unwrap_or_default().iter().rposition(|value| {
            usable += usize::from(self.rules.configuration.is_usable(value.status));
            usable == 3
        });
        // Moving the remaining values costs time, so it is done only when there is much to drop.
        let is_much = |keep: usize| keep >= READ_AHEAD / 2 || self.held_bytes > READ_AHEAD_BYTES;
        if let Some(keep) = keep.filter(|keep| *keep > 0 && is_much(*keep)) {
            let forgotten = self.values.drain(..keep).map(|value| value.heap_size()).sum::<usize>();
            self.held_bytes = self.held_bytes.saturating_sub(forgotten);
        }
    }
}

/// Calculates intervals from a position on. Returns the position to continue from.
pub(crate) fn read(
    target: &NodeHistory,
    position: ProcessedPosition,
    mut limit: ReadLimit,
    raw_max: usize,
    raw_left: &mut usize,
    out: &mut Vec<HistoryValue>,
) -> Result<Option<ProcessedPosition>, StoreError> {
    let rules = Rules::new(target.stepped, position.configuration);
    let (start, end) = (position.next, position.end);
    let is_reverse = end < start;
    if limit.is_reached() {
        return Ok(Some(position));
    }
    let mut next = start;
    let mut window =
        Window { target, rules, values: Vec::new(), is_end: false, held_max: raw_max, held_bytes: 0 };
    let step = if position.interval == 0 { (end.ticks() - start.ticks()).abs() } else { position.interval };
    while if is_reverse { next > end } else { next < end } {
        if limit.is_reached() || (*raw_left == 0 && !out.is_empty()) {
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
            window.held_bytes = window.values.iter().map(HeapSize::heap_size).sum();
        }
        window.reach(high, raw_left)?;
        let annotations = if position.aggregate == Aggregate::AnnotationCount {
            let span = Span { first: low, last: UtcTime::from_ticks(high.ticks() - 1) };
            let annotations = ReadLimit { count: ANNOTATIONS_MAX, bytes: ANNOTATION_BYTES_MAX };
            let found = target.store.annotations(&target.key, span, Order::Forward, None, annotations)?.len();
            *raw_left = raw_left.saturating_sub(QUERY + found);
            found
        } else {
            0
        };
        let values = &window.values;
        let interval = Interval { values, start: next, end: stop, is_short, annotations, rules };
        let value = compute(position.aggregate, &interval);
        limit.give(&value);
        out.push(value);
        window.forget(stop);
        next = stop;
    }
    Ok(None)
}
