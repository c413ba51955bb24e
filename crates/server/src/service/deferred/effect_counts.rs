//! Counts running effects and limits them per client.
//!
//! An effect that has begun cannot be stopped. If its request is abandoned (the client cancels it, it times out, or the
//! connection ends), the effect still counts for the client's address until it is done. Otherwise a client could start
//! any number of effects by abandoning each request.

use crate::ids::ConnectionId;
use crate::limits::Limits;
use crate::origin::Origin;
use crate::slab::Key;
use std::collections::BTreeMap;

/// The client that requests effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) connection: ConnectionId,
    /// The origin of the connection, if the transport has addresses.
    pub(crate) origin: Option<Origin>,
}

impl Asker {
    /// Whether the other's abandoned effects count for this one.
    fn pays_for(self, other: Self) -> bool {
        self.connection == other.connection || (self.origin.is_some() && self.origin == other.origin)
    }
}

/// The purpose of effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// CreateSession and ActivateSession: the last quarter is reserved for them.
    Session,
    /// Operations of a client that is logged on.
    Operation,
    /// Values of monitored items: at most half.
    Sample,
}

/// The counts of a shard's effects.
#[derive(Debug)]
pub(super) struct EffectCounts {
    /// Effects that are waiting or running, and requests that wait for other shards.
    outstanding: usize,
    /// Those of them that do not count against the limit: handshakes, which have their own limit, and repeated
    /// validations of certificates, at most one per connection and session.
    apart: usize,
    /// Effects that still run for abandoned requests, by request.
    abandoned: BTreeMap<Key, (Asker, usize)>,
    max: usize,
    per_connection_max: usize,
}

impl EffectCounts {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            outstanding: 0,
            apart: 0,
            abandoned: BTreeMap::new(),
            max: limits.effects_max,
            per_connection_max: limits.effects_per_connection_max,
        }
    }

    /// Counts an effect that begins.
    pub(super) fn began(&mut self) {
        self.outstanding += 1;
    }

    /// Counts an effect of a request as done.
    pub(super) fn ended(&mut self, request: Key) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Some((_, count)) = self.abandoned.get_mut(&request) {
            *count -= 1;
            if *count == 0 {
                self.abandoned.remove(&request);
            }
        }
    }

    /// A request no longer waits for another shard.
    pub(super) fn answered(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// A request begins or ends whose effects do not count against the limit.
    pub(super) fn set_apart(&mut self, begins: bool) {
        self.apart = if begins { self.apart + 1 } else { self.apart.saturating_sub(1) };
    }

    /// A request is abandoned while `count` of its effects run.
    pub(super) fn abandon(&mut self, request: Key, asker: Asker, count: usize) {
        if count > 0 {
            self.abandoned.insert(request, (asker, count));
        }
    }

    /// Whether `more` effects fit.
    pub(super) fn has(&self, purpose: Purpose, more: usize) -> bool {
        let max = match purpose {
            Purpose::Session => self.max,
            Purpose::Operation => self.max - self.max / 4,
            Purpose::Sample => self.max - self.max / 2,
        };
        self.outstanding.saturating_sub(self.apart) + more <= max
    }

    /// Whether one client may have `more`, if it waits for `waits_for` now.
    pub(super) fn has_for(&self, asker: Asker, more: usize, waits_for: impl FnOnce() -> usize) -> bool {
        if self.outstanding + more <= self.per_connection_max {
            return true;
        }
        let abandoned = self.abandoned.values().filter(|(other, _)| asker.pays_for(*other));
        let abandoned: usize = abandoned.map(|(_, count)| count).sum();
        waits_for() + abandoned + more <= self.per_connection_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;

    fn counts() -> EffectCounts {
        EffectCounts::new(&Limits { effects_max: 8, effects_per_connection_max: 4, ..Limits::default() })
    }

    fn asker(connection: u32, address: Option<u8>) -> Asker {
        Asker {
            connection: ConnectionId(key(connection)),
            origin: address.map(|last| IpAddr::from([10, 0, 0, last]).into()),
        }
    }

    fn key(index: u32) -> Key {
        Key { index, generation: 0 }
    }

    #[test]
    fn abandoned_effects_count_until_they_are_done() {
        let mut counts = counts();
        (0..4).for_each(|_| counts.began());
        counts.abandon(key(7), asker(1, Some(1)), 4);
        assert!(!counts.has_for(asker(1, Some(1)), 1, || 0), "the same connection");
        assert!(!counts.has_for(asker(2, Some(1)), 1, || 0), "another connection of the address");
        assert!(counts.has_for(asker(3, Some(2)), 1, || 0), "somebody else");
        counts.ended(key(7));
        assert!(counts.has_for(asker(1, Some(1)), 1, || 0));
        (0..3).for_each(|_| counts.ended(key(7)));
        assert!(counts.abandoned.is_empty() && counts.outstanding == 0);
    }

    #[test]
    fn without_addresses_each_connection_pays_for_itself() {
        let mut counts = counts();
        (0..4).for_each(|_| counts.began());
        counts.abandon(key(7), asker(1, None), 4);
        assert!(!counts.has_for(asker(1, None), 1, || 0));
        assert!(counts.has_for(asker(2, None), 4, || 0));
    }

    #[test]
    fn the_last_quarter_is_reserved_for_sessions() {
        let mut counts = counts();
        let mut fits = |count| {
            counts.outstanding = count;
            [Purpose::Sample, Purpose::Operation, Purpose::Session].map(|purpose| counts.has(purpose, 1))
        };
        assert_eq!(fits(3), [true, true, true]);
        assert_eq!(fits(4), [false, true, true]);
        assert_eq!(fits(6), [false, false, true]);
        assert_eq!(fits(8), [false, false, false]);
    }
}
