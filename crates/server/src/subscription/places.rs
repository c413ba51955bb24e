//! Where items lie: one table for a shard, which gets shorter again after a client that had very many.

use super::Engine;
use super::item::{Item, NONE, flag};

/// Room for so many items is kept in any case.
const KEPT: usize = 1024;

impl Engine {
    /// Puts an item into the table and returns where it is.
    pub(super) fn place_item(&mut self, item: Item) -> u32 {
        self.alive_items += 1;
        while let Some(index) = self.free_items.pop() {
            // The table may have become shorter since, and longer again.
            if let Some(entry) = self.items.get_mut(index as usize)
                && !entry.has(flag::ALIVE)
            {
                *entry = item;
                return index;
            }
        }
        self.items.push(item);
        u32::try_from(self.items.len() - 1).unwrap_or(NONE)
    }

    /// The item there is gone. What is left behind the last one that lives is given back; each place is looked at once
    /// for that.
    pub(super) fn free_place(&mut self, index: u32) {
        self.alive_items -= 1;
        self.free_items.push(index);
        while self.items.pop_if(|item| !item.has(flag::ALIVE)).is_some() {}
        if self.items.is_empty() {
            self.free_items.clear();
        }
        // Not at every step: what stays is copied.
        if self.items.capacity() > 4 * self.items.len().max(KEPT) {
            self.items.shrink_to(2 * self.items.len().max(KEPT));
        }
        if self.free_items.capacity() > 4 * self.free_items.len().max(KEPT) {
            self.free_items.shrink_to(2 * self.free_items.len().max(KEPT));
        }
    }
}
