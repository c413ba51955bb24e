//! Decides which leases to take and release, so that all gateways have about the same number.

use std::collections::{BTreeMap, BTreeSet};

/// After this many rounds a free lease is taken regardless of shares: the others may not want it.
const PATIENCE: u32 = 2;
/// Pause of releasing, in rounds, after other gateways did not take released leases. It doubles each time up to [`PAUSE_MAX`].
const PAUSE: u32 = 8;
const PAUSE_MAX: u32 = 512;

/// The leases of a group as seen in a round.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The number of `wanted` sources that each other gateway polls, in gateway order.
    pub others: &'a [usize],
    /// The position of this gateway in that order: gateways begin with different sources.
    pub own: usize,
    /// The sources that this gateway can poll.
    pub wanted: &'a [String],
    /// The sources that it polls.
    pub held: &'a BTreeSet<String>,
    /// The sources that others poll.
    pub taken: &'a BTreeSet<String>,
    /// Whether all gateways are known to want the same sources.
    pub are_alike: bool,
}

/// What to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Leases to try for.
    pub take: Vec<String>,
    /// Leases to give back.
    pub give: Vec<String>,
}

/// State between rounds.
#[derive(Debug, Default)]
pub struct Share {
    /// The number of rounds for which leases have been free.
    free: BTreeMap<String, u32>,
    /// Sources that the others did not take, where they may want other sources than this gateway.
    unwanted: BTreeSet<String>,
    /// The leases released last.
    given: BTreeSet<String>,
    /// Remaining rounds of the pause, and the length of the last pause.
    paused: u32,
    pause: u32,
    members: usize,
}

impl Share {
    /// Decides on a round. Each gateway gets an equal share of the sources, rounded down; some get one more.
    pub fn decide(&mut self, seen: &Seen<'_>) -> Decision {
        let members = seen.others.len() + 1;
        if core::mem::replace(&mut self.members, members) != members {
            self.unwanted.clear();
            (self.paused, self.pause) = (0, 0);
        }
        let (least, most) = (seen.wanted.len() / members, seen.wanted.len().div_ceil(members));
        let missing: usize = seen.others.iter().map(|count| least.saturating_sub(*count)).sum();
        let mut free: Vec<&String> = seen
            .wanted
            .iter()
            .filter(|name| !seen.held.contains(*name) && !seen.taken.contains(*name))
            .collect();
        let begin = if free.is_empty() { 0 } else { seen.own % free.len() };
        free.rotate_left(begin);
        let count = free.len();
        let room = match least.checked_sub(seen.held.len()) {
            Some(room) if room > 0 => room,
            // Beyond the minimum, take only what gateways with fewer leases leave over.
            _ => most.saturating_sub(seen.held.len()).min(count.saturating_sub(missing)),
        };
        let mut waited = BTreeMap::new();
        let mut take = Vec::new();
        let mut was_left = false;
        for (at, name) in free.into_iter().enumerate() {
            let rounds = self.free.get(name).map_or(0, |rounds| rounds + 1);
            if rounds >= PATIENCE {
                if !seen.are_alike {
                    self.unwanted.insert(name.clone());
                }
                was_left |= self.given.remove(name);
            }
            if at < room || rounds >= PATIENCE {
                take.push(name.clone());
            }
            waited.insert(name.clone(), rounds);
        }
        self.free = waited;
        if was_left {
            self.pause = (2 * self.pause).clamp(PAUSE, PAUSE_MAX);
            self.paused = self.pause;
        }
        if seen.are_alike {
            self.unwanted.clear();
        }
        let excess = if take.is_empty() && self.paused == 0 { excess(seen, least, most, count) } else { 0 };
        self.paused = self.paused.saturating_sub(1);
        let wanted = seen.held.iter().rev().filter(|name| !self.unwanted.contains(*name));
        let give: Vec<String> = wanted.take(excess).cloned().collect();
        if !give.is_empty() {
            self.given = give.iter().cloned().collect();
        }
        Decision { take, give }
    }
}

/// How many leases this gateway should release. Only gateways below their share can take them.
fn excess(seen: &Seen<'_>, least: usize, most: usize, free: usize) -> usize {
    let own = seen.held.len();
    let all = || seen.others.iter().copied();
    let room: usize = all().map(|count| most.saturating_sub(count)).sum();
    let above = own.saturating_sub(most).min(room.saturating_sub(free));
    if above > 0 || own < most || most == least {
        return above;
    }
    // If gateways are below the smaller share and get no leases otherwise, gateways with the larger share release one each, in
    // their order.
    let missing: usize = all().map(|count| least.saturating_sub(count)).sum();
    let comes: usize = free + all().map(|count| count.saturating_sub(most)).sum::<usize>();
    let before = all().take(seen.own).filter(|count| *count >= most).count();
    usize::from(before < missing.saturating_sub(comes))
}

/// A hash that is equal for the same sources in the same order in all versions: FNV-1a.
#[must_use]
pub fn fingerprint(names: &[String]) -> u64 {
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulated gateways with their leases.
    struct Group {
        wanted: Vec<Vec<String>>,
        held: Vec<BTreeSet<String>>,
        shares: Vec<Share>,
        given: usize,
        are_alike: bool,
    }

    impl Group {
        fn new(wanted: &[&[&str]]) -> Self {
            let wanted: Vec<Vec<String>> =
                wanted.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect();
            let held = vec![BTreeSet::new(); wanted.len()];
            let shares = wanted.iter().map(|_| Share::default()).collect();
            Self { wanted, held, shares, given: 0, are_alike: false }
        }

        fn round(&mut self, who: &[usize]) {
            for own in who.iter().copied() {
                let taken = who.iter().filter(|other| **other != own);
                let taken: BTreeSet<String> = taken.flat_map(|other| self.held[*other].clone()).collect();
                let others: Vec<usize> = who
                    .iter()
                    .filter(|other| **other != own)
                    .map(|other| {
                        self.held[*other].iter().filter(|name| self.wanted[own].contains(name)).count()
                    })
                    .collect();
                let seen = Seen {
                    others: &others,
                    own: who.iter().position(|other| *other == own).unwrap(),
                    are_alike: self.are_alike,
                    wanted: &self.wanted[own],
                    held: &self.held[own],
                    taken: &taken,
                };
                let Decision { take, give } = self.shares[own].decide(&seen);
                assert!(take.iter().all(|name| !taken.contains(name)));
                self.held[own].extend(take);
                self.given += give.len();
                give.iter().for_each(|name| assert!(self.held[own].remove(name)));
            }
        }

        fn counts(&self) -> Vec<usize> {
            self.held.iter().map(BTreeSet::len).collect()
        }
    }

    #[test]
    fn sources_are_shared_out_and_taken_over() {
        let all: &[&str] = &["a", "b", "c", "d", "e", "f", "g"];
        let mut group = Group::new(&[all, all, all]);
        group.round(&[0]);
        assert_eq!(group.counts(), [7, 0, 0], "one has everything at once");
        for _ in 0..6 {
            group.round(&[0, 1]);
        }
        assert_eq!(group.counts(), [4, 3, 0]);
        for _ in 0..8 {
            group.round(&[0, 1, 2]);
        }
        assert_eq!(group.counts().iter().sum::<usize>(), 7);
        assert!(group.counts().iter().all(|count| (2..=3).contains(count)), "{:?}", group.counts());
        let given = group.given;
        for _ in 0..10 {
            group.round(&[0, 1, 2]);
        }
        assert_eq!(group.given, given, "then nothing moves");
        // One gateway stops; in the next round the others take its leases.
        group.held[0].clear();
        group.round(&[1, 2]);
        assert_eq!(group.counts()[1..].iter().sum::<usize>(), 7);
    }

    #[test]
    fn a_source_known_to_only_one_gateway_is_polled() {
        let mut group = Group::new(&[&["a", "b", "c", "d"], &["d"]]);
        for _ in 0..30 {
            group.round(&[0, 1]);
        }
        assert_eq!(group.counts().iter().sum::<usize>(), 4, "{:?}", group.held);
        let given = group.given;
        for _ in 0..30 {
            group.round(&[0, 1]);
        }
        assert_eq!(group.given, given, "nothing is given back again and again that nobody wants");
    }
    #[test]
    fn no_gateway_has_two_more_than_another_one() {
        for sources in 1..=12 {
            for gateways in 1..=8 {
                let names: Vec<String> = (0..sources).map(|at| format!("s{at:02}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let mut group = Group::new(&vec![&names[..]; gateways]);
                group.are_alike = true;
                let mut there = Vec::new();
                // They start one after the other, the last one first.
                for gateway in (0..gateways).rev() {
                    there.insert(0, gateway);
                    for _ in 0..12 {
                        group.round(&there);
                    }
                    let counts: Vec<usize> = there.iter().map(|at| group.held[*at].len()).collect();
                    let range = sources / there.len()..=sources.div_ceil(there.len());
                    assert!(counts.iter().all(|count| range.contains(count)), "{sources} {counts:?}");
                    assert_eq!(counts.iter().sum::<usize>(), sources);
                }
                let given = group.given;
                for _ in 0..20 {
                    group.round(&there);
                }
                assert_eq!(group.given, given, "then nothing moves");
            }
        }
    }

    #[test]
    fn leases_that_a_gateway_could_not_take_are_released_again_later() {
        let all: &[&str] = &["a", "b", "c", "d"];
        let mut group = Group::new(&[all, all]);
        group.are_alike = true;
        group.round(&[0]);
        // The other gateway is present and does not take anything yet.
        let alone = |group: &mut Group, rounds: usize| {
            for _ in 0..rounds {
                let taken = BTreeSet::new();
                let seen = Seen {
                    others: &[0],
                    own: 0,
                    wanted: &group.wanted[0],
                    held: &group.held[0],
                    taken: &taken,
                    are_alike: true,
                };
                let Decision { take, give } = group.shares[0].decide(&seen);
                group.given += give.len();
                group.held[0].extend(take);
                give.iter().for_each(|name| assert!(group.held[0].remove(name)));
            }
        };
        alone(&mut group, 100);
        assert!(group.given <= 10, "less and less often: {}", group.given);
        for _ in 0..300 {
            group.round(&[0, 1]);
        }
        assert_eq!(group.counts(), [2, 2]);
    }
}
