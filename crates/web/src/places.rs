//! Places of connections: how many there are, and which connection ends when all are taken.
//!
//! No address can keep others out. If all places are taken, a new connection gets a place of the address that has the most,
//! unless its own address would then have as many. The connection that has been silent for longest ends. If no address has
//! more, only a connection ends that has been silent for a while.

use crate::rate_limit::counted;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a connection is silent before any other one gets its place. Streams are never silent for so long.
const SILENT: Duration = Duration::from_secs(20);
/// Loopback counts as so many addresses: a reverse proxy there has the connections of many browsers.
const LOOPBACK: usize = 16;

/// When something was sent or received last. Cheap to clone; clones share the time.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    begin: Instant,
    millis: Arc<AtomicU64>,
}

impl Activity {
    pub(crate) fn new(now: Instant) -> Self {
        Self { begin: now, millis: Arc::default() }
    }

    /// Something was sent or received.
    pub(crate) fn touch(&self, now: Instant) {
        let millis = now.saturating_duration_since(self.begin).as_millis();
        self.millis.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// When that was last.
    fn last(&self) -> Instant {
        self.begin + Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }
}

/// A connection that has a place.
#[derive(Debug)]
struct Holder {
    address: IpAddr,
    activity: Activity,
    /// Dropped to end the connection.
    _end: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct Taken {
    holders: BTreeMap<u64, Holder>,
    last: u64,
}

impl Taken {
    /// The connection that goes for one of `address`.
    fn victim(&self, address: IpAddr, now: Instant) -> Option<u64> {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for holder in self.holders.values() {
            *counts.entry(holder.address).or_default() += 1;
        }
        let own = share(address, counts.get(&address).map_or(1, |count| count + 1));
        let shares = counts.into_iter().map(|(address, count)| (address, share(address, count)));
        let (largest, most) = shares.max_by_key(|(_, share)| *share)?;
        let has_more = most > own;
        let of_it = self.holders.iter().filter(|(_, holder)| !has_more || holder.address == largest);
        let (id, holder) = of_it.min_by_key(|(_, holder)| holder.activity.last())?;
        let is_silent = now.saturating_duration_since(holder.activity.last()) >= SILENT;
        (has_more || is_silent).then_some(*id)
    }
}

/// How much of the places an address has with so many connections.
fn share(address: IpAddr, count: usize) -> usize {
    if address.is_loopback() { count.div_ceil(LOOPBACK) } else { count }
}

/// All places. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    max: usize,
    taken: Arc<Mutex<Taken>>,
}

impl Places {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, taken: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection; `None` if it gets none, and is to be closed.
    pub(crate) fn enter(&self, address: IpAddr, now: Instant) -> Option<Place> {
        let address = counted(address);
        let mut taken = self.lock();
        if taken.holders.len() >= self.max {
            let victim = taken.victim(address, now)?;
            taken.holders.remove(&victim);
        }
        taken.last += 1;
        let (id, activity) = (taken.last, Activity::new(now));
        let (end, ended) = oneshot::channel();
        taken.holders.insert(id, Holder { address, activity: activity.clone(), _end: end });
        Some(Place { places: self.clone(), id, activity, ended })
    }
}

/// The place of a connection, which it gives back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    id: u64,
    /// What the connection has to touch.
    pub(crate) activity: Activity,
    ended: oneshot::Receiver<()>,
}

impl Place {
    /// Waits until another connection has got the place.
    pub(crate) async fn lost(&mut self) {
        // Nothing is ever sent.
        let _ = (&mut self.ended).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().holders.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn at(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn is_lost(place: &mut Place) -> bool {
        place.lost().now_or_never().is_some()
    }

    fn lost(places: &mut [Place]) -> usize {
        places.iter_mut().map(|place| usize::from(is_lost(place))).sum()
    }

    #[test]
    fn others_get_in_when_one_address_has_all_places() {
        let (places, now) = (Places::new(8), Instant::now());
        let mut greedy: Vec<Place> = (0..8).map(|_| places.enter(at(1), now).unwrap()).collect();
        let later = now + Duration::from_secs(1);
        let busy = greedy.iter().enumerate().filter(|(at, _)| *at != 2);
        busy.for_each(|(_, place)| place.activity.touch(later));
        assert!(places.enter(at(1), later).is_none(), "it has the most already");
        let mut others = vec![places.enter(at(2), later).unwrap()];
        assert!(is_lost(&mut greedy[2]), "the silent one goes first");
        greedy.remove(2);
        assert_eq!(lost(&mut greedy), 0);
        // Down to equal shares, and no further.
        others.extend((0..3).map(|_| places.enter(at(2), later).unwrap()));
        assert!(places.enter(at(2), later).is_none());
        assert_eq!((lost(&mut greedy), lost(&mut others)), (3, 0));
        assert!(places.enter(at(3), later).is_some(), "one more address gets in");
    }

    #[test]
    fn only_silent_connections_go_when_no_address_has_more_than_others() {
        let (places, now) = (Places::new(4), Instant::now());
        let mut all: Vec<Place> = (0..4).map(|last| places.enter(at(last), now).unwrap()).collect();
        assert!(places.enter(at(9), now).is_none());
        let late = now + SILENT;
        all.iter().skip(1).for_each(|place| place.activity.touch(late));
        let new = places.enter(at(9), late).unwrap();
        assert!(is_lost(&mut all[0]) && lost(&mut all[1..]) == 0);
        assert!(places.enter(at(0), late).is_none());
        drop(new);
        assert!(places.enter(at(0), late).is_some(), "a place that was given back is free");
    }

    #[test]
    fn a_proxy_on_the_same_machine_may_have_more_and_not_all() {
        let (places, now) = (Places::new(64), Instant::now());
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let mut proxied: Vec<Place> = (0..64).map(|_| places.enter(loopback, now).unwrap()).collect();
        let mut direct: Vec<Place> = (0..3).map(|_| places.enter(at(1), now).unwrap()).collect();
        assert!(places.enter(at(1), now).is_none(), "three are as much as sixty of a proxy");
        assert_eq!((lost(&mut proxied), lost(&mut direct)), (3, 0));
        // An IPv6 network counts as one.
        let six: Vec<IpAddr> = (1..=4).map(|last| format!("2001:db8::{last}").parse().unwrap()).collect();
        let taken: Vec<Option<Place>> = six.iter().map(|one| places.enter(*one, now)).collect();
        assert_eq!(taken.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false]);
    }
}
