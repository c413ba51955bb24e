//! How often an address may try something.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many attempts per address and span; more have to wait.
#[derive(Debug)]
pub(crate) struct RateLimit {
    attempts_max: u32,
    span: Duration,
    addresses: Mutex<BTreeMap<IpAddr, (Instant, u32)>>,
}

/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;

impl RateLimit {
    pub(crate) fn new(attempts_max: u32, span: Duration) -> Self {
        Self { attempts_max, span, addresses: Mutex::default() }
    }

    /// Counts an attempt. Whether it may be made.
    pub(crate) fn pass(&self, address: IpAddr, now: Instant) -> bool {
        let address = counted(address);
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&address) {
            addresses.retain(|_, (since, _)| now.saturating_duration_since(*since) < self.span);
            if addresses.len() >= ADDRESSES_MAX {
                return false;
            }
        }
        let (since, count) = addresses.entry(address).or_insert((now, 0));
        if now.saturating_duration_since(*since) >= self.span {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= self.attempts_max
    }

    /// Forgets the attempts of an address: one of them succeeded.
    pub(crate) fn succeeded(&self, address: IpAddr) {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).remove(&counted(address));
    }
}

/// What counts as one address: of IPv6 the first 64 bits, because the others are a customer's own to choose.
pub(crate) fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & u128::from(u64::MAX) << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_an_ipv6_network_count_as_one() {
        let limit = RateLimit::new(2, Duration::from_secs(60));
        let now = Instant::now();
        let pass = |address: &str| limit.pass(address.parse().unwrap(), now);
        assert_eq!(["2001:db8::1", "2001:db8::2", "2001:db8::ffff:1"].map(pass), [true, true, false]);
        assert!(pass("2001:db8:0:1::1"));
        assert_eq!(
            ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2"].map(pass),
            [true, true, false, true]
        );
        limit.succeeded("2001:db8::9".parse().unwrap());
        assert!(pass("2001:db8::1"));
    }

    #[test]
    fn attempts_are_limited_per_address_and_span() {
        let limit = RateLimit::new(2, Duration::from_secs(60));
        let (one, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let now = Instant::now();
        assert_eq!([(); 3].map(|()| limit.pass(one, now)), [true, true, false]);
        assert!(limit.pass(other, now));
        assert!(limit.pass(one, now + Duration::from_secs(60)));
        limit.succeeded(one);
        assert_eq!([(); 3].map(|()| limit.pass(one, now)), [true, true, false]);
    }

    #[test]
    fn the_addresses_are_bounded() {
        let limit = RateLimit::new(1, Duration::from_secs(60));
        let now = Instant::now();
        for number in 0..ADDRESSES_MAX as u32 {
            assert!(limit.pass(IpAddr::from(number.to_be_bytes()), now));
        }
        assert!(!limit.pass(IpAddr::from([255, 0, 0, 1]), now));
        assert!(limit.pass(IpAddr::from([255, 0, 0, 1]), now + Duration::from_secs(61)));
    }
}
