//! Shrinks certificate authorities.

use crate::authority::{Protocol, Unknown};
use crate::scenario::fault::Role;
use crate::scenario::{Authority, Scenario};

/// The used links.
pub(super) fn links(scenario: &Scenario) -> impl Iterator<Item = Option<usize>> {
    scenario.authorities.iter().map(|one| one.link)
}

/// Removes an authority that no fault needs. A chain of several becomes shorter.
pub(super) fn without_authority(scenario: &Scenario, at: usize) -> Option<Scenario> {
    (at < scenario.authorities.len()).then(|| {
        let mut smaller = scenario.clone();
        let is_own = |group| group == at;
        let faults = scenario.faults.iter().filter(|fault| fault.kind.role() == Some(Role::Authority));
        if faults.clone().any(|fault| is_own(fault.kind.which().group)) {
            return smaller;
        }
        smaller.authorities.remove(at);
        let servers = smaller.servers.iter_mut().map(|server| &mut server.authorities);
        let clients = smaller.clients.iter_mut().map(|clients| &mut clients.authorities);
        for chain in servers.chain(clients) {
            chain.retain(|one| *one != at);
            chain.iter_mut().filter(|one| **one > at).for_each(|one| *one -= 1);
        }
        for fault in smaller.faults.iter_mut().filter(|fault| fault.kind.role() == Some(Role::Authority)) {
            let group = fault.kind.which().group;
            if group > at {
                fault.kind = fault.kind.with_group(group - 1);
            }
        }
        smaller
    })
}

/// Servers, then clients, ask no authorities.
pub(super) fn without_checks(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    if let Some(server) = smaller.servers.get_mut(at) {
        server.authorities.clear();
    } else {
        smaller.clients.get_mut(at - scenario.servers.len())?.authorities.clear();
    }
    Some(smaller)
}

/// Simplifies one setting of an authority at a time.
pub(super) fn simpler_authority(scenario: &Scenario, at: usize) -> Option<Scenario> {
    const SETTINGS: usize = 5;
    let mut smaller = scenario.clone();
    let one = smaller.authorities.get_mut(at / SETTINGS)?;
    match at % SETTINGS {
        0 => one.link = None,
        1 => one.protocol = Protocol::Ocsp,
        2 => one.processing = Authority::new("").processing,
        3 => one.unknown = Unknown::Refuse,
        _ => one.host = None,
    }
    Some(smaller)
}
