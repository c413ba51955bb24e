//! Value slots: where the values of Variables live (design §4).
//!
//! A slot is one cache line. Writers serialise per slot by its sequence number; readers never lock and never wait
//! for more than one write. A write marks the slot dirty for every shard that watches it: no allocation, no system
//! call, cost independent of how many items watch.

use super::dirty::DirtyTop;
use arc_swap::ArcSwapOption;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, RwLock};
use taktwerk_types::{DataValue, StatusCode, UtcTime, Variant};

/// Slots per page. Pages never move, so handles can point into them from any thread.
pub(crate) const PAGE_SLOTS: usize = 1024;
/// Words of one shard's dirty bitmap over a page.
pub(crate) const PAGE_WORDS: usize = PAGE_SLOTS / 64;
/// Most shards a server can have: one bit each in a slot's watchers, whose top bit has another use.
pub const SHARDS_MAX: usize = 63;
/// Bit of [`Slot::watchers`]: some item wants every value, not only the newest.
const QUEUED: u64 = 1 << 63;

/// How often a change of a part of a value is tried anew because another write came in between.
const UPDATE_ATTEMPTS_MAX: usize = 64;

/// The value is not inline but in [`Slot::payload`].
const KIND_PAYLOAD: u8 = 0xff;

/// One variable's value.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct Slot {
    /// Odd while a writer is inside.
    seq: AtomicU64,
    /// Status in the low half, then the kind byte, then the change counter (24 bits).
    meta: AtomicU64,
    /// The inline scalar.
    bits: AtomicU64,
    source: AtomicI64,
    server: AtomicI64,
    payload: ArcSwapOption<Variant>,
    /// One bit per shard that watches, and [`QUEUED`].
    watchers: AtomicU64,
    /// Who needs the slot: its node, every handle, every watching shard. With none left it can serve another node.
    owners: AtomicU32,
}

/// A consistent copy of a slot: what a publish encodes from. Scalars need no heap.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// Built-in type number, 0 for null, [`KIND_PAYLOAD`] for a value in `payload`.
    pub(crate) kind: u8,
    /// The inline scalar's bits.
    pub(crate) bits: u64,
    pub(crate) payload: Option<Arc<Variant>>,
    pub(crate) status: StatusCode,
    pub(crate) source: UtcTime,
    pub(crate) server: UtcTime,
    /// Counts changes of value or status, modulo 2^24.
    pub(crate) change: u32,
}

fn pack(status: StatusCode, kind: u8, change: u32) -> u64 {
    u64::from(status.0) | u64::from(kind) << 32 | u64::from(change & 0x00ff_ffff) << 40
}

/// Splits a value into what fits a slot's word; the rest goes behind a reference count.
fn inline(value: &Variant) -> Option<(u8, u64)> {
    Some(match value {
        Variant::Empty => (0, 0),
        Variant::Boolean(value) => (1, u64::from(*value)),
        Variant::SByte(value) => (2, u64::from(*value as u8)),
        Variant::Byte(value) => (3, u64::from(*value)),
        Variant::Int16(value) => (4, u64::from(*value as u16)),
        Variant::UInt16(value) => (5, u64::from(*value)),
        Variant::Int32(value) => (6, u64::from(*value as u32)),
        Variant::UInt32(value) => (7, u64::from(*value)),
        Variant::Int64(value) => (8, *value as u64),
        Variant::UInt64(value) => (9, *value),
        Variant::Float(value) => (10, u64::from(value.to_bits())),
        Variant::Double(value) => (11, value.to_bits()),
        Variant::DateTime(value) => (13, value.ticks() as u64),
        Variant::StatusCode(value) => (19, u64::from(value.0)),
        _ => return None,
    })
}

/// How many bytes of the word the binary encoding of an inline kind takes.
#[inline]
pub(crate) const fn inline_len(kind: u8) -> usize {
    match kind {
        1..=3 => 1,
        4 | 5 => 2,
        6 | 7 | 10 | 19 => 4,
        8 | 9 | 11 | 13 => 8,
        _ => 0,
    }
}

impl Snapshot {
    /// The value as a Variant.
    pub(crate) fn value(&self) -> Variant {
        let bits = self.bits;
        match self.kind {
            1 => Variant::Boolean(bits != 0),
            2 => Variant::SByte(bits as i8),
            3 => Variant::Byte(bits as u8),
            4 => Variant::Int16(bits as i16),
            5 => Variant::UInt16(bits as u16),
            6 => Variant::Int32(bits as i32),
            7 => Variant::UInt32(bits as u32),
            8 => Variant::Int64(bits as i64),
            9 => Variant::UInt64(bits),
            10 => Variant::Float(f32::from_bits(bits as u32)),
            11 => Variant::Double(f64::from_bits(bits)),
            13 => Variant::DateTime(UtcTime::from_ticks(bits as i64)),
            19 => Variant::StatusCode(StatusCode(bits as u32)),
            KIND_PAYLOAD => self.payload.as_deref().cloned().unwrap_or_default(),
            _ => Variant::Empty,
        }
    }

    /// The value as a number, for deadbands.
    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self.kind {
            11 => Some(f64::from_bits(self.bits)),
            KIND_PAYLOAD => None,
            _ => self.value().as_f64(),
        }
    }

    /// The whole DataValue, with the status only where it is not Good.
    pub(crate) fn to_data_value(&self) -> DataValue {
        DataValue {
            value: Some(self.value()),
            status: (self.status != StatusCode::GOOD).then_some(self.status),
            source_timestamp: (!self.source.is_null()).then_some(self.source),
            server_timestamp: (!self.server.is_null()).then_some(self.server),
            ..DataValue::default()
        }
    }
}

/// A consistent copy of a slot whose value is inline: no heap, nothing to drop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar {
    /// Built-in type number, 0 for null.
    pub(crate) kind: u8,
    pub(crate) bits: u64,
    pub(crate) status: StatusCode,
    pub(crate) source: UtcTime,
}

impl Slot {
    fn new() -> Self {
        Self {
            seq: AtomicU64::new(0),
            meta: AtomicU64::new(0),
            bits: AtomicU64::new(0),
            source: AtomicI64::new(0),
            server: AtomicI64::new(0),
            payload: ArcSwapOption::empty(),
            watchers: AtomicU64::new(0),
            owners: AtomicU32::new(0),
        }
    }

    /// Stores a value; returns whether value or status changed, and who watches.
    #[inline]
    fn write(&self, value: Variant, status: StatusCode, source: UtcTime, server: UtcTime) -> (bool, u64) {
        let start = loop {
            let seq = self.seq.load(Ordering::Relaxed);
            if seq & 1 == 0 && self.enter(seq) {
                break seq;
            }
            core::hint::spin_loop();
        };
        self.write_inside(start, value, status, source, server)
    }

    /// Becomes the one writer, if nobody has written since the sequence number was `seq`, which is even.
    #[inline]
    fn enter(&self, seq: u64) -> bool {
        self.seq.compare_exchange_weak(seq, seq + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Stores a value as the one writer, who entered at the sequence number `start`, and leaves.
    #[inline]
    fn write_inside(
        &self,
        start: u64,
        value: Variant,
        status: StatusCode,
        source: UtcTime,
        server: UtcTime,
    ) -> (bool, u64) {
        // Orders the data stores behind the odd sequence number, for readers that see one of them.
        fence(Ordering::Release);
        let meta = self.meta.load(Ordering::Relaxed);
        let (old_status, old_kind, change) = (meta as u32, (meta >> 32) as u8, (meta >> 40) as u32);
        let changed = if let Some((kind, bits)) = inline(&value) {
            let changed =
                old_kind != kind || old_status != status.0 || self.bits.load(Ordering::Relaxed) != bits;
            self.bits.store(bits, Ordering::Relaxed);
            if old_kind == KIND_PAYLOAD {
                self.payload.store(None);
            }
            self.meta.store(pack(status, kind, change.wrapping_add(u32::from(changed))), Ordering::Relaxed);
            changed
        } else {
            let same = old_kind == KIND_PAYLOAD
                && old_status == status.0
                && self.payload.load().as_deref().is_some_and(|old| old.same_as(&value));
            if !same {
                self.payload.store(Some(Arc::new(value)));
            }
            self.meta
                .store(pack(status, KIND_PAYLOAD, change.wrapping_add(u32::from(!same))), Ordering::Relaxed);
            !same
        };
        self.source.store(source.ticks(), Ordering::Relaxed);
        self.server.store(server.ticks(), Ordering::Relaxed);
        self.seq.store(start + 2, Ordering::Release);
        (changed, self.watchers.load(Ordering::Relaxed))
    }

    /// A consistent copy if the value is inline.
    #[inline]
    pub(crate) fn read_scalar(&self) -> Option<Scalar> {
        loop {
            let before = self.seq.load(Ordering::Acquire);
            if before & 1 == 0 {
                let meta = self.meta.load(Ordering::Relaxed);
                let scalar = Scalar {
                    kind: (meta >> 32) as u8,
                    bits: self.bits.load(Ordering::Relaxed),
                    status: StatusCode(meta as u32),
                    source: UtcTime::from_ticks(self.source.load(Ordering::Relaxed)),
                };
                fence(Ordering::Acquire);
                if self.seq.load(Ordering::Relaxed) == before {
                    return (scalar.kind != KIND_PAYLOAD).then_some(scalar);
                }
            }
            core::hint::spin_loop();
        }
    }

    /// A consistent copy.
    #[inline]
    pub(crate) fn read(&self) -> Snapshot {
        self.read_with_seq().0
    }

    /// A consistent copy, and the sequence number at which it was taken.
    #[inline]
    fn read_with_seq(&self) -> (Snapshot, u64) {
        loop {
            let before = self.seq.load(Ordering::Acquire);
            if before & 1 == 0 {
                let meta = self.meta.load(Ordering::Relaxed);
                let kind = (meta >> 32) as u8;
                let snapshot = Snapshot {
                    kind,
                    bits: self.bits.load(Ordering::Relaxed),
                    payload: if kind == KIND_PAYLOAD { self.payload.load_full() } else { None },
                    status: StatusCode(meta as u32),
                    source: UtcTime::from_ticks(self.source.load(Ordering::Relaxed)),
                    server: UtcTime::from_ticks(self.server.load(Ordering::Relaxed)),
                    change: (meta >> 40) as u32,
                };
                fence(Ordering::Acquire);
                if self.seq.load(Ordering::Relaxed) == before {
                    return (snapshot, before);
                }
            }
            core::hint::spin_loop();
        }
    }
}

/// A block of slots with the dirty bits of every shard.
#[derive(Debug)]
pub(crate) struct Page {
    slots: Box<[Slot]>,
    /// `PAGE_WORDS` words per shard.
    dirty: Box<[AtomicU64]>,
    /// One word per shard: which of its words are non-zero.
    summary: Box<[AtomicU64]>,
    number: usize,
    /// What the handles of its slots need of the store: they are small because it stands here once.
    hub: Arc<Hub>,
}

impl Page {
    fn new(number: usize, hub: Arc<Hub>) -> Self {
        let shards = hub.tops.len();
        Self {
            slots: (0..PAGE_SLOTS).map(|_| Slot::new()).collect(),
            dirty: (0..PAGE_WORDS * shards).map(|_| AtomicU64::new(0)).collect(),
            summary: (0..shards).map(|_| AtomicU64::new(0)).collect(),
            number,
            hub,
        }
    }

    pub(crate) fn slot(&self, at: usize) -> Option<&Slot> {
        self.slots.get(at)
    }

    /// Takes the dirty bits of a shard, word by word.
    pub(crate) fn take_dirty(&self, shard: usize, mut each: impl FnMut(usize)) {
        let Some(summary) = self.summary.get(shard) else { return };
        let mut words = summary.swap(0, Ordering::AcqRel);
        while words != 0 {
            let word_index = words.trailing_zeros() as usize;
            words &= words - 1;
            let Some(word) = self.dirty.get(shard * PAGE_WORDS + word_index) else { continue };
            let mut bits = word.swap(0, Ordering::AcqRel);
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                each(word_index * 64 + bit);
            }
        }
    }

    /// Stores a value in a slot of this page and tells the watching shards.
    #[inline]
    fn set(&self, index: u32, value: Variant, status: StatusCode, source: UtcTime, server: UtcTime) {
        let Some(slot) = self.slot(index as usize % PAGE_SLOTS) else { return };
        let (_, watchers) = slot.write(value, status, source, server);
        if watchers != 0 {
            self.hub.notify(self, slot, index, watchers);
        }
    }

    /// Sets a slot's dirty bit bottom-up: whoever turns a word from zero also marks the level above, so a shard that
    /// drains top-down either sees the bit or is told again.
    #[inline]
    fn mark(&self, at: usize, shard: usize, top: &DirtyTop) {
        let word_index = at / 64;
        let Some(word) = self.dirty.get(shard * PAGE_WORDS + word_index) else { return };
        if word.fetch_or(1 << (at % 64), Ordering::AcqRel) == 0 {
            let Some(summary) = self.summary.get(shard) else { return };
            if summary.fetch_or(1 << word_index, Ordering::AcqRel) == 0 {
                top.mark(self.number);
            }
        }
    }
}

/// A change that must not be overtaken by a newer one.
#[derive(Debug, Clone)]
pub(crate) enum QueuedChange {
    /// A value, for items with a queue.
    Value {
        /// The slot that was written.
        slot: u32,
        /// What was written.
        value: Snapshot,
    },
    /// A property that gives the slot's variable its meaning has changed.
    Semantics {
        /// The variable's slot.
        slot: u32,
    },
}

/// What wakes a sleeping shard; the driver provides it.
pub trait Wake: Send + Sync {
    /// Makes the shard's driver take a turn soon. Cheap and callable from any thread.
    fn wake(&self);
}

/// All slots of a server and the change sets of its shards.
pub(crate) struct SlotStore {
    pages: RwLock<Vec<Arc<Page>>>,
    page_count: core::sync::atomic::AtomicUsize,
    hub: Arc<Hub>,
}

/// The change sets of all shards, and which slots are free.
struct Hub {
    tops: Box<[ShardChanges]>,
    next: std::sync::Mutex<Allocator>,
}

#[derive(Default)]
struct Allocator {
    next: u32,
    free: Vec<u32>,
}

/// What writers tell one shard.
pub(crate) struct ShardChanges {
    top: DirtyTop,
    /// Values for items that queue; when it is full the newest are dropped and [`Self::overflowed`] says so.
    queued: crossbeam_queue::ArrayQueue<QueuedChange>,
    overflowed: core::sync::atomic::AtomicBool,
    waker: ArcSwapOption<Box<dyn Wake>>,
}

impl core::fmt::Debug for Hub {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Hub").field("shards", &self.tops.len()).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for SlotStore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SlotStore").field("shards", &self.hub.tops.len()).finish_non_exhaustive()
    }
}

impl SlotStore {
    pub(crate) fn new(shards: usize, queue_len: usize) -> Self {
        let shards = shards.clamp(1, SHARDS_MAX);
        Self {
            pages: RwLock::new(Vec::new()),
            page_count: core::sync::atomic::AtomicUsize::new(0),
            hub: Arc::new(Hub {
                tops: (0..shards)
                    .map(|_| ShardChanges {
                        top: DirtyTop::new(),
                        queued: crossbeam_queue::ArrayQueue::new(queue_len.max(1)),
                        overflowed: core::sync::atomic::AtomicBool::new(false),
                        waker: ArcSwapOption::empty(),
                    })
                    .collect(),
                next: std::sync::Mutex::default(),
            }),
        }
    }

    pub(crate) fn set_waker(&self, shard: usize, waker: Box<dyn Wake>) {
        if let Some(changes) = self.hub.tops.get(shard) {
            changes.waker.store(Some(Arc::new(waker)));
        }
    }

    /// A fresh slot, null and with Bad_WaitingForInitialData.
    pub(crate) fn allocate(&self) -> SlotHandle {
        let index = {
            let mut allocator = lock(&self.hub.next);
            allocator.free.pop().unwrap_or_else(|| {
                let index = allocator.next;
                allocator.next += 1;
                index
            })
        };
        let number = index as usize / PAGE_SLOTS;
        let mut pages = self.pages.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        while pages.len() <= number {
            let page = Arc::new(Page::new(pages.len(), Arc::clone(&self.hub)));
            pages.push(page);
        }
        self.page_count.store(pages.len(), Ordering::Release);
        let page = Arc::clone(&pages[number]);
        drop(pages);
        // One owner is the node, the other the handle.
        page.slots[index as usize % PAGE_SLOTS].owners.store(2, Ordering::Relaxed);
        let handle = SlotHandle { page, index };
        let null = UtcTime::NULL;
        handle.slot().write(Variant::Empty, StatusCode::BAD_WAITING_FOR_INITIAL_DATA, null, null);
        handle
    }

    /// The slot's node is gone. The slot serves another node as soon as nobody else holds it.
    pub(crate) fn disown(&self, index: u32) {
        // A handle is taken and dropped with the node's share in place of its own.
        if let Some(handle) = self.handle(index) {
            handle.slot().owners.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// How many pages there are, without waiting for a lock in the common case.
    pub(crate) fn page_count(&self) -> usize {
        self.page_count.load(Ordering::Acquire)
    }

    /// The pages from `from` on, for a shard's own list.
    pub(crate) fn pages_from(&self, from: usize) -> Vec<Arc<Page>> {
        let pages = self.pages.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        pages.get(from..).unwrap_or_default().to_vec()
    }

    pub(crate) fn handle(&self, index: u32) -> Option<SlotHandle> {
        let pages = self.pages.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let page = Arc::clone(pages.get(index as usize / PAGE_SLOTS)?);
        drop(pages);
        page.slots[index as usize % PAGE_SLOTS].owners.fetch_add(1, Ordering::AcqRel);
        Some(SlotHandle { page, index })
    }

    pub(crate) fn shards(&self) -> usize {
        self.hub.tops.len()
    }

    /// Stores a value in a slot of `page` and tells the watching shards. For callers that keep the slot's node from
    /// going away meanwhile; all others have a handle.
    #[inline]
    pub(crate) fn set_in(
        &self,
        page: &Page,
        index: u32,
        value: Variant,
        status: StatusCode,
        source: UtcTime,
        server: UtcTime,
    ) {
        page.set(index, value, status, source, server);
    }

    /// The numbers of the pages that have dirty slots for a shard.
    pub(crate) fn take_dirty_pages(&self, shard: usize, page_count: usize, each: impl FnMut(usize)) {
        if let Some(changes) = self.hub.tops.get(shard) {
            changes.top.take(page_count, each);
        }
    }

    /// The next value for items that queue.
    pub(crate) fn pop_queued(&self, shard: usize) -> Option<QueuedChange> {
        self.hub.tops.get(shard)?.queued.pop()
    }

    /// Whether queued values were dropped since the last call.
    pub(crate) fn take_overflowed(&self, shard: usize) -> bool {
        self.hub.tops.get(shard).is_some_and(|changes| changes.overflowed.swap(false, Ordering::AcqRel))
    }
}

impl Hub {
    fn release(&self, index: u32) {
        lock(&self.next).free.push(index);
    }

    fn notify(&self, page: &Page, slot: &Slot, index: u32, watchers: u64) {
        let mut shards = watchers & !QUEUED;
        while shards != 0 {
            let shard = shards.trailing_zeros() as usize;
            shards &= shards - 1;
            let Some(changes) = self.tops.get(shard) else { continue };
            if watchers & QUEUED != 0 {
                let change = QueuedChange::Value { slot: index, value: slot.read() };
                if changes.queued.push(change).is_err() {
                    changes.overflowed.store(true, Ordering::Release);
                }
                if changes.queued.len() * 2 >= changes.queued.capacity() {
                    if let Some(waker) = &*changes.waker.load() {
                        waker.wake();
                    }
                }
            }
            page.mark(index as usize % PAGE_SLOTS, shard, &changes.top);
        }
    }
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A writer's and reader's handle to one slot, from any thread. It keeps the slot from serving another node.
#[derive(Debug)]
pub(crate) struct SlotHandle {
    page: Arc<Page>,
    index: u32,
}

impl Clone for SlotHandle {
    fn clone(&self) -> Self {
        self.slot().owners.fetch_add(1, Ordering::AcqRel);
        Self { page: Arc::clone(&self.page), index: self.index }
    }
}

impl Drop for SlotHandle {
    fn drop(&mut self) {
        if self.slot().owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.page.hub.release(self.index);
        }
    }
}

impl SlotHandle {
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    #[inline]
    fn slot(&self) -> &Slot {
        &self.page.slots[self.index as usize % PAGE_SLOTS]
    }

    #[inline]
    pub(crate) fn read(&self) -> Snapshot {
        self.slot().read()
    }

    /// Stores a value and tells the watching shards.
    #[inline]
    pub(crate) fn set(&self, value: Variant, status: StatusCode, source: UtcTime, server: UtcTime) {
        self.page.set(self.index, value, status, source, server);
    }

    /// Changes the value to what `change` makes of it, with no other write in between; `change` runs again when there
    /// was one. An error is the first one of `change`, or Bad_ResourceUnavailable when others write all the time.
    pub(crate) fn update(
        &self,
        status: StatusCode,
        source: UtcTime,
        server: UtcTime,
        mut change: impl FnMut(Variant) -> Result<Variant, StatusCode>,
    ) -> Result<(), StatusCode> {
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let (present, seq) = self.slot().read_with_seq();
            let value = change(present.value())?;
            if self.slot().enter(seq) {
                let (_, watchers) = self.slot().write_inside(seq, value, status, source, server);
                if watchers != 0 {
                    self.page.hub.notify(&self.page, self.slot(), self.index, watchers);
                }
                return Ok(());
            }
        }
        Err(StatusCode::BAD_RESOURCE_UNAVAILABLE)
    }

    /// Tells the watching shards that the variable's values mean something else from now on.
    pub(crate) fn semantics_changed(&self) {
        let watchers = self.slot().watchers.load(Ordering::Acquire) & !QUEUED;
        for (shard, changes) in self.page.hub.tops.iter().enumerate() {
            if watchers >> shard & 1 == 0 {
                continue;
            }
            if changes.queued.push(QueuedChange::Semantics { slot: self.index }).is_err() {
                changes.overflowed.store(true, Ordering::Release);
            }
            self.page.mark(self.index as usize % PAGE_SLOTS, shard, &changes.top);
        }
    }

    /// Starts or stops telling a shard about writes.
    pub(crate) fn set_watched(&self, shard: usize, watched: bool) {
        let bit = 1u64 << shard;
        if watched {
            if self.slot().watchers.fetch_or(bit, Ordering::SeqCst) & bit == 0 {
                self.slot().owners.fetch_add(1, Ordering::AcqRel);
            }
        } else if self.slot().watchers.fetch_and(!bit, Ordering::SeqCst) & bit != 0 {
            // This handle is an owner too, so the last one is never taken here.
            self.slot().owners.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Starts or stops handing every single value over.
    pub(crate) fn set_queued(&self, queued: bool) {
        if queued {
            self.slot().watchers.fetch_or(QUEUED, Ordering::SeqCst);
        } else {
            self.slot().watchers.fetch_and(!QUEUED, Ordering::SeqCst);
        }
    }

    /// Marks the slot dirty for one shard, as if it had been written: closes the race between the start of watching
    /// and a write in flight.
    pub(crate) fn touch(&self, shard: usize) {
        if let Some(changes) = self.page.hub.tops.get(shard) {
            self.page.mark(self.index as usize % PAGE_SLOTS, shard, &changes.top);
        }
    }
}

#[cfg(test)]
mod tests;
