//! Event filters shared by several items of a shard: the result for an event is computed once, and the selected fields
//! are encoded once.
//!
//! Clients of the same kind use the same filters. Without sharing, evaluating and encoding each event a hundred times
//! for a hundred clients was most of the cost of events.

use crate::event::bus::Handed;
use crate::event::filter::{Around, EventFilter};
use crate::event::written::Written;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Maximum number of filters examined per fingerprint. Only deliberately chosen filters exceed it; they are then not
/// shared.
const SAME_FINGERPRINT_MAX: usize = 4;
/// Cost, in offered items, of evaluating a filter, encoding an event's fields, and freeing them if unused.
const COST_OF_ANSWER: usize = 8;

/// Events that are offered to items together: they have the same notifiers and need the same permissions.
pub(super) type Batch = SmallVec<[Handed; 4]>;

/// Size of a filter's entry in bytes; each item is charged for one.
pub(super) const ENTRY_SIZE: usize = size_of::<u64>() + size_of::<SmallVec<[Known; 1]>>();

/// A filter, and the number of the shard's items that use it.
#[derive(Debug)]
pub(super) struct Known {
    filter: Weak<EventFilter>,
    items: u32,
}

/// The filters of a shard's items.
#[derive(Debug, Default)]
pub(super) struct SharedFilters {
    /// By fingerprint. The items are charged for the filters and their entries.
    known: BTreeMap<u64, SmallVec<[Known; 1]>>,
}

impl SharedFilters {
    /// Returns the filter, or an equal one of other items. The caller must [release](Self::release) it.
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

    /// An item no longer uses the filter. After the last item, the filter is removed here.
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

    /// Number of filters.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.values().map(|same| same.len()).sum()
    }
}

/// The result of a filter for a batch.
#[derive(Debug)]
pub(super) struct Answer {
    /// The accepted events.
    pub(super) written: Arc<Written>,
    /// For each event of the batch: its position among the accepted ones.
    pub(super) passing: SmallVec<[Option<usize>; 4]>,
}

/// Maximum number of results kept for the next slice; others are computed again.
const KEPT_MAX: usize = 64;

/// The results of filters for a batch while it is offered to items.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By the filter's number.
    by_filter: BTreeMap<u64, Answer>,
}

impl Answers {
    /// Whether a filter's result can be shared by several items.
    pub(super) fn are_shared(filter: &Arc<EventFilter>) -> bool {
        Arc::strong_count(filter) > 1 && !filter.is_personal()
    }

    /// The result of a filter for which [`Self::are_shared`] holds, and its cost in offered items.
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

    /// The results kept for the next slice: those of a few filters.
    pub(super) fn kept(self) -> Self {
        if self.by_filter.len() > KEPT_MAX { Self::default() } else { self }
    }
}
