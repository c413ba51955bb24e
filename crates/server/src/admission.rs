//! Admission control for connections and handshakes (Part 2 §5.1.2): rates by address, by network and by earlier
//! logins. It is applied before anything is allocated for a connection.
//!
//! With a single shared rate, a flood would lock out all other clients. Each rate therefore has reserves beyond its
//! shared part that a flood cannot use: one for addresses with an earlier login by credential, and others for addresses
//! and networks with few recent arrivals. The number of remembered addresses is bounded.

use crate::limits::{ENTRIES_MAX, FAMILIAR_MAX, Limits, Rate};
use crate::origin::{Network, Origin};
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk_types::Instant;

/// A token bucket, stored as the time at which it is full again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    full_at: Instant,
}

impl Bucket {
    pub(crate) const FULL: Self = Self { full_at: Instant::ZERO };

    /// Whether a token is available now.
    fn has_one(self, now: Instant, rate: Rate) -> bool {
        let burst = u64::from(rate.burst.max(1));
        let ahead = self.full_at.as_nanos().saturating_sub(now.as_nanos());
        ahead <= rate.cost().saturating_mul(burst - 1)
    }

    /// Takes a token.
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

/// What an address or network with few recent arrivals may take from a reserve: four or eight at once, then one per 30
/// s or 4 s. A client that looks for endpoints, connects and retries stays below.
const FEW_OF_ADDRESS: Rate = Rate::new(1.0 / 30.0, 4);
const FEW_OF_NETWORK: Rate = Rate::new(0.25, 8);
/// The same for handshakes; a client needs one.
const FEW_HANDSHAKES: Rate = Rate::new(0.25, 2);

/// A rate that a flood cannot exhaust for other clients. It has a shared part and three reserves beyond it: for
/// addresses with an earlier login, for networks with few recent arrivals, and for addresses with few recent arrivals.
#[derive(Debug)]
struct FairRate {
    shared: Rate,
    reserved: Rate,
    all: Bucket,
    familiar: Bucket,
    networks: Bucket,
    addresses: Bucket,
}

/// The reserves that a client may use.
#[derive(Debug, Clone, Copy)]
struct Standing {
    is_familiar: bool,
    network_is_quiet: bool,
    address_is_quiet: bool,
}

impl FairRate {
    const fn new(shared: Rate, reserved: Rate) -> Self {
        let full = Bucket::FULL;
        Self { shared, reserved, all: full, familiar: full, networks: full, addresses: full }
    }

    fn take(&mut self, now: Instant, standing: Standing) -> bool {
        (standing.is_familiar && self.familiar.take(now, self.shared))
            || self.all.take(now, self.shared)
            || (standing.network_is_quiet && self.networks.take(now, self.reserved))
            || (standing.address_is_quiet && self.addresses.take(now, self.reserved))
    }
}

#[derive(Debug)]
struct Entry {
    connections: usize,
    arrivals: Bucket,
    discovery: Bucket,
    /// What it may take from reserves.
    few_connections: Bucket,
    few_handshakes: Bucket,
    used: Instant,
}

impl Entry {
    const NEW: Self = Self {
        connections: 0,
        arrivals: Bucket::FULL,
        discovery: Bucket::FULL,
        few_connections: Bucket::FULL,
        few_handshakes: Bucket::FULL,
        used: Instant::ZERO,
    };

    /// Whether the entry can be dropped without any effect.
    fn is_idle(&self, now: Instant) -> bool {
        let buckets = [self.arrivals, self.discovery, self.few_connections, self.few_handshakes];
        self.connections == 0 && buckets.iter().all(|bucket| bucket.is_full(now))
    }
}

/// Addresses or networks with current or recent connections. An ordered map, so that clients cannot choose addresses
/// that collide.
#[derive(Debug)]
struct Entries<K> {
    map: BTreeMap<K, Entry>,
    /// Number of entries at which idle ones are removed.
    tidy_at: usize,
    /// When idle entries were last removed.
    tidied: Instant,
}

impl<K: Ord + Copy> Entries<K> {
    const fn new() -> Self {
        Self { map: BTreeMap::new(), tidy_at: TIDY_MIN, tidied: Instant::ZERO }
    }

    fn at(&mut self, key: K, now: Instant) -> &mut Entry {
        let is_due = self.map.len() >= TIDY_MIN && self.tidied.plus_millis_f64(TIDY_EVERY_MS) <= now;
        if is_due || (self.map.len() >= self.tidy_at && !self.map.contains_key(&key)) {
            self.tidy(now);
        }
        let entry = self.map.entry(key).or_insert(Entry::NEW);
        entry.used = now;
        entry
    }

    /// Removes idle entries. If too many remain, also removes the least recently seen ones without a connection.
    #[cold]
    fn tidy(&mut self, now: Instant) {
        self.map.retain(|_, entry| !entry.is_idle(now));
        let mut excess = self.map.len().saturating_sub(ENTRIES_MAX / 8 * 7);
        let gone = self.map.values().filter(|entry| entry.connections == 0);
        let mut used: Vec<Instant> = gone.map(|entry| entry.used).collect();
        excess = excess.min(used.len());
        if excess > 0 {
            let (_, limit, _) = used.select_nth_unstable(excess - 1);
            self.map.retain(|_, entry| {
                let goes = excess > 0 && entry.connections == 0 && entry.used <= *limit;
                excess -= usize::from(goes);
                !goes
            });
        }
        let len = self.map.len();
        self.tidy_at = (2 * len).clamp(TIDY_MIN, ENTRIES_MAX.max(len + TIDY_MIN));
        self.tidied = now;
    }
}

/// Addresses with current or recent connections.
#[derive(Debug)]
pub(crate) struct Admission {
    per_address_max: usize,
    per_address: Rate,
    discovery: Rate,
    handshakes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    addresses: Entries<Origin>,
    networks: Entries<Network>,
    arrivals: FairRate,
    handshakes: FairRate,
    /// Origins of logins with a credential, with the time of the last one.
    familiar: BTreeMap<Origin, Instant>,
}

/// Number of entries from which idle ones are removed, and how often this happens in any case.
const TIDY_MIN: usize = 1024;
const TIDY_EVERY_MS: f64 = 60_000.0;

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        let state = State {
            addresses: Entries::new(),
            networks: Entries::new(),
            arrivals: FairRate::new(limits.connection_rate, limits.connection_rate_reserved),
            handshakes: FairRate::new(limits.handshake_rate, limits.handshake_rate_reserved),
            familiar: BTreeMap::new(),
        };
        Self {
            per_address_max: limits.connections_per_address_max,
            per_address: limits.connection_rate_per_address,
            discovery: limits.discovery_rate_per_address,
            handshakes_max: limits.handshakes_max,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection, or returns why it is refused.
    pub(crate) fn admit(&self, address: IpAddr, now: Instant) -> Result<(), Refusal> {
        let mut state = self.state();
        let State { addresses, networks, arrivals, familiar, .. } = &mut *state;
        let network_is_quiet = networks.at(address.into(), now).few_connections.take(now, FEW_OF_NETWORK);
        let entry = addresses.at(address.into(), now);
        let standing = Standing {
            is_familiar: familiar.contains_key(&address.into()),
            network_is_quiet,
            address_is_quiet: entry.few_connections.take(now, FEW_OF_ADDRESS),
        };
        if entry.connections >= self.per_address_max {
            Err(Refusal::AddressFull)
        } else if !entry.arrivals.has_one(now, self.per_address) {
            Err(Refusal::AddressRate)
        } else if !arrivals.take(now, standing) {
            // Taken last, so that a refusal by the address's own limits does not use up the shared rate.
            Err(Refusal::ServerRate)
        } else {
            entry.arrivals.take(now, self.per_address);
            entry.connections += 1;
            Ok(())
        }
    }

    /// An admitted connection has ended.
    pub(crate) fn leave(&self, address: IpAddr) {
        if let Some(entry) = self.state().addresses.map.get_mut(&Origin::from(address)) {
            entry.connections = entry.connections.saturating_sub(1);
        }
    }

    /// Whether an address may call a discovery service again.
    pub(crate) fn may_discover(&self, address: IpAddr, now: Instant) -> bool {
        self.state().addresses.at(address.into(), now).discovery.take(now, self.discovery)
    }

    /// Whether a handshake from an address may be computed now, while `under_way` others are. `is_signed` means a
    /// renewal on an open channel, whose certificate is trusted already.
    pub(crate) fn may_handshake(
        &self,
        address: Option<IpAddr>,
        is_signed: bool,
        under_way: usize,
        now: Instant,
    ) -> bool {
        let mut state = self.state();
        let State { addresses, networks, handshakes, familiar, .. } = &mut *state;
        let mut standing =
            Standing { is_familiar: is_signed, network_is_quiet: false, address_is_quiet: false };
        if let Some(address) = address {
            standing.is_familiar |= familiar.contains_key(&address.into());
            let network = networks.at(address.into(), now);
            standing.network_is_quiet = network.few_handshakes.take(now, FEW_HANDSHAKES);
            let entry = addresses.at(address.into(), now);
            standing.address_is_quiet = entry.few_handshakes.take(now, FEW_HANDSHAKES);
        }
        // A quarter of the handshakes is reserved for familiar clients and for clients with few requests.
        let has_place = standing.is_familiar
            || standing.network_is_quiet
            || under_way < self.handshakes_max - self.handshakes_max / 4;
        has_place && handshakes.take(now, standing)
    }

    /// Records a login from an address, by a user with a credential or with a trusted certificate.
    pub(crate) fn record_login(&self, address: IpAddr, now: Instant) {
        let familiar = &mut self.state().familiar;
        if familiar.insert(address.into(), now).is_none() && familiar.len() > FAMILIAR_MAX {
            let mut times: Vec<Instant> = familiar.values().copied().collect();
            let (_, limit, _) = times.select_nth_unstable(FAMILIAR_MAX / 4);
            let mut left = FAMILIAR_MAX / 4;
            familiar.retain(|_, at| {
                let goes = left > 0 && *at <= *limit;
                left -= usize::from(goes);
                !goes
            });
        }
    }

    /// Whether there was a login from an address before.
    pub(crate) fn is_familiar(&self, address: IpAddr) -> bool {
        self.state().familiar.contains_key(&address.into())
    }

    /// Number of known addresses, for tests.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.state().addresses.map.len()
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

    /// Admits a single one.
    const NONE: Rate = Rate::new(0.0, 1);

    fn admission(change: impl FnOnce(&mut Limits)) -> Admission {
        let mut limits = Limits::default();
        change(&mut limits);
        Admission::new(&limits)
    }

    #[test]
    fn a_bucket_allows_its_burst_and_then_its_rate() {
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
    fn invalid_rates_admit_only_one() {
        for rate in [Rate::new(0.0, 0), Rate::new(f64::NAN, 1), Rate::new(-1.0, 1)] {
            let mut bucket = Bucket::FULL;
            assert!(bucket.take(at(0), rate), "{rate:?}");
            assert!(!bucket.take(at(1_000_000_000), rate), "{rate:?}");
        }
    }

    #[test]
    fn one_address_cannot_use_up_all_connections() {
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
    fn a_fast_address_is_limited_without_affecting_others() {
        let admission = admission(|limits| {
            limits.connection_rate_per_address = Rate::new(10.0, 5);
            limits.connection_rate = Rate::new(10.0, 20);
            limits.connection_rate_reserved = NONE;
        });
        let admitted = (0..1000).filter(|_| admission.admit(address(1), at(0)).is_ok()).count();
        assert_eq!(admitted, 5);
        // 15 are left for all other addresses, plus one from each reserve.
        let others = (10..40).filter(|last| admission.admit(address(*last), at(0)).is_ok()).count();
        assert_eq!(others, 15 + 1);
        assert_eq!(admission.admit(address(200), at(0)), Err(Refusal::ServerRate));
        assert_eq!(admission.admit(address(1), at(0)), Err(Refusal::AddressRate));
        assert_eq!(admission.admit(address(1), at(100)), Ok(()));
    }

    #[test]
    fn an_ipv6_network_is_one_origin() {
        let admission = admission(|limits| limits.connections_per_address_max = 1);
        let of =
            |network: u16, host: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, network, 0, 0, 0, host));
        assert_eq!(admission.admit(of(1, 1), at(0)), Ok(()));
        assert_eq!(admission.admit(of(1, 2), at(0)), Err(Refusal::AddressFull));
        assert_eq!(admission.admit(of(2, 1), at(0)), Ok(()));
        // An IPv4 address counts the same in IPv4-mapped notation.
        let mapped = Ipv4Addr::new(127, 0, 0, 1).to_ipv6_mapped();
        assert_eq!(admission.admit(mapped.into(), at(0)), Ok(()));
        assert_eq!(admission.admit(address(1), at(0)), Err(Refusal::AddressFull));
    }

    #[test]
    fn idle_addresses_are_removed() {
        let admission = admission(|limits| limits.connection_rate = Rate::new(1e6, 1_000_000));
        for number in 0u32..100_000 {
            let address = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number));
            let now = at(100 * u64::from(number));
            assert_eq!(admission.admit(address, now), Ok(()));
            admission.leave(address);
            assert!(admission.may_discover(address, now));
        }
        assert!(admission.len() <= 2 * TIDY_MIN, "{}", admission.len());
    }

    #[test]
    fn a_flood_from_many_addresses_does_not_lock_out_new_clients() {
        let admission = Admission::new(&Limits::default());
        // 18 000 connections per second from 60 000 addresses in 235 networks, for 20 s.
        let flood = |number: u64| {
            let address = 0x7f01_0001 + (number * 7919 % 60_000) as u32;
            // One host of each network does not take part.
            IpAddr::from(Ipv4Addr::from(if address & 0xff == 7 { address + 1 } else { address }))
        };
        let mut refused = 0;
        for millis in 0..20_000u64 {
            for step in 0..18 {
                refused += u64::from(admission.admit(flood(18 * millis + step), at(millis)).is_err());
            }
            if millis % 500 == 499 {
                // New clients from other networks, and from a network of the flood. The latter compete with the flood
                // until it has used up the reserve for new addresses.
                let number = (millis / 500) as u8;
                let are_known = millis > 15_000;
                for newcomer in [Some([10, 0, number, 1]), are_known.then_some([127, 1, number, 7])] {
                    let Some(newcomer) = newcomer.map(IpAddr::from) else { continue };
                    // It looks for endpoints, then connects.
                    assert_eq!(admission.admit(newcomer, at(millis)), Ok(()), "{newcomer} at {millis} ms");
                    assert_eq!(admission.admit(newcomer, at(millis)), Ok(()), "{newcomer} at {millis} ms");
                    admission.leave(newcomer);
                    admission.leave(newcomer);
                }
            }
        }
        assert!(refused > 180_000, "{refused} of 360 000");
        assert!(admission.len() <= ENTRIES_MAX + 60_000, "{}", admission.len());
    }

    #[test]
    fn a_flood_from_one_network_does_not_lock_out_its_other_hosts() {
        let admission = Admission::new(&Limits::default());
        for millis in 0..10_000u64 {
            for step in 0..18u64 {
                let host = 10 + (18 * millis + step) % 240;
                let _ = admission.admit(address(host as u8), at(millis));
            }
            if millis % 1_000 == 999 {
                assert_eq!(
                    admission.admit(address((millis / 1_000) as u8), at(millis)),
                    Ok(()),
                    "{millis} ms"
                );
            }
        }
    }

    #[test]
    fn an_address_with_an_earlier_login_is_not_locked_out() {
        let admission = admission(|limits| {
            limits.connection_rate = Rate::new(10.0, 20);
            limits.connection_rate_reserved = NONE;
            limits.handshake_rate = Rate::new(10.0, 20);
            limits.handshake_rate_reserved = NONE;
        });
        admission.record_login(address(1), at(0));
        for number in 0..10_000u32 {
            let stranger = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number));
            let _ = admission.admit(stranger, at(1));
            let _ = admission.may_handshake(Some(stranger), false, 0, at(1));
        }
        assert_eq!(admission.admit(address(2), at(2)), Err(Refusal::ServerRate));
        assert!(!admission.may_handshake(Some(address(2)), false, 0, at(2)));
        assert_eq!(admission.admit(address(1), at(2)), Ok(()));
        assert!(admission.may_handshake(Some(address(1)), false, 0, at(2)));
        // The limit per address still applies to it.
        let admitted = (0..1_000).filter(|_| admission.admit(address(1), at(2)).is_ok()).count();
        assert!(admitted < 20, "{admitted}");
    }

    #[test]
    fn handshakes_are_reserved_for_clients_with_few_requests() {
        let admission = admission(|limits| limits.handshakes_max = 64);
        let flooder = IpAddr::from([10, 0, 0, 1]);
        let granted = (0..1_000).filter(|_| admission.may_handshake(Some(flooder), false, 48, at(0)));
        assert_eq!(granted.count(), 2, "as many as a quiet network has");
        assert!(admission.may_handshake(Some(flooder), false, 47, at(0)));
        let newcomer = IpAddr::from([10, 0, 1, 1]);
        assert!(admission.may_handshake(Some(newcomer), false, 63, at(0)));
        assert!(admission.may_handshake(Some(flooder), true, 63, at(0)), "an open channel gets new keys");
    }

    #[test]
    fn the_number_of_remembered_addresses_is_bounded() {
        let admission = admission(|limits| limits.connection_rate = Rate::new(1e9, 1_000_000_000));
        for number in 0u32..200_000 {
            let address = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number * 256));
            // The interval is too short for anything to become idle.
            let now = Instant::from_nanos(u64::from(number) * 1_000);
            let _ = admission.admit(address, now);
            admission.leave(address);
            admission.record_login(address, now);
        }
        let state = admission.state();
        assert!(state.addresses.map.len() <= ENTRIES_MAX, "{}", state.addresses.map.len());
        assert!(state.networks.map.len() <= ENTRIES_MAX, "{}", state.networks.map.len());
        assert!(state.familiar.len() <= FAMILIAR_MAX, "{}", state.familiar.len());
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
