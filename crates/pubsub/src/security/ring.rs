//! The keys of a SecurityGroup over time.

use super::SecurityError;
use crate::time::nanos;
use core::ops::Range;
use std::collections::VecDeque;
use taktwerk_crypto::pubsub::MESSAGE_NONCE_LEN;
use taktwerk_crypto::{CryptoError, Entropy, PubSubKeys, PubSubProvider, PubSubSecurityPolicy};
use taktwerk_types::Instant;

/// The MessageNonce of a message: 4 random bytes and a sequence number (Part 14 Table 156).
pub type Nonce = [u8; MESSAGE_NONCE_LEN];

/// The result of GetSecurityKeys (Part 14 §8.3.2), or the arguments of SetSecurityKeys.
#[derive(Clone, PartialEq)]
pub struct SecurityKeys {
    /// The URI of the policy.
    pub security_policy_uri: String,
    /// The SecurityTokenId of the first key.
    pub first_token_id: u32,
    /// The key data, ordered by id. The first is the current one if the requested id was 0.
    pub keys: Vec<Vec<u8>>,
    /// Milliseconds until the next key becomes the current one.
    pub time_to_next_key: f64,
    /// Lifetime of each key in milliseconds.
    pub key_lifetime: f64,
    /// The current key's id, if the list begins with another one. `None`: the first is the current one.
    pub current_token_id: Option<u32>,
    /// Reserved nonce sequence numbers, for a key that other processes have used or will use: no other number is used
    /// with the current key. More are requested before they are used up. `None`: the key is new, and all numbers can be
    /// used.
    pub nonces: Option<Range<u32>>,
}

/// Keys are not printed.
impl core::fmt::Debug for SecurityKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SecurityKeys")
            .field("security_policy_uri", &self.security_policy_uri)
            .field("first_token_id", &self.first_token_id)
            .field("keys", &format_args!("[{} keys]", self.keys.len()))
            .field("time_to_next_key", &self.time_to_next_key)
            .field("key_lifetime", &self.key_lifetime)
            .finish_non_exhaustive()
    }
}

struct Key {
    token_id: u32,
    /// As received, to detect a restarted key service that reuses ids.
    key_data: Vec<u8>,
    keys: Box<dyn PubSubKeys>,
}

/// Keys are not printed.
impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "key {}", self.token_id)
    }
}

/// A key that the key service has invalidated while it was the current one.
#[derive(Debug)]
struct Retiring {
    key: Key,
    until: Instant,
}

/// The changes of a ring by a key service's answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KeyUpdate {
    /// The previous keys are no longer valid (InvalidateKeys, Part 14 §8.4.2).
    pub invalidated: bool,
    /// SecurityTokenIds that now belong to another key.
    pub replaced: Vec<u32>,
}

/// Past, current and future keys of one SecurityGroup, and nonces for sending with the current one.
///
/// All WriterGroups of a process with the same SecurityGroup share its ring, which keeps their nonces distinct.
///
/// A key is accepted until a KeyLifetime after the next one has replaced it (Part 14 §6.2.12.2). If an answer's current
/// key is not among the known keys although these have not run out, they were invalidated: they are discarded
/// (§9.1.3.3), and messages secured with them are no longer accepted.
#[derive(Debug)]
pub struct KeyRing {
    policy: PubSubSecurityPolicy,
    keys: VecDeque<Key>,
    current: u32,
    next_change: Instant,
    lifetime_nanos: u64,
    past_keys_max: usize,
    invalidated_nanos: u64,
    retiring: Option<Retiring>,
    /// Ids of invalidated keys: messages with them cause no key request.
    revoked: VecDeque<u32>,
    nonce_token: Option<u32>,
    nonce_random: [u8; 4],
    nonce_next: u64,
    /// End of the usable nonce numbers, exclusive.
    nonce_end: u64,
    /// Length of the last reserved range, if numbers are reserved.
    reserved_len: Option<u64>,
    /// The range after the current one.
    reserved: Option<Range<u64>>,
}

/// End of the nonce numbers, exclusive.
const ALL_NONCES: u64 = 1 << 32;

/// Maximum number of remembered ids of invalidated keys.
const REVOKED_MAX: usize = 64;
/// Tolerance between clocks for the end of the keys, in nanoseconds.
const SLACK_MAX: u64 = 1_000_000_000;

/// The id after another one; 0 is never used (Part 14 §8.3.2).
pub(super) const fn following(token_id: u32) -> u32 {
    match token_id.wrapping_add(1) {
        0 => 1,
        next => next,
    }
}

impl KeyRing {
    /// Creates a ring from the first answer of a key service.
    ///
    /// # Errors
    /// An unknown policy, no keys, or key data of a wrong length.
    pub fn new(
        provider: &dyn PubSubProvider,
        answer: &SecurityKeys,
        past_keys_max: usize,
        now: Instant,
    ) -> Result<Self, SecurityError> {
        let policy = PubSubSecurityPolicy::from_uri(&answer.security_policy_uri)
            .filter(|policy| provider.supports(*policy))
            .ok_or(SecurityError::Crypto(CryptoError::PolicyUnsupported))?;
        let mut ring = Self {
            policy,
            keys: VecDeque::new(),
            current: 0,
            next_change: now,
            lifetime_nanos: 0,
            past_keys_max,
            invalidated_nanos: 0,
            retiring: None,
            revoked: VecDeque::new(),
            nonce_token: None,
            nonce_random: [0; 4],
            nonce_next: 1,
            nonce_end: ALL_NONCES,
            reserved_len: None,
            reserved: None,
        };
        ring.update(provider, answer, now)?;
        Ok(ring)
    }

    /// Sets for how many nanoseconds an invalidated current key stays in use, announced with ForceKeyReset, and is
    /// accepted. Default: 0.
    #[must_use]
    pub fn keeping_invalidated(mut self, nanos: u64) -> Self {
        self.invalidated_nanos = nanos;
        self
    }

    /// Takes another answer: known keys stay, new ones are added, and the timing is that of the answer. Old keys are
    /// kept for messages in transit, unless the answer shows that they were invalidated.
    ///
    /// # Errors
    /// As [`Self::new`]; the ring is then as it was.
    pub fn update(
        &mut self,
        provider: &dyn PubSubProvider,
        answer: &SecurityKeys,
        now: Instant,
    ) -> Result<KeyUpdate, SecurityError> {
        if answer.keys.is_empty() || answer.first_token_id == 0 {
            return Err(SecurityError::NoKeys);
        }
        let policy = PubSubSecurityPolicy::from_uri(&answer.security_policy_uri)
            .filter(|policy| provider.supports(*policy))
            .ok_or(SecurityError::Crypto(CryptoError::PolicyUnsupported))?;
        let is_same_policy = policy == self.policy;
        let mut fresh = Vec::new();
        let mut answered = Vec::new();
        let mut token_id = answer.first_token_id;
        for key_data in &answer.keys {
            let is_known = is_same_policy
                && self.keys.iter().any(|key| key.token_id == token_id && key.key_data == *key_data);
            if !is_known {
                let keys = provider.keys(policy, key_data)?;
                fresh.push(Key { token_id, key_data: key_data.clone(), keys });
            }
            answered.push(token_id);
            token_id = following(token_id);
        }
        let current = answer.current_token_id.unwrap_or(answer.first_token_id);
        let is_new = fresh.iter().any(|new| new.token_id == current);
        if !is_new && (!is_same_policy || self.position(current).is_none()) {
            return Err(SecurityError::NoKeys);
        }
        let invalidated = !self.keys.is_empty() && (!is_same_policy || (is_new && !self.has_run_out(now)));
        let is_fresh = |id: u32| fresh.iter().any(|new| new.token_id == id);
        let replaced: Vec<u32> =
            self.keys.iter().map(|key| key.token_id).filter(|id| is_fresh(*id)).collect();
        let old_current = self.current;
        for key in core::mem::take(&mut self.keys) {
            let id = key.token_id;
            let is_kept = match (invalidated, is_new) {
                _ if is_fresh(id) => false,
                (true, _) => answered.contains(&id),
                // The successor of keys that have run out is not known.
                (false, true) => current.wrapping_sub(id) < 1 << 31,
                (false, false) => true,
            };
            if is_kept {
                self.keys.push_back(key);
            } else if invalidated && !answered.contains(&id) {
                self.revoked.push_back(id);
                if id == old_current && self.invalidated_nanos > 0 && is_same_policy {
                    let until = now.as_nanos().saturating_add(self.invalidated_nanos);
                    self.retiring = Some(Retiring { key, until: Instant::from_nanos(until) });
                }
            }
        }
        let is_gone = |id: u32| answered.contains(&id);
        self.revoked.retain(|id| !is_gone(*id));
        while self.revoked.len() > REVOKED_MAX {
            self.revoked.pop_front();
        }
        self.retiring = self.retiring.take().filter(|retiring| !is_gone(retiring.key.token_id));
        if !is_same_policy || replaced.iter().any(|id| self.nonce_token == Some(*id)) {
            self.nonce_token = None;
        }
        self.policy = policy;
        self.keys.extend(fresh);
        // The distance from the current key orders the ring, also across a wrap.
        self.keys
            .make_contiguous()
            .sort_by_key(|key| key.token_id.wrapping_sub(current).wrapping_add(1 << 31));
        self.current = current;
        self.lifetime_nanos = nanos(answer.key_lifetime);
        self.next_change = Instant::from_nanos(now.as_nanos().saturating_add(nanos(answer.time_to_next_key)));
        self.drop_past();
        if let Some(range) = &answer.nonces {
            let range = u64::from(range.start)..u64::from(range.end);
            self.reserved_len = Some(range.end.saturating_sub(range.start));
            self.reserved = Some(range).filter(|range| !range.is_empty());
        }
        Ok(KeyUpdate { invalidated, replaced })
    }

    /// Whether the last key has ended or is about to: the following keys are unknown because they were not requested.
    fn has_run_out(&self, now: Instant) -> bool {
        let future = self.lifetime_nanos.saturating_mul(self.future_keys() as u64);
        let end = self.next_change.as_nanos().saturating_add(future);
        now.as_nanos().saturating_add((self.lifetime_nanos / 16).min(SLACK_MAX)) >= end
    }

    /// When the key at a position is no longer accepted: a lifetime after the next one has replaced it.
    fn accepted_until(&self, at: usize) -> u64 {
        let current = self.position(self.current).unwrap_or(at);
        let away = self.lifetime_nanos.saturating_mul(at.abs_diff(current) as u64);
        let change = self.next_change.as_nanos();
        let end = if at < current { change.saturating_sub(away) } else { change.saturating_add(away) };
        end.saturating_add(self.lifetime_nanos)
    }

    /// The key for verifying a received message with this id.
    ///
    /// # Errors
    /// [`SecurityError::UnknownToken`]: the key service may have it; [`SecurityError::KeyInvalidated`] and
    /// [`SecurityError::KeyTooOld`]: the key existed and is no longer valid.
    pub fn accepted(&self, token_id: u32, now: Instant) -> Result<&dyn PubSubKeys, SecurityError> {
        if let Some((at, key)) = self.keys.iter().enumerate().find(|(_, key)| key.token_id == token_id) {
            return match now.as_nanos() < self.accepted_until(at) {
                true => Ok(&*key.keys),
                false => Err(SecurityError::KeyTooOld(token_id)),
            };
        }
        if let Some(retiring) = &self.retiring
            && retiring.key.token_id == token_id
            && now < retiring.until
        {
            return Ok(&*retiring.key.keys);
        }
        Err(match self.revoked.contains(&token_id) {
            true => SecurityError::KeyInvalidated(token_id),
            false => SecurityError::UnknownToken(token_id),
        })
    }

    /// Whether a key with this id is present, including one that was just invalidated.
    #[must_use]
    pub fn knows(&self, token_id: u32) -> bool {
        self.position(token_id).is_some()
            || self.retiring.as_ref().is_some_and(|retiring| retiring.key.token_id == token_id)
    }

    /// Whether sent messages must announce that all keys become invalid (ForceKeyReset, Part 14 §7.2.4.4.2).
    #[must_use]
    pub fn forces_key_reset(&self, now: Instant) -> bool {
        self.retiring_token(now).is_some()
    }

    /// The invalidated key that stays in use: one that we have sent with.
    fn retiring_token(&self, now: Instant) -> Option<u32> {
        let retiring = self.retiring.as_ref().filter(|retiring| now < retiring.until)?;
        Some(retiring.key.token_id).filter(|id| self.nonce_token == Some(*id))
    }

    fn position(&self, token_id: u32) -> Option<usize> {
        self.keys.iter().position(|key| key.token_id == token_id)
    }

    fn drop_past(&mut self) {
        while self.position(self.current).is_some_and(|at| at > self.past_keys_max) {
            self.keys.pop_front();
        }
    }

    /// The policy of the keys.
    #[must_use]
    pub fn policy(&self) -> PubSubSecurityPolicy {
        self.policy
    }

    /// The id of the current key.
    #[must_use]
    pub fn current_token_id(&self) -> u32 {
        self.current
    }

    /// The keys with an id, past, current or future.
    #[must_use]
    pub fn get(&self, token_id: u32) -> Option<&dyn PubSubKeys> {
        self.keys.iter().find(|key| key.token_id == token_id).map(|key| &*key.keys)
    }

    /// The ids of all keys, with marks that identify them.
    pub(super) fn marks(&self) -> impl Iterator<Item = (u32, super::floor::KeyMark)> {
        let retiring = self.retiring.as_ref().map(|retiring| &retiring.key);
        let marked = |key: &Key| Some((key.token_id, super::floor::key_mark(&*key.keys)?));
        self.keys.iter().chain(retiring).filter_map(marked)
    }

    /// Number of keys after the current one.
    #[must_use]
    pub fn future_keys(&self) -> usize {
        self.position(self.current).map_or(0, |at| self.keys.len() - at - 1)
    }

    /// When the next key becomes the current one, or the current one expires if there is none.
    #[must_use]
    pub fn next_change(&self) -> Instant {
        self.next_change
    }

    /// The lifetime of a key in nanoseconds.
    #[must_use]
    pub fn lifetime_nanos(&self) -> u64 {
        self.lifetime_nanos
    }

    /// Moves to the key for this time.
    ///
    /// # Errors
    /// [`SecurityError::KeysExpired`]: the last key's lifetime has ended. It can still be used for receiving.
    pub fn advance(&mut self, now: Instant) -> Result<(), SecurityError> {
        while now >= self.next_change {
            let at = self.position(self.current).ok_or(SecurityError::NoKeys)?;
            let Some(next) = self.keys.get(at + 1) else { return Err(SecurityError::KeysExpired) };
            self.current = next.token_id;
            let step = self.lifetime_nanos.max(1);
            self.next_change = Instant::from_nanos(self.next_change.as_nanos().saturating_add(step));
            self.drop_past();
        }
        Ok(())
    }

    /// The key and a nonce for the next message to send.
    ///
    /// The sequence starts at 1 for a key that becomes current while we run. For the key that is current when we start,
    /// it starts further on, in proportion to the elapsed lifetime of the key: a previous process with our name and the
    /// same key has not got that far. So nonces do not repeat, and receivers do not detect a replay.
    ///
    /// # Errors
    /// [`SecurityError::KeysExpired`], [`SecurityError::NonceExhausted`], [`SecurityError::NoncesNotReserved`].
    pub fn next_nonce(
        &mut self,
        entropy: &mut dyn Entropy,
        now: Instant,
    ) -> Result<(u32, &dyn PubSubKeys, Nonce), SecurityError> {
        self.advance(now)?;
        let token_id = self.retiring_token(now).unwrap_or(self.current);
        if self.nonce_token != Some(token_id) {
            self.nonce_next = if self.nonce_token.is_none() { self.first_number(now) } else { 1 };
            // Reserved numbers follow below; the key of a new token is ours alone.
            self.nonce_end = if self.reserved_len.is_some() { self.nonce_next } else { ALL_NONCES };
            entropy.fill(&mut self.nonce_random);
            self.nonce_token = Some(token_id);
        }
        if self.nonce_next >= self.nonce_end && self.reserved_len.is_some() {
            let range = self.reserved.take().ok_or(SecurityError::NoncesNotReserved)?;
            (self.nonce_next, self.nonce_end) = (range.start, range.end);
        }
        let number = u32::try_from(self.nonce_next).map_err(|_| SecurityError::NonceExhausted)?;
        let mut nonce = [0; MESSAGE_NONCE_LEN];
        let (random, sequence) = nonce.split_at_mut(4);
        random.copy_from_slice(&self.nonce_random);
        sequence.copy_from_slice(&number.to_le_bytes());
        self.nonce_next += 1;
        let retiring = self.retiring.as_ref().filter(|retiring| retiring.key.token_id == token_id);
        let keys = retiring.map(|retiring| &*retiring.key.keys).or_else(|| self.get(token_id));
        Ok((token_id, keys.ok_or(SecurityError::NoKeys)?, nonce))
    }

    /// Whether more numbers have to be reserved: half of the last range is used, and there is no other.
    #[must_use]
    pub fn wants_nonces(&self) -> bool {
        let is_used =
            |len| self.nonce_token.is_some() && self.nonce_end.saturating_sub(self.nonce_next) <= len / 2;
        self.reserved.is_none() && self.reserved_len.is_some_and(is_used)
    }

    /// Checks that there is a number for the next message.
    ///
    /// # Errors
    /// [`SecurityError::NoncesNotReserved`]
    pub fn check_nonces(&self) -> Result<(), SecurityError> {
        let has_some = || self.nonce_token.is_some() && self.nonce_next < self.nonce_end;
        match self.reserved_len {
            Some(_) if self.reserved.is_none() && !has_some() => Err(SecurityError::NoncesNotReserved),
            _ => Ok(()),
        }
    }

    /// Start of the sequence for a key that is already in use: at most 2^29, which receivers still treat as newer.
    fn first_number(&self, now: Instant) -> u64 {
        let left = self.next_change.as_nanos().saturating_sub(now.as_nanos());
        let gone = self.lifetime_nanos.saturating_sub(left);
        let share = u128::from(gone) << 29;
        1 + u64::try_from(share / u128::from(self.lifetime_nanos.max(1))).unwrap_or(1 << 29)
    }
}

/// The sequence number in a nonce.
#[must_use]
pub(crate) fn nonce_number(nonce: &Nonce) -> u32 {
    let [_, _, _, _, a, b, c, d] = *nonce;
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto::SeededEntropy;
    use taktwerk_crypto_dummy::DummyPubSubProvider;

    fn answer(first: u32, count: u8, time_to_next: f64) -> SecurityKeys {
        SecurityKeys {
            security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().to_owned(),
            first_token_id: first,
            keys: (0..count).map(|index| vec![index; 68]).collect(),
            time_to_next_key: time_to_next,
            key_lifetime: 1000.0,
            current_token_id: None,
            nonces: None,
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn keys_follow_each_other_and_then_there_is_an_error() {
        let mut ring = KeyRing::new(&DummyPubSubProvider, &answer(u32::MAX, 3, 400.0), 1, at(0)).unwrap();
        assert_eq!((ring.current_token_id(), ring.future_keys()), (u32::MAX, 2));
        ring.advance(at(399)).unwrap();
        assert_eq!(ring.current_token_id(), u32::MAX);
        ring.advance(at(400)).unwrap();
        assert_eq!(ring.current_token_id(), 1, "0 is no token id");
        assert!(ring.get(u32::MAX).is_some(), "one past key is kept");
        ring.advance(at(1400)).unwrap();
        assert_eq!(ring.current_token_id(), 2);
        assert!(ring.get(u32::MAX).is_none());
        assert_eq!(ring.advance(at(2400)), Err(SecurityError::KeysExpired));
        assert!(ring.get(2).is_some(), "late messages can still be read");
        ring.update(&DummyPubSubProvider, &answer(3, 2, 900.0), at(2500)).unwrap();
        ring.advance(at(2500)).unwrap();
        assert_eq!((ring.current_token_id(), ring.future_keys()), (3, 1));
        assert!(ring.get(2).is_some());
    }

    #[test]
    fn sequences_start_again_with_a_key() {
        let mut entropy = SeededEntropy::new(1);
        let mut ring = KeyRing::new(&DummyPubSubProvider, &answer(7, 2, 1000.0), 1, at(0)).unwrap();
        let mut take = |ring: &mut KeyRing, now| {
            let (token, _, nonce) = ring.next_nonce(&mut entropy, now).unwrap();
            (token, nonce_number(&nonce))
        };
        assert_eq!(take(&mut ring, at(0)), (7, 1));
        assert_eq!(take(&mut ring, at(999)), (7, 2));
        assert_eq!(take(&mut ring, at(1000)), (8, 1));
        // A publisher that starts in the middle of a key's lifetime begins in the middle of the numbers.
        let mut late = KeyRing::new(&DummyPubSubProvider, &answer(7, 2, 500.0), 1, at(0)).unwrap();
        assert_eq!(take(&mut late, at(0)), (7, 1 + (1 << 28)));
    }

    #[test]
    fn numbers_run_out_before_they_repeat() {
        let mut entropy = SeededEntropy::new(1);
        let mut ring = KeyRing::new(&DummyPubSubProvider, &answer(7, 1, 1000.0), 1, at(0)).unwrap();
        ring.next_nonce(&mut entropy, at(0)).unwrap();
        ring.nonce_next = u64::from(u32::MAX);
        assert!(ring.next_nonce(&mut entropy, at(0)).is_ok());
        let exhausted = ring.next_nonce(&mut entropy, at(0)).map(|_| ());
        assert_eq!(exhausted, Err(SecurityError::NonceExhausted));
    }

    /// Only reserved numbers are used, in order; more are requested in time.
    #[test]
    fn only_reserved_numbers_are_used() {
        let mut entropy = SeededEntropy::new(1);
        let with = |nonces| SecurityKeys { nonces: Some(nonces), ..answer(7, 1, 1000.0) };
        let mut ring = KeyRing::new(&DummyPubSubProvider, &with(100..104), 1, at(0)).unwrap();
        let mut take = |ring: &mut KeyRing| {
            ring.next_nonce(&mut entropy, at(0)).map(|(_, _, nonce)| nonce_number(&nonce))
        };
        assert!(!ring.wants_nonces() && ring.check_nonces().is_ok());
        assert_eq!((take(&mut ring), ring.wants_nonces()), (Ok(100), false));
        assert_eq!((take(&mut ring), ring.wants_nonces()), (Ok(101), true));
        ring.update(&DummyPubSubProvider, &with(108..112), at(0)).unwrap();
        assert!(!ring.wants_nonces());
        for number in [102, 103, 108, 109, 110, 111] {
            assert_eq!(take(&mut ring), Ok(number));
        }
        assert!(ring.wants_nonces());
        assert_eq!(take(&mut ring), Err(SecurityError::NoncesNotReserved));
        assert_eq!(ring.check_nonces(), Err(SecurityError::NoncesNotReserved));
        // Without reserved numbers, messages can still be received.
        ring.update(&DummyPubSubProvider, &with(0..0), at(0)).unwrap();
        assert_eq!(take(&mut ring), Err(SecurityError::NoncesNotReserved));
        assert!(ring.accepted(7, at(0)).is_ok());
        ring.update(&DummyPubSubProvider, &with(120..u32::MAX), at(0)).unwrap();
        assert_eq!(take(&mut ring), Ok(120));
        let mut none = KeyRing::new(&DummyPubSubProvider, &with(5..5), 1, at(0)).unwrap();
        assert_eq!(none.check_nonces(), Err(SecurityError::NoncesNotReserved));
        assert_eq!(take(&mut none), Err(SecurityError::NoncesNotReserved));
    }

    fn other(first: u32, byte: u8, time_to_next: f64) -> SecurityKeys {
        let keys = (0..4).map(|index| vec![byte + index; 68]).collect();
        SecurityKeys { keys, ..answer(first, 0, time_to_next) }
    }

    /// InvalidateKeys: the service answers with keys after all known ones, before these have run out.
    #[test]
    fn keys_that_were_invalidated_are_not_accepted_any_more() {
        let mut entropy = SeededEntropy::new(1);
        let mut ring = KeyRing::new(&DummyPubSubProvider, &answer(7, 3, 1000.0), 2, at(0)).unwrap();
        assert_eq!(ring.next_nonce(&mut entropy, at(0)).unwrap().0, 7);
        ring.advance(at(1500)).unwrap();
        assert!(ring.accepted(7, at(1500)).is_ok(), "past, but on time");
        let update = ring.update(&DummyPubSubProvider, &other(10, 50, 1000.0), at(1600)).unwrap();
        assert_eq!(update, KeyUpdate { invalidated: true, replaced: Vec::new() });
        for old in 7..10 {
            assert_eq!(ring.accepted(old, at(1600)).err(), Some(SecurityError::KeyInvalidated(old)));
        }
        assert!(ring.accepted(10, at(1600)).is_ok() && ring.accepted(13, at(1600)).is_ok());
        assert_eq!(ring.accepted(14, at(1600)).err(), Some(SecurityError::UnknownToken(14)));
        assert!(!ring.forces_key_reset(at(1600)));
        let (token, _, nonce) = ring.next_nonce(&mut entropy, at(1600)).unwrap();
        assert_eq!((token, nonce_number(&nonce)), (10, 1));
        // A service that has lost its state begins with the first id again.
        let update = ring.update(&DummyPubSubProvider, &other(10, 90, 1000.0), at(1700)).unwrap();
        assert_eq!(update, KeyUpdate { invalidated: true, replaced: vec![10, 11, 12, 13] });
        let update = ring.update(&DummyPubSubProvider, &other(1, 120, 1000.0), at(1800)).unwrap();
        assert!(update.invalidated && update.replaced.is_empty());
        assert_eq!((ring.current_token_id(), ring.future_keys()), (1, 3));
        assert_eq!(ring.accepted(13, at(1800)).err(), Some(SecurityError::KeyInvalidated(13)));
    }

    /// A forced rotation, or missed rotations, are no invalidation.
    #[test]
    fn following_keys_are_no_invalidation() {
        let mut ring = KeyRing::new(&DummyPubSubProvider, &answer(7, 3, 1000.0), 2, at(0)).unwrap();
        let forced =
            SecurityKeys { keys: vec![vec![1; 68], vec![2; 68], vec![3; 68]], ..answer(8, 0, 1000.0) };
        assert_eq!(ring.update(&DummyPubSubProvider, &forced, at(300)).unwrap(), KeyUpdate::default());
        assert!(ring.accepted(7, at(1299)).is_ok(), "on its way");
        assert_eq!(ring.accepted(7, at(1300)).err(), Some(SecurityError::KeyTooOld(7)));
        // 8, 9 and 10 last until 3300.
        let update = ring.update(&DummyPubSubProvider, &other(11, 50, 1000.0), at(3300)).unwrap();
        assert_eq!(update, KeyUpdate::default());
        assert!(ring.accepted(10, at(3300)).is_ok());
        // The same, but new keys were not received in time: the old ones end (Part 14 §6.2.12.2).
        let mut late = KeyRing::new(&DummyPubSubProvider, &answer(7, 1, 1000.0), 2, at(0)).unwrap();
        assert!(late.accepted(7, at(1999)).is_ok());
        assert_eq!(late.accepted(7, at(2000)).err(), Some(SecurityError::KeyTooOld(7)));
        assert!(late.advance(at(2000)).is_err());
    }

    /// Part 14 §7.2.4.4.2: a publisher can keep using the old key for a while and announce that.
    #[test]
    fn an_invalidated_key_can_be_announced_for_a_while() {
        let mut entropy = SeededEntropy::new(1);
        let ring = KeyRing::new(&DummyPubSubProvider, &answer(7, 3, 1000.0), 2, at(0)).unwrap();
        let mut ring = ring.keeping_invalidated(100_000_000);
        let mut take = |ring: &mut KeyRing, now| {
            let forces = ring.forces_key_reset(now);
            let (token, _, nonce) = ring.next_nonce(&mut entropy, now).unwrap();
            (token, nonce_number(&nonce), forces)
        };
        assert_eq!(take(&mut ring, at(10)), (7, 1 + (1 << 29) / 100, false));
        assert!(ring.update(&DummyPubSubProvider, &other(10, 50, 1000.0), at(20)).unwrap().invalidated);
        assert_eq!(take(&mut ring, at(119)), (7, 2 + (1 << 29) / 100, true));
        assert!(ring.knows(7) && ring.accepted(7, at(119)).is_ok());
        assert_eq!(take(&mut ring, at(120)), (10, 1, false));
        assert_eq!(ring.accepted(7, at(120)).err(), Some(SecurityError::KeyInvalidated(7)));
        assert_eq!(ring.accepted(8, at(119)).err(), Some(SecurityError::KeyInvalidated(8)));
    }

    #[test]
    fn invalid_answers_change_nothing() {
        let mut ring = KeyRing::new(&DummyPubSubProvider, &answer(7, 2, 1000.0), 1, at(0)).unwrap();
        let mut wrong = answer(9, 1, 1000.0);
        wrong.keys = vec![vec![0; 67]];
        assert!(ring.update(&DummyPubSubProvider, &wrong, at(0)).is_err());
        wrong.keys.clear();
        assert_eq!(ring.update(&DummyPubSubProvider, &wrong, at(0)), Err(SecurityError::NoKeys));
        assert_eq!(ring.current_token_id(), 7);
        let unknown = SecurityKeys { security_policy_uri: "x".into(), ..answer(1, 1, 1.0) };
        assert!(KeyRing::new(&DummyPubSubProvider, &unknown, 1, at(0)).is_err());
        assert!(!format!("{:?}", answer(1, 1, 1.0)).contains("68"));
    }
}
