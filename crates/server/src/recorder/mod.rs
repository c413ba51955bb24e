//! Recording: takes every write of the Variables that are recorded and hands them out in batches.
//!
//! The recorder looks at the address space as a shard does: writers set a bit, and the recorder copies the value. Only a
//! value that is overwritten before that goes into its ring, so that every write is recorded. Writers of Variables without
//! history do nothing for it. Writes that found the ring full are counted, and the history says Bad_DataLost at that place.
//! It does no I/O: a driver takes batches and gives them to the stores.

use crate::event::Event;
use crate::history::rule::Rule;
use crate::history::{HistoryStore, HistoryValue, NodeHistory, NodeKey, StoredEvent};
use crate::node_ix::NodeIx;
use crate::space::AddressSpace;
use crate::space::history::Registration;
use crate::space::page::{PAGE_SLOTS, Page};
use crate::space::slot::Snapshot;
use crate::space::store::{SlotHandle, SlotStore};
use std::sync::Arc;
use taktwerk_schema::ids::object_ids;
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// A value for a store.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Where it belongs.
    pub store: Arc<dyn HistoryStore>,
    /// The Variable.
    pub node: NodeKey,
    /// The value.
    pub value: HistoryValue,
}

/// A Variable that is recorded.
#[derive(Debug)]
struct Watched {
    slot: SlotHandle,
    history: Arc<NodeHistory>,
    rule: Rule,
    /// Number of the last write that was seen.
    seen: u32,
    last: Option<HistoryValue>,
}

/// Takes the writes of all recorded Variables. There is one per address space.
#[derive(Debug)]
pub struct Recorder {
    space: Arc<AddressSpace>,
    store: Arc<SlotStore>,
    shard: usize,
    pages: Vec<Arc<Page>>,
    watched: Vec<Watched>,
    /// By slot: the index into `watched` and one, or 0.
    by_slot: Vec<u32>,
    lost: u64,
}

impl Recorder {
    /// Of an address space that was made [with room for one](AddressSpace::with_recorder).
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
            lost: 0,
        })
    }

    /// How many Variables are recorded.
    #[must_use]
    pub fn variables(&self) -> usize {
        self.watched.len()
    }

    /// Writes that came faster than they were taken and are not recorded.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Appends everything that was written since the last call. `now` stands for missing times. Returns how many of the
    /// values were overwritten before they were taken, which costs their writers: call it more often then. `give_way` is
    /// called every few hundred values, to let others run.
    pub fn take(&mut self, now: UtcTime, out: &mut Vec<Recorded>, give_way: fn()) -> usize {
        self.watch_registered(now, out);
        let mut overwritten = self.take_queued(now, out, give_way);
        // A page that is not known would lose its mark for good.
        self.pages.extend(self.store.pages_from(self.pages.len()));
        // Behind values that are still in the queue, or found no room in it, or of Variables that are not known yet.
        let mut behind: Vec<(u32, Snapshot)> = Vec::new();
        let Self { store, shard, pages, watched, by_slot, .. } = self;
        store.take_dirty_pages(*shard, pages.len(), |number| {
            let Some(page) = pages.get(number) else { return };
            give_way();
            page.take_dirty(*shard, |at| {
                let slot = (number * PAGE_SLOTS + at) as u32;
                let newest = page.read(slot);
                let Some(state) = find(watched, by_slot, slot) else {
                    // Registered since the call began. The mark does not come again.
                    return behind.push((slot, newest));
                };
                if newest.write == state.seen.wrapping_add(1) {
                    page.note_taken(slot, newest.write);
                    state.seen = newest.write;
                    state.record(&newest, now, out);
                } else if newest.is_after(state.seen) {
                    behind.push((slot, newest));
                }
            });
        });
        if !behind.is_empty() {
            overwritten += self.take_queued(now, out, give_way);
            for (slot, value) in behind {
                self.take_one(slot, &value, now, out);
                // Not before: what is written then would come out of the queue first.
                if let Some(page) = self.pages.get(slot as usize / PAGE_SLOTS) {
                    page.note_taken(slot, value.write);
                }
            }
        }
        overwritten
    }

    /// Where events go, if they are recorded, and those that were raised since the last call.
    pub fn take_events(&mut self, now: UtcTime) -> Option<(Arc<NodeHistory>, Vec<StoredEvent>)> {
        let history = Arc::clone(self.space.read().event_history()?);
        let bus = Arc::clone(self.space.events());
        let mut events = Vec::new();
        for _ in 0..bus.len(self.shard) {
            let Some(handed) = bus.pop(self.shard) else { break };
            events.push(handed.event.to_stored());
        }
        // Asked for, so that the next half-full ring is told of again.
        bus.take_pressed(self.shard);
        if bus.take_lost(self.shard).is_some() {
            events.push(Event::overflow(bus.next_event_id(), now).to_stored());
        }
        (!events.is_empty()).then_some((history, events))
    }

    fn take_queued(&mut self, now: UtcTime, out: &mut Vec<Recorded>, give_way: fn()) -> usize {
        let count = self.store.queued_len(self.shard);
        for at in 0..count {
            if at % PAGE_SLOTS == 0 {
                give_way();
            }
            let Some(queued) = self.store.pop_queued(self.shard) else { break };
            self.take_one(queued.slot, &queued.value, now, out);
        }
        // Asked for, so that the next half-full queue is told of again.
        self.store.take_pressed(self.shard);
        count
    }

    fn take_one(&mut self, slot: u32, value: &Snapshot, now: UtcTime, out: &mut Vec<Recorded>) {
        if find(&mut self.watched, &self.by_slot, slot).is_none() {
            // A slot is registered under the lock under which its writes begin to come.
            self.watch_registered(now, out);
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
        state.record(value, now, out);
    }

    fn watch_registered(&mut self, now: UtcTime, out: &mut Vec<Recorded>) {
        for registration in self.space.take_registrations() {
            self.watch(registration, now, out);
        }
    }

    fn watch(&mut self, registration: Registration, now: UtcTime, out: &mut Vec<Recorded>) {
        let Registration { slot, present, history, rule } = registration;
        let index = slot.index();
        let at = index as usize;
        if self.by_slot.len() <= at {
            self.by_slot.resize(at + 1, 0);
        }
        if let Some(state) = find(&mut self.watched, &self.by_slot, index) {
            (state.history, state.rule) = (history, rule);
            return;
        }
        let mut state = Watched { slot, history, rule, seen: present.write, last: None };
        if present.status != StatusCode::BAD_WAITING_FOR_INITIAL_DATA {
            state.record(&present, now, out);
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
    fn record(&mut self, value: &Snapshot, now: UtcTime, out: &mut Vec<Recorded>) {
        let server = if value.server.is_null() { now } else { value.server };
        let source = if value.source.is_null() { server } else { value.source };
        let next = HistoryValue { source, server, status: value.status, value: value.value() };
        if self.last.as_ref().is_some_and(|last| !self.rule.takes(last, &next)) {
            return;
        }
        out.push(Recorded {
            store: Arc::clone(&self.history.store),
            node: NodeKey::clone(&self.history.key),
            value: next.clone(),
        });
        self.last = Some(next);
    }
}

/// From right behind a time on values are missing.
fn lost_behind(history: &NodeHistory, time: UtcTime) -> Recorded {
    let time = UtcTime::from_ticks(time.ticks().saturating_add(1));
    let status = StatusCode::BAD_DATA_LOST;
    Recorded {
        store: Arc::clone(&history.store),
        node: NodeKey::clone(&history.key),
        value: HistoryValue { source: time, server: time, status, value: Variant::Empty },
    }
}

#[cfg(test)]
mod tests;
