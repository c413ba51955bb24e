//! Certificate authorities: a quarter of the plants that have certificates have some.

use super::{Random, ms, profile};
use crate::authority::{Protocol, Unknown};
use crate::scenario::fault::{NodeFault, Role, Which};
use crate::scenario::{Authority, Fault, FaultKind, Lines, Link, Scenario};
use core::time::Duration;
use taktwerk_crypto::SecurityPolicy;

/// Longest wait for an answer in milliseconds. Clients give up a handshake after 10 s.
const TIMEOUT_MAX: u64 = 3_000;

impl Random {
    pub(super) fn authorities(&mut self, scenario: &mut Scenario) {
        let is_secured = |policy: SecurityPolicy| policy != SecurityPolicy::None;
        if !scenario.clients.iter().any(|clients| is_secured(clients.security.0)) {
            return;
        }
        let link = self.chance(2, 3).then(|| {
            let loss = self.below(20);
            let text = format!("rate=2mbit,delay={}ms,loss={}%", self.below(100), loss as f64 / 10.0);
            let name = format!("link-{}", scenario.links.len());
            let lines = Lines::One;
            scenario.links.push(Link { name, profile: profile(&text), is_half_duplex: false, lines });
            scenario.links.len() - 1
        });
        for at in 0..1 + self.below(2) {
            let list = Protocol::Crl(ms(self.below(5_000)));
            scenario.authorities.push(Authority {
                link,
                protocol: self.one_of(&[Protocol::Ocsp, list], Protocol::Ocsp),
                processing: ms(self.below(50)),
                timeout: ms(500 + self.below(TIMEOUT_MAX - 500)),
                unknown: self.one_of(&[Unknown::Refuse, Unknown::Accept], Unknown::Refuse),
                ..Authority::new(&format!("authority-{at}"))
            });
        }
        let all: Vec<usize> = (0..scenario.authorities.len()).collect();
        for clients in scenario.clients.iter_mut().filter(|clients| is_secured(clients.security.0)) {
            if self.chance(1, 2) {
                clients.authorities.clone_from(&all);
            }
            if let Some(server) = scenario.servers.get_mut(clients.server)
                && self.chance(2, 3)
            {
                server.authorities.clone_from(&all);
            }
        }
        for _ in 0..self.below(3) {
            let fault = self.authority_fault(all.len(), scenario.measured);
            scenario.faults.push(fault);
        }
    }

    fn authority_fault(&mut self, count: usize, measured: Duration) -> Fault {
        let at = ms(self.below(u64::try_from(measured.as_millis()).unwrap_or(1)));
        let lasts = ms(100 + self.below(10_000));
        let what = match self.below(4) {
            0 => NodeFault::Partition,
            1 => NodeFault::Crash,
            2 => NodeFault::Restart,
            _ => NodeFault::Slow(ms(1 + self.below(1_000))),
        };
        let which = Which { group: self.index(count), number: None };
        let kind = FaultKind::Node(Role::Authority, which, what);
        Fault { at, lasts: if kind.lasts() { lasts } else { Duration::ZERO }, kind }
    }
}
