//! The key service (SKS, Part 14 §8): creates the keys of SecurityGroups and provides them.

use super::SecurityKeys;
use super::ring::following;
use crate::time::nanos;
use std::collections::{BTreeMap, VecDeque};
use taktwerk_crypto::{Entropy, PubSubSecurityPolicy};
use taktwerk_schema::SecurityGroupDataType;
use taktwerk_types::{Instant, StatusCode};

/// The keys of one SecurityGroup.
pub struct SecurityGroupKeys {
    policy: PubSubSecurityPolicy,
    lifetime: f64,
    max_future: usize,
    max_past: usize,
    /// Oldest first, with consecutive ids.
    keys: VecDeque<Vec<u8>>,
    first_token_id: u32,
    /// Position of the current key in `keys`.
    current: usize,
    next_change: Instant,
}

/// Keys are not printed.
impl core::fmt::Debug for SecurityGroupKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SecurityGroupKeys")
            .field("policy", &self.policy)
            .field("current_token_id", &self.current_token_id())
            .field("next_change", &self.next_change)
            .finish_non_exhaustive()
    }
}

/// Maximum keys of a group, kept or created in advance.
const KEYS_MAX: u32 = 1_000;
/// Minimum lifetime of a key in milliseconds.
pub(crate) const LIFETIME_MIN: f64 = 100.0;

impl SecurityGroupKeys {
    fn token_id(&self, position: usize) -> u32 {
        (0..position).fold(self.first_token_id, |id, _| following(id))
    }

    /// The id of the current key.
    #[must_use]
    pub fn current_token_id(&self) -> u32 {
        self.token_id(self.current)
    }

    /// When the next key becomes the current one.
    #[must_use]
    pub fn next_change(&self) -> Instant {
        self.next_change
    }

    fn make(&self, entropy: &mut dyn Entropy) -> Vec<u8> {
        let mut key = vec![0; self.policy.key_data_len()];
        entropy.fill(&mut key);
        key
    }

    fn fill(&mut self, entropy: &mut dyn Entropy) {
        while self.keys.len() <= self.current + self.max_future {
            let key = self.make(entropy);
            self.keys.push_back(key);
        }
    }

    fn rotate(&mut self, entropy: &mut dyn Entropy) {
        self.current += 1;
        while self.current > self.max_past {
            self.keys.pop_front();
            self.first_token_id = following(self.first_token_id);
            self.current -= 1;
        }
        self.fill(entropy);
    }

    fn advance(&mut self, entropy: &mut dyn Entropy, now: Instant) {
        let step = nanos(self.lifetime).max(1);
        // After a long pause, the keys in between were never used; only the last rotations matter.
        let behind = now.as_nanos().saturating_sub(self.next_change.as_nanos()) / step;
        let skipped = behind.saturating_sub(KEYS_MAX.into());
        self.next_change = Instant::from_nanos(self.next_change.as_nanos() + skipped * step);
        while now >= self.next_change {
            self.rotate(entropy);
            self.next_change = Instant::from_nanos(self.next_change.as_nanos() + step);
        }
    }
}

/// Creates and provides the keys of SecurityGroups.
///
/// The server decides whether a caller may have them: [`KeyService::get_security_keys`] gets the decision and returns
/// the status of the specification.
#[derive(Debug, Default)]
pub struct KeyService {
    groups: BTreeMap<String, SecurityGroupKeys>,
}

impl KeyService {
    /// A service without groups.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group and makes its first keys (AddSecurityGroup, Part 14 §8.5.2).
    ///
    /// # Errors
    /// Bad_BrowseNameDuplicated if the id is in use, Bad_SecurityPolicyRejected for unknown policies,
    /// Bad_InvalidArgument without id or with a lifetime below 100 ms.
    pub fn add_group(
        &mut self,
        group: &SecurityGroupDataType,
        entropy: &mut dyn Entropy,
        now: Instant,
    ) -> Result<(), StatusCode> {
        let id = group.security_group_id.as_str();
        if id.is_empty() || group.key_lifetime.is_nan() || group.key_lifetime < LIFETIME_MIN {
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        }
        if self.groups.contains_key(id) {
            return Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED);
        }
        let policy = PubSubSecurityPolicy::from_uri(group.security_policy_uri.as_str())
            .ok_or(StatusCode::BAD_SECURITY_POLICY_REJECTED)?;
        let mut keys = SecurityGroupKeys {
            policy,
            lifetime: group.key_lifetime,
            max_future: group.max_future_key_count.clamp(1, KEYS_MAX) as usize,
            max_past: group.max_past_key_count.min(KEYS_MAX) as usize,
            keys: VecDeque::new(),
            first_token_id: 1,
            current: 0,
            next_change: now.plus_millis_f64(group.key_lifetime),
        };
        keys.fill(entropy);
        self.groups.insert(id.to_owned(), keys);
        Ok(())
    }

    /// Removes a group and its keys.
    ///
    /// # Errors
    /// Bad_NotFound.
    pub fn remove_group(&mut self, security_group_id: &str) -> Result<(), StatusCode> {
        self.groups.remove(security_group_id).map(|_| ()).ok_or(StatusCode::BAD_NOT_FOUND)
    }

    /// A group.
    #[must_use]
    pub fn group(&self, security_group_id: &str) -> Option<&SecurityGroupKeys> {
        self.groups.get(security_group_id)
    }

    /// When the next key of any group becomes the current one.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.groups.values().map(|group| group.next_change).min()
    }

    /// Moves all groups to the keys for this time.
    pub fn advance(&mut self, entropy: &mut dyn Entropy, now: Instant) {
        self.groups.values_mut().for_each(|group| group.advance(entropy, now));
    }

    /// GetSecurityKeys (Part 14 §8.3.2): the keys from `starting_token_id` on (0: from the current one), with the
    /// requested number of future keys, as far as available.
    ///
    /// `encrypted`: the channel is encrypted; `permitted`: the user's roles may call it for this group.
    ///
    /// # Errors
    /// Bad_SecurityModeInsufficient, Bad_UserAccessDenied, Bad_NotFound.
    #[allow(clippy::too_many_arguments)] // the Method's arguments and what the server knows
    pub fn get_security_keys(
        &mut self,
        security_group_id: &str,
        starting_token_id: u32,
        requested_key_count: u32,
        encrypted: bool,
        permitted: bool,
        entropy: &mut dyn Entropy,
        now: Instant,
    ) -> Result<SecurityKeys, StatusCode> {
        if !encrypted {
            return Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
        }
        if !permitted {
            return Err(StatusCode::BAD_USER_ACCESS_DENIED);
        }
        let group = self.groups.get_mut(security_group_id).ok_or(StatusCode::BAD_NOT_FOUND)?;
        group.advance(entropy, now);
        let known = |id: u32| (0..group.keys.len()).find(|position| group.token_id(*position) == id);
        // An unknown id: from the oldest key on.
        let start =
            if starting_token_id == 0 { group.current } else { known(starting_token_id).unwrap_or(0) };
        let count = (requested_key_count as usize).saturating_add(1);
        let left = group.next_change.as_nanos().saturating_sub(now.as_nanos());
        Ok(SecurityKeys {
            security_policy_uri: group.policy.uri().to_owned(),
            first_token_id: group.token_id(start),
            keys: group.keys.iter().skip(start).take(count).cloned().collect(),
            time_to_next_key: left as f64 / 1e6,
            key_lifetime: group.lifetime,
            current_token_id: Some(group.current_token_id()).filter(|_| start != group.current),
            nonces: None,
        })
    }

    /// ForceKeyRotation (Part 14 §8.4.3): the next key becomes the current one immediately.
    ///
    /// # Errors
    /// Bad_NotFound.
    pub fn force_key_rotation(
        &mut self,
        security_group_id: &str,
        entropy: &mut dyn Entropy,
        now: Instant,
    ) -> Result<(), StatusCode> {
        let group = self.groups.get_mut(security_group_id).ok_or(StatusCode::BAD_NOT_FOUND)?;
        group.advance(entropy, now);
        group.rotate(entropy);
        group.next_change = now.plus_millis_f64(group.lifetime);
        Ok(())
    }

    /// InvalidateKeys (Part 14 §8.4.2): replaces all keys, including future ones; ids continue after the last.
    ///
    /// # Errors
    /// Bad_NotFound.
    pub fn invalidate_keys(
        &mut self,
        security_group_id: &str,
        entropy: &mut dyn Entropy,
        now: Instant,
    ) -> Result<(), StatusCode> {
        let group = self.groups.get_mut(security_group_id).ok_or(StatusCode::BAD_NOT_FOUND)?;
        group.first_token_id = group.token_id(group.keys.len());
        group.keys.clear();
        group.current = 0;
        group.fill(entropy);
        group.next_change = now.plus_millis_f64(group.lifetime);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto::SeededEntropy;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn group() -> SecurityGroupDataType {
        SecurityGroupDataType {
            security_group_id: "g".into(),
            security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().into(),
            key_lifetime: 1000.0,
            max_future_key_count: 3,
            max_past_key_count: 1,
            ..Default::default()
        }
    }

    #[test]
    fn keys_are_handed_out_and_rotate() {
        let (mut service, mut entropy) = (KeyService::new(), SeededEntropy::new(3));
        service.add_group(&group(), &mut entropy, at(0)).unwrap();
        let duplicate = service.add_group(&group(), &mut entropy, at(0));
        assert_eq!(duplicate, Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED));
        let mut get = |service: &mut KeyService, start, count, now| {
            service.get_security_keys("g", start, count, true, true, &mut entropy, now).unwrap()
        };
        let first = get(&mut service, 0, 2, at(400));
        assert_eq!((first.first_token_id, first.keys.len(), first.time_to_next_key), (1, 3, 600.0));
        assert!(first.keys.iter().all(|key| key.len() == 68));
        let later = get(&mut service, 0, 100, at(1500));
        assert_eq!((later.first_token_id, later.keys.len()), (2, 4));
        assert_eq!(later.keys[0], first.keys[1], "the announced key follows");
        let past = get(&mut service, 1, 1, at(1500));
        assert_eq!((past.first_token_id, past.current_token_id), (1, Some(2)));
        assert_eq!(past.keys[0], first.keys[0]);
        let gone = get(&mut service, 1, 0, at(2500));
        assert_eq!(gone.first_token_id, 2, "the oldest that is left");
    }

    #[test]
    fn keys_need_permission_and_encryption() {
        let (mut service, mut entropy) = (KeyService::new(), SeededEntropy::new(3));
        service.add_group(&group(), &mut entropy, at(0)).unwrap();
        let mut get = |id, encrypted, permitted| {
            let result = service.get_security_keys(id, 0, 1, encrypted, permitted, &mut entropy, at(0));
            result.map(|_| ()).unwrap_err()
        };
        assert_eq!(get("g", false, true), StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
        assert_eq!(get("g", true, false), StatusCode::BAD_USER_ACCESS_DENIED);
        assert_eq!(get("h", true, true), StatusCode::BAD_NOT_FOUND);
    }

    #[test]
    fn forced_rotation_and_invalidation() {
        let (mut service, mut entropy) = (KeyService::new(), SeededEntropy::new(3));
        service.add_group(&group(), &mut entropy, at(0)).unwrap();
        service.force_key_rotation("g", &mut entropy, at(100)).unwrap();
        let keys = service.get_security_keys("g", 0, 9, true, true, &mut entropy, at(100)).unwrap();
        assert_eq!((keys.first_token_id, keys.time_to_next_key), (2, 1000.0));
        service.invalidate_keys("g", &mut entropy, at(200)).unwrap();
        let fresh = service.get_security_keys("g", 0, 9, true, true, &mut entropy, at(200)).unwrap();
        assert_eq!(fresh.first_token_id, 6, "after all invalidated ones");
        assert!(fresh.keys.iter().all(|key| !keys.keys.contains(key)));
        assert_eq!(service.invalidate_keys("x", &mut entropy, at(0)), Err(StatusCode::BAD_NOT_FOUND));
        // A service that was suspended for years does not create all missed keys.
        let late = Instant::from_nanos(u64::MAX / 4);
        let keys = service.get_security_keys("g", 0, 0, true, true, &mut entropy, late).unwrap();
        assert!(keys.first_token_id < 2_000);
    }
}
