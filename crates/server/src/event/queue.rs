//! The events that wait for the client of one item (Part 4 §5.13.1.5).

use super::filter::EventFilter;
use super::model::Event;
use crate::account::{Account, Category, Charge, allocation};
use crate::durable::marks::Marks;
use crate::durable::record::{begin_queue, end_queue};
use crate::history::event::encode_event;
use std::collections::VecDeque;
use std::sync::Arc;

/// An event that waits.
#[derive(Debug, Clone)]
pub(crate) enum Waiting {
    /// Its fields are written when the message is.
    Event(Arc<Event>),
    /// Its fields are written already, for all items with the same filter.
    Written(Arc<Written>),
}

/// An event with the fields that a filter selects, as in an EventFieldList.
#[derive(Debug)]
pub(crate) struct Written {
    event: Arc<Event>,
    /// The filter's number.
    filter: u64,
    fields: Box<[u8]>,
    size: usize,
}

impl Written {
    /// Writes the fields that a filter selects.
    pub(crate) fn new(event: &Arc<Event>, filter: &EventFilter) -> Self {
        let mut fields = Vec::with_capacity(128);
        filter.encode_fields(event, &mut fields);
        let fields = fields.into_boxed_slice();
        let size = event.size() + allocation(fields.len()) + allocation(size_of::<Self>() + 16);
        Self { event: Arc::clone(event), filter: filter.number(), fields, size }
    }
}

/// What writing events costs.
pub(crate) mod weight {
    /// Its fields are written, and it is freed: some 3 µs.
    pub(crate) const ALONE: u32 = 32;
    /// Its fields are copied, and it is freed, which takes most of the time: those of alarms have dozens of fields.
    pub(crate) const LAST: u32 = 32;
    /// Its fields are copied.
    pub(crate) const COPIED: u32 = 2;
}

impl Waiting {
    /// The event.
    pub(crate) fn event(&self) -> &Arc<Event> {
        match self {
            Self::Event(event) => event,
            Self::Written(written) => &written.event,
        }
    }

    /// Bytes of memory that it takes.
    fn size(&self) -> usize {
        match self {
            Self::Event(event) => event.size(),
            Self::Written(written) => written.size,
        }
    }

    /// Appends the fields that a filter selects, as in an EventFieldList. Returns the [`weight`] of it.
    pub(crate) fn encode(&self, filter: &EventFilter, out: &mut Vec<u8>) -> u32 {
        match self {
            // The item's filter may have been modified since.
            Self::Written(written) if written.filter == filter.number() => {
                out.extend_from_slice(&written.fields);
                if Arc::strong_count(written) > 1 { weight::COPIED } else { weight::LAST }
            }
            _ => {
                filter.encode_fields(self.event(), out);
                weight::ALONE
            }
        }
    }
}

/// What is sent next.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    /// An event.
    Event(Waiting),
    /// That events were lost here: an EventQueueOverflowEventType.
    Overflow,
}

/// A queue of events. When it is full, the discard policy decides which event is lost; that some were is an event of its
/// own, which takes no place and is never discarded.
#[derive(Debug)]
pub(crate) struct EventQueue {
    events: VecDeque<Waiting>,
    size: usize,
    discard_oldest: bool,
    /// Events were lost, and the client was not told.
    has_lost: bool,
    /// What the events take.
    bytes: usize,
    /// At least that; more, so that not each event has to be charged by itself.
    charge: Charge,
    /// How far it is written down, for items of durable subscriptions.
    marks: Option<Box<Marks>>,
}

/// Places that an empty queue may keep.
const PLACES_KEPT: usize = 32;
/// What a place takes.
const PLACE: usize = size_of::<Waiting>();
/// Bytes that a queue is charged ahead at most.
const AHEAD_MAX: usize = 16 << 10;

impl EventQueue {
    pub(crate) fn new(account: &Arc<Account>, size: u32, discard_oldest: bool) -> Self {
        let charge = account.nothing(Category::QueuedValues);
        Self {
            events: VecDeque::new(),
            size: size.max(1) as usize,
            discard_oldest,
            has_lost: false,
            bytes: 0,
            charge,
            marks: None,
        }
    }

    /// From now on it is noted what has to be written down.
    pub(crate) fn mark(&mut self, marks: Marks) {
        self.marks = Some(Box::new(marks));
    }

    fn changed(&mut self, change: impl FnOnce(&mut Marks)) {
        if let Some(marks) = &mut self.marks {
            change(marks);
        }
    }

    /// Appends what has changed since the last call to an entry of the log, with up to `max` events. Returns how many there
    /// were, and whether some are left; `None` if nothing has changed.
    pub(crate) fn write_changes(
        &mut self,
        item: u32,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Option<(usize, bool)> {
        let Self { events, has_lost, marks, .. } = self;
        let marks = marks.as_mut()?;
        let (first, from) = marks.take_change()?;
        let at = begin_queue(true, item, (first, from, *has_lost), out);
        let known = usize::try_from(from - first).unwrap_or(usize::MAX);
        let mut written = 0;
        for waiting in events.iter().skip(known).take(max) {
            let event = waiting.event();
            let fields = event.fields().map(|(name, value)| (name.path(), value));
            encode_event(event.condition_id(), fields, out);
            written += 1;
        }
        end_queue(at, u32::try_from(written).unwrap_or(u32::MAX), out);
        let is_left = known + written < events.len();
        marks.written(written as u64, is_left);
        Some((written, is_left))
    }

    /// Whether there is nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && !self.has_lost
    }

    /// How many events it takes until one is lost.
    pub(crate) fn room(&self) -> usize {
        self.size.saturating_sub(self.events.len())
    }

    /// How many events wait.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Adds an event. Returns whether one was lost.
    pub(crate) fn push(&mut self, event: Waiting) -> bool {
        let mut lost = false;
        if self.events.len() >= self.size {
            lost = true;
            if !self.discard_oldest {
                self.note_lost();
                return true;
            }
            self.drop_oldest();
        }
        let bytes = event.size() + PLACE;
        while !self.charge_for(self.bytes + bytes) {
            lost = true;
            // The account has no room. Without the older ones there may be some.
            if !self.discard_oldest || self.events.is_empty() {
                self.note_lost();
                return true;
            }
            self.drop_oldest();
        }
        self.bytes += bytes;
        self.events.push_back(event);
        self.changed(Marks::pushed);
        self.has_lost |= lost;
        lost
    }

    /// Whether the account has room for so many bytes: as many again are charged with them, if there is room for these too.
    fn charge_for(&mut self, bytes: usize) -> bool {
        bytes <= self.charge.amount()
            || self.charge.resize(bytes + bytes.min(AHEAD_MAX)).is_ok()
            || self.charge.resize(bytes).is_ok()
    }

    /// Says that events were lost on their way to the queue.
    pub(crate) fn note_lost(&mut self) {
        self.has_lost = true;
        self.changed(Marks::pushed);
    }

    fn drop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.give_back(&event);
            self.changed(|marks| marks.popped_front(1));
        }
    }

    fn give_back(&mut self, event: &Waiting) {
        // The charge of the places goes with the events; so must their memory. Half as much again is left, so that each place
        // is moved seldom.
        if self.events.capacity() > PLACES_KEPT.max(4 * self.events.len()) {
            self.events.shrink_to(PLACES_KEPT.max(2 * self.events.len()));
        }
        self.bytes = self.bytes.saturating_sub(event.size() + PLACE);
        if self.bytes == 0 || self.charge.amount() - self.bytes.min(self.charge.amount()) > 2 * AHEAD_MAX {
            self.charge.resize_anyway(self.bytes);
        }
    }

    /// The next event. Where the oldest are discarded, the overflow comes first; else behind the last one.
    pub(crate) fn pop(&mut self) -> Option<Next> {
        if self.has_lost && (self.discard_oldest || self.events.is_empty()) {
            self.has_lost = false;
            self.changed(Marks::pushed);
            return Some(Next::Overflow);
        }
        let event = self.events.pop_front()?;
        self.give_back(&event);
        self.changed(|marks| marks.popped_front(1));
        Some(Next::Event(event))
    }

    /// Deletes everything.
    pub(crate) fn clear(&mut self) {
        let len = self.events.len();
        self.changed(|marks| marks.popped_front(len));
        self.events = VecDeque::new();
        self.has_lost = false;
        self.bytes = 0;
        self.charge.resize_anyway(0);
    }

    /// Deletes the events that the client may not see.
    pub(crate) fn retain(&mut self, mut may_see: impl FnMut(&Event) -> bool) {
        self.events.retain(|event| may_see(event.event()));
        self.events.shrink_to(PLACES_KEPT.max(2 * self.events.len()));
        self.changed(Marks::replaced);
        self.bytes = self.events.iter().map(|event| event.size() + PLACE).sum();
        self.charge.resize_anyway(self.bytes);
    }

    /// Changes size and policy; what no longer fits is lost. Returns whether something was.
    pub(crate) fn modify(&mut self, size: u32, discard_oldest: bool) -> bool {
        (self.size, self.discard_oldest) = (size.max(1) as usize, discard_oldest);
        let mut lost = false;
        while self.events.len() > self.size {
            lost = true;
            if discard_oldest {
                self.drop_oldest();
            } else if let Some(event) = self.events.pop_back() {
                self.give_back(&event);
                let len = self.events.len();
                self.changed(|marks| marks.popped_back(len));
            }
        }
        self.has_lost |= lost;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{NewEvent, Placed};
    use super::*;
    use crate::account::Maxima;
    use crate::event::FieldName;
    use taktwerk_types::{ByteString, NodeId, UtcTime, Variant};

    fn event(severity: u16) -> Waiting {
        let new = NewEvent::new(NodeId::numeric(0, 2041), NodeId::NULL).severity(severity);
        let event = Event::new(new, Placed::default(), || ByteString::from(vec![0; 16]), UtcTime::NULL);
        Waiting::Event(Arc::new(event))
    }

    fn all(queue: &mut EventQueue) -> Vec<u16> {
        core::iter::from_fn(|| queue.pop())
            .map(|next| match next {
                Next::Overflow => 0,
                Next::Event(waiting) => match waiting.event().get(&FieldName::severity()) {
                    Some(Variant::UInt16(severity)) => *severity,
                    other => panic!("{other:?}"),
                },
            })
            .collect()
    }

    #[test]
    fn the_policy_decides_what_is_lost_and_where_the_overflow_stands() {
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
        // Told once.
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

    /// One client after the other fills its queue and empties it: nothing is charged then, and nothing may be kept.
    #[test]
    fn a_queue_that_was_long_keeps_no_places() {
        let account = Account::server(Maxima::bytes(usize::MAX));
        let mut queue = EventQueue::new(&account, 10_000, true);
        let fill = |queue: &mut EventQueue| (0..5_000).for_each(|_| assert!(!queue.push(event(1))));
        fill(&mut queue);
        assert!(queue.events.capacity() >= 5_000);
        for left in (0..5_000).rev() {
            queue.pop();
            assert!(queue.events.capacity() <= PLACES_KEPT.max(8 * left), "{left} left");
        }
        fill(&mut queue);
        queue.retain(|_| false);
        assert!(queue.events.capacity() <= PLACES_KEPT);
        fill(&mut queue);
        queue.modify(1, false);
        assert!(queue.events.capacity() <= PLACES_KEPT);
    }

    #[test]
    fn without_room_in_the_account_events_are_lost_and_nothing_else() {
        let bytes = event(1).size() + PLACE;
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
}
