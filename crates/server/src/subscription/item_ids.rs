//! The MonitoredItemIds of subscriptions that have moved between shards.
//!
//! On the shard where it was created, an item's id is its index in the engine plus one, without any lookup. In another
//! engine it has another index while its client uses the same id, so a moved subscription has a table. Ids are unique
//! only within their subscription (Part 4 §5.13.2.2), so tables are independent.

use std::collections::BTreeMap;

/// The id of each item of a subscription.
#[derive(Debug, Default)]
pub(crate) struct ItemIds {
    /// Ids to item indexes.
    indexes: BTreeMap<u32, u32>,
    /// The ids in the order of the subscription's items.
    ids: Vec<u32>,
    /// Where the search for the next id starts, so that just deleted ids are not reused at once.
    next: u32,
}

impl ItemIds {
    /// Adds the next item with its existing id.
    pub(crate) fn push(&mut self, id: u32, index: u32) {
        self.indexes.insert(id, index);
        self.ids.push(id);
        self.next = self.next.max(id.wrapping_add(1));
    }

    /// Adds the next item with a new id.
    pub(crate) fn create(&mut self, index: u32) -> u32 {
        // There are fewer items than ids, so one is free.
        while self.next == 0 || self.indexes.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let id = self.next;
        self.push(id, index);
        id
    }

    /// The index of the item with an id.
    pub(crate) fn find(&self, id: u32) -> Option<u32> {
        self.indexes.get(&id).copied()
    }

    /// The id of the item at a position of the subscription's list.
    pub(crate) fn at(&self, position: usize) -> Option<u32> {
        self.ids.get(position).copied()
    }

    /// Removes the item at a position; the last one moves there, as in the subscription's list.
    pub(crate) fn swap_remove(&mut self, position: usize) {
        if position < self.ids.len() {
            let id = self.ids.swap_remove(position);
            self.indexes.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_and_unique() {
        let mut ids = ItemIds::default();
        ids.push(7, 70);
        ids.push(3, 30);
        assert_eq!((ids.create(80), ids.create(90)), (8, 9));
        ids.swap_remove(0);
        assert_eq!((ids.find(7), ids.at(0), ids.find(9)), (None, Some(9), Some(90)));
        assert_eq!(ids.create(100), 10);
        ids.push(u32::MAX, 1);
        assert_eq!((ids.create(2), ids.create(4)), (11, 12));
        ids.next = u32::MAX;
        assert_eq!((ids.create(5), ids.create(6), ids.create(8)), (1, 2, 4));
    }
}
