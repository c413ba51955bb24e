//! Scenarios: TOML files that describe measurements. Unknown keys are errors, so that a typing mistake cannot change a
//! measurement silently.
//!
//! ```toml
//! name = "fifty clients"
//! stacks = ["own", "open62541"]        # or a URL, opc.tcp://plc:4840
//! link = "wan-frankfurt"               # optional, see `taktwerk lab links`
//!
//! [server]                             # of "own" and of peers
//! signals = 1000
//! update_ms = 100
//!
//! [load]
//! kind = "subscribe"                   # read, write, browse, subscribe, connect, roundtrip, fan, probe, update
//! clients = [1, 10, 50]                # a list is measured one by one
//! items = 1000
//! publishing_ms = 100
//!
//! [time]
//! warmup_s = 2
//! duration_s = 10
//! repetitions = 5
//!
//! [[threshold]]
//! metric = "delivery.p99_us"
//! below = 150000
//! ```

mod check;
mod duration;
mod factors;
mod load;

pub use duration::{Pace, seconds};
pub use factors::{Labels, stack_name};

use crate::cpu::Class;
use crate::pin::CpuList;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taktwerk_explain::OneOrMany;
use taktwerk_load::adapters::Adapters;
use taktwerk_load::result::unknown_figure;
use taktwerk_load::signals::SignalSet;
use taktwerk_model::document::{Document, DocumentError};

/// A scenario as written in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name, used for its results.
    pub name: String,
    /// The stacks to measure: `own`, the name of a peer, or the URL of a running server. For `roundtrip` and `fan` also
    /// an MQTT broker with its QoS level, such as `mosquitto-qos0`, `embedded-qos0` (the broker in this program) or
    /// `mosquitto-uadp-qos0` (PubSub over MQTT).
    #[serde(default = "own")]
    pub stacks: Vec<String>,
    /// The link between load and server. Without it, the loopback interface of this machine is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The variables of the server under test. Ignored for a URL.
    #[serde(default)]
    pub server: ServerSpec,
    /// The load.
    pub load: LoadSpec,
    /// SecurityPolicy and MessageSecurityMode.
    #[serde(default)]
    pub security: SecuritySpec,
    /// CPU assignment of server and load.
    #[serde(default)]
    pub cpu: CpuSpec,
    /// Duration and repetitions.
    #[serde(default)]
    pub time: TimeSpec,
    /// Limits for figures; if one is violated, the command ends with exit code 99.
    #[serde(default, rename = "threshold", skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
}

fn own() -> Vec<String> {
    vec!["own".to_owned()]
}

/// The variables of the server under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// Number of Double variables, which all change together. 0 means one per monitored item.
    pub signals: u32,
    /// Interval between changes, in milliseconds; 0 means never. Servers of a `fan` never change values.
    pub update_ms: f64,
    /// Threads that serve connections (own stack only).
    pub threads: u32,
    /// Adds the interop test nodes; `roundtrip` uses one of them.
    pub interop: bool,
    /// The server publishes its own CPU profile as variables in its address space (own stack only).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub profile: bool,
    /// Signals change to random values instead of counting (own stack only).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub random: bool,
    /// Sets of signals that each change at their own interval, written as `COUNT:MS:BYTES`, instead of `signals` and
    /// `update_ms` (own stack only).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<SignalSet>,
    /// Child processes that make the values of variables, as the protocol adapters of a gateway do, written as
    /// `COUNT:TAGS:MS` (own stack only). Without `signals`, loads use the tags of the adapters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapters: Option<Adapters>,
    /// Busy-polling of the serving threads before they sleep, in microseconds (own stack only).
    #[serde(skip_serializing_if = "is_zero")]
    pub busy_poll_us: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self {
            signals: 0,
            update_ms: 100.0,
            threads: 1,
            interop: false,
            profile: false,
            random: false,
            sets: Vec::new(),
            adapters: None,
            busy_poll_us: 0,
        }
    }
}

/// One value or a list of values that are measured one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "OneOrMany<T>")]
pub enum Sweep<T> {
    /// A single value.
    One(T),
    /// A list of values.
    Many(Vec<T>),
}

impl<T> From<OneOrMany<T>> for Sweep<T> {
    fn from(given: OneOrMany<T>) -> Self {
        match given {
            OneOrMany::One(value) => Self::One(value),
            OneOrMany::Many(values) => Self::Many(values),
        }
    }
}

impl<T: Clone> Sweep<T> {
    fn values(&self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value.clone()],
            Self::Many(values) => values.clone(),
        }
    }
}

impl<T> From<T> for Sweep<T> {
    fn from(value: T) -> Self {
        Self::One(value)
    }
}

/// A kind of load: the sub-command of `taktwerk bench` with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // the names say it
pub enum Kind {
    Read,
    Write,
    Browse,
    Subscribe,
    Connect,
    Roundtrip,
    Fan,
    Probe,
    Update,
    /// A publisher and a subscriber without a server: both our own, or a peer's publisher with our subscriber.
    #[serde(rename = "pubsub")]
    PubSub,
    /// IGMP: multicast at a switch, without a server.
    Igmp,
}

impl Kind {
    /// The name of the sub-command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Browse => "browse",
            Self::Subscribe => "subscribe",
            Self::Connect => "connect",
            Self::Roundtrip => "roundtrip",
            Self::Fan => "fan",
            Self::Probe => "probe",
            Self::Update => "update",
            Self::PubSub => "pubsub",
            Self::Igmp => "igmp",
        }
    }
}

/// The load of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // documented in the book of scenarios: the options of `taktwerk bench` with the same names
pub struct LoadSpec {
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Sweep<u32>>,
    /// Monitored items over all clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Sweep<u32>>,
    /// Nodes per request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Sweep<u32>>,
    /// Requests per second over all clients: an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Sweep<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishing_ms: Option<Sweep<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Bytes of a value (`roundtrip`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Sweep<u32>>,
    /// Pause of each client between two requests, in milliseconds (`read`, `write`, `browse`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<f64>,
    /// Total number of requests, instead of a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Threads that set values (`update`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Sweep<u32>>,
    /// The subscriber sleeps until a message arrives, instead of waking shortly before one is due (`pubsub`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asleep: bool,
    /// Measure the age of every value, not only of the first one in a message (`subscribe`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_value: bool,
    /// Clients send a Publish request each time this share of the publishing interval has passed (`subscribe`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_every: Option<f64>,
    /// Maximum number of Publish requests that each client keeps pending (`subscribe`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_requests: Option<u32>,
    /// Maximum number of notifications in a message (`subscribe`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications_max: Option<u32>,
    /// Number of publishing intervals without changes until the server sends a keep-alive message (`subscribe`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive_count: Option<u32>,
}

impl LoadSpec {
    /// A load without options.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            clients: None,
            items: None,
            batch: None,
            rate: None,
            publishing_ms: None,
            sampling_ms: None,
            queue: None,
            payload: None,
            pause_ms: None,
            count: None,
            threads: None,
            asleep: false,
            each_value: false,
            publish_every: None,
            publish_requests: None,
            notifications_max: None,
            keep_alive_count: None,
        }
    }
}

/// SecurityPolicy and MessageSecurityMode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecuritySpec {
    /// Name in the specification, without the URI prefix.
    pub policy: String,
    /// `None`, `Sign` or `SignAndEncrypt`.
    pub mode: String,
}

impl Default for SecuritySpec {
    fn default() -> Self {
        Self { policy: "None".to_owned(), mode: "None".to_owned() }
    }
}

impl SecuritySpec {
    /// Basic256Sha256, signed and encrypted.
    #[must_use]
    pub fn encrypted() -> Self {
        Self { policy: "Basic256Sha256".to_owned(), mode: "SignAndEncrypt".to_owned() }
    }

    /// Whether both are `None`.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.mode.eq_ignore_ascii_case("none")
    }
}

/// CPU assignment of server and load. Without an entry, the laboratory chooses the CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuSpec {
    /// CPUs of the server, such as `"0"` or `"0,2-3"`.
    pub server: Option<String>,
    /// CPUs of the load.
    pub load: Option<String>,
    /// `isolated` pins the server to a CPU that no other measured program uses. `shared` pins nothing. `loaded` adds a
    /// program that competes for the server's CPU half of the time. `same` puts the load on the server's CPU.
    pub condition: CpuCondition,
    /// Moves everything that can be moved off the server's CPUs, with control groups. Needs root, or a kernel started
    /// with `isolcpus`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub isolate: bool,
    /// Scheduling class of the server: `other`, `fifo:PRIORITY` or `rr:PRIORITY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Frequency governor of the server's CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

impl CpuSpec {
    /// Whether conditions other than the choice of CPUs are requested.
    #[must_use]
    pub fn is_special(&self) -> bool {
        self.special().is_some()
    }

    /// The first key of them.
    fn special(&self) -> Option<&'static str> {
        let given = [
            ("isolate", self.isolate),
            ("class", self.class.is_some()),
            ("governor", self.governor.is_some()),
        ];
        given.into_iter().find_map(|(key, is_given)| is_given.then_some(key))
    }

    /// The first contradiction between the keys: one of them, and the problem.
    fn problem(&self) -> Option<(&'static str, String)> {
        for (key, list) in [("server", &self.server), ("load", &self.load)] {
            if let Some(Err(error)) = list.as_ref().map(|list| list.parse::<CpuList>()) {
                return Some((key, error.to_string()));
            }
        }
        if let Some(Err(error)) = self.class.as_ref().map(|class| class.parse::<Class>()) {
            return Some(("class", error.to_string()));
        }
        (self.isolate && self.condition != CpuCondition::Isolated).then(|| {
            let problem = format!(
                "cpu.isolate keeps the server's CPU free, cpu.condition = \"{}\" puts something else on it: leave one out",
                self.condition.name()
            );
            ("isolate", problem)
        })
    }
}

/// Other programs on the server's CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuCondition {
    /// No other measured program: server and load are pinned to separate CPUs.
    #[default]
    Isolated,
    /// No pinning: the operating system places server and load.
    Shared,
    /// A program that computes in bursts competes for it.
    Loaded,
    /// The load runs on the same CPU.
    Same,
}

impl CpuCondition {
    /// The conditions in which the load is not pinned to the server's CPU.
    pub const PLACED: [Self; 3] = [Self::Isolated, Self::Shared, Self::Loaded];

    /// Name in scenario files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Same => "same",
            Self::Shared => "shared",
            Self::Loaded => "loaded",
        }
    }
}

/// Splits a stack name for an MQTT broker: `mosquitto-qos1` is the peer `mosquitto` with QoS 1; `mosquitto-uadp-qos1`
/// is the same with PubSub messages.
#[must_use]
pub fn broker(stack: &str) -> Option<(&str, u8)> {
    let (peer, level) = stack.rsplit_once("-qos")?;
    let level = level.parse().ok().filter(|level| *level <= 2)?;
    Some((peer.strip_suffix(UADP).unwrap_or(peer), level))
}

/// Whether the broker carries PubSub: each message is a UADP NetworkMessage.
#[must_use]
pub fn is_uadp(stack: &str) -> bool {
    stack.rsplit_once("-qos").is_some_and(|(peer, _)| peer.ends_with(UADP)) && broker(stack).is_some()
}

/// Suffix of a broker name for PubSub messages.
const UADP: &str = "-uadp";

/// The broker that is part of the `taktwerk` program, as a stack: `embedded-qos0`.
pub const EMBEDDED: &str = "embedded";

/// PubSub without a broker as a stack: our own publishers and subscribers, which send UADP over UDP.
pub const BROKERLESS: &str = "uadp-udp";
/// Name of the simulated stack, which `taktwerk sim` runs.
pub(crate) const SIMULATED: &str = "sim";

/// Duration and repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeSpec {
    /// Load before the window, in seconds.
    pub warmup_s: f64,
    /// Length of the window, in seconds.
    pub duration_s: f64,
    /// Whether the window starts only when the load has become steady (`subscribe`).
    pub steady: bool,
    /// Repetitions of each condition. An interval needs at least 2; the laboratory's rules ask for 5.
    pub repetitions: u32,
}

impl Default for TimeSpec {
    fn default() -> Self {
        Self { warmup_s: 2.0, duration_s: 10.0, steady: true, repetitions: 5 }
    }
}

/// A limit for each condition, judged by the confidence interval of the mean over its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// A figure of the result, such as `server.cpu_percent` or `latency.corrected.p99_us`.
    pub metric: String,
    /// Upper limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// Lower limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// If set, the limit is a multiple of this stack's figure for the same load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

/// The first threshold without a limit, with a limit that is no number, or that no figure can meet together with those before it:
/// its key, and the problem.
pub(crate) fn wrong_threshold(thresholds: &[Threshold]) -> Option<(String, String)> {
    // The lowest upper and the highest lower limit of each figure.
    let mut known: BTreeMap<(&str, Option<&str>), (f64, f64)> = BTreeMap::new();
    thresholds.iter().enumerate().find_map(|(at, one)| {
        let key = |field: &str| format!("threshold.{at}.{field}");
        let limits = [("below", one.below), ("above", one.above)];
        if limits.iter().all(|(_, limit)| limit.is_none()) {
            return Some((key("metric"), "a threshold needs below or above".to_owned()));
        }
        let infinite = limits.iter().find(|(_, limit)| limit.is_some_and(|limit| !limit.is_finite()));
        if let Some((field, Some(value))) = infinite {
            return Some((key(field), format!("a threshold of {value} has no effect: write a number")));
        }
        let figure =
            known.entry((&one.metric, one.of.as_deref())).or_insert((f64::INFINITY, f64::NEG_INFINITY));
        *figure = (
            figure.0.min(one.below.unwrap_or(f64::INFINITY)),
            figure.1.max(one.above.unwrap_or(f64::NEG_INFINITY)),
        );
        let (below, above) = *figure;
        let problem =
            || format!("no {} is below {below} and above {above}: change or remove one of both", one.metric);
        (above >= below).then(|| (key("metric"), problem()))
    })
}

/// The key of a figure's threshold in a file.
pub(crate) fn key_of_threshold(document: &Document, metric: &str) -> String {
    let all = document.table().get("threshold").and_then(toml::Value::as_array);
    let is_it = |one: &toml::Value| one.get("metric").and_then(toml::Value::as_str) == Some(metric);
    let position = all.and_then(|all| all.iter().position(is_it)).unwrap_or_default();
    format!("threshold.{position}.metric")
}

/// One combination of all factors: the subject of one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // as in the scenario
pub struct Condition {
    pub scenario: String,
    pub stack: String,
    pub link: Option<String>,
    pub server: ServerSpec,
    pub kind: Kind,
    pub clients: u32,
    pub items: Option<u32>,
    pub batch: Option<u32>,
    pub rate: Option<f64>,
    pub publishing_ms: Option<f64>,
    pub sampling_ms: Option<f64>,
    pub queue: Option<u32>,
    pub payload: Option<u32>,
    pub pause_ms: Option<f64>,
    pub count: Option<u64>,
    pub threads: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asleep: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_value: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_every: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_requests: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive_count: Option<u32>,
    pub security: SecuritySpec,
    pub cpu: CpuSpec,
    pub time: TimeSpec,
}

/// A scenario that cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It cannot be parsed.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// A value is invalid, contradicts another one, or names an unknown figure.
    #[error("{place}: {problem}")]
    Value {
        /// File, line and key, or the option.
        place: String,
        /// The mistake and its correction.
        problem: String,
    },
}

fn or_none<T: Clone>(sweep: Option<&Sweep<T>>) -> Vec<Option<T>> {
    sweep.map_or_else(|| vec![None], |sweep| sweep.values().into_iter().map(Some).collect())
}

impl Scenario {
    /// A scenario with one load against this project's own server.
    #[must_use]
    pub fn new(name: &str, load: LoadSpec) -> Self {
        Self {
            name: name.to_owned(),
            stacks: own(),
            link: None,
            server: ServerSpec::default(),
            load,
            security: SecuritySpec::default(),
            cpu: CpuSpec::default(),
            time: TimeSpec::default(),
            thresholds: Vec::new(),
        }
    }

    /// Parses a scenario. `file` is used in messages.
    ///
    /// # Errors
    /// With file, line and key.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::read(&Document::parse(text, file, &[])?)
    }

    /// Reads a scenario from a document, which can have replaced values.
    ///
    /// # Errors
    /// With file, line and key, or the option that replaced a value.
    pub fn read(document: &Document) -> Result<Self, ScenarioError> {
        let scenario: Self = document.read()?;
        let at =
            |check::Wrong { key, problem }| ScenarioError::Value { place: document.place(&key), problem };
        scenario.check().map_err(at)?;
        Ok(scenario)
    }

    /// Checks what matters only for a measurement: that the stacks are not simulated, and that all thresholds refer to
    /// measured figures. `text` is the source of this scenario.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn check_measured(&self, text: &str, file: &str) -> Result<(), ScenarioError> {
        let document = Document::parse(text, file, &[])?;
        let wrong = |key: &str, problem| Err(ScenarioError::Value { place: document.place(key), problem });
        if self.stacks.iter().any(|stack| stack == SIMULATED) {
            let problem = format!(
                "{SIMULATED:?} is simulated, not measured: run `taktwerk sim {file}`, or name other stacks"
            );
            return wrong("stacks", problem);
        }
        let unknown = |one: &Threshold| Some((unknown_figure(&one.metric)?, one.metric.clone()));
        let Some((problem, metric)) = self.thresholds.iter().find_map(unknown) else { return Ok(()) };
        wrong(&key_of_threshold(&document, &metric), problem)
    }

    /// All combinations of the factors; stacks vary fastest.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition> {
        let load = &self.load;
        let mut server = self.server.clone();
        if load.kind == Kind::Fan {
            // The clients set the values. A server that also sets them would overwrite the answers.
            server.update_ms = 0.0;
        }
        let mut conditions = Vec::new();
        for clients in or_none(load.clients.as_ref()) {
            for items in or_none(load.items.as_ref()) {
                for batch in or_none(load.batch.as_ref()) {
                    for rate in or_none(load.rate.as_ref()) {
                        for publishing_ms in or_none(load.publishing_ms.as_ref()) {
                            for payload in or_none(load.payload.as_ref()) {
                                for threads in or_none(load.threads.as_ref()) {
                                    conditions.extend(self.stacks.iter().map(|stack| Condition {
                                        scenario: self.name.clone(),
                                        stack: stack.clone(),
                                        link: self.link.clone(),
                                        server: server.clone(),
                                        kind: load.kind,
                                        clients: clients.unwrap_or(1),
                                        items,
                                        batch,
                                        rate,
                                        publishing_ms,
                                        sampling_ms: load.sampling_ms,
                                        queue: load.queue,
                                        payload,
                                        pause_ms: load.pause_ms,
                                        count: load.count,
                                        threads,
                                        asleep: load.asleep,
                                        each_value: load.each_value,
                                        publish_every: load.publish_every,
                                        publish_requests: load.publish_requests,
                                        notifications_max: load.notifications_max,
                                        keep_alive_count: load.keep_alive_count,
                                        security: self.security.clone(),
                                        cpu: self.cpu.clone(),
                                        time: self.time.clone(),
                                    }));
                                }
                            }
                        }
                    }
                }
            }
        }
        conditions
    }
}

impl Condition {
    /// Number of signals that the server needs, besides the tags of adapters.
    #[must_use]
    pub fn signals(&self) -> u32 {
        if !self.server.sets.is_empty() {
            return self.server.sets.iter().fold(0, |sum, set| sum.saturating_add(set.count));
        }
        if self.server.adapters.is_some() {
            return self.server.signals;
        }
        let needed = match self.kind {
            Kind::Fan => self.clients,
            _ => self.items.unwrap_or(0).max(self.batch.unwrap_or(1)),
        };
        if self.server.signals == 0 { needed.max(1) } else { self.server.signals }
    }

    /// Whether the laboratory starts a server with a CPU of its own, so that other programs can be kept off that CPU.
    #[must_use]
    pub fn can_isolate(&self) -> bool {
        self.cpu.condition == CpuCondition::Isolated
            && !self.stack.contains("://")
            && self.stack != BROKERLESS
            && !matches!(self.kind, Kind::Update | Kind::PubSub | Kind::Igmp)
    }

    /// Whether two conditions measure the same. The number of repetitions is ignored.
    #[must_use]
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        let once = |one: &Self| {
            let mut one = one.clone();
            one.time.repetitions = 1;
            one
        };
        once(self) == once(other)
    }
}

#[cfg(test)]
mod tests;
