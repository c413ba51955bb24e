//! Hosts on which work takes time: a third of the plants have some.
//!
//! Costs are those of the profile `epyc-vm`, rounded, times a factor. The factor is such that the load leaves most of
//! the processor free: a plant that asks for more than its processors have would only show that it does.

use super::{Random, ms, values_per_s};
use crate::host::Competitor;
use crate::host::costs::RECORDING;
use crate::scenario::history::STORE_EVERY;
use crate::scenario::pubsub::{Publishers, Transport};
use crate::scenario::{Clients, Host, Load, Operation, Pace, Scenario, Server};
use core::time::Duration;
use taktwerk_crypto::SecurityPolicy;
use taktwerk_model::HostProfile;
use taktwerk_model::host::Cost;
use taktwerk_server::JobKind;

/// Costs in nanoseconds that servers, clients, publishers, subscribers and brokers have for the same work.
const COSTS: &[(&str, f64)] = &[
    ("bytes_received", 2.0),
    ("bytes_sent", 0.5),
    ("chunks_received", 600.0),
    ("cold", 29_000.0),
    ("cold_deep", 110_000.0),
    ("jobs", 4_000.0),
    ("notifications", 8.0),
    ("receive", 3_300.0),
    ("requests", 500.0),
    ("sealed_bytes_received", 1.2),
    ("sealed_bytes_sent", 1.0),
    ("send", 12_000.0),
    ("signatures", 2_000.0),
    ("timer", 1_900.0),
    ("turn", 600.0),
    ("wake", 7_000.0),
];
/// Further costs of a server.
const SERVER_COSTS: &[(&str, f64)] = &[("items_walked", 50.0), ("operations", 50.0), ("units", 2.0)];
/// An operation with a private key.
const PRIVATE_KEY: f64 = 700_000.0;
/// An operation with a public key.
const PUBLIC_KEY: f64 = 30_000.0;
/// Writing changes of durable subscriptions.
const WRITE: f64 = 1_000_000.0;
/// Checking a password; reading and recording up to 1 000 values of history.
const PASSWORD: f64 = 28_000_000.0;
const READ_HISTORY: f64 = 100_000.0;
const RECORD_HISTORY: f64 = 1_000_000.0;
/// Maximum factor for passwords: the checks of all clients together must be shorter than session timeouts.
const PASSWORD_FACTOR_MAX: f64 = 3.0;

/// Processor seconds for a message that is received or sent, with the turn that does it.
const MESSAGE: f64 = 60e-6;
/// The same for a value in it, and for a byte of the value.
const VALUE: f64 = 1e-6;
const BYTE: f64 = 5e-9;
/// Share of a processor that the load may take.
const BUSY_MAX: f64 = 0.2;
/// Possible factors, from the fastest to the slowest machine.
const FACTORS: [u32; 6] = [1, 3, 10, 30, 100, 300];
/// Maximum factor with certificates: handshakes of all clients together must be shorter than timeouts.
const SECURED_FACTOR_MAX: u32 = 30;
/// Shortest lifetime of subscriptions: requests wait for processors.
const LIFETIME_MIN: Duration = Duration::from_secs(15);

/// A machine that is slower than `epyc-vm` by a factor.
fn profile(factor: u32, cores: u32) -> HostProfile {
    let slower = f64::from(factor);
    let mut profile = HostProfile::free(cores);
    profile.name = format!("slower-{factor}");
    profile.source = "not measured: rounded costs of epyc-vm times a factor".into();
    profile.scheduler.wake = Cost::Quantiles(vec![0.0, 5_000.0, 20_000.0]);
    profile.scheduler.wake_asleep = Some(Cost::Quantiles(vec![0.0, 25_000.0, 110_000.0]));
    profile.scheduler.noise = Cost::Quantiles(vec![0.8, 0.9, 1.0, 1.1, 1.6]);
    let cost = |(name, cost): &(&str, f64)| ((*name).to_owned(), cost * slower);
    profile.client.extend(COSTS.iter().map(cost).filter(|(name, _)| name != "units"));
    profile.server.extend(COSTS.iter().chain(SERVER_COSTS).map(cost));
    let (private, public) = (PRIVATE_KEY * slower, PUBLIC_KEY * slower);
    for policy in SecurityPolicy::ALL.iter().filter(|policy| policy.is_secure()).map(|policy| policy.name()) {
        let jobs = [("open-channel", private + public), ("answer-channel", private + public)];
        let jobs = jobs.into_iter().chain([("sign-session", private), ("prove-session", public)]);
        profile.jobs.extend(jobs.map(|(name, cost)| (format!("{name}/{policy}"), Cost::Fixed(cost))));
        let jobs = [("seal-chunk", private + public), ("open-chunk", private + public)];
        let jobs = jobs.into_iter().chain([("sign", private), ("verify", public)]);
        profile.client_jobs.extend(jobs.map(|(name, cost)| (format!("{name}/{policy}"), Cost::Fixed(cost))));
    }
    let jobs = [
        (JobKind::WriteSubscriptions.name(), WRITE * slower.min(10.0)),
        (JobKind::CheckCredential.name(), PASSWORD * slower.min(PASSWORD_FACTOR_MAX)),
        (JobKind::ReadHistory.name(), READ_HISTORY * slower),
        (RECORDING.to_owned(), RECORD_HISTORY * slower),
    ];
    profile.jobs.extend(jobs.map(|(name, cost)| (name, Cost::Fixed(cost))));
    profile
}

impl Random {
    /// Gives hosts prices, and places servers and clients on them.
    pub(super) fn prices(&mut self, scenario: &mut Scenario) {
        if scenario.hosts.is_empty() {
            let profile = HostProfile::free(1 + self.small(2));
            scenario.hosts.push(Host { name: "host-0".to_owned(), profile, competitors: Vec::new() });
        }
        let hosts = scenario.hosts.len();
        let places = scenario.servers.iter_mut().map(|server| &mut server.host);
        let places = places.chain(scenario.clients.iter_mut().map(|clients| &mut clients.host));
        for place in places.filter(|place| place.is_none()) {
            *place = self.host(hosts);
        }
        for at in 0..hosts {
            if self.chance(1, 6) {
                continue;
            }
            let busy = busy(scenario, at);
            let is_secured = scenario.clients.iter().any(|clients| {
                clients.security.0.is_secure() && hosts_of(scenario, clients).contains(&Some(at))
            });
            let Some(host) = scenario.hosts.get_mut(at) else { continue };
            if host.competitors.is_empty() && self.chance(1, 3) {
                let share = (1 + self.below(5)) as f64 / 10.0;
                host.competitors.push(Competitor { share, burst: ms(1 + self.below(20)) });
            }
            let free = 1.0 - host.competitors.iter().map(|one| one.share).sum::<f64>();
            let fits = |factor: &u32| busy * f64::from(*factor) <= BUSY_MAX * free;
            let possible: Vec<u32> = FACTORS
                .into_iter()
                .filter(fits)
                .filter(|factor| !is_secured || *factor <= SECURED_FACTOR_MAX)
                .collect();
            if !possible.is_empty() {
                host.profile = profile(self.one_of(&possible, 1), host.profile.machine.cores);
            }
        }
        for at in 0..scenario.clients.len() {
            let Some(clients) = scenario.clients.get(at) else { continue };
            let is_slow =
                |host: usize| scenario.hosts.get(host).is_some_and(|host| !host.profile.server.is_empty());
            let is_slow = hosts_of(scenario, clients).into_iter().flatten().any(is_slow);
            if let Some(Clients { load: Load::Subscribe(it), .. }) = scenario.clients.get_mut(at)
                && is_slow
            {
                let least = LIFETIME_MIN.as_millis() / it.publishing_interval.as_millis().max(1);
                let least = u32::try_from(least).unwrap_or(u32::MAX);
                it.lifetime_count = it.lifetime_count.map(|count| count.max(least));
            }
        }
    }
}

/// The hosts of clients and of their server.
fn hosts_of(scenario: &Scenario, clients: &Clients) -> [Option<usize>; 2] {
    [clients.host, scenario.servers.get(clients.server).and_then(|server| server.host)]
}

/// Processor seconds per second of everything on a host, with factor 1. Server and clients of a message count the same.
fn busy(scenario: &Scenario, host: usize) -> f64 {
    let mut all = 0.0;
    for clients in &scenario.clients {
        let Some(server) = scenario.servers.get(clients.server) else { continue };
        let ends = hosts_of(scenario, clients).into_iter().filter(|end| *end == Some(host)).count();
        all += ends as f64 * f64::from(clients.count * server.count) * client_busy(clients, server);
    }
    for server in scenario.servers.iter().filter(|server| server.host == Some(host) && server.history > 0) {
        all += f64::from(server.count) * RECORD_HISTORY * 1e-9 / STORE_EVERY.as_secs_f64();
    }
    let parts = &scenario.pubsub;
    for (at, publishers) in parts.publishers.iter().enumerate() {
        let one = f64::from(publishers.count) * publisher_busy(publishers);
        let of = parts.subscribers.iter().filter(|subscribers| subscribers.publishers.contains(&at));
        let here = of.clone().filter(|subscribers| subscribers.host == Some(host));
        let here: u32 = here.map(|subscribers| subscribers.count).sum();
        let everywhere: u32 = of.map(|subscribers| subscribers.count).sum();
        all += one * f64::from(here);
        if publishers.host == Some(host) {
            all += one;
        }
        if let Transport::Broker(broker, _) = publishers.transport
            && parts.brokers.get(broker).is_some_and(|broker| broker.host == Some(host))
        {
            all += one * f64::from(1 + everywhere);
        }
    }
    all
}

/// Processor seconds per second that one client needs, or its server for it.
fn client_busy(clients: &Clients, server: &Server) -> f64 {
    match &clients.load {
        Load::Subscribe(it) => {
            let values = values_per_s(server);
            let bytes = server.signals.iter().map(|signals| signals.value_len).max().unwrap_or(0);
            let events = if it.event_queue.is_some() && !server.event_period.is_zero() {
                10.0 / server.event_period.as_secs_f64()
            } else {
                0.0
            };
            let by_size = (values + events) / f64::from(it.notifications_max.max(1));
            let by_size = if it.notifications_max == 0 { 0.0 } else { by_size };
            let messages = 1.0 / it.publishing_interval.as_secs_f64() + by_size;
            messages * MESSAGE + (values + events) * (VALUE + bytes as f64 * BYTE)
        }
        Load::Request(it) => {
            let period = match it.pace {
                Pace::Pause(period) | Pace::Every(period) => period.as_secs_f64().max(1e-3),
            };
            let (history, values) = match it.operation {
                Operation::ReadHistory(values) => (READ_HISTORY * 1e-9, f64::from(values)),
                Operation::Read | Operation::Write => (0.0, 1.0),
            };
            (MESSAGE + history + f64::from(it.batch) * values * VALUE) / period
        }
    }
}

/// Processor seconds per second that one publisher needs, or a receiver of it.
fn publisher_busy(publishers: &Publishers) -> f64 {
    let messages = publishers.data_sets().len() as f64 * MESSAGE;
    let values = publishers
        .signals
        .iter()
        .map(|signals| f64::from(signals.count) * (VALUE + signals.value_len as f64 * BYTE));
    (messages + values.sum::<f64>()) / publishers.publishing_interval.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::super::script;
    use super::*;
    use std::collections::BTreeSet;

    fn is_priced(scenario: &Scenario) -> bool {
        scenario.hosts.iter().any(|host| !host.profile.server.is_empty())
    }

    #[test]
    fn a_third_of_the_plants_have_prices_and_room() {
        let (mut priced, mut factors, mut loaded) = (0, BTreeSet::new(), 0);
        for scenario in (0..600).map(script) {
            priced += u32::from(is_priced(&scenario));
            for (at, host) in scenario.hosts.iter().enumerate() {
                let Some(slower) = host.profile.name.strip_prefix("slower-") else { continue };
                assert!(crate::host::Costs::new(&host.profile).is_ok());
                factors.insert(slower.parse::<u32>().unwrap());
                loaded += u32::from(!host.competitors.is_empty());
                let busy = busy(&scenario, at) * slower.parse::<f64>().unwrap();
                let others: f64 = host.competitors.iter().map(|one| one.share).sum();
                assert!(busy + others <= 1.0, "{busy} {others}");
            }
        }
        assert!((120..240).contains(&priced) && loaded > 30, "{priced} {loaded}");
        assert_eq!(factors, FACTORS.into());
    }

    #[test]
    fn values_arrive_through_a_machine_that_is_100_times_slower() {
        let seed = (0..).find(|seed| {
            let scenario = script(*seed);
            let slow = scenario.servers.iter().filter_map(|server| scenario.hosts.get(server.host?));
            slow.filter(|host| host.profile.name == "slower-100").count() > 0
        });
        let seed = seed.unwrap();
        let outcome = crate::campaign::run(&script(seed), seed).unwrap();
        let used = outcome.servers.iter().filter_map(|server| server.cpu).fold(0.0, f64::max);
        assert!(used > 0.0 && used < 0.9, "{used}");
    }
}
