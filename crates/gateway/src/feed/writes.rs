//! Clients' writes on their way to the source.

use super::{Feed, Shared, lock};
use crate::statistics::Count;
use std::sync::Weak;
use taktwerk_types::Variant;
use tokio::sync::mpsc;

/// A write in the source's own terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The tag.
    pub position: usize,
    /// The value after reverse scaling.
    pub value: Variant,
}

/// A write with the generation of its variable.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) write: Write,
    pub(super) generation: u64,
}

/// The queue of clients' writes. Writes to variables that were removed in the meantime are dropped and counted as failed: another
/// variable may have their position.
pub struct Writes {
    pub(super) taken: mpsc::Receiver<Queued>,
    pub(super) shared: Weak<Shared>,
}

impl core::fmt::Debug for Writes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Writes").field("queued", &self.taken.len()).finish_non_exhaustive()
    }
}

impl Writes {
    /// The next write.
    pub async fn next(&mut self) -> Write {
        loop {
            match self.taken.recv().await {
                Some(queued) => {
                    if let Some(write) = self.current(queued) {
                        return write;
                    }
                }
                // Does not happen while the source runs: the feed holds the other end.
                None => core::future::pending().await,
            }
        }
    }

    /// The next queued write, if any.
    pub fn try_next(&mut self) -> Option<Write> {
        loop {
            let queued = self.taken.try_recv().ok()?;
            if let Some(write) = self.current(queued) {
                return Some(write);
            }
        }
    }

    /// The write, if its variable still has its position.
    fn current(&self, Queued { write, generation }: Queued) -> Option<Write> {
        let shared = self.shared.upgrade()?;
        if lock(&shared.held).get(write.position).is_some_and(|held| held.is_of(generation)) {
            return Some(write);
        }
        shared.statistics.add(Count::WriteErrors, 1);
        None
    }

    /// Drops queued writes: when the source returns at some later time they would be outdated.
    pub fn discard(&mut self, feed: &Feed) {
        let mut count = 0;
        while self.taken.try_recv().is_ok() {
            count += 1;
        }
        feed.statistics().add(Count::WriteErrors, count);
    }
}
