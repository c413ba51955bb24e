//! The event queue: everything that is going to happen, in order of time.

use core::cmp::Ordering;
use core::time::Duration;
use std::collections::BinaryHeap;
use taktwerk_types::Instant;

/// Events ordered by time; events with the same time keep the order in which they were scheduled.
///
/// The queue is also the clock: [`EventQueue::now`] is the time of the last event taken out. A run therefore depends
/// only on what was scheduled, and the same seed gives the same run.
#[derive(Debug)]
pub struct EventQueue<E> {
    now: Instant,
    scheduled: u64,
    heap: BinaryHeap<Entry<E>>,
}

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    /// Breaks ties: a heap alone does not keep the order of equal elements.
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
        // The standard heap returns the greatest element first, but the earliest is needed.
        other.key().cmp(&self.key())
    }
}

impl<E> EventQueue<E> {
    /// Creates an empty queue whose clock shows `start`.
    #[must_use]
    pub fn new(start: Instant) -> Self {
        Self { now: start, scheduled: 0, heap: BinaryHeap::new() }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Schedules `event` at `at`, or now if that time has passed.
    pub fn schedule(&mut self, at: Instant, event: impl Into<E>) {
        let entry = Entry { at: at.max(self.now), sequence: self.scheduled, event: event.into() };
        self.scheduled += 1;
        self.heap.push(entry);
    }

    /// Schedules `event` after `span`.
    pub fn schedule_in(&mut self, span: Duration, event: impl Into<E>) {
        self.schedule(self.now + span, event);
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Returns the next event that is due at `until` or earlier, and sets the clock to its time.
    pub fn pop_until(&mut self, until: Instant) -> Option<E> {
        if self.next_at()? > until {
            return None;
        }
        let entry = self.heap.pop()?;
        debug_assert!(entry.at >= self.now, "the clock must not go back");
        self.now = entry.at;
        Some(entry.event)
    }

    /// Sets the clock to `at`, without skipping an event.
    pub fn advance(&mut self, at: Instant) {
        let limit = self.next_at().unwrap_or(Instant::FAR);
        self.now = self.now.max(at.min(limit));
    }

    /// Number of events ever scheduled: a measure of the work of a run.
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
    fn events_are_ordered_by_time_then_by_scheduling_order() {
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
