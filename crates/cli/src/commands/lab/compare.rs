//! `lab compare`: compares two runs, condition by condition, with confidence intervals.

use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_lab::figures;
use taktwerk_lab::measurement::{Group, Measurement, group};
use taktwerk_lab::outcome::{interval, wrapped};
use taktwerk_lab::scenario::{Condition, Kind, Labels, stack_name};
use taktwerk_lab::statistics::{Repeated, median_ratio};
use taktwerk_lab::table::{Align, Table};
use taktwerk_load::result::Figure;

/// Arguments of `taktwerk lab compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Run to compare with.
    #[arg(value_name = "BASE")]
    base: String,

    /// Run to compare.
    #[arg(value_name = "RUN")]
    other: String,

    /// Figures to compare, such as server.cpu_percent. Default: the main figures of each load.
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,

    #[command(flatten)]
    store: super::StoreArgs,
}

/// The main figures of a kind of load.
fn usual(kind: Kind) -> &'static [Figure] {
    match kind {
        Kind::Subscribe => &[Figure::SERVER_CPU_US_PER_SIGNAL, Figure::PER_SECOND],
        Kind::Read | Kind::Write | Kind::Browse => {
            &[Figure::LATENCY_UNCORRECTED_P50_US, Figure::LATENCY_UNCORRECTED_P99_US]
        }
        Kind::Probe => &[Figure::LATENCY_CORRECTED_P50_US, Figure::LATENCY_CORRECTED_P99_US],
        Kind::Connect => &[Figure::LATENCY_UNCORRECTED_P50_US, Figure::PER_SECOND],
        Kind::Roundtrip => &[Figure::ROUNDTRIP_P50_US, Figure::ROUNDTRIP_P99_US],
        Kind::Fan => &[Figure::TRANSACTION_P50_US, Figure::TRANSACTION_MAX_US],
        Kind::Update => &[Figure::RUN_SPAN_P50_US],
        Kind::Igmp => &[Figure::SNOOPING_UNJOINED_PERCENT],
        Kind::PubSub => {
            &[Figure::PUBLISHER_CPU_NS_PER_SIGNAL, Figure::LATENESS_P99_US, Figure::DELIVERY_P50_US]
        }
    }
}

/// The stack of a run that measured only one.
fn only_stack<'a>(groups: &[Group<'a>]) -> Option<&'a str> {
    let first = groups.first()?.condition.stack.as_str();
    groups.iter().all(|group| group.condition.stack == first).then_some(first)
}

/// The factors of a load, with or without the stack.
fn load(condition: &Condition, stacks_differ: bool) -> BTreeMap<String, String> {
    let mut factors = condition.factors();
    if stacks_differ {
        factors.remove("stack");
    }
    factors
}

/// A figure of a load in two runs.
struct Compared<'a> {
    condition: &'a Condition,
    other: &'a Condition,
    metric: String,
    base: Repeated,
    run: Repeated,
    ratio: f64,
    ratio_ci95: (f64, f64),
}

impl Compared<'_> {
    fn verdict(&self) -> &'static str {
        // A confidence interval needs at least two values per run.
        if self.base.values.len() < 2 || self.run.values.len() < 2 {
            return "measured once";
        }
        match self.ratio_ci95 {
            (low, _) if low > 1.0 => "higher",
            (_, high) if high < 1.0 => "lower",
            _ => "no difference shown",
        }
    }

    /// The confidence interval; `None` for single measurements.
    fn interval(&self) -> Option<(f64, f64)> {
        Some(self.ratio_ci95).filter(|(_, high)| high.is_finite())
    }

    fn document(&self) -> Value {
        json!({
            "condition": self.condition.factors(),
            "other_condition": self.other.factors(),
            "scenario": self.condition.scenario,
            "metric": self.metric,
            "base": self.base,
            "other": self.run,
            "ratio": self.ratio,
            "ratio_ci95": self.interval().map(|(low, high)| [low, high]),
            "verdict": self.verdict(),
        })
    }
}

/// The conditions that both runs have, in the order of tables.
fn compared<'a>(before: &[Group<'a>], after: &[Group<'a>], metrics: &[String]) -> Vec<Compared<'a>> {
    // Two runs of one stack each are compared across stacks.
    let stacks_differ = match (only_stack(before), only_stack(after)) {
        (Some(one), Some(two)) => one != two,
        _ => false,
    };
    let mut compared = Vec::new();
    for old in before {
        let same = |new: &&Group<'_>| {
            let (a, b) = (old.condition, new.condition);
            a.kind == b.kind && a.scenario == b.scenario && load(a, stacks_differ) == load(b, stacks_differ)
        };
        let Some(new) = after.iter().find(same) else { continue };
        let usual = usual(old.condition.kind).iter().map(|figure| figure.name().to_owned());
        let names: Vec<String> = if metrics.is_empty() { usual.collect() } else { metrics.to_vec() };
        for metric in names {
            let (Some(base), Some(run)) = (old.named(&metric), new.named(&metric)) else { continue };
            let Some((ratio, ratio_ci95)) = median_ratio(&run.values, &base.values) else { continue };
            let (condition, other) = (old.condition, new.condition);
            compared.push(Compared { condition, other, metric, base, run, ratio, ratio_ci95 });
        }
    }
    compared.sort_by(|one, other| one.condition.order(other.condition));
    compared
}

/// Formats a table for each figure.
fn tables(compared: &[Compared<'_>], base: &str, run: &str) -> String {
    let mut metrics: Vec<&str> = Vec::new();
    for one in compared {
        if !metrics.contains(&one.metric.as_str()) {
            metrics.push(&one.metric);
        }
    }
    let mut text = String::new();
    for metric in metrics {
        let rows: Vec<&Compared<'_>> = compared.iter().filter(|one| one.metric == metric).collect();
        let (before, after) =
            (stacks(rows.iter().map(|one| one.condition)), stacks(rows.iter().map(|one| one.other)));
        // If each run has one stack, the titles name it.
        let left_out: &[&str] = if before.is_some() && after.is_some() { &["stack"] } else { &[] };
        let labels = Labels::without(rows.iter().map(|one| one.condition), left_out);
        let of = |run: &str, stack: Option<&str>| match stack {
            Some(stack) => format!("{run}: {}", stack_name(stack)),
            None => run.to_owned(),
        };
        let mut table = Table::new(&[
            ("load", Align::Wrap),
            (&of(base, before), Align::Right),
            (&of(run, after), Align::Right),
            ("ratio", Align::Right),
            ("95 % interval", Align::Right),
            ("", Align::Left),
        ]);
        for (one, label) in rows.iter().zip(labels.iter()) {
            let text = |(low, high)| format!("{} to {}", figures::number(low), figures::number(high));
            table.row([
                label.to_owned(),
                interval(Some(&one.base)),
                interval(Some(&one.run)),
                figures::number(one.ratio),
                one.interval().map_or_else(|| "–".to_owned(), text),
                one.verdict().to_owned(),
            ]);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&wrapped(
            "",
            &format!("{metric} of {}", rows.first().map_or("", |one| &one.condition.scenario)),
        ));
        text.push_str(&table.to_string());
        let shared = labels.shared();
        if !shared.is_empty() {
            text.push_str(&wrapped("", &format!("All loads: {shared}")));
        }
    }
    text
}

/// The stack of all these conditions, if it is the same.
fn stacks<'a>(conditions: impl Iterator<Item = &'a Condition>) -> Option<&'a str> {
    let stacks: BTreeSet<&str> = conditions.map(|condition| condition.stack.as_str()).collect();
    if stacks.len() == 1 { stacks.first().copied() } else { None }
}

/// The names of all figures.
fn names(measurements: &[Measurement]) -> String {
    let names: BTreeSet<&str> =
        measurements.iter().flat_map(|one| one.metrics.keys()).map(String::as_str).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Compares two runs.
pub(crate) fn run(arguments: &CompareArgs, output: Output) -> Result<(), Failure> {
    let store = arguments.store.open_to_read()?;
    let (base, other) = (store.choose(Some(&arguments.base))?, store.choose(Some(&arguments.other))?);
    let (before, after) = (store.measurements(base.id)?, store.measurements(other.id)?);
    let compared = compared(&group(&before), &group(&after), &arguments.metric);
    let is_other_machine = base.fingerprint.get("machine") != other.fingerprint.get("machine");
    if is_other_machine {
        tracing::warn!(
            "the two runs are from different machines: only ratios within each run are meaningful"
        );
    }
    if output.is_json() {
        let documents: Vec<Value> = compared.iter().map(Compared::document).collect();
        return output.document(&json!({
            "base": base, "other": other, "same_machine": !is_other_machine, "comparisons": documents
        }));
    }
    if compared.is_empty() {
        let (base, other) = (&base.name, &other.name);
        return Err(Failure::Usage(match self::compared(&group(&before), &group(&after), &[]).is_empty() {
            true => format!("{base} and {other} have no load in common"),
            false => format!(
                "the loads that {base} and {other} have in common have no figure {}; there are {}",
                arguments.metric.join(", "),
                names(&before)
            ),
        }));
    }
    output.text(tables(&compared, &base.name, &other.name).trim_end())?;
    output.text("means with 95 % intervals; ratios of medians, which are robust against a slow window")
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_lab::scenario::{LoadSpec, Scenario, Sweep};

    fn run(stacks: &[&str], value: f64) -> Vec<Measurement> {
        let mut load = LoadSpec::new(Kind::Subscribe);
        load.clients = Some(Sweep::Many(vec![30, 1]));
        load.items = Some(Sweep::Many(vec![1_000, 100_000]));
        load.publishing_ms = Some(Sweep::Many(vec![100.0, 1_000.0]));
        let mut scenario = Scenario::new("clients and items", load);
        scenario.stacks = stacks.iter().map(|&stack| stack.to_owned()).collect();
        let measured = |(condition, repetition): (Condition, u32)| {
            let document = json!({
                "per_second": value * f64::from(repetition + 9),
                "server": {"cpu_us_per_signal": value / f64::from(repetition + 9)},
            });
            Measurement::from_document("", condition, repetition, document)
        };
        let conditions = scenario.conditions();
        (0..3).flat_map(|at| conditions.clone().into_iter().map(move |it| (it, at))).map(measured).collect()
    }

    #[test]
    fn loads_are_distinguishable_in_a_hundred_columns() {
        let (before, after) = (run(&["own", "async-opcua"], 123_456.7), run(&["own", "async-opcua"], 9.87));
        let compared = compared(&group(&before), &group(&after), &[]);
        assert_eq!(compared.len(), 2 * 16);
        let text = tables(&compared, "the run before that change", "the run after that change");
        assert!(text.lines().all(|line| line.chars().count() <= 100) && !text.contains('…'), "{text}");
        for metric in ["server.cpu_us_per_signal of", "per_second of"] {
            let rows = text.split(metric).nth(1).unwrap();
            let row = rows.lines().nth(3).unwrap_or_default();
            assert!(rows.contains("\ntaktwerk, clients=1, "), "{row} in {text}");
        }
        assert!(!text.contains("kind=subscribe, clients"), "{text}");
        assert!(text.contains("lower"));
    }

    #[test]
    fn two_stacks_are_compared_and_named() {
        let (before, after) = (run(&["own"], 2.0), run(&["open62541"], 4.0));
        let compared = compared(&group(&before), &group(&after), &["per_second".to_owned()]);
        assert_eq!(compared.len(), 8);
        assert_eq!(compared[0].document()["other_condition"]["stack"], "open62541");
        let text = tables(&compared, "a", "b");
        assert!(text.contains("a: taktwerk") && text.contains("b: open62541"), "{text}");
        assert!(text.contains("clients=1, items=1000, ") && !text.contains("taktwerk, clients"), "{text}");
    }

    #[test]
    fn two_repetitions_that_vary_show_no_difference() {
        let verdict = |before: [f64; 2], after: [f64; 2]| {
            let condition = Scenario::new("x", LoadSpec::new(Kind::Read)).conditions().remove(0);
            let of = |values: [f64; 2]| -> Vec<Measurement> {
                let one = |(at, value): (usize, f64)| {
                    let document = json!({"latency": {"uncorrected": {"p50_us": value}}});
                    Measurement::from_document("", condition.clone(), at as u32, document)
                };
                values.into_iter().enumerate().map(one).collect()
            };
            let (before, after) = (of(before), of(after));
            compared(&group(&before), &group(&after), &[])[0].verdict()
        };
        // The ranges do not overlap, but that happens in one of three pairs without any difference.
        assert_eq!(verdict([100.0, 103.0], [104.0, 108.0]), "no difference shown");
        assert_eq!(verdict([100.0, 103.0], [204.0, 208.0]), "higher");
    }

    #[test]
    fn different_servers_are_different_loads() {
        let mut load = LoadSpec::new(Kind::Update);
        load.threads = Some(1.into());
        let of = |signals: u32, span: f64| {
            let mut scenario = Scenario::new("burger-threads", load.clone());
            scenario.server.signals = signals;
            let document = json!({"run_span": {"p50_us": span}});
            Measurement::from_document("burger-threads", scenario.conditions().remove(0), 0, document)
        };
        let (before, after) = ([of(100, 1.0), of(200_000, 1_000.0)], [of(200_000, 1_000.0), of(100, 1.0)]);
        let compared = compared(&group(&before), &group(&after), &[]);
        assert_eq!(compared.len(), 2);
        assert!(compared.iter().all(|one| (one.ratio - 1.0).abs() < 1e-9));
        assert_eq!(compared[0].verdict(), "measured once");
        assert!(compared[0].document()["ratio_ci95"].is_null());
        assert!(tables(&compared, "a", "b").contains("signals=200000"));
    }
}
