//! The items on each slot: the first one of each slot's list.

use super::Engine;
use super::item::{NONE, flag};
use taktwerk_slots::PAGE_SLOTS;

/// The first item on each slot, in pages like the slots: growing copies nothing and fragments no memory, and pages
/// without items are not allocated.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pages: Vec<Option<Box<[u32]>>>,
}

impl Watch {
    /// The first item on a slot, or [`NONE`].
    #[inline]
    pub(crate) fn first(&self, slot: usize) -> u32 {
        let page = self.pages.get(slot / PAGE_SLOTS).and_then(Option::as_deref);
        page.and_then(|page| page.get(slot % PAGE_SLOTS)).copied().unwrap_or(NONE)
    }

    /// The entry for the first item of a slot, if there ever was one.
    pub(crate) fn head(&mut self, slot: usize) -> Option<&mut u32> {
        self.pages.get_mut(slot / PAGE_SLOTS)?.as_deref_mut()?.get_mut(slot % PAGE_SLOTS)
    }

    /// Puts an item first. Returns the previous first one.
    pub(crate) fn put_first(&mut self, slot: usize, item: u32) -> u32 {
        let number = slot / PAGE_SLOTS;
        if self.pages.len() <= number {
            self.pages.resize_with(number + 1, || None);
        }
        let Some(place) = self.pages.get_mut(number) else { return NONE };
        let page = place.get_or_insert_with(|| vec![NONE; PAGE_SLOTS].into_boxed_slice());
        page.get_mut(slot % PAGE_SLOTS).map_or(NONE, |head| core::mem::replace(head, item))
    }
}

impl Engine {
    /// Adds an item to its slot's list. Later writes make it dirty.
    pub(super) fn start_watching(&mut self, index: u32) {
        let Some(item) = self.items.get(index as usize) else { return };
        if item.has(flag::EVENTS) {
            return self.watch_events(index);
        }
        let Some(slot) = item.slot_index() else { return };
        let next = self.watch.put_first(slot as usize, index);
        if let Some(item) = self.items.get_mut(index as usize) {
            (item.next, item.previous) = (next, NONE);
        }
        if let Some(next) = self.items.get_mut(next as usize) {
            next.previous = index;
        }
        if let Some(page) = super::page_of(&self.pages, slot) {
            page.set_watched(slot, self.shard, true);
            // Earlier writes are examined too.
            page.touch(slot, self.shard);
        }
    }

    /// Removes an item from its slot's list.
    pub(super) fn stop_watching(&mut self, index: u32) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        if item.has(flag::EVENTS) {
            return self.unwatch_events(index);
        }
        let Some(slot) = item.slot_index() else { return };
        let next = core::mem::replace(&mut item.next, NONE);
        let previous = core::mem::replace(&mut item.previous, NONE);
        let Some(head) = self.watch.head(slot as usize) else { return };
        if *head == index {
            *head = next;
        } else if let Some(previous) = self.items.get_mut(previous as usize) {
            previous.next = next;
        } else {
            // It is in no list.
            return;
        }
        if let Some(next) = self.items.get_mut(next as usize) {
            next.previous = previous;
        }
        if self.watch.first(slot as usize) == NONE
            && let Some(page) = super::page_of(&self.pages, slot)
        {
            page.set_watched(slot, self.shard, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_allocated_on_first_use() {
        let mut watch = Watch::default();
        let far = 5 * PAGE_SLOTS + 3;
        assert_eq!((watch.first(far), watch.head(far)), (NONE, None));
        assert_eq!(watch.put_first(far, 7), NONE);
        assert_eq!(watch.put_first(far, 9), 7);
        assert_eq!((watch.first(far), watch.first(far + 1), watch.first(0)), (9, NONE, NONE));
        assert_eq!(watch.pages.iter().flatten().count(), 1);
        *watch.head(far).unwrap() = NONE;
        assert_eq!(watch.first(far), NONE);
    }
}
