//! ConditionRefresh and ConditionRefresh2 (Part 9 §5.5.7, §5.5.8).
//!
//! The retained conditions are put into the items' queues in slices, and only as far as the queues have space: a
//! refresh of many conditions neither blocks the shard nor pushes events out of a queue. If a queue stays full for too
//! long, the refresh ends, and the item reports an overflow.

use super::Engine;
use super::events::may_see;
use super::item::flag;
use super::manage::id_of;
use crate::account::{Category, Charge};
use crate::event::{Event, NewEvent};
use crate::now::Now;
use crate::query::around::EventSurroundings;
use crate::space::AddressSpace;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_schema::ids::{object_ids, object_type_ids};
use taktwerk_types::{Instant, NodeId, StatusCode};

/// Conditions examined per slice; most need no event.
const SLICE: usize = 256;
/// Events created per slice, some 20 µs each.
const EVENTS_PER_SLICE: usize = 8;
/// Items that events are offered to per slice.
const ASKED_PER_SLICE: usize = 512;
/// References followed per slice for the filters of the items.
const FOLLOWED_PER_SLICE: usize = 4_000;
/// Delay until the next slice, so that others get their turn.
const PAUSE: Duration = Duration::from_micros(100);
/// Delay until a full queue is checked again.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// A refresh ends when a queue has been full for this time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of refreshes in progress per shard.
const REFRESHES_MAX: usize = 256;

/// A refresh in progress.
#[derive(Debug)]
pub(super) struct Refresh {
    place: u32,
    subscription_id: u32,
    /// The item to refresh; `None`: all items of the subscription.
    item: Option<u32>,
    /// The next condition; `None` after the last one.
    cursor: Option<usize>,
    /// Events of earlier conditions that did not fit into the queues: those of at most one condition.
    pending: VecDeque<Arc<Event>>,
    /// Items that the first of these events must still be offered to, the last one first. Filters can be so expensive that
    /// one event takes several slices.
    unasked: Vec<u32>,
    charge: Charge,
    /// It begins when events up to this one have been taken from the shard's ring, because they were raised earlier.
    begins_behind: Option<u64>,
    /// Since when a queue has been full.
    full_since: Option<Instant>,
}

impl Engine {
    /// Starts a refresh of all event items of a subscription, or of one of them.
    pub(crate) fn condition_refresh(
        &mut self,
        place: u32,
        item_id: Option<u32>,
        now: Now,
    ) -> Result<(), StatusCode> {
        let subscription = self.subscription(place).ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        let subscription_id = subscription.id;
        let charge = subscription.kept.account().nothing(Category::QueuedValues);
        let is_event = |index: &u32| self.is_event_item(*index);
        let item = match item_id {
            None => {
                if !subscription.items.iter().any(is_event) {
                    return Err(StatusCode::BAD_NOTHING_TO_DO);
                }
                None
            }
            Some(id) => {
                let found = subscription.items.iter().copied().find(|index| {
                    let item = self.items.get(*index as usize);
                    item.is_some_and(|item| id_of(subscription, item, *index) == id)
                });
                Some(found.filter(is_event).ok_or(StatusCode::BAD_MONITORED_ITEM_ID_INVALID)?)
            }
        };
        let is_under_way = |refresh: &Refresh| {
            refresh.subscription_id == subscription_id
                && (refresh.item == item || refresh.item.is_none() || item.is_none())
        };
        if self.refreshes.iter().any(is_under_way) {
            return Err(StatusCode::BAD_REFRESH_IN_PROGRESS);
        }
        if self.refreshes.len() >= REFRESHES_MAX {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        let begins_behind = Some(self.want_events().unwrap_or(0));
        self.refreshes.push(Refresh {
            place,
            subscription_id,
            item,
            cursor: Some(0),
            pending: VecDeque::new(),
            unasked: Vec::new(),
            charge,
            begins_behind,
            full_since: None,
        });
        self.refresh_at = Some(now.instant);
        Ok(())
    }

    /// Continues the next refresh that is due.
    pub(super) fn refresh(&mut self, space: &AddressSpace, now: Now) {
        if self.refresh_at.is_none_or(|at| at > now.instant) || self.refreshes.is_empty() {
            return;
        }
        let mut refresh = self.refreshes.remove(0);
        let mut pause = PAUSE;
        match self.refresh_slice(&mut refresh, space, now) {
            Progress::Done => {}
            Progress::More => self.refreshes.push(refresh),
            Progress::Full => {
                pause = FULL_PAUSE;
                self.refreshes.push(refresh);
            }
        }
        self.refresh_at = (!self.refreshes.is_empty()).then(|| now.instant + pause);
    }

    /// A subscription moves away: its refreshes cannot continue elsewhere. Items report missing events, and the client
    /// can refresh again.
    pub(super) fn abandon_refreshes(&mut self, place: u32) {
        let before = self.refreshes.len();
        self.refreshes.retain(|refresh| refresh.place != place);
        if self.refreshes.len() < before {
            self.event_items.of(place).to_vec().into_iter().for_each(|index| self.note_lost(index));
        }
    }

    fn refresh_slice(&mut self, refresh: &mut Refresh, space: &AddressSpace, now: Now) -> Progress {
        let Some(subscription) = self.subscription(refresh.place) else { return Progress::Done };
        if subscription.id != refresh.subscription_id {
            return Progress::Done;
        }
        let targets: Vec<u32> = match refresh.item {
            Some(index) => vec![index],
            // Only few items of a large subscription are event items.
            None => self.event_items.of(refresh.place).to_vec(),
        };
        let targets: Vec<u32> =
            targets.into_iter().filter(|index| self.is_refreshed(*index, refresh.place)).collect();
        if targets.is_empty() {
            return Progress::Done;
        }
        if let Some(until) = refresh.begins_behind {
            if !self.event_items.has_taken(until) {
                return Progress::More;
            }
            refresh.begins_behind = None;
            // §5.5.7: the copies of one event have the same EventId.
            let start = marker(space, object_type_ids::REFRESH_START_EVENT_TYPE, now);
            for index in &targets {
                self.note_refreshed(*index, None);
                self.give_marker(*index, &start);
            }
        }
        let room = targets.iter().filter_map(|index| self.event_queue_room(*index)).min().unwrap_or(0);
        if room == 0 {
            let since = *refresh.full_since.get_or_insert(now.instant);
            if now.instant < since + PATIENCE {
                return Progress::Full;
            }
            // The client does not fetch its events. It learns that some are missing, and can refresh again.
            targets.iter().for_each(|index| self.note_lost(*index));
            self.give_end(&targets, space, now);
            return Progress::Done;
        }
        refresh.full_since = None;
        // One entry is reserved for the end event, and half of the queue for new events. The shortest queue gets one at
        // a time.
        let room = (room / 2).saturating_sub(1).max(1);
        if let (true, Some(cursor)) = (refresh.pending.is_empty(), refresh.cursor) {
            let mut events = Vec::new();
            refresh.cursor = space.alarms().and_then(|alarms| {
                let events_max = room.min(EVENTS_PER_SLICE).min((ASKED_PER_SLICE / targets.len()).max(1));
                alarms.retained(space, cursor..cursor + SLICE, events_max, now.utc, &mut events)
            });
            refresh.pending = events.into();
        }
        self.offer(refresh, &targets, room, space, now);
        let unasked = refresh.unasked.capacity() * size_of::<u32>();
        let pending = refresh.pending.iter().map(|event| event.size()).sum::<usize>();
        refresh.charge.resize_anyway(pending + unasked);
        let has_room = targets.iter().all(|index| self.event_queue_room(*index) != Some(0));
        match (refresh.cursor, has_room) {
            (None, true) if refresh.pending.is_empty() => {
                self.give_end(&targets, space, now);
                Progress::Done
            }
            (_, true) => Progress::More,
            (_, false) => Progress::Full,
        }
    }

    /// Offers pending events to the items, until there is no more room in a queue or the slice is over.
    fn offer(&mut self, refresh: &mut Refresh, targets: &[u32], room: usize, space: &AddressSpace, now: Now) {
        let (mut asked, mut followed) = (0, 0);
        for _ in 0..room {
            let Some(event) = refresh.pending.front().cloned() else { break };
            if refresh.unasked.is_empty() {
                refresh.unasked = targets.iter().rev().copied().collect();
            }
            while let Some(index) = refresh.unasked.pop() {
                if self.is_refreshed(index, refresh.place) {
                    followed += self.give_refreshed(index, &event, space, now);
                }
                asked += 1;
                if followed > FOLLOWED_PER_SLICE || asked >= ASKED_PER_SLICE {
                    break;
                }
            }
            if refresh.unasked.is_empty() {
                refresh.pending.pop_front();
            }
            if followed > FOLLOWED_PER_SLICE || asked >= ASKED_PER_SLICE {
                break;
            }
        }
        self.work.items_walked += asked as u64;
    }

    /// Whether an item takes part in the refreshes of a subscription.
    fn is_refreshed(&self, index: u32, place: u32) -> bool {
        self.items.get(index as usize).is_some_and(|item| {
            item.has(flag::EVENTS) && item.has(flag::ENABLED) && item.subscription == place
        })
    }

    fn give_end(&mut self, targets: &[u32], space: &AddressSpace, now: Now) {
        let end = marker(space, object_type_ids::REFRESH_END_EVENT_TYPE, now);
        targets.iter().for_each(|index| self.give_marker(*index, &end));
    }

    /// Offers a condition's event to an item, if the item's node is a notifier and the filter accepts it. Returns the
    /// number of references followed.
    fn give_refreshed(&mut self, index: u32, event: &Arc<Event>, space: &AddressSpace, now: Now) -> usize {
        let Self { items, subscriptions, .. } = self;
        let Some(item) = items.get_mut(index as usize) else { return 0 };
        if !event.notifiers().contains(&item.node) || item.has(flag::DENIED) {
            return 0;
        }
        let Some(Some(subscription)) = subscriptions.get(item.subscription as usize) else { return 0 };
        let around = EventSurroundings::new(space, &subscription.decisions, now);
        let is_wanted = may_see(&subscription.decisions, event) && item.filter_passes(event, &around);
        let followed = around.followed();
        if is_wanted {
            self.note_refreshed(index, Some(event));
            self.queue_event(index, event);
        }
        followed
    }

    /// Puts the start or end event of a refresh into an item's queue, whatever its filter (§5.5.7).
    fn give_marker(&mut self, index: u32, event: &Arc<Event>) {
        self.queue_event(index, event);
    }
}

enum Progress {
    Done,
    More,
    /// A queue is full.
    Full,
}

/// RefreshStartEventType or RefreshEndEventType (§5.11).
fn marker(space: &AddressSpace, kind: u32, now: Now) -> Arc<Event> {
    let server = NodeId::numeric(0, object_ids::SERVER);
    let name = if kind == object_type_ids::REFRESH_START_EVENT_TYPE { "begins" } else { "ends" };
    let event = NewEvent::new(NodeId::numeric(0, kind), server)
        .message(&*format!("The refresh of conditions {name}"))
        .severity(100);
    space.shared_event(event, now.utc)
}
