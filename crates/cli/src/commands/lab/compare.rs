//! `lab compare`: two runs, condition by condition, with intervals.

use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use taktwerk_lab::figures;
use taktwerk_lab::measurement::{Group, group};
use taktwerk_lab::outcome::interval;
use taktwerk_lab::scenario::{Condition, Kind};
use taktwerk_lab::statistics::median_ratio;
use taktwerk_lab::table::{Align, Table};

/// Arguments of `taktwerk lab compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The run that is compared with.
    #[arg(value_name = "BASE")]
    base: String,

    /// The run that is compared.
    #[arg(value_name = "RUN")]
    other: String,

    /// Figures to compare, such as server.cpu_percent; by default what matters for each load.
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,

    #[command(flatten)]
    store: super::StoreArgs,
}

/// What matters for a load.
fn usual(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Subscribe => &["server.cpu_us_per_signal", "per_second"],
        Kind::Read | Kind::Write | Kind::Browse => {
            &["latency.uncorrected.p50_us", "latency.uncorrected.p99_us"]
        }
        Kind::Probe => &["latency.corrected.p50_us", "latency.corrected.p99_us"],
        Kind::Connect => &["latency.uncorrected.p50_us", "per_second"],
        Kind::Roundtrip => &["roundtrip.p50_us", "roundtrip.p99_us"],
        Kind::Fan => &["transaction.p50_us", "transaction.max_us"],
        Kind::Update => &["run_span.p50_us"],
        Kind::Igmp => &["snooping.unjoined_percent"],
        Kind::PubSub => &["publisher_cpu_ns_per_signal", "lateness.p99_us", "delivery.p50_us"],
    }
}

/// The stack of a run that measured only one.
fn only_stack<'a>(groups: &[Group<'a>]) -> Option<&'a str> {
    let first = groups.first()?.condition.stack.as_str();
    groups.iter().all(|group| group.condition.stack == first).then_some(first)
}

/// What a load is, with or without the stack that it is put on.
fn load(condition: &Condition, stacks_differ: bool) -> BTreeMap<String, String> {
    let mut factors = condition.factors();
    if stacks_differ {
        factors.remove("stack");
    }
    factors
}

/// Compares them.
pub(crate) fn run(arguments: &CompareArgs, output: Output) -> Result<(), Failure> {
    let store = arguments.store.open()?;
    let (base, other) = (store.choose(Some(&arguments.base))?, store.choose(Some(&arguments.other))?);
    let (before, after) = (store.measurements(base.id)?, store.measurements(other.id)?);
    let (before, after) = (group(&before), group(&after));
    let mut table = Table::new(&[
        ("load", Align::Left),
        ("figure", Align::Left),
        (base.name.as_str(), Align::Right),
        (other.name.as_str(), Align::Right),
        ("ratio", Align::Right),
        ("95 % interval", Align::Right),
        ("", Align::Left),
    ]);
    let mut documents = Vec::new();
    // Two runs of one stack each are compared across them: that is what somebody wants who measured two.
    let stacks_differ = match (only_stack(&before), only_stack(&after)) {
        (Some(one), Some(two)) => one != two,
        _ => false,
    };
    for old in &before {
        let same = |new: &&Group<'_>| {
            let (a, b) = (old.condition, new.condition);
            a.kind == b.kind && a.scenario == b.scenario && load(a, stacks_differ) == load(b, stacks_differ)
        };
        let Some(new) = after.iter().find(same) else { continue };
        let usual = usual(old.condition.kind).iter().map(|&name| name.to_owned());
        let names: Vec<String> =
            if arguments.metric.is_empty() { usual.collect() } else { arguments.metric.clone() };
        for name in names {
            let (Some(one), Some(two)) = (old.metric(&name), new.metric(&name)) else { continue };
            let Some((ratio, (low, high))) = median_ratio(&two.values, &one.values) else { continue };
            let verdict = if low > 1.0 {
                "higher"
            } else if high < 1.0 {
                "lower"
            } else {
                "no difference shown"
            };
            table.row([
                old.condition.label(),
                name.clone(),
                interval(Some(&one)),
                interval(Some(&two)),
                figures::number(ratio),
                format!("{} to {}", figures::number(low), figures::number(high)),
                verdict.to_owned(),
            ]);
            documents.push(json!({
                "condition": old.condition.factors(),
                "scenario": old.condition.scenario,
                "metric": name,
                "base": one,
                "other": two,
                "ratio": ratio,
                "ratio_ci95": [low, high],
                "verdict": verdict,
            }));
        }
    }
    let is_other_machine = base.fingerprint.get("machine") != other.fingerprint.get("machine");
    if is_other_machine {
        tracing::warn!(
            "the two runs were made on machines that differ: only ratios within each of them mean anything"
        );
    }
    if output.is_json() {
        return output.document(&json!({
            "base": base, "other": other, "same_machine": !is_other_machine, "comparisons": documents
        }));
    }
    if documents.is_empty() {
        return Err(Failure::Usage(format!("{} and {} have no load in common", base.name, other.name)));
    }
    output.text(&table.to_string())
}
