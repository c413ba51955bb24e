//! The queue of an event item (Part 4 §5.13.1.5).

use super::filter::EventFilter;
use super::model::Event;
use super::written::{Part, Written};
use crate::account::{Account, Category, Charge};
use crate::durable::marks::Marks;
use crate::durable::record::{begin_queue, end_queue};
use crate::history::event::encode_event;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_types::Encode;

/// Queued events.
#[derive(Debug, Clone)]
pub(crate) enum Waiting {
    /// Encoded when the message is written.
    Event(Arc<Event>),
    /// Already encoded, for all items with the same filter.
    Written(Part),
}

/// The cost of writing events, in units of about 0.1 µs.
pub(crate) mod weight {
    /// Encoded and freed: about 3 µs.
    pub(crate) const ALONE: u32 = 32;
    /// Copied and freed. Freeing takes most of the time: events of alarms have dozens of fields.
    pub(crate) const LAST: u32 = 32;
    /// Copied.
    pub(crate) const COPIED: u32 = 2;
}

impl Waiting {
    /// The events.
    fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        let (one, some) = match self {
            Self::Event(event) => (Some(event), None),
            Self::Written(part) => (None, Some(part.events())),
        };
        one.into_iter().chain(some.into_iter().flatten())
    }
}

/// The space left in a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Number of events.
    pub(crate) count: u32,
    /// Their [`weight`].
    pub(crate) weight: u32,
    /// The message is full at this length, in bytes.
    pub(crate) len_max: usize,
}

impl Room {
    /// Whether an event may be added.
    pub(crate) fn has_some(&self, out: &[u8]) -> bool {
        self.count > 0 && self.weight > 0 && out.len() < self.len_max
    }

    /// Records that events of the given weight each were added.
    fn spend(&mut self, count: usize, weight: u32) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.count = self.count.saturating_sub(count);
        self.weight = self.weight.saturating_sub(count.saturating_mul(weight));
    }
}

/// The next thing to send.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    /// An event.
    Event(Arc<Event>),
    /// Events were lost here: an EventQueueOverflowEventType.
    Overflow,
}

/// A queue of events. When it is full, the discard policy decides which event is lost. The overflow event that reports
/// the loss uses no queue entry and is never discarded.
#[derive(Debug)]
pub(crate) struct EventQueue {
    events: VecDeque<Waiting>,
    /// Number of events.
    len: usize,
    size: usize,
    discard_oldest: bool,
    /// Events were lost and the client has not been informed yet.
    has_lost: bool,
    /// Size of the events, in bytes.
    bytes: usize,
    /// At least `bytes`, usually more, so that events need not be charged one by one.
    charge: Charge,
    /// How much is written to the log, for items of durable subscriptions.
    marks: Option<Box<Marks>>,
}

/// Capacity that an empty queue may keep, in entries.
const ENTRIES_KEPT: usize = 32;
/// Size of an entry, in bytes.
const ENTRY: usize = size_of::<Waiting>();
/// Most bytes that a queue is charged in advance.
const AHEAD_MAX: usize = 16 << 10;

impl EventQueue {
    pub(crate) fn new(account: &Arc<Account>, size: u32, discard_oldest: bool) -> Self {
        let charge = account.nothing(Category::QueuedValues);
        Self {
            events: VecDeque::new(),
            len: 0,
            size: size.max(1) as usize,
            discard_oldest,
            has_lost: false,
            bytes: 0,
            charge,
            marks: None,
        }
    }

    /// Starts recording what must be written to the log.
    pub(crate) fn mark(&mut self, marks: Marks) {
        self.marks = Some(Box::new(marks));
    }

    fn changed(&mut self, change: impl FnOnce(&mut Marks)) {
        if let Some(marks) = &mut self.marks {
            change(marks);
        }
    }

    /// Appends the changes since the last call to an entry of the log, with up to `max` events. Returns their number
    /// and whether more remain; `None` without changes.
    pub(crate) fn write_changes(
        &mut self,
        item: u32,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Option<(usize, bool)> {
        let Self { events, len, has_lost, marks, .. } = self;
        let marks = marks.as_mut()?;
        let (first, from) = marks.take_change()?;
        let at = begin_queue(true, item, (first, from, *has_lost), out);
        let known = usize::try_from(from - first).unwrap_or(usize::MAX);
        let mut written = 0;
        for event in events.iter().flat_map(Waiting::events).skip(known).take(max) {
            let fields = event.fields().map(|(name, value)| (name.path(), value));
            encode_event(event.condition_id(), fields, out);
            written += 1;
        }
        end_queue(at, u32::try_from(written).unwrap_or(u32::MAX), out);
        let is_left = known + written < *len;
        marks.written(written as u64, is_left);
        Some((written, is_left))
    }

    /// Whether there is nothing to report.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && !self.has_lost
    }

    /// How many events fit before one is lost.
    pub(crate) fn room(&self) -> usize {
        self.size.saturating_sub(self.len)
    }

    /// How many events wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an event. Returns whether one was lost.
    pub(crate) fn push(&mut self, event: Arc<Event>) -> bool {
        let size = event.size();
        self.add(size, |events| events.push_back(Waiting::Event(event)))
    }

    /// Adds an encoded event. Returns whether one was lost.
    pub(crate) fn push_written(&mut self, written: &Arc<Written>, at: usize) -> bool {
        self.add(written.size(at), |events| {
            if let Some(Waiting::Written(part)) = events.back_mut()
                && part.extend(written, at)
            {
                return;
            }
            events.push_back(Waiting::Written(Part::new(written, at)));
        })
    }

    fn add(&mut self, size: usize, push: impl FnOnce(&mut VecDeque<Waiting>)) -> bool {
        let mut lost = false;
        if self.len >= self.size {
            lost = true;
            if !self.discard_oldest {
                self.note_lost();
                return true;
            }
            self.drop_oldest();
        }
        let bytes = size + ENTRY;
        while !self.charge_for(self.bytes + bytes) {
            lost = true;
            // The account limit is reached. Discarding older events may help.
            if !self.discard_oldest || self.events.is_empty() {
                self.note_lost();
                return true;
            }
            self.drop_oldest();
        }
        self.bytes += bytes;
        self.len += 1;
        push(&mut self.events);
        self.changed(Marks::pushed);
        self.has_lost |= lost;
        lost
    }

    /// Charges `bytes` if the account allows it, and as much again in advance if that fits too.
    fn charge_for(&mut self, bytes: usize) -> bool {
        bytes <= self.charge.amount()
            || self.charge.resize(bytes + bytes.min(AHEAD_MAX)).is_ok()
            || self.charge.resize(bytes).is_ok()
    }

    /// Records that events were lost before they reached the queue.
    pub(crate) fn note_lost(&mut self) {
        self.has_lost = true;
        self.changed(Marks::pushed);
    }

    fn drop_oldest(&mut self) {
        if self.take_oldest().is_some() {
            self.changed(|marks| marks.popped_front(1));
        }
    }

    fn take_oldest(&mut self) -> Option<Arc<Event>> {
        let (event, size) = match self.events.front_mut()? {
            Waiting::Event(event) => (Arc::clone(event), event.size()),
            Waiting::Written(part) => part.pop_front()?,
        };
        self.taken(1, size, VecDeque::front, VecDeque::pop_front);
        Some(event)
    }

    /// Events were removed from one end. Removes their entry when it is empty.
    fn taken(
        &mut self,
        count: usize,
        size: usize,
        end: fn(&VecDeque<Waiting>) -> Option<&Waiting>,
        pop: fn(&mut VecDeque<Waiting>) -> Option<Waiting>,
    ) {
        let is_last = match end(&self.events) {
            Some(Waiting::Written(part)) => part.len() == 0,
            _ => true,
        };
        if is_last {
            pop(&mut self.events);
        }
        self.len = self.len.saturating_sub(count);
        self.give_back(size + count * ENTRY);
    }

    fn give_back(&mut self, bytes: usize) {
        // The charge for entries is returned with the events, so their memory must be freed too. Half of the capacity
        // stays free, so that entries are moved seldom.
        if self.events.capacity() > ENTRIES_KEPT.max(4 * self.events.len()) {
            self.events.shrink_to(ENTRIES_KEPT.max(2 * self.events.len()));
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        if self.bytes == 0 || self.charge.amount() - self.bytes.min(self.charge.amount()) > 2 * AHEAD_MAX {
            self.charge.resize_anyway(self.bytes);
        }
    }

    /// The next event. If the oldest are discarded, the overflow event comes first; otherwise last.
    pub(crate) fn pop(&mut self) -> Option<Next> {
        if self.has_lost && (self.discard_oldest || self.events.is_empty()) {
            self.has_lost = false;
            self.changed(Marks::pushed);
            return Some(Next::Overflow);
        }
        let event = self.take_oldest()?;
        self.changed(|marks| marks.popped_front(1));
        Some(Next::Event(event))
    }

    /// Appends the next events as EventFieldLists (Part 4 §7.25.3), as many as fit. `overflow` creates the event that
    /// reports lost events.
    pub(crate) fn encode(
        &mut self,
        client_handle: u32,
        filter: &EventFilter,
        room: &mut Room,
        out: &mut Vec<u8>,
        overflow: impl Fn() -> Event,
    ) {
        while room.has_some(out) {
            let is_next = !(self.has_lost && self.discard_oldest);
            if let Some(Waiting::Written(part)) = self.events.front_mut().filter(|_| is_next)
                && part.is_of(filter.number())
            {
                let weight = if part.is_shared() { weight::COPIED } else { weight::LAST };
                let count = room.count.min(room.weight.div_ceil(weight)) as usize;
                let (count, size) = part.encode(client_handle, count, room.len_max, out);
                room.spend(count, weight);
                self.taken(count, size, VecDeque::front, VecDeque::pop_front);
                self.changed(|marks| marks.popped_front(count));
                continue;
            }
            let Some(next) = self.pop() else { return };
            client_handle.encode(out);
            match next {
                Next::Event(event) => filter.encode_fields(&event, out),
                Next::Overflow => filter.encode_fields(&overflow(), out),
            }
            room.spend(1, weight::ALONE);
        }
    }

    /// Deletes everything.
    pub(crate) fn clear(&mut self) {
        let len = core::mem::take(&mut self.len);
        self.changed(|marks| marks.popped_front(len));
        self.events = VecDeque::new();
        self.has_lost = false;
        self.bytes = 0;
        self.charge.resize_anyway(0);
    }

    /// Deletes the events that the client is not permitted to see.
    pub(crate) fn retain(&mut self, mut may_see: impl FnMut(&Event) -> bool) {
        if self.events.iter().flat_map(Waiting::events).all(|event| may_see(event)) {
            return;
        }
        let events = core::mem::take(&mut self.events);
        let left = events.iter().flat_map(Waiting::events).filter(|event| may_see(event));
        self.events = left.map(|event| Waiting::Event(Arc::clone(event))).collect();
        self.changed(Marks::replaced);
        self.len = self.events.len();
        self.bytes = self.events.iter().flat_map(Waiting::events).map(|event| event.size() + ENTRY).sum();
        self.charge.resize_anyway(self.bytes);
    }

    /// Changes size and policy; events that no longer fit are lost. Returns whether any was lost.
    pub(crate) fn modify(&mut self, size: u32, discard_oldest: bool) -> bool {
        (self.size, self.discard_oldest) = (size.max(1) as usize, discard_oldest);
        let mut lost = false;
        while self.len > self.size {
            lost = true;
            if discard_oldest {
                self.drop_oldest();
                continue;
            }
            let size = match self.events.back_mut() {
                Some(Waiting::Event(event)) => event.size(),
                Some(Waiting::Written(part)) => part.pop_back(),
                None => break,
            };
            self.taken(1, size, VecDeque::back, VecDeque::pop_back);
            let len = self.len;
            self.changed(|marks| marks.popped_back(len));
        }
        self.has_lost |= lost;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{EventNodes, NewEvent};
    use super::*;
    use crate::account::Maxima;
    use crate::event::FieldName;
    use taktwerk_types::{ByteString, NodeId, UtcTime, Variant};

    fn event(severity: u16) -> Arc<Event> {
        let new = NewEvent::new(NodeId::numeric(0, 2041), NodeId::NULL).severity(severity);
        let event = Event::new(new, EventNodes::default(), || ByteString::from(vec![0; 16]), UtcTime::NULL);
        Arc::new(event)
    }

    fn all(queue: &mut EventQueue) -> Vec<u16> {
        core::iter::from_fn(|| queue.pop())
            .map(|next| match next {
                Next::Overflow => 0,
                Next::Event(event) => match event.get(&FieldName::severity()) {
                    Some(Variant::UInt16(severity)) => *severity,
                    other => panic!("{other:?}"),
                },
            })
            .collect()
    }

    #[test]
    fn the_policy_decides_which_events_are_lost_and_where_the_overflow_is() {
        let account = Account::server(Maxima::bytes(usize::MAX));
        let mut oldest = EventQueue::new(&account, 2, true);
        let mut newest = EventQueue::new(&account, 2, false);
        for severity in 1..=4 {
            let lost = severity > 2;
            assert_eq!((oldest.push(event(severity)), newest.push(event(severity))), (lost, lost));
        }
        assert_eq!(all(&mut oldest), [0, 3, 4]);
        assert_eq!(all(&mut newest), [1, 2, 0]);
        assert!(oldest.is_empty() && newest.is_empty());
        assert_eq!(account.bytes(), 0);
        // Reported once.
        oldest.push(event(5));
        assert_eq!(all(&mut oldest), [5]);
    }

    #[test]
    fn a_shorter_queue_loses_by_the_new_policy() {
        let account = Account::server(Maxima::bytes(usize::MAX));
        for (discard_oldest, left) in [(true, vec![0, 3]), (false, vec![1, 0])] {
            let mut queue = EventQueue::new(&account, 5, !discard_oldest);
            (1..=3).for_each(|severity| assert!(!queue.push(event(severity))));
            assert!(queue.modify(1, discard_oldest));
            assert_eq!(all(&mut queue), left);
        }
        assert_eq!(account.bytes(), 0);
    }

    /// Clients fill and empty their queues in turn: no charge and no memory may remain.
    #[test]
    fn an_emptied_queue_frees_its_memory() {
        let account = Account::server(Maxima::bytes(usize::MAX));
        let mut queue = EventQueue::new(&account, 10_000, true);
        let fill = |queue: &mut EventQueue| (0..5_000).for_each(|_| assert!(!queue.push(event(1))));
        fill(&mut queue);
        assert!(queue.events.capacity() >= 5_000);
        for left in (0..5_000).rev() {
            queue.pop();
            assert!(queue.events.capacity() <= ENTRIES_KEPT.max(8 * left), "{left} left");
        }
        fill(&mut queue);
        queue.retain(|_| false);
        assert!(queue.events.capacity() <= ENTRIES_KEPT);
        fill(&mut queue);
        queue.modify(1, false);
        assert!(queue.events.capacity() <= ENTRIES_KEPT);
    }

    #[test]
    fn at_the_account_limit_only_events_are_lost() {
        let bytes = event(1).size() + ENTRY;
        let account = Account::server(Maxima::bytes(usize::MAX).with(Category::QueuedValues, 2 * bytes + 10));
        let mut queue = EventQueue::new(&account, 100, true);
        let lost: Vec<bool> = (1..=4).map(|severity| queue.push(event(severity))).collect();
        assert_eq!(lost, [false, false, true, true]);
        assert_eq!(queue.len(), 2);
        queue.retain(|event| event.get(&FieldName::severity()) == Some(&Variant::from(4u16)));
        assert_eq!(account.used(Category::QueuedValues), bytes);
        assert_eq!(all(&mut queue), [0, 4]);
        queue.push(event(1));
        queue.clear();
        assert!(queue.is_empty() && account.bytes() == 0);
    }

    /// Encoded events shared by several items behave like separately queued ones.
    #[test]
    fn shared_events_are_lost_and_taken_one_by_one() {
        for seed in 1..200u64 {
            let mut random = seed;
            let mut next = |below: u64| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % below
            };
            let account = Account::server(Maxima::bytes(usize::MAX));
            let (mut size, mut discard_oldest) = (1 + next(20) as usize, seed % 2 == 0);
            let mut queue = EventQueue::new(&account, size as u32, discard_oldest);
            let (mut model, mut has_lost, mut number) = (VecDeque::<u16>::new(), false, 0);
            let lose = |model: &mut VecDeque<u16>, has_lost: &mut bool, size: usize, oldest: bool| {
                while model.len() > size {
                    if oldest {
                        model.pop_front()
                    } else {
                        model.pop_back()
                    };
                    *has_lost = true;
                }
            };
            for _ in 0..60 {
                match next(6) {
                    0 => {
                        number += 1;
                        model.push_back(number);
                        queue.push(event(number));
                    }
                    1 | 2 => {
                        let mut written = Written::new(1);
                        let count = 1 + next(6) as usize;
                        let numbers: Vec<u16> = (1..=count as u16).map(|at| number + at).collect();
                        number += count as u16;
                        for number in &numbers {
                            written.push(&event(*number), |out| number.encode(out));
                        }
                        let written = written.finish();
                        for (at, number) in numbers.iter().enumerate().filter(|_| next(4) > 0) {
                            model.push_back(*number);
                            queue.push_written(&written, at);
                            lose(&mut model, &mut has_lost, size, discard_oldest);
                        }
                    }
                    3 => {
                        size = 1 + next(20) as usize;
                        discard_oldest = next(2) == 0;
                        queue.modify(size as u32, discard_oldest);
                    }
                    4 if next(4) == 0 => {
                        let odd = next(2) as u16;
                        model.retain(|number| number % 2 == odd);
                        let severity = |event: &Event| match event.get(&FieldName::severity()) {
                            Some(Variant::UInt16(severity)) => *severity,
                            other => panic!("{other:?}"),
                        };
                        queue.retain(|event| severity(event) % 2 == odd);
                    }
                    _ => {
                        let overflow_first = has_lost && (discard_oldest || model.is_empty());
                        let expected = if overflow_first { Some(0) } else { model.pop_front() };
                        has_lost &= !overflow_first;
                        let mut one = Vec::new();
                        if let Some(next) = queue.pop() {
                            one.push(match next {
                                Next::Overflow => 0,
                                Next::Event(event) => match event.get(&FieldName::severity()) {
                                    Some(Variant::UInt16(severity)) => *severity,
                                    other => panic!("{other:?}"),
                                },
                            });
                        }
                        assert_eq!(one.first().copied(), expected, "seed {seed}");
                    }
                }
                lose(&mut model, &mut has_lost, size, discard_oldest);
                assert_eq!((queue.len(), queue.room()), (model.len(), size - model.len()), "seed {seed}");
                assert_eq!(queue.is_empty(), model.is_empty() && !has_lost);
            }
            queue.clear();
            assert!(queue.is_empty() && account.bytes() == 0);
        }
    }
}
