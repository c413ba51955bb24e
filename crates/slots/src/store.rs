//! All slots of a server: allocation, ownership, and notification of shards.

use crate::dirty::DirtyTop;
use crate::hub::{Hub, QueuedValue, SPINS, ShardChanges, Wake};
use crate::page::{PAGE_SLOTS, Page};
use crate::slot::{SHARDS_MAX, Snapshot};
use crate::sync::{AtomicBool, Ring};
use arc_swap::ArcSwapOption;
use core::fmt;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// A share of a slot. While one exists, the slot is not reused. It is as small as an index, so it must be returned
/// explicitly with [`SlotStore::release`]. A [`SlotHandle`] does that when it is dropped.
#[derive(Debug, PartialEq, Eq)]
pub struct SlotShare(NonZeroU32);

impl SlotShare {
    /// Indexes start at zero, shares at one.
    fn new(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    /// The slot's index, valid while the share is held.
    #[inline]
    pub fn index(&self) -> u32 {
        self.0.get() - 1
    }
}

/// All slots of a server and the change sets of its shards.
pub struct SlotStore {
    pages: RwLock<Vec<Arc<Page>>>,
    page_count: AtomicUsize,
    hub: Arc<Hub>,
    /// Number of shards. After them come the recorder, if there is one, and the alarms.
    shards: usize,
}

impl fmt::Debug for SlotStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotStore").field("shards", &self.hub.shards.len()).finish_non_exhaustive()
    }
}

impl SlotStore {
    /// Without slots, for this number of shards. Each keeps up to `queue_len` writes for items that want every value.
    #[must_use]
    pub fn new(shards: usize, queue_len: usize) -> Self {
        Self::with_recorder(shards, queue_len, None)
    }

    /// The same with a history recorder that has its own queue length. The last number always belongs to the alarms,
    /// which have no queue.
    pub fn with_recorder(shards: usize, queue_len: usize, recorder: Option<usize>) -> Self {
        let shards = shards.clamp(1, SHARDS_MAX - 1 - usize::from(recorder.is_some()));
        let rings = (0..shards).map(|_| Ring::new(queue_len.max(1)));
        // The recorder's queue must cover the latency of a disk.
        let rings = rings.chain(recorder.map(|len| Ring::growing(len.max(1)))).chain([Ring::new(1)]);
        let changes = rings.map(|queued| ShardChanges {
            top: DirtyTop::new(),
            queued,
            pressed: AtomicBool::new(false),
            waker: ArcSwapOption::empty(),
        });
        let recorder = recorder.map(|_| shards);
        let hub = Hub { shards: changes.collect(), recorder, free: Mutex::default(), pause: OnceLock::new() };
        Self { pages: RwLock::default(), page_count: AtomicUsize::new(0), hub: Arc::new(hub), shards }
    }

    /// The number of the history recorder among the shards.
    pub fn recorder(&self) -> Option<usize> {
        self.hub.recorder
    }

    /// The number of the alarms among the shards.
    pub fn alarms(&self) -> usize {
        self.hub.shards.len() - 1
    }

    /// Sets what wakes a shard.
    pub fn set_waker(&self, shard: usize, waker: Box<dyn Wake>) {
        if let Some(changes) = self.hub.shards.get(shard) {
            changes.waker.store(Some(Arc::new(waker)));
        }
    }

    /// Sets how a thread yields. Only the first call counts.
    pub fn set_pause(&self, pause: fn(u32)) {
        // A second server on the same address space runs on the same operating system.
        let _ = self.hub.pause.set(pause);
    }

    /// Makes a shard's driver take a turn soon.
    pub fn wake(&self, shard: usize) {
        self.hub.wake(shard);
    }

    /// Yields to other threads; the number increases with the waiting time.
    pub fn pause(&self, count: u32) {
        self.hub.pause(SPINS.saturating_add(count));
    }

    /// A new slot with null and Bad_WaitingForInitialData. Returns the share of its node.
    pub fn allocate(&self) -> SlotShare {
        let index = {
            let mut allocator = self.hub.free();
            allocator.free.pop().unwrap_or_else(|| {
                let index = allocator.next;
                allocator.next += 1;
                index
            })
        };
        let page = self.page_of(index);
        page.slot(index).owners.store(1, Ordering::Relaxed);
        page.open(index);
        SlotShare::new(index)
    }

    /// The page for an index, created if necessary.
    fn page_of(&self, index: u32) -> Arc<Page> {
        let number = index as usize / PAGE_SLOTS;
        let known = self.pages.read().unwrap_or_else(PoisonError::into_inner).get(number).cloned();
        known.unwrap_or_else(|| self.add_pages(index))
    }

    /// Adds pages up to the one for an index.
    fn add_pages(&self, index: u32) -> Arc<Page> {
        let number = index as usize / PAGE_SLOTS;
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        while pages.len() <= number {
            let page = Arc::new(Page::new(pages.len(), Arc::clone(&self.hub)));
            pages.push(page);
        }
        self.page_count.store(pages.len(), Ordering::Release);
        Arc::clone(&pages[number])
    }

    /// Returns a share. After the last one the slot can be reused.
    pub fn release(&self, share: SlotShare) {
        self.page_of(share.index()).release(share);
    }

    /// A handle to a slot, with its own share.
    pub fn handle(&self, share: &SlotShare) -> SlotHandle {
        SlotHandle::new(self.page_of(share.index()), share.index())
    }

    /// Number of pages, usually without waiting for a lock.
    pub fn page_count(&self) -> usize {
        self.page_count.load(Ordering::Acquire)
    }

    /// The pages from `from` on, for a shard's own list.
    pub fn pages_from(&self, from: usize) -> Vec<Arc<Page>> {
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        pages.get(from..).unwrap_or_default().to_vec()
    }

    /// Number of shards, without the recorder and the alarms.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// The numbers of the pages that have dirty slots for a shard.
    pub fn take_dirty_pages(&self, shard: usize, page_count: usize, each: impl FnMut(usize)) {
        if let Some(changes) = self.hub.shards.get(shard) {
            changes.top.take(page_count, each);
        }
    }

    /// The next value for items with a queue.
    pub fn pop_queued(&self, shard: usize) -> Option<QueuedValue> {
        self.hub.shards.get(shard)?.queued.pop()
    }

    /// Number of values that wait for items with a queue.
    pub fn queued_len(&self, shard: usize) -> usize {
        self.hub.shards.get(shard).map_or(0, |changes| changes.queued.len())
    }

    /// Whether the queue became half full since the last call.
    #[inline]
    pub fn take_pressed(&self, shard: usize) -> bool {
        self.hub.shards.get(shard).is_some_and(|changes| {
            changes.pressed.load(Ordering::Relaxed) && changes.pressed.swap(false, Ordering::AcqRel)
        })
    }

    /// Number of free slots.
    #[must_use]
    pub fn free_slots(&self) -> usize {
        self.hub.free().free.len()
    }
}

impl Page {
    fn release(&self, share: SlotShare) {
        if self.slot(share.index()).owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.hub.free().free.push(share.index());
        }
    }
}

/// A handle for reading and writing one slot from any thread. It holds a share of the slot.
#[derive(Debug)]
pub struct SlotHandle {
    page: Arc<Page>,
    index: u32,
}

impl Clone for SlotHandle {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.page), self.index)
    }
}

impl Drop for SlotHandle {
    fn drop(&mut self) {
        self.page.release(SlotShare::new(self.index));
    }
}

impl SlotHandle {
    /// For callers that hold a share.
    fn new(page: Arc<Page>, index: u32) -> Self {
        page.slot(index).owners.fetch_add(1, Ordering::Relaxed);
        Self { page, index }
    }

    /// The index of the slot.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// A further share of the slot.
    pub fn share(&self) -> SlotShare {
        self.page.slot(self.index).owners.fetch_add(1, Ordering::Relaxed);
        SlotShare::new(self.index)
    }

    /// The value, whole and with its times.
    #[inline]
    #[must_use]
    pub fn read(&self) -> Snapshot {
        self.page.read(self.index)
    }

    /// Stores a value and notifies the watching shards.
    #[inline]
    pub fn set(&self, value: Variant, status: StatusCode, source: UtcTime, server: UtcTime) {
        self.page.set(self.index, value, status, source, server);
    }

    /// Stores a value like [`Self::set`], unless the slot was written since the given write number.
    pub fn set_since(&self, write: u32, value: Variant, status: StatusCode, times: (UtcTime, UtcTime)) {
        self.page.set_since(self.index, write, value, status, times);
    }

    /// Replaces the value atomically by the result of `change`, which is retried after an interfering write.
    ///
    /// # Errors
    /// The first one of `change`, or Bad_ResourceUnavailable if other writes always interfere.
    pub fn update(
        &self,
        status: StatusCode,
        source: UtcTime,
        server: UtcTime,
        change: impl FnMut(Variant) -> Result<Variant, StatusCode>,
    ) -> Result<(), StatusCode> {
        self.page.update(self.index, status, source, server, change)
    }

    /// Notifies the watching shards of a semantic change of the variable.
    pub fn semantics_changed(&self) {
        self.page.semantics_changed(self.index);
    }

    /// Whether the node was deleted.
    pub fn is_closed(&self) -> bool {
        self.page.is_gone(self.index)
    }

    /// The node was deleted: closes the slot for writes.
    pub fn close(&self) {
        self.page.close(self.index);
    }

    /// Starts or stops notifying a shard of writes.
    pub fn set_watched(&self, shard: usize, watched: bool) -> Snapshot {
        self.page.set_watched(self.index, shard, watched)
    }

    /// Starts or stops handing every write over to a shard.
    #[cfg(test)]
    pub(crate) fn set_queued(&self, shard: usize, queued: bool) -> Snapshot {
        self.page.set_queued(self.index, shard, queued)
    }

    /// Starts or stops recording every write.
    pub fn set_recorded(&self, recorder: usize, is_recorded: bool) -> Snapshot {
        self.page.set_recorded(self.index, recorder, is_recorded)
    }
}

// Two attributes: clippy relaxes its rules for tests only below a plain `cfg(test)`.
#[cfg(test)]
#[cfg(not(loom))]
mod tests;

#[cfg(test)]
#[cfg(loom)]
mod model;
