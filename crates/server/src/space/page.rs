//! Pages of slots: reading, writing and telling the shards that watch.
//!
//! A write puts its value, hands it to the shards that want every write, and marks the slot dirty for every shard that
//! watches: no allocation, no system call, cost independent of how many items watch. Values are handed over before the
//! next writer can enter, so each shard gets them in the order in which they were written; the dirty bit comes after
//! them, so a shard that finds it and has not got the value knows that there was no room for it.
//!
//! The recorder of history wants every write too, but later. It takes values from the slots, and a writer hands over only
//! what it overwrites before that. So who writes slower than the recorder looks pays no more than for a dirty bit.

use super::dirty::SlotBits;
use super::slot::{Incoming, Inside, Scalar, Slot, Snapshot};
use super::store::{Hub, QueuedValue};
use super::sync::{AtomicU32, AtomicU64};
use core::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Slots per page. Pages never move, so handles can point into them from any thread.
pub(crate) const PAGE_SLOTS: usize = if cfg!(loom) { 2 } else { 1024 };

/// How often a change of a part of a value is tried anew because another write came in between.
const UPDATE_ATTEMPTS_MAX: usize = 64;
/// How often a long value is compared outside before it is compared inside.
const COMPARE_ATTEMPTS_MAX: usize = 4;

/// A block of slots with the dirty bits of every shard.
#[derive(Debug)]
pub(crate) struct Page {
    slots: Box<[Slot]>,
    dirty: SlotBits,
    /// Slots whose values have another meaning since the shard looked last.
    meanings: SlotBits,
    /// Which slots which shard wants every write of; changed by who is inside the slot.
    queued: Box<[AtomicU64]>,
    /// Of each slot the number of the write that the recorder took last. Made with the first slot that is recorded.
    taken: OnceLock<Box<[AtomicU32]>>,
    number: usize,
    /// What the handles of its slots need of the store: they are small because it stands here once.
    pub(super) hub: Arc<Hub>,
}

impl Page {
    pub(super) fn new(number: usize, hub: Arc<Hub>) -> Self {
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

    /// The slot of an index that lies on this page.
    #[inline]
    pub(super) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize % PAGE_SLOTS]
    }

    /// Tries again until it works. Nobody spins for long: a writer that was preempted inside the slot may need the
    /// processor that the caller has.
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
    pub(crate) fn read(&self, index: u32) -> Snapshot {
        self.read_with_seq(self.slot(index)).0
    }

    #[inline]
    fn read_with_seq(&self, slot: &Slot) -> (Snapshot, u64) {
        self.patiently(|| slot.try_read())
    }

    /// A consistent copy of a slot if its value is inline.
    #[inline]
    pub(crate) fn read_scalar(&self, index: u32) -> Option<Scalar> {
        let slot = self.slot(index);
        self.patiently(|| slot.try_read_scalar())
    }

    /// Stores a value in a slot and tells the watching shards. A slot whose node is gone takes none.
    #[inline]
    pub(crate) fn set(
        &self,
        index: u32,
        value: Variant,
        status: StatusCode,
        source: UtcTime,
        server: UtcTime,
    ) {
        let slot = self.slot(index);
        let value = Incoming::of(value);
        let (inside, same) = match &value {
            Incoming::Inline(..) => (self.enter(slot), None),
            Incoming::Payload(value) => self.enter_compared(slot, value),
        };
        self.write(index, inside, value, same, status, (source, server), false);
    }

    /// Stores a value as [`Self::set`] does, unless something else was written since the write with this number.
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

    /// Enters a slot with the answer whether a long value equals the present one, so that nobody has to wait for
    /// the comparison.
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

    /// Writes as the one who is inside, and leaves. After the last write there are no others.
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

    /// Hands the value that is about to be overwritten to the recorder, unless it has taken it. Returns the recorder if it
    /// has to be woken for it.
    ///
    /// Nothing is lost: the recorder says that it has taken a write only after it has copied it, so each write is either
    /// copied or found untaken by the next one. Some are both; their numbers tell.
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

    /// The recorder has a copy of the write with this number.
    #[inline]
    pub(crate) fn note_taken(&self, index: u32, number: u32) {
        if let Some(taken) = self.taken_of(index) {
            taken.store(number, Ordering::Release);
        }
    }

    /// Starts or stops recording a slot. Every write from then on is either in the copy that this returns, found in the
    /// slot, or handed over when it is overwritten, as long as there is room.
    pub(crate) fn set_recorded(&self, index: u32, recorder: usize, is_recorded: bool) -> Snapshot {
        self.taken.get_or_init(|| (0..PAGE_SLOTS).map(|_| AtomicU32::new(0)).collect());
        let slot = self.slot(index);
        let inside = self.enter(slot);
        // Again with another rule: what was written meanwhile is not taken yet.
        if (slot.watching() & 1 << recorder != 0) != is_recorded {
            slot.set_watched(&inside, recorder, is_recorded);
            slot.count_queued(&inside, is_recorded);
            self.note_taken(index, slot.number(&inside));
        }
        let value = slot.unchanged(&inside);
        slot.leave(inside);
        value
    }

    /// Hands a value to the shards that want every write. Returns those that have to be woken for it.
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
    pub(crate) fn take_dirty(&self, shard: usize, each: impl FnMut(usize)) {
        self.dirty.take(shard, each);
    }

    /// Takes the slots whose values have another meaning.
    #[inline]
    pub(crate) fn take_meanings(&self, shard: usize, each: impl FnMut(usize)) {
        self.meanings.take(shard, each);
    }

    /// Changes the value to what `change` makes of it, with no other write in between; `change` runs again when there
    /// was one. An error is the first one of `change`, or Bad_ResourceUnavailable when others write all the time.
    pub(super) fn update(
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

    /// Tells the watching shards that the variable's values mean something else from now on.
    pub(super) fn semantics_changed(&self, index: u32) {
        each_shard(self.slot(index).watching(), |shard| {
            self.meanings.mark(index as usize % PAGE_SLOTS, shard);
            self.mark(index, shard);
        });
    }

    /// Starts or stops telling a shard about writes. Every write is either in the copy that this returns or marks the
    /// slot dirty.
    pub(crate) fn set_watched(&self, index: u32, shard: usize, watched: bool) -> Snapshot {
        let slot = self.slot(index);
        let inside = self.enter(slot);
        slot.set_watched(&inside, shard, watched);
        let value = slot.unchanged(&inside);
        slot.leave(inside);
        value
    }

    /// Starts or stops handing every write over to a shard. Every write is either in the copy that this returns or
    /// handed over, as long as there is room.
    pub(crate) fn set_queued(&self, index: u32, shard: usize, queued: bool) -> Snapshot {
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
    pub(crate) fn touch(&self, index: u32, shard: usize) {
        self.mark(index, shard);
    }

    /// The node is gone: this is the slot's last value for those who still hold it.
    pub(super) fn close(&self, index: u32) {
        let (status, times) = (StatusCode::BAD_NODE_ID_UNKNOWN, (UtcTime::NULL, UtcTime::NULL));
        let inside = self.enter(self.slot(index));
        self.write(index, inside, Incoming::of(Variant::Empty), None, status, times, true);
    }

    /// The slot serves a node from now on, which has no value yet.
    pub(super) fn open(&self, index: u32) {
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
