//! A store in memory: for tests, and for histories that need not survive the process.

use super::event::StoredEvent;
use super::store::{
    AnnotationKey, EventCursor, HistoryStore, HistoryValue, Modification, ModifiedValue, NodeKey, Order,
    Perform, ReadLimit, Sees, Span, StoreCapabilities, StoreError, merge_event,
};
use crate::account::HeapSize;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk_schema::{Annotation, HistoryUpdateType};
use taktwerk_types::{ByteString, StatusCode, UtcTime};

/// Keeps up to a number of values per Variable in memory; drops the oldest.
#[derive(Debug)]
pub struct MemoryStore {
    series: Mutex<BTreeMap<NodeKey, Series>>,
    values_max: usize,
}

#[derive(Debug, Default)]
struct Series {
    values: BTreeMap<UtcTime, HistoryValue>,
    /// By time of the value and sequence of modification.
    modified: BTreeMap<(UtcTime, u64), ModifiedValue>,
    modifications: u64,
    annotations: BTreeMap<AnnotationKey, Annotation>,
    events: BTreeMap<EventCursor, StoredEvent>,
    /// The number of the next event.
    next_event: i64,
}

impl MemoryStore {
    /// Creates a store for up to `values_max` values of each Variable.
    #[must_use]
    pub fn new(values_max: usize) -> Self {
        Self { series: Mutex::default(), values_max: values_max.max(1) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeKey, Series>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Series {
    fn add_event(&mut self, event: StoredEvent, max: usize) {
        let cursor = EventCursor { time: event.time(), number: self.next_event };
        self.next_event += 1;
        self.events.insert(cursor, event);
        while self.events.len() > max {
            self.events.pop_first();
        }
    }

    fn take_event(&mut self, id: &ByteString) -> Option<(EventCursor, StoredEvent)> {
        let (cursor, _) = self.events.iter().find(|(_, event)| event.event_id() == *id)?;
        let cursor = *cursor;
        Some((cursor, self.events.remove(&cursor)?))
    }

    fn note(&mut self, value: HistoryValue, by: &Modification, kind: HistoryUpdateType, max: usize) {
        self.modifications += 1;
        let by = Modification { kind, ..by.clone() };
        self.modified.insert((value.source, self.modifications), ModifiedValue { value, by });
        while self.modified.len() > max {
            self.modified.pop_first();
        }
    }
}

/// Takes from the front or the back of an iterator.
fn take<T: HeapSize>(
    iter: impl DoubleEndedIterator<Item = T>,
    order: Order,
    skip: usize,
    limit: ReadLimit,
    out: &mut Vec<T>,
) {
    match order {
        Order::Forward => out.extend(limit.of(iter.skip(skip))),
        Order::Backward => out.extend(limit.of(iter.rev().skip(skip))),
    }
}

impl HistoryStore for MemoryStore {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> StoreCapabilities {
        let count_max = u32::try_from(self.values_max).unwrap_or(0);
        StoreCapabilities { count_max, ..StoreCapabilities::ALL }
    }

    fn append_events(&self, node: &NodeKey, events: &[StoredEvent]) -> Result<(), StoreError> {
        let mut all = self.lock();
        let series = all.entry(NodeKey::clone(node)).or_default();
        events.iter().for_each(|event| series.add_event(event.clone(), self.values_max));
        Ok(())
    }

    fn read_events(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<EventCursor>,
        limit: ReadLimit,
        out: &mut Vec<(EventCursor, StoredEvent)>,
    ) -> Result<(), StoreError> {
        let all = self.lock();
        let Some(series) = all.get(node).filter(|_| !span.is_empty()) else { return Ok(()) };
        let range = EventCursor { time: span.first, number: i64::MIN }..=EventCursor {
            time: span.last,
            number: i64::MAX,
        };
        let is_behind = |cursor: &EventCursor| match (after, order) {
            (None, _) => true,
            (Some(after), Order::Forward) => *cursor > after,
            (Some(after), Order::Backward) => *cursor < after,
        };
        let events = series.events.range(range).filter(|(cursor, _)| is_behind(cursor));
        let events = events.map(|(cursor, event)| (*cursor, event.clone()));
        take(events, order, 0, limit, out);
        Ok(())
    }

    fn update_events(
        &self,
        node: &NodeKey,
        perform: Perform,
        events: Vec<StoredEvent>,
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let mut all = self.lock();
        let series = all.entry(NodeKey::clone(node)).or_default();
        let one = |event: StoredEvent| {
            let known = series.take_event(&event.event_id());
            let (stored, status) =
                merge_event(perform, known.as_ref().map(|(_, known)| known.clone()), event, sees);
            match (stored, known) {
                (Some(event), _) => series.add_event(event, self.values_max),
                (None, Some((cursor, known))) => drop(series.events.insert(cursor, known)),
                (None, None) => {}
            }
            status
        };
        Ok(events.into_iter().map(one).collect())
    }

    fn delete_events(
        &self,
        node: &NodeKey,
        ids: &[ByteString],
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let mut all = self.lock();
        let series = all.entry(NodeKey::clone(node)).or_default();
        let one = |id: &ByteString| match series.take_event(id) {
            Some((_, event)) if sees(&event) => StatusCode::GOOD,
            Some((cursor, event)) => {
                series.events.insert(cursor, event);
                StatusCode::BAD_NO_ENTRY_EXISTS
            }
            None => StatusCode::BAD_NO_ENTRY_EXISTS,
        };
        Ok(ids.iter().map(one).collect())
    }

    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        let mut all = self.lock();
        for (node, value) in values {
            let series = all.entry(NodeKey::clone(node)).or_default();
            series.values.insert(value.source, value.clone());
            while series.values.len() > self.values_max {
                series.values.pop_first();
            }
        }
        Ok(())
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        if let Some(series) = self.lock().get(node)
            && !span.is_empty()
        {
            let values = series.values.range(span.first..=span.last);
            take(values.map(|(_, value)| value.clone()), order, 0, limit, out);
        }
        Ok(())
    }

    fn read_modified(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        skip: usize,
        limit: ReadLimit,
    ) -> Result<Vec<ModifiedValue>, StoreError> {
        let mut out = Vec::new();
        if let Some(series) = self.lock().get(node)
            && !span.is_empty()
        {
            let values = series.modified.range((span.first, 0)..=(span.last, u64::MAX));
            take(values.map(|(_, value)| value.clone()), order, skip, limit, &mut out);
        }
        Ok(out)
    }

    fn update(
        &self,
        node: &NodeKey,
        perform: Perform,
        values: Vec<HistoryValue>,
        by: &Modification,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let mut all = self.lock();
        let series = all.entry(NodeKey::clone(node)).or_default();
        let mut results = Vec::with_capacity(values.len());
        for value in values {
            let exists = series.values.contains_key(&value.source);
            results.push(match (perform, exists) {
                (Perform::Insert, true) => StatusCode::BAD_ENTRY_EXISTS,
                (Perform::Replace, false) => StatusCode::BAD_NO_ENTRY_EXISTS,
                (Perform::Remove, _) => StatusCode::BAD_HISTORY_OPERATION_INVALID,
                (Perform::Insert | Perform::Replace | Perform::Update, _) => {
                    if let Some(old) = series.values.insert(value.source, value.clone()) {
                        let kind = if perform == Perform::Update {
                            HistoryUpdateType::UPDATE
                        } else {
                            HistoryUpdateType::REPLACE
                        };
                        series.note(old, by, kind, self.values_max);
                        StatusCode::GOOD_ENTRY_REPLACED
                    } else {
                        series.note(value, by, HistoryUpdateType::INSERT, self.values_max);
                        StatusCode::GOOD_ENTRY_INSERTED
                    }
                }
            });
        }
        while series.values.len() > self.values_max {
            series.values.pop_first();
        }
        Ok(results)
    }

    fn delete(&self, node: &NodeKey, span: Span, by: &Modification) -> Result<u64, StoreError> {
        let mut all = self.lock();
        let Some(series) = all.get_mut(node).filter(|_| !span.is_empty()) else { return Ok(0) };
        let times: Vec<UtcTime> =
            series.values.range(span.first..=span.last).map(|(time, _)| *time).collect();
        for time in &times {
            if let Some(old) = series.values.remove(time) {
                series.note(old, by, HistoryUpdateType::DELETE, self.values_max);
            }
        }
        Ok(times.len() as u64)
    }

    fn delete_modified(&self, node: &NodeKey, span: Span) -> Result<u64, StoreError> {
        let mut all = self.lock();
        let Some(series) = all.get_mut(node) else { return Ok(0) };
        let before = series.modified.len();
        series.modified.retain(|(time, _), _| !span.contains(*time));
        Ok((before - series.modified.len()) as u64)
    }

    fn annotations(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<&AnnotationKey>,
        limit: ReadLimit,
    ) -> Result<Vec<(UtcTime, Annotation)>, StoreError> {
        let all = self.lock();
        let mut out = Vec::new();
        let Some(series) = all.get(node) else { return Ok(out) };
        let is_behind = |key: &AnnotationKey| match (after, order) {
            (None, _) => true,
            (Some(after), Order::Forward) => key > after,
            (Some(after), Order::Backward) => key < after,
        };
        let inside = series.annotations.iter().filter(|(key, _)| span.contains(key.time) && is_behind(key));
        take(inside.map(|(key, annotation)| (key.time, annotation.clone())), order, 0, limit, &mut out);
        Ok(out)
    }

    fn annotate(
        &self,
        node: &NodeKey,
        perform: Perform,
        annotations: Vec<(UtcTime, Annotation)>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let mut all = self.lock();
        let series = all.entry(NodeKey::clone(node)).or_default();
        let one = |(time, annotation): (UtcTime, Annotation)| {
            let key = AnnotationKey::of(time, &annotation);
            let exists = series.annotations.contains_key(&key);
            match (perform, exists) {
                (Perform::Insert, true) => StatusCode::BAD_ENTRY_EXISTS,
                (Perform::Replace | Perform::Remove, false) => StatusCode::BAD_NO_ENTRY_EXISTS,
                (Perform::Remove, true) => {
                    series.annotations.remove(&key);
                    StatusCode::GOOD
                }
                (Perform::Insert | Perform::Replace | Perform::Update, _) => {
                    if !exists && series.annotations.len() >= self.values_max {
                        return StatusCode::BAD_OUT_OF_MEMORY;
                    }
                    series.annotations.insert(key, annotation);
                    if exists { StatusCode::GOOD_ENTRY_REPLACED } else { StatusCode::GOOD_ENTRY_INSERTED }
                }
            }
        };
        Ok(annotations.into_iter().map(one).collect())
    }
}
