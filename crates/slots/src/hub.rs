//! What all pages of a store share: the change sets of the shards, and the free slots.

use crate::dirty::DirtyTop;
use crate::slot::Snapshot;
use crate::sync::{AtomicBool, Ring};
use arc_swap::ArcSwapOption;
use core::fmt;
use core::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// How often a waiting thread retries before it yields.
pub(crate) const SPINS: u32 = 64;

/// A write for items with a queue; later writes must not overtake it.
#[derive(Debug, Clone)]
pub struct QueuedValue {
    /// The slot that was written. It may have belonged to another node then; the write number tells.
    pub slot: u32,
    /// The written value.
    pub value: Snapshot,
}

/// Wakes a sleeping shard; the driver provides it.
pub trait Wake: Send + Sync {
    /// Makes the shard's driver take a turn soon. Cheap and callable from any thread.
    fn wake(&self);
}

/// The change sets of all shards, and the free slots.
pub(crate) struct Hub {
    pub(crate) shards: Box<[ShardChanges]>,
    /// The number of the history recorder among the shards.
    pub(crate) recorder: Option<usize>,
    pub(crate) free: Mutex<Allocator>,
    /// Yields to other threads; the number increases with the waiting time.
    pub(crate) pause: OnceLock<fn(u32)>,
}

/// Indexes that were never used, and those that are free again.
#[derive(Default)]
pub(crate) struct Allocator {
    pub(crate) next: u32,
    pub(crate) free: Vec<u32>,
}

/// Notifications from writers to one shard.
pub(crate) struct ShardChanges {
    pub(crate) top: DirtyTop,
    /// Values for items with a queue. When it is full, the newest are dropped: their items miss a write number, or find
    /// their slot dirty with another value in it.
    pub(crate) queued: Ring<QueuedValue>,
    /// The queue is half full, and the shard was woken.
    pub(crate) pressed: AtomicBool,
    pub(crate) waker: ArcSwapOption<Box<dyn Wake>>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

impl Hub {
    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    #[inline]
    pub(crate) fn recorder(&self) -> Option<usize> {
        self.recorder
    }

    /// The indexes of free slots.
    pub(crate) fn free(&self) -> MutexGuard<'_, Allocator> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called at each retry by a thread that waits for a writer.
    pub(crate) fn pause(&self, count: u32) {
        #[cfg(loom)]
        loom::thread::yield_now();
        match self.pause.get() {
            Some(pause) if count >= SPINS => pause(count - SPINS),
            _ => core::hint::spin_loop(),
        }
    }

    #[inline]
    pub(crate) fn mark(&self, shard: usize, page: usize) {
        if let Some(changes) = self.shards.get(shard) {
            changes.top.mark(page);
        }
    }

    /// Hands a value over to a shard unless its queue is full. Returns whether the shard must be woken.
    pub(crate) fn push(&self, shard: usize, value: QueuedValue) -> bool {
        let Some(changes) = self.shards.get(shard) else { return false };
        let full = changes.queued.push(value).is_err();
        (full || changes.queued.len() * 2 >= changes.queued.capacity())
            && !changes.pressed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn wake(&self, shard: usize) {
        if let Some(changes) = self.shards.get(shard)
            && let Some(waker) = &*changes.waker.load()
        {
            waker.wake();
        }
    }
}
