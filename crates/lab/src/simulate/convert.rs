//! Converts files of other commands: scenarios of the laboratory, and plants of `size` and of `tune`.

use super::study::{Case, Options as StudyOptions, Parts, StudyError};
use super::{figures, spec};
use crate::scenario::{
    Condition, CpuCondition, Kind, Labels, SIMULATED, Scenario as LabScenario, SecuritySpec, Threshold,
};
use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_load::result::unknown_figure;
use taktwerk_load::signals::SignalSet;
use taktwerk_model::document::Document;
use taktwerk_model::host::{Cost, HostProfile};
use taktwerk_model::plant::Plant;
use taktwerk_model::tune::analytic::is_always_awake;
use taktwerk_model::tune::problem::Options;
use taktwerk_model::tune::{Problem, Security, Settings, Transport};
use taktwerk_netem::Profile;
use taktwerk_sim::Competitor;
use taktwerk_sim::scenario::pubsub::{
    Encoding, Publishers, SecurityMode, Subscribers, Transport as PubSubTransport,
};
use taktwerk_sim::scenario::{
    Clients, Host, Lines, Link, Load, Login, Operation, Pace, PubSub, Requests, Scenario, Server, Signals,
    Subscription,
};

/// Maximum virtual time to wait for late values.
pub(super) const SETTLE: Duration = Duration::from_secs(120);
/// Number of simulated intervals in a range.
const STEPS: i32 = 5;

fn wrong(document: &Document, key: &str, problem: impl Into<String>) -> StudyError {
    StudyError::Value { place: document.place(key), problem: problem.into() }
}

pub(super) fn milliseconds(ms: f64) -> Duration {
    // Files are validated before; remaining numbers cannot overflow.
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()
}

/// Parses policy and mode.
pub(super) fn security(
    policy: &str,
    mode: &str,
) -> Result<(SecurityPolicy, MessageSecurityMode), (&'static str, String)> {
    let mode = match mode.to_ascii_lowercase().as_str() {
        "none" => MessageSecurityMode::None,
        "sign" => MessageSecurityMode::Sign,
        "signandencrypt" | "sign-and-encrypt" => MessageSecurityMode::SignAndEncrypt,
        _ => return Err(("mode", format!("there is no mode {mode:?}: write None, Sign or SignAndEncrypt"))),
    };
    let known = SecurityPolicy::ALL.iter().find(|known| known.name().eq_ignore_ascii_case(policy));
    let Some(policy) = known else {
        let names: Vec<&str> = SecurityPolicy::ALL.iter().map(|policy| policy.name()).collect();
        return Err(("policy", format!("there is no policy {policy:?}: write one of {}", names.join(", "))));
    };
    if (*policy == SecurityPolicy::None) != (mode == MessageSecurityMode::None) {
        return Err(("policy", "policy and mode must both be None, or neither".to_owned()));
    }
    Ok((*policy, mode))
}

// ---- scenarios of the laboratory

/// Converts a scenario of `taktwerk lab run`; each condition becomes a case.
pub(super) fn of_laboratory(document: &Document) -> Result<Parts, StudyError> {
    let mut scenario = LabScenario::read(document)?;
    let mut notes = Vec::new();
    let others: Vec<&String> =
        scenario.stacks.iter().filter(|stack| !["own", SIMULATED].contains(&stack.as_str())).collect();
    if !others.is_empty() {
        notes.push(format!("only the stack `own` is simulated: {others:?} are left out"));
    }
    if scenario.thresholds.iter().any(|threshold| threshold.of.is_some()) {
        notes.push(
            "thresholds relative to other stacks are left out, because those stacks are not simulated"
                .to_owned(),
        );
        scenario.thresholds.retain(|threshold| threshold.of.is_none());
    }
    scenario.stacks = vec![SIMULATED.to_owned()];
    let conditions = scenario.conditions();
    let labels = Labels::of(&conditions);
    let mut cases = Vec::new();
    for (condition, label) in conditions.iter().zip(labels.iter()) {
        let scenario =
            of_condition(condition).map_err(|Unsimulated { key, problem }| wrong(document, &key, problem))?;
        cases.push(Case { label: label.to_owned(), scenario, cpu: condition.cpu.condition });
    }
    if cases.len() > 1 {
        notes.push(format!("all loads: {}", labels.shared()));
    }
    // Figures that only measurements have are left out; figures that neither has are mistakes.
    let is_simulated =
        |metric: &str| cases.iter().all(|case| figures::unknown(&case.scenario, metric).is_none());
    let is_measured = |metric: &str| unknown_figure(metric).is_none();
    let (judged, others) = core::mem::take(&mut scenario.thresholds)
        .into_iter()
        .partition(|one| is_simulated(&one.metric) || !is_measured(&one.metric));
    scenario.thresholds = judged;
    for Threshold { metric, .. } in others {
        notes.push(format!(
            "the threshold of {metric} is left out, because only measurements have this figure"
        ));
    }
    Ok(Parts { name: scenario.name.clone(), cases, thresholds: scenario.thresholds, notes })
}

/// A load of the laboratory that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct Unsimulated {
    /// The key in the scenario file.
    pub key: String,
    /// The mistake and its correction.
    pub problem: String,
}

/// The simulation of one load of the laboratory, without processors; see [`place`].
///
/// # Errors
/// [`Unsimulated`].
pub fn of_condition(condition: &Condition) -> Result<Scenario, Unsimulated> {
    let wrong = |key: &str, problem: String| Unsimulated { key: key.to_owned(), problem };
    if condition.server.adapters.is_some() {
        let problem = "adapters are not simulated: write signals and update_ms, or use `taktwerk lab run`";
        return Err(wrong("server.adapters", problem.to_owned()));
    }
    let update = condition.server.update_ms;
    let clients = condition.clients.max(1);
    let rate = condition.rate.filter(|rate| *rate > 0.0);
    let pace = match rate {
        // An open loop over all clients.
        Some(rate) => Pace::Every(Duration::from_secs_f64((f64::from(clients) / rate).clamp(1e-6, 86_400.0))),
        None => Pace::Pause(milliseconds(condition.pause_ms.unwrap_or(0.0))),
    };
    let batch = condition.batch.unwrap_or(1).max(1);
    let (load, items) = match condition.kind {
        Kind::Subscribe => {
            let interval = condition.publishing_ms.filter(|ms| *ms > 0.0).unwrap_or(1_000.0);
            let usual = Subscription::new(milliseconds(interval));
            let subscription = Subscription {
                // Same as `bench subscribe`: sampled once per publishing interval, and only the newest value counts.
                sampling_interval: milliseconds(condition.sampling_ms.unwrap_or(interval)),
                queue_size: Some(condition.queue.unwrap_or(1).max(1)),
                publish_every: condition.publish_every.map(percent),
                publish_requests: condition.publish_requests,
                notifications_max: condition.notifications_max.unwrap_or(0),
                keep_alive_count: condition.keep_alive_count.unwrap_or(usual.keep_alive_count),
                ..usual
            };
            let items = condition.items.unwrap_or(clients).div_ceil(clients).max(1);
            (Load::Subscribe(subscription), Some(items))
        }
        Kind::Read => (Load::Request(Requests { operation: Operation::Read, batch, pace }), None),
        Kind::Write => (Load::Request(Requests { operation: Operation::Write, batch, pace }), None),
        kind => {
            let problem = format!(
                "{:?} is not simulated: subscribe, read and write are. Use `taktwerk lab run` to measure it",
                kind.name()
            );
            return Err(wrong("load.kind", problem));
        }
    };
    let (link, profile) = match &condition.link {
        Some(text) => {
            let profile = text.parse::<Profile>();
            (text.as_str(), profile.map_err(|error| wrong("link", error.to_string()))?)
        }
        None => ("loopback", loopback()),
    };
    let SecuritySpec { policy, mode } = &condition.security;
    let security =
        security(policy, mode).map_err(|(key, problem)| wrong(&format!("security.{key}"), problem))?;
    let is_written = condition.kind == Kind::Write;
    Ok(Scenario {
        hosts: Vec::new(),
        links: vec![Link { name: link.to_owned(), profile, is_half_duplex: false, lines: Lines::One }],
        servers: vec![Server {
            name: "server".to_owned(),
            count: 1,
            host: None,
            shards: condition.server.threads.max(1),
            signals: if condition.server.sets.is_empty() {
                vec![Signals {
                    count: condition.signals(),
                    period: if is_written { Duration::ZERO } else { milliseconds(update) },
                    value_len: 8,
                }]
            } else {
                let set = |set: &SignalSet| Signals {
                    count: set.count,
                    period: set.period(),
                    value_len: set.bytes,
                };
                condition.server.sets.iter().map(set).collect()
            },
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        }],
        clients: vec![Clients {
            name: condition.kind.name().to_owned(),
            count: clients,
            server: 0,
            link: Some(0),
            host: None,
            threads: 1,
            items,
            load,
            security,
            login: Login::Anonymous,
            session_timeout: Duration::from_secs(60),
            authorities: Vec::new(),
        }],
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: Vec::new(),
        warmup: Duration::from_secs_f64(condition.time.warmup_s),
        measured: Duration::from_secs_f64(condition.time.duration_s),
        settle: SETTLE,
    })
}

/// The loopback interface of Linux: packets of 64 KiB, unlimited rate.
fn loopback() -> Profile {
    Profile {
        name: "loopback".to_owned(),
        about: "this machine".to_owned(),
        source: "the loopback interface of Linux has packets of 65 536 bytes".to_owned(),
        up: Default::default(),
        down: Default::default(),
        mtu: u16::MAX,
        vpn: None,
    }
}

/// Assigns a machine to everything without one: one to each server, and one to all clients together, unless server and
/// clients share a CPU.
pub fn place(scenario: &mut Scenario, profile: &HostProfile, cpu: CpuCondition) {
    let host = |name: &str| Host { name: name.to_owned(), profile: profile.clone(), competitors: Vec::new() };
    if cpu == CpuCondition::Same {
        let mut one = host("server and clients");
        one.profile.machine.cores = 1;
        let at = Some(scenario.hosts.len());
        scenario.hosts.push(one);
        scenario.servers.iter_mut().for_each(|server| server.host = server.host.or(at));
        scenario.clients.iter_mut().for_each(|clients| clients.host = clients.host.or(at));
        let own = scenario.hosts.len() - 1;
        spec::pubsub::place(scenario, &mut |_, _| own);
        spec::authority::place(scenario, &mut |_, _| own);
        return;
    }
    for server in scenario.servers.iter_mut().filter(|server| server.host.is_none()) {
        let mut own = host(&server.name);
        if cpu == CpuCondition::Loaded {
            // Same as the laboratory's competing program: it computes half of the time, on one CPU.
            own.profile.machine.cores = 1;
            own.competitors.push(Competitor { share: 0.5, burst: Duration::from_millis(5) });
        }
        server.host = Some(scenario.hosts.len());
        scenario.hosts.push(own);
    }
    if scenario.clients.iter().any(|clients| clients.host.is_none()) {
        let at = Some(scenario.hosts.len());
        scenario.clients.iter_mut().for_each(|clients| clients.host = clients.host.or(at));
        scenario.hosts.push(host("clients"));
    }
    let mut another = |scenario: &mut Scenario, name: &str| {
        scenario.hosts.push(host(name));
        scenario.hosts.len() - 1
    };
    spec::pubsub::place(scenario, &mut another);
    spec::authority::place(scenario, &mut another);
}

// ---- plants

/// Converts a plant of `taktwerk size`: all its nodes together.
pub(super) fn of_plant(document: &Document) -> Result<Parts, StudyError> {
    let plant = Plant::read(document)?;
    let mut scenario = empty();
    for (at, node) in plant.nodes.iter().enumerate() {
        let key = |field: &str| format!("node.{at}.{field}");
        let count = node.clients.round();
        for (field, value, range) in [
            ("clients", count, 1.0..=1e6),
            ("points", node.points, 1.0..=1e7),
            ("interval_ms", node.interval_ms, 0.1..=3.6e6),
            ("changing", node.changing, 0.0..=1.0),
        ] {
            if !range.contains(&value) {
                let problem = format!("{value}: write {} to {}", range.start(), range.end());
                return Err(wrong(document, &key(field), problem));
            }
        }
        // A value monitored by four clients counts four times.
        let variables = (node.points / count).ceil() as u32;
        let changing = ((f64::from(variables) * node.changing).round() as u32).min(variables);
        let period = milliseconds(node.interval_ms);
        let group = |count: u32, period: Duration| Signals { count, period, value_len: 8 };
        let signals = [group(changing, period), group(variables - changing, Duration::ZERO)];
        let hardware = node.hardware.as_ref();
        let hardware = hardware.and_then(|name| plant.hardware.iter().find(|one| one.name == *name));
        let rate = hardware.map_or(100.0, |hardware| hardware.network_mbit);
        let link = format!("ethernet-100m,rate={rate}mbit");
        let profile =
            link.parse::<Profile>().map_err(|error| wrong(document, &key("hardware"), error.to_string()))?;
        let policy = if node.encrypted { "Basic256Sha256" } else { "None" };
        let mode = if node.encrypted { "SignAndEncrypt" } else { "None" };
        let security =
            security(policy, mode).map_err(|(_, problem)| wrong(document, &key("encrypted"), problem))?;
        scenario.links.push(Link {
            name: format!("network of {}", node.name),
            profile,
            is_half_duplex: false,
            lines: Lines::PerServer,
        });
        scenario.servers.push(Server {
            name: node.name.clone(),
            count: node.count,
            host: None,
            shards: 1,
            signals: signals.into_iter().filter(|signals| signals.count > 0).collect(),
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        });
        scenario.clients.push(Clients {
            name: node.name.clone(),
            count: count as u32,
            server: at,
            link: Some(at),
            host: None,
            threads: 1,
            items: None,
            load: Load::Subscribe(Subscription::new(period)),
            security,
            login: Login::Anonymous,
            session_timeout: Duration::from_secs(60),
            authorities: Vec::new(),
        });
    }
    let case = Case { label: plant.name.clone(), scenario, cpu: CpuCondition::Isolated };
    Ok(Parts { name: plant.name, cases: vec![case], thresholds: Vec::new(), notes: Vec::new() })
}

fn empty() -> Scenario {
    Scenario {
        hosts: Vec::new(),
        links: Vec::new(),
        servers: Vec::new(),
        clients: Vec::new(),
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: Vec::new(),
        warmup: Duration::from_secs(2),
        measured: Duration::from_secs(10),
        settle: SETTLE,
    }
}

/// The simulation of settings of a plant of `taktwerk tune`, without processors. With PubSub, a publisher has the signals,
/// and each client is a subscriber. The publisher is behind the link.
#[must_use]
pub fn of_settings(problem: &Problem, settings: &Settings) -> Scenario {
    let mut scenario = empty();
    scenario.measured = Duration::from_secs_f64(problem.measured_s);
    let signals: Vec<Signals> = problem
        .signals
        .iter()
        .map(|one| Signals { count: one.count, period: milliseconds(one.period_ms), value_len: one.bytes })
        .collect();
    let mut link = Link {
        name: problem.link.name.clone(),
        profile: problem.link.clone(),
        is_half_duplex: problem.is_shared,
        lines: Lines::One,
    };
    if settings.transport == Transport::PubSub {
        // A node sends upwards, and the plant's server sends downwards.
        core::mem::swap(&mut link.profile.up, &mut link.profile.down);
        scenario.links.push(link);
        scenario.pubsub.publishers.push(publishers(problem, settings, signals));
        scenario.pubsub.subscribers.push(Subscribers {
            name: "subscriber".to_owned(),
            count: problem.clients,
            publishers: vec![0],
            link: None,
            host: None,
            quality: None,
            timeout: None,
        });
        return scenario;
    }
    scenario.links.push(link);
    scenario.servers.push(Server {
        name: "server".to_owned(),
        count: 1,
        host: None,
        shards: settings.threads.max(1),
        signals,
        event_period: Duration::ZERO,
        spread: spread(problem, settings),
        history: 0,
        authorities: Vec::new(),
    });
    scenario.clients.push(Clients {
        name: "subscribe".to_owned(),
        count: problem.clients,
        server: 0,
        link: Some(0),
        host: None,
        threads: 1,
        items: None,
        load: Load::Subscribe(Subscription {
            sampling_interval: milliseconds(settings.sampling_ms),
            queue_size: Some(settings.queue_size).filter(|size| *size > 0),
            notifications_max: settings.notifications_max,
            keep_alive_count: settings.keep_alive_count,
            publish_requests: Some(settings.publish_requests).filter(|most| *most > 0),
            // As in `tune`, a number of Publish requests replaces the clock.
            publish_every: problem.publish_every.map(percent).filter(|_| settings.publish_requests == 0),
            ..Subscription::new(milliseconds(settings.publishing_ms))
        }),
        login: Login::Anonymous,
        security: match settings.security {
            Security::None => (SecurityPolicy::None, MessageSecurityMode::None),
            Security::Sign => (SecurityPolicy::Basic256Sha256, MessageSecurityMode::Sign),
            Security::SignAndEncrypt => (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt),
        },
        session_timeout: Duration::from_secs(60),
        authorities: Vec::new(),
    });
    scenario
}

/// By how much writes are spread. The simulated server follows steady writes. For a server that publishes at times of its
/// own, they come at any time within the publishing interval.
pub(crate) fn spread(problem: &Problem, settings: &Settings) -> Duration {
    if problem.follows_writes { Duration::ZERO } else { milliseconds(settings.publishing_ms) }
}

/// The machine of a server with these settings. A server that polls without end is never woken.
#[must_use]
pub fn awake(profile: &HostProfile, settings: &Settings) -> HostProfile {
    let mut profile = profile.clone();
    if is_always_awake(settings) {
        profile.scheduler.wake = Cost::Fixed(0.0);
        profile.scheduler.wake_asleep = None;
    }
    profile
}

/// Runs the server or publisher on one machine, and all clients or subscribers on another.
pub fn place_both(plant: &mut Scenario, settings: &Settings, server: &HostProfile, client: &HostProfile) {
    let host = |name: &str, profile| Host { name: name.to_owned(), profile, competitors: Vec::new() };
    plant.hosts = vec![host("server", awake(server, settings)), host("client", client.clone())];
    plant.servers.iter_mut().for_each(|one| one.host = Some(0));
    plant.clients.iter_mut().for_each(|one| one.host = Some(1));
    plant.pubsub.publishers.iter_mut().for_each(|one| one.host = Some(0));
    plant.pubsub.subscribers.iter_mut().for_each(|one| one.host = Some(1));
}

/// Bytes of a packet that are not values: IP, UDP, and the headers of a signed NetworkMessage.
const HEADERS: usize = 150;
/// Lifetime of the keys of the SecurityGroup.
const KEY_LIFETIME: Duration = Duration::from_secs(3_600);

/// A publisher over UDP with DataSets that fit into a packet.
fn publishers(problem: &Problem, settings: &Settings, signals: Vec<Signals>) -> Publishers {
    let largest = signals.iter().map(|one| one.value_len).max().unwrap_or(1).max(1);
    let room = usize::from(problem.link.mtu).saturating_sub(HEADERS);
    Publishers {
        name: "publisher".to_owned(),
        count: 1,
        link: Some(0),
        host: None,
        transport: PubSubTransport::Multicast,
        encoding: Encoding::Uadp,
        publishing_interval: milliseconds(settings.publishing_ms),
        keep_alive_time: None,
        key_frame_count: 1,
        fields: u32::try_from((room / largest).max(1)).ok(),
        security: match settings.security {
            Security::None => SecurityMode::None,
            Security::Sign => SecurityMode::Sign,
            Security::SignAndEncrypt => SecurityMode::SignAndEncrypt,
        },
        key_lifetime: KEY_LIFETIME,
        signals,
    }
}

/// A share of the publishing interval in per cent.
pub(super) fn percent(share: f64) -> u32 {
    // `as` saturates.
    (share * 100.0).round() as u32
}

/// Converts a plant of `taktwerk tune`: some of the publishing intervals in its search range.
pub(super) fn of_tune(
    text: &str,
    document: &Document,
    file: &str,
    options: &StudyOptions<'_>,
) -> Result<Parts, StudyError> {
    let sets = options.sets.clone();
    let problem = Problem::parse(text, file, &Options { sets, ..Options::default() })?;
    let read = |key: &str, name: Option<&String>| {
        let profile = name.map(|name| (options.profiles)(name)).transpose();
        profile.map_err(|problem| wrong(document, key, problem))
    };
    let server = read("tune.host", problem.host.as_ref())?;
    let client = read("tune.client_host", problem.client_host.as_ref())?.or_else(|| server.clone());
    let machines = server.zip(client);
    let space = &problem.space;
    let intervals = match (space.is_range, space.publishing_ms.as_slice()) {
        (true, &[from, to]) => {
            let step = (to / from).powf(1.0 / f64::from(STEPS - 1));
            (0..STEPS).map(|at| (from * step.powi(at) * 10.0).round() / 10.0).collect()
        }
        (_, all) => all.to_vec(),
    };
    let settings = space.others.first().cloned().unwrap_or_else(Settings::usual);
    let mut cases = Vec::new();
    for interval in &intervals {
        let settings = Settings { publishing_ms: *interval, ..settings.clone() };
        let mut scenario = of_settings(&problem, &settings);
        if let Some((server, client)) = &machines {
            place_both(&mut scenario, &settings, server, client);
        }
        cases.push(Case {
            label: format!("publishing_ms={interval}"),
            scenario,
            cpu: CpuCondition::Isolated,
        });
    }
    let mut notes = Vec::new();
    if space.is_range {
        notes.push(
            "only some intervals of tune.search.publishing_ms are simulated; use `--set tune.search.publishing_ms=35` for a specific one"
                .to_owned(),
        );
    }
    if space.others.len() > 1 {
        notes.push(format!(
            "only the first of {} combinations of other settings in tune.search is simulated",
            space.others.len()
        ));
    }
    Ok(Parts { name: problem.name.clone(), cases, thresholds: Vec::new(), notes })
}
