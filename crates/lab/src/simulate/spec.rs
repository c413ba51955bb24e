//! Reads the simulator's own files: hosts, links, certificate authorities, servers, clients, publishers, subscribers,
//! brokers, faults.

pub(super) mod authority;
pub(super) mod pubsub;

use super::convert::{SETTLE, milliseconds, percent, security};
use super::study::{Case, Parts, Profiles, StudyError};
use crate::scenario::{CpuCondition, Threshold};
use core::time::Duration;
use serde::Deserialize;
use std::collections::BTreeSet;
use taktwerk_explain::instead;
use taktwerk_model::document::Document;
use taktwerk_model::tune::link::LinkSpec;
use taktwerk_sim::Competitor;
use taktwerk_sim::scenario::fault::Which;
use taktwerk_sim::scenario::{
    Clients, Fault, FaultKind, Host, Lines, Link, Load, Login, Operation, Pace, PubSub, Requests, Scenario,
    Server, Signals, Subscription,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    name: String,
    #[serde(default)]
    time: TimeSpec,
    #[serde(default, rename = "host")]
    hosts: Vec<HostSpec>,
    #[serde(default, rename = "link")]
    links: Vec<toml::Table>,
    #[serde(default, rename = "authority")]
    authorities: Vec<authority::AuthoritySpec>,
    #[serde(default, rename = "server")]
    servers: Vec<ServerSpec>,
    #[serde(default, rename = "client")]
    clients: Vec<ClientSpec>,
    #[serde(default, rename = "broker")]
    brokers: Vec<pubsub::BrokerSpec>,
    #[serde(default, rename = "publisher")]
    publishers: Vec<pubsub::PublisherSpec>,
    #[serde(default, rename = "subscriber")]
    subscribers: Vec<pubsub::SubscriberSpec>,
    #[serde(default, rename = "fault")]
    faults: Vec<FaultSpec>,
    #[serde(default, rename = "threshold")]
    thresholds: Vec<Threshold>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TimeSpec {
    warmup_s: f64,
    duration_s: f64,
    settle_s: f64,
}

impl Default for TimeSpec {
    fn default() -> Self {
        Self { warmup_s: 2.0, duration_s: 10.0, settle_s: SETTLE.as_secs_f64() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostSpec {
    name: String,
    profile: String,
    cores: Option<u32>,
    #[serde(default, rename = "load")]
    loads: Vec<CompetitorSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompetitorSpec {
    share: f64,
    #[serde(default = "burst")]
    burst_ms: f64,
}

fn burst() -> f64 {
    5.0
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSpec {
    name: String,
    #[serde(default = "one")]
    count: u32,
    host: Option<String>,
    #[serde(default = "one")]
    threads: u32,
    #[serde(default)]
    signals: Vec<SignalsSpec>,
    #[serde(default)]
    event_period_ms: f64,
    #[serde(default)]
    history: u32,
    #[serde(default)]
    authorities: Vec<String>,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignalsSpec {
    count: u32,
    #[serde(default)]
    period_ms: f64,
    #[serde(default = "eight")]
    bytes: usize,
}

fn eight() -> usize {
    8
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindSpec {
    #[default]
    Subscribe,
    Read,
    Write,
    History,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LoginSpec {
    #[default]
    Anonymous,
    Password,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSpec {
    name: String,
    #[serde(default = "one")]
    count: u32,
    server: String,
    link: Option<String>,
    host: Option<String>,
    #[serde(default = "one")]
    threads: u32,
    #[serde(default)]
    kind: KindSpec,
    items: Option<u32>,
    publishing_ms: Option<f64>,
    sampling_ms: Option<f64>,
    queue: Option<u32>,
    notifications_max: Option<u32>,
    keep_alive_count: Option<u32>,
    lifetime_count: Option<u32>,
    publish_requests: Option<u32>,
    publish_every: Option<f64>,
    event_queue: Option<u32>,
    durable: Option<bool>,
    batch: Option<u32>,
    values: Option<u32>,
    pause_ms: Option<f64>,
    every_ms: Option<f64>,
    #[serde(default = "none")]
    policy: String,
    #[serde(default = "none")]
    mode: String,
    #[serde(default)]
    login: LoginSpec,
    #[serde(default = "minute")]
    session_timeout_s: f64,
    #[serde(default)]
    authorities: Vec<String>,
}

fn none() -> String {
    "None".to_owned()
}

fn minute() -> f64 {
    60.0
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FaultName {
    Cut,
    Partition,
    Crash,
    Restart,
    Clock,
    SlowReader,
    Storm,
    Slow,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultSpec {
    at: String,
    kind: FaultName,
    #[serde(default, rename = "for")]
    lasts: Option<String>,
    client: Option<String>,
    server: Option<String>,
    publisher: Option<String>,
    subscriber: Option<String>,
    broker: Option<String>,
    authority: Option<String>,
    /// Index, starting at 1.
    number: Option<u32>,
    offset: Option<String>,
    by: Option<String>,
}

/// Number of values of each variable that a request for history reads.
const VALUES: u32 = 1_000;

/// Parses a time such as `2s`, `150ms`, `5min` or `-1h` to seconds.
fn span(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    (seconds.abs() <= 366.0 * 86_400.0).then_some(seconds)
}

const SPAN: &str = "write a time such as \"2s\", \"150ms\" or \"5min\"";

struct Reader<'a> {
    document: &'a Document,
}

impl Reader<'_> {
    fn wrong(&self, key: &str, problem: impl Into<String>) -> StudyError {
        StudyError::Value { place: self.document.place(key), problem: problem.into() }
    }

    fn seconds(&self, key: &str, seconds: f64) -> Result<Duration, StudyError> {
        let is_good = (0.0..=7.0 * 86_400.0).contains(&seconds);
        let problem = || self.wrong(key, format!("{seconds} s is not between 0 and one week"));
        if is_good { self.duration(key, seconds) } else { Err(problem()) }
    }

    fn duration(&self, key: &str, seconds: f64) -> Result<Duration, StudyError> {
        let duration = Duration::from_secs_f64(seconds);
        // Zero often means something else than a short time, such as values that do not change.
        if duration.is_zero() && seconds > 0.0 {
            return Err(self.wrong(key, format!("{seconds} s is less than a nanosecond: write 0 or more")));
        }
        Ok(duration)
    }

    fn ms(&self, key: &str, ms: f64) -> Result<Duration, StudyError> {
        self.seconds(key, ms / 1e3).map(|_| milliseconds(ms))
    }

    fn span(&self, key: &str, text: &str) -> Result<Duration, StudyError> {
        match span(text).filter(|seconds| *seconds >= 0.0) {
            Some(seconds) => self.duration(key, seconds),
            None => Err(self.wrong(key, format!("{text:?}: {SPAN}"))),
        }
    }

    /// The index of the element that a key names.
    fn find(&self, key: &str, what: &str, name: &str, all: &[&str]) -> Result<usize, StudyError> {
        all.iter().position(|known| *known == name).ok_or_else(|| {
            let known = if all.is_empty() {
                format!("add [[{what}]]")
            } else {
                format!("there are {}", all.join(", "))
            };
            self.wrong(key, format!("there is no {what} {name:?}; {known}"))
        })
    }

    /// References and figures have only the name of an element.
    fn distinct<'n>(&self, what: &str, names: impl Iterator<Item = &'n str>) -> Result<(), StudyError> {
        let mut known = BTreeSet::new();
        for (at, name) in names.enumerate() {
            if !known.insert(name) {
                return Err(self.wrong(&format!("{what}.{at}.name"), format!("another {what} has this name")));
            }
        }
        Ok(())
    }

    fn host(&self, at: usize, host: &HostSpec, profiles: Profiles<'_>) -> Result<Host, StudyError> {
        let key = |field: &str| format!("host.{at}.{field}");
        let mut profile = match host.profile.as_str() {
            // A free processor must be named explicitly, so that nobody gets such figures by omission.
            "free" => taktwerk_model::HostProfile::free(1),
            file => profiles(file).map_err(|problem| self.wrong(&key("profile"), problem))?,
        };
        if let Some(cores) = host.cores {
            profile.machine.cores = cores;
        }
        profile.check().map_err(|error| self.wrong(&key("cores"), error.to_string()))?;
        let mut competitors = Vec::new();
        for load in &host.loads {
            if !(load.share > 0.0 && load.share <= 1.0) {
                return Err(self.wrong(
                    &key("load"),
                    format!("share = {}: write more than 0 and at most 1", load.share),
                ));
            }
            let burst = self.ms(&key("load"), load.burst_ms)?;
            if burst.is_zero() {
                return Err(self.wrong(&key("load"), "burst_ms = 0: write the length of a burst"));
            }
            competitors.push(Competitor { share: load.share, burst });
        }
        Ok(Host { name: host.name.clone(), profile, competitors })
    }

    fn link(&self, at: usize, table: &toml::Table) -> Result<Link, StudyError> {
        let key = |field: &str| format!("link.{at}.{field}");
        let mut table = table.clone();
        let Some(toml::Value::String(name)) = table.remove("name") else {
            return Err(self.wrong(&key("name"), "a link needs a name: write name = \"…\""));
        };
        let lines = match table.remove("lines") {
            None => Lines::One,
            Some(toml::Value::String(text)) if text == "one" => Lines::One,
            Some(toml::Value::String(text)) if text == "per-server" => Lines::PerServer,
            Some(toml::Value::String(text)) if text == "per-client" => Lines::PerClient,
            Some(toml::Value::String(text)) => {
                let hint = instead(&text, &["one", "per-server", "per-client"]);
                return Err(self.wrong(&key("lines"), format!("there is no {text:?}; {hint}")));
            }
            Some(other) => {
                let problem = format!("{other}: write \"one\", \"per-server\" or \"per-client\"");
                return Err(self.wrong(&key("lines"), problem));
            }
        };
        let spec = LinkSpec::Table(table);
        let profile = spec.profile().map_err(|(inner, problem)| {
            let field = inner.strip_prefix("link.").unwrap_or("profile").to_owned();
            self.wrong(&key(&field), problem)
        })?;
        let is_half_duplex =
            spec.is_shared(&profile).map_err(|problem| self.wrong(&key("shared"), problem))?;
        Ok(Link { name, profile, is_half_duplex, lines })
    }

    fn client(&self, at: usize, client: &ClientSpec, scenario: &Scenario) -> Result<Clients, StudyError> {
        let key = |field: &str| format!("client.{at}.{field}");
        let servers: Vec<&str> = scenario.servers.iter().map(|server| server.name.as_str()).collect();
        let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        let hosts: Vec<&str> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
        let server = self.find(&key("server"), "server", &client.server, &servers)?;
        let link =
            client.link.as_ref().map(|link| self.find(&key("link"), "link", link, &links)).transpose()?;
        let host =
            client.host.as_ref().map(|host| self.find(&key("host"), "host", host, &hosts)).transpose()?;
        self.unused(at, client)?;
        let variables = scenario.servers.get(server).map_or(0, Server::variables);
        if let Some(items) = client.items.filter(|items| u64::from(*items) > variables) {
            let problem = format!("the server has {variables} variables: leave it out for all");
            return Err(self.wrong(&key("items"), format!("{items}: {problem}")));
        }
        let load = match client.kind {
            KindSpec::Subscribe => Load::Subscribe(self.subscription(at, client)?),
            kind => Load::Request(Requests {
                operation: match kind {
                    KindSpec::Write => Operation::Write,
                    KindSpec::History => Operation::ReadHistory(client.values.unwrap_or(VALUES)),
                    KindSpec::Read | KindSpec::Subscribe => Operation::Read,
                },
                batch: client.batch.unwrap_or(1),
                pace: match client.every_ms {
                    Some(every) => Pace::Every(self.ms(&key("every_ms"), every)?),
                    None => Pace::Pause(self.ms(&key("pause_ms"), client.pause_ms.unwrap_or(0.0))?),
                },
            }),
        };
        Ok(Clients {
            name: client.name.clone(),
            count: client.count,
            server,
            link,
            host,
            threads: client.threads,
            items: client.items,
            load,
            security: security(&client.policy, &client.mode)
                .map_err(|(field, problem)| self.wrong(&key(field), problem))?,
            login: match client.login {
                LoginSpec::Anonymous => Login::Anonymous,
                LoginSpec::Password => Login::Password,
            },
            session_timeout: self.seconds(&key("session_timeout_s"), client.session_timeout_s)?,
            authorities: self.chain(&key("authorities"), &client.authorities, scenario)?,
        })
    }

    /// The first key without effect for this kind of client.
    fn unused(&self, at: usize, client: &ClientSpec) -> Result<(), StudyError> {
        let subscribes = client.kind == KindSpec::Subscribe;
        let given = [
            ("publishing_ms", client.publishing_ms.is_some(), true),
            ("sampling_ms", client.sampling_ms.is_some(), true),
            ("queue", client.queue.is_some(), true),
            ("notifications_max", client.notifications_max.is_some(), true),
            ("keep_alive_count", client.keep_alive_count.is_some(), true),
            ("lifetime_count", client.lifetime_count.is_some(), true),
            ("publish_requests", client.publish_requests.is_some(), true),
            ("publish_every", client.publish_every.is_some(), true),
            ("event_queue", client.event_queue.is_some(), true),
            ("durable", client.durable.is_some(), true),
            ("batch", client.batch.is_some(), false),
            ("pause_ms", client.pause_ms.is_some(), false),
            ("every_ms", client.every_ms.is_some(), false),
        ];
        if let Some((field, ..)) = given.iter().find(|(_, is_given, of)| *is_given && *of != subscribes) {
            let problem = format!("{field} has no effect for this kind of client: remove it");
            return Err(self.wrong(&format!("client.{at}.{field}"), problem));
        }
        if client.values.is_some() && client.kind != KindSpec::History {
            let problem = "only kind = \"history\" reads a number of values of each variable: remove it";
            return Err(self.wrong(&format!("client.{at}.values"), problem));
        }
        if client.every_ms.is_some() && client.pause_ms.is_some() {
            let problem = "every_ms fixes the times of requests, pause_ms follows the answers: leave one out";
            return Err(self.wrong(&format!("client.{at}.every_ms"), problem));
        }
        Ok(())
    }

    fn subscription(&self, at: usize, client: &ClientSpec) -> Result<Subscription, StudyError> {
        let key = |field: &str| format!("client.{at}.{field}");
        let Some(interval) = client.publishing_ms else {
            return Err(
                self.wrong(&key("publishing_ms"), "missing: write the publishing interval in milliseconds")
            );
        };
        let usual = Subscription::new(self.ms(&key("publishing_ms"), interval)?);
        Ok(Subscription {
            sampling_interval: self.ms(&key("sampling_ms"), client.sampling_ms.unwrap_or(0.0))?,
            queue_size: client.queue,
            notifications_max: client.notifications_max.unwrap_or(0),
            keep_alive_count: client.keep_alive_count.unwrap_or(usual.keep_alive_count),
            lifetime_count: client.lifetime_count,
            publish_requests: client.publish_requests,
            publish_every: client.publish_every.map(percent),
            event_queue: client.event_queue,
            is_durable: client.durable.unwrap_or(false),
            ..usual
        })
    }

    fn fault(&self, at: usize, fault: &FaultSpec, scenario: &Scenario) -> Result<Fault, StudyError> {
        let key = |field: &str| format!("fault.{at}.{field}");
        let number = match fault.number {
            Some(0) => return Err(self.wrong(&key("number"), "0: they count from 1")),
            number => number.map(|number| number - 1),
        };
        let servers: Vec<&str> = scenario.servers.iter().map(|server| server.name.as_str()).collect();
        let clients: Vec<&str> = scenario.clients.iter().map(|clients| clients.name.as_str()).collect();
        let of_server = || match &fault.server {
            Some(name) => {
                self.find(&key("server"), "server", name, &servers).map(|group| Which { group, number })
            }
            None if fault.client.is_some() => {
                let problem = "this fault does not happen to clients: write server, publisher, subscriber, broker or \
                               authority = \"…\"";
                Err(self.wrong(&key("client"), problem))
            }
            None => Err(self.wrong(
                &key("kind"),
                "write server = \"…\": this fault needs a server, publisher, subscriber, broker or authority",
            )),
        };
        let of_client = || match &fault.client {
            Some(name) => {
                self.find(&key("client"), "client", name, &clients).map(|group| Which { group, number })
            }
            None if fault.server.is_some() => {
                let problem =
                    "this fault does not happen to servers: write client, publisher or subscriber = \"…\"";
                Err(self.wrong(&key("server"), problem))
            }
            None => Err(self.wrong(
                &key("kind"),
                "write client = \"…\": this fault needs clients, publishers or subscribers",
            )),
        };
        let of_node = self.node_fault(at, fault, number, scenario)?;
        if fault.server.is_some() && fault.client.is_some() {
            return Err(self.wrong(&key("client"), "a fault hits clients or a server: leave one out"));
        }
        let offset = || {
            let text = fault.offset.as_deref().unwrap_or_default();
            let seconds = span(text).filter(|seconds| *seconds != 0.0);
            let problem = || self.wrong(&key("offset"), "write the offset of the clock, such as \"-1h\"");
            seconds.map(|seconds| (seconds * 1e9) as i64).ok_or_else(problem)
        };
        let kind = match (of_node, fault.kind) {
            (Some(kind), _) => kind,
            (None, FaultName::Cut) => FaultKind::Cut(of_client()?),
            (None, FaultName::Partition) => FaultKind::Partition(of_client()?),
            (None, FaultName::SlowReader) => FaultKind::SlowReader(of_client()?),
            (None, FaultName::Crash) => FaultKind::Crash(of_server()?),
            (None, FaultName::Restart) => FaultKind::Restart(of_server()?),
            (None, FaultName::Storm) => FaultKind::Storm(of_server()?),
            (None, FaultName::Clock) if fault.server.is_some() => {
                FaultKind::ServerClock(of_server()?, offset()?)
            }
            (None, FaultName::Clock) => FaultKind::ClientClock(of_client()?, offset()?),
            (None, FaultName::Slow) => {
                let problem = "write authority = \"…\": only a certificate authority can be slow";
                return Err(self.wrong(&key("kind"), problem));
            }
        };
        if fault.by.is_some() && !matches!(fault.kind, FaultName::Slow) {
            return Err(self.wrong(&key("by"), "only an authority that is slow needs this: leave it out"));
        }
        if fault.offset.is_some() && !matches!(fault.kind, FaultName::Clock) {
            return Err(self.wrong(&key("offset"), "only a clock has an offset: leave it out"));
        }
        let lasts = match (&fault.lasts, kind.lasts()) {
            (Some(text), true) => self.span(&key("for"), text)?,
            (None, true) => {
                return Err(self.wrong(&key("kind"), "write for = \"…\": this fault needs a duration"));
            }
            (Some(_), false) => return Err(self.wrong(&key("for"), "this fault has no duration: remove it")),
            (None, false) => Duration::ZERO,
        };
        Ok(Fault { at: self.span(&key("at"), &fault.at)?, lasts, kind })
    }
}

/// Reads a file of the simulator.
pub(super) fn read(document: &Document, profiles: Profiles<'_>) -> Result<Parts, StudyError> {
    let spec: Spec = document.read()?;
    let reader = Reader { document };
    let mut scenario = Scenario {
        hosts: Vec::new(),
        links: Vec::new(),
        servers: Vec::new(),
        clients: Vec::new(),
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: Vec::new(),
        warmup: reader.seconds("time.warmup_s", spec.time.warmup_s)?,
        measured: reader.seconds("time.duration_s", spec.time.duration_s)?,
        settle: reader.seconds("time.settle_s", spec.time.settle_s)?,
    };
    for (at, host) in spec.hosts.iter().enumerate() {
        scenario.hosts.push(reader.host(at, host, profiles)?);
    }
    for (at, link) in spec.links.iter().enumerate() {
        scenario.links.push(reader.link(at, link)?);
    }
    for (at, one) in spec.authorities.iter().enumerate() {
        let authority = reader.authority(at, one, &scenario)?;
        scenario.authorities.push(authority);
    }
    let hosts: Vec<String> = scenario.hosts.iter().map(|host| host.name.clone()).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    for (at, server) in spec.servers.iter().enumerate() {
        let key = |field: &str| format!("server.{at}.{field}");
        let host =
            server.host.as_ref().map(|host| reader.find(&key("host"), "host", host, &hosts)).transpose()?;
        let is_name =
            |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '.';
        if server.name.is_empty() || !server.name.chars().all(is_name) {
            let problem = format!("{:?} is part of a URL: use letters, digits, - and .", server.name);
            return Err(reader.wrong(&key("name"), problem));
        }
        let mut signals = Vec::new();
        for (group, one) in server.signals.iter().enumerate() {
            let period = reader.ms(&key(&format!("signals.{group}.period_ms")), one.period_ms)?;
            signals.push(Signals { count: one.count, period, value_len: one.bytes });
        }
        scenario.servers.push(Server {
            name: server.name.clone(),
            count: server.count,
            host,
            shards: server.threads,
            signals,
            event_period: reader.ms(&key("event_period_ms"), server.event_period_ms)?,
            spread: Duration::ZERO,
            history: server.history,
            authorities: reader.chain(&key("authorities"), &server.authorities, &scenario)?,
        });
    }
    reader.distinct("host", spec.hosts.iter().map(|host| host.name.as_str()))?;
    reader.distinct("link", scenario.links.iter().map(|link| link.name.as_str()))?;
    reader.distinct("client", spec.clients.iter().map(|client| client.name.as_str()))?;
    for (at, client) in spec.clients.iter().enumerate() {
        let clients = reader.client(at, client, &scenario)?;
        scenario.clients.push(clients);
    }
    for (at, broker) in spec.brokers.iter().enumerate() {
        let broker = reader.broker(at, broker, &scenario)?;
        scenario.pubsub.brokers.push(broker);
    }
    for (at, publishers) in spec.publishers.iter().enumerate() {
        let publishers = reader.publishers(at, publishers, &scenario)?;
        scenario.pubsub.publishers.push(publishers);
    }
    for (at, subscribers) in spec.subscribers.iter().enumerate() {
        let subscribers = reader.subscribers(at, subscribers, &scenario)?;
        scenario.pubsub.subscribers.push(subscribers);
    }
    for (at, fault) in spec.faults.iter().enumerate() {
        let fault = reader.fault(at, fault, &scenario)?;
        scenario.faults.push(fault);
    }
    let case = Case { label: spec.name.clone(), scenario, cpu: CpuCondition::Isolated };
    Ok(Parts { name: spec.name, cases: vec![case], thresholds: spec.thresholds, notes: Vec::new() })
}
