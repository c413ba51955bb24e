//! The event items of a shard: by node, by subscription, and the shard's progress in its event ring.
//!
//! Many events for many items take longer than a turn allows. So events are given to items in slices. Cycles of
//! subscriptions with such items wait for the events that were raised before they were due.

use super::retained::Leaving;
use super::shared_filters::{Answers, Batch};
use crate::event::bus::Handed;
use crate::space::NodeIx;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_types::Instant;

/// The event items of a shard.
#[derive(Debug, Default)]
pub(crate) struct EventItems {
    by_node: BTreeMap<NodeIx, Vec<u32>>,
    /// By the position of their subscription.
    by_subscription: BTreeMap<u32, Vec<u32>>,
    /// There were event items: events may still be in transit to them.
    were_used: bool,
    /// Number of events taken out of the ring so far.
    taken: u64,
    /// Number of events to take before the shard is up to date.
    wanted: u64,
    waiting: VecDeque<Waiting>,
    /// Events that were offered to some items, but not yet to others.
    begun: Option<Begun>,
    /// The event after them, if it was already taken out of the ring.
    ahead: Option<Handed>,
    /// Items that must be informed about events lost on the way to the shard.
    losing: Option<Losing>,
}

/// Events, and the items to which they must still be offered, the next one last.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) batch: Batch,
    pub(super) items: Vec<u32>,
    /// Filter results for the events so far.
    pub(super) answers: Answers,
    pub(super) leaving: Leaving,
}

/// Items that are informed, in slices, about lost events.
#[derive(Debug)]
struct Losing {
    items: Vec<u32>,
    /// The number of the newest lost event.
    newest: u64,
    /// A loss that happened since: then all are informed again.
    again: Option<u64>,
}

/// A publishing cycle that waits for events.
#[derive(Debug)]
struct Waiting {
    place: u32,
    /// When it was due.
    at: Instant,
    /// Number of events that must have been taken.
    until: u64,
}

impl EventItems {
    /// Adds an item of a subscription.
    pub(super) fn add(&mut self, node: NodeIx, place: u32, index: u32) {
        self.by_node.entry(node).or_default().push(index);
        self.by_subscription.entry(place).or_default().push(index);
        self.were_used = true;
    }

    /// Removes an item. `false`: it was not registered.
    pub(super) fn remove(&mut self, node: NodeIx, place: u32, index: u32) -> bool {
        let found = take(&mut self.by_node, node, index);
        take(&mut self.by_subscription, place, index);
        found
    }

    /// Whether there are no event items.
    pub(super) fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    /// Whether there are or were event items; resets the latter if there are none.
    pub(super) fn were_used(&mut self) -> bool {
        let were_used = self.were_used;
        self.were_used = !self.by_node.is_empty();
        were_used
    }

    /// The items on a node.
    pub(super) fn on(&self, node: NodeIx) -> &[u32] {
        self.by_node.get(&node).map_or(&[], Vec::as_slice)
    }

    /// The items of a subscription.
    pub(super) fn of(&self, place: u32) -> &[u32] {
        self.by_subscription.get(&place).map_or(&[], Vec::as_slice)
    }

    /// The positions of subscriptions with event items.
    pub(super) fn places(&self) -> Vec<u32> {
        self.by_subscription.keys().copied().collect()
    }

    // ---- events lost in transit

    /// Records a lost event: every item must be informed.
    pub(super) fn lost(&mut self, number: u64) {
        match &mut self.losing {
            Some(losing) => losing.again = Some(number),
            None if self.by_node.is_empty() => {}
            None => {
                let items = self.by_node.values().flatten().copied().collect();
                self.losing = Some(Losing { items, newest: number, again: None });
            }
        }
    }

    /// The next items to inform, and the number of the newest lost event.
    pub(super) fn next_losing(&mut self, max: usize) -> Option<(Vec<u32>, u64)> {
        let losing = self.losing.as_mut()?;
        let newest = losing.newest;
        let items = losing.items.split_off(losing.items.len().saturating_sub(max));
        if losing.items.is_empty() {
            let again = losing.again;
            self.losing = None;
            if let Some(again) = again {
                self.lost(again);
            }
        }
        Some((items, newest))
    }

    // ---- progress of the shard

    /// Marks `in_ring` waiting events as to be taken. Returns the argument for [`Self::has_taken`].
    pub(super) fn want(&mut self, in_ring: usize) -> u64 {
        let begun =
            self.begun.as_ref().map_or(0, |begun| begun.batch.len()) + usize::from(self.ahead.is_some());
        let until = self.taken + (in_ring + begun) as u64;
        self.wanted = self.wanted.max(until);
        until
    }

    /// Keeps an event that was taken out of the ring until earlier events have been given to the items.
    pub(super) fn keep_ahead(&mut self, handed: Handed) {
        self.ahead = Some(handed);
    }

    /// The event that was kept.
    pub(super) fn take_ahead(&mut self) -> Option<Handed> {
        self.ahead.take()
    }

    /// Keeps events that must still be offered to some items.
    pub(super) fn begin(&mut self, begun: Begun) {
        self.begun = Some(begun);
    }

    /// The partly offered events.
    pub(super) fn take_begun(&mut self) -> Option<Begun> {
        self.begun.take()
    }

    /// Records that `count` events were completely processed.
    pub(super) fn took(&mut self, count: usize) {
        self.taken += count as u64;
    }

    /// Records that the ring is empty.
    pub(super) fn took_all(&mut self) {
        self.taken = self.taken.max(self.wanted);
    }

    /// Whether the events marked by [`Self::want`] have been taken.
    pub(super) fn has_taken(&self, until: u64) -> bool {
        self.taken >= until
    }

    /// Whether events must be taken.
    pub(super) fn is_behind(&self) -> bool {
        self.taken < self.wanted
    }

    /// Number of events to take.
    pub(super) fn behind(&self) -> usize {
        usize::try_from(self.wanted.saturating_sub(self.taken)).unwrap_or(usize::MAX)
    }

    /// Whether the shard must process events now.
    pub(super) fn is_pressing(&self) -> bool {
        self.is_behind() || !self.waiting.is_empty() || self.losing.is_some()
    }

    /// Makes a cycle wait for events.
    pub(super) fn wait(&mut self, place: u32, at: Instant, until: u64) {
        self.waiting.push_back(Waiting { place, at, until });
    }

    /// The next cycle whose events have been taken, and when it was due.
    pub(super) fn next_waiting(&mut self) -> Option<(u32, Instant)> {
        let first = self.waiting.front()?;
        if self.taken < first.until {
            return None;
        }
        self.waiting.pop_front().map(|first| (first.place, first.at))
    }
}

/// Removes an item from a list, and the list if it becomes empty.
fn take<K: Ord>(lists: &mut BTreeMap<K, Vec<u32>>, key: K, index: u32) -> bool {
    let Some(list) = lists.get_mut(&key) else { return false };
    // Items deleted together are removed from the end.
    let Some(at) = list.iter().rposition(|other| *other == index) else { return false };
    list.remove(at);
    if list.is_empty() {
        lists.remove(&key);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_wait_only_for_earlier_events() {
        let (mut items, at) = (EventItems::default(), Instant::from_nanos(5));
        items.add(NodeIx::ns0(1), 7, 1);
        let first = items.want(2);
        items.wait(7, at, first);
        // More events have arrived when the second one is due.
        let second = items.want(3);
        items.wait(8, at, second);
        assert!(items.is_behind() && items.next_waiting().is_none());
        items.took(2);
        assert_eq!((items.next_waiting(), items.next_waiting()), (Some((7, at)), None));
        assert!(items.is_pressing() && !items.has_taken(second));
        items.took_all();
        assert_eq!(items.next_waiting(), Some((8, at)));
        assert!(!items.is_pressing() && items.has_taken(second));
    }

    #[test]
    fn all_items_are_informed_of_losses_in_slices() {
        let mut items = EventItems::default();
        items.lost(3);
        assert!(!items.is_pressing(), "there are no items to inform");
        (1..=5).for_each(|index| items.add(NodeIx::ns0(index), 1, index));
        items.lost(4);
        assert_eq!(items.next_losing(2), Some((vec![4, 5], 4)));
        items.lost(9);
        items.lost(10);
        assert_eq!(items.next_losing(2), Some((vec![2, 3], 4)));
        assert_eq!(items.next_losing(2), Some((vec![1], 4)));
        assert_eq!(items.next_losing(9), Some((vec![1, 2, 3, 4, 5], 10)));
        assert_eq!(items.next_losing(2), None);
        assert!(!items.is_pressing());
    }

    #[test]
    fn items_are_found_by_node_and_by_subscription() {
        let (mut items, node) = (EventItems::default(), NodeIx::ns0(1));
        for index in 1..=3 {
            items.add(node, index % 2, index);
        }
        assert_eq!((items.on(node), items.of(1), items.of(0)), (&[1, 2, 3][..], &[1, 3][..], &[2][..]));
        assert!(items.remove(node, 0, 2) && !items.remove(node, 0, 2));
        assert!(items.of(0).is_empty() && items.were_used());
        assert!(items.remove(node, 1, 1) && items.remove(node, 1, 3) && items.is_empty());
        assert!(items.were_used(), "events may be in transit");
        assert!(!items.were_used());
    }
}
