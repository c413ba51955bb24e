//! `lab list`: lists the published experiments.

use super::session::span;
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use taktwerk_lab::experiment::{self, Wish};
use taktwerk_lab::scenario;
use taktwerk_lab::table::{Align, Table};

/// Arguments of `taktwerk lab list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Stacks to measure, separated by commas. Default: all installed ones.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    stacks: Option<Vec<String>>,
}

/// Lists the experiments.
pub(crate) fn run(arguments: &ListArgs, output: Output) -> Result<(), Failure> {
    let place = super::place(None)?;
    let stacks = super::reproduce::stacks(arguments.stacks.as_ref(), &place)?;
    let mut table = Table::new(&[
        ("id", Align::Left),
        ("short form", Align::Right),
        ("full form", Align::Right),
        ("question", Align::Wrap),
    ]);
    let mut documents = Vec::new();
    let (mut everything, mut whole) = (Vec::new(), Vec::new());
    for experiment in experiment::all() {
        let wish = |quick| Wish { quick, stacks: stacks.clone(), place: &place };
        let seconds = |quick| scenario::seconds(&experiment.plan(&wish(quick)).conditions);
        if experiment.data() == experiment.id() && experiment.missing().is_none() {
            everything.extend(experiment.plan(&wish(true)).conditions);
            whole.extend(experiment.plan(&wish(false)).conditions);
        }
        let full = match (experiment.missing(), experiment.data() == experiment.id()) {
            (None, true) if !experiment.is_simulated() => span(seconds(false)),
            _ => String::new(),
        };
        let cost = match (experiment.missing(), experiment.data() == experiment.id()) {
            (None, _) if experiment.is_simulated() => "simulated".to_owned(),
            (Some(_), _) => "not yet".to_owned(),
            (None, true) => span(seconds(true)),
            (None, false) => format!("with {}", experiment.data()),
        };
        table.row([experiment.id(), &cost, &full, experiment.question()]);
        documents.push(json!({
            "id": experiment.id(),
            "question": experiment.question(),
            "source": experiment.source(),
            "data": experiment.data(),
            "missing": experiment.missing(),
            "simulated": experiment.is_simulated(),
            "quick_seconds": seconds(true),
            "full_seconds": seconds(false),
            "skipped": experiment.plan(&wish(true)).skipped,
        }));
    }
    if output.is_json() {
        return output.document(&json!({
            "stacks": stacks,
            "experiments": documents,
            "quick_seconds": scenario::seconds(&everything),
            "full_seconds": scenario::seconds(&whole),
        }));
    }
    output.text(&table.to_string())?;
    output.text(&format!("stacks: {}", stacks.join(", ")))?;
    let (short, full) = (span(scenario::seconds(&everything)), span(scenario::seconds(&whole)));
    output.text(&format!("the short form of all: {short}; the full form: {full}"))
}
