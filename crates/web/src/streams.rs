//! Limits of open value streams, by visitor and address.

use crate::rate_limit::counted;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of streams of one visitor.
const OF_VISITOR: usize = 8;
/// Maximum number of streams of all anonymous visitors together, because they share one session.
const OF_ANONYMOUS: usize = 64;
/// Maximum number of anonymous streams per address. Loopback is exempt, because a reverse proxy has the streams of many
/// browsers.
const OF_ADDRESS: usize = 16;

/// Maximum number of nodes of all streams of a session. The client and the server keep each of them.
const NODES: usize = 100_000;

/// The open streams of one session.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    by_address: BTreeMap<IpAddr, usize>,
    nodes: usize,
}

/// An open stream. Dropping it ends the count.
#[derive(Debug)]
pub(crate) struct Stream {
    of: Arc<Streams>,
    address: IpAddr,
    nodes: usize,
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no stream is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().by_address.is_empty()
    }

    /// Counts a new stream; `None` if a limit is reached.
    pub(crate) fn open(
        self: &Arc<Self>,
        address: IpAddr,
        is_anonymous: bool,
        nodes: usize,
    ) -> Option<Stream> {
        let address = counted(address);
        let mut open = self.lock();
        let max = if is_anonymous { OF_ANONYMOUS } else { OF_VISITOR };
        let of_address = if is_anonymous && !address.is_loopback() { OF_ADDRESS } else { max };
        let all: usize = open.by_address.values().sum();
        let is_full = all >= max || open.nodes + nodes > NODES;
        if is_full || open.by_address.get(&address).is_some_and(|count| *count >= of_address) {
            return None;
        }
        *open.by_address.entry(address).or_default() += 1;
        open.nodes += nodes;
        Some(Stream { of: Arc::clone(self), address, nodes })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut open = self.of.lock();
        open.nodes -= self.nodes;
        if let Some(count) = open.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_use_all_anonymous_streams() {
        let streams = Arc::new(Streams::default());
        let open = |last: u8, is_anonymous| streams.open(IpAddr::from([192, 0, 2, last]), is_anonymous, 100);
        let mut held: Vec<Stream> = (0..OF_ADDRESS).map(|_| open(1, true).unwrap()).collect();
        assert!(open(1, true).is_none());
        held.extend((0..OF_ADDRESS).map(|_| open(2, true).unwrap()));
        held.pop();
        assert!(open(2, true).is_some());
        held.clear();
        assert!(streams.is_empty());
        // A local proxy may have all.
        let local: Vec<Option<Stream>> =
            (0..=OF_ANONYMOUS).map(|_| streams.open(IpAddr::from([127, 0, 0, 1]), true, 100)).collect();
        assert_eq!(local.iter().flatten().count(), OF_ANONYMOUS);
        drop(local);
        let own: Vec<Option<Stream>> = (0..=OF_VISITOR).map(|_| open(1, false)).collect();
        assert_eq!(own.iter().flatten().count(), OF_VISITOR);
    }

    #[test]
    fn the_nodes_of_all_streams_are_limited() {
        let streams = Arc::new(Streams::default());
        let open = |nodes| streams.open(IpAddr::from([127, 0, 0, 1]), true, nodes);
        let large = open(NODES - 10).unwrap();
        let small = open(10).unwrap();
        assert!(open(1).is_none());
        drop(small);
        assert!(open(11).is_none() && open(10).is_some());
        drop(large);
        assert!(open(NODES).is_some());
    }
}
