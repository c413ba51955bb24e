//! Recording: collects every write of the recorded Variables and returns them in batches.
//!
//! The recorder reads the address space like a shard: writers set a bit, and the recorder copies the value. A value
//! goes into the recorder's ring only if it is overwritten before it was copied, so every write is recorded. Variables
//! without history cost their writers nothing. Writes that find the ring full are counted, and the history returns
//! Bad_DataLost there. The recorder does no I/O: a driver takes batches and passes them to the store.

use crate::event::Event;
use crate::history::rule::Rule;
use crate::history::{HistoryValue, NodeHistory, NodeKey, StoredEvent};
use crate::node_ix::NodeIx;
use crate::space::AddressSpace;
use crate::space::history::{RecorderOrder, Registration};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taktwerk_schema::ids::object_ids;
use taktwerk_slots::{PAGE_SLOTS, Page, SlotHandle, SlotStore, Snapshot};
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// A value for the store.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The Variable.
    pub node: NodeKey,
    /// The value.
    pub value: HistoryValue,
}

/// How long a deleted Variable can be missing until its history ends, in ticks of 100 ns. Replacing a large NodeSet
/// takes some hundred milliseconds.
const GRACE_TICKS: i64 = 10_000_000;

/// A recorded Variable.
#[derive(Debug)]
struct Watched {
    slot: SlotHandle,
    history: Arc<NodeHistory>,
    rule: Rule,
    /// Number of the last write seen.
    seen: u32,
    last: Option<HistoryValue>,
    /// Its recording ends with the next call after this order.
    is_ending: bool,
}

/// Collects the writes of all recorded Variables. There is one per address space.
#[derive(Debug)]
pub struct Recorder {
    space: Arc<AddressSpace>,
    store: Arc<SlotStore>,
    shard: usize,
    pages: Vec<Arc<Page>>,
    watched: Vec<Watched>,
    /// By slot: index into `watched` plus one, or 0.
    by_slot: Vec<u32>,
    /// Deleted Variables whose history has not been ended yet, and when they were found deleted.
    ended: BTreeMap<NodeKey, (Arc<NodeHistory>, UtcTime)>,
    /// Slots whose recording ends, in the order of the orders.
    ending: Vec<u32>,
    /// The ends of histories that may continue.
    stopped: BTreeMap<NodeKey, UtcTime>,
    lost: u64,
}

impl Recorder {
    /// Creates the recorder of an address space made [with a recorder](AddressSpace::with_recorder).
    #[must_use]
    pub fn new(space: &Arc<AddressSpace>) -> Option<Self> {
        let store = Arc::clone(space.slots());
        let shard = store.recorder()?;
        Some(Self {
            space: Arc::clone(space),
            store,
            shard,
            pages: Vec::new(),
            watched: Vec::new(),
            by_slot: Vec::new(),
            ended: BTreeMap::new(),
            ending: Vec::new(),
            stopped: BTreeMap::new(),
            lost: 0,
        })
    }

    /// Number of recorded Variables.
    #[must_use]
    pub fn variables(&self) -> usize {
        self.watched.len()
    }

    /// Number of writes and events that came too fast and were not recorded.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost + self.space.events().lost_count(self.shard)
    }

    /// Appends everything written since the last call. `now` replaces missing times. Returns how many values were
    /// overwritten before they were taken, which slows down their writers: if any, call it more often. `yield_now` is
    /// called every few hundred values to let other threads run.
    pub fn take(&mut self, now: UtcTime, out: &mut Vec<Recorded>, yield_now: fn()) -> usize {
        self.space.record_added(now, usize::MAX);
        self.follow_orders(now, out);
        // Everything that was written before these orders is found by this call.
        let ending = core::mem::take(&mut self.ending);
        let mut overwritten = self.take_queued(now, out, yield_now);
        // A page that is not known would lose its mark permanently.
        self.pages.extend(self.store.pages_from(self.pages.len()));
        // Values that must follow those still in the queue: also those that found the queue full, or whose Variable is
        // not known yet.
        let mut behind: Vec<(u32, Snapshot)> = Vec::new();
        let mut gone: Vec<(u32, Snapshot)> = Vec::new();
        let Self { store, shard, pages, watched, by_slot, .. } = self;
        store.take_dirty_pages(*shard, pages.len(), |number| {
            let Some(page) = pages.get(number) else { return };
            yield_now();
            page.take_dirty(*shard, |at| {
                let slot = (number * PAGE_SLOTS + at) as u32;
                let newest = page.read(slot);
                if page.is_gone(slot) {
                    // Its last value only says that it was deleted; earlier ones may be in the queue.
                    return gone.push((slot, newest));
                }
                let Some(state) = find(watched, by_slot, slot) else {
                    // Registered since the call began. The mark is set only once.
                    return behind.push((slot, newest));
                };
                if newest.write == state.seen.wrapping_add(1) {
                    page.note_taken(slot, newest.write);
                    state.seen = newest.write;
                    state.record(history_value(&newest, now), out);
                } else if newest.is_after(state.seen) {
                    behind.push((slot, newest));
                }
            });
        });
        if !behind.is_empty() || !gone.is_empty() {
            overwritten += self.take_queued(now, out, yield_now);
            for (slot, value) in behind {
                self.take_one(slot, &value, now, out);
                // Not earlier: later writes would leave the queue first.
                if let Some(page) = self.pages.get(slot as usize / PAGE_SLOTS) {
                    page.note_taken(slot, value.write);
                }
            }
        }
        if !gone.is_empty() {
            // Some may have been registered since the call began.
            self.follow_orders(now, out);
        }
        let ended: Vec<_> = gone.iter().filter_map(|(slot, last)| self.unwatch(*slot, last, out)).collect();
        if !ended.is_empty() {
            let again: BTreeSet<&NodeKey> = self.watched.iter().map(|state| &state.history.key).collect();
            let ended = ended.into_iter().filter(|history| !again.contains(&history.key));
            self.ended.extend(ended.map(|history| (NodeKey::clone(&history.key), (history, now))));
        }
        self.end_deleted(now, out);
        for slot in ending {
            self.stop(slot, now, out);
        }
        overwritten
    }

    /// Stops recording a Variable, unless it is to be recorded again.
    fn stop(&mut self, slot: u32, now: UtcTime, out: &mut Vec<Recorded>) {
        let Some(state) = find(&mut self.watched, &self.by_slot, slot).filter(|state| state.is_ending) else {
            return;
        };
        let (handle, shard) = (state.slot.clone(), self.shard);
        if !self.space.end_recording(slot, || {
            handle.set_recorded(shard, false);
        }) {
            return;
        }
        let Some(state) = self.forget(slot) else { return };
        // Part 11 §6.3, Bad_DataLost: no data, because their collection was stopped.
        let behind =
            state.last.map_or(now, |last| UtcTime::from_ticks(last.source.ticks().saturating_add(1)));
        let at = if behind.ticks() > now.ticks() { behind } else { now };
        out.push(no_data_from(&state.history, at));
        self.stopped.insert(NodeKey::clone(&state.history.key), at);
    }

    /// Removes a Variable.
    fn forget(&mut self, slot: u32) -> Option<Watched> {
        let at = core::mem::take(self.by_slot.get_mut(slot as usize)?).checked_sub(1)?;
        if at as usize >= self.watched.len() {
            return None;
        }
        let state = self.watched.swap_remove(at as usize);
        if let Some(moved) = self.watched.get(at as usize)
            && let Some(place) = self.by_slot.get_mut(moved.slot.index() as usize)
        {
            *place = at + 1;
        }
        Some(state)
    }

    /// Stops recording a deleted Variable, whose last value says only that it was deleted.
    fn unwatch(&mut self, slot: u32, last: &Snapshot, out: &mut Vec<Recorded>) -> Option<Arc<NodeHistory>> {
        let state = self.forget(slot)?;
        state.slot.set_recorded(self.shard, false);
        let missed = last.write.wrapping_sub(state.seen).saturating_sub(1);
        if missed > 0 {
            self.lost += u64::from(missed);
            out.extend(state.last.map(|last| lost_behind(&state.history, last.source)));
        }
        Some(state.history)
    }

    /// Ends the histories of Variables that were deleted and not added again: values are unknown from then on.
    fn end_deleted(&mut self, now: UtcTime, out: &mut Vec<Recorded>) {
        self.ended.retain(|_, (history, since)| {
            let is_over = now.ticks().saturating_sub(since.ticks()) >= GRACE_TICKS;
            if is_over {
                let (status, value) = (StatusCode::BAD_NODE_ID_UNKNOWN, Variant::Empty);
                out.push(mark(history, HistoryValue { source: *since, server: *since, status, value }));
            }
            !is_over
        });
    }

    /// The history for events, if they are recorded, and the events raised since the last call.
    pub fn take_events(&mut self, now: UtcTime) -> Option<(Arc<NodeHistory>, Vec<StoredEvent>)> {
        let history = Arc::clone(self.space.read().event_history()?);
        let bus = Arc::clone(self.space.events());
        let mut events = Vec::new();
        for _ in 0..bus.len(self.shard) {
            let Some(handed) = bus.pop(self.shard) else { break };
            events.push(handed.event.to_stored());
        }
        // Resets the flag, so that the next half-full ring is reported again.
        bus.take_pressed(self.shard);
        if bus.take_lost(self.shard).is_some() {
            events.push(Event::overflow(bus.next_event_id(), now).to_stored());
        }
        (!events.is_empty()).then_some((history, events))
    }

    fn take_queued(&mut self, now: UtcTime, out: &mut Vec<Recorded>, yield_now: fn()) -> usize {
        let count = self.store.queued_len(self.shard);
        for at in 0..count {
            if at % PAGE_SLOTS == 0 {
                yield_now();
            }
            let Some(queued) = self.store.pop_queued(self.shard) else { break };
            self.take_one(queued.slot, &queued.value, now, out);
        }
        // Resets the flag, so that the next half-full queue is reported again.
        self.store.take_pressed(self.shard);
        count
    }

    fn take_one(&mut self, slot: u32, value: &Snapshot, now: UtcTime, out: &mut Vec<Recorded>) {
        if find(&mut self.watched, &self.by_slot, slot).is_none() {
            // A slot is registered under the same lock under which its writes become visible.
            self.follow_orders(now, out);
        }
        let Some(state) = find(&mut self.watched, &self.by_slot, slot) else { return };
        if !value.is_after(state.seen) {
            return;
        }
        let missed = value.write.wrapping_sub(state.seen).saturating_sub(1);
        state.seen = value.write;
        if missed > 0 {
            self.lost += u64::from(missed);
            if let Some(last) = &state.last {
                out.push(lost_behind(&state.history, last.source));
            }
        }
        state.record(history_value(value, now), out);
    }

    fn follow_orders(&mut self, now: UtcTime, out: &mut Vec<Recorded>) {
        for order in self.space.take_orders() {
            match order {
                RecorderOrder::Record(registration) => self.watch(registration, now, out),
                RecorderOrder::Stop(slot) => {
                    if let Some(state) = find(&mut self.watched, &self.by_slot, slot) {
                        state.is_ending = true;
                        self.ending.push(slot);
                    }
                }
            }
        }
    }

    fn watch(&mut self, registration: Registration, now: UtcTime, out: &mut Vec<Recorded>) {
        let Registration { slot, present, since, history, rule } = registration;
        self.ended.remove(&history.key);
        let index = slot.index();
        let at = index as usize;
        if self.by_slot.len() <= at {
            self.by_slot.resize(at + 1, 0);
        }
        if let Some(state) = find(&mut self.watched, &self.by_slot, index) {
            (state.history, state.rule, state.is_ending) = (history, rule, false);
            return;
        }
        let stopped = self.stopped.remove(&history.key);
        let mut state = Watched { slot, history, rule, seen: present.write, last: None, is_ending: false };
        if present.status != StatusCode::BAD_WAITING_FOR_INITIAL_DATA {
            let mut next = history_value(&present, now);
            // A value from before the end of the history is the present one, so it is known since the order, and not
            // behind later writes. That of a source may have changed meanwhile.
            let stopped = stopped.filter(|stopped| next.source.ticks() <= stopped.ticks());
            if let (Some(stopped), Some(since)) = (stopped, since) {
                let since = UtcTime::from_ticks(since.ticks().max(stopped.ticks().saturating_add(1)));
                (next.source, next.server) = (since, since);
            }
            if stopped.is_none() || since.is_some() {
                state.record(next, out);
            }
        }
        self.watched.push(state);
        if let Some(place) = self.by_slot.get_mut(at) {
            *place = u32::try_from(self.watched.len()).unwrap_or(0);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.space.read().event_history().is_some() {
            self.space.events().unwatch(self.shard, NodeIx::ns0(object_ids::SERVER));
        }
        for state in &self.watched {
            state.slot.set_recorded(self.shard, false);
        }
    }
}

fn find<'a>(watched: &'a mut [Watched], by_slot: &[u32], slot: u32) -> Option<&'a mut Watched> {
    let index = by_slot.get(slot as usize)?.checked_sub(1)?;
    watched.get_mut(index as usize)
}

impl Watched {
    fn record(&mut self, next: HistoryValue, out: &mut Vec<Recorded>) {
        if self.last.as_ref().is_some_and(|last| !self.rule.takes(last, &next)) {
            return;
        }
        out.push(Recorded { node: NodeKey::clone(&self.history.key), value: next.clone() });
        self.last = Some(next);
    }
}

/// A written value, for the history.
fn history_value(value: &Snapshot, now: UtcTime) -> HistoryValue {
    let server = if value.server.is_null() { now } else { value.server };
    let source = if value.source.is_null() { server } else { value.source };
    HistoryValue { source, server, status: value.status, value: value.value() }
}

/// Marks values as missing from directly after a time on.
fn lost_behind(history: &NodeHistory, time: UtcTime) -> Recorded {
    no_data_from(history, UtcTime::from_ticks(time.ticks().saturating_add(1)))
}

/// Marks values as missing from a time on.
fn no_data_from(history: &NodeHistory, time: UtcTime) -> Recorded {
    let status = StatusCode::BAD_DATA_LOST;
    mark(history, HistoryValue { source: time, server: time, status, value: Variant::Empty })
}

/// A value that no write has stored.
fn mark(history: &NodeHistory, value: HistoryValue) -> Recorded {
    Recorded { node: NodeKey::clone(&history.key), value }
}

#[cfg(test)]
mod tests;
