//! What streams have not sent yet: the newest state of each of their nodes, and no older one.
//!
//! A task puts every change here as soon as it arrives, so that nothing queues up in the client for a page that does not read. The
//! size of one stream is limited by its number of nodes and the length of values. The size of all streams together is limited too:
//! beyond it, the stream with the largest backlog ends. A page opens it again if it still reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk::StatusCode;
use tokio::sync::Notify;

/// Maximum size of all backlogs together, in bytes.
pub(crate) const TOTAL_MAX: usize = 32 << 20;
/// Bytes of an entry in addition to its content: the entry in the map.
const ENTRY: usize = 128;

/// The state of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeState {
    /// The value as JSON.
    pub(crate) content: Box<[u8]>,
    /// Its status.
    pub(crate) status: StatusCode,
    /// Its time in milliseconds since 1970.
    pub(crate) time: i64,
}

impl NodeState {
    fn size(&self) -> usize {
        ENTRY + self.content.len()
    }
}

/// One stream.
#[derive(Debug, Default)]
struct Waiting {
    nodes: BTreeMap<usize, NodeState>,
    size: usize,
    /// Where the next message begins, so that nodes that change often do not hold back the others.
    next: usize,
    /// Whether nothing more comes.
    is_over: bool,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct All {
    streams: BTreeMap<u64, Waiting>,
    last: u64,
    size: usize,
    /// Number of streams that ended because of [`Backlogs::max`].
    ended: u64,
}

impl All {
    /// Ends the stream with the largest backlog.
    fn end_largest(&mut self) {
        let largest = self.streams.values_mut().max_by_key(|waiting| waiting.size);
        let Some(waiting) = largest.filter(|waiting| waiting.size > 0) else { return };
        self.size -= core::mem::take(&mut waiting.size);
        waiting.nodes.clear();
        waiting.is_over = true;
        waiting.changed.notify_one();
        self.ended += 1;
    }
}

/// The backlogs of all streams.
#[derive(Debug)]
pub(crate) struct Backlogs {
    max: usize,
    all: Mutex<All>,
}

/// Counts for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Open streams.
    pub(crate) streams: usize,
    /// Size of their backlogs in bytes.
    pub(crate) bytes: usize,
    /// Streams that ended because all backlogs together were too large.
    pub(crate) ended: u64,
}

/// Adds to a backlog. Dropping it ends the stream after what waits.
#[derive(Debug)]
pub(crate) struct Feeder {
    of: Arc<Backlogs>,
    id: u64,
}

/// Takes from a backlog. Dropping it removes the backlog.
#[derive(Debug)]
pub(crate) struct Reader {
    of: Arc<Backlogs>,
    id: u64,
    changed: Arc<Notify>,
}

impl Backlogs {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, all: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A backlog for a new stream.
    pub(crate) fn open(of: &Arc<Self>) -> (Feeder, Reader) {
        let mut all = of.lock();
        all.last += 1;
        let id = all.last;
        let changed = Arc::clone(&all.streams.entry(id).or_default().changed);
        drop(all);
        (Feeder { of: Arc::clone(of), id }, Reader { of: Arc::clone(of), id, changed })
    }

    pub(crate) fn counts(&self) -> Counts {
        let all = self.lock();
        Counts { streams: all.streams.len(), bytes: all.size, ended: all.ended }
    }
}

impl Feeder {
    /// Stores the state of a node, by its position in the stream. It replaces an older state that was not sent. `false` if the stream
    /// has ended.
    pub(crate) fn put(&self, position: usize, state: NodeState) -> bool {
        let mut guard = self.of.lock();
        let all = &mut *guard;
        let Some(waiting) = all.streams.get_mut(&self.id).filter(|waiting| !waiting.is_over) else {
            return false;
        };
        let added = state.size();
        let replaced = waiting.nodes.insert(position, state).map_or(0, |old| old.size());
        waiting.size = waiting.size + added - replaced;
        all.size = all.size + added - replaced;
        waiting.changed.notify_one();
        while all.size > self.of.max {
            all.end_largest();
        }
        all.streams.get(&self.id).is_some_and(|waiting| !waiting.is_over)
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        if let Some(waiting) = self.of.lock().streams.get_mut(&self.id) {
            waiting.is_over = true;
            waiting.changed.notify_one();
        }
    }
}

impl Reader {
    /// Waits until there is something and takes it, up to about this size in bytes. `None` if the stream has ended.
    pub(crate) async fn take(&mut self, size_max: usize) -> Option<Vec<(usize, NodeState)>> {
        loop {
            if let Some(taken) = self.take_now(size_max) {
                return (!taken.is_empty()).then_some(taken);
            }
            self.changed.notified().await;
        }
    }

    /// `None` if nothing is there yet; empty if the stream has ended.
    fn take_now(&mut self, size_max: usize) -> Option<Vec<(usize, NodeState)>> {
        let mut guard = self.of.lock();
        let all = &mut *guard;
        let Some(waiting) = all.streams.get_mut(&self.id) else { return Some(Vec::new()) };
        if waiting.nodes.is_empty() {
            return waiting.is_over.then(Vec::new);
        }
        let (mut taken, mut size) = (Vec::new(), 0);
        while size < size_max {
            let at = waiting.nodes.range(waiting.next..).next().map(|(position, _)| *position);
            // From the first again.
            let Some(position) = at.or_else(|| waiting.nodes.keys().next().copied()) else { break };
            let Some(state) = waiting.nodes.remove(&position) else { break };
            waiting.next = position + 1;
            size += state.size();
            taken.push((position, state));
        }
        waiting.size -= size;
        all.size -= size;
        Some(taken)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut all = self.of.lock();
        if let Some(waiting) = all.streams.remove(&self.id) {
            all.size -= waiting.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(number: usize, len: usize) -> NodeState {
        let content = format!("{number:0len$}").into_bytes().into();
        NodeState { content, status: StatusCode::GOOD, time: 0 }
    }

    #[tokio::test]
    async fn newer_states_replace_older_ones_that_were_not_sent() {
        let backlogs = Backlogs::new(TOTAL_MAX);
        let (feeder, mut reader) = Backlogs::open(&backlogs);
        // Nobody reads while each node changes a thousand times.
        for number in 0..1_000 {
            for position in 0..50 {
                assert!(feeder.put(position, state(number, 10)));
            }
        }
        assert_eq!(backlogs.counts(), Counts { streams: 1, bytes: 50 * (ENTRY + 10), ended: 0 });
        let taken = reader.take(usize::MAX).await.unwrap();
        let newest: Vec<(usize, NodeState)> = (0..50).map(|position| (position, state(999, 10))).collect();
        assert_eq!(taken, newest);
        assert_eq!(backlogs.counts().bytes, 0);
        drop(feeder);
        assert_eq!(reader.take(1).await, None);
        drop(reader);
        assert_eq!(backlogs.counts().streams, 0);
    }

    #[tokio::test]
    async fn nodes_that_change_often_do_not_hold_back_others() {
        let backlogs = Backlogs::new(TOTAL_MAX);
        let (feeder, mut reader) = Backlogs::open(&backlogs);
        let mut seen = std::collections::BTreeSet::new();
        assert!((0..10).all(|position| feeder.put(position, state(0, 1))));
        for number in 1..=10 {
            let taken = reader.take(1).await.unwrap();
            assert_eq!(taken.len(), 1);
            seen.insert(taken[0].0);
            feeder.put(0, state(number, 1));
        }
        assert_eq!(seen.len(), 10);
    }

    #[tokio::test]
    async fn all_streams_together_are_limited_and_the_one_that_is_not_read_ends() {
        let backlogs = Backlogs::new(100 * (ENTRY + 10));
        let (slow, mut slow_reader) = Backlogs::open(&backlogs);
        let (quick, mut quick_reader) = Backlogs::open(&backlogs);
        for number in 0..2 {
            for position in 0..60 {
                slow.put(position, state(number, 10));
                assert!(quick.put(position, state(number, 10)));
                assert!(quick_reader.take(usize::MAX).await.is_some());
                assert!(backlogs.counts().bytes <= 100 * (ENTRY + 10));
            }
        }
        assert_eq!(backlogs.counts().ended, 0);
        // A second one that does not read: the larger one of both ends.
        let (other, _other_reader) = Backlogs::open(&backlogs);
        assert!((0..50).all(|position| other.put(position, state(0, 10))));
        assert_eq!(backlogs.counts().ended, 1);
        assert!(!slow.put(0, state(0, 10)) && quick.put(0, state(0, 10)) && other.put(0, state(0, 10)));
        assert_eq!(slow_reader.take(1).await, None);
        drop(slow_reader);
        drop(slow);
        assert_eq!(backlogs.counts(), Counts { streams: 2, bytes: 51 * (ENTRY + 10), ended: 1 });
    }
}
