//! Shrinks a script: removes everything that is not needed for its failure.

use super::random::profile;
use crate::scenario::fault::FaultKind;
use crate::scenario::{Lines, Load, Login, Operation, Scenario};
use core::time::Duration;
use std::collections::BTreeMap;
use taktwerk_model::HostProfile;

mod authorities;
mod pubsub;

/// A smaller version of a script, or `None` if this step changes nothing.
type Step = fn(&Scenario, usize) -> Option<Scenario>;

/// Faults first, because they are the result that users need; then whole parts, then numbers.
const STEPS: &[Step] = &[
    without_faults_from,
    without_fault,
    pubsub::without_pubsub,
    pubsub::without_subscribers,
    pubsub::without_publishers,
    pubsub::without_broker,
    authorities::without_checks,
    authorities::without_authority,
    without_clients,
    without_server,
    without_servers,
    fewer_clients,
    fewer_servers,
    fewer_variables,
    pubsub::fewer_nodes,
    pubsub::fewer_signals,
    pubsub::simpler_node,
    authorities::simpler_authority,
    one_thread,
    without_host,
    without_prices,
    without_security,
    without_link,
    simpler_link,
    simpler_subscription,
    without_events,
    without_slow_jobs,
    shorter,
    shorter_fault,
    one_target,
];

/// The smallest script that still fails, as far as single steps lead to it. Calls `fails` at most `runs_max` times.
pub fn shrink(scenario: &Scenario, runs_max: usize, fails: &mut dyn FnMut(&Scenario) -> bool) -> Scenario {
    shrink_by(STEPS, scenario, runs_max, fails)
}

/// The fewest and shortest faults with which the plant still fails. Keeps the plant.
pub fn fewest_faults(
    scenario: &Scenario,
    runs_max: usize,
    fails: &mut dyn FnMut(&Scenario) -> bool,
) -> Scenario {
    shrink_by(&[without_faults_from, without_fault, shorter_fault, one_target], scenario, runs_max, fails)
}

fn shrink_by(
    steps: &[Step],
    scenario: &Scenario,
    runs_max: usize,
    fails: &mut dyn FnMut(&Scenario) -> bool,
) -> Scenario {
    let mut best = scenario.clone();
    let mut left = runs_max;
    loop {
        let before = best.clone();
        for step in steps {
            let mut at = 0;
            // After a successful step, try the same position again.
            while let Some(smaller) = step(&best, at) {
                if smaller == best {
                    at += 1;
                    continue;
                }
                if left == 0 {
                    return best;
                }
                left -= 1;
                if fails(&smaller) {
                    best = smaller;
                } else {
                    at += 1;
                }
            }
        }
        if best == before {
            return best;
        }
    }
}

/// Removes all faults from a position on.
fn without_faults_from(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    (at < scenario.faults.len()).then(|| {
        smaller.faults.truncate(at);
        smaller
    })
}

fn without_fault(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    (at < scenario.faults.len()).then(|| {
        smaller.faults.remove(at);
        smaller
    })
}

fn without_clients(scenario: &Scenario, at: usize) -> Option<Scenario> {
    (at < scenario.clients.len()).then(|| {
        let mut smaller = scenario.clone();
        if smaller.clients.len() > 1 {
            smaller.clients.remove(at);
            let group_of = |kind: &FaultKind| kind.is_of_client().then(|| kind.which().group);
            smaller.faults.retain(|fault| group_of(&fault.kind) != Some(at));
            for fault in &mut smaller.faults {
                if let Some(group) = group_of(&fault.kind).filter(|group| *group > at) {
                    fault.kind = fault.kind.with_group(group - 1);
                }
            }
        }
        smaller
    })
}

fn without_server(scenario: &Scenario, at: usize) -> Option<Scenario> {
    (at < scenario.servers.len()).then(|| {
        let mut smaller = scenario.clone();
        if smaller.servers.len() > 1 && smaller.clients.iter().all(|clients| clients.server != at) {
            smaller.servers.remove(at);
            for clients in smaller.clients.iter_mut().filter(|clients| clients.server > at) {
                clients.server -= 1;
            }
            let group_of = |kind: &FaultKind| kind.is_of_server().then(|| kind.which().group);
            smaller.faults.retain(|fault| group_of(&fault.kind) != Some(at));
            for fault in &mut smaller.faults {
                if let Some(group) = group_of(&fault.kind).filter(|group| *group > at) {
                    fault.kind = fault.kind.with_group(group - 1);
                }
            }
        }
        smaller
    })
}

/// Removes all servers and clients, if PubSub alone fails.
fn without_servers(scenario: &Scenario, at: usize) -> Option<Scenario> {
    (at == 0).then(|| {
        let mut smaller = scenario.clone();
        if !smaller.pubsub.subscribers.is_empty() {
            smaller.servers.clear();
            smaller.clients.clear();
            smaller.faults.retain(|fault| fault.kind.role().is_some());
        }
        smaller
    })
}

/// Faults whose target number no longer exists get the first target.
fn clamp_numbers(scenario: &mut Scenario) {
    for fault in &mut scenario.faults {
        let which = fault.kind.which();
        let count = if let Some(role) = fault.kind.role() {
            pubsub::count(&scenario.pubsub, role, which.group)
        } else if fault.kind.is_of_server() {
            scenario.servers.get(which.group).map_or(1, |server| server.count)
        } else {
            scenario.clients.get(which.group).map_or(1, |clients| {
                clients.count * scenario.servers.get(clients.server).map_or(1, |server| server.count)
            })
        };
        if which.number.is_some_and(|number| number >= count) {
            fault.kind = fault.kind.with_number(Some(0));
        }
    }
}

fn fewer_clients(scenario: &Scenario, at: usize) -> Option<Scenario> {
    scenario.clients.get(at)?;
    let mut smaller = scenario.clone();
    if let Some(clients) = smaller.clients.get_mut(at) {
        clients.count = (clients.count / 2).max(1);
    }
    clamp_numbers(&mut smaller);
    Some(smaller)
}

fn fewer_servers(scenario: &Scenario, at: usize) -> Option<Scenario> {
    scenario.servers.get(at)?;
    let mut smaller = scenario.clone();
    if let Some(server) = smaller.servers.get_mut(at) {
        server.count = (server.count / 2).max(1);
    }
    clamp_numbers(&mut smaller);
    Some(smaller)
}

/// Positions count groups of variables first, then halves of them.
fn fewer_variables(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let groups: usize = scenario.servers.iter().map(|server| server.signals.len()).sum();
    if at >= 2 * groups {
        return None;
    }
    let mut smaller = scenario.clone();
    let mut number = at % groups;
    for server in &mut smaller.servers {
        let len = server.signals.len();
        if number < len {
            if at < groups && len > 1 {
                server.signals.remove(number);
            } else if at >= groups
                && let Some(signals) = server.signals.get_mut(number)
            {
                signals.count = (signals.count / 2).max(1);
            }
            break;
        }
        number -= len;
    }
    Some(smaller)
}

fn one_thread(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    if let Some(server) = smaller.servers.get_mut(at) {
        server.shards = 1;
    } else {
        smaller.clients.get_mut(at - scenario.servers.len())?.threads = 1;
    }
    Some(smaller)
}

fn without_host(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    if let Some(server) = smaller.servers.get_mut(at) {
        server.host = None;
    } else if let Some(clients) = smaller.clients.get_mut(at - scenario.servers.len()) {
        clients.host = None;
    } else {
        let at = at - scenario.servers.len() - scenario.clients.len();
        let host = smaller.hosts.get_mut(at)?;
        host.competitors.clear();
        let used = smaller.servers.iter().map(|server| server.host);
        let used = used.chain(smaller.clients.iter().map(|clients| clients.host));
        let used = used.chain(pubsub::hosts(&smaller.pubsub));
        let used = used.chain(smaller.authorities.iter().map(|one| one.host));
        // Removing the last one does not change the numbers of others.
        if at + 1 == scenario.hosts.len() && !used.flatten().any(|host| host == at) {
            smaller.hosts.pop();
        }
    }
    Some(smaller)
}

/// Makes all work on a host free, then single kinds of work.
fn without_prices(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    if let Some(host) = smaller.hosts.get_mut(at) {
        host.profile = HostProfile::free(host.profile.machine.cores);
        return Some(smaller);
    }
    let mut at = at - scenario.hosts.len();
    for HostProfile { server, client, jobs, client_jobs, .. } in
        smaller.hosts.iter_mut().map(|host| &mut host.profile)
    {
        if removed(server, &mut at) || removed(client, &mut at) {
            return Some(smaller);
        }
        if removed(jobs, &mut at) || removed(client_jobs, &mut at) {
            return Some(smaller);
        }
    }
    None
}

/// Removes the entry at a position. If the map is shorter, the position is relative to its end afterwards.
fn removed<V>(map: &mut BTreeMap<String, V>, at: &mut usize) -> bool {
    let Some(name) = map.keys().nth(*at).cloned() else {
        *at -= map.len();
        return false;
    };
    map.remove(&name).is_some()
}

fn without_security(scenario: &Scenario, at: usize) -> Option<Scenario> {
    use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
    let mut smaller = scenario.clone();
    let clients = smaller.clients.get_mut(at)?;
    clients.security = (SecurityPolicy::None, MessageSecurityMode::None);
    clients.authorities.clear();
    // A server whose clients have no certificates asks nobody.
    for (kind, server) in smaller.servers.iter_mut().enumerate() {
        let mut clients = smaller.clients.iter().filter(|clients| clients.server == kind);
        if clients.all(|clients| clients.security.0 == SecurityPolicy::None) {
            server.authorities.clear();
        }
    }
    Some(smaller)
}

fn without_link(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    if let Some(clients) = smaller.clients.get_mut(at) {
        clients.link = None;
    } else {
        let at = at - scenario.clients.len();
        if at >= scenario.links.len() {
            return None;
        }
        let is_used = smaller.clients.iter().any(|clients| clients.link == Some(at))
            || pubsub::links(&smaller.pubsub)
                .chain(authorities::links(&smaller))
                .any(|link| link == Some(at));
        if at + 1 == scenario.links.len() && !is_used {
            smaller.links.pop();
        }
    }
    Some(smaller)
}

fn simpler_link(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    let link = smaller.links.get_mut(at / 2)?;
    if at.is_multiple_of(2) {
        link.is_half_duplex = false;
        link.lines = Lines::One;
    } else {
        link.profile = profile("rate=100mbit,delay=5ms");
    }
    Some(smaller)
}

fn simpler_subscription(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    let clients = smaller.clients.get_mut(at / 5)?;
    if let Load::Subscribe(it) = &mut clients.load {
        match at % 5 {
            0 => it.notifications_max = 0,
            1 => it.publish_requests = None,
            2 => it.sampling_interval = Duration::ZERO,
            3 => it.queue_size = None,
            _ => clients.items = None,
        }
    }
    Some(smaller)
}

/// Removes the event item or the durability of a subscription, then the events of a server.
fn without_events(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    if let Some(clients) = smaller.clients.get_mut(at / 2) {
        if let Load::Subscribe(it) = &mut clients.load {
            match at % 2 {
                0 => it.event_queue = None,
                _ => it.is_durable = false,
            }
        }
        return Some(smaller);
    }
    let at = at - 2 * scenario.clients.len();
    let wants = |clients: &crate::scenario::Clients| {
        clients.server == at && matches!(&clients.load, Load::Subscribe(it) if it.event_queue.is_some())
    };
    let is_wanted = smaller.clients.iter().any(wants);
    let server = smaller.servers.get_mut(at)?;
    if !is_wanted {
        server.event_period = Duration::ZERO;
    }
    Some(smaller)
}

/// Removes the logins and requests for history of clients, then the history of a server.
fn without_slow_jobs(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    if let Some(clients) = smaller.clients.get_mut(at / 2) {
        match (&mut clients.load, at % 2) {
            (_, 0) => clients.login = Login::Anonymous,
            (Load::Request(it), _) if matches!(it.operation, Operation::ReadHistory(_)) => {
                it.operation = Operation::Read;
            }
            _ => {}
        }
        return Some(smaller);
    }
    let at = at - 2 * scenario.clients.len();
    let reads =
        |load: &Load| matches!(load, Load::Request(it) if matches!(it.operation, Operation::ReadHistory(_)));
    let is_read = smaller.clients.iter().any(|clients| clients.server == at && reads(&clients.load));
    let server = smaller.servers.get_mut(at)?;
    if !is_read {
        server.history = 0;
    }
    Some(smaller)
}

/// Halves the duration, but not below the time of a fault. Tenths of a second are easier to read.
fn shorter(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    let tenths = |span: Duration| Duration::from_millis(span.as_millis() as u64 / 200 * 100);
    match at {
        0 => smaller.warmup = Duration::ZERO,
        1 => {
            let last = scenario.faults.iter().map(|fault| fault.at).max().unwrap_or_default();
            let least = last + Duration::from_millis(100);
            smaller.measured = tenths(scenario.measured).max(least).min(scenario.measured);
        }
        _ => return None,
    }
    Some(smaller)
}

fn shorter_fault(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    let fault = smaller.faults.get_mut(at)?;
    if fault.kind.lasts() && fault.lasts > Duration::from_millis(1) {
        fault.lasts = Duration::from_millis((fault.lasts.as_millis() as u64 / 2).max(1));
    }
    Some(smaller)
}

fn one_target(scenario: &Scenario, at: usize) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    let fault = smaller.faults.get_mut(at)?;
    if fault.kind.which().number.is_none() {
        fault.kind = fault.kind.with_number(Some(0));
    }
    Some(smaller)
}

#[cfg(test)]
mod tests {
    use super::super::script;
    use super::*;

    #[test]
    fn unneeded_parts_are_removed() {
        // Fails while the script contains a partition of subscribing clients.
        let fails = |scenario: &Scenario| {
            scenario.faults.iter().any(|fault| {
                let FaultKind::Partition(which) = fault.kind else { return false };
                matches!(scenario.clients[which.group].load, Load::Subscribe(_))
            })
        };
        let mut tried = 0;
        for scenario in (0..200).map(script).filter(fails) {
            let mut asked = 0;
            let small = shrink(&scenario, 10_000, &mut |scenario| {
                asked += 1;
                fails(scenario)
            });
            assert_eq!((small.faults.len(), small.clients.len(), small.servers.len()), (1, 1, 1));
            assert_eq!((small.clients[0].count, small.servers[0].count), (1, 1));
            assert_eq!((small.servers[0].signals.len(), small.servers[0].signals[0].count), (1, 1));
            assert_eq!((small.hosts.len(), small.links.len()), (0, 0), "{small:?}");
            assert!(fails(&small) && asked < 300, "{asked}");
            tried += 1;
        }
        assert!(tried > 10, "{tried}");
    }

    #[test]
    fn fewest_faults_keeps_the_plant() {
        let scenario = (0..).map(script).find(|scenario| scenario.faults.len() == 6).unwrap();
        let kept = scenario.faults[3].kind.name();
        let small = fewest_faults(&scenario, 1_000, &mut |scenario| {
            scenario.faults.iter().any(|fault| fault.kind.name() == kept)
        });
        let [fault] = &small.faults[..] else { panic!("{small:?}") };
        assert_eq!(fault.kind.name(), kept);
        assert_eq!(Scenario { faults: scenario.faults.clone(), ..small }, scenario);
    }

    #[test]
    fn the_number_of_runs_is_limited() {
        let scenario = (0..).map(script).find(|scenario| scenario.faults.len() == 6).unwrap();
        let mut asked = 0;
        let same = shrink(&scenario, 7, &mut |_| {
            asked += 1;
            false
        });
        assert_eq!((asked, same), (7, scenario));
    }
}
