//! Items that trigger others (Part 4 §5.13.1.6, SetTriggering §5.13.5).
//!
//! An item can have many links, and many items can have links. So links are followed within a budget per message, and
//! their cost is charged to the engine's run like the bytes of messages. Items whose links were not followed stay in
//! the subscription's ready list.

use super::Engine;
use super::item::{Item, ItemExt, flag};
use super::subscription::Subscription;
use crate::account::Exhausted;
use std::collections::BTreeSet;
use taktwerk_types::StatusCode;

/// Maximum number of links followed for one message, or to check whether there is one: takes some 0.2 ms.
pub(super) const LINKS_PER_MESSAGE: usize = 32_768;
/// Bytes of a run charged per link.
pub(super) const LINK_BYTES: usize = 4;

/// Number of links followed for a message.
#[derive(Debug, Default)]
pub(super) struct Following(usize);

impl Following {
    /// Whether the budget is used up.
    pub(super) fn are_enough(&self) -> bool {
        self.0 >= LINKS_PER_MESSAGE
    }

    /// Number of links followed.
    pub(super) fn count(&self) -> usize {
        self.0
    }
}

impl Engine {
    /// Adds and removes links of a triggering item (Part 4 §5.13.5). Returns the results of both lists.
    pub(crate) fn set_triggering(
        &mut self,
        place: u32,
        triggering: u32,
        add: &[u32],
        remove: &[u32],
    ) -> (Vec<StatusCode>, Vec<StatusCode>) {
        let links = self.items.get(triggering as usize).and_then(|item| item.ext.as_ref());
        // A set avoids searching long lists repeatedly.
        let mut known: BTreeSet<u32> = links.into_iter().flat_map(|ext| ext.links.iter().copied()).collect();
        // Links are removed first (Part 4 §5.13.5.2).
        let invalid = StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
        let removed = remove
            .iter()
            .map(|id| match self.find_item(place, *id) {
                Ok(index) if known.remove(&index) => StatusCode::GOOD,
                _ => invalid,
            })
            .collect();
        if let Some(ext) = self.items.get_mut(triggering as usize).and_then(|item| item.ext.as_mut()) {
            ext.links.retain(|linked| known.contains(linked));
        }
        let links_max = self.limits.links_per_item_max as usize;
        let added = add
            .iter()
            .map(|id| {
                let Ok(index) = self.find_item(place, *id) else { return invalid };
                if known.contains(&index) {
                    return StatusCode::GOOD;
                }
                if known.len() >= links_max {
                    return StatusCode::BAD_TOO_MANY_OPERATIONS;
                }
                let added = self.add_link(place, triggering, index);
                if added.is_good() {
                    known.insert(index);
                }
                added
            })
            .collect();
        (added, removed)
    }

    fn add_link(&mut self, place: u32, triggering: u32, index: u32) -> StatusCode {
        let Self { items, subscriptions, .. } = self;
        let (Some(item), Some(Some(subscription))) =
            (items.get_mut(triggering as usize), subscriptions.get_mut(place as usize))
        else {
            return StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
        };
        let ext = item.ext.get_or_insert_with(|| Box::new(ItemExt::new(subscription.kept.account())));
        subscription.has_links = true;
        ext.add_link(index).map_or_else(Exhausted::status, |()| StatusCode::GOOD)
    }
}

/// Puts the items fired by a triggering item into the ready list (Part 4 §5.13.1.6).
pub(super) fn fire_links(
    index: u32,
    place: u32,
    items: &mut [Item],
    subscription: &mut Subscription,
    following: &mut Following,
) {
    let links = match items.get_mut(index as usize).and_then(|item| item.ext.as_mut()) {
        Some(ext) if !ext.links.is_empty() => core::mem::take(&mut ext.links),
        _ => return,
    };
    following.0 += links.len();
    for linked in &links {
        if let Some(item) = items.get_mut(*linked as usize) {
            let waits = item.has(flag::DIRTY) || item.ext.as_ref().is_some_and(|ext| !ext.values.is_empty());
            if item.has(flag::EVENTS) {
                super::events::trigger(*linked, place, item, subscription);
                continue;
            }
            // Items in Reporting mode report on their own.
            if item.subscription == place
                && item.has(flag::ENABLED)
                && !item.has(flag::REPORTING)
                && waits
                && !item.has(flag::TRIGGERED)
            {
                item.flags |= flag::TRIGGERED;
                if !item.has(flag::READY) {
                    item.flags |= flag::READY;
                    subscription.ready.push_back(*linked);
                }
            }
        }
    }
    if let Some(ext) = items.get_mut(index as usize).and_then(|item| item.ext.as_mut()) {
        ext.links = links;
    }
}
