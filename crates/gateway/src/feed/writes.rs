//! What clients write, on its way to the source.

use super::Feed;
use crate::statistics::Count;
use taktwerk_types::Variant;
use tokio::sync::mpsc;

/// A value on its way to a source, as the source understands it.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The tag.
    pub position: usize,
    /// The value, scaled back.
    pub value: Variant,
}

/// What clients write.
#[derive(Debug)]
pub struct Writes(pub(super) mpsc::Receiver<Write>);

impl Writes {
    /// The next write.
    pub async fn next(&mut self) -> Write {
        match self.0.recv().await {
            Some(write) => write,
            // The feed, which holds the other end, outlives the source's task.
            None => core::future::pending().await,
        }
    }

    /// A write that waits.
    pub fn try_next(&mut self) -> Option<Write> {
        self.0.try_recv().ok()
    }

    /// Throws away what waits: nobody knows when the source returns, and by then these would be old wishes.
    pub fn discard(&mut self, feed: &Feed) {
        let mut count = 0;
        while self.0.try_recv().is_ok() {
            count += 1;
        }
        feed.statistics().add(Count::WriteErrors, count);
    }
}
