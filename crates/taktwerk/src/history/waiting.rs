//! The history store of a server: the store of the application, with what waits for it.
//!
//! The recorder queues values and events here, and stores them. While the store fails or is late, reads also return what is
//! queued. Normally they return only what is stored, so that a crash does not take back what clients have read.

use super::counters::{RecorderCounters, UNANSWERED};
use super::opener::HistoryOpener;
use super::queue::{Block, Index, Queue, Unstored};
use super::{
    EventCursor, HistoryStore, HistoryValue, Modification, ModifiedValue, NodeHistory, NodeKey, Order,
    Perform, ReadLimit, Span, StoreError, StoredEvent,
};
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use taktwerk_schema::Annotation;
use taktwerk_server::history::{AnnotationKey, Sees, StoreCapabilities, merge_unstored};
use taktwerk_types::{ByteString, StatusCode, UtcTime, Variant};

/// Most values queued for a failing store; beyond, the oldest are dropped and the gap is marked. A value takes about 150 bytes.
const VALUES_MAX: usize = 2_000_000;
/// Most bytes of texts and arrays in that queue.
pub(super) const BYTES_MAX: usize = 256 << 20;
/// Most events queued for a failing store; beyond, the oldest are dropped.
const EVENTS_MAX: usize = 100_000;
/// Most bytes of their fields.
const EVENT_BYTES_MAX: usize = 256 << 20;
/// The first and the longest pause before a failed store is retried.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// From this time on, queued values are late: reads return them.
const LATE: Duration = Duration::from_secs(2);
/// Most attempts to read events of which some are just being stored.
const READS_MAX: u32 = 10;
/// Numbers of queued events begin here, behind those of stored ones.
const UNSTORED: i64 = 1 << 62;

/// A store with its queues.
#[derive(Debug)]
pub(crate) struct WaitingStore {
    store: HistoryOpener,
    queues: Mutex<Queues>,
    /// Held by the thread that gives elements to the store.
    turn: Mutex<()>,
    counters: Arc<RecorderCounters>,
}

#[derive(Debug, Default)]
struct Queues {
    values: Queue<(NodeKey, HistoryValue)>,
    index: Index,
    events: Queue<StoredEvent>,
    /// Where events are stored.
    events_of: Option<Arc<NodeHistory>>,
    outage: Outage,
    /// The server has stopped, and what waits is lost.
    has_given_up: bool,
}

impl Queues {
    /// The oldest elements of a queue for the store, as [`Queue::give`].
    fn give<T: Unstored>(
        &mut self,
        queue: impl FnOnce(&mut Self) -> &mut Queue<T>,
        at_once: bool,
    ) -> Option<Arc<Vec<T>>> {
        if self.has_given_up { None } else { queue(self).give(Instant::now(), at_once) }
    }
}

/// A store that fails: each reason is logged once, and the end. The log prints all of these lines, because they name the only
/// signs of an outage (`taktwerk::outage`, see the command's limit of repeated warnings).
#[derive(Debug, Default)]
struct Outage {
    reason: Option<String>,
}

impl Outage {
    fn note(&mut self, what: &str, error: &StoreError) {
        let reason = error.to_string();
        if self.reason.as_ref() != Some(&reason) {
            tracing::error!(target: "taktwerk::outage", error = reason, "history: cannot store {what}; retrying");
            self.reason = Some(reason);
        }
    }

    fn end(&mut self, what: &str) {
        if self.reason.take().is_some() {
            tracing::warn!(target: "taktwerk::outage", "history: {what} are stored again");
        }
    }
}

/// Queued events for a reader.
struct QueuedEvents {
    events: Vec<(EventCursor, StoredEvent)>,
    /// Where to continue in the store.
    after: Option<EventCursor>,
    /// [`Queue::gone`] at that time.
    gone: usize,
}

impl WaitingStore {
    pub(crate) fn new(store: HistoryOpener) -> Self {
        let counters = Arc::new(RecorderCounters::of(store.kind()));
        Self { store, queues: Mutex::default(), turn: Mutex::default(), counters }
    }

    pub(crate) const fn counters(&self) -> &Arc<RecorderCounters> {
        &self.counters
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues values. `yield_now` lets other threads run.
    pub(super) fn queue(&self, values: impl Iterator<Item = (NodeKey, HistoryValue)>, yield_now: fn()) {
        // Not with the lock: reads of clients take it, too, and this thread may have to wait for a processor.
        let blocks = Block::cut(values, yield_now);
        let now = Instant::now();
        let mut queues = self.queues();
        queues.values.push(blocks, now);
        self.bound(&mut queues, now);
    }

    /// Queues events of a node.
    pub(super) fn queue_events(&self, node: Arc<NodeHistory>, events: Vec<StoredEvent>) {
        let blocks = Block::cut(events.into_iter(), || ());
        let now = Instant::now();
        let mut queues = self.queues();
        queues.events_of = Some(node);
        queues.events.push(blocks, now);
        self.bound(&mut queues, now);
    }

    /// Gives everything to the store, in parts. After a recent failure it waits, unless `at_once`.
    pub(super) fn flush(&self, at_once: bool) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.flush_values(at_once);
        self.flush_events(at_once);
    }

    fn flush_values(&self, at_once: bool) {
        // What comes in the meantime is stored the next time.
        let mut left = self.queues().values.len();
        while left > 0 {
            let Some(given) = self.queues().give(|queues| &mut queues.values, at_once) else { return };
            left = left.saturating_sub(given.len());
            let result = self.store.store().and_then(|store| store.append(&given));
            let mut queues = self.queues();
            match result {
                Ok(()) => {
                    let count = queues.values.stored(&given);
                    self.counters.recorded.fetch_add(count as u64, Relaxed);
                    self.recovered(&mut queues, "values");
                }
                Err(error) => {
                    queues.values.failed(given, Instant::now(), BACKOFF);
                    self.failed(&mut queues, "values", &error);
                    left = 0;
                }
            }
            self.bound(&mut queues, Instant::now());
        }
    }

    fn flush_events(&self, at_once: bool) {
        let (mut left, node) = {
            let queues = self.queues();
            let Some(node) = queues.events_of.clone() else { return };
            (queues.events.len(), node)
        };
        while left > 0 {
            let Some(given) = self.queues().give(|queues| &mut queues.events, at_once) else { return };
            left = left.saturating_sub(given.len());
            let result = self.store.store().and_then(|store| store.append_events(&node.key, &given));
            let mut queues = self.queues();
            match result {
                Ok(()) => {
                    let count = queues.events.stored(&given);
                    self.counters.events.fetch_add(count as u64, Relaxed);
                    self.recovered(&mut queues, "events");
                }
                Err(error) => {
                    queues.events.failed(given, Instant::now(), BACKOFF);
                    self.failed(&mut queues, "events", &error);
                    left = 0;
                }
            }
            self.bound(&mut queues, Instant::now());
        }
    }

    fn failed(&self, queues: &mut Queues, what: &str, error: &StoreError) {
        self.counters.failures.fetch_add(1, Relaxed);
        self.counters.note_error(Some(error.message.clone()));
        queues.outage.note(what, error);
    }

    fn recovered(&self, queues: &mut Queues, what: &str) {
        let now = Instant::now();
        if !queues.values.is_late(now, LATE) && !queues.events.is_late(now, LATE) {
            self.counters.note_error(None);
            queues.outage.end(what);
        }
    }

    /// Drops the oldest elements if there are too many, marks the gap in the histories of Variables, and updates the counters.
    fn bound(&self, queues: &mut Queues, now: Instant) {
        let dropped = queues.values.shrink(VALUES_MAX, BYTES_MAX, now);
        if !dropped.is_empty() {
            self.note_lost(&dropped, "values");
            let mut marked = BTreeSet::new();
            let is_first = |(node, _): &(NodeKey, HistoryValue)| marked.insert(NodeKey::clone(node));
            let mark = |(node, value)| {
                let status = StatusCode::BAD_DATA_LOST;
                (node, HistoryValue { status, value: Variant::Empty, ..value })
            };
            let marks = dropped.into_iter().filter(is_first).map(mark).collect();
            queues.values.put_first(marks);
            queues.index.clear();
        }
        let dropped = queues.events.shrink(EVENTS_MAX, EVENT_BYTES_MAX, now);
        if !dropped.is_empty() {
            self.note_lost(&dropped, "events");
        }
        let Queues { values, events, has_given_up, .. } = queues;
        let value_len = size_of::<(NodeKey, HistoryValue)>();
        let bytes = values.len() * value_len
            + values.heap()
            + events.len() * size_of::<StoredEvent>()
            + events.heap();
        let (waiting, waiting_events) = (values.count() as u64, events.count() as u64);
        self.counters.waiting.store(waiting, Relaxed);
        self.counters.waiting_events.store(waiting_events, Relaxed);
        if *has_given_up {
            self.counters.lost_at_stop.store(waiting + waiting_events, Relaxed);
        }
        self.counters.waiting_bytes.store(bytes as u64, Relaxed);
        self.counters.note_oldest(values.since().into_iter().chain(events.since()).min());
    }

    fn note_lost<T: Unstored>(&self, dropped: &[T], what: &str) {
        // Values that were lost before were counted then; their marks are replaced.
        let count = dropped.iter().filter(|one| !one.is_mark()).count();
        self.counters.lost_full.fetch_add(count as u64, Relaxed);
        tracing::error!(
            target: "taktwerk::outage",
            count,
            "history: the store has failed for too long; the oldest {what} are lost"
        );
    }

    /// The server stops: what waits is lost, and not given to the store any more. Returns the numbers of values and events. What
    /// the store has been given is subtracted from [`RecorderCounters::lost_at_stop`] if it is stored nevertheless.
    pub(super) fn give_up(&self) -> (usize, usize) {
        let mut queues = self.queues();
        queues.has_given_up = true;
        self.bound(&mut queues, Instant::now());
        (queues.values.count(), queues.events.count())
    }

    /// Whether what waits is lost.
    pub(super) fn has_given_up(&self) -> bool {
        self.queues().has_given_up
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        let queues = self.queues();
        queues.values.len() + queues.events.len() == 0
    }

    /// The store for a client's request. A database that hangs would hold its thread.
    fn answering(&self) -> Result<&Arc<dyn HistoryStore>, StoreError> {
        let given = {
            let queues = self.queues();
            queues.values.given_at().or(queues.events.given_at())
        };
        if given.is_some_and(|at| at.elapsed() >= UNANSWERED) {
            return Err(StoreError::unavailable("the history store does not answer"));
        }
        self.store.store()
    }

    /// Before a client changes the history: stores what reads return already.
    fn settle(&self) -> Result<&Arc<dyn HistoryStore>, StoreError> {
        let store = self.answering()?;
        let is_late = || {
            let (queues, now) = (self.queues(), Instant::now());
            queues.values.is_late(now, LATE) || queues.events.is_late(now, LATE)
        };
        if is_late() {
            let unanswered =
                || StoreError::unavailable("the history store does not store the recorded values");
            let turn = self.turn.try_lock().map_err(|_| unanswered())?;
            self.flush_values(true);
            self.flush_events(true);
            drop(turn);
            if is_late() {
                return Err(unanswered());
            }
        }
        Ok(store)
    }

    /// The queued events of a node in a span, in reading order, behind `after`, up to a limit.
    fn queued_events(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        mut after: Option<EventCursor>,
        mut limit: ReadLimit,
    ) -> QueuedEvents {
        let queues = self.queues();
        let gone = queues.events.gone();
        let first = i64::try_from(gone).unwrap_or(0);
        if let Some(after) = after.as_mut().filter(|after| after.number >= UNSTORED)
            && after.number - UNSTORED < first
        {
            // It has been stored since and has another number. Events of its time are returned again.
            after.number = if order == Order::Forward { i64::MIN } else { i64::MAX };
        }
        let is_it = queues.events_of.as_ref().is_some_and(|of| of.key == *node);
        if !is_it || !queues.events.is_late(Instant::now(), LATE) {
            return QueuedEvents { events: Vec::new(), after, gone };
        }
        let numbered = (UNSTORED + first..).zip(queues.events.iter());
        let numbered = numbered.map(|(number, event)| (EventCursor { time: event.time(), number }, event));
        let is_wanted = |(cursor, _): &(EventCursor, &StoredEvent)| {
            let is_behind = after.is_none_or(|after| match order {
                Order::Forward => *cursor > after,
                Order::Backward => *cursor < after,
            });
            span.contains(cursor.time) && is_behind
        };
        let mut wanted: Vec<_> = numbered.filter(is_wanted).collect();
        wanted.sort_by_key(|(cursor, _)| *cursor);
        if order == Order::Backward {
            wanted.reverse();
        }
        let mut is_within_limit = |event: &StoredEvent| {
            let is_within_limit = !limit.is_reached();
            limit.give(event);
            is_within_limit
        };
        let wanted = wanted.into_iter().take_while(|(_, event)| is_within_limit(event));
        let events = wanted.map(|(cursor, event)| (cursor, event.clone())).collect();
        QueuedEvents { events, after, gone }
    }
}

impl HistoryStore for WaitingStore {
    fn kind(&self) -> &'static str {
        self.store.kind()
    }

    fn is_remote(&self) -> bool {
        // Shards ask this, so the store must not be opened here.
        self.store.opened().is_some_and(|store| store.is_remote())
    }

    fn capabilities(&self) -> StoreCapabilities {
        self.store.capabilities()
    }

    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        self.store.store()?.append(values)
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        // Before the store is read: a value that is stored in between is found twice, and never missed.
        let queued = {
            let Queues { values, index, .. } = &mut *self.queues();
            let is_late = values.is_late(Instant::now(), LATE);
            if is_late { index.find(values, node, span, order, limit) } else { Vec::new() }
        };
        let store = self.answering()?;
        if queued.is_empty() {
            return store.read(node, span, order, limit, out);
        }
        let more = |after: Option<&HistoryValue>, limit: ReadLimit, found: &mut Vec<HistoryValue>| {
            let span = after.map_or(span, |after| span.behind(after.source, order));
            if span.is_empty() { Ok(()) } else { store.read(node, span, order, limit, found) }
        };
        merge_unstored(queued, order, limit, |value| value.source, out, more)
    }

    fn read_modified(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        skip: usize,
        limit: ReadLimit,
    ) -> Result<Vec<ModifiedValue>, StoreError> {
        self.answering()?.read_modified(node, span, order, skip, limit)
    }

    fn update(
        &self,
        node: &NodeKey,
        perform: Perform,
        values: Vec<HistoryValue>,
        by: &Modification,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.settle()?.update(node, perform, values, by)
    }

    fn delete(&self, node: &NodeKey, span: Span, by: &Modification) -> Result<u64, StoreError> {
        self.settle()?.delete(node, span, by)
    }

    fn delete_at(
        &self,
        node: &NodeKey,
        times: &[UtcTime],
        by: &Modification,
    ) -> Result<Vec<bool>, StoreError> {
        self.settle()?.delete_at(node, times, by)
    }

    fn delete_modified(&self, node: &NodeKey, span: Span) -> Result<u64, StoreError> {
        self.answering()?.delete_modified(node, span)
    }

    fn annotations(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<&AnnotationKey>,
        limit: ReadLimit,
    ) -> Result<Vec<(UtcTime, Annotation)>, StoreError> {
        self.answering()?.annotations(node, span, order, after, limit)
    }

    fn annotate(
        &self,
        node: &NodeKey,
        perform: Perform,
        annotations: Vec<(UtcTime, Annotation)>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.answering()?.annotate(node, perform, annotations)
    }

    fn append_events(&self, node: &NodeKey, events: &[StoredEvent]) -> Result<(), StoreError> {
        self.store.store()?.append_events(node, events)
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
        let store = self.answering()?;
        for attempt in 1.. {
            let QueuedEvents { events, after: known, gone } =
                self.queued_events(node, span, order, after, limit);
            // A number of a queued event says nothing about stored ones.
            let is_of_queue = !events.is_empty() || known.is_some_and(|known| known.number >= UNSTORED);
            let more = |last: Option<&(EventCursor, StoredEvent)>, limit: ReadLimit, found: &mut Vec<_>| {
                let after = last.map(|(cursor, _)| *cursor).or(known);
                store.read_events(node, span, order, after, limit, found)
            };
            let mut found = Vec::new();
            merge_unstored(events, order, limit, |(cursor, _)| *cursor, &mut found, more)?;
            // If some have been stored meanwhile, they would be returned twice, or those of the same time as `after` not at all.
            if !is_of_queue || self.queues().events.gone() == gone {
                out.append(&mut found);
                break;
            }
            if attempt == READS_MAX {
                return Err(StoreError::unavailable(
                    "the history store is busy with events that have waited",
                ));
            }
        }
        Ok(())
    }

    fn update_events(
        &self,
        node: &NodeKey,
        perform: Perform,
        events: Vec<StoredEvent>,
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.settle()?.update_events(node, perform, events, sees)
    }

    fn delete_events(
        &self,
        node: &NodeKey,
        ids: &[ByteString],
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.settle()?.delete_events(node, ids, sees)
    }

    fn maintain(&self, now: UtcTime) -> Result<(), StoreError> {
        self.store.store()?.maintain(now)
    }

    fn finish(&self) -> Result<(), StoreError> {
        // A store that was never opened has nothing to make persistent.
        self.store.opened().map_or(Ok(()), |store| store.finish())
    }
}

#[cfg(test)]
mod tests;
