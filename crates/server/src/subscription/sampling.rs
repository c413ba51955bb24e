//! Sampling: the ticks of rate groups, and values that must be read from sources (design §5).
//!
//! Only items that need their own tick are here: those that sample slower than they publish, those with a queue and an
//! interval, and those with polled sources. The cost of a tick follows the changes, not the items; only sources are
//! read at each tick.

use super::Engine;
use super::changes::make_ready;
use super::item::flag;
use crate::authorization::Decisions;
use crate::callback::SourceRead;
use crate::now::Now;
use crate::space::attribute as attribute_of;
use crate::space::nodes::ValueAt;
use crate::space::view::attribute;
use crate::space::{AddressSpace, NodeIx};
use std::sync::Arc;
use taktwerk_slots::SlotHandle;
use taktwerk_types::{DataValue, Decode, DecodeLimits, Instant, StatusCode, UtcTime, Variant};

/// A sample whose source answers later.
pub(crate) struct SampleJob {
    /// The argument for [`Engine::sample_done`].
    pub(crate) sample: PendingSample,
    /// The work to run.
    pub(crate) read: SourceRead,
}

/// A sample in progress.
#[derive(Debug)]
pub(crate) struct PendingSample {
    /// The item that waits for it.
    item: u32,
    /// The number of the job. The item's index may have been reused.
    number: u64,
    /// The slot for the value, which is not reused until then.
    slot: SlotHandle,
    /// The number of the last write to the slot when the read began.
    write: u32,
}

impl core::fmt::Debug for SampleJob {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SampleJob").field("sample", &self.sample).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts a group's timer if it is stopped.
    pub(super) fn arm_group(&mut self, group: u32, now: Instant) {
        if let Some(state) = self.groups.get_mut(group) {
            state.arm(group, now, &self.phases, &mut self.timers);
        }
    }

    /// A group's tick.
    pub(super) fn tick(&mut self, group: u32, now: Now, space: &AddressSpace) {
        self.fetch_polled(group, now, space);
        self.drain_changes(now.instant);
        let Some(state) = self.groups.get_mut(group) else { return };
        let mut pending = core::mem::take(&mut state.pending);
        self.work.items_walked += pending.len() as u64;
        for index in pending.drain(..) {
            self.sample(index, group);
        }
        let Some(state) = self.groups.get_mut(group) else { return };
        state.pending = pending;
        state.armed = false;
        if state.every_tick > 0 || !state.polled.is_empty() {
            self.arm_group(group, now.instant);
        }
    }

    /// Samples one item whose variable has changed.
    fn sample(&mut self, index: u32, group: u32) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        // The entry may be older than a delete or modify.
        if !item.has(flag::PENDING) || item.group != group {
            return;
        }
        item.flags &= !flag::PENDING;
        if item.waits_for_first() {
            return;
        }
        if item.is_queued() {
            let Some(snapshot) = item.sample(&self.pages) else { return };
            if item.passes(&snapshot) {
                item.remember(&snapshot);
                let sample = item.reported(snapshot);
                let lost = item.enqueue(sample);
                self.after_enqueue(index, lost);
            }
        } else {
            item.flags |= flag::DIRTY;
            if let Some(Some(subscription)) = self.subscriptions.get_mut(item.subscription as usize) {
                make_ready(index, item, subscription);
            }
        }
    }

    /// Reads the sources of a group's polled items.
    fn fetch_polled(&mut self, group: u32, now: Now, space: &AddressSpace) {
        let Some(state) = self.groups.get_mut(group) else { return };
        let mut polled = core::mem::take(&mut state.polled);
        polled.retain(|index| {
            let Some(item) = self.items.get(*index as usize) else { return false };
            item.group == group && item.ext.as_ref().is_some_and(|ext| ext.polled.is_some())
        });
        for index in &polled {
            self.fetch(*index, now, space);
        }
        if let Some(state) = self.groups.get_mut(group) {
            state.polled = polled;
        }
    }

    /// Reads the source of one polled item.
    pub(super) fn fetch(&mut self, index: u32, now: Now, space: &AddressSpace) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        let Some(attribute_id) = item.ext.as_ref().and_then(|ext| ext.polled) else { return };
        let node = item.node;
        if !item.has(flag::ENABLED) || item.ext.as_ref().is_some_and(|ext| ext.sampling != 0) {
            return;
        }
        if item.has(flag::DENIED) {
            // The source is not read for an item that is denied.
            let status = item.denial().status();
            if item.slot.is_none() {
                let value = DataValue { server_timestamp: Some(now.utc), ..DataValue::from_status(status) };
                self.offer_value(index, value);
            }
            return;
        }
        let nodes = space.read();
        let Some(slot) = &item.slot else {
            let subscription = self.subscriptions.get(item.subscription as usize).and_then(Option::as_ref);
            let Some(subscription) = subscription else { return };
            let value = attribute_value(&nodes, &subscription.decisions, node, attribute_id, now);
            drop(nodes);
            self.offer_value(index, value);
            return;
        };
        let source = match nodes.value_at(node) {
            ValueAt::Source(source, _) => Arc::clone(source),
            ValueAt::Slot(_) | ValueAt::Static(_) | ValueAt::Computed(_) | ValueAt::None => return,
        };
        // A source is application code: it must not run while the address space is locked.
        drop(nodes);
        match source.read() {
            SourceRead::Now(value) => store_value(&self.store.handle(slot), value, now),
            later => {
                self.last_job += 1;
                let slot = self.store.handle(slot);
                let write = slot.read().write;
                let sample = PendingSample { item: index, number: self.last_job, slot, write };
                if let Some(ext) = &mut item.ext {
                    ext.sampling = self.last_job;
                }
                self.jobs.push_back(SampleJob { sample, read: later });
            }
        }
    }

    /// An asynchronous source has answered. If the slot was written in the meantime, also by the answer to another
    /// read, this answer may be older and is dropped.
    pub(crate) fn sample_done(&mut self, sample: &PendingSample, value: DataValue, now: Now) {
        let (status, times) = (value.status(), times(&value, now));
        sample.slot.set_since(sample.write, value.value.unwrap_or_default(), status, times);
        let Some(item) = self.items.get_mut(sample.item as usize) else { return };
        let is_first = item.waits_for_first() && item.has(flag::ENABLED);
        let Some(ext) = item.ext.as_mut().filter(|ext| ext.sampling == sample.number) else { return };
        ext.sampling = 0;
        if is_first {
            self.report_first(sample.item);
        }
    }

    /// Queues a value without a slot if it differs from the last one.
    pub(super) fn offer_value(&mut self, index: u32, value: DataValue) {
        let Some(item) = self.items.get_mut(index as usize) else { return };
        if let Some(sample) = item.differing(value) {
            let lost = item.enqueue(sample);
            self.after_enqueue(index, lost);
        }
    }
}

/// Any attribute as a DataValue, including the Value attribute of constants.
pub(crate) fn attribute_value(
    nodes: &crate::space::nodes::Nodes,
    decisions: &Decisions,
    node: NodeIx,
    attribute_id: u32,
    now: Now,
) -> DataValue {
    let result = match nodes.view(node) {
        None => Err(StatusCode::BAD_NODE_ID_UNKNOWN),
        Some(_) if attribute_id == attribute::VALUE => match nodes.value_at(node) {
            ValueAt::Static(bytes) => {
                Variant::decode_from(bytes, DecodeLimits::DEFAULT).map_err(|_| StatusCode::BAD_INTERNAL_ERROR)
            }
            ValueAt::Computed(ix) => nodes.computed(ix, now.utc),
            _ => nodes.unset_value(node),
        },
        Some(view) => attribute_of(nodes, decisions, node, &view, attribute_id),
    };
    let value = match result {
        Ok(value) => DataValue::new(value),
        Err(status) => DataValue::from_status(status),
    };
    DataValue { server_timestamp: Some(now.utc), ..value }
}

/// Stores a source's answer.
fn store_value(handle: &SlotHandle, value: DataValue, now: Now) {
    let (status, (source, server)) = (value.status(), times(&value, now));
    handle.set(value.value.unwrap_or_default(), status, source, server);
}

/// The source and server times, with missing ones filled in.
fn times(value: &DataValue, now: Now) -> (UtcTime, UtcTime) {
    (value.source_timestamp.unwrap_or(now.utc), value.server_timestamp.unwrap_or(now.utc))
}
