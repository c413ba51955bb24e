//! What can give way when the whole server is full: sessions that were never activated (Part 4 §5.7.2.1), and connections
//! without a session.
//!
//! Limits are of all shards, tables are of one. A shard that needs a place and has nothing that could give way claims
//! something of another shard, takes the place, and tells that one. Until that has heard of it the server has one more than
//! its limit, for good if what was meant has gone another way by then (the session was activated). So no more is claimed at
//! a time than there are shards, nothing twice, and only while the server is within its limit but for what is claimed.

use crate::diagnostics::counters::Count;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A session that was never activated.
    Session,
    /// A connection without a session.
    Connection,
}

/// What one shard has of a kind.
#[derive(Debug, Default)]
struct Supply {
    there: AtomicUsize,
    claimed: AtomicUsize,
}

impl Supply {
    fn claim(&self) -> bool {
        let claim = |claimed| (claimed < self.there.load(Ordering::Acquire)).then_some(claimed + 1);
        self.claimed.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).is_ok()
    }
}

/// One less, and never less than none.
fn decrement(count: &AtomicUsize) {
    let less = |count: usize| count.checked_sub(1);
    let result = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    debug_assert!(result.is_ok(), "it was counted less often than it ends");
}

/// What every shard has that could give way.
#[derive(Debug)]
pub(crate) struct GivingWay {
    shards: Box<[[Supply; 2]]>,
}

impl GivingWay {
    pub(crate) fn new(shards: usize) -> Self {
        Self { shards: (0..shards.max(1)).map(|_| Default::default()).collect() }
    }

    fn supply(&self, shard: usize, kind: Kind) -> Option<&Supply> {
        let [sessions, connections] = self.shards.get(shard)?;
        Some(match kind {
            Kind::Session => sessions,
            Kind::Connection => connections,
        })
    }

    /// A shard has one more.
    pub(crate) fn gained(&self, shard: usize, kind: Kind) {
        if let Some(supply) = self.supply(shard, kind) {
            supply.there.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// A shard has one less.
    pub(crate) fn lost(&self, shard: usize, kind: Kind) {
        if let Some(supply) = self.supply(shard, kind) {
            decrement(&supply.there);
        }
    }

    /// Whether a shard other than `shard` has something that nobody has claimed.
    pub(crate) fn is_there(&self, kind: Kind, shard: usize) -> bool {
        self.others(shard)
            .filter_map(|other| self.supply(other, kind))
            .any(|supply| supply.claimed.load(Ordering::Acquire) < supply.there.load(Ordering::Acquire))
    }

    /// Claims something of a shard other than `shard`, which has to be told, and counts the place that it makes. Returns
    /// which shard.
    pub(crate) fn claim(&self, kind: Kind, shard: usize, count: &Count, max: usize) -> Option<usize> {
        let other = self.others(shard).find(|other| self.supply(*other, kind).is_some_and(Supply::claim))?;
        let supplies = (0..self.shards.len()).filter_map(|shard| self.supply(shard, kind));
        let claimed: usize = supplies.map(|supply| supply.claimed.load(Ordering::Acquire)).sum();
        if claimed > self.shards.len() || !count.up_to(max.saturating_add(claimed)) {
            self.settled(other, kind);
            return None;
        }
        Some(other)
    }

    /// A shard has done what was claimed of it.
    pub(crate) fn settled(&self, shard: usize, kind: Kind) {
        if let Some(supply) = self.supply(shard, kind) {
            decrement(&supply.claimed);
        }
    }

    /// From the next one on, so that not all ask the first.
    fn others(&self, shard: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.shards.len();
        (1..count).map(move |step| (shard + step) % count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 3;

    /// A server that is full.
    fn full() -> Count {
        let count = Count::default();
        while count.up_to(MAX) {}
        count
    }

    #[test]
    fn nothing_is_claimed_twice_or_of_oneself() {
        let all = GivingWay::new(3);
        let count = full();
        let claim = |shard| all.claim(Kind::Session, shard, &count, MAX);
        assert_eq!(claim(0), None);
        all.gained(0, Kind::Session);
        all.gained(2, Kind::Session);
        assert!(all.is_there(Kind::Session, 0) && !all.is_there(Kind::Connection, 0));
        assert!(all.is_there(Kind::Session, 2));
        assert_eq!(claim(0), Some(2));
        assert_eq!(claim(0), None, "what shard 0 has itself it gives without asking");
        assert_eq!(claim(2), Some(0));
        assert_eq!(count.value(), 5);
        // Shard 2 lets its session go; another one that comes can be claimed again.
        all.lost(2, Kind::Session);
        all.settled(2, Kind::Session);
        count.down();
        assert_eq!(claim(1), None);
        all.gained(2, Kind::Session);
        assert_eq!(claim(1), Some(2));
        assert_eq!(count.value(), 5);
    }

    #[test]
    fn claims_that_come_to_nothing_do_not_add_up() {
        let all = GivingWay::new(2);
        let count = full();
        for round in 0..10 {
            all.gained(1, Kind::Session);
            let claimed = all.claim(Kind::Session, 0, &count, MAX);
            assert_eq!(claimed, (round == 0).then_some(1));
            // It is activated before the message arrives.
            all.lost(1, Kind::Session);
            if claimed.is_some() {
                all.settled(1, Kind::Session);
            }
        }
        assert_eq!(count.value() as usize, MAX + 1);
    }

    #[test]
    fn no_more_is_claimed_at_a_time_than_there_are_shards() {
        let all = GivingWay::new(2);
        let count = full();
        (0..10).for_each(|_| all.gained(1, Kind::Session));
        let claims = (0..10).filter(|_| all.claim(Kind::Session, 0, &count, MAX).is_some()).count();
        assert_eq!((claims, count.value() as usize), (2, MAX + 2));
    }

    #[test]
    fn one_shard_has_nobody_to_ask() {
        let all = GivingWay::new(1);
        all.gained(0, Kind::Connection);
        assert_eq!(all.claim(Kind::Connection, 0, &full(), MAX), None);
    }
}
