//! From the ready list of a subscription to the next NotificationMessage (Part 4 §7.26).

use super::Engine;
use super::item::{Item, flag};
use super::message::MessageWriter;
use super::phase::SAMPLES;
use super::publish::EVENT_WEIGHT_PER_MESSAGE;
use super::sample::{SEMANTICS_BITS, encode_snapshot};
use super::subscription::Subscription;
use super::triggering::{Following, fire_links};
use crate::now::Now;
use smallvec::SmallVec;
use std::sync::Arc;
use taktwerk_schema::ids::encoding_ids;
use taktwerk_slots::Page;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{StatusCode, UtcTime};

/// Number of possibly useless entries that a ready list may keep.
const ENTRIES_SPARE: usize = 64;

impl Engine {
    /// Whether at least one notification would be sent. Entries without anything to report are dropped on the way, so
    /// no work is done twice.
    pub(super) fn has_notifications(&mut self, place: u32) -> bool {
        let mut links = Following::default();
        let Self { subscriptions, items, pages, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return false };
        let has_some = (!subscription.ready_events.is_empty()
            && super::events::has_events(place, items, subscription, &mut links))
            || has_values(place, items, pages, subscription, &mut links);
        self.links_followed += links.count();
        has_some
    }

    /// Whether the only notification of the next message should be a value although events wait too: they alternate.
    fn is_turn_of_values(&mut self, place: u32) -> bool {
        let mut links = Following::default();
        let Self { subscriptions, items, pages, .. } = self;
        let Some(Some(subscription)) = subscriptions.get_mut(place as usize) else { return false };
        if subscription.parameters.max_notifications != 1 || subscription.ready_events.is_empty() {
            return false;
        }
        subscription.told_event =
            !(subscription.told_event && has_values(place, items, pages, subscription, &mut links));
        let is_turn = !subscription.told_event;
        self.links_followed += links.count();
        is_turn
    }

    /// Encodes the next NotificationMessage from the ready list (Part 4 §7.26), up to the subscription's number of
    /// notifications and `body_max` bytes. Also returns the weight of its events; `None` if there is nothing to report
    /// after all.
    pub(super) fn create_message(&mut self, place: u32, now: Now, body_max: usize) -> Option<(Vec<u8>, u32)> {
        let is_of_values = self.is_turn_of_values(place);
        let mut links = Following::default();
        let mut out = self.pool.take();
        let Self { subscriptions, items, pages, pool, events, .. } = self;
        let subscription = subscriptions.get_mut(place as usize)?.as_mut()?;
        // Response header, acknowledgement results and available sequence numbers also need space.
        let len_max = body_max.saturating_sub(1024).max(1024);
        let count_max = subscription.parameters.max_notifications;
        let (events_max, events_len_max) =
            match (subscription.ready_events.is_empty(), subscription.ready.len()) {
                (true, _) => (0, 0),
                (false, 0) => (count_max, len_max),
                // Values get their share of a message, however many and long the events are.
                (false, _) if count_max > 1 => (count_max / 2, len_max / 2),
                (false, _) => (u32::from(!is_of_values), len_max),
            };
        // Growing a large message by doubling would leave large holes in the heap.
        let waiting = subscription.ready.len();
        let expected = waiting.min(count_max as usize).saturating_mul(subscription.notification_len) + 64;
        out.reserve_exact(expected.min(len_max));
        let mut message = MessageWriter::begin(&mut out, subscription.next_sequence_number, now.utc);
        // Write times of a sample of the values, in ns.
        let mut written = SmallVec::<[i64; SAMPLES]>::new();
        let sample_every = waiting.div_ceil(SAMPLES).max(1) as u32;
        let mut weight = 0;
        let event_count = if events_max == 0 {
            0
        } else {
            message.block(encoding_ids::EVENT_NOTIFICATION_LIST_BINARY, |out| {
                let most = (events_max, EVENT_WEIGHT_PER_MESSAGE);
                let (count, weighs) = super::events::encode_events(
                    out,
                    place,
                    items,
                    subscription,
                    most,
                    events_len_max,
                    events,
                    now,
                    &mut links,
                );
                weight = weighs;
                count
            })
        };
        let count_max = count_max - event_count;
        let count = message.block(encoding_ids::DATA_CHANGE_NOTIFICATION_BINARY, |out| {
            let count_at = out.len();
            let mut count = 0u32;
            encode_len(0, out);
            while count < count_max && out.len() < len_max {
                let Some(index) = subscription.ready.front().copied() else { break };
                let Some(item) = items.get_mut(index as usize).filter(|item| is_ready(item, place)) else {
                    subscription.ready.pop_front();
                    continue;
                };
                if links.are_enough() && item.has_links() {
                    // Sent with the next message.
                    break;
                }
                if !item.has(flag::REPORTING | flag::TRIGGERED) {
                    look_silently(index, place, items, pages, subscription, &mut links);
                    if let Some(item) = items.get_mut(index as usize) {
                        item.flags &= !flag::READY;
                    }
                    subscription.ready.pop_front();
                    continue;
                }
                let fired = if item.is_plain() {
                    let Some(snapshot) = item.sample(pages) else {
                        subscription.ready.pop_front();
                        continue;
                    };
                    let passes = item.passes(&snapshot);
                    if passes {
                        let bits = if item.has(flag::SEMANTICS) { SEMANTICS_BITS } else { 0 };
                        let status = StatusCode(snapshot.status.0 | bits);
                        encode_snapshot(out, item.client_handle, &snapshot, status, item.timestamps);
                        // The first report contains a value that existed before.
                        if count.is_multiple_of(sample_every) && !item.has(flag::FORCED) {
                            note(&mut written, now, snapshot.server);
                        }
                        item.remember(&snapshot);
                        item.flags &= !flag::SEMANTICS;
                        count += 1;
                    }
                    item.flags &= !(flag::DIRTY | flag::READY | flag::TRIGGERED);
                    subscription.ready.pop_front();
                    continue;
                } else {
                    super::durable::note(index, item, subscription);
                    let is_first = item.has(flag::FORCED);
                    let (encoded, newest, left) = encode_item(out, item, pages, count_max - count, len_max);
                    if count.is_multiple_of(sample_every) && !is_first {
                        note(&mut written, now, newest);
                    }
                    count += encoded;
                    if left {
                        // With few notifications per message, the other items come first next time.
                        subscription.ready.rotate_left(1);
                        break;
                    }
                    item.flags &= !(flag::READY | flag::TRIGGERED);
                    subscription.ready.pop_front();
                    encoded > 0
                };
                if fired {
                    fire_links(index, place, items, subscription, &mut links);
                }
            }
            if let Some(gap) = out.get_mut(count_at..count_at + 4) {
                gap.copy_from_slice(&count.to_le_bytes());
            }
            encode_len(0, out);
            count
        });
        let says_something = message.finish();
        subscription.phase.observe(&written);
        self.links_followed += links.count();
        let values = count;
        let count = values + event_count;
        self.work.notifications += u64::from(count);
        if !says_something {
            pool.give(out);
            return None;
        }
        if let Some(share) = &subscription.share {
            share.sent(values);
        }
        subscription.counters.data_changes += u32::from(values > 0);
        subscription.counters.events = subscription.counters.events.wrapping_add(event_count);
        subscription.notification_len = out.len() / count.max(1) as usize + 1;
        subscription.counters.notifications = subscription.counters.notifications.wrapping_add(count);
        Some((out, weight))
    }
}

/// Whether at least one value would be sent. Drops entries without anything to report. Once enough links were followed,
/// the rest is left for the next cycle.
fn has_values(
    place: u32,
    items: &mut [Item],
    pages: &[Arc<Page>],
    subscription: &mut Subscription,
    links: &mut Following,
) -> bool {
    while let Some(index) = subscription.ready.front().copied() {
        if let Some(item) = items.get_mut(index as usize).filter(|item| is_ready(item, place)) {
            if !item.has(flag::REPORTING | flag::TRIGGERED) {
                if links.are_enough() && item.has_links() {
                    return false;
                }
                look_silently(index, place, items, pages, subscription, links);
            } else if item.has_samples() {
                return true;
            } else if !item.is_queued()
                && let Some(snapshot) = item.sample(pages)
            {
                if item.passes(&snapshot) {
                    return true;
                }
                item.flags &= !flag::DIRTY;
            }
            if let Some(item) = items.get_mut(index as usize) {
                item.flags &= !(flag::READY | flag::TRIGGERED);
            }
        }
        subscription.ready.pop_front();
    }
    false
}

/// Drops entries of both ready lists whose items no longer have anything to report, once these are the majority.
/// Otherwise a client that repeatedly disables and enables items could make the lists grow without limit.
pub(super) fn sweep(place: u32, items: &mut [Item], subscription: &mut Subscription) {
    let len_max = 2 * subscription.items.len() + ENTRIES_SPARE;
    for list in [&mut subscription.ready, &mut subscription.ready_events] {
        if list.len() <= len_max {
            continue;
        }
        // The flag is removed with an item's first entry, so its duplicates are dropped.
        list.retain(|index| {
            let item = items.get_mut(*index as usize).filter(|item| is_ready(item, place));
            item.map(|item| item.flags &= !flag::READY).is_some()
        });
        for index in list.iter() {
            if let Some(item) = items.get_mut(*index as usize) {
                item.flags |= flag::READY;
            }
        }
    }
}

fn is_ready(item: &Item, place: u32) -> bool {
    item.flags & (flag::READY | flag::ALIVE) == flag::READY | flag::ALIVE && item.subscription == place
}

/// Records when a value was written, by the driver's clock.
#[inline]
fn note(written: &mut SmallVec<[i64; SAMPLES]>, now: Now, time: UtcTime) {
    if written.len() < SAMPLES && !time.is_null() {
        let age = now.utc.ticks().saturating_sub(time.ticks()).saturating_mul(100);
        written.push(i64::try_from(now.instant.as_nanos()).unwrap_or(i64::MAX).saturating_sub(age));
    }
}

/// Encodes the notifications of an item that is not plain. Returns their number, the server time of the newest, and
/// whether some remain.
fn encode_item(
    out: &mut Vec<u8>,
    item: &mut Item,
    pages: &[Arc<Page>],
    count_max: u32,
    len_max: usize,
) -> (u32, UtcTime, bool) {
    let (mut written, mut newest) = (0, UtcTime::NULL);
    if item.is_queued() {
        while written < count_max && out.len() < len_max {
            let Some(sample) = item.ext.as_mut().and_then(|ext| ext.values.pop_front()) else { break };
            item.encode_sample(out, &sample, 0);
            newest = sample.server();
            written += 1;
        }
        let left = item.ext.as_ref().is_some_and(|ext| !ext.values.is_empty());
        return (written, newest, left);
    }
    if let Some(snapshot) = item.sample(pages) {
        // Values left from a longer queue are older.
        let kept = item.ext.as_mut().and_then(|ext| ext.values.pop_front());
        if item.passes(&snapshot) {
            let bits = if item.has(flag::SEMANTICS) { SEMANTICS_BITS } else { 0 };
            item.remember(&snapshot);
            item.flags &= !flag::SEMANTICS;
            newest = snapshot.server;
            let sample = item.reported(snapshot);
            item.encode_sample(out, &sample, bits);
            written = 1;
        } else if let Some(kept) = kept {
            newest = kept.server();
            item.encode_sample(out, &kept, 0);
            written = 1;
        }
    }
    item.flags &= !flag::DIRTY;
    (written, newest, false)
}

/// Checks an item in Sampling mode: if it has a new value, fires the items that it triggers, and keeps the value.
fn look_silently(
    index: u32,
    place: u32,
    items: &mut [Item],
    pages: &[Arc<Page>],
    subscription: &mut Subscription,
    links: &mut Following,
) {
    let Some(item) = items.get_mut(index as usize) else { return };
    if item.is_queued() {
        if item.has_samples() {
            fire_links(index, place, items, subscription, links);
        }
    } else if item.has_links()
        && let Some(snapshot) = item.sample(pages)
    {
        if item.passes(&snapshot) {
            item.remember(&snapshot);
            // Kept until the item reports or is triggered itself.
            let sample = item.reported(snapshot);
            if let Some(ext) = &mut item.ext {
                ext.values.clear();
                ext.values.push_back(sample);
            }
            fire_links(index, place, items, subscription, links);
        } else {
            item.flags &= !flag::DIRTY;
        }
    }
}
