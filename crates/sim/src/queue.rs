//! The future: what is going to happen, in order of time.

use core::cmp::Ordering;
use core::time::Duration;
use std::collections::BinaryHeap;
use taktwerk_types::Instant;

/// Events by the time they happen at; events of one time come out in the order they went in.
///
/// The queue is also the clock: [`EventQueue::now`] is the time of the event that came out last. So a run depends on
/// nothing but what was scheduled, and the same seed gives the same run.
#[derive(Debug)]
pub struct EventQueue<E> {
    now: Instant,
    scheduled: u64,
    heap: BinaryHeap<Entry<E>>,
}

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    /// Breaks ties: a heap alone keeps no order among equals.
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.sequence)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        // The standard heap gives the greatest first; the earliest is wanted.
        other.key().cmp(&self.key())
    }
}

impl<E> EventQueue<E> {
    /// Nothing is going to happen; the clock shows `start`.
    #[must_use]
    pub fn new(start: Instant) -> Self {
        Self { now: start, scheduled: 0, heap: BinaryHeap::new() }
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets `event` happen at `at`, or now if that is over.
    pub fn schedule(&mut self, at: Instant, event: impl Into<E>) {
        let entry = Entry { at: at.max(self.now), sequence: self.scheduled, event: event.into() };
        self.scheduled += 1;
        self.heap.push(entry);
    }

    /// Lets `event` happen after a while.
    pub fn schedule_in(&mut self, span: Duration, event: impl Into<E>) {
        self.schedule(self.now + span, event);
    }

    /// When the next event happens.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// The next event that happens not after `until`; the clock moves to it.
    pub fn pop_until(&mut self, until: Instant) -> Option<E> {
        if self.next_at()? > until {
            return None;
        }
        let entry = self.heap.pop()?;
        debug_assert!(entry.at >= self.now, "the clock goes back");
        self.now = entry.at;
        Some(entry.event)
    }

    /// Lets the clock show `at`, without skipping an event.
    pub fn advance(&mut self, at: Instant) {
        let limit = self.next_at().unwrap_or(Instant::FAR);
        self.now = self.now.max(at.min(limit));
    }

    /// How many events were ever scheduled: a measure of the work that a run took.
    #[must_use]
    pub fn scheduled(&self) -> u64 {
        self.scheduled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn order_of_time_then_order_of_scheduling() {
        let mut queue = EventQueue::<u32>::new(at(10));
        for (time, event) in [(30, 1u32), (20, 2), (30, 3), (20, 4), (5, 5)] {
            queue.schedule(at(time), event);
        }
        let mut seen = Vec::new();
        while let Some(event) = queue.pop_until(at(25)) {
            seen.push((queue.now().as_nanos(), event));
        }
        assert_eq!(seen, [(10, 5), (20, 2), (20, 4)]);
        assert_eq!(queue.next_at(), Some(at(30)));
        queue.advance(at(40));
        assert_eq!(queue.now(), at(30));
        assert_eq!((queue.pop_until(Instant::FAR), queue.pop_until(Instant::FAR)), (Some(1), Some(3)));
        assert_eq!(queue.pop_until(Instant::FAR), None);
        queue.advance(at(40));
        assert_eq!(queue.now(), at(40));
        queue.schedule_in(Duration::from_nanos(2), 6u32);
        assert_eq!((queue.pop_until(at(42)), queue.now(), queue.scheduled()), (Some(6), at(42), 6));
    }
}
