//! `lab report`: the page of a run, written again from what is kept.

use super::session;
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use taktwerk_lab::experiment;
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::outcome::Outcome;
use taktwerk_lab::report::page;
use taktwerk_lab::store::Run;

/// Arguments of `taktwerk lab report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Name or number of the run; the last complete one by default.
    #[arg(value_name = "RUN")]
    run: Option<String>,

    /// Where to write it.
    #[arg(long, short, value_name = "FILE", default_value = "taktwerk-report.html")]
    output: PathBuf,

    #[command(flatten)]
    store: super::StoreArgs,
}

/// The outcomes of all experiments that a run has data for, and of scenarios in it.
pub(super) fn outcomes(run: &Run, measurements: &[Measurement]) -> Vec<Outcome> {
    let has = |data: &str| measurements.iter().any(|one| one.experiment == data);
    let mut outcomes: Vec<Outcome> = experiment::all()
        .into_iter()
        .filter(|one| has(one.data()))
        .map(|one| experiment::evaluate(one, measurements, &run.notes))
        .collect();
    if let Some(outcome) = super::scenario::outcome(measurements, &run.what) {
        outcomes.push(outcome);
    }
    outcomes
}

/// Writes the page.
pub(super) fn write(path: &Path, run: &Run, outcomes: &[Outcome]) -> Result<(), Failure> {
    session::write_whole(path, &page(run, outcomes))
}

/// Writes it again.
pub(crate) fn run(arguments: &ReportArgs, output: Output) -> Result<(), Failure> {
    let store = arguments.store.open()?;
    let run = store.choose(arguments.run.as_deref())?;
    let measurements = store.measurements(run.id)?;
    let outcomes = outcomes(&run, &measurements);
    write(&arguments.output, &run, &outcomes)?;
    if output.is_json() {
        return output.document(&json!({"run": run, "outcomes": outcomes, "report": arguments.output}));
    }
    session::wrote(output, &arguments.output)
}
