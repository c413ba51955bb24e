//! Messages that wait for the broker. Bounded: when it is full, the oldest are dropped.

use super::options::QualityOfService;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// A message to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its topic.
    pub topic: String,
    /// Whether the broker keeps it.
    pub retain: bool,
    /// Its quality of service.
    pub quality: QualityOfService,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Position of its WriterGroup.
    pub writer_group: Option<usize>,
    /// Seconds after which the broker may discard it (MQTT 5); `None`: never.
    pub expiry: Option<u32>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Message>,
    dropped: u64,
    closed: bool,
}

/// The queue between a publisher's thread and a broker client.
#[derive(Debug)]
pub struct Outbox {
    inner: Mutex<Inner>,
    filled: Condvar,
    limit: usize,
}

impl Outbox {
    /// A queue of at most `limit` messages.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { inner: Mutex::default(), filled: Condvar::new(), limit: limit.max(1) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message. A retained message replaces a waiting one with the same topic, because brokers keep only the
    /// last. If the queue is full, the oldest message that is not retained is removed and returned: metadata is kept
    /// longer than values.
    pub fn push(&self, message: Message) -> Option<Message> {
        let mut inner = self.lock();
        let known = inner
            .waiting
            .iter_mut()
            .find(|waiting| message.retain && waiting.retain && waiting.topic == message.topic);
        if let Some(known) = known {
            *known = message;
            return None;
        }
        let mut gone = None;
        if inner.waiting.len() >= self.limit {
            let at = inner.waiting.iter().position(|waiting| !waiting.retain).unwrap_or(0);
            gone = inner.waiting.remove(at);
            inner.dropped += 1;
        }
        inner.waiting.push_back(message);
        self.filled.notify_one();
        gone
    }

    /// The oldest message. Waits for one, but not longer than `span`.
    pub fn pop(&self, span: Duration) -> Option<Message> {
        let mut inner = self.lock();
        if inner.waiting.is_empty() && !inner.closed {
            inner = self.filled.wait_timeout(inner, span).unwrap_or_else(PoisonError::into_inner).0;
        }
        inner.waiting.pop_front()
    }

    /// Closes the queue: waiting ends.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// Whether the queue is closed and empty.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let inner = self.lock();
        inner.closed && inner.waiting.is_empty()
    }

    /// Number of waiting and of dropped messages.
    #[must_use]
    pub fn counts(&self) -> (usize, u64) {
        let inner = self.lock();
        (inner.waiting.len(), inner.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u8, retain: bool) -> Message {
        Message {
            topic: "t".to_owned(),
            retain,
            quality: QualityOfService::AtMostOnce,
            payload: vec![number],
            writer_group: None,
            expiry: None,
        }
    }

    /// Metadata sent repeatedly while the broker is unavailable does not displace values.
    #[test]
    fn retained_messages_replace_waiting_ones() {
        let outbox = Outbox::new(2);
        assert_eq!(outbox.push(message(0, true)), None);
        assert_eq!(outbox.push(message(1, false)), None);
        for number in 2..10 {
            assert_eq!(outbox.push(message(number, true)), None);
        }
        assert_eq!(outbox.counts(), (2, 0));
        let left: Vec<_> =
            core::iter::from_fn(|| outbox.pop(Duration::ZERO)).map(|one| one.payload[0]).collect();
        assert_eq!(left, [9, 1]);
    }

    #[test]
    fn oldest_values_are_dropped_and_metadata_is_kept() {
        let outbox = Outbox::new(3);
        assert_eq!(outbox.push(message(0, true)), None);
        let gone: Vec<_> = (1..=5).filter_map(|number| outbox.push(message(number, false))).collect();
        assert_eq!(gone, [1, 2, 3].map(|number| message(number, false)));
        assert_eq!(outbox.counts(), (3, 3));
        let mut left = Vec::new();
        while let Some(message) = outbox.pop(Duration::ZERO) {
            left.push(message.payload[0]);
        }
        assert_eq!(left, [0, 4, 5]);
        assert!(!outbox.is_done());
        outbox.close();
        assert!(outbox.is_done() && outbox.pop(Duration::from_secs(60)).is_none());
    }
}
