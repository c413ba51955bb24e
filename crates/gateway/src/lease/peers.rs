//! The gateways of a group whose connections hold locks: which are present, and when the locks of a lost one may be taken.
//!
//! A lock ends with its connection. A gateway whose connection has ended may not have noticed, and polls its sources until its
//! leases expire: three quarters of the lease time after the start of its last answered check. So free locks are taken only one
//! lease time after a connection was first missing. The connection was present in the previous check, so its gateway has stopped
//! by then in any case.

use core::time::Duration;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Longest accepted lease time: three times the longest time between two checks.
const LEASE_MAX: Duration = Duration::from_secs(3);

/// What a gateway publishes in the name of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    /// How long its leases are valid without another check.
    pub(super) lease_time: Duration,
    /// A hash of the sources that it wants; `None` if unknown.
    pub(super) wants: Option<u64>,
    /// Whether it has not observed the others for long enough. It then has no share, and takes only leases that it had before.
    pub(super) is_new: bool,
    /// Whether it is new but had leases with an earlier connection, which it takes immediately.
    pub(super) is_back: bool,
}

/// The prefix of connection names.
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

    /// Parses the name of a connection. For a foreign name or another version, the longest lease is assumed.
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

    /// The expiration of this gateway's leases, given the start of the last answered check.
    pub(super) fn until(&self, begin: Instant) -> Instant {
        begin + self.lease_time / 4 * 3
    }
}

/// The gateways as seen by this gateway in its last check.
#[derive(Debug)]
pub(super) struct Peers {
    seen: BTreeMap<i32, Peer>,
    /// A time at which each was not present yet, unless it was seen in the first check.
    before: BTreeMap<i32, Instant>,
    /// The start of the last check.
    looked: Option<Instant>,
    /// Before this time no lease is taken that another gateway may have had. `None` before the first check.
    settled: Option<Instant>,
}

impl Peers {
    /// Nothing seen yet.
    pub(super) fn new() -> Self {
        Self { seen: BTreeMap::new(), before: BTreeMap::new(), looked: None, settled: None }
    }

    /// Processes the connections of a check that began at `begin` and was answered at `at`. Returns whether they differ from
    /// those of the previous check.
    pub(super) fn look(
        &mut self,
        own: Peer,
        now: BTreeMap<i32, Peer>,
        (begin, at): (Instant, Instant),
    ) -> bool {
        let longest = |peers: &mut dyn Iterator<Item = &Peer>| peers.map(|peer| peer.lease_time).max();
        let wait = match self.settled {
            // A new gateway does not know which gateways were present before.
            None => longest(&mut now.values().chain([&own])),
            Some(_) => {
                // A process id may have been reused for another connection.
                let is_there = |pid: &i32, seen: &Peer| {
                    let was_idle = seen.is_new && !seen.is_back;
                    now.get(pid)
                        .is_some_and(|peer| was_idle || !peer.is_new || (seen.is_back && peer.is_back))
                };
                // A new gateway takes nothing within a lease time after its arrival. One that restarts repeatedly must not keep
                // others from taking free leases.
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

    /// A check without delay.
    fn look(peers: &mut Peers, now: BTreeMap<i32, Peer>, at: Instant) -> bool {
        peers.look(PEER, now, (at, at))
    }

    #[test]
    fn a_connection_name_is_parsed_by_others() {
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
    fn a_lost_new_gateway_is_waited_for_only_if_it_may_hold_leases() {
        let begin = Instant::now();
        let ms = Duration::from_millis;
        let new = Peer { is_new: true, ..PEER };
        let back = Peer { is_back: true, ..new };
        // How long it was seen, and whether others wait for it.
        for (peer, seen, is_waited_for) in [
            (new, ms(0), false),
            (new, ms(400), false),
            (new, ms(890), false),
            // It may have become settled since the last check.
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
            // Another new gateway may have the same process id.
            let now = if peer == back { vec![(1, PEER), (4, new)] } else { vec![(1, PEER)] };
            look(&mut peers, now.into_iter().collect(), missed);
            assert_eq!(peers.are_settled(missed), !is_waited_for, "{peer:?} {seen:?}");
            assert!(peers.are_settled(missed + LEASE));
        }
        // A gateway that fails repeatedly does not keep others from taking free leases.
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
    fn a_slow_answer_does_not_reduce_the_age_of_a_gateway() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let alone = || BTreeMap::from([(1, PEER)]);
        let mut peers = Peers::new();
        look(&mut peers, alone(), begin);
        // It arrives just after a check. When the next check is answered, it may be about to take leases.
        let seen = begin + 3 * LEASE;
        look(&mut peers, alone(), seen);
        let new = Peer { is_new: true, ..PEER };
        peers.look(PEER, BTreeMap::from([(1, PEER), (4, new)]), (seen + ms(50), seen + ms(950)));
        let missed = seen + ms(1_300);
        look(&mut peers, alone(), missed);
        assert!(!peers.are_settled(missed) && peers.are_settled(missed + LEASE));
        // The age of a gateway that was present before is unknown.
        let mut peers = Peers::new();
        look(&mut peers, BTreeMap::from([(1, PEER), (4, new)]), begin);
        look(&mut peers, alone(), begin + ms(500));
        assert!(!peers.are_settled(begin + ms(1_499)));
    }

    #[test]
    fn no_lease_is_taken_before_a_lost_gateway_has_stopped() {
        let begin = Instant::now();
        let ms = Duration::from_millis;
        let of = |pids: &[i32]| pids.iter().map(|pid| (*pid, PEER)).collect::<BTreeMap<_, _>>();
        let mut peers = Peers::new();
        assert!(look(&mut peers, of(&[1, 2]), begin));
        assert!(!peers.are_settled(begin + LEASE - ms(1)), "it has just come");
        assert!(peers.are_settled(begin + LEASE));
        // Its last check may have been answered just before its connection was missed.
        let last_seen = begin + 2 * LEASE;
        assert!(!look(&mut peers, of(&[1, 2]), last_seen));
        let missed = last_seen + ms(300);
        assert!(look(&mut peers, of(&[1]), missed));
        assert!(!peers.are_settled(PEER.until(missed)), "it asks until then");
        assert!(!look(&mut peers, of(&[1]), missed + ms(300)));
        assert!(peers.are_settled(missed + LEASE));
        // A gateway with a longer lease is waited for longer.
        let slow = Peer { lease_time: 3 * LEASE, wants: None, ..PEER };
        let at = missed + 10 * LEASE;
        look(&mut peers, BTreeMap::from([(1, PEER), (3, slow)]), at);
        look(&mut peers, of(&[1]), at + LEASE);
        assert!(!peers.are_settled(at + 4 * LEASE - ms(1)) && peers.are_settled(at + 4 * LEASE));
        // Another gateway has the same process id.
        let mut reused = Peers::new();
        look(&mut reused, of(&[1, 2]), begin);
        look(&mut reused, BTreeMap::from([(1, PEER), (2, Peer { is_new: true, ..PEER })]), at);
        assert!(!reused.are_settled(at + LEASE - ms(1)) && reused.are_settled(at + LEASE));
    }
}
