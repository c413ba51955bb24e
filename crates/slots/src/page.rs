//! Pages of slots: reading, writing and notifying shards.
//!
//! A write stores its value, hands it over to the shards that want every write, and marks the slot dirty for every
//! watching shard. It needs no allocation and no system call, and its cost does not depend on the number of items.
//! Values are handed over before the next writer can enter, so each shard receives them in the order of writing. The
//! dirty bit is set afterwards: a shard that finds the bit but not the value knows that its queue was full.
//!
//! The history recorder also wants every write, but later. It copies values from the slots, and a writer hands over
//! only a value that it overwrites before it was copied. So a writer that is slower than the recorder pays only for a
//! dirty bit.

use crate::dirty::SlotBits;
use crate::hub::{Hub, QueuedValue};
use crate::slot::{Incoming, Inside, Scalar, Slot, Snapshot};
use crate::sync::{AtomicU32, AtomicU64};
use core::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Slots per page. Pages never move, so handles can point into them from any thread.
pub const PAGE_SLOTS: usize = if cfg!(loom) { 2 } else { 1024 };

/// How often a change of a part of a value is retried because of another write.
const UPDATE_ATTEMPTS_MAX: usize = 64;
/// How often a long value is compared outside the critical section before it is compared inside.
const COMPARE_ATTEMPTS_MAX: usize = 4;

/// A block of slots with the dirty bits of every shard.
#[derive(Debug)]
pub struct Page {
    slots: Box<[Slot]>,
    dirty: SlotBits,
    /// Slots with semantic changes that the shard has not seen yet.
    meanings: SlotBits,
    /// Slots of which a shard wants every write; changed only by the writer inside the slot.
    queued: Box<[AtomicU64]>,
    /// For each slot, the number of the last write copied by the recorder. Created with the first recorded slot.
    taken: OnceLock<Box<[AtomicU32]>>,
    number: usize,
    /// The part of the store that the slots' handles need, kept here once so that handles are small.
    pub(crate) hub: Arc<Hub>,
}

impl Page {
    pub(crate) fn new(number: usize, hub: Arc<Hub>) -> Self {
        let shards = hub.shards();
        Self {
            slots: (0..PAGE_SLOTS).map(|_| Slot::new()).collect(),
            dirty: SlotBits::new(PAGE_SLOTS, shards),
            meanings: SlotBits::new(PAGE_SLOTS, shards),
            queued: (0..PAGE_SLOTS.div_ceil(64) * shards).map(|_| AtomicU64::new(0)).collect(),
            taken: OnceLock::new(),
            number,
            hub,
        }
    }

    /// The slot with an index on this page.
    #[inline]
    pub(crate) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize % PAGE_SLOTS]
    }

    /// Retries until it succeeds. Spins only briefly: a writer that was preempted inside the slot may need this
    /// processor.
    #[inline]
    fn patiently<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> T {
        match attempt() {
            Some(done) => done,
            None => self.wait(attempt),
        }
    }

    #[cold]
    fn wait<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> T {
        let mut count = 0u32;
        loop {
            self.hub.pause(count);
            count = count.saturating_add(1);
            if let Some(done) = attempt() {
                return done;
            }
        }
    }

    #[inline]
    fn enter(&self, slot: &Slot) -> Inside {
        self.patiently(|| slot.try_enter())
    }

    /// A consistent copy of a slot.
    #[inline]
    pub fn read(&self, index: u32) -> Snapshot {
        self.read_with_seq(self.slot(index)).0
    }

    #[inline]
    fn read_with_seq(&self, slot: &Slot) -> (Snapshot, u64) {
        self.patiently(|| slot.try_read())
    }

    /// A consistent copy of a slot if its value is inline.
    #[inline]
    pub fn read_scalar(&self, index: u32) -> Option<Scalar> {
        let slot = self.slot(index);
        self.patiently(|| slot.try_read_scalar())
    }

    /// Stores a value in a slot and notifies the watching shards. The slot of a deleted node accepts no value.
    #[inline]
    pub fn set(&self, index: u32, value: Variant, status: StatusCode, source: UtcTime, server: UtcTime) {
        let slot = self.slot(index);
        let value = Incoming::of(value);
        let (inside, same) = match &value {
            Incoming::Inline(..) => (self.enter(slot), None),
            Incoming::Payload(value) => self.enter_compared(slot, value),
        };
        self.write(index, inside, value, same, status, (source, server), false);
    }

    /// Stores a value like [`Self::set`], unless the slot was written since the given write number.
    pub(crate) fn set_since(
        &self,
        index: u32,
        write: u32,
        value: Variant,
        status: StatusCode,
        times: (UtcTime, UtcTime),
    ) {
        let slot = self.slot(index);
        let value = Incoming::of(value);
        let entered = self.patiently(|| {
            let (present, seq) = slot.try_read()?;
            if present.write == write { slot.try_enter_at(seq).map(Some) } else { Some(None) }
        });
        if let Some(inside) = entered {
            self.write(index, inside, value, None, status, times, false);
        }
    }

    /// Enters a slot together with the result of comparing a long value with the present one. The comparison is done
    /// outside, so that no other thread waits for it.
    fn enter_compared(&self, slot: &Slot, value: &Variant) -> (Inside, Option<bool>) {
        for _ in 0..COMPARE_ATTEMPTS_MAX {
            if let Some((present, seq)) = slot.peek_payload() {
                let same = present.is_some_and(|present| present.same_as(value));
                if let Some(inside) = slot.try_enter_at(seq) {
                    return (inside, Some(same));
                }
            }
        }
        (self.enter(slot), None)
    }

    /// Writes from inside the slot, and leaves it. `is_last` closes the slot for further writes.
    #[inline]
    #[allow(clippy::too_many_arguments)] // a value's parts
    fn write(
        &self,
        index: u32,
        inside: Inside,
        value: Incoming,
        same: Option<bool>,
        status: StatusCode,
        times: (UtcTime, UtcTime),
        is_last: bool,
    ) {
        let slot = self.slot(index);
        let Some(watchers) = slot.watchers(&inside) else { return slot.leave(inside) };
        let mut pressed =
            if watchers.queued { self.save_untaken(index, &inside, watchers.shards) } else { 0 };
        let old = slot.put(&inside, value, same, status, times);
        if watchers.queued {
            pressed |= self.hand_over(index, &inside, watchers.shards);
        }
        if is_last {
            slot.set_gone(&inside, true);
        }
        slot.publish(inside);
        if watchers.shards != 0 {
            each_shard(watchers.shards, |shard| self.mark(index, shard));
            each_shard(pressed, |shard| self.hub.wake(shard));
        }
        drop(old);
    }

    /// Hands the value that will be overwritten to the recorder, unless the recorder has copied it. Returns the
    /// recorder if it must be woken.
    ///
    /// Nothing is lost: the recorder reports a write as taken only after copying it, so each write is either copied or
    /// found not taken by the next write. Some are both; their write numbers tell.
    #[inline]
    fn save_untaken(&self, index: u32, inside: &Inside, shards: u64) -> u64 {
        let Some(recorder) = self.hub.recorder().filter(|recorder| shards & 1 << recorder != 0) else {
            return 0;
        };
        let slot = self.slot(index);
        let number = slot.number(inside);
        // Acquires what the recorder released: its copy was made before the value is overwritten.
        let is_taken = |taken: &AtomicU32| taken.load(Ordering::Acquire) == number;
        if self.taken_of(index).is_none_or(is_taken) {
            return 0;
        }
        let value = QueuedValue { slot: index, value: slot.unchanged(inside) };
        if self.hub.push(recorder, value) { 1 << recorder } else { 0 }
    }

    #[inline]
    fn taken_of(&self, index: u32) -> Option<&AtomicU32> {
        self.taken.get()?.get(index as usize % PAGE_SLOTS)
    }

    /// The recorder has copied the write with this number.
    #[inline]
    pub fn note_taken(&self, index: u32, number: u32) {
        if let Some(taken) = self.taken_of(index) {
            taken.store(number, Ordering::Release);
        }
    }

    /// Starts or stops recording a slot. Every later write is in the returned copy, found in the slot, or handed over
    /// when it is overwritten, as long as the queue is not full.
    pub(crate) fn set_recorded(&self, index: u32, recorder: usize, is_recorded: bool) -> Snapshot {
        self.taken.get_or_init(|| (0..PAGE_SLOTS).map(|_| AtomicU32::new(0)).collect());
        let slot = self.slot(index);
        let inside = self.enter(slot);
        // Recording again with another rule: values written in the meantime have not been taken yet.
        if (slot.watching() & 1 << recorder != 0) != is_recorded {
            slot.set_watched(&inside, recorder, is_recorded);
            slot.count_queued(&inside, is_recorded);
            self.note_taken(index, slot.number(&inside));
        }
        let value = slot.unchanged(&inside);
        slot.leave(inside);
        value
    }

    /// Hands a value over to the shards that want every write. Returns those that must be woken.
    fn hand_over(&self, index: u32, inside: &Inside, shards: u64) -> u64 {
        let mut pressed = 0;
        each_shard(shards, |shard| {
            let (word, bit) = self.queued_bit(index, shard);
            if word.is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
                && self.hub.push(shard, QueuedValue { slot: index, value: self.slot(index).written(inside) })
            {
                pressed |= 1 << shard;
            }
        });
        pressed
    }

    fn queued_bit(&self, index: u32, shard: usize) -> (Option<&AtomicU64>, u64) {
        let at = index as usize % PAGE_SLOTS;
        (self.queued.get(shard * PAGE_SLOTS.div_ceil(64) + at / 64), 1 << (at % 64))
    }

    #[inline]
    fn mark(&self, index: u32, shard: usize) {
        if self.dirty.mark(index as usize % PAGE_SLOTS, shard) {
            self.hub.mark(shard, self.number);
        }
    }

    /// Takes the dirty bits of a shard.
    #[inline]
    pub fn take_dirty(&self, shard: usize, each: impl FnMut(usize)) {
        self.dirty.take(shard, each);
    }

    /// Takes the slots with semantic changes.
    #[inline]
    pub fn take_meanings(&self, shard: usize, each: impl FnMut(usize)) {
        self.meanings.take(shard, each);
    }

    /// Replaces the value atomically by the result of `change`, which is retried after an interfering write. The error
    /// is the first one of `change`, or Bad_ResourceUnavailable if other writes always interfere.
    pub(crate) fn update(
        &self,
        index: u32,
        status: StatusCode,
        source: UtcTime,
        server: UtcTime,
        mut change: impl FnMut(Variant) -> Result<Variant, StatusCode>,
    ) -> Result<(), StatusCode> {
        let slot = self.slot(index);
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let (present, seq) = self.read_with_seq(slot);
            let value = Incoming::of(change(present.value())?);
            let same = match (&value, &present.payload) {
                (Incoming::Payload(value), Some(present)) => Some(present.same_as(value)),
                (Incoming::Payload(_), None) => Some(false),
                (Incoming::Inline(..), _) => None,
            };
            if let Some(inside) = slot.try_enter_at(seq) {
                self.write(index, inside, value, same, status, (source, server), false);
                return Ok(());
            }
        }
        Err(StatusCode::BAD_RESOURCE_UNAVAILABLE)
    }

    /// Notifies the watching shards of a semantic change of the variable.
    pub(crate) fn semantics_changed(&self, index: u32) {
        each_shard(self.slot(index).watching(), |shard| {
            self.meanings.mark(index as usize % PAGE_SLOTS, shard);
            self.mark(index, shard);
        });
    }

    /// Starts or stops notifying a shard of writes. Every write is either in the returned copy or marks the slot dirty.
    pub fn set_watched(&self, index: u32, shard: usize, watched: bool) -> Snapshot {
        let slot = self.slot(index);
        let inside = self.enter(slot);
        slot.set_watched(&inside, shard, watched);
        let value = slot.unchanged(&inside);
        slot.leave(inside);
        value
    }

    /// Starts or stops handing every write over to a shard. Every write is either in the returned copy or handed over,
    /// as long as the queue is not full.
    pub fn set_queued(&self, index: u32, shard: usize, queued: bool) -> Snapshot {
        let slot = self.slot(index);
        let inside = self.enter(slot);
        if let (Some(word), bit) = self.queued_bit(index, shard) {
            let before = if queued {
                word.fetch_or(bit, Ordering::Relaxed)
            } else {
                word.fetch_and(!bit, Ordering::Relaxed)
            };
            if (before & bit != 0) != queued {
                slot.count_queued(&inside, queued);
            }
        }
        let value = slot.unchanged(&inside);
        slot.leave(inside);
        value
    }

    /// Marks the slot dirty for one shard, as if it had been written.
    pub fn touch(&self, index: u32, shard: usize) {
        self.mark(index, shard);
    }

    /// The node was deleted: this is the slot's last value for those who still hold it.
    pub(crate) fn close(&self, index: u32) {
        let (status, times) = (StatusCode::BAD_NODE_ID_UNKNOWN, (UtcTime::NULL, UtcTime::NULL));
        let inside = self.enter(self.slot(index));
        self.write(index, inside, Incoming::of(Variant::Empty), None, status, times, true);
    }

    /// Whether the slot's node was deleted. A shard that takes the dirty bit of the last value sees this.
    pub fn is_gone(&self, index: u32) -> bool {
        self.slot(index).is_gone()
    }

    /// The slot now belongs to a node that has no value yet.
    pub(crate) fn open(&self, index: u32) {
        let slot = self.slot(index);
        let inside = self.enter(slot);
        slot.set_gone(&inside, false);
        slot.leave(inside);
        let status = StatusCode::BAD_WAITING_FOR_INITIAL_DATA;
        self.set(index, Variant::Empty, status, UtcTime::NULL, UtcTime::NULL);
    }
}

#[inline]
fn each_shard(mut shards: u64, mut each: impl FnMut(usize)) {
    while shards != 0 {
        each(shards.trailing_zeros() as usize);
        shards &= shards - 1;
    }
}
