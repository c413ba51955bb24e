//! The values kept by a MonitoredItem, with their charges.
//!
//! Queue entries are charged when the queue is created. Of single values only the payload is charged, which numbers do
//! not have.

use super::sample::Sample;
use crate::account::{Account, Category, Charge, HeapSize, allocation};
use crate::durable::marks::Marks;
use crate::durable::record::{begin_queue, end_queue};
use crate::limits::cost::QUEUE_ENTRY;
use std::collections::VecDeque;
#[cfg(test)]
use std::collections::vec_deque::Iter;
use std::sync::Arc;
use taktwerk_types::{Encode, StatusCode, Variant};

/// The queue of an item, and the last value for comparison.
#[derive(Debug)]
pub(crate) struct KeptValues {
    queue: VecDeque<Sample>,
    last: Option<Variant>,
    places: Charge,
    payloads: Charge,
    /// How much is written to the log, for items of durable subscriptions.
    marks: Option<Box<Marks>>,
}

impl KeptValues {
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self {
            queue: VecDeque::new(),
            last: None,
            places: account.nothing(Category::QueuePlaces),
            payloads: account.nothing(Category::QueuedValues),
            marks: None,
        }
    }

    /// Starts recording what must be written to the log.
    pub(crate) fn mark(&mut self, marks: Marks) {
        self.marks = Some(Box::new(marks));
    }

    /// Whether changes are recorded for the log.
    pub(crate) fn is_marked(&self) -> bool {
        self.marks.is_some()
    }

    /// Appends the changes since the last call to a log entry, with up to `max` values. Returns their number and
    /// whether more remain; `None` without changes.
    pub(crate) fn write_changes(
        &mut self,
        item: u32,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Option<(usize, bool)> {
        let Self { queue, marks, .. } = self;
        let marks = marks.as_mut()?;
        let (first, from) = marks.take_change()?;
        let overflow = queue.front().is_some_and(|oldest| oldest.status().has_overflow());
        let at = begin_queue(false, item, (first, from, overflow), out);
        let known = usize::try_from(from - first).unwrap_or(usize::MAX);
        let mut written = 0;
        for sample in queue.iter().skip(known).take(max) {
            match sample {
                Sample::Slot(snapshot) => snapshot.to_data_value().encode(out),
                Sample::Value(value) => value.encode(out),
            }
            written += 1;
        }
        end_queue(at, u32::try_from(written).unwrap_or(u32::MAX), out);
        let is_left = known + written < queue.len();
        marks.written(written as u64, is_left);
        Some((written, is_left))
    }

    /// Charges a queue of `size`, or of what the account allows; returns that size. The first entry is free.
    pub(crate) fn resize(&mut self, size: u32) -> u32 {
        let size = size.max(1);
        let wanted = size as usize - 1;
        let have = self.places.amount() / QUEUE_ENTRY;
        let places = match wanted.checked_sub(have) {
            Some(more) => have + self.places.grow_up_to(more, QUEUE_ENTRY),
            None => {
                self.places.resize_anyway(wanted * QUEUE_ENTRY);
                wanted
            }
        };
        u32::try_from(places + 1).unwrap_or(size)
    }

    /// Allocates or frees the memory for a queue of `size`, which is at least its present length.
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

    /// Appends a value. If the account does not allow its payload, only a status is kept.
    #[inline]
    pub(crate) fn push_back(&mut self, mut sample: Sample) {
        let bytes = payload(&sample);
        if bytes > 0 && self.payloads.resize(self.payloads.amount() + bytes).is_err() {
            sample.set_status(StatusCode::BAD_OUT_OF_MEMORY);
            sample.drop_value();
        }
        self.queue.push_back(sample);
        if let Some(marks) = &mut self.marks {
            marks.pushed();
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<Sample> {
        let sample = self.queue.pop_front()?;
        self.give_back(&sample);
        if let Some(marks) = &mut self.marks {
            marks.popped_front(1);
        }
        Some(sample)
    }

    #[inline]
    pub(crate) fn pop_back(&mut self) -> Option<Sample> {
        let sample = self.queue.pop_back()?;
        self.give_back(&sample);
        if let Some(marks) = &mut self.marks {
            marks.popped_back(self.queue.len());
        }
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
        if let Some(marks) = &mut self.marks {
            marks.pushed();
        }
    }

    /// Adds the Overflow bit to the newest value.
    pub(crate) fn mark_newest(&mut self) {
        mark(self.queue.back_mut());
        if let Some(marks) = &mut self.marks {
            marks.popped_back(self.queue.len().saturating_sub(1));
        }
    }

    pub(crate) fn clear(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.popped_front(self.queue.len());
        }
        self.queue.clear();
        let last = self.last.heap_size();
        self.payloads.resize_anyway(last);
    }

    /// The value kept for comparison.
    #[inline]
    pub(crate) fn last(&self) -> Option<&Variant> {
        self.last.as_ref()
    }

    /// Keeps a value for comparison if the account allows. Without one, the next value counts as a change.
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

/// Memory of a value in addition to its entry, in bytes. Data behind a reference count counts for each queue.
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
                .with(Category::QueuePlaces, places * QUEUE_ENTRY),
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
    fn a_payload_above_the_limit_leaves_a_status() {
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
