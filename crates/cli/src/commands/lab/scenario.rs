//! `lab run`: measures a scenario from a file.

use super::report;
use super::session::{self, SessionArgs, Task};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::text_file;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use taktwerk_lab::chart::Chart;
use taktwerk_lab::experiment::{invalid, unsteady};
use taktwerk_lab::measurement::{Measurement, cpu_conditions, group};
use taktwerk_lab::outcome::{Grid, Outcome, interval};
use taktwerk_lab::place::PlaceError;
use taktwerk_lab::processes;
use taktwerk_lab::scenario::{Condition, Kind, Labels, Scenario, ScenarioError};
use taktwerk_lab::thresholds;
use taktwerk_load::result::Figure;

/// Arguments of `taktwerk lab run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A scenario (TOML).
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write a report to this file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    session: SessionArgs,
}

/// The main figures of a kind of load.
pub(super) fn shown(kind: Kind) -> &'static [(&'static str, Figure)] {
    match kind {
        Kind::Subscribe => &[
            ("signals/s", Figure::PER_SECOND),
            ("CPU %", Figure::SERVER_CPU_PERCENT),
            ("µs/signal", Figure::SERVER_CPU_US_PER_SIGNAL),
            ("delivery p99 µs", Figure::DELIVERY_P99_US),
            ("worst item", Figure::PROGRESS_WORST_ITEM_RATIO),
        ],
        Kind::Read | Kind::Write | Kind::Browse => &[
            ("p50 µs", Figure::LATENCY_UNCORRECTED_P50_US),
            ("p99 µs", Figure::LATENCY_UNCORRECTED_P99_US),
            ("from schedule p99 µs", Figure::LATENCY_CORRECTED_P99_US),
            ("CPU %", Figure::SERVER_CPU_PERCENT),
        ],
        Kind::Probe => {
            &[("p50 µs", Figure::LATENCY_CORRECTED_P50_US), ("p99 µs", Figure::LATENCY_CORRECTED_P99_US)]
        }
        Kind::Connect => {
            &[("sessions/s", Figure::PER_SECOND), ("p99 µs", Figure::LATENCY_UNCORRECTED_P99_US)]
        }
        Kind::Roundtrip => &[("p50 µs", Figure::ROUNDTRIP_P50_US), ("p99 µs", Figure::ROUNDTRIP_P99_US)],
        Kind::Fan => &[("p50 µs", Figure::TRANSACTION_P50_US), ("max µs", Figure::TRANSACTION_MAX_US)],
        Kind::Update => &[("p50 µs", Figure::RUN_SPAN_P50_US), ("max µs", Figure::RUN_SPAN_MAX_US)],
        Kind::Igmp => &[("unjoined %", Figure::SNOOPING_UNJOINED_PERCENT)],
        Kind::PubSub => &[
            ("signals/s", Figure::SIGNALS_PER_S),
            ("CPU %", Figure::PUBLISHER_CPU_PERCENT),
            ("ns/signal", Figure::PUBLISHER_CPU_NS_PER_SIGNAL),
            ("late p99 µs", Figure::LATENESS_P99_US),
            ("delivery p50 µs", Figure::DELIVERY_P50_US),
        ],
    }
}

/// The main distribution of a kind of load.
fn distribution(kind: Kind) -> &'static str {
    match kind {
        Kind::Subscribe => "delivery",
        Kind::Roundtrip => "roundtrip",
        Kind::Fan => "transaction",
        Kind::Update => "run_span",
        Kind::PubSub => "delivery",
        Kind::Read | Kind::Write | Kind::Browse | Kind::Probe | Kind::Connect | Kind::Igmp => "latency",
    }
}

/// The result of the user's scenarios; `None` if the run has none.
pub(super) fn outcome(measurements: &[Measurement]) -> Option<Outcome> {
    let mut groups = group(measurements.iter().filter(|one| one.experiment.is_empty()));
    groups.sort_by(|one, other| one.condition.order(other.condition));
    let labels = Labels::of(groups.iter().map(|group| group.condition));
    let kind = groups.first()?.condition.kind;
    let mut outcome = Outcome {
        id: groups.first()?.condition.scenario.clone(),
        source: "a scenario of your own".to_owned(),
        ..Outcome::default()
    };
    // Omit columns without values: for example, requests back to back have no schedule.
    let is_known = |(_, figure): &&(&str, Figure)| groups.iter().any(|group| group.metric(*figure).is_some());
    let figures: Vec<&(&str, Figure)> = shown(kind).iter().filter(is_known).collect();
    let mut columns = vec!["load", "n"];
    columns.extend(figures.iter().map(|(title, _)| *title));
    let mut grid = Grid::new("Means of n measurements with their 95 % intervals", 1, &columns);
    let mut curves = Vec::new();
    for (group, label) in groups.iter().zip(labels.iter()) {
        let mut row = vec![label.to_owned(), group.valid.len().to_string()];
        row.extend(figures.iter().map(|(_, figure)| interval(group.metric(*figure).as_ref())));
        grid.rows.push(row);
        curves.push((label.to_owned(), group.times(distribution(kind))));
    }
    outcome.skipped = invalid(&groups);
    outcome.grids.push(grid);
    outcome.remark(format!("All loads: {}", labels.shared()));
    outcome.remarks.extend(cpu_conditions(measurements));
    outcome.remarks.extend(unsteady(&groups));
    outcome.charts.extend(Chart::apart(Chart::distribution, distribution(kind), &curves));
    outcome.charts.extend(Chart::apart(Chart::percentiles, "The tail", &curves));
    let labelled: Vec<_> = labels.iter().map(str::to_owned).zip(&groups).collect();
    outcome.grids.extend(processes::grid(
        "Processes of the server: mean CPU in % of one core, memory and context switches",
        &labelled,
    ));
    outcome.charts.extend(processes::charts("CPU by process", &labelled));
    Some(outcome)
}

/// Whether a load that cannot be measured is a usage error or a problem of the environment.
fn impossible(error: PlaceError) -> Failure {
    match &error {
        PlaceError::NoLink { .. } | PlaceError::Cpus(_) => Failure::Usage(error.to_string()),
        PlaceError::NoServer { .. } => Failure::Connect(error.to_string()),
        _ => Failure::Environment(error.to_string()),
    }
}

/// The measurements of the planned loads, and the number of others. A resumed run may have been started with a file
/// that had more loads.
fn planned(all: Vec<Measurement>, conditions: &[(String, Condition)]) -> (Vec<Measurement>, usize) {
    let count = all.len();
    let is_planned =
        |one: &Measurement| conditions.iter().any(|(_, condition)| condition.is_repeated_by(&one.condition));
    let ours: Vec<Measurement> = all.into_iter().filter(is_planned).collect();
    let others = count - ours.len();
    (ours, others)
}

/// Measures the scenario and prints the result.
pub(crate) fn run(arguments: &RunArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    arguments.session.check(output)?;
    let file = arguments.file.display().to_string();
    let text = text_file::read(&arguments.file)?;
    let usage = |error: ScenarioError| Failure::Usage(error.to_string());
    let scenario = Scenario::parse(&text, &file).map_err(usage)?;
    scenario.check_measured(&text, &file).map_err(usage)?;
    let place = super::place(arguments.session.program.as_ref())?.with_stop(interrupt.flag());
    let conditions: Vec<_> =
        scenario.conditions().into_iter().map(|condition| (String::new(), condition)).collect();
    if let Some(path) = &arguments.output {
        session::can_write(path, arguments.session.overwrite)?;
    }
    // Check all conditions before anything is measured.
    let mut looked_at = Vec::new();
    for (_, condition) in &conditions {
        let what = (&condition.stack, &condition.link);
        if !looked_at.contains(&what) {
            place.check(condition).map_err(impossible)?;
            looked_at.push(what);
        }
    }
    if let Some((_, first)) = conditions.first() {
        // Refuse to measure under other CPU conditions than requested.
        place.check_cpu(first).map_err(|error| Failure::Environment(error.to_string()))?;
    }
    let task = Task { what: &scenario.name, quick: false, conditions: &conditions, notes: &[], within: None };
    let finished = session::measure(&arguments.session, &task, &place, interrupt)?;
    let (measurements, others) = planned(finished.measurements, &conditions);
    if others > 0 {
        tracing::warn!(
            "{others} measurements of run {} are of loads that {file} does not have (any more): they are kept, and neither shown \
             nor judged here",
            finished.run
        );
    }
    let mut outcome =
        outcome(&measurements).ok_or_else(|| Failure::Usage(format!("{file} has nothing to measure")))?;
    outcome.findings = thresholds::judge(&scenario.thresholds, &measurements);
    let failed = outcome.findings.iter().filter(|finding| finding.holds == Some(false));
    let broken: Vec<String> =
        failed.map(|finding| format!("{}: {}", finding.claim, finding.evidence)).collect();
    let open = outcome.findings.iter().find(|finding| finding.holds.is_none());
    let open =
        open.map(|finding| format!("{}: open: {}: use more repetitions", finding.claim, finding.evidence));
    let run = finished.store.choose(Some(&finished.run.to_string()))?;
    let outcomes = [outcome];
    if let Some(path) = &arguments.output {
        report::write(path, &run, &outcomes)?;
    }
    if output.is_json() {
        output.document(&json!({"run": run, "outcomes": outcomes, "broken": broken}))?;
    } else {
        let [outcome] = &outcomes;
        output.text(&outcome.text())?;
        if let Some(path) = &arguments.output {
            session::wrote(output, path)?;
        }
    }
    if let Some(reason) = measurements.iter().find_map(|one| one.invalid.first()) {
        return Err(Failure::InvalidReported(reason.clone()));
    }
    if !broken.is_empty() {
        return Err(Failure::Threshold(broken.join("; ")));
    }
    open.map_or(Ok(()), |open| Err(Failure::InvalidReported(open)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use taktwerk_lab::scenario::{CpuCondition, LoadSpec, SecuritySpec, Sweep};

    /// A scenario in which everything varies, on stacks with long names.
    fn many(kind: Kind) -> Vec<Measurement> {
        let mut load = LoadSpec::new(kind);
        load.clients = Some(Sweep::Many(vec![1, 10_000]));
        load.items = Some(Sweep::Many(vec![100_000, 1_000_000]));
        load.batch = Some(Sweep::Many(vec![1, 100]));
        load.rate = Some(Sweep::Many(vec![100.0, 12_345.6]));
        load.publishing_ms = Some(Sweep::Many(vec![0.5, 1_000.0]));
        load.payload = Some(Sweep::Many(vec![16, 65_536]));
        load.threads = Some(Sweep::Many(vec![1, 2]));
        let mut scenario = Scenario::new("everything", load);
        scenario.stacks =
            vec!["own".into(), "async-opcua".into(), "opc.tcp://a-long-name.example.com:48400/path".into()];
        scenario.security = SecuritySpec::encrypted();
        scenario.cpu.condition = CpuCondition::Same;
        scenario.time.repetitions = 2;
        let large = |condition: &Condition, repetition: u32| {
            let mut one = Measurement::from_document("", condition.clone(), repetition, json!({}));
            for (_, figure) in shown(kind) {
                one.metrics.insert(figure.name().to_owned(), 123_456.7 * f64::from(repetition + 1));
            }
            one
        };
        let conditions = scenario.conditions();
        (0..2).flat_map(|repetition| conditions.iter().rev().map(move |it| large(it, repetition))).collect()
    }

    #[test]
    fn rows_are_distinguishable_in_a_hundred_columns() {
        for kind in [Kind::Subscribe, Kind::Read, Kind::PubSub, Kind::Fan] {
            let outcome = outcome(&many(kind)).unwrap();
            let [grid] = &outcome.grids[..] else { panic!("one table") };
            assert_eq!(grid.rows.len(), 384);
            let names: BTreeSet<&str> = grid.rows.iter().map(|row| row[0].as_str()).collect();
            assert_eq!(names.len(), grid.rows.len());
            assert!(grid.rows[0][0].starts_with("taktwerk, clients=1, items=100000, "), "{:?}", grid.rows[0]);
            let text = outcome.text();
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            assert!(!text.contains('…'), "something is cut off: {}", &text[..4_000]);
            // Values that are the same in all rows are printed once, below the table.
            assert_eq!(text.matches("Basic256Sha256").count(), 1, "{}", &text[..4_000]);
            assert_eq!(text.matches("cpu=same").count(), 1);
        }
    }

    #[test]
    fn tables_of_one_stack_do_not_repeat_its_name() {
        let mut own = many(Kind::Read);
        own.retain(|one| one.condition.stack == "own" && one.condition.batch == Some(1));
        let outcome = outcome(&own).unwrap();
        assert!(outcome.grids[0].rows.iter().all(|row| !row[0].contains("taktwerk")));
        assert!(outcome.text().contains("All loads: taktwerk, kind=read, batch=1, "), "{}", outcome.text());
    }

    #[test]
    fn removed_loads_are_not_judged() {
        let scenario = |clients: &[u32]| {
            let mut load = LoadSpec::new(Kind::Read);
            load.clients = Some(Sweep::Many(clients.to_vec()));
            Scenario::new("x", load).conditions()
        };
        let measure =
            |condition: Condition| Measurement::from_document("", condition, 0, json!({"invalid": ["late"]}));
        let all: Vec<Measurement> = scenario(&[10, 1_000]).into_iter().map(measure).collect();
        let now: Vec<(String, Condition)> =
            scenario(&[10]).into_iter().map(|condition| (String::new(), condition)).collect();
        let (ours, others) = planned(all, &now);
        assert_eq!((ours.len(), ours[0].condition.clients, others), (1, 10, 1));
    }
}
