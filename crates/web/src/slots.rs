//! The limit of connections, and which connection is closed when the limit is reached.
//!
//! No address can lock out others. If all slots are used, a new connection replaces one of the address with the most
//! connections, unless its own address would then have as many. Otherwise it replaces one of its own address, or of an
//! address with as many. The connection that has been silent for longest is closed. Idle connections and those with an
//! incomplete request are closed first. A connection with a pending response is closed only for an address with fewer
//! connections, or after [`SILENT`].

use crate::rate_limit::counted;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Silence after which any other connection may replace this one. Streams are never silent for so long.
const SILENT: Duration = Duration::from_secs(20);
/// Number of addresses that loopback counts as, because a reverse proxy there has the connections of many browsers.
const LOOPBACK: usize = 16;

/// The last activity of a connection, and the number of its pending responses. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    begin: Instant,
    millis: Arc<AtomicU64>,
    pending: Arc<AtomicUsize>,
}

impl Activity {
    pub(crate) fn new(now: Instant) -> Self {
        Self { begin: now, millis: Arc::default(), pending: Arc::default() }
    }

    /// Records that data was sent or received.
    pub(crate) fn touch(&self, now: Instant) {
        let millis = now.saturating_duration_since(self.begin).as_millis();
        self.millis.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The last activity.
    fn last(&self) -> Instant {
        self.begin + Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }

    /// Whether a complete request has arrived that is not answered yet.
    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed) > 0
    }
}

/// The response to one request. It is pending from [`Self::begin`] until all clones are dropped.
#[derive(Debug, Clone)]
pub(crate) struct PendingResponse(Arc<Answer>);

#[derive(Debug)]
struct Answer {
    activity: Activity,
    has_begun: AtomicBool,
}

impl PendingResponse {
    pub(crate) fn new(activity: Activity) -> Self {
        Self(Arc::new(Answer { activity, has_begun: AtomicBool::new(false) }))
    }

    /// The request has arrived completely.
    pub(crate) fn begin(&self) {
        if !self.0.has_begun.swap(true, Ordering::Relaxed) {
            self.0.activity.pending.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if *self.has_begun.get_mut() {
            self.activity.pending.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A connection with a slot.
#[derive(Debug)]
struct Connection {
    address: IpAddr,
    activity: Activity,
    /// Dropping it closes the connection.
    _end: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct Taken {
    connections: BTreeMap<u64, Connection>,
    last: u64,
}

impl Taken {
    /// The connection to close for a new one of `address`.
    fn victim(&self, address: IpAddr, now: Instant) -> Option<u64> {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for connection in self.connections.values() {
            *counts.entry(connection.address).or_default() += 1;
        }
        let own = share(address, counts.get(&address).map_or(1, |count| count + 1));
        let share_of = |address: &IpAddr| share(*address, counts.get(address).copied().unwrap_or_default());
        let (largest, most) =
            counts.keys().map(|one| (*one, share_of(one))).max_by_key(|(_, share)| *share)?;
        let longest_silent = |is_one: &dyn Fn(&Connection) -> bool| {
            let all = self.connections.iter().filter(|(_, connection)| is_one(connection));
            all.min_by_key(|(_, connection)| (connection.activity.is_pending(), connection.activity.last()))
        };
        if most > own {
            return longest_silent(&|connection| connection.address == largest).map(|(id, _)| *id);
        }
        let is_idle = |connection: &Connection| !connection.activity.is_pending();
        longest_silent(&|connection| is_idle(connection) && connection.address == address)
            .or_else(|| {
                longest_silent(&|connection| is_idle(connection) && share_of(&connection.address) >= own)
            })
            .or_else(|| {
                let silent = |connection: &Connection| {
                    now.saturating_duration_since(connection.activity.last()) >= SILENT
                };
                longest_silent(&silent)
            })
            .map(|(id, _)| *id)
    }
}

/// The share of the slots that an address has with `count` connections.
fn share(address: IpAddr, count: usize) -> usize {
    if address.is_loopback() { count.div_ceil(LOOPBACK) } else { count }
}

/// All slots. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    max: usize,
    taken: Arc<Mutex<Taken>>,
}

impl Slots {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, taken: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a new connection; `None` if the connection must be closed.
    pub(crate) fn enter(&self, address: IpAddr, now: Instant) -> Option<Slot> {
        let address = counted(address);
        let mut taken = self.lock();
        if taken.connections.len() >= self.max {
            let victim = taken.victim(address, now)?;
            taken.connections.remove(&victim);
        }
        taken.last += 1;
        let (id, activity) = (taken.last, Activity::new(now));
        let (end, ended) = oneshot::channel();
        taken.connections.insert(id, Connection { address, activity: activity.clone(), _end: end });
        Some(Slot { slots: self.clone(), id, activity, ended })
    }
}

/// The slot of a connection. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Slots,
    id: u64,
    /// Touched by the connection.
    pub(crate) activity: Activity,
    ended: oneshot::Receiver<()>,
}

impl Slot {
    /// Waits until the slot is given to another connection.
    pub(crate) async fn lost(&mut self) {
        // The sender is dropped without sending.
        let _ = (&mut self.ended).await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().connections.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn at(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// Starts a pending response.
    fn start_response(slot: &Slot) -> PendingResponse {
        let pending = PendingResponse::new(slot.activity.clone());
        pending.begin();
        pending
    }

    fn is_lost(slot: &mut Slot) -> bool {
        slot.lost().now_or_never().is_some()
    }

    fn lost(slots: &mut [Slot]) -> usize {
        slots.iter_mut().map(|slot| usize::from(is_lost(slot))).sum()
    }

    #[test]
    fn new_addresses_get_slots_when_one_address_has_all() {
        let (slots, now) = (Slots::new(8), Instant::now());
        let mut greedy: Vec<Slot> = (0..8).map(|_| slots.enter(at(1), now).unwrap()).collect();
        let later = now + Duration::from_secs(1);
        let busy = greedy.iter().enumerate().filter(|(at, _)| *at != 2);
        busy.for_each(|(_, slot)| slot.activity.touch(later));
        let _answers: Vec<PendingResponse> = greedy.iter().map(start_response).collect();
        assert!(slots.enter(at(1), later).is_none(), "the address has the most already");
        let mut others = vec![slots.enter(at(2), later).unwrap()];
        assert!(is_lost(&mut greedy[2]), "the idle one is closed first");
        greedy.remove(2);
        assert_eq!(lost(&mut greedy), 0);
        // Connections are closed until the shares are equal.
        others.extend((0..3).map(|_| slots.enter(at(2), later).unwrap()));
        let _others: Vec<PendingResponse> = others.iter().map(start_response).collect();
        assert!(slots.enter(at(2), later).is_none());
        assert_eq!((lost(&mut greedy), lost(&mut others)), (3, 0));
        assert!(slots.enter(at(3), later).is_some(), "another address gets a slot");
    }

    #[test]
    fn with_equal_shares_only_silent_connections_are_closed() {
        let (slots, now) = (Slots::new(4), Instant::now());
        let mut all: Vec<Slot> = (0..4).map(|last| slots.enter(at(last), now).unwrap()).collect();
        let _answers: Vec<PendingResponse> = all.iter().map(start_response).collect();
        assert!(slots.enter(at(9), now).is_none());
        let late = now + SILENT;
        all.iter().skip(1).for_each(|slot| slot.activity.touch(late));
        let new = slots.enter(at(9), late).unwrap();
        assert!(is_lost(&mut all[0]) && lost(&mut all[1..]) == 0);
        let answer = start_response(&new);
        assert!(slots.enter(at(0), late).is_none());
        drop((new, answer));
        assert!(slots.enter(at(0), late).is_some(), "a freed slot can be used");
    }

    #[test]
    fn incomplete_requests_lock_out_no_address() {
        let (slots, now) = (Slots::new(8), Instant::now());
        let mut halves: Vec<Slot> = (0..8).map(|_| slots.enter(at(1), now).unwrap()).collect();
        let later = now + Duration::from_millis(1);
        halves.iter().skip(1).for_each(|slot| slot.activity.touch(later));
        // From the same address: the connection that has been silent for longest is closed.
        let mut whole = slots.enter(at(1), later).unwrap();
        assert!(is_lost(&mut halves[0]) && lost(&mut halves[1..]) == 0);
        let answer = start_response(&whole);
        halves.extend((0..20).map(|_| slots.enter(at(1), later).unwrap()));
        assert!(!is_lost(&mut whole), "its request is being answered");
        drop(answer);
        halves.extend((0..20).map(|_| slots.enter(at(1), later).unwrap()));
        assert!(is_lost(&mut whole), "it was answered long ago");
        // The same with a different address for each connection.
        let slots = Slots::new(8);
        let mut halves: Vec<Slot> = (0..8).map(|last| slots.enter(at(last), now).unwrap()).collect();
        assert!(slots.enter(at(99), now).is_some());
        assert_eq!(lost(&mut halves), 1);
    }

    #[test]
    fn addresses_with_few_connections_keep_them() {
        let (slots, now) = (Slots::new(8), Instant::now());
        let mut few = [1, 2].map(|last| slots.enter(at(last), now).unwrap());
        let later = now + Duration::from_secs(1);
        let many: Vec<Option<Slot>> = (0..100).map(|_| slots.enter(at(3), later)).collect();
        assert!(many.iter().all(Option::is_some));
        assert_eq!(lost(&mut few), 0);
    }

    #[test]
    fn a_local_proxy_may_have_more_connections_but_not_all() {
        let (slots, now) = (Slots::new(64), Instant::now());
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let mut proxied: Vec<Slot> = (0..64).map(|_| slots.enter(loopback, now).unwrap()).collect();
        let mut direct: Vec<Slot> = (0..3).map(|_| slots.enter(at(1), now).unwrap()).collect();
        let answers: Vec<PendingResponse> = proxied.iter().chain(&direct).map(start_response).collect();
        assert!(slots.enter(at(1), now).is_none(), "three connections count as much as sixty of a proxy");
        assert_eq!((lost(&mut proxied), lost(&mut direct)), (3, 0));
        // An IPv6 /64 network counts as one address.
        let six: Vec<IpAddr> = (1..=4).map(|last| format!("2001:db8::{last}").parse().unwrap()).collect();
        let mut taken: Vec<(Slot, PendingResponse)> = Vec::new();
        for one in six {
            taken.extend(slots.enter(one, now).map(|slot| {
                let answer = start_response(&slot);
                (slot, answer)
            }));
        }
        assert_eq!(taken.len(), 3);
        drop(answers);
    }
}
