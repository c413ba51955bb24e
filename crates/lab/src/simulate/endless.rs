//! Finds loads without an end, without simulating: requests without a pause that take no virtual time.

use taktwerk_model::host::{HostProfile, SchedulerCosts};
use taktwerk_sim::scenario::{Load, Pace, Scenario};

/// Bytes of a small message.
const SMALL: usize = 200;

/// The group of clients with the first such load, and what to do about it.
pub(super) fn problem(scenario: &Scenario) -> Option<(usize, &'static str)> {
    let is_free = |host: Option<usize>| {
        let host = host.and_then(|host| scenario.hosts.get(host));
        host.is_none_or(|host| takes_no_time(&host.profile))
    };
    let is_endless = scenario.clients.iter().position(|clients| {
        let Load::Request(requests) = &clients.load else { return false };
        let link = clients.link.and_then(|link| scenario.links.get(link));
        let server = scenario.servers.get(clients.server).and_then(|server| server.host);
        requests.pace == Pace::Pause(core::time::Duration::ZERO)
            && link.is_none_or(|link| link.profile.round_trip(SMALL) <= 0.0)
            && is_free(clients.host)
            && is_free(server)
    });
    let problem = "requests without a pause (pause_ms = 0), to a server whose work takes no time, over a link without delay, \
                   are answered without end. Write a pause, give hosts a profile (--host-profile epyc-vm), or give the link \
                   a delay";
    is_endless.map(|at| (at, problem))
}

/// Whether no work takes time. Only costs that are left out count as none.
fn takes_no_time(profile: &HostProfile) -> bool {
    profile.server.is_empty() && profile.client.is_empty() && profile.scheduler == SchedulerCosts::default()
}
