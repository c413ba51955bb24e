//! The gateways of a group whose connections hold locks: which are there, and when the locks of one that is gone may be taken.
//!
//! Locks go with a connection. A gateway whose connection has ended may not know it yet, and asks its sources until its leases
//! expire: three quarters of the lease time after it began the last look that was answered. So what is free is taken only when a lease
//! time has passed since a connection was missed first. The connection was there in the look before, so its gateway has
//! stopped by then, whatever it knows.

use core::time::Duration;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Longest lease time that is believed: three times the longest time between two looks.
const LEASE_MAX: Duration = Duration::from_secs(3);

/// What a gateway says of itself with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    /// How long its leases are good without another look.
    pub(super) lease_time: Duration,
    /// A number that is the same if it wants the same sources; `None` if it does not say.
    pub(super) wants: Option<u64>,
    /// Whether it does not know long enough who is there: it has no share, and takes nothing but what it had before.
    pub(super) is_new: bool,
    /// Whether it is new and had something with an earlier connection, which it takes at once.
    pub(super) is_back: bool,
}

/// What begins the name of a connection.
const NAME: &str = "taktwerk-gateway leases";

impl Peer {
    /// The name of its connection.
    pub(super) fn name(&self) -> String {
        let state = match (self.is_new, self.is_back) {
            (true, true) => " back",
            (true, false) => " new",
            (false, _) => "",
        };
        format!("{NAME} {} {:016x}{state}", self.lease_time.as_millis(), self.wants.unwrap_or_default())
    }

    /// Reads the name of a connection. What is none of ours, or of another version, is taken for the longest lease.
    pub(super) fn of_name(name: &str) -> Self {
        let mut words = name.strip_prefix(NAME).unwrap_or_default().split_ascii_whitespace();
        let millis = words.next().and_then(|word| word.parse().ok());
        let wants = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        match (millis, wants) {
            (Some(millis), Some(wants)) => {
                let lease_time = Duration::from_millis(millis).min(LEASE_MAX);
                let state = words.next();
                let is_back = state == Some("back");
                Self { lease_time, wants: Some(wants), is_new: is_back || state == Some("new"), is_back }
            }
            _ => Self { lease_time: LEASE_MAX, wants: None, is_new: false, is_back: false },
        }
    }

    /// Until when this gateway's leases are good, if the last look that was answered began then.
    pub(super) fn until(&self, begin: Instant) -> Instant {
        begin + self.lease_time / 4 * 3
    }
}

/// The gateways as one of them has seen them in its last look.
#[derive(Debug)]
pub(super) struct Peers {
    seen: BTreeMap<i32, Peer>,
    /// A time at which each of them was not there yet, unless it was seen in the first look.
    before: BTreeMap<i32, Instant>,
    /// When the last look began.
    looked: Option<Instant>,
    /// Before this nothing is taken that others may have had. `None` before the first look.
    settled: Option<Instant>,
}

impl Peers {
    /// None has been seen yet.
    pub(super) fn new() -> Self {
        Self { seen: BTreeMap::new(), before: BTreeMap::new(), looked: None, settled: None }
    }

    /// The connections of a look that began at a time and has just been answered. Says whether they differ from those of the look
    /// before.
    pub(super) fn look(
        &mut self,
        own: Peer,
        now: BTreeMap<i32, Peer>,
        (begin, at): (Instant, Instant),
    ) -> bool {
        let longest = |peers: &mut dyn Iterator<Item = &Peer>| peers.map(|peer| peer.lease_time).max();
        let wait = match self.settled {
            // Whoever has just come does not know who was there a moment ago.
            None => longest(&mut now.values().chain([&own])),
            Some(_) => {
                // A number may be that of another connection meanwhile.
                let is_there = |pid: &i32, seen: &Peer| {
                    let was_idle = seen.is_new && !seen.is_back;
                    now.get(pid)
                        .is_some_and(|peer| was_idle || !peer.is_new || (seen.is_back && peer.is_back))
                };
                // One that is new takes nothing before a lease time has passed since it came. One that starts and fails again
                // and again must not keep others from what is free.
                let is_idle = |pid: &i32, seen: &Peer| {
                    let came = self.before.get(pid).copied();
                    seen.is_new && !seen.is_back && came.is_some_and(|came| at < came + seen.lease_time)
                };
                let is_gone = |(pid, peer): &(&i32, &Peer)| !is_there(pid, peer) && !is_idle(pid, peer);
                longest(&mut self.seen.iter().filter(is_gone).map(|(_, peer)| peer))
            }
        };
        let due = at + wait.unwrap_or_default();
        self.settled = Some(self.settled.map_or(due, |settled| settled.max(due)));
        let differs = self.seen != now;
        self.before.retain(|pid, _| now.contains_key(pid));
        if let Some(looked) = self.looked {
            for pid in now.keys().filter(|pid| !self.seen.contains_key(pid)) {
                self.before.insert(*pid, looked);
            }
        }
        (self.seen, self.looked) = (now, Some(begin));
        differs
    }

    /// Whether free leases may be taken.
    pub(super) fn are_settled(&self, now: Instant) -> bool {
        self.settled.is_some_and(|settled| settled <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(1);
    const PEER: Peer = Peer { lease_time: LEASE, wants: Some(7), is_new: false, is_back: false };

    /// A look that takes no time.
    fn look(peers: &mut Peers, now: BTreeMap<i32, Peer>, at: Instant) -> bool {
        peers.look(PEER, now, (at, at))
    }

    #[test]
    fn a_connection_says_what_others_have_to_know() {
        assert_eq!(PEER.name(), "taktwerk-gateway leases 1000 0000000000000007");
        let long = Peer { lease_time: LEASE_MAX, wants: Some(u64::MAX), is_new: true, is_back: true };
        // The name of a connection has at most 63 bytes.
        assert!(long.name().len() < 64);
        for peer in [PEER, long, Peer { is_back: false, ..long }] {
            assert_eq!(Peer::of_name(&peer.name()), peer);
        }
        for name in [
            "",
            "psql",
            "taktwerk-gateway leases",
            "taktwerk-gateway leases x 7",
            "taktwerk-gateway leases 5",
        ] {
            let unknown = Peer { lease_time: LEASE_MAX, wants: None, is_new: false, is_back: false };
            assert_eq!(Peer::of_name(name), unknown, "{name}");
        }
        let endless = Peer::of_name("taktwerk-gateway leases 99999999999 0");
        assert_eq!(endless.lease_time, LEASE_MAX);
    }

    #[test]
    fn a_gateway_that_was_new_is_waited_for_if_it_may_have_something() {
        let begin = Instant::now();
        let ms = Duration::from_millis;
        let new = Peer { is_new: true, ..PEER };
        let back = Peer { is_back: true, ..new };
        // How long it was seen, and whether others wait for it.
        for (peer, seen, is_waited_for) in [
            (new, ms(0), false),
            (new, ms(400), false),
            (new, ms(890), false),
            // It may have been settled since the last look.
            (new, ms(910), true),
            (back, ms(0), true),
            (PEER, ms(0), true),
        ] {
            let mut peers = Peers::new();
            look(&mut peers, BTreeMap::from([(1, PEER)]), begin);
            let come = begin + 5 * LEASE;
            look(&mut peers, BTreeMap::from([(1, PEER)]), come - ms(50));
            for at in [come, come + seen] {
                look(&mut peers, BTreeMap::from([(1, PEER), (4, peer)]), at);
                assert!(peers.are_settled(at), "nobody is gone");
            }
            let missed = come + seen + ms(50);
            // Another one that is new may have the number of the connection.
            let now = if peer == back { vec![(1, PEER), (4, new)] } else { vec![(1, PEER)] };
            look(&mut peers, now.into_iter().collect(), missed);
            assert_eq!(peers.are_settled(missed), !is_waited_for, "{peer:?} {seen:?}");
            assert!(peers.are_settled(missed + LEASE));
        }
        // One that fails again and again does not keep others from what is free.
        for life in [ms(150), ms(700)] {
            let mut peers = Peers::new();
            look(&mut peers, BTreeMap::from([(1, PEER)]), begin);
            for number in 0..50 {
                let at = begin + 5 * LEASE + (life + ms(200)) * number;
                look(&mut peers, BTreeMap::from([(1, PEER)]), at - ms(100));
                look(&mut peers, BTreeMap::from([(1, PEER), (10 + number as i32, new)]), at);
                look(&mut peers, BTreeMap::from([(1, PEER)]), at + life);
                assert!(peers.are_settled(at + life), "{life:?}");
            }
        }
    }

    #[test]
    fn a_slow_answer_does_not_make_a_gateway_younger_than_it_is() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let alone = || BTreeMap::from([(1, PEER)]);
        let mut peers = Peers::new();
        look(&mut peers, alone(), begin);
        // It comes right behind a look. The next one is answered when it may take something any moment.
        let seen = begin + 3 * LEASE;
        look(&mut peers, alone(), seen);
        let new = Peer { is_new: true, ..PEER };
        peers.look(PEER, BTreeMap::from([(1, PEER), (4, new)]), (seen + ms(50), seen + ms(950)));
        let missed = seen + ms(1_300);
        look(&mut peers, alone(), missed);
        assert!(!peers.are_settled(missed) && peers.are_settled(missed + LEASE));
        // Nobody knows how long one has been there that was there before.
        let mut peers = Peers::new();
        look(&mut peers, BTreeMap::from([(1, PEER), (4, new)]), begin);
        look(&mut peers, alone(), begin + ms(500));
        assert!(!peers.are_settled(begin + ms(1_499)));
    }

    #[test]
    fn nothing_is_taken_before_a_gateway_that_is_gone_has_stopped() {
        let begin = Instant::now();
        let ms = Duration::from_millis;
        let of = |pids: &[i32]| pids.iter().map(|pid| (*pid, PEER)).collect::<BTreeMap<_, _>>();
        let mut peers = Peers::new();
        assert!(look(&mut peers, of(&[1, 2]), begin));
        assert!(!peers.are_settled(begin + LEASE - ms(1)), "it has just come");
        assert!(peers.are_settled(begin + LEASE));
        // Its last look may have been answered just before its connection was missed.
        let last_seen = begin + 2 * LEASE;
        assert!(!look(&mut peers, of(&[1, 2]), last_seen));
        let missed = last_seen + ms(300);
        assert!(look(&mut peers, of(&[1]), missed));
        assert!(!peers.are_settled(PEER.until(missed)), "it asks until then");
        assert!(!look(&mut peers, of(&[1]), missed + ms(300)));
        assert!(peers.are_settled(missed + LEASE));
        // One with a longer lease is waited for as long.
        let slow = Peer { lease_time: 3 * LEASE, wants: None, ..PEER };
        let at = missed + 10 * LEASE;
        look(&mut peers, BTreeMap::from([(1, PEER), (3, slow)]), at);
        look(&mut peers, of(&[1]), at + LEASE);
        assert!(!peers.are_settled(at + 4 * LEASE - ms(1)) && peers.are_settled(at + 4 * LEASE));
        // Another one has the same number.
        let mut reused = Peers::new();
        look(&mut reused, of(&[1, 2]), begin);
        look(&mut reused, BTreeMap::from([(1, PEER), (2, Peer { is_new: true, ..PEER })]), at);
        assert!(!reused.are_settled(at + LEASE - ms(1)) && reused.are_settled(at + LEASE));
    }
}
