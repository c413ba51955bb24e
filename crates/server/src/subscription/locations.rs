//! The shard on which each subscription lives.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The shards of a server's subscriptions, shared by all shards.
///
/// An id tells on which shard it was created, and most subscriptions stay there. Only those that have moved to another
/// shard are listed here, so that creating and deleting the others touches no shared data.
#[derive(Debug)]
pub(crate) struct Locations {
    shards: u32,
    moved: Mutex<BTreeMap<u32, usize>>,
}

impl Locations {
    pub(crate) fn new(shards: usize) -> Self {
        Self { shards: u32::try_from(shards).unwrap_or(1).max(1), moved: Mutex::default() }
    }

    fn moved(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard that assigns this id, whether or not it has been assigned.
    pub(crate) fn creating_shard(&self, id: u32) -> usize {
        (id.wrapping_sub(1) % self.shards) as usize
    }

    /// The shard to which a subscription has moved or is moving; `None` if it is where it was created.
    pub(crate) fn moved_to(&self, id: u32) -> Option<usize> {
        self.moved().get(&id).copied()
    }

    /// A subscription leaves for another shard.
    pub(crate) fn depart(&self, id: u32, to: usize) {
        self.moved().insert(id, to);
    }

    /// A subscription has arrived at its new shard.
    pub(crate) fn arrive(&self, id: u32, at: usize) {
        if at == self.creating_shard(id) {
            self.moved().remove(&id);
        }
    }

    /// A subscription has ended.
    pub(crate) fn forget(&self, id: u32, at: usize) {
        if at != self.creating_shard(id) {
            self.moved().remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_moved_subscriptions_are_listed() {
        let locations = Locations::new(3);
        assert_eq!(
            (locations.creating_shard(1), locations.creating_shard(6), locations.moved_to(6)),
            (0, 2, None)
        );
        locations.depart(6, 1);
        locations.arrive(6, 1);
        assert_eq!(locations.moved_to(6), Some(1));
        locations.depart(6, 2);
        assert_eq!(locations.moved_to(6), Some(2));
        locations.arrive(6, 2);
        assert_eq!(locations.moved_to(6), None);
        locations.depart(6, 0);
        locations.forget(6, 0);
        assert_eq!(locations.moved_to(6), None);
    }
}
