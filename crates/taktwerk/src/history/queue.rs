//! Values or events that wait to be stored, oldest first.

use super::{HistoryValue, NodeKey, Order, ReadLimit, Span, StoredEvent};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use taktwerk_server::account::HeapSize;

/// An element of a queue.
pub(super) trait Unstored {
    /// Its texts and arrays, in bytes.
    fn heap(&self) -> usize;
}

impl Unstored for (NodeKey, HistoryValue) {
    fn heap(&self) -> usize {
        self.1.heap_size()
    }
}

impl Unstored for StoredEvent {
    fn heap(&self) -> usize {
        self.heap_size()
    }
}

/// A queue in front of a store.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Given to the store, which has not answered yet. They are older than the others.
    given: Arc<Vec<T>>,
    /// When, and how many bytes of texts and arrays they have.
    given_at: Option<Instant>,
    given_heap: usize,
    rest: Vec<T>,
    heap: usize,
    /// Since when the oldest one waits.
    since: Option<Instant>,
    /// The last attempt to store has failed.
    is_failing: bool,
    /// The pause after a failure, and its end.
    backoff: Duration,
    not_before: Option<Instant>,
    /// The number of elements that have left the queue.
    gone: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            given: Arc::default(),
            given_at: None,
            given_heap: 0,
            rest: Vec::new(),
            heap: 0,
            since: None,
            is_failing: false,
            backoff: Duration::ZERO,
            not_before: None,
            gone: 0,
        }
    }
}

impl<T: Unstored> Queue<T> {
    pub(super) fn push(&mut self, one: T, now: Instant) {
        self.heap += one.heap();
        self.rest.push(one);
        self.since.get_or_insert(now);
    }

    /// [`Self::push`] for several, which have this many bytes of texts and arrays.
    pub(super) fn push_all(&mut self, mut all: Vec<T>, heap: usize, now: Instant) {
        if !all.is_empty() {
            self.heap += heap;
            self.rest.append(&mut all);
            self.since.get_or_insert(now);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.given.len() + self.rest.len()
    }

    /// When elements were given to the store, which has not answered yet.
    pub(super) const fn given_at(&self) -> Option<Instant> {
        self.given_at
    }

    /// Bytes of texts and arrays.
    pub(super) const fn heap(&self) -> usize {
        self.heap
    }

    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// The number of elements that have left the queue: the number of its first element.
    pub(super) const fn gone(&self) -> usize {
        self.gone
    }

    /// Whether elements wait longer than a store normally takes.
    pub(super) fn is_late(&self, now: Instant, late: Duration) -> bool {
        self.len() > 0
            && (self.is_failing || self.since.is_some_and(|since| now.duration_since(since) >= late))
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.given.get(at).or_else(|| self.rest.get(at - self.given.len()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.given.iter().chain(&self.rest)
    }

    /// All elements, to be given to the store. `None` if there are none, or the pause after a failure is not over. Call
    /// [`Self::stored`] or [`Self::failed`] then.
    pub(super) fn give(&mut self, now: Instant, at_once: bool) -> Option<Arc<Vec<T>>> {
        let waits = self.not_before.is_some_and(|until| now < until);
        if self.rest.is_empty() || (waits && !at_once) {
            return None;
        }
        self.given = Arc::new(core::mem::take(&mut self.rest));
        (self.given_at, self.given_heap) = (Some(now), self.heap);
        Some(Arc::clone(&self.given))
    }

    /// The store has the elements.
    pub(super) fn stored(&mut self, given: Arc<Vec<T>>, at: Instant) {
        self.heap -= self.given_heap;
        self.gone += given.len();
        (self.given, self.given_at, self.given_heap) = (Arc::default(), None, 0);
        self.since = (!self.rest.is_empty()).then_some(at);
        (self.is_failing, self.backoff, self.not_before) = (false, Duration::ZERO, None);
    }

    /// The store has none of the elements: they wait for the next attempt.
    pub(super) fn failed(&mut self, given: Arc<Vec<T>>, now: Instant, backoff: (Duration, Duration)) {
        (self.given, self.given_at, self.given_heap) = (Arc::default(), None, 0);
        // Nothing else has them.
        let mut all = Arc::into_inner(given).unwrap_or_default();
        all.append(&mut self.rest);
        self.rest = all;
        self.is_failing = true;
        self.backoff = (self.backoff * 2).clamp(backoff.0, backoff.1);
        self.not_before = Some(now + self.backoff);
    }

    /// Removes the oldest until at most half of `max` elements and `heap_max` bytes remain, if there are more than these. Those
    /// that the store has been given stay.
    pub(super) fn shrink(&mut self, max: usize, heap_max: usize, now: Instant) -> Vec<T> {
        let heap = self.heap - self.given_heap;
        if self.rest.len() <= max && heap <= heap_max {
            return Vec::new();
        }
        // About half of them at once, because the others are moved.
        let (mut count, mut left) = (0, heap);
        for one in &self.rest {
            if self.rest.len() - count <= max / 2 && left <= heap_max / 2 {
                break;
            }
            count += 1;
            left -= one.heap();
        }
        let part = count as f64 / self.rest.len().max(1) as f64;
        // An estimate: they arrived evenly.
        self.since = self.since.map(|since| since + now.duration_since(since).mul_f64(part));
        self.heap = self.given_heap + left;
        self.gone += count;
        self.rest.drain(..count).collect()
    }

    /// Puts elements in front of all others. None may be with the store.
    pub(super) fn put_first(&mut self, mut first: Vec<T>) {
        self.heap += first.iter().map(Unstored::heap).sum::<usize>();
        first.append(&mut self.rest);
        self.rest = first;
    }
}

/// Finds the queued values of a Variable.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_node: HashMap<NodeKey, Vec<usize>>,
    /// How many values of the queue are in it.
    len: usize,
}

impl Index {
    /// Call it when values have left the queue.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The values of a Variable in a span, in reading order, up to a limit. Of several values with the same time, the last.
    pub(super) fn find(
        &mut self,
        queue: &Queue<(NodeKey, HistoryValue)>,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
    ) -> Vec<HistoryValue> {
        for (at, (key, _)) in queue.iter().enumerate().skip(self.len) {
            match self.by_node.get_mut(key) {
                Some(known) => known.push(at),
                None => drop(self.by_node.insert(NodeKey::clone(key), vec![at])),
            }
        }
        self.len = queue.len();
        let places = self.by_node.get(node).map(Vec::as_slice).unwrap_or_default();
        let values = places.iter().rev().filter_map(|at| queue.get(*at)).map(|(_, value)| value);
        let mut values: Vec<&HistoryValue> = values.filter(|value| span.contains(value.source)).collect();
        values.sort_by_key(|value| value.source);
        values.dedup_by_key(|value| value.source);
        if order == Order::Backward {
            values.reverse();
        }
        copied(values.into_iter(), limit)
    }
}

/// Copies elements until a limit is reached: a queue can be much larger than what one read may return.
fn copied<'a, T: HeapSize + Clone + 'a>(all: impl Iterator<Item = &'a T>, mut limit: ReadLimit) -> Vec<T> {
    let mut copies = Vec::new();
    for one in all {
        if limit.is_reached() {
            break;
        }
        limit.give(one);
        copies.push(one.clone());
    }
    copies
}
