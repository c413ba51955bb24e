//! Which shard a subscription lives on.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The homes of a server's subscriptions, shared by its shards.
///
/// An id says on which shard it was given, and there nearly all subscriptions stay. Only those that have moved to another
/// shard stand here, so that creating and deleting the others touches nothing that is shared.
#[derive(Debug)]
pub(crate) struct Homes {
    shards: u32,
    moved: Mutex<BTreeMap<u32, usize>>,
}

impl Homes {
    pub(crate) fn new(shards: usize) -> Self {
        Self { shards: u32::try_from(shards).unwrap_or(1).max(1), moved: Mutex::default() }
    }

    fn moved(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard that gives this id, whether it has given it or not.
    pub(crate) fn birthplace(&self, id: u32) -> usize {
        (id.wrapping_sub(1) % self.shards) as usize
    }

    /// Where a subscription has moved to, if it is not where it was born; also while it is under way.
    pub(crate) fn moved_to(&self, id: u32) -> Option<usize> {
        self.moved().get(&id).copied()
    }

    /// A subscription leaves for another shard.
    pub(crate) fn depart(&self, id: u32, to: usize) {
        self.moved().insert(id, to);
    }

    /// A subscription has come to the shard that it left for.
    pub(crate) fn arrive(&self, id: u32, at: usize) {
        if at == self.birthplace(id) {
            self.moved().remove(&id);
        }
    }

    /// A subscription is gone.
    pub(crate) fn forget(&self, id: u32, at: usize) {
        if at != self.birthplace(id) {
            self.moved().remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_away_from_home_are_kept() {
        let homes = Homes::new(3);
        assert_eq!((homes.birthplace(1), homes.birthplace(6), homes.moved_to(6)), (0, 2, None));
        homes.depart(6, 1);
        homes.arrive(6, 1);
        assert_eq!(homes.moved_to(6), Some(1));
        homes.depart(6, 2);
        assert_eq!(homes.moved_to(6), Some(2));
        homes.arrive(6, 2);
        assert_eq!(homes.moved_to(6), None);
        homes.depart(6, 0);
        homes.forget(6, 0);
        assert_eq!(homes.moved_to(6), None);
    }
}
