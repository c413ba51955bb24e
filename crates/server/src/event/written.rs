//! Events encoded with the fields that a filter selects, once for all items with that filter.

use super::model::Event;
use crate::account::allocation;
use std::sync::Arc;

/// Bytes before the fields of each event, for the ClientHandle of the item (Part 4 §7.25.3).
const HANDLE_LEN: usize = 4;

/// Consecutive events that pass a filter, each encoded as an EventFieldList whose ClientHandle is still to be set.
#[derive(Debug)]
pub(crate) struct Written {
    /// The filter's number.
    filter: u64,
    /// Each with the end of its bytes.
    events: Vec<(Arc<Event>, usize)>,
    bytes: Vec<u8>,
}

impl Written {
    /// Empty, for the filter with this number.
    pub(crate) const fn new(filter: u64) -> Self {
        Self { filter, events: Vec::new(), bytes: Vec::new() }
    }

    /// Appends an event; `encode` appends its fields. Returns its position.
    pub(crate) fn push(&mut self, event: &Arc<Event>, encode: impl FnOnce(&mut Vec<u8>)) -> usize {
        self.bytes.extend_from_slice(&[0; HANDLE_LEN]);
        encode(&mut self.bytes);
        self.events.push((Arc::clone(event), self.bytes.len()));
        self.events.len() - 1
    }

    /// No more events follow.
    pub(crate) fn finish(mut self) -> Arc<Self> {
        self.events.shrink_to_fit();
        self.bytes.shrink_to_fit();
        Arc::new(self)
    }

    /// Where the bytes of an event begin.
    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).and_then(|before| self.events.get(before)).map_or(0, |(_, end)| *end)
    }

    /// Bytes of memory that an event takes.
    pub(crate) fn size(&self, at: usize) -> usize {
        let Some((event, end)) = self.events.get(at) else { return 0 };
        event.size() + allocation(end - self.start(at)) + size_of::<(Arc<Event>, usize)>()
    }
}

/// A range of these events, for one item.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    written: Arc<Written>,
    from: usize,
    to: usize,
}

impl Part {
    /// The event at a position.
    pub(crate) fn new(written: &Arc<Written>, at: usize) -> Self {
        Self { written: Arc::clone(written), from: at, to: at + 1 }
    }

    /// Extends the range by the event at a position, if it is the next.
    pub(crate) fn extend(&mut self, written: &Arc<Written>, at: usize) -> bool {
        let is_next = self.to == at && Arc::ptr_eq(&self.written, written);
        self.to += usize::from(is_next);
        is_next
    }

    /// Number of events.
    pub(crate) fn len(&self) -> usize {
        self.to - self.from
    }

    /// The events.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.written.events.get(self.from..self.to).unwrap_or_default().iter().map(|(event, _)| event)
    }

    /// Removes the first event. Returns it and its size.
    pub(crate) fn pop_front(&mut self) -> Option<(Arc<Event>, usize)> {
        let event = self.events().next().map(Arc::clone)?;
        self.from += 1;
        Some((event, self.written.size(self.from - 1)))
    }

    /// Removes the last event. Returns its size.
    pub(crate) fn pop_back(&mut self) -> usize {
        self.to = self.to.saturating_sub(1).max(self.from);
        self.written.size(self.to)
    }

    /// Whether it was encoded with the given filter: the item may have a new filter since.
    pub(crate) fn is_of(&self, filter: u64) -> bool {
        self.written.filter == filter
    }

    /// Whether other items or later messages still use some of the events.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.written) > 1
    }

    /// Appends events as EventFieldLists with a ClientHandle and removes them: at most `count_max`, and while `out` is
    /// shorter than `len_max`. Returns their number and their size.
    pub(crate) fn encode(
        &mut self,
        client_handle: u32,
        count_max: usize,
        len_max: usize,
        out: &mut Vec<u8>,
    ) -> (usize, usize) {
        let (base, start) = (out.len(), self.written.start(self.from));
        let last = self.to.min(self.from.saturating_add(count_max));
        let (mut at, mut end, mut size) = (self.from, start, 0);
        while at < last && base + (end - start) < len_max {
            size += self.written.size(at);
            at += 1;
            end = self.written.start(at);
        }
        out.extend_from_slice(self.written.bytes.get(start..end).unwrap_or_default());
        for written in self.from..at {
            let handle = base + (self.written.start(written) - start);
            if let Some(gap) = out.get_mut(handle..handle + HANDLE_LEN) {
                gap.copy_from_slice(&client_handle.to_le_bytes());
            }
        }
        let count = at - self.from;
        self.from = at;
        (count, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{EventNodes, NewEvent};
    use super::*;
    use crate::event::FieldName;
    use taktwerk_types::{ByteString, Encode, NodeId, UtcTime};

    fn event(severity: u16) -> Arc<Event> {
        let new = NewEvent::new(NodeId::numeric(0, 2041), NodeId::NULL).severity(severity);
        Arc::new(Event::new(new, EventNodes::default(), || ByteString::from(vec![7; 16]), UtcTime::NULL))
    }

    #[test]
    fn copies_equal_the_filters_encoding_at_every_split() {
        let fields = |event: &Event, out: &mut Vec<u8>| {
            event.get(&FieldName::severity()).unwrap().encode(out);
            event.get(&FieldName::event_id()).unwrap().encode(out);
        };
        let mut written = Written::new(3);
        let events: Vec<_> = (1..=5).map(event).collect();
        for (at, event) in events.iter().enumerate() {
            assert_eq!(written.push(event, |out| fields(event, out)), at);
        }
        let written = written.finish();
        let mut one_by_one = Vec::new();
        for event in &events {
            one_by_one.extend_from_slice(&9u32.to_le_bytes());
            fields(event, &mut one_by_one);
        }
        let len = one_by_one.len() / events.len();
        for cut in 0..=5 {
            let mut part = Part::new(&written, 0);
            assert!((1..5).all(|at| part.extend(&written, at)) && !part.extend(&written, 3));
            assert!(part.is_of(3) && !part.is_of(4) && part.is_shared());
            let (mut out, all) = (vec![1, 2], (0..5).map(|at| written.size(at)).sum::<usize>());
            let (first, size) = part.encode(9, cut, usize::MAX, &mut out);
            assert_eq!((first, part.len()), (cut, 5 - cut));
            // A message is full exactly at this length.
            let len_max = 2 + cut * len + 1;
            let (second, more) = part.encode(9, 10, len_max, &mut out);
            assert_eq!(second, usize::from(cut < 5));
            let (third, rest) = part.encode(9, 10, usize::MAX, &mut out);
            assert_eq!((first + second + third, size + more + rest), (5, all));
            assert_eq!((&out[..2], &out[2..]), (&[1, 2][..], &one_by_one[..]));
        }
        let mut part = Part::new(&written, 2);
        assert!(!part.extend(&written, 4) && part.extend(&written, 3));
        assert_eq!(part.pop_back(), written.size(3));
        let (first, size) = part.pop_front().unwrap();
        assert!(Arc::ptr_eq(&first, &events[2]) && size == written.size(2));
        assert!(part.pop_front().is_none() && part.len() == 0);
    }
}
