//! Changed slots: one bit per slot, one per word of slots, one per page, for each shard.
//!
//! Bits are set bottom-up: setting the first bit of a word also marks the level above. They are taken top-down. So a
//! shard that takes bits either sees a new one or finds a new mark later.

use crate::sync::AtomicU64;
use core::sync::atomic::Ordering;

/// Words of the top level. Page numbers beyond `64 * WORDS` share bits, which costs extra checks but loses nothing.
const WORDS: usize = if cfg!(loom) { 1 } else { 64 };

/// One bit per page of slots.
#[derive(Debug)]
pub(crate) struct DirtyTop {
    words: Box<[AtomicU64]>,
}

impl DirtyTop {
    pub(crate) fn new() -> Self {
        Self { words: (0..WORDS).map(|_| AtomicU64::new(0)).collect() }
    }

    #[inline]
    pub(crate) fn mark(&self, page: usize) {
        if let Some(word) = self.words.get(page / 64 % WORDS) {
            word.fetch_or(1 << (page % 64), Ordering::AcqRel);
        }
    }

    /// Takes all marks. Calls `each` with every page number below `page_count` that a mark may represent.
    pub(crate) fn take(&self, page_count: usize, mut each: impl FnMut(usize)) {
        for (index, word) in self.words.iter().enumerate() {
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            each_bit(word.swap(0, Ordering::AcqRel), |bit| {
                let mut page = index * 64 + bit;
                while page < page_count {
                    each(page);
                    page += 64 * WORDS;
                }
            });
        }
    }
}

/// One bit per slot of a page and shard.
#[derive(Debug)]
pub(crate) struct SlotBits {
    /// `words_per_shard` words per shard, at most 64.
    words: Box<[AtomicU64]>,
    /// One word per shard: a bit for each of its non-zero words.
    summary: Box<[AtomicU64]>,
    words_per_shard: usize,
}

impl SlotBits {
    pub(crate) fn new(slots: usize, shards: usize) -> Self {
        let words_per_shard = slots.div_ceil(64);
        Self {
            words: (0..words_per_shard * shards).map(|_| AtomicU64::new(0)).collect(),
            summary: (0..shards).map(|_| AtomicU64::new(0)).collect(),
            words_per_shard,
        }
    }

    /// Sets a slot's bit. Returns whether the shard had no bit set before.
    #[inline]
    pub(crate) fn mark(&self, at: usize, shard: usize) -> bool {
        let index = at / 64;
        let (Some(word), Some(summary)) =
            (self.words.get(shard * self.words_per_shard + index), self.summary.get(shard))
        else {
            return false;
        };
        word.fetch_or(1 << (at % 64), Ordering::AcqRel) == 0
            && summary.fetch_or(1 << index, Ordering::AcqRel) == 0
    }

    /// Takes a shard's bits, word by word.
    #[inline]
    pub(crate) fn take(&self, shard: usize, mut each: impl FnMut(usize)) {
        let Some(summary) = self.summary.get(shard) else { return };
        if summary.load(Ordering::Relaxed) == 0 {
            return;
        }
        each_bit(summary.swap(0, Ordering::AcqRel), |index| {
            let Some(word) = self.words.get(shard * self.words_per_shard + index) else { return };
            each_bit(word.swap(0, Ordering::AcqRel), |bit| each(index * 64 + bit));
        });
    }
}

#[inline]
fn each_bit(mut bits: u64, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
