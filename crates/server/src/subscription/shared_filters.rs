//! Filters of events that several items of a shard have in common: what they answer about an event is found out once, and
//! the fields that they select are written once.
//!
//! Clients of one kind ask for the same. With a hundred of them, deciding about an event and writing its fields a hundred
//! times was most of what events cost.

use crate::event::bus::Handed;
use crate::event::filter::{Around, EventFilter};
use crate::event::written::Written;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Filters with one fingerprint that are looked at. Only who chooses filters for that has more; they are not shared then.
const SAME_FINGERPRINT_MAX: usize = 4;
/// Evaluating a filter, writing the fields of an event, and freeing it if nobody wants it, in items that are asked.
const COST_OF_ANSWER: usize = 8;

/// Events that are given to items together: all were seen at the same nodes, and need the same permissions.
pub(super) type Batch = SmallVec<[Handed; 4]>;

/// What the entry of a filter takes, in bytes: each item pays for one.
pub(super) const ENTRY_SIZE: usize = size_of::<u64>() + size_of::<SmallVec<[Known; 1]>>();

/// A filter, and the items of the shard that have it now.
#[derive(Debug)]
pub(super) struct Known {
    filter: Weak<EventFilter>,
    items: u32,
}

/// The filters of a shard's items.
#[derive(Debug, Default)]
pub(super) struct SharedFilters {
    /// By fingerprint. The items charge what the filters and their entries take.
    known: BTreeMap<u64, SmallVec<[Known; 1]>>,
}

impl SharedFilters {
    /// The filter, or an equal one that other items have. Whoever gets it [releases](Self::release) it.
    pub(super) fn share(&mut self, filter: Arc<EventFilter>) -> Arc<EventFilter> {
        let same = self.known.entry(filter.fingerprint()).or_default();
        for known in same.iter_mut() {
            if let Some(equal) = known.filter.upgrade().filter(|equal| **equal == *filter) {
                known.items = known.items.saturating_add(1);
                return equal;
            }
        }
        if same.len() < SAME_FINGERPRINT_MAX {
            same.push(Known { filter: Arc::downgrade(&filter), items: 1 });
        }
        filter
    }

    /// An item does not have the filter any more. Nothing is left of it here when it was the last one.
    pub(super) fn release(&mut self, filter: &Arc<EventFilter>) {
        let fingerprint = filter.fingerprint();
        let Some(same) = self.known.get_mut(&fingerprint) else { return };
        same.retain(|known| {
            if core::ptr::eq(known.filter.as_ptr(), Arc::as_ptr(filter)) {
                known.items = known.items.saturating_sub(1);
            }
            known.items > 0
        });
        if same.is_empty() {
            self.known.remove(&fingerprint);
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.values().map(|same| same.len()).sum()
    }
}

/// What a filter has answered about a batch.
#[derive(Debug)]
pub(super) struct Answer {
    /// The events that pass.
    pub(super) written: Arc<Written>,
    /// For each event of the batch: where it stands among those that pass.
    pub(super) passing: SmallVec<[Option<usize>; 4]>,
}

/// Answers of more filters are given anew in the next slice.
const KEPT_MAX: usize = 64;

/// What the filters have answered about a batch, while it is given to items.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By the filter's number.
    by_filter: BTreeMap<u64, Answer>,
}

impl Answers {
    /// Whether what a filter answers is for others too.
    pub(super) fn are_shared(filter: &Arc<EventFilter>) -> bool {
        Arc::strong_count(filter) > 1 && !filter.is_personal()
    }

    /// What a filter answers for which [`Self::are_shared`] holds, and how many items could have been asked in the time that
    /// it took.
    pub(super) fn about(
        &mut self,
        filter: &EventFilter,
        batch: &Batch,
        around: &dyn Around,
    ) -> (&Answer, usize) {
        let mut cost = 0;
        let answer = self.by_filter.entry(filter.number()).or_insert_with(|| {
            cost = COST_OF_ANSWER * batch.len();
            let mut written = Written::new(filter.number());
            let mut write = |handed: &Handed| {
                let event = &handed.event;
                let passes = filter.passes(event, around);
                passes.then(|| written.push(event, |out| filter.encode_fields(event, out)))
            };
            let passing = batch.iter().map(&mut write).collect();
            Answer { written: written.finish(), passing }
        });
        (answer, cost)
    }

    /// What is kept until the next slice: that of a few filters.
    pub(super) fn kept(self) -> Self {
        if self.by_filter.len() > KEPT_MAX { Self::default() } else { self }
    }
}
