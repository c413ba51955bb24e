//! Who may connect, and how often (Part 2 §5.1.2): by address, before anything is allocated for a connection.

use crate::limits::Limits;
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk_types::Instant;

/// So many per second on average, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// On average.
    pub per_second: f64,
    /// At once, after a while of silence; at least 1.
    pub burst: u32,
}

impl Rate {
    /// A rate.
    #[must_use]
    pub const fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second, burst }
    }

    /// Time that one takes, ns. A rate that is no positive number lets nothing pass but the burst.
    fn cost(self) -> u64 {
        let nanos = 1e9 / self.per_second;
        if nanos.is_finite() && nanos >= 0.0 { nanos as u64 } else { u64::MAX / 4 }
    }
}

/// A token bucket, kept as the time at which it will be full again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    full_at: Instant,
}

impl Bucket {
    pub(crate) const FULL: Self = Self { full_at: Instant::ZERO };

    /// Whether one could be taken now.
    fn has_one(self, now: Instant, rate: Rate) -> bool {
        let burst = u64::from(rate.burst.max(1));
        let ahead = self.full_at.as_nanos().saturating_sub(now.as_nanos());
        ahead <= rate.cost().saturating_mul(burst - 1)
    }

    /// Takes one.
    pub(crate) fn take(&mut self, now: Instant, rate: Rate) -> bool {
        if !self.has_one(now, rate) {
            return false;
        }
        let from = self.full_at.max(now);
        self.full_at = Instant::from_nanos(from.as_nanos().saturating_add(rate.cost()));
        true
    }

    fn is_full(self, now: Instant) -> bool {
        self.full_at <= now
    }
}

/// Why a connection or request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// `connections_per_address_max`.
    #[error("the address has as many connections as one may have")]
    AddressFull,
    /// `connection_rate_per_address`, `discovery_rate_per_address`.
    #[error("the address is too fast")]
    AddressRate,
    /// `connection_rate`.
    #[error("connections come too fast")]
    ServerRate,
}

/// Where a connection comes from: an IPv4 address, or the network of an IPv6 address, because who has one of those has
/// 2^64 of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin(u64);

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            // No network of IPv6 begins with 16 ones and is not multicast, so the two do not meet.
            IpAddr::V4(address) => Self(0xffff << 48 | u64::from(u32::from(address))),
            IpAddr::V6(address) => Self((u128::from(address) >> 64) as u64),
        }
    }
}

#[derive(Debug)]
struct Entry {
    connections: usize,
    arrivals: Bucket,
    discovery: Bucket,
}

impl Entry {
    /// Whether forgetting it changes nothing.
    fn is_idle(&self, now: Instant) -> bool {
        self.connections == 0 && self.arrivals.is_full(now) && self.discovery.is_full(now)
    }
}

/// The addresses that are or were lately connected.
#[derive(Debug)]
pub(crate) struct Admission {
    per_address_max: usize,
    rate: Rate,
    per_address: Rate,
    discovery: Rate,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    entries: BTreeMap<Origin, Entry>,
    arrivals: Bucket,
    /// Entries at which the idle ones are looked for.
    tidy_at: usize,
}

/// Fewest entries at which it is worth to look for idle ones.
const TIDY_MIN: usize = 1024;

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        let state = State { entries: BTreeMap::new(), arrivals: Bucket::FULL, tidy_at: TIDY_MIN };
        Self {
            per_address_max: limits.connections_per_address_max,
            rate: limits.connection_rate,
            per_address: limits.connection_rate_per_address,
            discovery: limits.discovery_rate_per_address,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection in, or says why it may not come.
    pub(crate) fn admit(&self, address: IpAddr, now: Instant) -> Result<(), Refusal> {
        let mut state = self.state();
        let State { entries, arrivals, .. } = &mut *state;
        let entry = entry(entries, address);
        let result = if entry.connections >= self.per_address_max {
            Err(Refusal::AddressFull)
        } else if !entry.arrivals.has_one(now, self.per_address) {
            Err(Refusal::AddressRate)
        } else if !arrivals.take(now, self.rate) {
            // Who is refused for its own sake does not use up what the others have.
            Err(Refusal::ServerRate)
        } else {
            entry.arrivals.take(now, self.per_address);
            entry.connections += 1;
            Ok(())
        };
        state.tidy(now);
        result
    }

    /// A connection that was admitted has ended.
    pub(crate) fn leave(&self, address: IpAddr) {
        if let Some(entry) = self.state().entries.get_mut(&Origin::from(address)) {
            entry.connections = entry.connections.saturating_sub(1);
        }
    }

    /// Whether an address may ask for endpoints or servers again.
    pub(crate) fn may_discover(&self, address: IpAddr, now: Instant) -> bool {
        let mut state = self.state();
        let may = entry(&mut state.entries, address).discovery.take(now, self.discovery);
        state.tidy(now);
        may
    }

    /// How many addresses are known, for tests of what is kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.state().entries.len()
    }
}

fn entry(entries: &mut BTreeMap<Origin, Entry>, address: IpAddr) -> &mut Entry {
    entries.entry(Origin::from(address)).or_insert(Entry {
        connections: 0,
        arrivals: Bucket::FULL,
        discovery: Bucket::FULL,
    })
}

impl State {
    /// Forgets idle addresses when there are twice as many as were left last time. What stays is connected, or was
    /// admitted within the time in which a bucket fills: the connection rate bounds that.
    fn tidy(&mut self, now: Instant) {
        if self.entries.len() >= self.tidy_at {
            self.entries.retain(|_, entry| !entry.is_idle(now));
            self.tidy_at = (2 * self.entries.len()).max(TIDY_MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use core::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(127, 0, 0, last).into()
    }

    fn admission(change: impl FnOnce(&mut Limits)) -> Admission {
        let mut limits = Limits::default();
        change(&mut limits);
        Admission::new(&limits)
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let rate = Rate::new(10.0, 3);
        let mut bucket = Bucket::FULL;
        let taken = (0..5).filter(|_| bucket.take(at(0), rate)).count();
        assert_eq!(taken, 3);
        assert!(!bucket.take(at(99), rate));
        assert!(bucket.take(at(100), rate) && !bucket.take(at(100), rate));
        let later = (0..5).filter(|_| bucket.take(at(10_000), rate)).count();
        assert_eq!(later, 3, "no more than the burst is saved");
    }

    #[test]
    fn senseless_rates_let_nothing_pass_but_one() {
        for rate in [Rate::new(0.0, 0), Rate::new(f64::NAN, 1), Rate::new(-1.0, 1)] {
            let mut bucket = Bucket::FULL;
            assert!(bucket.take(at(0), rate), "{rate:?}");
            assert!(!bucket.take(at(1_000_000_000), rate), "{rate:?}");
        }
    }

    #[test]
    fn one_address_does_not_take_the_places_of_the_others() {
        let admission = admission(|limits| {
            limits.connections_per_address_max = 2;
            limits.connection_rate_per_address = Rate::new(1000.0, 1000);
        });
        assert_eq!(admission.admit(address(1), at(0)), Ok(()));
        assert_eq!(admission.admit(address(1), at(0)), Ok(()));
        assert_eq!(admission.admit(address(1), at(0)), Err(Refusal::AddressFull));
        assert_eq!(admission.admit(address(2), at(0)), Ok(()));
        admission.leave(address(1));
        assert_eq!(admission.admit(address(1), at(0)), Ok(()));
    }

    #[test]
    fn a_fast_address_is_slowed_down_and_costs_the_others_nothing() {
        let admission = admission(|limits| {
            limits.connection_rate_per_address = Rate::new(10.0, 5);
            limits.connection_rate = Rate::new(10.0, 20);
        });
        let admitted = (0..1000).filter(|_| admission.admit(address(1), at(0)).is_ok()).count();
        assert_eq!(admitted, 5);
        // 15 are left for all others.
        let others = (10..40).filter(|last| admission.admit(address(*last), at(0)).is_ok()).count();
        assert_eq!(others, 15);
        assert_eq!(admission.admit(address(200), at(0)), Err(Refusal::ServerRate));
        assert_eq!(admission.admit(address(1), at(0)), Err(Refusal::AddressRate));
        assert_eq!(admission.admit(address(1), at(100)), Ok(()));
    }

    #[test]
    fn a_network_of_ipv6_is_one_origin() {
        let admission = admission(|limits| limits.connections_per_address_max = 1);
        let of =
            |network: u16, host: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, network, 0, 0, 0, host));
        assert_eq!(admission.admit(of(1, 1), at(0)), Ok(()));
        assert_eq!(admission.admit(of(1, 2), at(0)), Err(Refusal::AddressFull));
        assert_eq!(admission.admit(of(2, 1), at(0)), Ok(()));
        // An IPv4 address is the same in either notation.
        let mapped = Ipv4Addr::new(127, 0, 0, 1).to_ipv6_mapped();
        assert_eq!(admission.admit(mapped.into(), at(0)), Ok(()));
        assert_eq!(admission.admit(address(1), at(0)), Err(Refusal::AddressFull));
    }

    #[test]
    fn addresses_are_forgotten() {
        let admission = admission(|limits| limits.connection_rate = Rate::new(1e6, 1_000_000));
        for number in 0u32..100_000 {
            let address = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number));
            let now = at(u64::from(number));
            assert_eq!(admission.admit(address, now), Ok(()));
            admission.leave(address);
            assert!(admission.may_discover(address, now));
        }
        assert!(admission.len() <= 2 * TIDY_MIN, "{}", admission.len());
    }

    #[test]
    fn discovery_has_a_rate_of_its_own() {
        let admission = admission(|limits| limits.discovery_rate_per_address = Rate::new(10.0, 3));
        let answered = (0..100).filter(|_| admission.may_discover(address(1), at(0))).count();
        assert_eq!(answered, 3);
        assert!(admission.may_discover(address(2), at(0)));
        assert_eq!(admission.admit(address(1), at(0)), Ok(()));
    }
}
