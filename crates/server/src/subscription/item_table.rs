//! The item table of a shard, which shrinks again after a client with very many items.

use super::Engine;
use super::item::{Item, NONE, flag};

/// Capacity that is always kept, in items.
const KEPT: usize = 1024;

impl Engine {
    /// Puts an item into the table. Returns its index.
    pub(super) fn insert_item(&mut self, item: Item) -> u32 {
        self.alive_items += 1;
        while let Some(index) = self.free_items.pop() {
            // The table may have shrunk and grown again since.
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

    /// Frees an index. Free entries after the last item are removed; each index is examined once for that.
    pub(super) fn free_item_index(&mut self, index: u32) {
        self.alive_items -= 1;
        self.free_items.push(index);
        while self.items.pop_if(|item| !item.has(flag::ALIVE)).is_some() {}
        if self.items.is_empty() {
            self.free_items.clear();
        }
        // Not at every step, because the remaining items are copied.
        if self.items.capacity() > 4 * self.items.len().max(KEPT) {
            self.items.shrink_to(2 * self.items.len().max(KEPT));
        }
        if self.free_items.capacity() > 4 * self.free_items.len().max(KEPT) {
            self.free_items.shrink_to(2 * self.free_items.len().max(KEPT));
        }
    }
}
