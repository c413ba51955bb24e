//! Live gateways and lease holders according to the keys of a bucket. Pure logic: no connection, no clock.
//!
//! Each gateway has a key that it writes in every round. Each source has a key with the gateway that polls it. Every write names
//! the revision that it replaces, so if two gateways write the same key, one of them fails. A gateway whose key has not changed
//! for its lease time is removed by replacing its key. It then cannot renew, and its sources are free.
//!
//! Only times measured by the same gateway are compared, so the machines' clocks need not agree.

use super::share::{Decision, Seen, Share, fingerprint};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_types::hexadecimal;
use tokio::time::Instant;

/// How long removed gateways are remembered.
const FORGOTTEN: Duration = Duration::from_secs(3600);
/// Longest accepted lease time: three times the longest time between two rounds. Higher values are invalid.
const LEASE_MAX: Duration = Duration::from_secs(3);

/// A write of a key that fails if the revision differs. Revision 0 means that the key was never written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) revision: u64,
}

/// A gateway of the group.
#[derive(Debug)]
struct Member {
    revision: u64,
    /// How long its leases are valid after renewal; `None` if it was removed.
    lease_time: Option<Duration>,
    /// A hash of the sources that it wants.
    wants: Option<u64>,
    /// When this revision was first seen, and when the gateway was first seen.
    seen: Instant,
    since: Instant,
    /// Since when it has had no connection.
    silent: Option<Instant>,
}

/// A source's key.
#[derive(Debug)]
struct Source {
    revision: u64,
    /// The gateway that polls it; empty if none does.
    owner: String,
}

/// How long a gateway without a connection polls its sources at most.
pub(super) fn grace(lease_time: Duration) -> Duration {
    lease_time / 5
}

/// How long a gateway must be without a connection before others take its sources. It may have lost only the connection, and
/// needs time to detect that and stop.
fn silence(lease_time: Duration) -> Duration {
    lease_time / 10 * 3
}

/// The state of the group as known by one gateway.
#[derive(Debug)]
pub(super) struct Registry {
    group: String,
    id: String,
    /// The revision of the own key.
    revision: u64,
    lease_time: Duration,
    /// A hash of the sources that this gateway wants.
    wants: u64,
    until: Option<Instant>,
    members: BTreeMap<String, Member>,
    sources: BTreeMap<String, Source>,
    held: BTreeSet<String>,
    linked: Instant,
    /// Before this time no lease is taken.
    settled: Instant,
    share: Share,
}

impl Registry {
    /// A gateway without leases. Ids must be unique.
    pub(super) fn new(group: &str, id: String, now: Instant) -> Self {
        Self {
            group: token(group),
            id,
            revision: 0,
            lease_time: Duration::ZERO,
            wants: 0,
            until: None,
            members: BTreeMap::new(),
            sources: BTreeMap::new(),
            held: BTreeSet::new(),
            linked: now,
            settled: now,
            share: Share::default(),
        }
    }

    /// The id of this gateway.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The key prefix of the group.
    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// A new connection: all keys will be reported again.
    pub(super) fn connected(&mut self, now: Instant) {
        self.members.clear();
        self.sources.clear();
        self.linked = now;
    }

    /// Reports the age of the bucket. If it is less than a lease time, gateways with leases in a previous bucket may not have
    /// stopped yet, whichever gateway created this one.
    pub(super) fn bucket_is_old(&mut self, age: Duration, now: Instant) {
        if let Some(left) = LEASE_MAX.checked_sub(age) {
            self.settled = self.settled.max(now + left);
        }
    }

    /// Renews the leases for a time, and publishes the hash of the wanted sources.
    pub(super) fn renew(&mut self, lease_time: Duration, wanted: &[String]) -> Write {
        self.lease_time = lease_time;
        self.wants = fingerprint(wanted);
        let value = format!("{} {:016x}", lease_time.as_millis(), self.wants);
        Write { key: self.own_key(), value, revision: self.revision }
    }

    fn own_key(&self) -> String {
        format!("{}.gateway.{}", self.group, self.id)
    }

    /// The leases were renewed; `begin` is the time of the request. They end here well before others may take them.
    pub(super) fn renewed(&mut self, revision: u64, begin: Instant) {
        self.revision = revision;
        self.until = Some(begin + self.lease_time / 4 * 3);
    }

    /// The own key has another revision: an own write succeeded although its answer was lost.
    pub(super) fn correct(&mut self, revision: u64) {
        self.revision = revision;
    }

    /// The own key was replaced or deleted: all leases are lost. The new holders may need a lease time to detect that.
    pub(super) fn removed(&mut self, id: String, now: Instant) {
        self.id = id;
        self.revision = 0;
        self.until = None;
        self.held.clear();
        self.settled = now + self.lease_time;
    }

    /// Processes the value of a key, written by any gateway.
    pub(super) fn seen(&mut self, key: &str, value: &str, revision: u64, now: Instant) {
        let Some(rest) = key.strip_prefix(&*self.group).and_then(|rest| rest.strip_prefix('.')) else {
            return;
        };
        if let Some(id) = rest.strip_prefix("gateway.") {
            self.seen_member(id, value, revision, now);
        } else if let Some(name) = rest.strip_prefix("source.").and_then(name) {
            if self.sources.get(&name).is_some_and(|known| known.revision >= revision) {
                return;
            }
            if value == self.id {
                self.held.insert(name.clone());
            } else {
                self.held.remove(&name);
            }
            self.sources.insert(name, Source { revision, owner: value.to_owned() });
        }
    }

    fn seen_member(&mut self, id: &str, value: &str, revision: u64, now: Instant) {
        // An invalid value was not written by a gateway of the group. It must not end leases immediately, because their owner may
        // not know, and must not keep them forever.
        let (millis, wants) = value.split_once(' ').unwrap_or((value, ""));
        let lease_time = match value {
            "" => None,
            _ => {
                Some(millis.parse().map_or(LEASE_MAX, |millis| Duration::from_millis(millis).min(LEASE_MAX)))
            }
        };
        let wants = u64::from_str_radix(wants, 16).ok();
        if id == self.id && revision > self.revision && lease_time.is_none() {
            // Stop polling. The next renewal fails and says what to do.
            self.until = None;
            self.held.clear();
        }
        let (since, was_alive, wanted) = match self.members.get(id) {
            Some(known) if known.revision >= revision => return,
            Some(known) => (known.since, known.lease_time.is_some(), known.wants),
            None => (now, false, None),
        };
        if was_alive != lease_time.is_some() || (was_alive && wanted != wants) {
            // The group has changed: discard what was learnt about the others.
            self.share = Share::default();
        }
        let member = Member { revision, lease_time, wants, seen: now, since, silent: None };
        self.members.insert(id.to_owned(), member);
    }

    /// The other gateways.
    pub(super) fn others(&self) -> impl Iterator<Item = &str> {
        let alive = self.members.iter().filter(|(id, member)| **id != self.id && member.lease_time.is_some());
        alive.map(|(id, _)| id.as_str())
    }

    /// Removes gateways that have not renewed their leases, and those without a connection for a while. Connections are not
    /// judged if either gateway has only just arrived or connected.
    pub(super) fn lapsed(&mut self, unconnected: &BTreeSet<String>, now: Instant) -> Vec<Write> {
        self.members
            .retain(|_, member| member.lease_time.is_some() || now.duration_since(member.seen) < FORGOTTEN);
        let mut writes = Vec::new();
        for (id, member) in self.members.iter_mut().filter(|(id, _)| **id != self.id) {
            let Some(lease_time) = member.lease_time else { continue };
            let is_older = |time: Instant| now.duration_since(time) >= lease_time;
            let silent = unconnected.contains(id).then(|| *member.silent.get_or_insert(now));
            member.silent = silent;
            let is_silent = silent.is_some_and(|since| now.duration_since(since) >= silence(lease_time));
            let is_gone = is_silent && is_older(member.since) && is_older(self.linked);
            if is_gone || is_older(member.seen) {
                let key = format!("{}.gateway.{id}", self.group);
                writes.push(Write { key, value: String::new(), revision: member.revision });
            }
        }
        writes
    }

    /// Takes free leases, and returns the ones to release.
    pub(super) fn decide(&mut self, wanted: &[String], now: Instant) -> (Vec<Write>, Vec<String>) {
        if now < self.settled {
            return (Vec::new(), Vec::new());
        }
        let is_alive = |id: &str| self.members.get(id).is_some_and(|member| member.lease_time.is_some());
        let is_others = |name: &&String| {
            self.sources.get(*name).is_some_and(|it| it.owner != self.id && is_alive(&it.owner))
        };
        let taken: BTreeSet<String> = wanted.iter().filter(is_others).cloned().collect();
        let alive: Vec<&String> =
            self.members.iter().filter(|(_, member)| member.lease_time.is_some()).map(|(id, _)| id).collect();
        let own = alive.iter().position(|id| **id == self.id).unwrap_or(0);
        let others = || alive.iter().filter(|id| ***id != self.id);
        let asked = |id: &&String| {
            let is_owner = |name: &&String| self.sources.get(*name).is_some_and(|it| it.owner == **id);
            wanted.iter().filter(is_owner).count()
        };
        let counts: Vec<usize> = others().map(asked).collect();
        let is_alike = |id: &&String| self.members.get(*id).is_some_and(|it| it.wants == Some(self.wants));
        let are_alike = others().all(is_alike);
        let seen = Seen { others: &counts, own, wanted, held: &self.held, taken: &taken, are_alike };
        let Decision { take, give } = self.share.decide(&seen);
        (take.into_iter().map(|name| self.write_source(&name, self.id.clone())).collect(), give)
    }

    fn write_source(&self, name: &str, owner: String) -> Write {
        let revision = self.sources.get(name).map_or(0, |source| source.revision);
        Write { key: format!("{}.source.{}", self.group, token(name)), value: owner, revision }
    }

    /// Releases a lease if this gateway holds it.
    pub(super) fn give_back(&self, name: &str) -> Option<Write> {
        self.held.contains(name).then(|| self.write_source(name, String::new()))
    }

    /// The sources whose leases this gateway holds, and their expiration.
    pub(super) fn held(&self) -> (&BTreeSet<String>, Option<Instant>) {
        (&self.held, self.until)
    }

    /// The number of gateways in the group.
    pub(super) fn members(&self) -> usize {
        self.members.values().filter(|member| member.lease_time.is_some()).count()
    }
}

/// Encodes a name as one token of a key: letters, digits, `-` and `_` unchanged, other bytes in hexadecimal after `=`.
fn token(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'-' | b'_' => token.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => token.push(char::from(byte)),
            byte => token.push_str(&format!("={byte:02x}")),
        }
    }
    token
}

/// Decodes a token.
fn name(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'=' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        rest = behind;
        bytes.extend(hexadecimal::bytes(core::str::from_utf8(digits).ok()?)?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(1);

    #[test]
    fn names_survive_a_round_trip_through_tokens() {
        for text in ["plc", "Line 1.Oven*", "Öl>=", "a-b_c"] {
            let made = token(text);
            assert!(
                made.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte)),
                "{made}"
            );
            assert_eq!(name(&made).as_deref(), Some(text));
        }
        assert_eq!(token("Line 1.x"), "Line=201=2ex");
        for wrong in ["=", "=2", "=zz", "=+f", "=ff"] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    /// A registry that has joined with revision 1.
    fn joined(now: Instant) -> Registry {
        let mut registry = Registry::new("g", "a".to_owned(), now);
        registry.connected(now);
        let write = registry.renew(LEASE, &["s".to_owned()]);
        assert_eq!((&*write.key, &*write.value, write.revision), ("g.gateway.a", "1000 08d9c907b57a2887", 0));
        registry.renewed(1, now);
        registry.seen(&write.key, &write.value, 1, now);
        registry
    }

    #[test]
    fn leases_end_here_before_others_may_take_them() {
        let now = Instant::now();
        let registry = joined(now);
        assert_eq!(registry.held().1, Some(now + LEASE / 4 * 3));
    }

    #[test]
    fn a_gateway_is_removed_when_its_key_does_not_change() {
        let now = Instant::now();
        let mut registry = joined(now);
        let wanted = ["s".to_owned()];
        registry.seen("g.gateway.b", "1000", 2, now);
        registry.seen("g.source.s", "b", 3, now);
        let none = BTreeSet::new();
        let late = now + LEASE;
        assert_eq!(registry.lapsed(&none, late - Duration::from_millis(1)), []);
        assert_eq!(registry.decide(&wanted, late).0, []);
        let removal = Write { key: "g.gateway.b".to_owned(), value: String::new(), revision: 2 };
        assert_eq!(registry.lapsed(&none, late), vec![removal.clone()]);
        // It has renewed in the meantime: the removal fails, and the new value is seen.
        registry.seen("g.gateway.b", "1000", 4, late);
        assert_eq!(registry.lapsed(&none, late), []);
        // A gateway without a connection is removed after it had time to stop, but not by a gateway that has just connected.
        let silent = BTreeSet::from(["b".to_owned()]);
        assert_eq!(registry.lapsed(&silent, late), []);
        assert_eq!(registry.lapsed(&silent, late + grace(LEASE)), []);
        assert_eq!(registry.lapsed(&none, late + grace(LEASE)), [], "it is back");
        assert_eq!(registry.lapsed(&silent, late + LEASE / 2), []);
        let removed = registry.lapsed(&silent, late + LEASE / 2 + silence(LEASE));
        assert_eq!(removed, [Write { revision: 4, ..removal.clone() }]);
        registry.connected(late);
        registry.seen("g.gateway.b", "1000", 5, late);
        registry.seen("g.source.s", "b", 3, late);
        assert_eq!(registry.lapsed(&silent, late), []);
        registry.seen("g.gateway.b", "", 6, late);
        // An older write arrives later.
        registry.seen("g.gateway.b", "1000", 5, late);
        let take = Write { key: "g.source.s".to_owned(), value: "a".to_owned(), revision: 3 };
        assert_eq!(registry.decide(&wanted, late).0, [take]);
    }

    #[test]
    fn a_gateway_that_was_removed_has_nothing_and_waits() {
        let now = Instant::now();
        let mut registry = joined(now);
        registry.seen("g.source.s", "a", 2, now);
        assert_eq!(registry.held().0.len(), 1);
        registry.seen("g.gateway.a", "", 3, now);
        assert_eq!(registry.held(), (&BTreeSet::new(), None));
        registry.removed("c".to_owned(), now);
        let wanted = ["s".to_owned()];
        assert_eq!(registry.decide(&wanted, now).0, []);
        assert_eq!(registry.decide(&wanted, now + LEASE).0.len(), 1);
        assert_eq!(registry.renew(LEASE, &wanted).revision, 0);
    }

    #[test]
    fn keys_of_other_groups_are_ignored() {
        let now = Instant::now();
        let mut registry = joined(now);
        for key in ["h.source.s", "g.source.=zz", "g.other.s", "g", ""] {
            registry.seen(key, "a", 9, now);
        }
        assert!(registry.held().0.is_empty());
        assert_eq!(registry.give_back("s"), None);
    }

    #[test]
    fn no_lease_is_taken_in_a_new_bucket() {
        let now = Instant::now();
        let mut registry = joined(now);
        let wanted = ["s".to_owned()];
        registry.bucket_is_old(Duration::from_secs(1), now);
        assert_eq!(registry.decide(&wanted, now + Duration::from_millis(1999)).0, []);
        assert_eq!(registry.decide(&wanted, now + Duration::from_secs(2)).0.len(), 1);
        let mut registry = joined(now);
        registry.bucket_is_old(LEASE_MAX, now);
        assert_eq!(registry.decide(&wanted, now).0.len(), 1);
    }

    #[test]
    fn invalid_keys_do_not_block_sources_forever() {
        let now = Instant::now();
        let mut registry = joined(now);
        registry.seen("g.gateway.b", "99999999999999", 2, now);
        registry.seen("g.source.s", "b", 3, now);
        let late = now + LEASE_MAX;
        assert_eq!(registry.lapsed(&BTreeSet::new(), late).len(), 1);
        // A gateway whose key is overwritten keeps its leases until they expire, because it may not know.
        let mut registry = joined(now);
        registry.seen("g.gateway.b", "1000", 2, now);
        registry.seen("g.source.s", "b", 3, now);
        registry.seen("g.gateway.b", "rubbish", 4, now);
        assert_eq!(registry.decide(&["s".to_owned()], now + LEASE).0, []);
        assert_eq!(registry.lapsed(&BTreeSet::new(), now + LEASE_MAX).len(), 1);
        // The own key: the leases continue.
        registry.seen("g.source.t", "a", 5, now);
        registry.seen("g.gateway.a", "rubbish", 6, now);
        assert!(registry.held().0.contains("t"));
    }
}
