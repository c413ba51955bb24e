//! A bounded queue between the driver and the application. When the queue is full, the oldest entries are dropped: a
//! slow application must neither stall its client nor fill the memory. The application learns how many entries were
//! dropped.

use super::SubscriptionMessage;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_client::Event;

/// An entry of a queue.
pub(super) trait Entry: Sized {
    /// How much of the queue's limit the entry takes.
    fn weight(&self) -> usize;
    /// An entry that reports dropped entries of this total weight. `None` if they are dropped without a report.
    fn lagged(weight: usize) -> Option<Self>;
    /// The weight that is lost if this entry is dropped.
    fn lost(&self) -> usize;
}

impl Entry for SubscriptionMessage {
    fn weight(&self) -> usize {
        Self::weight(self)
    }
    fn lagged(weight: usize) -> Option<Self> {
        Some(Self::Lagged(weight))
    }
    fn lost(&self) -> usize {
        match self {
            Self::Lagged(weight) => *weight,
            other => Self::weight(other),
        }
    }
}

impl Entry for Event {
    fn weight(&self) -> usize {
        1
    }
    fn lagged(_: usize) -> Option<Self> {
        None
    }
    fn lost(&self) -> usize {
        1
    }
}

#[derive(Debug)]
struct Shared<T> {
    entries: VecDeque<T>,
    weight: usize,
    max: usize,
    waker: Option<Waker>,
    is_closed: bool,
}

/// The driver's end. Dropping it closes the queue.
#[derive(Debug)]
pub(super) struct Sender<T>(Arc<Mutex<Shared<T>>>);

/// The application's end.
#[derive(Debug)]
pub(super) struct Receiver<T>(Arc<Mutex<Shared<T>>>);

/// A queue of entries whose total weight is at most `max`.
pub(super) fn channel<T>(max: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Shared { entries: VecDeque::new(), weight: 0, max, waker: None, is_closed: false };
    let shared = Arc::new(Mutex::new(shared));
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

fn lock<T>(shared: &Mutex<Shared<T>>) -> MutexGuard<'_, Shared<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Entry> Sender<T> {
    /// Adds an entry. False if the receiver was dropped.
    pub(super) fn send(&self, entry: T) -> bool {
        let mut shared = lock(&self.0);
        if shared.is_closed {
            return false;
        }
        shared.weight += entry.weight();
        shared.entries.push_back(entry);
        let mut lost = 0;
        while shared.weight > shared.max && shared.entries.len() > 1 {
            let Some(oldest) = shared.entries.pop_front() else { break };
            shared.weight -= oldest.weight();
            lost += oldest.lost();
        }
        if lost > 0
            && let Some(lagged) = T::lagged(lost)
        {
            shared.weight += lagged.weight();
            shared.entries.push_front(lagged);
        }
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut shared = lock(&self.0);
        shared.is_closed = true;
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut shared = lock(&self.0);
        shared.is_closed = true;
        shared.entries.clear();
    }
}

impl<T: Entry> Receiver<T> {
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut shared = lock(&self.0);
        if let Some(entry) = shared.entries.pop_front() {
            shared.weight -= entry.weight();
            return Poll::Ready(Some(entry));
        }
        if shared.is_closed {
            return Poll::Ready(None);
        }
        shared.waker = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) async fn next(&mut self) -> Option<T> {
        poll_fn(|context| self.poll_next(context)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{DataValue, UtcTime};

    fn changes(sequence_number: u32, count: u32) -> SubscriptionMessage {
        let values = (0..count).map(|handle| (handle, DataValue::default())).collect();
        SubscriptionMessage::DataChanges { sequence_number, publish_time: UtcTime::NULL, values }
    }

    #[tokio::test]
    async fn oldest_entries_are_dropped_and_counted() {
        let (sender, mut receiver) = channel(10);
        for number in 0..6 {
            assert!(sender.send(changes(number, 4)));
        }
        assert_eq!(receiver.next().await, Some(SubscriptionMessage::Lagged(16)));
        assert_eq!(receiver.next().await, Some(changes(4, 4)));
        assert!(sender.send(changes(9, 100)), "one entry always fits");
        assert_eq!(receiver.next().await, Some(SubscriptionMessage::Lagged(4)));
        assert_eq!(receiver.next().await, Some(changes(9, 100)));
        drop(sender);
        assert_eq!(receiver.next().await, None);
        let (sender, receiver) = channel(10);
        drop(receiver);
        assert!(!sender.send(changes(0, 1)));
    }
}
