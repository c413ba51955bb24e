//! The key rings of an engine, and its key requests: the pull client of a key service (Part 14 §8.2, §8.3.2).

use super::{KeyRing, KeyUpdate, ReplayFloor, ReplayGuard, ReplayMark, SecurityError, SecurityKeys};
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_crypto::PubSubProvider;
use taktwerk_schema::EndpointDescription;
use taktwerk_types::{Instant, StatusCode};

/// Options of key requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStoreOptions {
    /// Number of future keys to request, which bridge an outage of the key service.
    pub requested_key_count: u32,
    /// Number of past keys to keep, for messages in transit.
    pub past_keys_max: usize,
    /// Delay after the first failed request, in nanoseconds; it doubles with each failure.
    pub retry_nanos: u64,
    /// Maximum delay after failures, in nanoseconds.
    pub retry_nanos_max: u64,
    /// Minimum nanoseconds between requests caused by messages with an unknown SecurityTokenId: forged ones must not
    /// flood the key service. Also between requests caused by messages that announce new keys (ForceKeyReset).
    pub unknown_token_nanos: u64,
    /// Nanoseconds for which an invalidated current key stays in use, announced with ForceKeyReset, and is accepted. 0:
    /// not at all. Part 14 §8.4.2 requires invalid keys to be invalid at once, which loses messages in the meantime; in
    /// §7.2.4.4.2 publishers announce it and give subscribers five times the KeepAliveTime. The latter must be
    /// configured on both sides.
    pub invalidated_nanos: u64,
}

impl Default for KeyStoreOptions {
    fn default() -> Self {
        Self {
            requested_key_count: 5,
            past_keys_max: 2,
            retry_nanos: 500_000_000,
            retry_nanos_max: 30_000_000_000,
            unknown_token_nanos: 1_000_000_000,
            invalidated_nanos: 0,
        }
    }
}

/// A call of GetSecurityKeys to make.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRequest {
    /// The SecurityGroupId argument.
    pub security_group_id: String,
    /// The StartingTokenId argument: 0, the current key.
    pub starting_token_id: u32,
    /// The RequestedKeyCount argument.
    pub requested_key_count: u32,
    /// The servers to try, in order.
    pub services: Vec<EndpointDescription>,
}

#[derive(Debug)]
struct Group {
    ring: Option<KeyRing>,
    replay: ReplayGuard,
    services: Vec<EndpointDescription>,
    next_request: Instant,
    waiting: bool,
    /// The pending answer may be outdated: request again.
    again: bool,
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
    /// Received messages from before the start, until the keys they belong to are available.
    floor: BTreeMap<String, Vec<ReplayMark>>,
}

impl KeyStore {
    /// A store without groups.
    #[must_use]
    pub fn new(provider: Arc<dyn PubSubProvider>, options: KeyStoreOptions) -> Self {
        Self { provider, options, groups: BTreeMap::new(), floor: BTreeMap::new() }
    }

    /// Adds a group, which requests its keys at once. Adding it again adds missing key services.
    pub fn add_group(&mut self, security_group_id: &str, services: &[EndpointDescription]) {
        let group = self.groups.entry(security_group_id.to_owned()).or_insert_with(|| Group {
            ring: None,
            replay: ReplayGuard::default(),
            services: Vec::new(),
            next_request: Instant::ZERO,
            waiting: false,
            again: false,
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

    /// Removes unwanted groups with their keys. Their replay state is kept, in case a group is added again.
    pub fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        if self.groups.keys().all(|id| is_wanted(id)) {
            return;
        }
        let known = self.replay_floor();
        self.restore(known);
        // Groups with windows, and removed ones, need no marks.
        let groups = &self.groups;
        self.floor.retain(|id, _| !is_wanted(id) || groups.get(id).is_none_or(|group| group.ring.is_none()));
        self.groups.retain(|id, _| is_wanted(id));
    }

    /// When [`Self::poll_request`] has something.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.groups.values().filter(|group| !group.waiting).map(Group::due).min()
    }

    /// A call to make now; pass its result to [`Self::answer`].
    pub fn poll_request(&mut self, now: Instant) -> Option<KeyRequest> {
        let (id, group) = self.groups.iter_mut().find(|(_, group)| !group.waiting && group.due() <= now)?;
        group.waiting = true;
        Some(KeyRequest {
            security_group_id: id.clone(),
            starting_token_id: 0,
            requested_key_count: self.options.requested_key_count,
            services: group.services.clone(),
        })
    }

    /// Takes the result of a call, or pushed keys (SetSecurityKeys). The next request is due after half the
    /// KeyLifetime, or sooner after a failure.
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
        let again = core::mem::take(&mut group.again);
        let result = match outcome {
            Err(status) => {
                group.last_error = Some(status);
                group.failed(&self.options, now);
                return Ok(());
            }
            Ok(keys) => match &mut group.ring {
                Some(ring) => ring.update(&*self.provider, keys, now),
                ring => KeyRing::new(&*self.provider, keys, self.options.past_keys_max, now).map(|new| {
                    *ring = Some(new.keeping_invalidated(self.options.invalidated_nanos));
                    KeyUpdate::default()
                }),
            },
        };
        match result {
            Ok(update) => {
                group.failures = 0;
                group.last_error = None;
                let half = group.ring.as_ref().map_or(0, |ring| ring.lifetime_nanos() / 2);
                let wait = if again { 0 } else { half.max(self.options.retry_nanos) };
                group.next_request = Instant::from_nanos(now.as_nanos().saturating_add(wait));
                if outcome.is_ok_and(|keys| keys.nonces.as_ref().is_some_and(core::ops::Range::is_empty)) {
                    // Without reserved numbers nothing can be sent: retry.
                    group.failed(&self.options, now);
                }
                if let Some(ring) = &group.ring {
                    // A replaced key with the same id has its own sequence.
                    group.replay.forget(|token| ring.knows(token) && !update.replaced.contains(&token));
                    // Marks of missing keys are useless: nothing is accepted with them.
                    let marks = self.floor.remove(security_group_id).unwrap_or_default();
                    let known: Vec<_> = if marks.is_empty() { Vec::new() } else { ring.marks().collect() };
                    for mark in marks {
                        let token = known.iter().find(|(_, key)| *key == mark.key).map(|(token, _)| *token);
                        if let Some(token) = token {
                            group.replay.restore(mark.publisher_id, mark.writer_group_id, token, mark.window);
                        }
                    }
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

    /// A message had an unknown token: request keys soon, within the configured rate.
    pub fn unknown_token(&mut self, security_group_id: &str, now: Instant) {
        self.ask_soon(security_group_id, now);
    }

    /// A verified message announces that all keys become invalid (ForceKeyReset, Part 14 §7.2.4.4.2): request keys
    /// soon, within the configured rate, unless that is known already.
    pub fn key_reset(&mut self, security_group_id: &str, token_id: u32, now: Instant) {
        let ring = self.ring(security_group_id);
        if ring.is_some_and(|ring| ring.get(token_id).is_some()) {
            self.ask_soon(security_group_id, now);
        }
    }

    /// The keys have changed: request them at once.
    pub fn refresh(&mut self, security_group_id: &str, now: Instant) {
        if let Some(group) = self.groups.get_mut(security_group_id) {
            group.again = group.waiting;
            group.next_request = group.next_request.min(now);
        }
    }

    fn ask_soon(&mut self, security_group_id: &str, now: Instant) {
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

    /// The ring of a group, to take a nonce or to advance in time.
    pub fn ring_mut(&mut self, security_group_id: &str) -> Option<&mut KeyRing> {
        self.groups.get_mut(security_group_id)?.ring.as_mut()
    }

    /// The ring and the replay state of its keys.
    pub(crate) fn receiving(
        &mut self,
        security_group_id: &str,
    ) -> Option<(Option<&KeyRing>, &mut ReplayGuard)> {
        let group = self.groups.get_mut(security_group_id)?;
        Some((group.ring.as_ref(), &mut group.replay))
    }

    /// Restores the replay state from before the start. Call it before there are keys.
    pub fn restore(&mut self, floor: ReplayFloor) {
        self.floor.clear();
        for mark in floor.marks {
            self.floor.entry(mark.security_group_id.clone()).or_default().push(mark);
        }
    }

    /// The replay state, for [`Self::restore`] after a restart.
    #[must_use]
    pub fn replay_floor(&self) -> ReplayFloor {
        // For groups without keys, the restored state is unchanged.
        let mut marks: Vec<ReplayMark> = self.floor.values().flatten().cloned().collect();
        for (id, group) in &self.groups {
            let Some(ring) = group.ring.as_ref().filter(|_| !group.replay.is_empty()) else { continue };
            let known: Vec<_> = ring.marks().collect();
            for (publisher_id, writer_group_id, token_id, window) in group.replay.windows() {
                let Some((_, key)) = known.iter().find(|(token, _)| *token == token_id) else { continue };
                marks.push(ReplayMark {
                    security_group_id: id.clone(),
                    key: *key,
                    publisher_id: publisher_id.cloned(),
                    writer_group_id,
                    window,
                });
            }
        }
        ReplayFloor { marks }
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
    /// When the next request is due.
    fn due(&self) -> Instant {
        // After a failure, the delay applies.
        let wants_nonces = self.failures == 0 && self.ring.as_ref().is_some_and(KeyRing::wants_nonces);
        if wants_nonces { Instant::ZERO } else { self.next_request }
    }

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
    use taktwerk_crypto_dummy::DummyPubSubProvider;

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
            nonces: None,
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
    fn changed_keys_are_requested_at_once() {
        let mut store = KeyStore::new(Arc::new(DummyPubSubProvider), KeyStoreOptions::default());
        store.add_group("g", &[]);
        store.poll_request(at(0)).unwrap();
        // The answer may have been created before the change.
        store.refresh("g", at(5));
        assert_eq!(store.poll_request(at(5)), None);
        store.answer("g", Ok(&keys(1)), at(6)).unwrap();
        assert!(store.poll_request(at(6)).is_some());
        store.answer("g", Ok(&keys(1)), at(7)).unwrap();
        assert_eq!(store.poll_request(at(8)), None);
        store.refresh("g", at(8));
        assert!(store.poll_request(at(8)).is_some());
    }

    /// A message that announces new keys causes a request, unless these are already known.
    #[test]
    fn announced_resets_ask_at_a_bounded_rate() {
        let mut store = KeyStore::new(Arc::new(DummyPubSubProvider), KeyStoreOptions::default());
        store.add_group("g", &[]);
        store.poll_request(at(0)).unwrap();
        store.answer("g", Ok(&keys(1)), at(0)).unwrap();
        let mut requests = 0;
        for millis in 1..=2_500 {
            store.key_reset("g", 1, at(millis));
            if store.poll_request(at(millis)).is_some() {
                requests += 1;
                let found = if requests < 2 { keys(1) } else { keys(9) };
                store.answer("g", Ok(&found), at(millis)).unwrap();
            }
        }
        assert_eq!(requests, 2);
        assert_eq!(store.ring("g").unwrap().current_token_id(), 9);
    }

    /// A restarted key service begins with the same ids; the replay state of the previous keys does not apply to the
    /// new ones.
    #[test]
    fn another_key_with_the_same_id_has_a_window_of_its_own() {
        let mut store = KeyStore::new(Arc::new(DummyPubSubProvider), KeyStoreOptions::default());
        store.add_group("g", &[]);
        store.answer("g", Ok(&keys(1)), at(0)).unwrap();
        let take = |store: &mut KeyStore| store.receiving("g").unwrap().1.accept(None, Some(1), 1, 500);
        take(&mut store).unwrap();
        assert_eq!(take(&mut store), Err(SecurityError::Replayed));
        let others = SecurityKeys { keys: vec![vec![77; 52]; 2], ..keys(1) };
        store.answer("g", Ok(&others), at(10)).unwrap();
        let first = store.receiving("g").unwrap().1.accept(None, Some(1), 1, 1);
        assert_eq!(first, Ok(()));
    }

    /// After a restart, previously accepted messages are not accepted again, whatever id the key has.
    #[test]
    fn a_floor_survives_a_restart() {
        let new = || {
            let mut store = KeyStore::new(Arc::new(DummyPubSubProvider), KeyStoreOptions::default());
            store.add_group("g", &[]);
            store
        };
        let accept = |store: &mut KeyStore, token, number| {
            store.receiving("g").unwrap().1.accept(Some(7.into()), Some(1), token, number)
        };
        let mut store = new();
        store.answer("g", Ok(&keys(1)), at(0)).unwrap();
        for number in [500, 502] {
            accept(&mut store, 1, number).unwrap();
        }
        let floor = store.replay_floor();
        assert_eq!(floor.len(), 1);
        let mut store = new();
        store.restore(floor.clone());
        assert_eq!(store.replay_floor(), floor, "without keys it is unchanged");
        store.answer("g", Ok(&keys(1)), at(0)).unwrap();
        for (number, is_taken) in [(500, false), (502, false), (501, true), (300, false), (503, true)] {
            assert_eq!(accept(&mut store, 1, number).is_ok(), is_taken, "{number}");
        }
        // Another key has its own numbers.
        let mut store = new();
        store.restore(floor);
        store.answer("g", Ok(&keys(2)), at(0)).unwrap();
        assert_eq!(accept(&mut store, 2, 1), Ok(()));
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
