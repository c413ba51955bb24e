//! Reads a tuning problem from a plant file: the plant, the choices, the objectives and the constraints.

use super::constraint::{Constraint, ConstraintError};
use super::link::LinkSpec;
use super::settings::{Metric, Security, Settings, Transport, UnknownMetric};
use crate::document::{Document, DocumentError};
use serde::Deserialize;
use taktwerk_explain::OneOrMany;
use taktwerk_netem::Profile;

/// Variables that change together at a fixed period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signals {
    /// Number of variables.
    pub count: u32,
    /// Interval between new values of each variable, in milliseconds.
    pub period_ms: f64,
    /// Bytes of a value as encoded.
    pub bytes: usize,
}

/// Signals as written in the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignalsSpec {
    count: u32,
    period_ms: f64,
    #[serde(default = "double")]
    bytes: usize,
    /// NodeIds, for the generated configurations.
    #[serde(default)]
    nodes: Vec<String>,
}

fn double() -> usize {
    8
}

/// One value or a list.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "OneOrMany<T>")]
enum Choice<T> {
    One(T),
    Some(Vec<T>),
}

impl<T> From<OneOrMany<T>> for Choice<T> {
    fn from(given: OneOrMany<T>) -> Self {
        match given {
            OneOrMany::One(value) => Self::One(value),
            OneOrMany::Many(values) => Self::Some(values),
        }
    }
}

/// Publishing intervals to choose from, in milliseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number, a list of numbers, or { from = …, to = … }")]
enum Intervals {
    Range { from: f64, to: f64 },
    One(f64),
    Some(Vec<f64>),
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SearchSpec {
    publishing_ms: Option<Intervals>,
    sampling_ms: Option<Choice<f64>>,
    queue_size: Option<Choice<u32>>,
    notifications_max: Option<Choice<u32>>,
    keep_alive_count: Option<Choice<u32>>,
    publish_requests: Option<Choice<u32>>,
    security: Option<Choice<Security>>,
    transport: Option<Choice<Transport>>,
    busy_poll_us: Option<Choice<u32>>,
    threads: Option<Choice<u32>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TuneSpec {
    minimize: Vec<String>,
    constraints: Vec<String>,
    seeds: Option<u32>,
    measured_s: Option<f64>,
    clients: Option<u32>,
    full_at: Option<f64>,
    publish_every: Option<f64>,
    follows_writes: Option<bool>,
    wake_us: Option<f64>,
    core_watts: Option<f64>,
    host: Option<String>,
    client_host: Option<String>,
    search: SearchSpec,
}

/// The sections of a plant file for tuning.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    #[serde(default)]
    name: String,
    #[serde(default)]
    link: Option<LinkSpec>,
    #[serde(default)]
    signals: Vec<SignalsSpec>,
    #[serde(default, rename = "node")]
    nodes: Vec<crate::plant::Node>,
    /// Of plants of `taktwerk size`.
    #[serde(default, rename = "hardware")]
    _hardware: Vec<crate::plant::Hardware>,
    #[serde(default)]
    tune: TuneSpec,
}

/// The choices. Every list has at least one entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// Publishing intervals in milliseconds: the ends of a range, or a list.
    pub publishing_ms: Vec<f64>,
    /// Whether all intervals between the ends can be chosen.
    pub is_range: bool,
    /// All combinations of the other settings.
    pub others: Vec<Settings>,
}

/// A problem for [`tune`](super::tune).
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Name of the plant.
    pub name: String,
    /// The link between client and server.
    pub link: Profile,
    /// Whether both directions share one line.
    pub is_shared: bool,
    /// Signals of the server.
    pub signals: Vec<Signals>,
    /// NodeIds of each group of signals, as far as they are given.
    pub nodes: Vec<Vec<String>>,
    /// Clients, each of which monitors all signals.
    pub clients: u32,
    /// The choices.
    pub space: Space,
    /// Figures to minimize, at least one.
    pub minimize: Vec<Metric>,
    /// Constraints.
    pub constraints: Vec<Constraint>,
    /// Where the plant or the command line has each of them.
    pub constraint_places: Vec<String>,
    /// Number of seeds in the final simulations.
    pub seeds: u32,
    /// Length of the window of each simulation, in virtual seconds.
    pub measured_s: f64,
    /// Utilisation from which a link or core counts as full, because queues grow quickly beyond.
    pub full_at: f64,
    /// If set, the client sends a Publish request each time this share of the publishing interval has passed. Otherwise
    /// the client chooses the number.
    pub publish_every: Option<f64>,
    /// Whether the server publishes right after the writes of steady writers, as Taktwerk does. Other servers publish at
    /// times of their own: the writes come at any time within the interval.
    pub follows_writes: bool,
    /// Time to wake a sleeping thread, in microseconds.
    pub wake_us: f64,
    /// Power of one busy core in watts; `None` if energy is not evaluated.
    pub core_watts: Option<f64>,
    /// Host profile of the server's machine, by file or name; `None` if it is not given.
    pub host: Option<String>,
    /// Host profile of the clients' machine; `None` if it is that of the server.
    pub client_host: Option<String>,
    /// The file, for positions in messages.
    document: Document,
}

/// An invalid plant file. Each error names the position: file, line and key, or the option.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProblemError {
    /// It cannot be parsed.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// A section or key is missing.
    #[error("{place} is missing: {hint}")]
    Missing {
        /// Its position.
        place: String,
        /// What to write.
        hint: &'static str,
    },
    /// A value is invalid.
    #[error("{place}: {problem}")]
    Value {
        /// Its position.
        place: String,
        /// The problem and its correction.
        problem: String,
    },
}

/// Default utilisation from which a resource counts as full. At 80 %, a message waits for two others on average
/// (M/D/1).
const FULL: f64 = 0.8;
/// Limit for the entries of a list and for combinations.
const COMBINATIONS_MAX: usize = 5_000;
/// Limit for points per kind, because a simulation keeps all of them in memory.
const SIGNALS_MAX: f64 = 100_000.0;

/// Options of the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// `--set key=value`.
    pub sets: Vec<String>,
    /// `--constraint`.
    pub constraints: Vec<String>,
    /// `--minimize`.
    pub minimize: Vec<String>,
    /// `--seeds`.
    pub seeds: Option<u32>,
}

impl Problem {
    /// Parses a plant file.
    ///
    /// # Errors
    /// Each error names file, line and key, or the option.
    pub fn parse(text: &str, file: &str, options: &Options) -> Result<Self, ProblemError> {
        let document = Document::parse(text, file, &options.sets)?;
        let spec: Spec = document.read()?;
        let at = |key: &str, problem: &dyn std::fmt::Display| ProblemError::Value {
            place: document.place(key),
            problem: problem.to_string(),
        };
        let own = spec.link.clone().unwrap_or_else(|| LinkSpec::Text("ethernet-100m".to_owned()));
        let link = own.profile().map_err(|(key, problem)| at(&key, &problem))?;
        let is_shared = own.is_shared(&link).map_err(|problem| at("link.shared", &problem))?;
        let signals = signals(&spec, &document)?;
        let clients = spec.tune.clients.unwrap_or_else(|| clients_of(&spec));
        if clients == 0 {
            return Err(at("tune.clients", &"there must be at least one client"));
        }
        let space =
            space(&spec.tune.search).map_err(|(key, problem)| at(&format!("tune.search.{key}"), &problem))?;
        let minimize = objectives(&spec, options, &link, &document)?;
        let (constraints, constraint_places) = constraints(&spec, options, &document)?;
        let seeds = options.seeds.or(spec.tune.seeds).unwrap_or(3);
        if !(1..=1_000).contains(&seeds) {
            let place =
                if options.seeds.is_some() { "--seeds".to_owned() } else { document.place("tune.seeds") };
            return Err(ProblemError::Value { place, problem: format!("{seeds} is not from 1 to 1000") });
        }
        let positive = |key: &str, value: Option<f64>, usual: f64| match value.unwrap_or(usual) {
            value if value > 0.0 && value <= 86_400.0 => Ok(value),
            value => Err(at(key, &format!("{value} is not a positive number up to 86400"))),
        };
        let publish_every = match spec.tune.publish_every {
            Some(share) if !(0.01..=1.0).contains(&share) => {
                let problem =
                    format!("{share} is not from 0.01 to 1: with fewer requests than messages, values wait");
                return Err(at("tune.publish_every", &problem));
            }
            Some(_) if space.others.iter().any(|one| one.publish_requests > 0) => {
                let problem = "a client sends Publish requests by this clock or keeps a number of them \
                                   (tune.search.publish_requests): remove one of both";
                return Err(at("tune.publish_every", &problem));
            }
            share => share,
        };
        if spec.tune.client_host.is_some() && spec.tune.host.is_none() {
            return Err(at("tune.client_host", &"add tune.host, the host profile of the server's machine"));
        }
        Ok(Self {
            host: spec.tune.host.clone(),
            client_host: spec.tune.client_host.clone(),
            name: if spec.name.is_empty() { file.to_owned() } else { spec.name.clone() },
            is_shared,
            nodes: match spec.signals.is_empty() {
                true => vec![Vec::new(); signals.len()],
                false => spec.signals.iter().map(|one| one.nodes.clone()).collect(),
            },
            signals,
            clients,
            space,
            minimize,
            constraints,
            constraint_places,
            seeds,
            measured_s: positive("tune.measured_s", spec.tune.measured_s, 10.0)?,
            full_at: match spec.tune.full_at.unwrap_or(FULL) {
                share if share > 0.0 && share <= 1.0 => share,
                share => {
                    return Err(at("tune.full_at", &format!("{share} is not a share above 0 and up to 1")));
                }
            },
            publish_every,
            follows_writes: spec.tune.follows_writes.unwrap_or(true),
            wake_us: positive("tune.wake_us", spec.tune.wake_us, 50.0)?,
            core_watts: spec
                .tune
                .core_watts
                .map(|watts| positive("tune.core_watts", Some(watts), 1.0))
                .transpose()?,
            link,
            document,
        })
    }

    /// The position of a key for messages: file, line and key, or the option that set it.
    #[must_use]
    pub fn place(&self, key: &str) -> String {
        self.document.place(key)
    }

    /// The position of what decides about the rate of the link.
    #[must_use]
    pub fn place_of_rate(&self) -> String {
        let link = self.document.table().get("link").and_then(toml::Value::as_table);
        let has = |key: &&&str| link.is_some_and(|link| link.contains_key(**key));
        let key = ["rate", "profile"].iter().find(has);
        self.place(&key.map_or_else(|| "link".to_owned(), |key| format!("link.{key}")))
    }

    /// Values per second on the server.
    #[must_use]
    pub fn values_per_s(&self) -> f64 {
        self.signals.iter().map(|one| f64::from(one.count) * 1e3 / one.period_ms).sum()
    }

    /// Bits per second in the busier direction, or in both if they share the line.
    #[must_use]
    pub fn busiest(&self, up_bits_s: f64, down_bits_s: f64) -> f64 {
        if self.is_shared { up_bits_s + down_bits_s } else { up_bits_s.max(down_bits_s) }
    }

    /// Utilisation of the busier direction, or of the shared line; `None` if a direction has no rate.
    #[must_use]
    pub fn utilisation(&self, up_bits_s: f64, down_bits_s: f64) -> Option<f64> {
        if self.is_shared {
            return self.total_utilisation(up_bits_s, down_bits_s);
        }
        let (up, down) = (&self.link.up, &self.link.down);
        let (up_rate, down_rate) = (up.rate? as f64, down.rate? as f64);
        Some((up_bits_s / up_rate + up.busy).max(down_bits_s / down_rate + down.busy))
    }

    /// Traffic of both directions together with other traffic, as a share of the rate of the slower direction; `None`
    /// if a direction has no rate.
    #[must_use]
    pub fn total_utilisation(&self, up_bits_s: f64, down_bits_s: f64) -> Option<f64> {
        let (up, down) = (&self.link.up, &self.link.down);
        let rate = up.rate?.min(down.rate?) as f64;
        Some((up_bits_s + down_bits_s) / rate + up.busy.max(down.busy))
    }

    /// Monitored items of one client.
    #[must_use]
    pub fn items(&self) -> u32 {
        self.signals.iter().map(|one| one.count).sum()
    }

    /// The value of a figure at which a resource counts as full; `None` if the figure is not a resource.
    #[must_use]
    pub fn capacity(&self, metric: Metric) -> Option<f64> {
        let rates = [self.link.up.rate, self.link.down.rate].into_iter().flatten();
        let all = match metric {
            Metric::Utilisation | Metric::TotalUtilisation => Some(1.0),
            Metric::BandwidthBitsS => rates.min().map(|rate| rate as f64),
            Metric::ServerCpu | Metric::ClientCpu => Some(100.0),
            _ => None,
        };
        all.map(|all| all * self.full_at)
    }
}

/// The signals in the file, or else those of the first node.
fn signals(spec: &Spec, document: &Document) -> Result<Vec<Signals>, ProblemError> {
    let at = |key: String, problem: String| ProblemError::Value { place: document.place(&key), problem };
    for (index, one) in spec.signals.iter().enumerate() {
        if one.count == 0 || f64::from(one.count) > SIGNALS_MAX {
            return Err(at(
                format!("signals.{index}.count"),
                format!("{} is not from 1 to 100 000", one.count),
            ));
        }
        if !(0.1..=86_400_000.0).contains(&one.period_ms) {
            let problem = format!("{} is not a period from 0.1 ms to a day", one.period_ms);
            return Err(at(format!("signals.{index}.period_ms"), problem));
        }
        if one.nodes.len() > one.count as usize {
            let problem =
                format!("{} nodes for {} variables: name at most one for each", one.nodes.len(), one.count);
            return Err(at(format!("signals.{index}.nodes"), problem));
        }
        if !(1..=65_536).contains(&one.bytes) {
            return Err(at(
                format!("signals.{index}.bytes"),
                format!("{} is not from 1 to 65 536", one.bytes),
            ));
        }
    }
    if !spec.signals.is_empty() {
        let signals = spec.signals.iter();
        return Ok(signals
            .map(|one| Signals { count: one.count, period_ms: one.period_ms, bytes: one.bytes })
            .collect());
    }
    let Some(node) = spec.nodes.first() else {
        return Err(ProblemError::Missing {
            place: document.place("signals"),
            hint: "add [[signals]] with count and period_ms, or a [[node]]",
        });
    };
    let count = node.points / node.clients;
    if !(count > 0.0 && count <= SIGNALS_MAX && node.clients >= 1.0) {
        let problem = format!("{}: write 1 to 100 000 for each client", node.points);
        return Err(at("node.0.points".to_owned(), problem));
    }
    if !(0.1..=86_400_000.0).contains(&node.interval_ms) {
        let problem = format!("{} is not an interval from 0.1 ms to a day", node.interval_ms);
        return Err(at("node.0.interval_ms".to_owned(), problem));
    }
    // A share that changes per interval corresponds to a longer period.
    let period_ms = node.interval_ms / node.changing;
    if !(0.1..=86_400_000.0).contains(&period_ms) {
        let problem = format!("{}: a value must change at least once a day", node.changing);
        return Err(at("node.0.changing".to_owned(), problem));
    }
    Ok(vec![Signals { count: count.ceil() as u32, period_ms, bytes: double() }])
}

fn clients_of(spec: &Spec) -> u32 {
    match spec.nodes.first() {
        // `as` saturates.
        Some(node) if spec.signals.is_empty() => node.clients.ceil() as u32,
        _ => 1,
    }
}

fn list<T: Clone>(choice: Option<&Choice<T>>, usual: &[T]) -> Vec<T> {
    match choice {
        None => usual.to_vec(),
        Some(Choice::One(one)) => vec![one.clone()],
        Some(Choice::Some(all)) => all.clone(),
    }
}

fn space(spec: &SearchSpec) -> Result<Space, (&'static str, String)> {
    let (publishing_ms, is_range) = match &spec.publishing_ms {
        None => (vec![5.0, 1_000.0], true),
        Some(Intervals::Range { from, to }) if from < to => (vec![*from, *to], true),
        Some(Intervals::Range { from, to }) => {
            return Err((
                "publishing_ms",
                format!("from {from} to {to} is empty: from must be less than to"),
            ));
        }
        Some(Intervals::One(one)) => (vec![*one], false),
        Some(Intervals::Some(all)) => (all.clone(), false),
    };
    if let Some(wrong) = publishing_ms.iter().find(|ms| !(0.1..=3_600_000.0).contains(*ms)) {
        return Err(("publishing_ms", format!("{wrong} is not an interval from 0.1 ms to an hour")));
    }
    let sampling = list(spec.sampling_ms.as_ref(), &[0.0]);
    if let Some(wrong) = sampling.iter().find(|ms| !(0.0..=3_600_000.0).contains(*ms)) {
        return Err(("sampling_ms", format!("{wrong} is not an interval from 0 (every change) to an hour")));
    }
    let queues = list(spec.queue_size.as_ref(), &[0]);
    let batches = list(spec.notifications_max.as_ref(), &[0]);
    let keep_alives = list(spec.keep_alive_count.as_ref(), &[10]);
    let requests = list(spec.publish_requests.as_ref(), &[0]);
    let securities = list(spec.security.as_ref(), &[Security::None]);
    let transports = list(spec.transport.as_ref(), &[Transport::Session]);
    let polls = list(spec.busy_poll_us.as_ref(), &[0]);
    let threads = list(spec.threads.as_ref(), &[1]);
    let lengths = [
        ("publishing_ms", publishing_ms.len()),
        ("sampling_ms", sampling.len()),
        ("queue_size", queues.len()),
        ("notifications_max", batches.len()),
        ("keep_alive_count", keep_alives.len()),
        ("publish_requests", requests.len()),
        ("security", securities.len()),
        ("transport", transports.len()),
        ("busy_poll_us", polls.len()),
        ("threads", threads.len()),
    ];
    if let Some((key, _)) = lengths.iter().find(|(_, length)| *length == 0) {
        return Err((key, "the list is empty: add at least one value".to_owned()));
    }
    if let Some(0) = keep_alives.iter().min() {
        return Err(("keep_alive_count", "0 is not valid: write at least 1".to_owned()));
    }
    if let Some(wrong) = threads.iter().find(|count| !(1..=1024).contains(*count)) {
        return Err(("threads", format!("{wrong} is not from 1 to 1024")));
    }
    let count = lengths.iter().skip(1).fold(1usize, |product, (_, length)| product.saturating_mul(*length));
    if count > COMBINATIONS_MAX || publishing_ms.len() > COMBINATIONS_MAX {
        let (key, _) =
            lengths.iter().max_by_key(|(_, length)| *length).copied().unwrap_or(("publishing_ms", 0));
        return Err((key, format!("{count} combinations exceed the limit of {COMBINATIONS_MAX}")));
    }
    let mut others = vec![Settings::usual()];
    let mut each = |change: &dyn Fn(&Settings) -> Vec<Settings>| {
        others = others.iter().flat_map(change).collect();
    };
    each(&|s| transports.iter().map(|transport| Settings { transport: *transport, ..s.clone() }).collect());
    each(&|s| securities.iter().map(|security| Settings { security: *security, ..s.clone() }).collect());
    each(&|s| {
        sampling.iter().map(|sampling_ms| Settings { sampling_ms: *sampling_ms, ..s.clone() }).collect()
    });
    each(&|s| queues.iter().map(|queue_size| Settings { queue_size: *queue_size, ..s.clone() }).collect());
    each(&|s| batches.iter().map(|max| Settings { notifications_max: *max, ..s.clone() }).collect());
    each(&|s| keep_alives.iter().map(|count| Settings { keep_alive_count: *count, ..s.clone() }).collect());
    each(&|s| requests.iter().map(|count| Settings { publish_requests: *count, ..s.clone() }).collect());
    each(&|s| polls.iter().map(|us| Settings { busy_poll_us: *us, ..s.clone() }).collect());
    each(&|s| threads.iter().map(|count| Settings { threads: *count, ..s.clone() }).collect());
    Ok(Space { publishing_ms, is_range, others })
}

fn objectives(
    spec: &Spec,
    options: &Options,
    link: &Profile,
    document: &Document,
) -> Result<Vec<Metric>, ProblemError> {
    let (names, place) = if options.minimize.is_empty() {
        (&spec.tune.minimize, document.place("tune.minimize"))
    } else {
        (&options.minimize, "--minimize".to_owned())
    };
    let value = |problem: String| ProblemError::Value { place: place.clone(), problem };
    let mut metrics = Vec::new();
    for name in names {
        let metric: Metric = name.trim().parse().map_err(|error: UnknownMetric| value(error.to_string()))?;
        if metrics.contains(&metric) {
            return Err(value(format!("{metric} is named twice")));
        }
        metrics.push(metric);
    }
    let has_rate = link.down.rate.is_some();
    if metrics.is_empty() {
        metrics =
            vec![Metric::DelayMeanMs, if has_rate { Metric::Utilisation } else { Metric::BandwidthBitsS }];
    }
    let needs_rate = |metric: &&Metric| matches!(metric, Metric::Utilisation | Metric::TotalUtilisation);
    if let Some(metric) = metrics.iter().find(needs_rate)
        && !has_rate
    {
        return Err(value(format!("{metric} needs a link with a rate: set link.rate")));
    }
    if metrics.contains(&Metric::EnergyW) && spec.tune.core_watts.is_none() {
        return Err(value("energy_w needs tune.core_watts, the power of one busy core".to_owned()));
    }
    Ok(metrics)
}

/// The constraints, and where each of them is.
fn constraints(
    spec: &Spec,
    options: &Options,
    document: &Document,
) -> Result<(Vec<Constraint>, Vec<String>), ProblemError> {
    let of_file = spec.tune.constraints.iter().map(|text| (text, document.place("tune.constraints")));
    let of_line = options.constraints.iter().map(|text| (text, format!("--constraint {text:?}")));
    let mut all: Vec<Constraint> = Vec::new();
    let mut places = Vec::new();
    for (text, place) in of_file.chain(of_line) {
        let value = |problem: String| ProblemError::Value { place: place.clone(), problem };
        let one: Constraint = text.parse().map_err(|error: ConstraintError| value(error.to_string()))?;
        if let Some(other) = one.contradiction(&all) {
            return Err(value(format!("{one} contradicts {other}: no setting can meet both")));
        }
        all.push(one);
        places.push(place);
    }
    Ok((all, places))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const TEXT: &str = r#"
name = "three sets"

[link]
profile = "ppp-2m"
busy = "30%"

[[signals]]
count = 5
period_ms = 5
bytes = 4

[[signals]]
count = 5
period_ms = 10
bytes = 4

[[signals]]
count = 5
period_ms = 15
bytes = 4

[tune]
constraints = ["loss <= 0"]

[tune.search]
publishing_ms = { from = 5, to = 250 }
publish_requests = [1, 2]
"#;

    pub(crate) fn problem(sets: &[&str]) -> Problem {
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        Problem::parse(TEXT, "p.toml", &Options { sets, ..Options::default() }).unwrap()
    }

    fn error(text: &str, options: &Options) -> String {
        Problem::parse(text, "p.toml", options).unwrap_err().to_string()
    }

    #[test]
    fn a_plant_is_read() {
        let one = problem(&[]);
        assert_eq!((one.items(), one.clients, one.space.others.len()), (15, 1, 2));
        assert!((one.values_per_s() - 1_833.3).abs() < 0.1);
        assert_eq!(one.minimize, [Metric::DelayMeanMs, Metric::Utilisation]);
        assert_eq!(one.link.down.usable_rate(), Some(1.4e6));
        let other = problem(&["link.rate=5M", "link.overhead=12", "tune.search.publishing_ms=[10, 20]"]);
        assert_eq!((other.link.up.rate, other.link.up.overhead), (Some(5_000_000), 12));
        assert!(!other.space.is_range && other.space.publishing_ms == [10.0, 20.0]);
        assert_eq!(problem(&["link=rate=1mbit"]).link.down.rate, Some(1_000_000));
        assert_eq!(problem(&["link.rate=384000"]).link.down.rate, Some(384_000));
    }

    #[test]
    fn requests_by_clock_and_by_number_exclude_each_other() {
        let text = TEXT.replace("publish_requests = [1, 2]", "");
        let with = |every: &str| {
            let sets = vec![format!("tune.publish_every={every}")];
            Problem::parse(&text, "p.toml", &Options { sets, ..Options::default() })
        };
        assert_eq!(with("0.8").unwrap().publish_every, Some(0.8));
        assert_eq!(problem(&[]).publish_every, None);
        for wrong in ["0", "1.5"] {
            let said = with(wrong).unwrap_err().to_string();
            assert!(said.contains("publish_every") && said.contains("from 0.01 to 1"), "{said}");
        }
        let sets = vec!["tune.publish_every=0.8".to_owned()];
        let said = error(TEXT, &Options { sets, ..Options::default() });
        assert!(said.contains("tune.search.publish_requests"), "{said}");
    }

    #[test]
    fn a_plant_for_size_can_be_tuned() {
        let text = "name = \"x\"\n[[node]]\nname = \"a\"\npoints = 3000\nclients = 4\ninterval_ms = 100\nchanging = 0.5\n";
        let one = Problem::parse(text, "x", &Options::default()).unwrap();
        assert_eq!((one.clients, one.signals[0].count, one.signals[0].period_ms), (4, 750, 200.0));
    }

    #[test]
    fn unknown_keys_and_nodes_that_cannot_be_are_refused() {
        for unknown in ["[tunes]\nclients = 2\n", "[links]\nrate = \"5M\"\n", "nope = 1\n"] {
            let said = error(&format!("{unknown}{TEXT}"), &Options::default());
            assert!(said.starts_with("p.toml:1: unknown field `"), "{unknown}: {said}");
        }
        let node = "name = \"x\"\n[[hardware]]\nname = \"h\"\n[[node]]\nname = \"n\"\npoints = 100\nclients = 2\ninterval_ms = 100\n\
                    changing = 1\nhardware = \"h\"\n";
        Problem::parse(node, "p.toml", &Options::default()).unwrap();
        for (from, to, said) in [
            ("interval_ms = 100", "interval_ms = 1e300", "p.toml:8: node.0.interval_ms: "),
            ("interval_ms = 100", "interval_ms = 1e-9", "p.toml:8: node.0.interval_ms: "),
            ("changing = 1", "changing = 1e-300", "p.toml:9: node.0.changing: "),
            ("points = 100", "points = 4000000000", "p.toml:6: node.0.points: "),
        ] {
            let told = error(&node.replace(from, to), &Options::default());
            assert!(told.starts_with(said), "{to}: {told}");
        }
    }

    #[test]
    fn mistakes_name_file_line_and_key() {
        let none = Options::default();
        let with = |from: &str, to: &str| error(&TEXT.replace(from, to), &none);
        for (from, to, hints) in [
            ("\"ppp-2m\"", "\"ppp-3m\"", ["p.toml:5: link.profile", "there is no link"]),
            ("busy = \"30%\"", "busy = \"130%\"", ["p.toml:6: link.busy", "less than"]),
            ("busy = \"30%\"", "speed = 3", ["p.toml:6: link.speed", "unknown property"]),
            (
                "period_ms = 10",
                "period_ms = 10\nnodes = [\"i=1\", \"i=2\", \"i=3\", \"i=4\", \"i=5\", \"i=6\"]",
                ["p.toml:16: signals.1.nodes", "6 nodes for 5"],
            ),
            ("period_ms = 10", "period_ms = 0", ["p.toml:15: signals.1.period_ms", "not a period"]),
            ("loss <= 0", "loss < 0", ["p.toml:24: tune.constraints", "not a constraint"]),
            ("\"loss <= 0\"", "\"loss <= 0\", \"loss >= 0.5\"", ["p.toml:24", "contradicts"]),
            ("from = 5, to = 250", "from = 250, to = 5", ["p.toml:27: tune.search.publishing_ms", "empty"]),
            ("[1, 2]", "[]", ["p.toml:28: tune.search.publish_requests", "list is empty"]),
            ("[1, 2]", "[1, 2]\nthreads = 0", ["p.toml:29: tune.search.threads", "1 to 1024"]),
            ("[1, 2]", "\"x\"", ["p.toml:28: tune.search.publish_requests", "a whole number"]),
            ("[1, 2]", "[1, 2]\nspeed = 3", ["p.toml", "speed"]),
        ] {
            let error = with(from, to);
            assert!(hints.iter().all(|hint| error.contains(hint)), "{error}");
        }
        let options =
            |constraint: &str| Options { constraints: vec![constraint.to_owned()], ..Options::default() };
        assert!(error(TEXT, &options("loss >= 0.1")).contains("--constraint \"loss >= 0.1\""));
        let sets = vec!["tune.client_host=pi".to_owned()];
        assert!(error(TEXT, &Options { sets, ..Options::default() }).contains("add tune.host"));
        let minimize = Options { minimize: vec!["energy_w".to_owned()], ..Options::default() };
        assert!(error(TEXT, &minimize).contains("tune.core_watts"));
        assert!(error("name = \"x\"", &none).contains("p.toml: signals is missing"));
        assert!(error(TEXT, &Options { seeds: Some(0), ..none }).contains("--seeds"));
    }
}
