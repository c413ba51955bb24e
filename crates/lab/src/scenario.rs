//! Scenarios: a TOML file that says what to measure. Unknown keys are errors, so that a typing mistake is not silently
//! another measurement.
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
use taktwerk_explain::{Mistake, OneOrMany};
use taktwerk_load::result::unknown_figure;
use taktwerk_model::tune::document::Document;

/// A scenario as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What its results are called.
    pub name: String,
    /// Which stacks are measured: `own`, the name of a peer, the URL of a server that runs already, or for `roundtrip` and
    /// `fan` an MQTT broker with its quality of service, such as `mosquitto-qos0`, `embedded-qos0` (the broker in this
    /// program) or `mosquitto-uadp-qos0` (with PubSub in its messages).
    #[serde(default = "own")]
    pub stacks: Vec<String>,
    /// The link between load and server; none is this machine's loopback interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What the server under test offers. Ignored for a URL.
    #[serde(default)]
    pub server: ServerSpec,
    /// What is sent to it.
    pub load: LoadSpec,
    /// SecurityPolicy and MessageSecurityMode.
    #[serde(default)]
    pub security: SecuritySpec,
    /// Which CPUs who runs on.
    #[serde(default)]
    pub cpu: CpuSpec,
    /// How long and how often.
    #[serde(default)]
    pub time: TimeSpec,
    /// What must hold; otherwise the command ends with exit code 99.
    #[serde(default, rename = "threshold", skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
}

fn own() -> Vec<String> {
    vec!["own".to_owned()]
}

/// What the server under test offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// Double variables that change together; 0 takes as many as the load has items.
    pub signals: u32,
    /// How often they change, milliseconds; 0 never. Those of a fan never do.
    pub update_ms: f64,
    /// Threads that serve connections (own stack only).
    pub threads: u32,
    /// Adds the interop test nodes, of which `roundtrip` needs one.
    pub interop: bool,
    /// Shows what the server itself uses as variables in its address space (own stack only).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub profile: bool,
    /// Signals change to random values instead of counting (own stack only).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub random: bool,
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self { signals: 0, update_ms: 100.0, threads: 1, interop: false, profile: false, random: false }
    }
}

/// One value or several that are measured one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "OneOrMany<T>")]
pub enum Sweep<T> {
    /// One.
    One(T),
    /// Several.
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
    /// Publisher and subscriber without a server: both our own, or our subscriber and the publisher of a peer that has one.
    #[serde(rename = "pubsub")]
    PubSub,
    /// Multicast at a switch, without a server.
    Igmp,
}

impl Kind {
    /// The sub-command.
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

/// What is sent to a server.
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
    /// How long each client rests before its next request, milliseconds (`read`, `write`, `browse`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<f64>,
    /// Requests in all, instead of a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Threads that set values (`update`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Sweep<u32>>,
    /// The subscriber sleeps until a message arrives, instead of being awake when one is due (`pubsub`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asleep: bool,
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
        }
    }
}

/// SecurityPolicy and MessageSecurityMode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecuritySpec {
    /// As the specification names it, without the URI in front.
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

    /// Whether nothing is protected.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.mode.eq_ignore_ascii_case("none")
    }
}

/// Which CPUs who runs on. Without an entry, the laboratory gives each the CPU that it has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuSpec {
    /// Of the server, such as `"0"` or `"0,2-3"`.
    pub server: Option<String>,
    /// Of the load.
    pub load: Option<String>,
    /// `isolated` pins the server to a CPU that nothing else of ours uses, `shared` pins nothing, `loaded` adds a program that
    /// competes for the server's CPU half of the time, `same` puts the load on the server's CPU.
    pub condition: CpuCondition,
    /// Moves everything that can be moved off the server's CPUs, by control groups. Needs root, or a kernel that was
    /// started with `isolcpus`.
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
    /// Whether more is asked for than which CPUs.
    #[must_use]
    pub fn is_special(&self) -> bool {
        self.isolate || self.class.is_some() || self.governor.is_some()
    }

    /// What cannot be meant.
    fn problem(&self) -> Option<String> {
        let lists = [&self.server, &self.load].into_iter().flatten();
        let wrong = lists.filter_map(|list| list.parse::<CpuList>().err());
        if let Some(error) = wrong.into_iter().next() {
            return Some(format!("cpu: {error}"));
        }
        if let Some(Err(error)) = self.class.as_ref().map(|class| class.parse::<Class>()) {
            return Some(format!("cpu.class: {error}"));
        }
        (self.isolate && self.condition != CpuCondition::Isolated).then(|| {
            format!(
                "cpu.isolate keeps the server's CPU free, cpu.condition = \"{}\" puts something else on it: leave one out",
                self.condition.name()
            )
        })
    }
}

/// What else runs on the server's CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuCondition {
    /// Nothing else of ours: server and load are pinned to CPUs of their own.
    #[default]
    Isolated,
    /// Whatever the operating system puts there: neither server nor load is pinned.
    Shared,
    /// A program that computes in bursts competes for it.
    Loaded,
    /// The load runs on it as well.
    Same,
}

impl CpuCondition {
    /// Those in which the load is not on the server's CPU on purpose.
    pub const PLACED: [Self; 3] = [Self::Isolated, Self::Shared, Self::Loaded];

    /// As it is written.
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

/// An MQTT broker as a stack: `mosquitto-qos1` is the peer `mosquitto`, and messages with quality of service 1;
/// `mosquitto-uadp-qos1` the same with PubSub in the messages.
#[must_use]
pub fn broker(stack: &str) -> Option<(&str, u8)> {
    let (peer, level) = stack.rsplit_once("-qos")?;
    let level = level.parse().ok().filter(|level| *level <= 2)?;
    Some((peer.strip_suffix(UADP).unwrap_or(peer), level))
}

/// Whether messages through a broker are PubSub's: a NetworkMessage of UADP each.
#[must_use]
pub fn is_uadp(stack: &str) -> bool {
    stack.rsplit_once("-qos").is_some_and(|(peer, _)| peer.ends_with(UADP)) && broker(stack).is_some()
}

/// Behind the name of a broker: PubSub in its messages.
const UADP: &str = "-uadp";

/// The broker that is part of the `taktwerk` program, as a stack: `embedded-qos0`.
pub const EMBEDDED: &str = "embedded";

/// PubSub without a broker as a stack: stations of this project that send UADP over UDP to each other.
pub const BROKERLESS: &str = "uadp-udp";

/// How long and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeSpec {
    /// Load before the window, seconds.
    pub warmup_s: f64,
    /// The window, seconds.
    pub duration_s: f64,
    /// Whether the window begins only when the load has become steady (`subscribe`).
    pub steady: bool,
    /// How often each condition is measured. An interval needs at least 2, the rules of this laboratory 5.
    pub repetitions: u32,
}

impl Default for TimeSpec {
    fn default() -> Self {
        Self { warmup_s: 2.0, duration_s: 10.0, steady: true, repetitions: 5 }
    }
}

/// What must hold for each condition, by the interval of the mean over its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// A figure of the result, such as `server.cpu_percent` or `latency.corrected.p99_us`.
    pub metric: String,
    /// It must be lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// It must be higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The limit is a multiple of this stack's figure for the same load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

/// Where the threshold of a figure stands in a file.
pub(crate) fn key_of_threshold(document: &Document, metric: &str) -> String {
    let all = document.table().get("threshold").and_then(toml::Value::as_array);
    let is_it = |one: &toml::Value| one.get("metric").and_then(toml::Value::as_str) == Some(metric);
    let position = all.and_then(|all| all.iter().position(is_it)).unwrap_or_default();
    format!("threshold.{position}.metric")
}

/// One combination of everything that varies: what one measurement measures.
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
    pub security: SecuritySpec,
    pub cpu: CpuSpec,
    pub time: TimeSpec,
}

/// A scenario that cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It is not written as a scenario.
    #[error("{}", mistake.within(file))]
    Parse {
        /// Which.
        file: String,
        /// Where and why.
        mistake: Mistake,
    },
    /// A threshold names a figure that no measurement has.
    #[error("{place}: {problem}")]
    Figure {
        /// File, line and key.
        place: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// It makes no sense.
    #[error("{scenario}: {problem}")]
    Nonsense {
        /// Which.
        scenario: String,
        /// What, and what to write instead.
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

    /// Reads a scenario. `file` is for messages.
    ///
    /// # Errors
    /// With line and column, and the keys that would have been understood.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| ScenarioError::Parse {
            file: file.to_owned(),
            mistake: Mistake::of(&error, Some(text)),
        })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Looks for thresholds of figures that no measurement has, in the text that this scenario was read from.
    ///
    /// # Errors
    /// The first one, with its line.
    pub fn check_figures(&self, text: &str, file: &str) -> Result<(), ScenarioError> {
        let unknown = |one: &Threshold| Some((unknown_figure(&one.metric)?, one.metric.clone()));
        let Some((problem, metric)) = self.thresholds.iter().find_map(unknown) else { return Ok(()) };
        let place = match Document::parse(text, file, &[]) {
            Ok(document) => document.place(&key_of_threshold(&document, &metric)),
            Err(_) => file.to_owned(),
        };
        Err(ScenarioError::Figure { place, problem })
    }

    /// All combinations of what varies, stacks innermost.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition> {
        let load = &self.load;
        let mut server = self.server.clone();
        if load.kind == Kind::Fan {
            // Its clients set the values; a server that does so as well overwrites what they answer.
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
    /// Signals that the server needs for it.
    #[must_use]
    pub fn signals(&self) -> u32 {
        let needed = match self.kind {
            Kind::Fan => self.clients,
            _ => self.items.unwrap_or(0).max(self.batch.unwrap_or(1)),
        };
        if self.server.signals == 0 { needed.max(1) } else { self.server.signals }
    }

    /// Whether a server that the laboratory starts has its CPU for itself, so that other programs can be kept off it.
    #[must_use]
    pub fn can_isolate(&self) -> bool {
        self.cpu.condition == CpuCondition::Isolated
            && !self.stack.contains("://")
            && self.stack != BROKERLESS
            && !matches!(self.kind, Kind::Update | Kind::PubSub | Kind::Igmp)
    }

    /// Whether the other one measures the same: how often each is to be repeated makes no difference.
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
