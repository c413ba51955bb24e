//! Who takes and gives back which leases, so that each gateway has about the same number.

use std::collections::{BTreeMap, BTreeSet};

/// Rounds after which a free lease is taken, whoever has how many: others may not want it.
const PATIENCE: u32 = 2;

/// What is known of the leases of a group.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Gateways, this one included.
    pub members: usize,
    /// A number that differs between gateways: they begin at different sources.
    pub own: usize,
    /// The sources that this gateway could ask.
    pub wanted: &'a [String],
    /// Those that it does ask.
    pub held: &'a BTreeSet<String>,
    /// Those that others ask.
    pub taken: &'a BTreeSet<String>,
}

/// What to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Leases to try for.
    pub take: Vec<String>,
    /// Leases to give back.
    pub give: Vec<String>,
}

/// What is remembered between rounds.
#[derive(Debug, Default)]
pub struct Share {
    /// For how many rounds leases have been free.
    free: BTreeMap<String, u32>,
    /// Sources that the others have left alone.
    unwanted: BTreeSet<String>,
    members: usize,
}

impl Share {
    /// Decides on a round.
    pub fn decide(&mut self, seen: &Seen<'_>) -> Decision {
        if core::mem::replace(&mut self.members, seen.members) != seen.members {
            self.unwanted.clear();
        }
        let fair = seen.wanted.len().div_ceil(seen.members.max(1));
        let mut free: Vec<&String> = seen
            .wanted
            .iter()
            .filter(|name| !seen.held.contains(*name) && !seen.taken.contains(*name))
            .collect();
        let begin = if free.is_empty() { 0 } else { seen.own % free.len() };
        free.rotate_left(begin);
        let room = fair.saturating_sub(seen.held.len());
        let mut waited = BTreeMap::new();
        let mut take = Vec::new();
        for (at, name) in free.into_iter().enumerate() {
            let rounds = self.free.get(name).map_or(0, |rounds| rounds + 1);
            if rounds >= PATIENCE {
                self.unwanted.insert(name.clone());
            }
            if at < room || rounds >= PATIENCE {
                take.push(name.clone());
            }
            waited.insert(name.clone(), rounds);
        }
        self.free = waited;
        // Only for others that have room, and nothing that they have left alone before.
        let has_poor = seen.members > 1 && seen.taken.len() < fair * (seen.members - 1);
        let excess = if has_poor && take.is_empty() { seen.held.len().saturating_sub(fair) } else { 0 };
        let wanted = seen.held.iter().rev().filter(|name| !self.unwanted.contains(*name));
        Decision { take, give: wanted.take(excess).cloned().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gateways that take turns, with all that they hold.
    struct Group {
        wanted: Vec<Vec<String>>,
        held: Vec<BTreeSet<String>>,
        shares: Vec<Share>,
        given: usize,
    }

    impl Group {
        fn new(wanted: &[&[&str]]) -> Self {
            let wanted: Vec<Vec<String>> =
                wanted.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect();
            let held = vec![BTreeSet::new(); wanted.len()];
            let shares = wanted.iter().map(|_| Share::default()).collect();
            Self { wanted, held, shares, given: 0 }
        }

        fn round(&mut self, who: &[usize]) {
            for own in who.iter().copied() {
                let taken = who.iter().filter(|other| **other != own);
                let taken: BTreeSet<String> = taken.flat_map(|other| self.held[*other].clone()).collect();
                let seen = Seen {
                    members: who.len(),
                    own,
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
        assert!(group.counts().iter().all(|count| (1..=3).contains(count)), "{:?}", group.counts());
        let given = group.given;
        for _ in 0..10 {
            group.round(&[0, 1, 2]);
        }
        assert_eq!(group.given, given, "then nothing moves");
        // One is gone; in the next round the others have what it had.
        group.held[0].clear();
        group.round(&[1, 2]);
        assert_eq!(group.counts()[1..].iter().sum::<usize>(), 7);
    }

    #[test]
    fn what_only_one_gateway_knows_is_not_left_alone() {
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
}
