//! Deadlines of publishing cycles and sampling groups.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use taktwerk_types::Instant;

/// A kind of deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A sampling group's tick. It precedes publishing at the same instant, so that fresh samples are sent.
    Group(u32),
    /// A subscription's publishing timer.
    Publish(u32),
}

/// All deadlines of one kind at one instant.
#[derive(Debug, Default)]
struct Bucket {
    at: Instant,
    is_publish: bool,
    /// Whether it is in the heap.
    is_live: bool,
    numbers: Vec<u32>,
    /// Number of deadlines already taken.
    taken: usize,
}

/// Number of stale entries that are always allowed.
const STALE_MIN: usize = 1024;
/// Number of buckets remembered by their instant; a power of two.
const RECENT: usize = 64;

/// All deadlines: a heap of instants, each with a bucket of deadlines. Subscriptions with one interval mostly share
/// their phase ([`super::phase`]), so a thousand of them cost one heap entry per cycle instead of a thousand. Allocates
/// only while growing. The owner compares the instant from [`Timers::pop`] with its own deadline and drops stale entries.
/// Clients decide how many become stale, and for how long they would remain: [`Timers::retain`] removes them.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Number of deadlines.
    len: usize,
    /// Instants, with groups before cycles, and the number of the bucket.
    heap: BinaryHeap<Reverse<(Instant, bool, u32)>>,
    buckets: Vec<Bucket>,
    /// Buckets for reuse.
    free: Vec<u32>,
    /// The bucket for an instant with this hash, if it still belongs to that instant.
    recent: [u32; RECENT],
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            len: 0,
            heap: BinaryHeap::new(),
            buckets: Vec::new(),
            free: Vec::new(),
            recent: [u32::MAX; RECENT],
        }
    }
}

impl Timers {
    pub(crate) fn push(&mut self, at: Instant, due: Due) {
        let (is_publish, number) = match due {
            Due::Group(group) => (false, group),
            Due::Publish(place) => (true, place),
        };
        self.len += 1;
        // Instants are often multiples of large numbers; multiplication spreads their upper bits.
        let hash = (at.as_nanos() ^ u64::from(is_publish)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(recent) = self.recent.get_mut((hash >> (u64::BITS - RECENT.ilog2())) as usize) else {
            return;
        };
        if let Some(bucket) = self.buckets.get_mut(*recent as usize)
            && bucket.is_live
            && (bucket.at, bucket.is_publish) == (at, is_publish)
        {
            bucket.numbers.push(number);
            return;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.buckets.push(Bucket::default());
            u32::try_from(self.buckets.len() - 1).unwrap_or(u32::MAX)
        });
        let Some(bucket) = self.buckets.get_mut(index as usize) else { return };
        (bucket.at, bucket.is_publish, bucket.is_live) = (at, is_publish, true);
        bucket.numbers.push(number);
        *recent = index;
        self.heap.push(Reverse((at, is_publish, index)));
    }

    /// Number of deadlines.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Removes stale and repeated entries if there are more of them than others. `live`: how many others there can be.
    pub(crate) fn retain(&mut self, live: usize, is_due: impl Fn(Instant, Due) -> bool) {
        if self.len <= STALE_MIN.saturating_add(live.saturating_mul(2)) {
            return;
        }
        let mut kept = BTreeSet::new();
        for bucket in self.buckets.iter().filter(|bucket| bucket.is_live) {
            let due =
                |number: &u32| if bucket.is_publish { Due::Publish(*number) } else { Due::Group(*number) };
            let numbers = bucket.numbers.iter().skip(bucket.taken);
            kept.extend(numbers.map(|number| (bucket.at, due(number))).filter(|(at, due)| is_due(*at, *due)));
        }
        *self = Self::default();
        kept.into_iter().for_each(|(at, due)| self.push(at, due));
    }

    /// The earliest deadline. If it is stale, the turn does nothing.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the earliest due entry.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, Due)> {
        let Reverse((at, is_publish, index)) = *self.heap.peek()?;
        if at > now {
            return None;
        }
        let bucket = self.buckets.get_mut(index as usize)?;
        let number = bucket.numbers.get(bucket.taken).copied();
        bucket.taken += 1;
        if bucket.taken >= bucket.numbers.len() {
            bucket.numbers.clear();
            (bucket.taken, bucket.is_live) = (0, false);
            self.free.push(index);
            self.heap.pop();
        }
        let number = number?;
        self.len = self.len.saturating_sub(1);
        Some((at, if is_publish { Due::Publish(number) } else { Due::Group(number) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn groups_come_before_cycles_of_the_same_instant() {
        let mut timers = Timers::default();
        let at = Instant::from_nanos(5);
        timers.push(at, Due::Publish(1));
        timers.push(at, Due::Group(9));
        timers.push(Instant::from_nanos(1), Due::Publish(2));
        assert_eq!(timers.pop(Instant::ZERO), None);
        let order: Vec<_> = core::iter::from_fn(|| timers.pop(at)).map(|(_, due)| due).collect();
        assert_eq!(order, [Due::Publish(2), Due::Group(9), Due::Publish(1)]);
    }

    #[test]
    fn stale_and_repeated_entries_are_removed() {
        let mut timers = Timers::default();
        let at = |nanos| Instant::from_nanos(nanos);
        for nanos in 0..100_000u64 {
            // Each replaces the one before; every second one is for the same instant.
            timers.push(at(nanos | 1), Due::Publish(7));
            timers.push(at(1_000_000), Due::Group(3));
            timers.retain(2, |instant, due| match due {
                Due::Publish(place) => (instant, place) == (at(nanos | 1), 7),
                Due::Group(group) => (instant, group) == (at(1_000_000), 3),
            });
            assert!(timers.len <= STALE_MIN + 4 && timers.buckets.len() <= STALE_MIN + 4);
        }
        let last =
            core::iter::from_fn(|| timers.pop(at(2_000_000))).filter(|(instant, _)| *instant >= at(99_999));
        let mut last: Vec<_> = last.map(|(_, due)| due).collect();
        last.dedup();
        assert_eq!(last, [Due::Publish(7), Due::Group(3)]);
        assert_eq!(timers.len, 0);
    }

    #[test]
    fn simultaneous_deadlines_use_one_entry() {
        let mut timers = Timers::default();
        for turn in 1..100u64 {
            for place in 0..1000 {
                timers.push(Instant::from_nanos(turn * 1_000_000), Due::Publish(place));
            }
            assert_eq!((timers.heap.len(), timers.buckets.len()), (1, 1));
            let taken = core::iter::from_fn(|| timers.pop(Instant::from_nanos(turn * 1_000_000)));
            assert!(taken.map(|(_, due)| due).eq((0..1000).map(Due::Publish)));
            assert_eq!(timers.next(), None);
        }
    }

    proptest! {
        /// Everything pushed is returned once, in order of time, groups first; compared with a sorted list.
        #[test]
        fn entries_are_returned_in_order(
            steps in proptest::collection::vec((0u64..200, any::<bool>(), 0u32..8, any::<bool>()), 1..400)
        ) {
            let mut timers = Timers::default();
            let mut model: Vec<(Instant, Due)> = Vec::new();
            for (at, is_publish, number, pops) in steps {
                let at = Instant::from_nanos(at * 1_000_000);
                if pops {
                    let earliest = model.iter().map(|(at, due)| (*at, matches!(due, Due::Publish(_)))).min();
                    let taken = timers.pop(at);
                    match earliest.filter(|(earliest, _)| *earliest <= at) {
                        None => prop_assert_eq!(taken, None),
                        Some(earliest) => {
                            let (at, due) = taken.unwrap();
                            prop_assert_eq!((at, matches!(due, Due::Publish(_))), earliest);
                            let place = model.iter().position(|entry| *entry == (at, due)).unwrap();
                            model.remove(place);
                        }
                    }
                } else {
                    let due = if is_publish { Due::Publish(number) } else { Due::Group(number) };
                    timers.push(at, due);
                    model.push((at, due));
                }
                prop_assert_eq!(timers.next(), model.iter().map(|(at, _)| *at).min());
            }
        }
    }
}
