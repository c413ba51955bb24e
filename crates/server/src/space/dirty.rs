//! The top of a shard's dirty set: which pages of slots have changed.

use core::sync::atomic::{AtomicU64, Ordering};

/// Words of the top level; page numbers beyond `64 * WORDS` share bits, which costs an empty look, never a loss.
const WORDS: usize = 64;

/// One bit per page of slots.
#[derive(Debug)]
pub(crate) struct DirtyTop {
    words: [AtomicU64; WORDS],
}

impl DirtyTop {
    pub(crate) fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; WORDS] }
    }

    #[inline]
    pub(crate) fn mark(&self, page: usize) {
        self.words[page / 64 % WORDS].fetch_or(1 << (page % 64), Ordering::AcqRel);
    }

    /// Takes all marks; calls `each` with every page number below `page_count` that a mark may stand for.
    pub(crate) fn take(&self, page_count: usize, mut each: impl FnMut(usize)) {
        for (index, word) in self.words.iter().enumerate() {
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = word.swap(0, Ordering::AcqRel);
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let mut page = index * 64 + bit;
                while page < page_count {
                    each(page);
                    page += 64 * WORDS;
                }
            }
        }
    }
}
