//! The values that a MonitoredItem keeps, with the charges for them.
//!
//! Places are charged when the queue is made; of single values only the payload is, which numbers do not have.

use super::item::Sample;
use crate::account::{Account, Category, Charge, HeapSize, allocation};
use crate::limits::cost::QUEUE_PLACE;
use std::collections::VecDeque;
#[cfg(test)]
use std::collections::vec_deque::Iter;
use std::sync::Arc;
use taktwerk_types::{StatusCode, Variant};

/// The queue of an item, and the value that it compares the next one with.
#[derive(Debug)]
pub(crate) struct KeptValues {
    queue: VecDeque<Sample>,
    last: Option<Variant>,
    places: Charge,
    payloads: Charge,
}

impl KeptValues {
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self {
            queue: VecDeque::new(),
            last: None,
            places: account.nothing(Category::QueuePlaces),
            payloads: account.nothing(Category::QueuedValues),
        }
    }

    /// Makes room for a queue of `size`, or of what the account allows; returns that. The first place is free.
    pub(crate) fn resize(&mut self, size: u32) -> u32 {
        let size = size.max(1);
        let wanted = size as usize - 1;
        let have = self.places.amount() / QUEUE_PLACE;
        let places = match wanted.checked_sub(have) {
            Some(more) => have + self.places.grow_up_to(more, QUEUE_PLACE),
            None => {
                self.places.resize_anyway(wanted * QUEUE_PLACE);
                wanted
            }
        };
        u32::try_from(places + 1).unwrap_or(size)
    }

    /// Takes or gives back the memory for a queue of `size`, which is no shorter than what it holds.
    pub(crate) fn reserve(&mut self, size: u32) {
        self.queue.shrink_to(size as usize);
        if size > 1 {
            self.queue.reserve_exact((size as usize).saturating_sub(self.queue.len()));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> Iter<'_, Sample> {
        self.queue.iter()
    }

    /// Appends a value. If the account has no room for its payload, only a status is left of it.
    #[inline]
    pub(crate) fn push_back(&mut self, mut sample: Sample) {
        let bytes = payload(&sample);
        if bytes > 0 && self.payloads.resize(self.payloads.amount() + bytes).is_err() {
            sample.set_status(StatusCode::BAD_OUT_OF_MEMORY);
            sample.drop_value();
        }
        self.queue.push_back(sample);
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<Sample> {
        let sample = self.queue.pop_front()?;
        self.give_back(&sample);
        Some(sample)
    }

    #[inline]
    pub(crate) fn pop_back(&mut self) -> Option<Sample> {
        let sample = self.queue.pop_back()?;
        self.give_back(&sample);
        Some(sample)
    }

    #[inline]
    fn give_back(&mut self, sample: &Sample) {
        let bytes = payload(sample);
        if bytes > 0 {
            self.payloads.resize_anyway(self.payloads.amount().saturating_sub(bytes));
        }
    }

    /// Adds the Overflow bit to the oldest value.
    pub(crate) fn mark_oldest(&mut self) {
        mark(self.queue.front_mut());
    }

    /// Adds the Overflow bit to the newest value.
    pub(crate) fn mark_newest(&mut self) {
        mark(self.queue.back_mut());
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        let last = self.last.heap_size();
        self.payloads.resize_anyway(last);
    }

    /// The value that was kept last to compare with.
    #[inline]
    pub(crate) fn last(&self) -> Option<&Variant> {
        self.last.as_ref()
    }

    /// Keeps a value to compare with, if the account has room for it. Without one, the next value counts as a change.
    pub(crate) fn set_last(&mut self, value: Variant) {
        let others = self.payloads.amount().saturating_sub(self.last.heap_size());
        self.last = self.payloads.resize(others + value.heap_size()).is_ok().then_some(value);
        if self.last.is_none() {
            self.payloads.resize_anyway(others);
        }
    }
}

fn mark(sample: Option<&mut Sample>) {
    if let Some(sample) = sample {
        let status = sample.status().with_overflow();
        sample.set_status(status);
    }
}

/// Bytes of memory that a value keeps beside its place. What stands behind a reference count counts for each queue.
#[inline]
fn payload(sample: &Sample) -> usize {
    match sample {
        Sample::Slot(snapshot) => match &snapshot.payload {
            None => 0,
            Some(value) => value.heap_size(),
        },
        Sample::Value(value) => allocation(size_of_val(&**value)) + value.heap_size(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Maxima;
    use taktwerk_types::{ByteString, DataValue};

    fn account(values: usize, places: usize) -> Arc<Account> {
        Account::server(
            Maxima::bytes(usize::MAX)
                .with(Category::QueuedValues, values)
                .with(Category::QueuePlaces, places * QUEUE_PLACE),
        )
    }

    fn long(len: usize) -> Sample {
        Sample::Value(Box::new(DataValue::new(ByteString::from(vec![7; len]))))
    }

    #[test]
    fn payloads_are_charged_while_they_wait() {
        let account = account(1 << 20, 10);
        let mut kept = KeptValues::new(&account);
        assert_eq!((kept.resize(5), kept.resize(20), kept.resize(3)), (5, 11, 3));
        for _ in 0..3 {
            kept.push_back(long(10_000));
        }
        assert!((30_000..31_000).contains(&account.used(Category::QueuedValues)));
        kept.pop_front();
        kept.pop_back();
        assert!((10_000..11_000).contains(&account.used(Category::QueuedValues)));
        kept.set_last(Variant::from(vec![0.0; 1_000]));
        kept.set_last(Variant::from(vec![0.0; 2_000]));
        kept.clear();
        assert!((16_000..16_500).contains(&account.used(Category::QueuedValues)));
        drop(kept);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn a_payload_without_room_leaves_a_status() {
        let account = account(25_000, 10);
        let mut kept = KeptValues::new(&account);
        (0..3).for_each(|_| kept.push_back(long(10_000)));
        let statuses: Vec<_> = kept.iter().map(Sample::status).collect();
        assert_eq!(statuses, [StatusCode::GOOD, StatusCode::GOOD, StatusCode::BAD_OUT_OF_MEMORY]);
        assert!(account.used(Category::QueuedValues) <= 25_000);
        kept.set_last(Variant::from(vec![0.0; 2_000]));
        assert_eq!(kept.last(), None);
        while kept.pop_front().is_some() {}
        assert_eq!(account.bytes(), 0);
    }
}
