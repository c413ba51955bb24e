//! `taktwerk sim`: simulates a plant in virtual time.

mod records;
mod shortest;

use crate::failure::Failure;
use crate::hosts;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::overwrite::Overwrite;
use crate::progress::Progress;
use crate::text_file;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use taktwerk_lab::machine::Machine;
use taktwerk_lab::outcome::Outcome;
use taktwerk_lab::report::{SIMULATION, page};
use taktwerk_lab::simulate::seeds::Failed;
use taktwerk_lab::simulate::study::Options;
use taktwerk_lab::simulate::{Run, Study, figures, run_all};
use taktwerk_lab::store;
use taktwerk_model::HostProfile;
use taktwerk_model::host::ProfileError;
use taktwerk_sim::Costs;
use taktwerk_sim::scenario::RunError;

/// Text after the examples of `--help`.
const EXPLAINED: &str = "\
The file:
  [[host]], [[link]], [[authority]], [[server]], [[client]], [[publisher]], [[subscriber]], [[broker]] and [[fault]]
  describe a plant (docs/simulator.md).
  Scenarios of `taktwerk lab run` and plants of `taktwerk size` and `taktwerk tune` work too.

Exit codes:
  5 a promise of the software is broken, or clients got no session; 99 a [[threshold]] does not hold.";

/// Arguments of `taktwerk sim`.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{}\n\n{EXPLAINED}", crate::examples::SIM))]
pub(crate) struct SimArgs {
    /// Plant or scenario to simulate (TOML).
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Change a value of the file, such as client.0.publishing_ms=50. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// How many seeds to run. More seeds give narrower intervals.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: u32,

    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write a report (HTML).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write what happens, for Perfetto (ui.perfetto.dev): first seed, first case.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write the packets of a link, for Wireshark: first seed, first case. Can be repeated.
    #[arg(long, value_name = "LINK=FILE", value_parser = records::parse_capture)]
    pcap: Vec<records::CaptureOf>,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Processor costs for all servers and clients without a [[host]]: a file of `taktwerk lab calibrate --host`, or
    /// epyc-vm, which comes with taktwerk.
    #[arg(long, visible_alias = "profile", value_name = "FILE")]
    host_profile: Option<PathBuf>,

    /// Use host profiles of other builds too.
    #[arg(long)]
    any_build: bool,

    /// Threads that simulate. The results do not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Simulates and prints the result.
pub(crate) fn run(arguments: &SimArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let study = read(arguments)?;
    records::check(arguments, &study)?;
    let seeds: Vec<u64> = (0..u64::from(arguments.seeds)).map(|at| arguments.seed.wrapping_add(at)).collect();
    let threads =
        arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let started = SystemTime::now();
    let mut bar = Progress::new("simulating", 0);
    let mut report = |done: u64, expected: u64| {
        bar.of("simulating, virtual milliseconds", done, expected);
        !interrupt.asked()
    };
    let instruments = records::instruments(arguments, &study)?;
    let runs = run_all(&study.cases, &seeds, threads, instruments, &mut report);
    drop(bar);
    let runs = runs.map_err(|failed| failure(arguments, &study, &failed, interrupt))?;
    let outcome = figures::outcome(&study, &runs);
    if output.is_json() {
        output.document(&document(&study, &runs))?;
    } else {
        output.text(outcome.text().trim_end())?;
    }
    if let Some(path) = &arguments.report {
        write_report(path, &study, &runs, &outcome, started)?;
    }
    let captured = arguments.pcap.iter().map(|capture| &capture.file);
    if !output.is_json() {
        for path in arguments.report.iter().chain(&arguments.trace).chain(captured) {
            output.text(&format!("\nwrote {}", path.display()))?;
        }
    }
    let broken = figures::broken(&study, &runs);
    if broken.is_empty() { Ok(()) } else { Err(Failure::Threshold(broken.join("; "))) }
}

fn read(arguments: &SimArgs) -> Result<Study, Failure> {
    let file = arguments.file.display().to_string();
    let text = text_file::read(&arguments.file)?;
    let directory = arguments.file.parent().unwrap_or_else(|| Path::new(""));
    let origin = Origin::of_build(arguments.any_build);
    let profiles = |name: &str| profile(directory, Path::new(name), origin);
    let own = arguments.host_profile.as_ref().map(|path| profile(Path::new(""), path, origin)).transpose();
    let options =
        Options { sets: arguments.set.clone(), profiles: &profiles, profile: own.map_err(Failure::Usage)? };
    Study::parse(&text, &file, &options).map_err(|error| Failure::Usage(error.to_string()))
}

/// Where a host profile may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From any version, with a warning.
    AnyBuild,
    /// From this version.
    ThisBuild,
    /// From this version and machine: it is compared with measurements here.
    ThisMachine,
}

impl Origin {
    pub(crate) fn of_build(any: bool) -> Self {
        if any { Self::AnyBuild } else { Self::ThisBuild }
    }
}

/// Reads a host profile: a file in this directory, or a built-in host.
pub(crate) fn profile(directory: &Path, path: &Path, origin: Origin) -> Result<HostProfile, String> {
    let file = path.display();
    let text = hosts::read(directory, path, hosts::Kind::Profile)?;
    let told = |error: ProfileError| error.within(&file, &text);
    let profile = HostProfile::parse(&text).map_err(told)?;
    // Counter names are checked here, where the file name is known.
    Costs::new(&profile).map_err(told)?;
    let cpu = (origin == Origin::ThisMachine).then(|| Machine::this().cpu);
    match profile.check_origin(env!("CARGO_PKG_VERSION"), cpu.as_deref()).map_err(told) {
        Err(error) if origin == Origin::AnyBuild => {
            tracing::warn!("{error}");
            Ok(profile)
        }
        Err(error) if origin == Origin::ThisBuild => Err(format!("{error}. Or pass --any-build")),
        Err(error) => Err(error),
        Ok(()) => Ok(profile),
    }
}

fn failure(arguments: &SimArgs, study: &Study, failed: &Failed, interrupt: &Interrupt) -> Failure {
    match &failed.error {
        RunError::Invalid { key, problem } => Failure::Usage(study.at(key, problem).to_string()),
        RunError::Stopped => Failure::Interrupted,
        RunError::Record(_) => Failure::Environment(failed.error.to_string()),
        RunError::Broken(_) => {
            let script = shortest::script(study, failed, interrupt);
            let (file, seed) = (arguments.file.display(), failed.seed);
            let again = format!("run it again with `taktwerk sim {file} --seeds 1 --seed {seed}`");
            Failure::Simulation(format!("{failed}\n{script}\n{again}"))
        }
        _ => Failure::Simulation(failed.to_string()),
    }
}

fn document(study: &Study, runs: &[Run]) -> serde_json::Value {
    let cases: Vec<serde_json::Value> = study
        .cases
        .iter()
        .enumerate()
        .map(|(at, case)| json!({"label": case.label, "figures": figures::summaries(at, &case.scenario, runs)}))
        .collect();
    let events: u64 = runs.iter().map(|run| run.outcome.events).sum();
    let simulated: f64 = runs.iter().map(|run| run.outcome.simulated).sum();
    let took: f64 = runs.iter().map(|run| run.took.as_secs_f64()).sum();
    let seeds: std::collections::BTreeSet<u64> = runs.iter().map(|run| run.seed).collect();
    json!({
        "name": study.name,
        "notes": figures::remarks(study),
        "seeds": seeds,
        "cases": cases,
        "events": events,
        "simulated_s": simulated,
        "core_s": took,
        "memory_peak_bytes": figures::memory_peak(),
    })
}

fn write_report(
    path: &Path,
    study: &Study,
    runs: &[Run],
    outcome: &Outcome,
    started: SystemTime,
) -> Result<(), Failure> {
    let unix_ms = |time: SystemTime| {
        time.duration_since(UNIX_EPOCH).map_or(0, |span| i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
    };
    let run = store::Run {
        id: 0,
        name: SIMULATION.to_owned(),
        what: format!("simulation of {}", study.name),
        quick: false,
        started_unix_ms: unix_ms(started),
        finished_unix_ms: Some(unix_ms(SystemTime::now())),
        state: store::State::Complete,
        fingerprint: json!({"version": env!("CARGO_PKG_VERSION"), "machine": Machine::this()}),
        notes: Vec::new(),
        measurements: runs.len() as u64,
        invalid: 0,
    };
    let page = page(&run, std::slice::from_ref(outcome));
    super::lab::write_whole(path, &page)
}
