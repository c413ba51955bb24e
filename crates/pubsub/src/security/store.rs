//! The key rings of an engine, and when it wants new keys: the pull client of a key service (Part 14 §8.2, §8.3.2).

use super::{KeyRing, ReplayGuard, SecurityError, SecurityKeys};
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_crypto::PubSubProvider;
use taktwerk_schema::EndpointDescription;
use taktwerk_types::{Instant, StatusCode};

/// How keys are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStoreOptions {
    /// Future keys to ask for: they bridge the time in which the key service is away.
    pub requested_key_count: u32,
    /// Past keys to keep, for messages that are on their way.
    pub past_keys_max: usize,
    /// Nanoseconds to wait after the first failed request; doubles with each.
    pub retry_nanos: u64,
    /// Nanoseconds between requests after failures at most.
    pub retry_nanos_max: u64,
    /// Nanoseconds between requests because of messages with an unknown SecurityTokenId: whoever forges them cannot
    /// make us flood the key service.
    pub unknown_token_nanos: u64,
}

impl Default for KeyStoreOptions {
    fn default() -> Self {
        Self {
            requested_key_count: 5,
            past_keys_max: 2,
            retry_nanos: 500_000_000,
            retry_nanos_max: 30_000_000_000,
            unknown_token_nanos: 1_000_000_000,
        }
    }
}

/// A call of GetSecurityKeys that somebody has to make.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRequest {
    /// The SecurityGroupId argument.
    pub security_group_id: String,
    /// The StartingTokenId argument: 0, the current key.
    pub starting_token_id: u32,
    /// The RequestedKeyCount argument.
    pub requested_key_count: u32,
    /// The servers that may be asked, in order.
    pub services: Vec<EndpointDescription>,
}

#[derive(Debug)]
struct Group {
    ring: Option<KeyRing>,
    replay: ReplayGuard,
    services: Vec<EndpointDescription>,
    next_request: Instant,
    waiting: bool,
    failures: u32,
    last_unknown: Option<Instant>,
    last_error: Option<StatusCode>,
}

/// The rings by SecurityGroupId.
#[derive(Debug)]
pub struct KeyStore {
    provider: Arc<dyn PubSubProvider>,
    options: KeyStoreOptions,
    groups: BTreeMap<String, Group>,
}

impl KeyStore {
    /// A store without groups.
    #[must_use]
    pub fn new(provider: Arc<dyn PubSubProvider>, options: KeyStoreOptions) -> Self {
        Self { provider, options, groups: BTreeMap::new() }
    }

    /// Adds a group, which wants its keys at once. Adding it again adds key services it did not have.
    pub fn add_group(&mut self, security_group_id: &str, services: &[EndpointDescription]) {
        let group = self.groups.entry(security_group_id.to_owned()).or_insert_with(|| Group {
            ring: None,
            replay: ReplayGuard::default(),
            services: Vec::new(),
            next_request: Instant::ZERO,
            waiting: false,
            failures: 0,
            last_unknown: None,
            last_error: None,
        });
        for service in services {
            if !group.services.contains(service) {
                group.services.push(service.clone());
            }
        }
    }

    /// Forgets the groups that are not wanted any more, with their keys.
    pub fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.groups.retain(|id, _| is_wanted(id));
    }

    /// When [`Self::poll_request`] has something.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.groups.values().filter(|group| !group.waiting).map(|group| group.next_request).min()
    }

    /// A call to make now; its outcome comes back through [`Self::answer`].
    pub fn poll_request(&mut self, now: Instant) -> Option<KeyRequest> {
        let (id, group) =
            self.groups.iter_mut().find(|(_, group)| !group.waiting && group.next_request <= now)?;
        group.waiting = true;
        Some(KeyRequest {
            security_group_id: id.clone(),
            starting_token_id: 0,
            requested_key_count: self.options.requested_key_count,
            services: group.services.clone(),
        })
    }

    /// The outcome of a call, or keys that were pushed (SetSecurityKeys). The next request is due at half the
    /// KeyLifetime, after a failure sooner.
    ///
    /// # Errors
    /// The group is not known, or the keys cannot be used.
    pub fn answer(
        &mut self,
        security_group_id: &str,
        outcome: Result<&SecurityKeys, StatusCode>,
        now: Instant,
    ) -> Result<(), SecurityError> {
        let group = self.groups.get_mut(security_group_id).ok_or(SecurityError::NoKeys)?;
        group.waiting = false;
        let result = match outcome {
            Err(status) => {
                group.last_error = Some(status);
                group.failed(&self.options, now);
                return Ok(());
            }
            Ok(keys) => match &mut group.ring {
                Some(ring) => ring.update(&*self.provider, keys, now),
                ring => KeyRing::new(&*self.provider, keys, self.options.past_keys_max, now)
                    .map(|new| *ring = Some(new)),
            },
        };
        match result {
            Ok(()) => {
                group.failures = 0;
                group.last_error = None;
                let half = group.ring.as_ref().map_or(0, |ring| ring.lifetime_nanos() / 2);
                let wait = half.max(self.options.retry_nanos);
                group.next_request = Instant::from_nanos(now.as_nanos().saturating_add(wait));
                if let Some(ring) = &group.ring {
                    group.replay.forget(|token| ring.get(token).is_some());
                }
                Ok(())
            }
            Err(error) => {
                group.last_error = Some(error.status());
                group.failed(&self.options, now);
                Err(error)
            }
        }
    }

    /// A message came with a token that the ring does not have: ask soon, but not more often than the options say.
    pub fn unknown_token(&mut self, security_group_id: &str, now: Instant) {
        let Some(group) = self.groups.get_mut(security_group_id) else { return };
        let pause = self.options.unknown_token_nanos;
        let recently = group.last_unknown.is_some_and(|last| last.as_nanos() + pause > now.as_nanos());
        if !recently && !group.waiting {
            group.last_unknown = Some(now);
            group.next_request = group.next_request.min(now);
        }
    }

    /// The ring of a group, if it has keys.
    #[must_use]
    pub fn ring(&self, security_group_id: &str) -> Option<&KeyRing> {
        self.groups.get(security_group_id)?.ring.as_ref()
    }

    /// The ring of a group, to take a nonce or move on in time.
    pub fn ring_mut(&mut self, security_group_id: &str) -> Option<&mut KeyRing> {
        self.groups.get_mut(security_group_id)?.ring.as_mut()
    }

    /// The ring and what was received with its keys.
    pub(crate) fn receiving(
        &mut self,
        security_group_id: &str,
    ) -> Option<(Option<&KeyRing>, &mut ReplayGuard)> {
        let group = self.groups.get_mut(security_group_id)?;
        Some((group.ring.as_ref(), &mut group.replay))
    }

    /// Why the last request of a group failed.
    #[must_use]
    pub fn last_error(&self, security_group_id: &str) -> Option<StatusCode> {
        self.groups.get(security_group_id)?.last_error
    }

    /// The ids of the groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }
}

impl Group {
    fn failed(&mut self, options: &KeyStoreOptions, now: Instant) {
        let wait =
            options.retry_nanos.saturating_mul(1 << self.failures.min(16)).min(options.retry_nanos_max);
        self.failures = self.failures.saturating_add(1);
        self.next_request = Instant::from_nanos(now.as_nanos().saturating_add(wait));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto::PubSubSecurityPolicy;
    use taktwerk_crypto::pubsub_dummy::DummyPubSubProvider;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn keys(first: u32) -> SecurityKeys {
        SecurityKeys {
            security_policy_uri: PubSubSecurityPolicy::Aes128Ctr.uri().into(),
            first_token_id: first,
            keys: vec![vec![first as u8; 52]; 2],
            time_to_next_key: 10_000.0,
            key_lifetime: 10_000.0,
            current_token_id: None,
        }
    }

    #[test]
    fn asks_at_half_the_lifetime_and_after_failures_with_growing_pauses() {
        let mut store = KeyStore::new(Arc::new(DummyPubSubProvider), KeyStoreOptions::default());
        store.add_group("g", &[]);
        let request = store.poll_request(at(0)).unwrap();
        assert_eq!((request.security_group_id.as_str(), request.starting_token_id), ("g", 0));
        assert_eq!(store.poll_request(at(0)), None, "one call at a time");
        store.answer("g", Err(StatusCode::BAD_TIMEOUT), at(0)).unwrap();
        assert_eq!(store.last_error("g"), Some(StatusCode::BAD_TIMEOUT));
        let mut expected = 500;
        let mut now = 0;
        for _ in 0..3 {
            assert_eq!(store.poll_timeout(), Some(at(now + expected)));
            now += expected;
            expected *= 2;
            assert!(store.poll_request(at(now)).is_some());
            store.answer("g", Err(StatusCode::BAD_TIMEOUT), at(now)).unwrap();
        }
        now += expected;
        assert!(store.poll_request(at(now)).is_some());
        store.answer("g", Ok(&keys(1)), at(now)).unwrap();
        assert_eq!(store.poll_timeout(), Some(at(now + 5_000)));
        assert!(store.ring("g").is_some());
    }

    #[test]
    fn unknown_tokens_ask_at_a_bounded_rate() {
        let mut store = KeyStore::new(Arc::new(DummyPubSubProvider), KeyStoreOptions::default());
        store.add_group("g", &[]);
        store.poll_request(at(0)).unwrap();
        store.answer("g", Ok(&keys(1)), at(0)).unwrap();
        let mut requests = 0;
        for millis in 0..4_000 {
            store.unknown_token("g", at(millis));
            if store.poll_request(at(millis)).is_some() {
                requests += 1;
                store.answer("g", Ok(&keys(1)), at(millis)).unwrap();
            }
        }
        assert_eq!(requests, 4);
    }
}
