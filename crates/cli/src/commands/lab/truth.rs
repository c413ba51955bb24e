//! `lab truth`: measures loads and simulates the same loads.

use super::session::{self, SessionArgs, Task};
use crate::commands::sim::{self, Origin};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use taktwerk_lab::machine::Machine;
use taktwerk_lab::measurement::{Group, Measurement, group};
use taktwerk_lab::truth::{self, Extent, LINKS, Pair, Summary};
use taktwerk_model::HostProfile;
use taktwerk_sim::scenario::RunError;

/// Name of the measurements in the store.
const DATA: &str = "truth";

/// Arguments of `taktwerk lab truth`.
#[derive(Debug, Args)]
#[command(after_long_help = format!(
    "{}\n\nExit code 5: more than a fifth of the measurements are invalid; 99: an error is larger than allowed.",
    crate::examples::LAB_TRUTH
))]
pub(crate) struct TruthArgs {
    /// Links, separated by commas; loopback is this machine without a link.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    links: Option<Vec<String>>,

    /// Seconds of each measurement; twice as long over links below 20 Mbit/s.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.8)]
    window: f64,

    /// How often each load is measured.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: u32,

    /// Use this host profile (`lab calibrate --host`) instead of measuring one first.
    #[arg(long, value_name = "FILE")]
    host_profile: Option<PathBuf>,

    /// Measure nothing: compare the measurements of these runs of `lab truth` (names or numbers, separated by commas) with the
    /// host profile.
    #[arg(
        long,
        value_name = "RUNS",
        value_delimiter = ',',
        requires = "host_profile",
        conflicts_with_all = ["links", "window", "repetitions", "quick", "name", "resume", "stream", "program", "tui"]
    )]
    stored: Vec<String>,

    /// Measure and simulate as little as possible, as a smoke test.
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    session: SessionArgs,
}

/// Measures, simulates and compares.
pub(crate) fn run(arguments: &TruthArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    arguments.session.check(output)?;
    if !(0.1..=600.0).contains(&arguments.window) {
        return Err(Failure::Usage(format!("--window {}: write 0.1 to 600 seconds", arguments.window)));
    }
    if !arguments.stored.is_empty() {
        let profile = match &arguments.host_profile {
            Some(path) => profile(path, Origin::ThisBuild)?,
            None => return Err(Failure::Usage("--stored needs --host-profile".to_owned())),
        };
        let (run, mut measurements) = stored(arguments)?;
        measurements.retain(|one| one.experiment == DATA);
        return compare(run, &measurements, &profile, Vec::new(), output, interrupt);
    }
    let extent = Extent { window_s: arguments.window, repetitions: arguments.repetitions };
    let place = super::place(arguments.session.program.as_ref())?.with_stop(interrupt.flag());
    let (conditions, skipped) = truth::conditions(&links(arguments), extent);
    // The state of the machine drifts, so the measurements that correct the prices are interleaved with the loads that
    // are compared.
    let tellers = match &arguments.host_profile {
        Some(_) => Vec::new(),
        None => taktwerk_lab::host::conditions(super::host::extent(arguments.quick)),
    };
    let named = |name: &'static str| move |condition| (name.to_owned(), condition);
    let conditions: Vec<_> = conditions
        .into_iter()
        .map(named(DATA))
        .chain(tellers.iter().cloned().map(named(super::host::DATA)))
        .collect();
    for (_, condition) in &conditions {
        place.check(condition).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    if !Machine::this().optimised {
        tracing::warn!("this is a debug build: its results are not valid for a release");
    }
    let mut profile = match &arguments.host_profile {
        Some(path) => profile(path, Origin::ThisMachine)?,
        None => super::host::parts(arguments.quick, interrupt)?.profile,
    };
    let task = Task { what: DATA, quick: arguments.quick, conditions: &conditions, notes: &[], within: None };
    let finished = session::measure(&arguments.session, &task, &place, interrupt)?;
    let (measurements, told): (Vec<_>, Vec<_>) =
        finished.measurements.into_iter().partition(|one| one.experiment == DATA);
    if !tellers.is_empty() {
        super::host::correct(&mut profile, &tellers, &told);
    }
    compare(finished.run, &measurements, &profile, skipped, output, interrupt)
}

fn profile(path: &Path, origin: Origin) -> Result<HostProfile, Failure> {
    sim::profile(Path::new(""), path, origin)
        .map_err(|error| Failure::Usage(format!("--host-profile: {error}")))
}

/// The measurements of stored runs, and the number of the first run.
fn stored(arguments: &TruthArgs) -> Result<(i64, Vec<Measurement>), Failure> {
    let store = arguments.session.store.open_to_read()?;
    let (mut first, mut all) = (None, Vec::new());
    for wanted in &arguments.stored {
        let run = store.choose(Some(wanted))?;
        if run.what != DATA {
            return Err(Failure::Usage(format!(
                "--stored {wanted}: this run is of {:?}. Name runs of `taktwerk lab truth`; `taktwerk lab runs` lists them",
                run.what
            )));
        }
        first.get_or_insert(run.id);
        all.extend(store.measurements(run.id)?);
    }
    Ok((first.unwrap_or_default(), all))
}

/// Simulates the measured loads, and reports the errors.
fn compare(
    run: i64,
    measurements: &[Measurement],
    profile: &HostProfile,
    mut skipped: Vec<String>,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let failed = measurements.iter().filter(|one| !one.is_valid()).count();
    let groups = group(measurements);
    for invalid in groups.iter().flat_map(|group| &group.invalid) {
        skipped.push(format!("{}: {}", invalid.condition.label(), invalid.invalid.join("; ")));
    }
    let pairs = pairs(&groups, profile, interrupt)?;
    let outcome = truth::outcome(&pairs, skipped.clone());
    if output.is_json() {
        output.document(&json!({
            "run": run,
            "profile": profile,
            "pairs": pairs,
            "summary": Summary::of(&pairs),
            "findings": outcome.findings,
            "skipped": skipped,
        }))?;
    } else {
        output.text(outcome.text().trim_end())?;
    }
    let all = measurements.len();
    if failed * 5 > all {
        return Err(Failure::InvalidReported(format!("{failed} of {all} measurements are invalid")));
    }
    super::judged(&outcome.findings)
}

fn links(arguments: &TruthArgs) -> Vec<Option<String>> {
    match &arguments.links {
        Some(links) => links.iter().map(|link| (link != "loopback").then(|| link.clone())).collect(),
        None => LINKS.iter().map(|link| link.map(str::to_owned)).collect(),
    }
}

/// The number of a load and its result; `None` if nothing was measured.
type Compared = (usize, Result<Option<Pair>, Failure>);

/// Simulates all loads in parallel, and compares.
fn pairs(groups: &[Group<'_>], profile: &HostProfile, interrupt: &Interrupt) -> Result<Vec<Pair>, Failure> {
    let mut bar = Progress::new("simulating", groups.len() as u64);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found: Mutex<Vec<Compared>> = Mutex::default();
    let work = || {
        while let Some((at, group)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            groups.get(at).map(|group| (at, group))
        } {
            let pair = pair(group, profile, at as u64, interrupt);
            done.fetch_add(1, Ordering::Relaxed);
            found.lock().unwrap_or_else(PoisonError::into_inner).push((at, pair));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(groups.len().max(1));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            bar.at(done.load(Ordering::Relaxed) as u64);
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().filter_map(|(_, pair)| pair.transpose()).collect()
}

fn pair(
    group: &Group<'_>,
    profile: &HostProfile,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Option<Pair>, Failure> {
    let Some(measured) = group.valid.first() else { return Ok(None) };
    let late = truth::lateness(measured);
    let predicted = truth::predict(group.condition, profile, late, seed, &mut |_| !interrupt.asked());
    match predicted {
        Ok(predicted) => Ok(truth::evaluate(group, &predicted)),
        Err(truth::PredictError::Run(RunError::Stopped)) => Err(Failure::Interrupted),
        Err(error) => Err(Failure::Simulation(format!("{}: {error}", group.condition.label()))),
    }
}
