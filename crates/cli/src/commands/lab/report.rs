//! `lab report`: writes the report of a stored run again.

use super::session;
use crate::failure::Failure;
use crate::output::Output;
use crate::overwrite::Overwrite;
use crate::text_file;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use taktwerk_lab::energy::Current;
use taktwerk_lab::experiment;
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::outcome::Outcome;
use taktwerk_lab::report::page;
use taktwerk_lab::store::Run;
use taktwerk_load::result::Figure;

/// Arguments of `taktwerk lab report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Name or number of the run. Default: the last complete one.
    #[arg(value_name = "RUN")]
    run: Option<String>,

    /// Where to write the report. Default: taktwerk-report.html, or taktwerk-report-2.html and so on if it exists.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Recording of a current sensor in the server's supply: lines of seconds since 1970 and amperes, separated by a
    /// comma.
    #[arg(long, value_name = "FILE")]
    current: Option<PathBuf>,

    /// Voltage of that supply.
    #[arg(long, value_name = "VOLTS", default_value_t = 5.0, requires = "current")]
    volts: f64,

    #[command(flatten)]
    store: super::StoreArgs,
}

/// Adds mean current and energy to the measurements that the recording covers. Returns their number.
fn supply(measurements: &mut [Measurement], current: &Current, volts: f64) -> usize {
    let mut covered = 0;
    for one in measurements {
        let Some((start, window)) = one.get(Figure::STARTED_UNIX_MS).zip(one.get(Figure::WINDOW_S)) else {
            continue;
        };
        let start = start / 1e3;
        if let Some(ampere) = current.mean(start, start + window) {
            one.metrics.insert(Figure::SUPPLY_AMPERE.name().to_owned(), ampere);
            one.metrics.insert(Figure::SUPPLY_JOULE.name().to_owned(), ampere * volts * window);
            covered += 1;
        }
    }
    covered
}

/// The outcomes of all experiments and scenarios that a run has data for.
pub(super) fn outcomes(run: &Run, measurements: &[Measurement]) -> Vec<Outcome> {
    let has = |data: &str| measurements.iter().any(|one| one.experiment == data);
    let mut outcomes: Vec<Outcome> = experiment::all()
        .into_iter()
        .filter(|one| has(one.data()))
        .map(|one| experiment::evaluate(one, measurements, &run.notes))
        .collect();
    let is_simulated = |id: &str| run.notes.contains(&super::reproduce::simulated_note(id));
    let simulated = experiment::all().into_iter().filter(|one| one.is_simulated() && is_simulated(one.id()));
    outcomes.extend(simulated.map(|one| experiment::simulate(one, run.quick)));
    if let Some(outcome) = super::scenario::outcome(measurements) {
        outcomes.push(outcome);
    }
    outcomes
}

/// The default file name.
const DEFAULT: &str = "taktwerk-report.html";

/// Where to write the report, after checking that it can be written.
pub(super) fn destination(named: Option<&Path>, overwrite: Overwrite) -> Result<PathBuf, Failure> {
    let path = named.map_or_else(|| overwrite.free(Path::new(DEFAULT)), Path::to_owned);
    session::can_write(&path, overwrite)?;
    Ok(path)
}

/// Writes the page.
pub(super) fn write(path: &Path, run: &Run, outcomes: &[Outcome]) -> Result<(), Failure> {
    session::write_whole(path, &page(run, outcomes))
}

/// Writes the report again.
pub(crate) fn run(arguments: &ReportArgs, output: Output) -> Result<(), Failure> {
    let path = destination(arguments.output.as_deref(), arguments.overwrite)?;
    let store = arguments.store.open_to_read()?;
    let run = store.choose(arguments.run.as_deref())?;
    let mut measurements = store.measurements(run.id)?;
    if let Some(path) = &arguments.current {
        let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", path.display()));
        let text = taktwerk_config::file::read_text(path, text_file::RECORDING_LEN_MAX);
        let text = text.map_err(|error| wrong(&error))?;
        let current = Current::parse(&text).map_err(|error| wrong(&error))?;
        if supply(&mut measurements, &current, arguments.volts) == 0 {
            return Err(wrong(
                &"it covers none of this run's measurements: are its times seconds since 1970, UTC?",
            ));
        }
    }
    let outcomes = outcomes(&run, &measurements);
    write(&path, &run, &outcomes)?;
    if output.is_json() {
        return output.document(&json!({"run": run, "outcomes": outcomes, "report": path}));
    }
    session::wrote(output, &path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_lab::scenario::{Kind, LoadSpec, Scenario};

    #[test]
    fn a_record_of_the_supply_is_added_to_what_it_covers() {
        let condition = Scenario::new("x", LoadSpec::new(Kind::Read)).conditions().remove(0);
        let make = |started: u64| {
            let document = json!({"started_unix_ms": started, "window_s": 2.0});
            Measurement::from_document("morato-power", condition.clone(), 0, document)
        };
        let mut measurements = [make(1_000_000), make(9_000_000)];
        let current = Current::parse("time,ampere\n999,0.4\n1003,0.4").unwrap();
        assert_eq!(supply(&mut measurements, &current, 5.0), 1);
        assert!((measurements[0].get(Figure::SUPPLY_JOULE).unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(measurements[1].get(Figure::SUPPLY_AMPERE), None);
    }
}
