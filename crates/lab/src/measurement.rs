//! The result of one measurement: figures by name, histograms, and reasons why it is invalid.

use crate::latency::Times;
use crate::scenario::{Condition, Kind};
use crate::statistics::Repeated;
use std::collections::BTreeMap;
use taktwerk_load::result::{Accounts, Document, Ending, Figure, Laid, Part, Reason};

/// Path of the threads' CPU use in documents.
const BY_THREAD: &str = "server.threads_percent.";

/// One measurement of one condition.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The experiment that requested it; empty for a user's scenario.
    pub experiment: String,
    /// The measured condition.
    pub condition: Condition,
    /// Number of the repetition.
    pub repetition: u32,
    /// All numbers of the document by path, such as `server.cpu_percent`.
    pub metrics: BTreeMap<String, f64>,
    /// Whole distributions by name.
    pub histograms: BTreeMap<String, Times>,
    /// Output of the load generator, without the histograms.
    pub document: Document,
    /// Reasons why it is invalid; empty if it is valid.
    pub invalid: Vec<String>,
}

impl Measurement {
    /// From the output of the load generator.
    #[must_use]
    pub fn from_document(
        experiment: &str,
        condition: Condition,
        repetition: u32,
        document: impl Into<Document>,
    ) -> Self {
        let mut document: Document = document.into();
        let histograms = document.take_histograms();
        // A reason without a message is shown as JSON.
        let said = |reason: Reason| match reason.message {
            message if message.is_empty() => {
                reason.reason.map(|reason| reason.to_string()).unwrap_or_default()
            }
            message => message,
        };
        let invalid = document.part::<Ending>().unwrap_or_default().invalid.into_iter().map(said);
        Self {
            experiment: experiment.to_owned(),
            invalid: invalid.collect(),
            condition,
            repetition,
            metrics: document.figures(),
            histograms,
            document,
        }
    }

    /// A measurement that failed.
    #[must_use]
    pub fn failed(experiment: &str, condition: Condition, repetition: u32, why: String) -> Self {
        Self {
            experiment: experiment.to_owned(),
            condition,
            repetition,
            metrics: BTreeMap::new(),
            histograms: BTreeMap::new(),
            document: Document::default(),
            invalid: vec![why],
        }
    }

    /// A part of its document; `None` if it is missing or has the format of another version.
    #[must_use]
    pub fn part<P: Part>(&self) -> Option<P> {
        self.document.part().ok()
    }

    /// Whether it is valid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.invalid.is_empty()
    }

    /// A figure.
    #[must_use]
    pub fn get(&self, figure: Figure) -> Option<f64> {
        self.metrics.get(figure.name()).copied()
    }

    /// CPU use of the server's threads by name, percent of one core.
    pub fn threads_percent(&self) -> impl Iterator<Item = (&str, f64)> {
        self.metrics.iter().filter_map(|(place, percent)| Some((place.strip_prefix(BY_THREAD)?, *percent)))
    }

    /// Values per second that the server actually delivered.
    #[must_use]
    pub fn signals_per_s(&self) -> Option<f64> {
        self.get(Figure::PER_SECOND)
    }
}

/// The actual CPU conditions of servers in words: each once, with the range of the number of other programs.
#[must_use]
pub fn cpu_conditions(measurements: &[Measurement]) -> Vec<String> {
    let mut seen: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for measurement in measurements {
        let accounts = measurement.part::<Accounts>();
        let Some(conditions) = accounts.and_then(|accounts| accounts.server?.conditions) else { continue };
        let by = measurement.part::<Laid>().and_then(|it| it.isolation);
        let isolated = by.map_or_else(String::new, |by| format!(", isolated by {by}"));
        let governor = conditions.governor.as_deref().unwrap_or("none");
        let core = if conditions.shares_core { ", core shared by hyper-threading" } else { "" };
        let text = format!(
            "CPU {}, class {}, governor {governor}{isolated}{core}",
            conditions.cpus, conditions.class
        );
        let (low, high) = seen.entry(text).or_insert((usize::MAX, 0));
        (*low, *high) = ((*low).min(conditions.others), (*high).max(conditions.others));
    }
    let line = |(text, (low, high)): (String, (usize, usize))| {
        let others = if low == high { low.to_string() } else { format!("{low} to {high}") };
        format!("Servers ran on {text}; other programs that may use it: {others}")
    };
    seen.into_iter().map(line).collect()
}

/// Repetitions of one condition.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// The condition.
    pub condition: &'a Condition,
    /// The valid measurements, in the order they were made.
    pub valid: Vec<&'a Measurement>,
    /// The invalid measurements.
    pub invalid: Vec<&'a Measurement>,
}

impl Group<'_> {
    /// A figure over the valid repetitions.
    #[must_use]
    pub fn metric(&self, figure: Figure) -> Option<Repeated> {
        self.named(figure.name())
    }

    /// A figure named by a user, over the valid repetitions.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Repeated> {
        Repeated::new(self.valid.iter().filter_map(|one| one.metrics.get(name).copied()).collect())
    }

    /// Number of valid measurements that started before the load was steady.
    #[must_use]
    pub fn unsteady(&self) -> usize {
        self.valid.iter().filter(|one| one.get(Figure::STEADY) == Some(0.0)).count()
    }

    /// The mean of a figure.
    #[must_use]
    pub fn mean(&self, figure: Figure) -> Option<f64> {
        let values: Vec<f64> = self.valid.iter().filter_map(|one| one.get(figure)).collect();
        crate::statistics::mean(&values)
    }

    /// A distribution over all repetitions: merged, never averaged.
    #[must_use]
    pub fn times(&self, name: &str) -> Times {
        let mut all = Times::new();
        self.valid
            .iter()
            .filter_map(|measurement| measurement.histograms.get(name))
            .for_each(|t| all.merge(t));
        all
    }
}

/// The figures required in every valid measurement of our own server, by kind of load, because findings depend on them.
#[must_use]
pub fn required(kind: Kind) -> &'static [Figure] {
    match kind {
        Kind::Read => &[
            Figure::LATENCY_UNCORRECTED_COUNT,
            Figure::LATENCY_UNCORRECTED_P50_US,
            Figure::PER_SECOND,
            Figure::SERVER_CPU_PERCENT,
            Figure::SERVER_CPU_S,
            Figure::SERVER_CPU_US_PER_REQUEST,
            Figure::SERVER_SYSTEM_S,
            Figure::SERVER_USER_S,
            Figure::SERVER_VOLUNTARY_SWITCHES,
            Figure::WINDOW_S,
        ],
        Kind::Subscribe => &[
            Figure::MESSAGE_INTERVAL_MEAN_US,
            Figure::NOTIFICATIONS,
            Figure::PER_SECOND,
            Figure::PROGRESS_CYCLE_P50_MS,
            Figure::PROGRESS_CYCLE_P99_MS,
            Figure::PROGRESS_WORST_ITEM_RATIO,
            Figure::SERVER_CPU_PERCENT,
            Figure::SERVER_CPU_US_PER_SIGNAL,
            Figure::SERVER_RSS_BYTES,
            Figure::TRANSFER_P50_US,
            Figure::WINDOW_S,
            Figure::WIRE_TOTAL_BYTES,
        ],
        Kind::Roundtrip => &[
            Figure::ROUNDTRIP_COUNT,
            Figure::ROUNDTRIP_MEAN_US,
            Figure::ROUNDTRIP_P50_US,
            Figure::WIRE_TOTAL_BYTES,
        ],
        Kind::PubSub => &[
            Figure::CYCLES,
            Figure::CYCLES_MISSED,
            Figure::DRIFT_PPM,
            Figure::MAKING_P50_US,
            Figure::MEAN_PERIOD_ERROR_NS,
            Figure::PROCESS_CPU_PERCENT,
            Figure::SIGNALS_PER_S,
            Figure::TRANSFER_P50_US,
        ],
        Kind::Igmp => &[Figure::FLOODING_UNJOINED_PERCENT, Figure::SNOOPING_UNJOINED_PERCENT],
        Kind::Write | Kind::Browse | Kind::Connect | Kind::Fan | Kind::Probe | Kind::Update => &[],
    }
}

/// Required figures that measurements of our own server lack, with the kind of load. Otherwise renaming a figure would
/// silently remove its findings.
#[must_use]
pub fn lacking(measurements: &[Measurement]) -> Vec<String> {
    let mut names: BTreeMap<(&str, Figure), usize> = BTreeMap::new();
    for one in measurements.iter().filter(|one| one.is_valid() && one.condition.stack == "own") {
        for name in required(one.condition.kind).iter().filter(|figure| one.get(**figure).is_none()) {
            *names.entry((one.condition.kind.name(), *name)).or_default() += 1;
        }
    }
    let line = |((kind, name), count)| {
        format!(
            "{count} measurements of `bench {kind}` have no figure {name}, so findings that need it are missing. It \
             may have been renamed, or written by another version"
        )
    };
    names.into_iter().map(line).collect()
}

/// Groups measurements by condition, in the order of their first appearance.
#[must_use]
pub fn group<'a>(measurements: impl IntoIterator<Item = &'a Measurement>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for measurement in measurements {
        let at = groups.iter().position(|group| group.condition.is_repeated_by(&measurement.condition));
        let at = at.unwrap_or_else(|| {
            groups.push(Group { condition: &measurement.condition, valid: Vec::new(), invalid: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            let list = if measurement.is_valid() { &mut group.valid } else { &mut group.invalid };
            list.push(measurement);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Observed;
    use crate::scenario::{Kind, LoadSpec, Scenario};
    use serde_json::json;
    use taktwerk_load::result::{Histograms, Server};

    #[test]
    fn cpu_conditions_are_listed_once_with_their_range() {
        let condition = Scenario::new("x", LoadSpec::new(Kind::Read)).conditions().remove(0);
        let make = |others: usize| {
            let seen = Observed {
                cpus: "0".into(),
                others,
                class: "fifo:1".into(),
                governor: None,
                shares_core: false,
            };
            let server = Server { conditions: Some(seen), ..Server::default() };
            let mut document = Document::default();
            document.add(&Accounts { server: Some(server), ..Accounts::default() });
            document.add(&Laid { isolation: Some("cpuset".into()), ..Laid::default() });
            Measurement::from_document("", condition.clone(), 0, document)
        };
        assert_eq!(
            cpu_conditions(&[make(3), make(5)]),
            [
                "Servers ran on CPU 0, class fifo:1, governor none, isolated by cpuset; other programs that may use it: 3 to 5"
            ]
        );
        assert!(cpu_conditions(&[Measurement::failed("", condition, 0, "x".into())]).is_empty());
    }

    #[test]
    fn a_document_becomes_figures_and_histograms() {
        let condition = Scenario::new("x", LoadSpec::new(Kind::Read)).conditions().remove(0);
        let mut times = Times::new();
        times.record(5_000);
        let mut histograms = Histograms::default();
        histograms.add("latency", &times);
        histograms.histograms.insert("broken".to_owned(), "?".to_owned());
        let document = json!({
            "machine": {"cpus": 2},
            "server": {"cpu_percent": 12.5, "name": "x"},
            "histograms": histograms.histograms,
            "invalid": [{"reason": "no_samples", "message": "nothing was measured"}],
        });
        let one = Measurement::from_document("e", condition.clone(), 0, document.clone());
        assert_eq!(one.get(Figure::SERVER_CPU_PERCENT), Some(12.5));
        assert_eq!((one.metrics.len(), one.histograms.len()), (1, 1));
        assert_eq!(one.invalid, ["nothing was measured"]);
        let mut fine = document;
        fine["invalid"] = json!([]);
        let two = Measurement::from_document("e", condition, 1, fine);
        let all = [one, two];
        let groups = group(&all);
        assert_eq!((groups.len(), groups[0].valid.len(), groups[0].invalid.len()), (1, 1, 1));
        assert_eq!(groups[0].mean(Figure::SERVER_CPU_PERCENT), Some(12.5));
        assert_eq!(groups[0].times("latency").count(), 1);
    }
}
