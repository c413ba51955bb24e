//! Who may connect and shake hands, and how often (Part 2 §5.1.2): by address, by network and by who has logged on from
//! there before, before anything is allocated for a connection.
//!
//! A rate that all share lets a flood keep everybody else out. So behind the shared part of each rate there are reserves,
//! which a flood does not get: for addresses from which somebody has logged on with a credential, and for addresses and
//! networks that have asked for little of late. What is remembered of addresses is bounded.

use crate::limits::{ENTRIES_MAX, FAMILIAR_MAX, Limits, Rate};
use crate::origin::{Network, Origin};
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk_types::Instant;

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

/// What an address or network with few arrivals of late may take from a reserve: four or eight at once,
/// then one per 30 s or 4 s. A client that looks for endpoints, connects and tries again stays below.
const FEW_OF_ADDRESS: Rate = Rate::new(1.0 / 30.0, 4);
const FEW_OF_NETWORK: Rate = Rate::new(0.25, 8);
/// The same of handshakes, of which a client needs one.
const FEW_HANDSHAKES: Rate = Rate::new(0.25, 2);

/// A rate that no flood uses up for the others: a part that all share, and reserves beyond it for addresses from which
/// somebody has logged on, for networks with few arrivals of late and for addresses with few of late.
#[derive(Debug)]
struct FairRate {
    shared: Rate,
    reserved: Rate,
    all: Bucket,
    familiar: Bucket,
    networks: Bucket,
    addresses: Bucket,
}

/// Which reserves somebody may use.
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

    /// Whether forgetting it changes nothing.
    fn is_idle(&self, now: Instant) -> bool {
        let buckets = [self.arrivals, self.discovery, self.few_connections, self.few_handshakes];
        self.connections == 0 && buckets.iter().all(|bucket| bucket.is_full(now))
    }
}

/// Addresses or networks that are or were lately connected. Ordered by what they are: nobody can choose addresses that
/// collide.
#[derive(Debug)]
struct Entries<K> {
    map: BTreeMap<K, Entry>,
    /// How many there are when the idle ones are looked for.
    tidy_at: usize,
    /// When they were looked for last.
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

    /// Forgets those that are idle, and if too many are left, those that are not connected and were not heard of for longest.
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

/// The addresses that are or were lately connected.
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
    /// From where somebody has logged on with a credential, and when last.
    familiar: BTreeMap<Origin, Instant>,
}

/// Fewest entries at which it is worth to look for idle ones, and how often that is done in any case.
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

    /// Counts a connection in, or says why it may not come.
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
            // Who is refused for its own sake does not use up what the others have.
            Err(Refusal::ServerRate)
        } else {
            entry.arrivals.take(now, self.per_address);
            entry.connections += 1;
            Ok(())
        }
    }

    /// A connection that was admitted has ended.
    pub(crate) fn leave(&self, address: IpAddr) {
        if let Some(entry) = self.state().addresses.map.get_mut(&Origin::from(address)) {
            entry.connections = entry.connections.saturating_sub(1);
        }
    }

    /// Whether an address may ask for endpoints or servers again.
    pub(crate) fn may_discover(&self, address: IpAddr, now: Instant) -> bool {
        self.state().addresses.at(address.into(), now).discovery.take(now, self.discovery)
    }

    /// Whether a handshake from an address may be computed now, while `under_way` others are. `is_signed` says that the
    /// channel is open and gets new keys: its certificate is trusted already.
    pub(crate) fn may_shake_hands(
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
        // A quarter of the places is for those who have shown something, or have asked for little.
        let has_place = standing.is_familiar
            || standing.network_is_quiet
            || under_way < self.handshakes_max - self.handshakes_max / 4;
        has_place && handshakes.take(now, standing)
    }

    /// Somebody has logged on from an address, as a user with a credential or with a trusted certificate.
    pub(crate) fn has_logged_on(&self, address: IpAddr, now: Instant) {
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

    /// Whether somebody has logged on from an address before.
    pub(crate) fn is_familiar(&self, address: IpAddr) -> bool {
        self.state().familiar.contains_key(&address.into())
    }

    /// How many addresses are known, for tests of what is kept.
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

    /// Lets one pass.
    const NONE: Rate = Rate::new(0.0, 1);

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
            limits.connection_rate_reserved = NONE;
        });
        let admitted = (0..1000).filter(|_| admission.admit(address(1), at(0)).is_ok()).count();
        assert_eq!(admitted, 5);
        // 15 are left for all others, and one of each reserve.
        let others = (10..40).filter(|last| admission.admit(address(*last), at(0)).is_ok()).count();
        assert_eq!(others, 15 + 1);
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
            let now = at(100 * u64::from(number));
            assert_eq!(admission.admit(address, now), Ok(()));
            admission.leave(address);
            assert!(admission.may_discover(address, now));
        }
        assert!(admission.len() <= 2 * TIDY_MIN, "{}", admission.len());
    }

    #[test]
    fn a_flood_from_many_addresses_keeps_no_newcomer_out() {
        let admission = Admission::new(&Limits::default());
        // 18 000 connections per second from 60 000 addresses in 235 networks, for 20 s.
        let flood = |number: u64| {
            let address = 0x7f01_0001 + (number * 7919 % 60_000) as u32;
            // One host of each network takes no part.
            IpAddr::from(Ipv4Addr::from(if address & 0xff == 7 { address + 1 } else { address }))
        };
        let mut refused = 0;
        for millis in 0..20_000u64 {
            for step in 0..18 {
                refused += u64::from(admission.admit(flood(18 * millis + step), at(millis)).is_err());
            }
            if millis % 500 == 499 {
                // Elsewhere, and in a network that takes part in the flood. There a newcomer is like all the others until those
                // have used up what is for newcomers.
                let number = (millis / 500) as u8;
                let are_known = millis > 15_000;
                for newcomer in [Some([10, 0, number, 1]), are_known.then_some([127, 1, number, 7])] {
                    let Some(newcomer) = newcomer.map(IpAddr::from) else { continue };
                    // It looks for endpoints, then it connects.
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
    fn a_flood_from_one_network_keeps_no_newcomer_of_that_network_out() {
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
    fn an_address_from_which_somebody_has_logged_on_is_not_kept_out() {
        let admission = admission(|limits| {
            limits.connection_rate = Rate::new(10.0, 20);
            limits.connection_rate_reserved = NONE;
            limits.handshake_rate = Rate::new(10.0, 20);
            limits.handshake_rate_reserved = NONE;
        });
        admission.has_logged_on(address(1), at(0));
        for number in 0..10_000u32 {
            let stranger = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number));
            let _ = admission.admit(stranger, at(1));
            let _ = admission.may_shake_hands(Some(stranger), false, 0, at(1));
        }
        assert_eq!(admission.admit(address(2), at(2)), Err(Refusal::ServerRate));
        assert!(!admission.may_shake_hands(Some(address(2)), false, 0, at(2)));
        assert_eq!(admission.admit(address(1), at(2)), Ok(()));
        assert!(admission.may_shake_hands(Some(address(1)), false, 0, at(2)));
        // Its own rate holds for it as for everybody.
        let admitted = (0..1_000).filter(|_| admission.admit(address(1), at(2)).is_ok()).count();
        assert!(admitted < 20, "{admitted}");
    }

    #[test]
    fn places_for_handshakes_are_left_for_those_who_ask_for_few() {
        let admission = admission(|limits| limits.handshakes_max = 64);
        let flooder = IpAddr::from([10, 0, 0, 1]);
        let granted = (0..1_000).filter(|_| admission.may_shake_hands(Some(flooder), false, 48, at(0)));
        assert_eq!(granted.count(), 2, "as many as a quiet network has");
        assert!(admission.may_shake_hands(Some(flooder), false, 47, at(0)));
        let newcomer = IpAddr::from([10, 0, 1, 1]);
        assert!(admission.may_shake_hands(Some(newcomer), false, 63, at(0)));
        assert!(admission.may_shake_hands(Some(flooder), true, 63, at(0)), "an open channel gets new keys");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let admission = admission(|limits| limits.connection_rate = Rate::new(1e9, 1_000_000_000));
        for number in 0u32..200_000 {
            let address = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number * 256));
            // Never long enough for anything to become idle.
            let now = Instant::from_nanos(u64::from(number) * 1_000);
            let _ = admission.admit(address, now);
            admission.leave(address);
            admission.has_logged_on(address, now);
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
