//! Clients' writes on their way to the source.

use super::Feed;
use crate::statistics::Count;
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

/// The queue of clients' writes.
#[derive(Debug)]
pub struct Writes(pub(super) mpsc::Receiver<Write>);

impl Writes {
    /// The next write.
    pub async fn next(&mut self) -> Write {
        match self.0.recv().await {
            Some(write) => write,
            // Does not happen while the source runs: the feed holds the other end.
            None => core::future::pending().await,
        }
    }

    /// The next queued write, if any.
    pub fn try_next(&mut self) -> Option<Write> {
        self.0.try_recv().ok()
    }

    /// Drops queued writes: when the source returns at some later time they would be outdated.
    pub fn discard(&mut self, feed: &Feed) {
        let mut count = 0;
        while self.0.try_recv().is_ok() {
            count += 1;
        }
        feed.statistics().add(Count::WriteErrors, count);
    }
}
