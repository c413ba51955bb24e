//! Filtered Retain (SupportsFilteredRetain, Part 9 §5.5.2): the conditions that an item has reported with Retain true.
//!
//! If a retained condition no longer passes the item's where clause, the client would retain it for ever. So it
//! receives that event once with Retain false. Items without a where clause do not need this.
//!
//! There can be hundreds of thousands of them. Adding one moves few others, and to free all of them takes 0.1 ms: with a
//! node for each handful, as in a tree, freeing 100 000 delayed other clients by 3 ms.

use crate::account::Charge;
use crate::event::Event;
use crate::event::filter::EventFilter;
use crate::spread::Spread;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Memory per condition in a tree, in bytes; the least for another one in the table.
const KEY_SIZE: usize = 24;

/// Hashes of conditions.
#[derive(Debug, Default)]
struct Keys(Option<Spread<u64>>);

impl Keys {
    /// Places of similar hashes differ.
    fn place(key: u64) -> u64 {
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Spread::len)
    }

    /// Allocated bytes.
    fn allocated(&self) -> usize {
        self.0.as_ref().map_or(0, Spread::allocated)
    }

    fn contains(&self, key: u64) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.find(Self::place(key), |known| *known == key).is_some())
    }

    /// Adds a key that is not there yet.
    fn insert(&mut self, key: u64) {
        self.0.get_or_insert_default().insert_unique(Self::place(key), key);
    }

    fn remove(&mut self, key: u64) -> bool {
        let Some(keys) = &mut self.0 else { return false };
        let was_there = keys.remove(Self::place(key), |known| *known == key).is_some();
        if keys.len() == 0 {
            // A table does not shrink.
            self.0 = None;
        }
        was_there
    }
}

/// Changes of the list since it was last written to the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RetainedChange {
    /// The list was cleared.
    pub(super) cleared: bool,
    pub(super) added: Vec<u64>,
    pub(super) removed: Vec<u64>,
}

/// Unwritten changes of the list, for durable subscriptions.
#[derive(Debug, Default)]
struct Unwritten {
    cleared: bool,
    /// Conditions that were added or removed.
    keys: BTreeSet<u64>,
}

/// The conditions and branches that an item's client retains.
#[derive(Debug)]
pub(super) struct Retained {
    keys: Keys,
    charge: Charge,
    /// For durable subscriptions.
    unwritten: Option<Unwritten>,
}

impl Retained {
    /// Creates an empty list; `charge` is for its contents. Changes are recorded for durable subscriptions.
    pub(super) fn new(charge: Charge, is_durable: bool) -> Self {
        Self { keys: Keys::default(), charge, unwritten: is_durable.then(Unwritten::default) }
    }

    /// Restores the list from the log.
    pub(super) fn restore(&mut self, keys: BTreeSet<u64>) {
        if self.charge.resize(keys.len() * KEY_SIZE).is_ok() {
            self.keys = Keys::default();
            keys.into_iter().for_each(|key| self.keys.insert(key));
            self.charge.resize_anyway(self.size(0));
        }
    }

    /// The changes since the last call.
    pub(super) fn take_change(&mut self) -> Option<RetainedChange> {
        let unwritten = core::mem::take(self.unwritten.as_mut()?);
        let (added, removed) = unwritten.keys.into_iter().partition(|key| self.keys.contains(*key));
        let change = RetainedChange { cleared: unwritten.cleared, added, removed };
        self.charge.resize_anyway(self.size(0));
        (change != RetainedChange::default()).then_some(change)
    }

    /// Size in bytes with `more` conditions.
    fn size(&self, more: usize) -> usize {
        let unwritten = self.unwritten.as_ref().map_or(0, |unwritten| unwritten.keys.len());
        let each = if self.unwritten.is_some() { 2 * KEY_SIZE } else { KEY_SIZE };
        self.keys.allocated() + unwritten * KEY_SIZE + more * each
    }

    fn note(&mut self, key: u64) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.keys.insert(key);
        }
    }

    /// An event passes the item's filter or not. Returns whether the client must be informed that a condition has left
    /// the filter.
    pub(super) fn has_left(&mut self, filter: &EventFilter, event: &Event, passes: bool) -> bool {
        // Without a filter the client sees all events of a condition.
        filter.can_reject() && event.condition_id().is_some() && self.follow(event, passes)
    }

    /// The same for a condition's event. If memory is exhausted, a condition is not tracked; the client learns with its
    /// next refresh.
    fn follow(&mut self, event: &Event, passes: bool) -> bool {
        if !passes && self.keys.len() == 0 {
            return false;
        }
        let Some(key) = event.condition_key() else { return false };
        if passes && event.retains() {
            if !self.keys.contains(key) && self.charge.resize(self.size(1)).is_ok() {
                self.keys.insert(key);
                self.note(key);
                self.charge.resize_anyway(self.size(0));
            }
            return false;
        }
        let is_known = self.keys.remove(key);
        if is_known {
            self.note(key);
            self.charge.resize_anyway(self.size(0));
        }
        is_known && !passes
    }

    /// Clears the list: the client starts again.
    pub(super) fn clear(&mut self) {
        self.keys = Keys::default();
        if let Some(unwritten) = &mut self.unwritten {
            *unwritten = Unwritten { cleared: true, keys: BTreeSet::new() };
        }
        self.charge.resize_anyway(0);
    }
}

/// Events of a batch with Retain false, for items whose filter a condition has left; each is created once.
#[derive(Debug, Default)]
pub(super) struct Leaving(Vec<(usize, Arc<Event>)>);

impl Leaving {
    /// The event at a position of the batch, with Retain false.
    pub(super) fn of(&mut self, at: usize, event: &Event) -> Arc<Event> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == at) {
            return Arc::clone(known);
        }
        let leaving = Arc::new(event.leaving());
        self.0.push((at, Arc::clone(&leaving)));
        leaving
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Category, Maxima};
    use crate::event::NewEvent;
    use crate::event::model::EventNodes;
    use taktwerk_types::{ByteString, NodeId, UtcTime};

    fn event(condition: u32, branch: u32, retain: bool) -> Event {
        let branch = if branch == 0 { NodeId::NULL } else { NodeId::numeric(1, branch) };
        let new = NewEvent::new(NodeId::numeric(0, 2915), NodeId::NULL)
            .condition(NodeId::numeric(1, condition))
            .field("BranchId", branch)
            .field("Retain", retain);
        Event::new(new, EventNodes::default(), || ByteString::from(vec![0; 16]), UtcTime::NULL)
    }

    /// Every state of a condition at the client with every event.
    #[test]
    fn every_transition_of_retained_conditions_is_correct() {
        let account = Account::server(Maxima::bytes(usize::MAX));
        // Inputs: retained before, passes, Retain. Results: client is informed, retained afterwards.
        let table = [
            (false, false, false, false, false),
            (false, false, true, false, false),
            (false, true, false, false, false),
            (false, true, true, false, true),
            (true, false, false, true, false),
            (true, false, true, true, false),
            (true, true, false, false, false),
            (true, true, true, false, true),
        ];
        for (before, passes, retain, leaves, behind) in table {
            let mut retained = Retained::new(account.nothing(Category::MonitoredItems), false);
            // Another condition and a branch are always retained.
            retained.follow(&event(2, 0, true), true);
            retained.follow(&event(1, 9, true), true);
            if before {
                retained.follow(&event(1, 0, true), true);
            }
            let case = format!("{before} {passes} {retain}");
            assert_eq!(retained.follow(&event(1, 0, retain), passes), leaves, "{case}");
            assert_eq!(retained.keys.len(), 2 + usize::from(behind), "{case}");
            assert_eq!(retained.charge.amount(), retained.keys.allocated());
            retained.clear();
            assert_eq!((retained.keys.len(), retained.charge.amount()), (0, 0));
        }
    }

    /// Whatever was retained before, nothing is kept without a charge.
    #[test]
    fn conditions_that_are_no_longer_retained_need_no_memory() {
        let account = Account::server(Maxima::bytes(usize::MAX));
        let mut retained = Retained::new(account.nothing(Category::MonitoredItems), false);
        for number in 0..5_000 {
            retained.follow(&event(number, 0, true), true);
        }
        let all = retained.charge.amount();
        assert!(all > 5_000 * size_of::<u64>() && all == retained.keys.allocated(), "{all}");
        for number in 1..5_000 {
            retained.follow(&event(number, 0, false), true);
        }
        assert_eq!((retained.keys.len(), retained.charge.amount()), (1, all), "a table does not shrink");
        retained.follow(&event(0, 0, false), true);
        assert_eq!((retained.keys.len(), retained.charge.amount(), retained.keys.allocated()), (0, 0, 0));
    }

    #[test]
    fn without_memory_a_condition_is_not_tracked() {
        let account = Account::server(Maxima::bytes(KEY_SIZE));
        let mut retained = Retained::new(account.nothing(Category::MonitoredItems), false);
        assert!(!retained.follow(&event(1, 0, true), true) && !retained.follow(&event(2, 0, true), true));
        assert!(!retained.follow(&event(2, 0, true), false));
        assert!(retained.follow(&event(1, 0, true), false));
    }

    /// After any sequence, the written changes reproduce the list.
    #[test]
    fn changes_of_a_durable_list_are_reported_once() {
        let account = Account::server(Maxima::bytes(usize::MAX));
        let mut retained = Retained::new(account.nothing(Category::MonitoredItems), true);
        let mut written = BTreeSet::new();
        let mut told = |retained: &mut Retained| {
            let Some(change) = retained.take_change() else { return false };
            if change.cleared {
                written.clear();
            }
            written.extend(&change.added);
            change.removed.iter().for_each(|key| assert!(!change.added.contains(key)));
            written.retain(|key| !change.removed.contains(key));
            assert!(written.iter().all(|key| retained.keys.contains(*key)));
            assert_eq!(written.len(), retained.keys.len());
            assert_eq!(retained.charge.amount(), retained.keys.allocated());
            true
        };
        assert!(!told(&mut retained));
        (1..=3).for_each(|number| assert!(!retained.follow(&event(number, 0, true), true)));
        assert_eq!(retained.charge.amount(), retained.keys.allocated() + 3 * KEY_SIZE);
        assert!(told(&mut retained) && !told(&mut retained));
        // One is removed and added again, one is removed, one stays.
        assert!(retained.follow(&event(1, 0, true), false));
        retained.follow(&event(1, 0, true), true);
        retained.follow(&event(2, 0, false), true);
        retained.follow(&event(3, 0, true), true);
        assert!(told(&mut retained));
        assert_eq!(retained.keys.len(), 2);
        retained.clear();
        retained.follow(&event(4, 0, true), true);
        assert!(told(&mut retained));
        assert_eq!(retained.keys.len(), 1);
        let mut restored = Retained::new(account.nothing(Category::MonitoredItems), true);
        restored.restore(BTreeSet::from([event(4, 0, true).condition_key().unwrap()]));
        assert!(restored.take_change().is_none());
        assert!(restored.follow(&event(4, 0, true), false), "the client is informed that it has left");
    }

    #[test]
    fn a_leaving_event_differs_only_in_retain() {
        let (event, mut leaving) = (event(1, 0, true), Leaving::default());
        let left = leaving.of(3, &event);
        assert!(event.retains() && !left.retains());
        assert_eq!(left.condition_key(), event.condition_key());
        assert!(Arc::ptr_eq(&left, &leaving.of(3, &event)) && !Arc::ptr_eq(&left, &leaving.of(4, &event)));
        let differ = event.fields().zip(left.fields()).filter(|(one, other)| one != other);
        assert_eq!(differ.count(), 1);
    }
}
