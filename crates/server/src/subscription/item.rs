//! A MonitoredItem: its filter, its queue and its encoding (Part 4 §5.13.1, §7.22.2).
//!
//! The common item (Value attribute, queue size 1, no deadband, no IndexRange) is one cache line and has no queue: it
//! only remembers that its variable has changed. The value is read from the slot when it is published.

use super::aggregate_item::AggregateItem;
use super::events::EventItem;
use super::kept_values::KeptValues;
use super::sample::{SEMANTICS_BITS, Sample, encode_sample};
use crate::account::{Account, Category, Charge, Exhausted, HeapSize, allocation};
use crate::authorization::Denial;
use crate::limits::cost;
use crate::space::NodeIx;
use std::sync::Arc;
use taktwerk_slots::{Page, SlotShare, Snapshot};
use taktwerk_types::{DataValue, NumericRange, StatusCode, TimestampsToReturn, UtcTime};

/// "No index" for the next item in a list, or for a position.
pub(crate) const NONE: u32 = u32::MAX;
/// The group of items that are sampled at publishing: their sampling interval is not longer than the publishing
/// interval, and they keep only the newest value. The other bits contain their sampling interval in [`INTERVAL_UNIT`],
/// which is needed again when the publishing interval is modified.
pub(crate) const AT_PUBLISH: u32 = 1 << 31;
/// Unit of the sampling interval of items sampled at publish, in ns.
pub(crate) const INTERVAL_UNIT: u64 = 100_000;
/// The group of items that want every write (sampling interval 0 with a queue).
pub(crate) const EVERY_WRITE: u32 = AT_PUBLISH - 1;

/// Bits of [`Item::flags`].
pub(crate) mod flag {
    /// The variable may have changed since the last report.
    pub(crate) const DIRTY: u16 = 1;
    /// The item is in its subscription's ready list.
    pub(crate) const READY: u16 = 1 << 1;
    /// The item waits for its group's tick.
    pub(crate) const PENDING: u16 = 1 << 2;
    /// The next value is reported regardless of the filter: the first one, or after ResendData.
    pub(crate) const FORCED: u16 = 1 << 3;
    /// A triggering item fired: report even in Sampling mode.
    pub(crate) const TRIGGERED: u16 = 1 << 4;
    /// The next report carries the SemanticsChanged bit.
    pub(crate) const SEMANTICS: u16 = 1 << 5;
    /// The mode is Reporting.
    pub(crate) const REPORTING: u16 = 1 << 6;
    /// The mode is Sampling or Reporting.
    pub(crate) const ENABLED: u16 = 1 << 7;
    /// The item monitors events; its [`ItemExt`] contains the state.
    pub(crate) const EVENTS: u16 = 1 << 8;
    /// The entry is in use.
    pub(crate) const ALIVE: u16 = 1 << 9;
    /// The queue has changed since it was written to the log, and the item is in its subscription's journal.
    pub(crate) const NOTED: u16 = 1 << 10;
    /// Two bits: why the client gets no values, see [`Denial`](crate::authorization::Denial); 0 if it gets them.
    pub(crate) const DENIED: u16 = 3 << 11;
    /// Two bits: the [`Trigger`](super::Trigger).
    pub(super) const TRIGGER: u16 = 3 << 13;
}

/// Which changes are reported (Part 4 §7.10, DataChangeTrigger).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    StatusValue,
    Status,
    StatusValueTimestamp,
}

/// The absolute deadband (Part 4 §7.22.2); percent is resolved with the EURange.
pub(crate) type Deadband = Option<f64>;

/// A MonitoredItem.
#[derive(Debug)]
pub(crate) struct Item {
    /// The variable's slot, which is not reused while the item exists; `None` for items on other attributes and on
    /// constants.
    pub(crate) slot: Option<SlotShare>,
    /// The subscription's position in the engine.
    pub(crate) subscription: u32,
    pub(crate) client_handle: u32,
    /// The next item on the same slot.
    pub(crate) next: u32,
    /// The previous item; [`NONE`] for the first.
    pub(crate) previous: u32,
    /// The item's position in its subscription's list.
    pub(crate) position: u32,
    /// The rate group, [`AT_PUBLISH`] with an interval, or [`EVERY_WRITE`].
    pub(crate) group: u32,
    /// The last reported value, for the filter.
    last_bits: u64,
    last_status: StatusCode,
    last_change: u32,
    pub(crate) flags: u16,
    last_kind: u8,
    pub(crate) timestamps: TimestampsToReturn,
    pub(crate) node: NodeIx,
    pub(crate) ext: Option<Box<ItemExt>>,
}

/// State that only some items need.
#[derive(Debug)]
pub(crate) struct ItemExt {
    /// Unpublished values, if more than the newest is kept, and the last reported value of an array with a deadband.
    pub(crate) values: KeptValues,
    /// Queue size; 1 means no queue.
    pub(crate) queue_size: u32,
    pub(crate) discard_oldest: bool,
    pub(crate) deadband: Deadband,
    pub(super) last_source: UtcTime,
    pub(crate) index_range: Option<NumericRange>,
    /// Indexes of the items that this one triggers.
    pub(crate) links: Vec<u32>,
    /// The attribute of items without a slot; Value for those on polled sources.
    pub(crate) polled: Option<u32>,
    /// The job number of the asynchronous sample in progress, or 0.
    pub(crate) sampling: u64,
    /// The state of an event item.
    pub(crate) events: Option<Box<EventItem>>,
    /// The state of an item with an AggregateFilter.
    pub(crate) aggregate: Option<Box<AggregateItem>>,
    /// The number of the last write seen by the item.
    pub(super) seen: u32,
    /// Charge for everything here except the values.
    charge: Charge,
}

impl ItemExt {
    /// For an item of the subscription with the account. There are at most as many as items, so the account has
    /// capacity.
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self {
            values: KeptValues::new(account),
            queue_size: 1,
            discard_oldest: true,
            deadband: None,
            last_source: UtcTime::NULL,
            index_range: None,
            links: Vec::new(),
            polled: None,
            sampling: 0,
            events: None,
            aggregate: None,
            seen: 0,
            charge: account.charge_anyway(Category::MonitoredItems, cost::RARE_MONITORED_ITEM),
        }
    }

    /// Sets the IndexRange.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(crate) fn set_index_range(&mut self, range: Option<NumericRange>) -> Result<(), Exhausted> {
        self.charge.resize(self.charge.amount() + range.heap_size())?;
        self.index_range = range;
        Ok(())
    }

    /// Adds a link to another item.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(crate) fn add_link(&mut self, index: u32) -> Result<(), Exhausted> {
        if self.links.len() == self.links.capacity() {
            let more = (self.links.len() / 2).max(4);
            self.charge.resize(self.charge.amount() + allocation(more * size_of::<u32>()))?;
            self.links.reserve_exact(more);
        }
        self.links.push(index);
        Ok(())
    }
}

impl Item {
    /// Appends the changes of its queue to a log entry; see [`KeptValues::write_changes`].
    pub(super) fn write_queue(&mut self, id: u32, max: usize, out: &mut Vec<u8>) -> Option<(usize, bool)> {
        let ext = self.ext.as_mut()?;
        match &mut ext.events {
            Some(events) => events.queue.write_changes(id, max, out),
            None => ext.values.write_changes(id, max, out),
        }
    }

    pub(crate) fn new(subscription: u32, client_handle: u32, slot: Option<SlotShare>, node: NodeIx) -> Self {
        Self {
            slot,
            subscription,
            client_handle,
            next: NONE,
            previous: NONE,
            position: 0,
            group: AT_PUBLISH,
            last_bits: 0,
            last_status: StatusCode::GOOD,
            last_change: 0,
            flags: flag::ALIVE | flag::FORCED,
            last_kind: 0,
            timestamps: TimestampsToReturn::Both,
            node,
            ext: None,
        }
    }

    /// Whether it triggers other items.
    #[inline]
    pub(super) fn has_links(&self) -> bool {
        self.ext.as_ref().is_some_and(|ext| !ext.links.is_empty())
    }

    #[inline]
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: u16, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    /// Which changes are reported.
    #[inline]
    pub(crate) fn trigger(&self) -> Trigger {
        match (self.flags & flag::TRIGGER) >> flag::TRIGGER.trailing_zeros() {
            0 => Trigger::StatusValue,
            1 => Trigger::Status,
            _ => Trigger::StatusValueTimestamp,
        }
    }

    pub(crate) fn set_trigger(&mut self, trigger: Trigger) {
        self.flags = (self.flags & !flag::TRIGGER) | (trigger as u16) << flag::TRIGGER.trailing_zeros();
    }

    /// Sets whether the client gets values.
    pub(crate) fn deny(&mut self, denial: Denial) {
        self.flags = (self.flags & !flag::DENIED) | (denial as u16) << flag::DENIED.trailing_zeros();
    }

    /// Why the client gets no values.
    pub(crate) fn denial(&self) -> Denial {
        Denial::from_bits((self.flags & flag::DENIED) >> flag::DENIED.trailing_zeros())
    }

    /// Whether nothing has been reported and its source is being read.
    pub(crate) fn waits_for_first(&self) -> bool {
        self.has(flag::FORCED)
            && !self.has(flag::DENIED)
            && self.ext.as_ref().is_some_and(|ext| ext.sampling != 0)
    }

    /// The value of the item's slot, or the status that its client gets instead.
    #[inline]
    pub(crate) fn sample(&self, pages: &[Arc<Page>]) -> Option<Snapshot> {
        let slot = self.slot.as_ref()?;
        if self.has(flag::DENIED) {
            return Some(self.refusal());
        }
        super::read_slot(pages, slot.index())
    }

    /// The index of the item's slot, valid while the item exists.
    #[inline]
    pub(crate) fn slot_index(&self) -> Option<u32> {
        self.slot.as_ref().map(SlotShare::index)
    }

    /// Whether it is sampled at publishing.
    #[inline]
    pub(crate) fn is_at_publish(&self) -> bool {
        self.group & AT_PUBLISH != 0
    }

    /// The number of the last write seen by the item; exact for items that want every write.
    #[inline]
    pub(crate) fn seen(&self) -> u32 {
        self.ext.as_ref().map_or(0, |ext| ext.seen)
    }

    /// A status without a value. It differs from previous values but not from itself.
    #[cold]
    fn refusal(&self) -> Snapshot {
        Snapshot {
            kind: 0,
            bits: 0,
            payload: None,
            status: self.denial().status(),
            source: UtcTime::NULL,
            server: UtcTime::NULL,
            change: self.last_change,
            write: self.seen(),
        }
    }

    /// Whether sampled values wait to be published.
    #[inline]
    pub(crate) fn has_samples(&self) -> bool {
        self.ext.as_ref().is_some_and(|ext| !ext.values.is_empty())
    }

    /// Whether more than the newest value is kept.
    #[inline]
    pub(crate) fn is_queued(&self) -> bool {
        self.ext
            .as_ref()
            .is_some_and(|ext| ext.queue_size > 1 || self.slot.is_none() || ext.aggregate.is_some())
    }

    /// Whether the item reads its value from the slot at publish, without optional features.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.ext.is_none()
    }

    /// Whether writes were lost between the last one seen by the item and this one that could have passed its filter.
    pub(crate) fn has_missed(&self, new: &Snapshot) -> bool {
        match self.trigger() {
            Trigger::StatusValueTimestamp => new.write.wrapping_sub(self.seen()) > 1,
            // Writes of the same value are not changes.
            _ => new.change.wrapping_sub(self.last_change) & 0x00ff_ffff > 1,
        }
    }

    /// Whether a value passes the filter.
    #[inline]
    pub(crate) fn passes(&self, new: &Snapshot) -> bool {
        if self.has(flag::FORCED | flag::SEMANTICS) {
            return true;
        }
        if self.ext.as_ref().is_some_and(|ext| ext.index_range.is_some()) {
            return self.part_passes(new);
        }
        if new.status != self.last_status {
            return true;
        }
        match self.trigger() {
            Trigger::Status => false,
            Trigger::StatusValue => self.value_passes(new),
            Trigger::StatusValueTimestamp => {
                self.value_passes(new) || self.ext.as_ref().is_some_and(|ext| ext.last_source != new.source)
            }
        }
    }

    #[inline]
    fn value_passes(&self, new: &Snapshot) -> bool {
        if new.change == self.last_change {
            return false;
        }
        let scalar = new.payload.is_none() && new.kind == self.last_kind;
        if scalar && new.bits == self.last_bits {
            return false;
        }
        match &self.ext {
            None => true,
            Some(ext) => ext.leaves_deadband(self, new),
        }
    }

    /// The same for an item with an IndexRange: changes outside the range do not count.
    fn part_passes(&self, new: &Snapshot) -> bool {
        let Some(ext) = &self.ext else { return false };
        let trigger = self.trigger();
        if trigger == Trigger::StatusValueTimestamp && ext.last_source != new.source {
            return true;
        }
        let part = self.select(new.to_data_value());
        if part.status() != self.last_status {
            return true;
        }
        trigger != Trigger::Status
            && match (ext.values.last(), &part.value.unwrap_or_default(), ext.deadband) {
                (Some(old), new, Some(deadband)) => super::filter::array_moved(old, new, deadband),
                (Some(old), new, None) => !old.same_as(new),
                (None, ..) => true,
            }
    }

    /// The part of a value selected by the item's IndexRange. If the value is missing for another reason, its status
    /// stays.
    fn select(&self, mut value: DataValue) -> DataValue {
        let range = self.ext.as_ref().and_then(|ext| ext.index_range.as_ref());
        let Some((range, whole)) = range.zip(value.value.as_ref()) else { return value };
        match range.read(whole) {
            Ok(part) => value.value = Some(part),
            Err(_) if whole.is_empty() && value.status() != StatusCode::GOOD => value.value = None,
            Err(status) => {
                value.value = None;
                value.status = Some(status);
            }
        }
        value
    }

    /// The value as reported to the client.
    #[inline]
    pub(crate) fn reported(&self, value: Snapshot) -> Sample {
        if self.ext.as_ref().is_some_and(|ext| ext.index_range.is_some()) {
            return Sample::Value(Box::new(self.select(value.to_data_value())));
        }
        Sample::Slot(value)
    }

    /// Records that the item has seen a change, whether or not it passed the filter: the same number means the same
    /// value.
    #[inline]
    pub(crate) fn see(&mut self, new: &Snapshot) {
        self.last_change = new.change;
        if let Some(ext) = &mut self.ext {
            ext.seen = new.write;
        }
    }

    /// Remembers a value as the last reported one.
    #[inline]
    pub(crate) fn remember(&mut self, new: &Snapshot) {
        self.last_bits = new.bits;
        self.last_kind = new.kind;
        self.last_status = new.status;
        self.last_change = new.change;
        self.flags &= !(flag::FORCED | flag::DIRTY);
        if self.ext.is_some() {
            self.remember_more(new);
        }
    }

    /// Fills in the data that a plain item did not keep of its last report, if that was the present value.
    pub(super) fn complete_memory(&mut self, present: &Snapshot) {
        if present.change == self.last_change && !self.has(flag::FORCED) {
            self.remember_more(present);
        }
    }

    fn remember_more(&mut self, new: &Snapshot) {
        let is_part = self.ext.as_ref().is_some_and(|ext| ext.index_range.is_some());
        let part = is_part.then(|| self.select(new.to_data_value()));
        let Some(ext) = &mut self.ext else { return };
        ext.last_source = new.source;
        ext.seen = new.write;
        if let Some(part) = part {
            self.last_status = part.status();
            ext.values.set_last(part.value.unwrap_or_default());
        } else if ext.deadband.is_some() && new.payload.is_some() {
            ext.values.set_last(new.value());
        }
    }

    /// Appends a MonitoredItemNotification with a sample.
    pub(crate) fn encode_sample(&self, out: &mut Vec<u8>, sample: &Sample, status_bits: u32) {
        encode_sample(out, self.client_handle, self.timestamps, sample, status_bits);
    }

    /// Adds a sampled value to the queue, or to the item's aggregate. Returns whether a value was lost.
    #[inline]
    pub(crate) fn enqueue(&mut self, sample: Sample) -> bool {
        if let Some(aggregate) = self.ext.as_mut().and_then(|ext| ext.aggregate.as_mut()) {
            if let Some(value) = sample.history_value() {
                aggregate.collect(value);
            }
            return false;
        }
        self.keep(sample)
    }

    /// Puts a value into the queue. If it is full, the discard policy applies and the Overflow bit is set (Part 4
    /// §5.13.1.5). Returns whether a value was lost.
    pub(crate) fn keep(&mut self, sample: Sample) -> bool {
        let semantics = self.has(flag::SEMANTICS);
        self.set(flag::SEMANTICS, false);
        let Some(ext) = &mut self.ext else { return false };
        let mut sample = sample;
        if semantics {
            sample.set_status(StatusCode(sample.status().0 | SEMANTICS_BITS));
        }
        let full = ext.values.len() >= ext.queue_size.max(1) as usize;
        if !full {
            ext.values.push_back(sample);
            return false;
        }
        // With queue size 1 there are no intermediate values to miss: no Overflow bit.
        if ext.queue_size <= 1 {
            ext.values.clear();
            ext.values.push_back(sample);
        } else if ext.discard_oldest {
            ext.values.pop_front();
            ext.values.push_back(sample);
            ext.values.mark_oldest();
        } else {
            ext.values.pop_back();
            ext.values.push_back(sample);
            ext.values.mark_newest();
        }
        true
    }

    /// The value to report for a source outside a slot if it differs from the last one, which it then replaces.
    pub(crate) fn differing(&mut self, new: DataValue) -> Option<Sample> {
        let new = self.select(new);
        let forced = self.has(flag::FORCED | flag::SEMANTICS);
        let ext = self.ext.as_mut()?;
        let value = new.value.clone().unwrap_or_default();
        let same =
            self.last_status == new.status() && ext.values.last().is_some_and(|last| last.same_as(&value));
        if same && !forced {
            return None;
        }
        self.last_status = new.status();
        ext.values.set_last(value);
        self.flags &= !flag::FORCED;
        Some(Sample::Value(Box::new(new)))
    }

    /// The last value of an item without a slot.
    pub(crate) fn last_other(&self) -> Option<DataValue> {
        let value = self.ext.as_ref()?.values.last().cloned()?;
        let status = (self.last_status != StatusCode::GOOD).then_some(self.last_status);
        Some(DataValue { value: Some(value), status, ..DataValue::default() })
    }

    /// Changes the queue size; the memory is available. Discarded values set the Overflow bit as in [`Item::enqueue`].
    /// A queue of size 1 keeps the newest value regardless of the policy (Part 4 §5.13.1.5).
    pub(crate) fn resize_queue(&mut self, queue_size: u32, discard_oldest: bool) {
        let Some(ext) = &mut self.ext else { return };
        (ext.queue_size, ext.discard_oldest) = (queue_size, discard_oldest);
        let len = queue_size.max(1) as usize;
        let excess = ext.values.len().saturating_sub(len);
        if excess > 0 && (discard_oldest || len == 1) {
            for _ in 0..excess {
                ext.values.pop_front();
            }
            if len > 1 {
                ext.values.mark_oldest();
            }
        } else if excess > 0
            && let Some(newest) = ext.values.pop_back()
        {
            // The newest value replaces the last one, as when it is enqueued.
            for _ in 0..excess {
                ext.values.pop_back();
            }
            ext.values.push_back(newest);
            ext.values.mark_newest();
        }
        ext.values.reserve(queue_size);
    }
}

impl ItemExt {
    fn leaves_deadband(&self, item: &Item, new: &Snapshot) -> bool {
        if let (Some(deadband), None) = (self.deadband, &new.payload) {
            let old = Snapshot { kind: item.last_kind, bits: item.last_bits, payload: None, ..new.clone() };
            return match (old.as_f64(), new.as_f64()) {
                (Some(old), Some(new)) => moved(old, new, deadband),
                _ => true,
            };
        }
        let Some(value) = &new.payload else { return true };
        match (self.deadband, self.values.last()) {
            (Some(deadband), Some(last)) => super::filter::array_moved(last, value, deadband),
            _ => true,
        }
    }
}

/// Whether a number left the deadband around the old one; NaN on either side counts as leaving.
pub(crate) fn moved(old: f64, new: f64, deadband: f64) -> bool {
    let distance = (new - old).abs();
    distance > deadband || distance.is_nan()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::sample::encode_snapshot;
    use taktwerk_slots::SlotStore;
    use taktwerk_types::{Decode, DecodeLimits, Decoder, Variant};

    fn snapshot(value: f64, change: u32) -> Snapshot {
        Snapshot {
            kind: 11,
            bits: value.to_bits(),
            payload: None,
            status: StatusCode::GOOD,
            source: UtcTime::from_ticks(10),
            server: UtcTime::from_ticks(20),
            change,
            write: change,
        }
    }

    fn item() -> Item {
        let mut item = Item::new(0, 7, Some(SlotStore::new(1, 1).allocate()), NodeIx::ns0(1));
        item.remember(&snapshot(1.0, 1));
        item
    }

    fn queued(size: u32, discard_oldest: bool) -> Item {
        let mut item = item();
        let account = Account::server(crate::Limits::default().maxima());
        let ext = ItemExt::new(&account);
        item.ext = Some(Box::new(ItemExt { queue_size: size, discard_oldest, ..ext }));
        item
    }

    fn statuses(item: &Item) -> Vec<(f64, bool)> {
        let queue = &item.ext.as_ref().unwrap().values;
        queue
            .iter()
            .map(|sample| match sample {
                Sample::Slot(snapshot) => (snapshot.as_f64().unwrap(), snapshot.status.has_overflow()),
                Sample::Value(_) => panic!("no such sample here"),
            })
            .collect()
    }

    #[test]
    fn the_common_item_is_one_cache_line() {
        assert!(size_of::<Item>() <= 64, "{}", size_of::<Item>());
    }

    #[test]
    fn a_value_that_returns_is_not_a_change() {
        let mut item = item();
        assert!(!item.passes(&snapshot(1.0, 1)));
        assert!(item.passes(&snapshot(2.0, 2)));
        assert!(!item.passes(&snapshot(1.0, 3)));
        item.set(flag::FORCED, true);
        assert!(item.passes(&snapshot(1.0, 1)));
        item.remember(&snapshot(1.0, 3));
        let bad = Snapshot { status: StatusCode::BAD_OUT_OF_SERVICE, ..snapshot(1.0, 4) };
        assert!(item.passes(&bad));
        item.set_trigger(Trigger::Status);
        assert!(!item.passes(&snapshot(5.0, 9)));
        assert!(item.passes(&bad));
    }

    #[test]
    fn deadband_is_taken_from_the_last_report() {
        let mut item = queued(1, true);
        item.ext.as_mut().unwrap().deadband = Some(1.0);
        item.remember(&snapshot(1.0, 1));
        assert!(!item.passes(&snapshot(2.0, 2)));
        assert!(item.passes(&snapshot(2.5, 3)));
        assert!(item.passes(&snapshot(f64::NAN, 4)));
    }

    #[test]
    fn discard_policies_and_overflow_bits() {
        let mut oldest = queued(2, true);
        let mut newest = queued(2, false);
        let mut single = queued(1, true);
        for value in [1.0, 2.0, 3.0, 4.0] {
            for item in [&mut oldest, &mut newest, &mut single] {
                item.enqueue(Sample::Slot(snapshot(value, 0)));
            }
        }
        assert_eq!(statuses(&oldest), [(3.0, true), (4.0, false)]);
        assert_eq!(statuses(&newest), [(1.0, false), (4.0, true)]);
        assert_eq!(statuses(&single), [(4.0, false)]);
    }

    #[test]
    fn fast_and_general_encoding_agree() {
        for timestamps in [
            TimestampsToReturn::Source,
            TimestampsToReturn::Server,
            TimestampsToReturn::Both,
            TimestampsToReturn::Neither,
        ] {
            for status in [StatusCode::GOOD, StatusCode::UNCERTAIN, StatusCode::BAD_OUT_OF_SERVICE] {
                let snapshot = Snapshot { status, ..snapshot(1.5, 1) };
                let mut fast = Vec::new();
                encode_snapshot(&mut fast, 7, &snapshot, status, timestamps);
                let mut decoder = Decoder::new(&fast, DecodeLimits::DEFAULT);
                assert_eq!(u32::decode(&mut decoder), Ok(7));
                let value = DataValue::decode(&mut decoder).unwrap();
                assert_eq!(decoder.remaining(), 0);
                assert_eq!(value.value, Some(Variant::from(1.5)));
                assert_eq!(value.status(), status);
                assert_eq!(value.source_timestamp.is_some(), timestamps.source());
                assert_eq!(value.server_timestamp.is_some(), timestamps.server());
                let mut general = Vec::new();
                let item = Item {
                    timestamps,
                    ..Item::new(0, 7, Some(SlotStore::new(1, 1).allocate()), NodeIx::ns0(1))
                };
                let sample = Sample::Value(Box::new(snapshot.to_data_value()));
                item.encode_sample(&mut general, &sample, 0);
                assert_eq!(general, fast);
            }
        }
    }
}
