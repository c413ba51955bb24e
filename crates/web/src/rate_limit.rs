//! The rate limits of login attempts: per user and address, and per address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The period of the limits.
const SPAN: Duration = Duration::from_secs(60);
/// Maximum attempts per user and address.
const OF_USER: u32 = 10;
/// Maximum attempts per address. A reverse proxy has those of many browsers.
const OF_ADDRESS: u32 = 100;

/// The limits of logins.
#[derive(Debug)]
pub(crate) struct Logins {
    of_user: RateLimit<(IpAddr, String)>,
    of_address: RateLimit<IpAddr>,
}

impl Default for Logins {
    fn default() -> Self {
        Self { of_user: RateLimit::new(OF_USER, SPAN), of_address: RateLimit::new(OF_ADDRESS, SPAN) }
    }
}

impl Logins {
    /// Counts an attempt. Returns whether it is allowed.
    pub(crate) fn pass(&self, address: IpAddr, user: &str, now: Instant) -> bool {
        let address = counted(address);
        // Check the address first: names that a blocked address invents must not evict other entries. Attempts above
        // the user's limit do not count for the address.
        self.of_address.is_below_limit(&address, now)
            && self.of_user.pass((address, user.to_owned()), now)
            && self.of_address.pass(address, now)
    }

    /// Takes back the attempt that succeeded. Earlier ones still count for the address, so that a user with a valid
    /// password cannot guess other passwords for longer.
    pub(crate) fn succeeded(&self, address: IpAddr, user: &str) {
        let address = counted(address);
        self.of_user.forget(&(address, user.to_owned()));
        self.of_address.give_back(&address);
    }
}

/// A limit of attempts per key and period.
#[derive(Debug)]
struct RateLimit<K> {
    attempts_max: u32,
    span: Duration,
    attempts: Mutex<BTreeMap<K, (Instant, u32)>>,
}

/// Maximum number of keys in memory.
const KEYS_MAX: usize = 10_000;

impl<K: Ord + Clone> RateLimit<K> {
    fn new(attempts_max: u32, span: Duration) -> Self {
        Self { attempts_max, span, attempts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, (Instant, u32)>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an attempt would be allowed now.
    fn is_below_limit(&self, key: &K, now: Instant) -> bool {
        self.lock().get(key).is_none_or(|(since, count)| {
            *count < self.attempts_max || now.saturating_duration_since(*since) >= self.span
        })
    }

    /// Counts an attempt. Returns whether it is allowed. If there are too many keys, the oldest is evicted: refusing
    /// new keys would allow a few clients to lock out all others.
    fn pass(&self, key: K, now: Instant) -> bool {
        let mut attempts = self.lock();
        if attempts.len() >= KEYS_MAX && !attempts.contains_key(&key) {
            attempts.retain(|_, (since, _)| now.saturating_duration_since(*since) < self.span);
            if attempts.len() >= KEYS_MAX {
                let oldest = attempts.iter().min_by_key(|(_, (since, _))| *since);
                if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                    attempts.remove(&oldest);
                }
            }
        }
        let (since, count) = attempts.entry(key).or_insert((now, 0));
        if now.saturating_duration_since(*since) >= self.span {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= self.attempts_max
    }

    /// Takes back one attempt.
    fn give_back(&self, key: &K) {
        if let Some((_, count)) = self.lock().get_mut(key) {
            *count = count.saturating_sub(1);
        }
    }

    fn forget(&self, key: &K) {
        self.lock().remove(key);
    }
}

/// The address that counts for limits. IPv6 addresses are reduced to the first 64 bits, because a customer can choose
/// the others. All of loopback is one machine.
pub(crate) fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & u128::from(u64::MAX) << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_address_evicts_no_entries() {
        let (logins, now) = (Logins::default(), Instant::now());
        let (honest, other) = ("192.0.2.1".parse().unwrap(), "198.51.100.7".parse().unwrap());
        (0..OF_USER).for_each(|_| assert!(logins.pass(honest, "ada", now)));
        assert!(!logins.pass(honest, "ada", now));
        let passed = (0..2 * KEYS_MAX).filter(|at| logins.pass(other, &format!("name {at}"), now)).count();
        assert_eq!(passed, OF_ADDRESS as usize);
        assert!(!logins.pass(honest, "ada", now));
        assert!(logins.of_user.lock().len() <= OF_ADDRESS as usize + 1);
    }

    #[test]
    fn addresses_of_one_machine_or_customer_count_as_one() {
        let of = |address: &str| counted(address.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        for loopback in ["127.0.0.1", "127.7.0.9", "::1", "::ffff:127.0.0.2"] {
            assert!(of(loopback).is_loopback() && of(loopback) == of("127.0.0.1"), "{loopback}");
        }
    }

    #[test]
    fn wrong_passwords_for_one_user_do_not_block_the_address() {
        let (logins, now) = (Logins::default(), Instant::now());
        let (proxy, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([192, 0, 2, 2]));
        let attempts = |address, user| (0..OF_USER).filter(|_| logins.pass(address, user, now)).count();
        assert_eq!(attempts(proxy, "ada"), 10);
        assert!(!logins.pass(proxy, "ada", now));
        assert!(logins.pass(proxy, "bob", now) && logins.pass(other, "ada", now));
        assert!(logins.pass(proxy, "ada", now + SPAN));
    }

    #[test]
    fn a_valid_password_does_not_extend_the_guessing_limit() {
        let (logins, now) = (Logins::default(), Instant::now());
        let address = IpAddr::from([192, 0, 2, 1]);
        let mut guesses = 0;
        for round in 0..1_000 {
            // A correct login with the user's own password in between.
            if logins.pass(address, "eve", now) {
                logins.succeeded(address, "eve");
            }
            guesses += u32::from(logins.pass(address, &format!("user {}", round % 50), now));
        }
        assert!(guesses <= OF_ADDRESS, "{guesses}");
        for _ in 0..1_000 {
            let other = IpAddr::from([192, 0, 2, 9]);
            assert!(logins.pass(other, "ada", now), "successful logins are not limited");
            logins.succeeded(other, "ada");
        }
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let limit = RateLimit::new(1, SPAN);
        let now = Instant::now();
        for number in 0..KEYS_MAX + 100 {
            assert!(limit.pass(number, now + Duration::from_millis(number as u64)));
        }
        assert_eq!(limit.lock().len(), KEYS_MAX);
        assert!(!limit.pass(KEYS_MAX, now + Duration::from_secs(11)), "newer keys are kept");
    }
}
