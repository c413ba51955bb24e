//! Filters of events that several items of a shard have in common: what they answer about an event is found out once, and
//! the fields that they select are written once.
//!
//! Clients of one kind ask for the same. With a hundred of them, deciding about an event and writing its fields a hundred
//! times was most of what events cost.

use crate::event::bus::Handed;
use crate::event::filter::{Around, EventFilter};
use crate::event::queue::{Waiting, Written};
use core::ops::Bound;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Filters with one fingerprint that are looked at. Only who chooses filters for that has more; they are not shared then.
const SAME_FINGERPRINT_MAX: usize = 4;
/// Fingerprints that are looked at for filters that are gone, for each filter that comes.
const SWEPT_PER_FILTER: usize = 2;
/// Evaluating a filter, writing the fields of an event, and freeing it if nobody wants it, in items that are asked.
const COST_OF_ANSWER: usize = 8;

/// Events that are given to items together: all were seen at the same nodes, and need the same permissions.
pub(super) type Batch = SmallVec<[Handed; 4]>;

/// The filters of a shard's items.
#[derive(Debug, Default)]
pub(super) struct SharedFilters {
    /// By fingerprint. The items charge what the filters take.
    known: BTreeMap<u64, SmallVec<[Weak<EventFilter>; 1]>>,
    /// Where the sweep goes on.
    swept: u64,
}

impl SharedFilters {
    /// The filter, or an equal one that other items have.
    pub(super) fn share(&mut self, filter: Arc<EventFilter>) -> Arc<EventFilter> {
        self.sweep();
        let same = self.known.entry(filter.fingerprint()).or_default();
        same.retain(|known| known.strong_count() > 0);
        let equal = same.iter().filter_map(Weak::upgrade).find(|known| **known == *filter);
        if let Some(equal) = equal {
            return equal;
        }
        if same.len() < SAME_FINGERPRINT_MAX {
            same.push(Arc::downgrade(&filter));
        }
        filter
    }

    /// Forgets filters that no item has any more, some at a time: of more than come.
    fn sweep(&mut self) {
        let behind = (Bound::Excluded(self.swept), Bound::Unbounded);
        let looked_at: SmallVec<[u64; SWEPT_PER_FILTER]> =
            self.known.range(behind).take(SWEPT_PER_FILTER).map(|(fingerprint, _)| *fingerprint).collect();
        // Behind the last one it begins again.
        self.swept = looked_at.last().copied().unwrap_or(0);
        for fingerprint in looked_at {
            if self
                .known
                .get(&fingerprint)
                .is_some_and(|same| same.iter().all(|known| known.strong_count() == 0))
            {
                self.known.remove(&fingerprint);
            }
        }
    }
}

/// What the filters have answered about a batch, while it is given to items.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By the filter's number: the events that pass.
    by_filter: BTreeMap<u64, SmallVec<[Waiting; 4]>>,
}

impl Answers {
    /// Whether what a filter answers is for others too.
    pub(super) fn are_shared(filter: &Arc<EventFilter>) -> bool {
        Arc::strong_count(filter) > 1 && !filter.is_personal()
    }

    /// The events of the batch that a filter passes, for which [`Self::are_shared`] holds, and how many items could have been
    /// asked in the time that it took.
    pub(super) fn about(
        &mut self,
        filter: &EventFilter,
        batch: &Batch,
        around: &dyn Around,
    ) -> (&[Waiting], usize) {
        let mut cost = 0;
        let passing = self.by_filter.entry(filter.number()).or_insert_with(|| {
            cost = COST_OF_ANSWER * batch.len();
            let passing = batch.iter().filter(|handed| filter.passes(&handed.event, around));
            passing.map(|handed| Waiting::Written(Arc::new(Written::new(&handed.event, filter)))).collect()
        });
        (passing, cost)
    }
}
