//! Selects the session or connection to evict when the server is full: sessions that were never activated (Part 4
//! §5.7.2.1), and connections without an activated session (Part 4 §5.6.2.1).
//!
//! Members are grouped by class, then by origin. The victim belongs to the largest holder, so a flood evicts itself:
//! 1. the least trusted class that holds more than a quarter of all evictable members;
//! 2. in it, the network with most members, in that the address, in that the connection; among equals the oldest one;
//! 3. the oldest member of that connection.
//!
//! Applications with a trusted certificate are grouped by certificate instead of by network. A newcomer evicts a more
//! trusted class only if that class holds more than its share of the whole limit: half for trusted certificates, an
//! eighth for known addresses.
//!
//! Limits apply to all shards together, but each member lives on one shard. A shard that evicts a member of another
//! shard counts the newcomer at once and notifies the other shard. Until that shard has acted, the server exceeds its
//! limit, by at most [`CLAIMS_MAX`].

use crate::limits::Limits;
use crate::origin::{Network, Origin};
use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of evictions that other shards have not carried out yet, of each kind.
const CLAIMS_MAX: usize = 64;

/// What can be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A session that was never activated.
    Session,
    /// A connection without an activated session.
    Connection,
}

/// The trust in a peer. Less trusted classes are evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// No certificate and no earlier login.
    Unsigned,
    /// No certificate, but an earlier login with a credential from its address.
    Familiar,
    /// Its channel was opened with a trusted certificate.
    Signed,
}

impl Class {
    const ALL: [Self; 3] = [Self::Unsigned, Self::Familiar, Self::Signed];

    /// Maximum number of sessions, in total, for a newcomer of this class.
    pub(crate) fn sessions_max(self, limits: &Limits) -> usize {
        match self {
            Self::Unsigned => limits.sessions_max - limits.sessions_reserved.min(limits.sessions_max / 10),
            Self::Familiar | Self::Signed => limits.sessions_max,
        }
    }

    /// The number of members of this class that a less trusted newcomer cannot evict.
    const fn share(self, max: usize) -> usize {
        match self {
            Self::Unsigned => 0,
            Self::Familiar => max / 8,
            Self::Signed => max / 2,
        }
    }
}

/// The holder of a member: a path from the largest group to the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) class: Class,
    /// The network, or the application if its certificate is trusted; the address; the connection.
    path: [u64; 3],
}

impl Holder {
    /// `application` is the thumbprint of a trusted certificate; `connection` is a number unique on the server.
    pub(crate) fn new(
        address: Option<core::net::IpAddr>,
        is_familiar: bool,
        application: Option<[u8; 20]>,
        connection: u64,
    ) -> Self {
        let network = address.map_or(0, |address| Network::from(address).number());
        let origin = address.map_or(0, |address| Origin::from(address).number());
        let class = match application {
            Some(_) => Class::Signed,
            None if is_familiar => Class::Familiar,
            None => Class::Unsigned,
        };
        let largest = application.map_or(network, |thumbprint| {
            thumbprint.first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first))
        });
        Self { class, path: [largest, origin, connection] }
    }
}

/// A member: its shard and its slot there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) shard: usize,
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Identifies the parent of a group.
type Parent = [u64; 2];

/// Groups on one level of the path, ordered by size.
#[derive(Debug, Default)]
struct Level {
    /// Number of members of a group, and since when it has any.
    groups: BTreeMap<(Parent, u64), (usize, u64)>,
    order: BTreeSet<(Parent, usize, Reverse<u64>, u64)>,
}

impl Level {
    fn add(&mut self, parent: Parent, group: u64, now: u64) {
        let (count, since) = self.groups.entry((parent, group)).or_insert((0, now));
        self.order.remove(&(parent, *count, Reverse(*since), group));
        *count += 1;
        self.order.insert((parent, *count, Reverse(*since), group));
    }

    fn remove(&mut self, parent: Parent, group: u64) {
        let Some((count, since)) = self.groups.get_mut(&(parent, group)) else { return };
        self.order.remove(&(parent, *count, Reverse(*since), group));
        *count -= 1;
        if *count == 0 {
            self.groups.remove(&(parent, group));
        } else {
            self.order.insert((parent, *count, Reverse(*since), group));
        }
    }

    /// The group with most members; among equals the oldest.
    fn largest(&self, parent: Parent) -> Option<u64> {
        let all = (parent, 0, Reverse(u64::MAX), 0)..=(parent, usize::MAX, Reverse(0), u64::MAX);
        self.order.range(all).next_back().map(|(_, _, _, group)| *group)
    }
}

/// The members of one class.
#[derive(Debug, Default)]
struct Members {
    count: usize,
    levels: [Level; 3],
    /// Sorted by path, then by age.
    leaves: BTreeSet<([u64; 3], u64, Member)>,
}

impl Members {
    /// The parent of a group on a level.
    fn parent([first, second, _]: [u64; 3], level: usize) -> Parent {
        match level {
            0 => [0, 0],
            1 => [first, 0],
            _ => [first, second],
        }
    }

    fn add(&mut self, path: [u64; 3], now: u64, member: Member) {
        self.count += 1;
        for (at, (level, group)) in self.levels.iter_mut().zip(path).enumerate() {
            level.add(Self::parent(path, at), group, now);
        }
        self.leaves.insert((path, now, member));
    }

    fn remove(&mut self, path: [u64; 3], since: u64, member: Member) {
        if !self.leaves.remove(&(path, since, member)) {
            return;
        }
        self.count -= 1;
        for (at, (level, group)) in self.levels.iter_mut().zip(path).enumerate() {
            level.remove(Self::parent(path, at), group);
        }
    }

    fn victim(&self) -> Option<Member> {
        let [networks, addresses, connections] = &self.levels;
        let network = networks.largest([0, 0])?;
        let address = addresses.largest([network, 0])?;
        let connection = connections.largest([network, address])?;
        let path = [network, address, connection];
        let first = Member { shard: 0, index: 0, generation: 0 };
        let (found, _, member) = self.leaves.range((path, 0, first)..).next()?;
        (*found == path).then_some(*member)
    }
}

/// All members of one kind.
#[derive(Debug, Default)]
struct Pool {
    classes: [Members; 3],
    held: BTreeMap<Member, (Holder, u64)>,
    /// Increments on each addition; used only for ordering.
    clock: u64,
    claims: usize,
}

impl Pool {
    fn class(&mut self, class: Class) -> &mut Members {
        let [unsigned, familiar, signed] = &mut self.classes;
        match class {
            Class::Unsigned => unsigned,
            Class::Familiar => familiar,
            Class::Signed => signed,
        }
    }

    fn add(&mut self, member: Member, holder: Holder) {
        self.remove(member);
        self.clock += 1;
        let now = self.clock;
        self.class(holder.class).add(holder.path, now, member);
        self.held.insert(member, (holder, now));
    }

    fn remove(&mut self, member: Member) {
        if let Some((holder, since)) = self.held.remove(&member) {
            self.class(holder.class).remove(holder.path, since, member);
        }
    }

    fn victim(&self, newcomer: Class, max: usize) -> Option<Member> {
        let all: usize = self.classes.iter().map(|members| members.count).sum();
        let may = |(class, members): &(Class, &Members)| {
            members.count > 0 && (*class <= newcomer || members.count > class.share(max))
        };
        let candidates = || Class::ALL.into_iter().zip(&self.classes).filter(may);
        let (_, members) =
            candidates().find(|(_, members)| members.count > all / 4).or_else(|| candidates().next())?;
        members.victim()
    }
}

/// The evictable members of all shards.
#[derive(Debug, Default)]
pub(crate) struct Evictable {
    sessions: Mutex<Pool>,
    connections: Mutex<Pool>,
}

impl Evictable {
    fn pool(&self, kind: Kind) -> MutexGuard<'_, Pool> {
        let pool = match kind {
            Kind::Session => &self.sessions,
            Kind::Connection => &self.connections,
        };
        pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a member as evictable, or changes its holder.
    pub(crate) fn add(&self, kind: Kind, member: Member, holder: Holder) {
        self.pool(kind).add(member, holder);
    }

    /// Removes a member that no longer exists or is no longer evictable.
    pub(crate) fn remove(&self, kind: Kind, member: Member) {
        self.pool(kind).remove(member);
    }

    /// Whether [`Self::evict`] would find a victim.
    pub(crate) fn is_there(&self, kind: Kind, newcomer: Class, max: usize) -> bool {
        self.pool(kind).victim(newcomer, max).is_some()
    }

    /// Chooses a member to evict for a newcomer on shard `here`, and removes it from the pool. If it lives on another
    /// shard, notify that shard, which then calls [`Self::carried_out`].
    pub(crate) fn evict(&self, kind: Kind, newcomer: Class, here: usize, max: usize) -> Option<Member> {
        let mut pool = self.pool(kind);
        let victim = pool.victim(newcomer, max)?;
        if victim.shard != here {
            if pool.claims >= CLAIMS_MAX {
                return None;
            }
            pool.claims += 1;
        }
        pool.remove(victim);
        Some(victim)
    }

    /// A shard has carried out an eviction for another shard.
    pub(crate) fn carried_out(&self, kind: Kind) {
        let mut pool = self.pool(kind);
        pool.claims = pool.claims.saturating_sub(1);
    }

    /// Number of members of a kind and class, for tests.
    #[cfg(test)]
    pub(crate) fn count(&self, kind: Kind, class: Class) -> usize {
        self.pool(kind).class(class).count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr};
    use proptest::prelude::*;

    const MAX: usize = 100;

    fn member(index: usize) -> Member {
        Member { shard: index % 2, index: index as u32, generation: 0 }
    }

    fn from(address: [u8; 4], connection: u64) -> Holder {
        Holder::new(Some(IpAddr::from(address)), false, None, connection)
    }

    fn signed(application: u8, connection: u64) -> Holder {
        Holder::new(Some(IpAddr::from([127, 0, 0, 1])), false, Some([application; 20]), connection)
    }

    fn evict(all: &Evictable, newcomer: Class) -> Option<Member> {
        let victim = all.evict(Kind::Session, newcomer, 0, MAX)?;
        if victim.shard != 0 {
            all.carried_out(Kind::Session);
        }
        Some(victim)
    }

    #[test]
    fn a_flood_without_security_never_evicts_a_trusted_application_at_the_same_address() {
        let all = Evictable::default();
        for number in 0..10 {
            all.add(Kind::Session, member(number), signed(1, number as u64));
        }
        for number in 10..100 {
            all.add(Kind::Session, member(number), from([127, 0, 0, 1], number as u64 % 24));
        }
        for number in 100..10_000 {
            let victim = evict(&all, Class::Unsigned).unwrap();
            assert!(victim.index >= 10, "{victim:?}");
            all.add(Kind::Session, member(number), from([127, 0, 0, 1], number as u64 % 24));
        }
        assert_eq!(all.count(Kind::Session, Class::Signed), 10);
        assert_eq!(all.count(Kind::Session, Class::Unsigned), 90);
    }

    #[test]
    fn the_address_with_most_members_is_evicted_first_within_a_network() {
        let all = Evictable::default();
        all.add(Kind::Session, member(0), from([10, 0, 0, 7], 0));
        all.add(Kind::Session, member(1), from([10, 0, 1, 7], 1));
        for number in 2..50 {
            all.add(Kind::Session, member(number), from([10, 0, 0, (number % 5) as u8], 100));
        }
        for _ in 0..43 {
            let victim = evict(&all, Class::Unsigned).unwrap();
            assert!(victim.index >= 2, "{victim:?}");
        }
    }

    #[test]
    fn among_equals_the_oldest_is_evicted() {
        let all = Evictable::default();
        for number in 0..20usize {
            all.add(Kind::Session, member(number), from([10, number as u8, 0, 1], number as u64));
        }
        for number in 0..20 {
            assert_eq!(evict(&all, Class::Unsigned), Some(member(number)));
        }
        assert_eq!(evict(&all, Class::Unsigned), None);
    }

    #[test]
    fn a_trusted_application_that_floods_evicts_itself_and_no_other() {
        let all = Evictable::default();
        all.add(Kind::Session, member(0), signed(2, 0));
        all.add(Kind::Session, member(1), from([10, 0, 0, 1], 1));
        for number in 2..1_000 {
            all.add(Kind::Session, member(number), signed(1, number as u64));
            if number >= MAX {
                assert!(evict(&all, Class::Signed).is_some_and(|victim| victim.index >= 2));
            }
        }
        // It holds more than half of the limit, so other clients get in as well.
        assert!(evict(&all, Class::Unsigned).is_some_and(|victim| victim.index >= 2));
    }

    #[test]
    fn a_newcomer_does_not_evict_more_trusted_members() {
        let all = Evictable::default();
        for number in 0..MAX / 2 {
            all.add(Kind::Session, member(number), signed(number as u8, number as u64));
        }
        assert!(!all.is_there(Kind::Session, Class::Unsigned, MAX));
        assert_eq!(evict(&all, Class::Unsigned), None);
        assert_eq!(evict(&all, Class::Signed), Some(member(0)));
    }

    #[test]
    fn a_flood_from_a_known_address_does_not_lock_out_new_clients() {
        let all = Evictable::default();
        for number in 0..30 {
            let known = Holder::new(Some(IpAddr::from([127, 0, 0, 1])), true, None, number as u64 % 3);
            all.add(Kind::Session, member(number), known);
        }
        for number in 30..35 {
            assert!(evict(&all, Class::Unsigned).is_some_and(|victim| victim.index < 30));
            all.add(Kind::Session, member(number), from([10, number as u8, 0, 1], number as u64));
        }
    }

    #[test]
    fn claims_on_other_shards_are_bounded() {
        let all = Evictable::default();
        for number in 0..200 {
            let member = Member { shard: 1, index: number, generation: 0 };
            all.add(Kind::Connection, member, from([10, 0, 0, 1], u64::from(number)));
        }
        let claim = || all.evict(Kind::Connection, Class::Unsigned, 0, MAX);
        assert_eq!((0..200).filter(|_| claim().is_some()).count(), CLAIMS_MAX);
        all.carried_out(Kind::Connection);
        assert!(claim().is_some() && claim().is_none());
    }

    #[derive(Debug, Clone, Copy)]
    struct Newcomer {
        class: u8,
        network: u8,
        host: u8,
        connection: u8,
    }

    fn newcomers() -> impl Strategy<Value = Vec<Newcomer>> {
        let one = (0u8..3, 0u8..6, 0u8..4, 0u8..4);
        let newcomer =
            one.prop_map(|(class, network, host, connection)| Newcomer { class, network, host, connection });
        prop::collection::vec(newcomer, 60..160)
    }

    fn holder(newcomer: Newcomer) -> Holder {
        let Newcomer { class, network, host, connection } = newcomer;
        let address = Ipv4Addr::new(10, 0, network, host).into();
        let application = (class == 2).then_some([network; 20]);
        Holder::new(Some(address), class == 1, application, u64::from(connection))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// The victim belongs to the largest group of its class, and more trusted classes lose members only above their
        /// share of the limit.
        #[test]
        fn the_victim_belongs_to_the_largest_group(newcomers in newcomers()) {
            let max = 60;
            let all = Evictable::default();
            let mut there: BTreeMap<Member, Holder> = BTreeMap::new();
            for (number, newcomer) in newcomers.into_iter().enumerate() {
                let holder = holder(newcomer);
                if there.len() >= max {
                    let before = there.clone();
                    let Some(victim) = all.evict(Kind::Session, holder.class, 0, max) else { continue };
                    if victim.shard != 0 {
                        all.carried_out(Kind::Session);
                    }
                    let Some(lost) = there.remove(&victim) else {
                        return Err(TestCaseError::fail("evicted twice"));
                    };
                    let of_class = |class| before.values().filter(move |other| other.class == class);
                    let count = of_class(lost.class).count();
                    prop_assert!(lost.class <= holder.class || count > lost.class.share(max));
                    let least = Class::ALL.into_iter().find(|class| of_class(*class).count() > before.len() / 4);
                    if least.is_some_and(|least| least <= holder.class) {
                        prop_assert_eq!(Some(lost.class), least);
                    }
                    for depth in 1..=3 {
                        let size = |path: [u64; 3]| {
                            of_class(lost.class).filter(|other| other.path[..depth] == path[..depth]).count()
                        };
                        let siblings =
                            of_class(lost.class).filter(|other| other.path[..depth - 1] == lost.path[..depth - 1]);
                        prop_assert!(siblings.map(|other| size(other.path)).max() == Some(size(lost.path)));
                    }
                }
                all.add(Kind::Session, member(number), holder);
                there.insert(member(number), holder);
            }
            for member in there.into_keys() {
                all.remove(Kind::Session, member);
            }
            let pool = all.pool(Kind::Session);
            prop_assert!(pool.held.is_empty());
            for members in &pool.classes {
                prop_assert!(members.count == 0 && members.leaves.is_empty());
                prop_assert!(members.levels.iter().all(|level| level.groups.is_empty() && level.order.is_empty()));
            }
        }
    }
}
