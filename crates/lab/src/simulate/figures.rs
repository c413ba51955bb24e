//! Figures over all seeds, as tables, charts and thresholds.

mod authority;
mod pubsub;

use super::seeds::Run;
use super::study::{Case, Study};
use crate::chart::Chart;
use crate::figures::{number, thousands};
use crate::latency::Times;
use crate::outcome::{Grid, Outcome};
use crate::process::Process;
use crate::scenario::Threshold;
use crate::statistics::median;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_load::result::Figure;
use taktwerk_sim::scenario::{Clients, Load, Scenario};

/// Figures of one run by their names, such as `scada.delay_p99_ms`.
pub type Figures = BTreeMap<String, f64>;

/// One figure over the seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// 95 % confidence interval of the median; minimum and maximum if there are fewer than six seeds.
    pub interval: (f64, f64),
    /// Number of seeds.
    pub seeds: usize,
}

impl Summary {
    /// From one value per seed; `None` without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = rank(sorted.len());
        let low = sorted.get(rank).copied()?;
        let high = sorted.get(sorted.len() - 1 - rank).copied()?;
        Some(Self { median: median(&sorted)?, interval: (low, high), seeds: sorted.len() })
    }
}

/// Number of values at each end outside the confidence interval of the median, by the binomial distribution with at
/// most 2.5 % on each side.
fn rank(count: usize) -> usize {
    // Cumulative probabilities of a binomial distribution with p = 0.5.
    let mut probability = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut sum, mut rank) = (probability, 0);
    if probability == 0.0 {
        // Normal approximation for more than a thousand values.
        return ((count as f64 / 2.0) - 0.98 * (count as f64).sqrt()).floor().max(0.0) as usize;
    }
    while sum <= 0.025 {
        probability *= (count - rank) as f64 / (rank + 1) as f64;
        sum += probability;
        rank += 1;
    }
    rank.saturating_sub(1)
}

/// The figures of a run.
#[must_use]
pub fn of(scenario: &Scenario, run: &Run) -> Figures {
    let mut all = Figures::new();
    let outcome = &run.outcome;
    for (clients, load) in scenario.clients.iter().zip(&outcome.loads) {
        let mut put = |name: &str, value: f64| all.insert(format!("{}.{name}", clients.name), value);
        let ms = |nanos: f64| nanos / 1e6;
        let what = if matches!(clients.load, Load::Subscribe(_)) { "delay" } else { "round_trip" };
        if load.times.count() > 0 {
            put(&format!("{what}_mean_ms"), ms(load.times.mean()));
            put(&format!("{what}_p50_ms"), ms(load.times.quantile(0.5) as f64));
            put(&format!("{what}_p99_ms"), ms(load.times.quantile(0.99) as f64));
            put(&format!("{what}_max_ms"), ms(load.times.max() as f64));
        }
        put("per_second", load.arrived as f64 / outcome.measured);
        put("due_per_second", load.due as f64 / outcome.measured);
        put("missing_percent", load.due.saturating_sub(load.arrived) as f64 * 100.0 / load.due.max(1) as f64);
        if matches!(clients.load, Load::Subscribe(_)) {
            put("messages_per_second", load.messages as f64 / outcome.measured);
            put("overflows", load.overflows as f64);
            put("losses", load.losses as f64);
        } else {
            put("failed", load.failed as f64);
        }
        put("reconnects", load.reconnects as f64);
        put("session_up_ms", load.session_up * 1e3);
        put("failed_attempts", load.failed_attempts as f64);
        put("outage_ms", load.outage * 1e3);
    }
    for (clients, host) in scenario.clients.iter().zip(&outcome.clients) {
        if let Some(cpu) = host.cpu {
            all.insert(format!("{}.client_cpu_percent", clients.name), cpu * 100.0);
        }
    }
    for (server, host) in scenario.servers.iter().zip(&outcome.servers) {
        if let Some(cpu) = host.cpu {
            all.insert(format!("{}.cpu_percent", server.name), cpu * 100.0);
        }
    }
    pubsub::figures(scenario, outcome, &mut all);
    authority::figures(scenario, outcome, &mut all);
    for (link, line) in scenario.links.iter().zip(&outcome.lines) {
        let mut put = |name: &str, value: f64| all.insert(format!("{}.{name}", link.name), value);
        put("up_bits_s", line.up_bits_s);
        put("down_bits_s", line.down_bits_s);
        put("lost_packets", line.lost as f64);
        if let Some(used) = line.utilisation {
            put("utilisation_percent", used * 100.0);
        }
    }
    all
}

/// Names of all figures that runs of a scenario can have. Thresholds with other names are refused before running.
#[must_use]
pub fn names(scenario: &Scenario) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for clients in &scenario.clients {
        let subscribes = matches!(clients.load, Load::Subscribe(_));
        let mut put = |name: &str| all.insert(format!("{}.{name}", clients.name));
        for name in ["mean_ms", "p50_ms", "p99_ms", "max_ms"] {
            put(&format!("{}_{name}", if subscribes { "delay" } else { "round_trip" }));
        }
        let own: &[&str] =
            if subscribes { &["messages_per_second", "overflows", "losses"] } else { &["failed"] };
        let common = [
            "per_second",
            "due_per_second",
            "missing_percent",
            "reconnects",
            "session_up_ms",
            "failed_attempts",
            "outage_ms",
        ];
        for name in own.iter().chain(&common) {
            put(name);
        }
        if clients.host.is_some() {
            put("client_cpu_percent");
        }
    }
    for server in scenario.servers.iter().filter(|server| server.host.is_some()) {
        all.insert(format!("{}.cpu_percent", server.name));
    }
    pubsub::names(scenario, &mut all);
    authority::names(scenario, &mut all);
    for link in &scenario.links {
        for name in ["up_bits_s", "down_bits_s", "lost_packets", "utilisation_percent"] {
            all.insert(format!("{}.{name}", link.name));
        }
    }
    all
}

/// What is wrong with the name of a figure and how to correct it; `None` if runs of the scenario can have it.
#[must_use]
pub fn unknown(scenario: &Scenario, metric: &str) -> Option<String> {
    let names = names(scenario);
    let renamed = RENAMED.iter().find(|(figure, ..)| figure.name() == metric).map(|(_, name, _)| *name);
    let is_known = match renamed {
        Some(name) => names.iter().any(|known| known.ends_with(&format!(".{name}"))),
        None => names.contains(metric),
    };
    if is_known {
        return None;
    }
    if metric.ends_with("cpu_percent") && scenario.hosts.is_empty() {
        return Some(format!(
            "there is no figure {metric:?}, because no processor is simulated: add [[host]], or use --host-profile epyc-vm"
        ));
    }
    let of_measurements = RENAMED.iter().map(|(figure, ..)| figure.name());
    let all = names.iter().map(String::as_str);
    let hint = match taktwerk_explain::nearest(metric, all.clone().chain(of_measurements)) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are {}", all.collect::<Vec<_>>().join(", ")),
    };
    Some(format!("there is no figure {metric:?}; {hint}"))
}

/// Summaries of all figures of a case.
#[must_use]
pub fn summaries(case: usize, scenario: &Scenario, runs: &[Run]) -> BTreeMap<String, Summary> {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.case == case) {
        for (name, value) in of(scenario, run) {
            values.entry(name).or_default().push(value);
        }
    }
    values.into_iter().filter_map(|(name, values)| Some((name, Summary::of(&values)?))).collect()
}

fn cell(summary: Option<&Summary>) -> String {
    let Some(summary) = summary else { return "–".to_owned() };
    let (low, high) = summary.interval;
    let middle = number(summary.median);
    let [low, high] = [low, high].map(number);
    if low == high { middle } else { format!("{middle} ({low}–{high})") }
}

/// Remarks about the figures, the same for every run of the study.
#[must_use]
pub fn remarks(study: &Study) -> Vec<String> {
    let mut remarks = study.notes.clone();
    if study.cases.iter().flat_map(|case| &case.scenario.clients).any(leaves_out) {
        remarks.push(
            "clients that sample, or that use a queue of size 1, receive only the newest values: newer values replaced \
             the missing ones"
                .to_owned(),
        );
    }
    if study.cases.iter().any(|case| pubsub::leaves_out(&case.scenario)) {
        remarks.push(
            "publishers sample once per cycle: values that change more often are missing, because newer ones replaced \
             them"
                .to_owned(),
        );
    }
    if study.cases.iter().all(|case| case.scenario.hosts.is_empty()) {
        remarks.push(
            "no processor is simulated: the work of servers and clients takes no time. Add [[host]] to the file, or \
             use --host-profile epyc-vm".to_owned(),
        );
    }
    remarks
}

/// Tables, charts and remarks of a study.
#[must_use]
pub fn outcome(study: &Study, runs: &[Run]) -> Outcome {
    let mut outcome = Outcome {
        id: study.name.clone(),
        source: "simulated: the client and server cores that run in production, in virtual time".to_owned(),
        remarks: remarks(study),
        ..Outcome::default()
    };
    let all: Vec<BTreeMap<String, Summary>> =
        study.cases.iter().enumerate().map(|(at, case)| summaries(at, &case.scenario, runs)).collect();
    let seeds = runs.iter().map(|run| run.seed).collect::<std::collections::BTreeSet<_>>().len();
    let over = match seeds {
        1 => "one seed".to_owned(),
        seeds => format!("medians over {seeds} seeds, with intervals in parentheses"),
    };
    for subscribes in [true, false] {
        outcome.grids.extend(loads(study, &all, subscribes, &over));
    }
    outcome.grids.extend(pubsub::grids(study, &all, &over));
    outcome.grids.extend(authority::grids(study, &all));
    outcome.grids.extend(network(study, &all));
    outcome.grids.extend(hosts(study, &all));
    let curves = curves(study, runs);
    outcome.charts.extend(Chart::apart(Chart::distribution, "Delay of values, or round trip", &curves));
    outcome.charts.extend(Chart::apart(Chart::percentiles, "Tail of the delay or round trip", &curves));
    outcome.remark(speed(runs));
    outcome
}

/// Whether newer values replace older ones by configuration.
fn leaves_out(clients: &Clients) -> bool {
    match &clients.load {
        Load::Subscribe(it) => !it.sampling_interval.is_zero() || it.queue_size == Some(1),
        Load::Request(_) => false,
    }
}

/// Peak memory of this process in bytes; `None` if the system does not provide it.
#[must_use]
pub fn memory_peak() -> Option<u64> {
    Process::own().snapshot().ok().map(|account| account.rss_peak).filter(|bytes| *bytes > 0)
}

/// Speed and memory use of the simulation.
#[must_use]
pub fn speed(runs: &[Run]) -> String {
    let sum = |of: fn(&Run) -> f64| runs.iter().map(of).sum::<f64>();
    let (events, simulated) = (sum(|run| run.outcome.events as f64), sum(|run| run.outcome.simulated));
    let took = sum(|run| run.took.as_secs_f64()).max(1e-9);
    let memory = memory_peak()
        .map_or_else(String::new, |bytes| format!("; peak memory {} MB", thousands((bytes >> 20) as i64)));
    format!(
        "{} events, {} per second on one core; {} s of virtual time, {} times real time{memory}",
        thousands(events as i64),
        thousands((events / took) as i64),
        number(simulated),
        number(simulated / took)
    )
}

fn label(study: &Study, case: &Case, name: &str) -> String {
    let groups = |case: &Case| case.scenario.clients.len() + case.scenario.pubsub.subscribers.len();
    let many = study.cases.iter().any(|case| groups(case) > 1);
    match (study.cases.len() > 1, many) {
        (true, true) => format!("{}, {name}", case.label),
        (true, false) => case.label.clone(),
        (false, _) => name.to_owned(),
    }
}

fn loads(study: &Study, all: &[BTreeMap<String, Summary>], subscribes: bool, over: &str) -> Option<Grid> {
    let (title, what) = if subscribes {
        ("Delay from write to application", "delay")
    } else {
        ("Round trip of requests", "round_trip")
    };
    let last = if subscribes { ("missing %", "missing_percent") } else { ("failed", "failed") };
    let names: Vec<(&str, String)> = [("mean ms", "mean_ms"), ("p99 ms", "p99_ms"), ("max ms", "max_ms")]
        .map(|(title, name)| (title, format!("{what}_{name}")))
        .into_iter()
        .chain([(if subscribes { "values/s" } else { "requests/s" }, "per_second".to_owned())])
        .chain([(last.0, last.1.to_owned())])
        .collect();
    let titles: Vec<&str> = std::iter::once("clients").chain(names.iter().map(|(title, _)| *title)).collect();
    let mut grid = Grid::new(&format!("{title}; {over}"), 1, &titles);
    for (case, figures) in study.cases.iter().zip(all) {
        let groups = case.scenario.clients.iter();
        for clients in groups.filter(|clients| matches!(clients.load, Load::Subscribe(_)) == subscribes) {
            let cells = names.iter().map(|(_, name)| cell(figures.get(&format!("{}.{name}", clients.name))));
            grid.row(std::iter::once(label(study, case, &clients.name)).chain(cells));
        }
    }
    (!grid.rows.is_empty()).then_some(grid)
}

fn network(study: &Study, all: &[BTreeMap<String, Summary>]) -> Option<Grid> {
    let columns = ["link", "to servers kbit/s", "to clients kbit/s", "used %", "packets lost"];
    let mut grid = Grid::new("Links (the busiest line of each)", 1, &columns);
    for (case, figures) in study.cases.iter().zip(all) {
        for link in &case.scenario.links {
            let get = |name: &str| figures.get(&format!("{}.{name}", link.name));
            let kilo = |summary: Option<&Summary>| {
                let summary = summary?;
                let (low, high) = summary.interval;
                let interval = (low / 1e3, high / 1e3);
                Some(Summary { median: summary.median / 1e3, interval, seeds: summary.seeds })
            };
            let name = if study.cases.len() > 1 {
                format!("{}, {}", case.label, link.name)
            } else {
                link.name.clone()
            };
            grid.row([
                name,
                cell(kilo(get("up_bits_s")).as_ref()),
                cell(kilo(get("down_bits_s")).as_ref()),
                cell(get("utilisation_percent")),
                cell(get("lost_packets")),
            ]);
        }
    }
    (!grid.rows.is_empty()).then_some(grid)
}

fn hosts(study: &Study, all: &[BTreeMap<String, Summary>]) -> Option<Grid> {
    let mut grid = Grid::new("Processors, percent of one core", 1, &["server or clients", "CPU %"]);
    for (case, figures) in study.cases.iter().zip(all) {
        let prefix = if study.cases.len() > 1 { format!("{}, ", case.label) } else { String::new() };
        for server in &case.scenario.servers {
            if let Some(cpu) = figures.get(&format!("{}.cpu_percent", server.name)) {
                grid.row([format!("{prefix}server {}", server.name), cell(Some(cpu))]);
            }
        }
        for clients in &case.scenario.clients {
            if let Some(cpu) = figures.get(&format!("{}.client_cpu_percent", clients.name)) {
                grid.row([format!("{prefix}clients {}", clients.name), cell(Some(cpu))]);
            }
        }
        let others = pubsub::processors(&case.scenario).into_iter();
        for (what, name, figure) in others.chain(authority::processors(&case.scenario)) {
            if let Some(cpu) = figures.get(&figure) {
                grid.row([format!("{prefix}{what} {name}"), cell(Some(cpu))]);
            }
        }
    }
    (!grid.rows.is_empty()).then_some(grid)
}

/// Times over all seeds, by case and group.
fn curves(study: &Study, runs: &[Run]) -> Vec<(String, Times)> {
    let mut curves = Vec::new();
    for (at, case) in study.cases.iter().enumerate() {
        for (group, clients) in case.scenario.clients.iter().enumerate() {
            let mut times = Times::new();
            for run in runs.iter().filter(|run| run.case == at) {
                let load = run.outcome.loads.get(group);
                for (nanos, count) in load.iter().flat_map(|load| load.times.buckets()) {
                    times.record_many(nanos, count);
                }
            }
            if times.count() > 0 {
                curves.push((label(study, case, &clients.name), times));
            }
        }
        for (group, subscribers) in case.scenario.pubsub.subscribers.iter().enumerate() {
            let mut times = Times::new();
            for run in runs.iter().filter(|run| run.case == at) {
                let one = run.outcome.pubsub.subscribers.get(group);
                for (nanos, count) in one.iter().flat_map(|one| one.figures.times.buckets()) {
                    times.record_many(nanos, count);
                }
            }
            if times.count() > 0 {
                curves.push((label(study, case, &subscribers.name), times));
            }
        }
    }
    curves
}

/// Names of laboratory figures in thresholds, with the simulator's name and the factor between them.
const RENAMED: [(Figure, &str, f64); 8] = [
    (Figure::PER_SECOND, "per_second", 1.0),
    (Figure::SERVER_CPU_PERCENT, "cpu_percent", 1.0),
    (Figure::DELIVERY_P50_US, "delay_p50_ms", 1e3),
    (Figure::DELIVERY_P99_US, "delay_p99_ms", 1e3),
    (Figure::LATENCY_CORRECTED_P50_US, "round_trip_p50_ms", 1e3),
    (Figure::LATENCY_UNCORRECTED_P50_US, "round_trip_p50_ms", 1e3),
    (Figure::LATENCY_CORRECTED_P99_US, "round_trip_p99_ms", 1e3),
    (Figure::LATENCY_UNCORRECTED_P99_US, "round_trip_p99_ms", 1e3),
];

/// Violated thresholds in words, judged by the medians.
#[must_use]
pub fn broken(study: &Study, runs: &[Run]) -> Vec<String> {
    let mut broken = Vec::new();
    for (at, case) in study.cases.iter().enumerate() {
        let figures = summaries(at, &case.scenario, runs);
        for threshold in &study.thresholds {
            let Some(value) = find(&figures, &threshold.metric) else {
                let known: Vec<&str> = figures.keys().map(String::as_str).collect();
                broken.push(format!(
                    "{}: there is no figure {}; there are {}",
                    case.label,
                    threshold.metric,
                    known.join(", ")
                ));
                continue;
            };
            broken.extend(judge(threshold, value).map(|text| format!("{}: {text}", case.label)));
        }
    }
    broken
}

fn find(figures: &BTreeMap<String, Summary>, metric: &str) -> Option<f64> {
    if let Some(summary) = figures.get(metric) {
        return Some(summary.median);
    }
    let (_, name, factor) = RENAMED.iter().find(|(figure, ..)| figure.name() == metric)?;
    let suffix = format!(".{name}");
    let found = figures.iter().find(|(key, _)| key.ends_with(&suffix))?;
    Some(found.1.median * factor)
}

fn judge(threshold: &Threshold, value: f64) -> Option<String> {
    let (word, limit) = match (threshold.below, threshold.above) {
        (Some(below), _) if value >= below => ("below", below),
        (_, Some(above)) if value <= above => ("above", above),
        _ => return None,
    };
    Some(format!("{} is {}, but should be {word} {}", threshold.metric, number(value), number(limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_needs_six() {
        let values = |count: u32| (0..count).map(f64::from).collect::<Vec<_>>();
        let interval = |count: u32| Summary::of(&values(count)).unwrap().interval;
        assert_eq!(Summary::of(&[]), None);
        assert_eq!((interval(1), interval(3), interval(5)), ((0.0, 0.0), (0.0, 2.0), (0.0, 4.0)));
        // From tables of the binomial distribution: 6 values keep all, 9 leave out one and 20 five at each end.
        assert_eq!((interval(6), interval(9), interval(20)), ((0.0, 5.0), (1.0, 7.0), (5.0, 14.0)));
        let (low, high) = interval(2_000);
        assert!(low > 950.0 && high < 1_050.0, "{low} {high}");
    }

    #[test]
    fn laboratory_thresholds_are_converted() {
        let summary = Summary { median: 12.0, interval: (1.0, 2.0), seeds: 1 };
        let figures = BTreeMap::from([("subscribe.delay_p99_ms".to_owned(), summary)]);
        assert_eq!(find(&figures, "delivery.p99_us"), Some(12_000.0));
        assert_eq!((find(&figures, "subscribe.delay_p99_ms"), find(&figures, "x")), (Some(12.0), None));
        let threshold = Threshold { metric: "m".to_owned(), below: Some(5.0), above: None, of: None };
        assert!(
            judge(&threshold, 6.0).is_some_and(|text| text.contains("below 5"))
                && judge(&threshold, 4.0).is_none()
        );
    }
}
