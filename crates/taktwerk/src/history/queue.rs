//! Values or events that wait to be stored, oldest first.

use super::{HistoryValue, NodeKey, Order, ReadLimit, Span, StoredEvent};
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_server::account::HeapSize;
use taktwerk_types::{StatusCode, Variant};

/// An element of a queue.
pub(super) trait Unstored {
    /// Its texts and arrays, in bytes.
    fn heap(&self) -> usize;

    /// Whether it only tells that others were lost. Such elements are stored, but not counted: the lost ones are.
    fn is_mark(&self) -> bool;
}

impl Unstored for (NodeKey, HistoryValue) {
    fn heap(&self) -> usize {
        self.1.heap_size()
    }

    fn is_mark(&self) -> bool {
        self.1.status == StatusCode::BAD_DATA_LOST && self.1.value == Variant::Empty
    }
}

impl Unstored for StoredEvent {
    fn heap(&self) -> usize {
        self.heap_size()
    }

    fn is_mark(&self) -> bool {
        matches!(self.field("EventType"), Some(Variant::NodeId(id))
            if id.ns0() == Some(object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE))
    }
}

/// Most elements, and most bytes of texts and arrays, that are given to a store at once. A store takes less than a second for them.
pub(super) const BLOCK_LEN: usize = 50_000;
const BLOCK_HEAP: usize = 32 << 20;

/// Neighbours in a queue. They are given to the store together, so nothing has to be moved while the queue is locked.
#[derive(Debug)]
pub(super) struct Block<T> {
    all: Vec<T>,
    heap: usize,
    /// How many of them are marks.
    marks: usize,
}

impl<T: Unstored> Block<T> {
    fn has_room_for(&self, len: usize, heap: usize) -> bool {
        self.all.len() + len <= BLOCK_LEN && self.heap + heap <= BLOCK_HEAP
    }

    /// Cuts a sequence into blocks. `yield_now` lets other threads run.
    pub(super) fn cut(elements: impl Iterator<Item = T>, yield_now: fn()) -> Vec<Self> {
        let count = elements.size_hint().0;
        let mut blocks: Vec<Self> = Vec::new();
        for (at, one) in elements.enumerate() {
            if at % 1_024 == 0 {
                yield_now();
            }
            let heap = one.heap();
            if !blocks.last().is_some_and(|block| block.has_room_for(1, heap)) {
                let all = Vec::with_capacity(count.saturating_sub(at).min(BLOCK_LEN));
                blocks.push(Self { all, heap: 0, marks: 0 });
            }
            if let Some(block) = blocks.last_mut() {
                block.heap += heap;
                block.marks += usize::from(one.is_mark());
                block.all.push(one);
            }
        }
        blocks
    }
}

/// A queue in front of a store.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Given to the store, which has not answered yet. They are older than the others.
    given: Arc<Vec<T>>,
    /// When, how many bytes of texts and arrays they have, and how many are marks.
    given_at: Option<Instant>,
    given_heap: usize,
    given_marks: usize,
    rest: VecDeque<Block<T>>,
    /// The number of all elements, their bytes of texts and arrays, and the number of marks.
    len: usize,
    heap: usize,
    marks: usize,
    /// Since when the oldest one waits.
    since: Option<Instant>,
    /// Since when those wait at most that came later, and the number of the first one.
    later: Option<(usize, Instant)>,
    /// An attempt to store has failed, and some elements of that time still wait.
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
            given_marks: 0,
            rest: VecDeque::new(),
            len: 0,
            heap: 0,
            marks: 0,
            since: None,
            later: None,
            is_failing: false,
            backoff: Duration::ZERO,
            not_before: None,
            gone: 0,
        }
    }
}

impl<T: Unstored> Queue<T> {
    /// Appends elements.
    pub(super) fn push(&mut self, blocks: Vec<Block<T>>, now: Instant) {
        for mut block in blocks {
            self.len += block.all.len();
            self.heap += block.heap;
            self.marks += block.marks;
            match self.rest.back_mut().filter(|last| last.has_room_for(block.all.len(), block.heap)) {
                Some(last) => {
                    last.heap += block.heap;
                    last.marks += block.marks;
                    last.all.append(&mut block.all);
                }
                None => self.rest.push_back(block),
            }
            self.since.get_or_insert(now);
        }
    }

    /// The number of elements with marks.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The number of elements without marks.
    pub(super) const fn count(&self) -> usize {
        self.len - self.marks
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
        self.len > 0 && (self.is_failing || self.since.is_some_and(|since| now.duration_since(since) >= late))
    }

    fn blocks(&self) -> impl Iterator<Item = &[T]> {
        core::iter::once(self.given.as_slice()).chain(self.rest.iter().map(|block| block.all.as_slice()))
    }

    /// The element with a number.
    fn get(&self, number: usize) -> Option<&T> {
        let mut at = number.checked_sub(self.gone)?;
        for block in self.blocks() {
            match block.get(at) {
                Some(one) => return Some(one),
                None => at -= block.len(),
            }
        }
        None
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks().flatten()
    }

    /// The elements from a number on.
    fn iter_from(&self, number: usize) -> impl Iterator<Item = &T> {
        let mut before = number.saturating_sub(self.gone);
        self.blocks().flat_map(move |block| {
            let skipped = before.min(block.len());
            before -= skipped;
            block.get(skipped..).unwrap_or_default()
        })
    }

    /// The oldest elements, to be given to the store. `None` if there are none, or the pause after a failure is not over. Call
    /// [`Self::stored`] or [`Self::failed`] then.
    pub(super) fn give(&mut self, now: Instant, at_once: bool) -> Option<Arc<Vec<T>>> {
        if !at_once && self.not_before.is_some_and(|until| now < until) {
            return None;
        }
        let Block { all, heap, marks } = self.rest.pop_front()?;
        self.given = Arc::new(all);
        (self.given_at, self.given_heap, self.given_marks) = (Some(now), heap, marks);
        self.later.get_or_insert((self.gone + self.len, now));
        Some(Arc::clone(&self.given))
    }

    /// The store has the elements. Returns their number without marks.
    pub(super) fn stored(&mut self, given: &[T]) -> usize {
        let marks = core::mem::take(&mut self.given_marks);
        self.heap -= self.given_heap;
        self.marks -= marks;
        self.len -= given.len();
        self.gone += given.len();
        (self.given, self.given_at, self.given_heap) = (Arc::default(), None, 0);
        // Until all that had waited are stored, what is late stays late: clients may have read it.
        if let Some((_, at)) = self.later.take_if(|(number, _)| self.gone >= *number) {
            (self.since, self.is_failing) = (Some(at), false);
        }
        if self.len == 0 {
            self.since = None;
        }
        (self.backoff, self.not_before) = (Duration::ZERO, None);
        given.len() - marks
    }

    /// The store has none of the elements: they wait for the next attempt.
    pub(super) fn failed(&mut self, given: Arc<Vec<T>>, now: Instant, backoff: (Duration, Duration)) {
        let heap = core::mem::take(&mut self.given_heap);
        let marks = core::mem::take(&mut self.given_marks);
        (self.given, self.given_at, self.later) = (Arc::default(), None, None);
        // Nothing else has them.
        let all = Arc::into_inner(given).unwrap_or_default();
        self.rest.push_front(Block { all, heap, marks });
        self.is_failing = true;
        self.backoff = (self.backoff * 2).clamp(backoff.0, backoff.1);
        self.not_before = Some(now + self.backoff);
    }

    /// Removes the oldest until at most half of `max` elements and `heap_max` bytes remain, if there are more than these. Those
    /// that the store has been given stay.
    pub(super) fn shrink(&mut self, max: usize, heap_max: usize, now: Instant) -> Vec<T> {
        let (mut len, mut heap) = (self.len - self.given.len(), self.heap - self.given_heap);
        if len <= max && heap <= heap_max {
            return Vec::new();
        }
        let before = len;
        let mut removed = Vec::new();
        // About half of them at once, so that this is seldom necessary.
        while let Some(mut block) = self.rest.pop_front() {
            let (mut count, mut freed, mut marks) = (0, 0, 0);
            for one in &block.all {
                if len - count <= max / 2 && heap - freed <= heap_max / 2 {
                    break;
                }
                count += 1;
                freed += one.heap();
                marks += usize::from(one.is_mark());
            }
            self.marks -= marks;
            (len, heap) = (len - count, heap - freed);
            removed.extend(block.all.drain(..count));
            if !block.all.is_empty() {
                block.heap -= freed;
                block.marks -= marks;
                self.rest.push_front(block);
                break;
            }
        }
        let part = removed.len() as f64 / before.max(1) as f64;
        // An estimate: they arrived evenly.
        self.since = self.since.map(|since| since + now.duration_since(since).mul_f64(part));
        (self.len, self.heap) = (self.given.len() + len, self.given_heap + heap);
        self.gone += removed.len();
        removed
    }

    /// Puts elements in front of those that the store has not been given. They take the numbers of removed ones.
    pub(super) fn put_first(&mut self, first: Vec<T>) {
        let heap = first.iter().map(Unstored::heap).sum::<usize>();
        let marks = first.iter().filter(|one| one.is_mark()).count();
        self.marks += marks;
        self.len += first.len();
        self.heap += heap;
        self.gone = self.gone.saturating_sub(first.len());
        self.rest.push_front(Block { all: first, heap, marks });
    }
}

/// Finds the queued values of a Variable.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_node: HashMap<NodeKey, Vec<usize>>,
    /// How many values are in it, including some that have left the queue.
    len: usize,
    /// The number of the first value that is not in it.
    next: usize,
}

impl Index {
    /// Call it when values in the queue have other numbers than before.
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
        // Most of it has left the queue.
        if self.len / 2 > queue.len() {
            self.clear();
        }
        let first = queue.gone();
        self.next = self.next.max(first);
        for (number, (key, _)) in (self.next..).zip(queue.iter_from(self.next)) {
            match self.by_node.get_mut(key) {
                Some(known) => known.push(number),
                None => drop(self.by_node.insert(NodeKey::clone(key), vec![number])),
            }
        }
        let end = first + queue.len();
        self.len += end - self.next;
        self.next = end;
        let places = self.by_node.get(node).map(Vec::as_slice).unwrap_or_default();
        let values = places.iter().rev().filter_map(|number| queue.get(*number)).map(|(_, value)| value);
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
