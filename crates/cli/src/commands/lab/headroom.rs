//! `lab headroom`: a load ramp on one server, with predicted and measured CPU.

use super::session::{self, SessionArgs, Task};
use crate::commands::model;
use crate::failure::Failure;
use crate::hosts;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use taktwerk_client::{ClientConfig, ClientError, Target};
use taktwerk_lab::machine::Machine;
use taktwerk_lab::model::Model;
use taktwerk_lab::orphans;
use taktwerk_lab::pin::CpuList;
use taktwerk_lab::place::Place;
use taktwerk_lab::program::{Program, Running};
use taktwerk_lab::ramp::{self, INTERVAL_MS, Reading, Repeated, Step, VARIABLES};
use taktwerk_load::result::Figure;
use taktwerk_net::client::BlockingClient;
use taktwerk_schema::{ReadRequest, ReadValueId};
use taktwerk_types::{NodeId, Variant};

/// Name of the calibration in the store.
const DATA: &str = "headroom";
/// Timeout for the start of the server.
const START: Duration = Duration::from_secs(60);
/// Interval at which the headroom is read.
const LOOK: Duration = Duration::from_millis(250);
/// The attribute Value (Part 6 Annex A).
const VALUE: u32 = 13;

/// Arguments of `taktwerk lab headroom`.
#[derive(Debug, Args)]
#[command(after_long_help = format!(
    "{}\n\nExit code 5: no model could be fitted, or no step gave a figure; 99: a prediction is off by more than allowed.",
    crate::examples::LAB_HEADROOM
))]
pub(crate) struct HeadroomArgs {
    /// Steps of the ramp.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100))]
    steps: u32,

    /// Predicted CPU of the last step, percent of a core.
    #[arg(long, value_name = "PERCENT", default_value_t = 80.0)]
    until: f64,

    /// Ramps, each with a server of its own. The verdict is open if they disagree about a step.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    ramps: u32,

    /// Seconds of each step.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    window: f64,

    /// Use these cost models (`model fit -o`) instead of measuring some first.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    #[command(flatten)]
    session: SessionArgs,
}

/// A file that is deleted when dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // The file may not exist.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Calibrates, starts a server, and runs the ramps.
pub(crate) fn run(arguments: &HeadroomArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    arguments.session.check(output)?;
    if !(3.0..=600.0).contains(&arguments.window) {
        return Err(Failure::Usage(format!("--window {}: write 3 to 600 seconds", arguments.window)));
    }
    if !(arguments.until > 0.0 && arguments.until <= 100.0) {
        return Err(Failure::Usage(format!(
            "--until {}: write more than 0, and at most 100",
            arguments.until
        )));
    }
    if !Machine::this().optimised {
        tracing::warn!("this is a debug build: its results are not valid for a release");
    }
    let place = super::place(arguments.session.program.as_ref())?.with_stop(interrupt.flag());
    let models = match &arguments.model {
        Some(path) => hosts::models(Path::new(""), path)?,
        None => calibrate(arguments, &place, interrupt)?,
    };
    let own = models.iter().find(|one| one.stack == "own").ok_or_else(|| {
        Failure::Usage("the file contains no model of taktwerk: run this command without --model".to_owned())
    })?;
    let directory = std::env::temp_dir();
    let file = Temporary(directory.join(format!("taktwerk-headroom-{}.json", orphans::mark())));
    session::write_whole(
        &file.0,
        &serde_json::to_string(&models)
            .map_err(|error| Failure::Environment(format!("cannot write the model: {error}")))?,
    )?;
    let (mut steps, mut skipped) = (Vec::new(), Vec::new());
    let mut bar = Progress::new("steps of all ramps", u64::from(arguments.ramps * arguments.steps));
    for number in 1..=arguments.ramps {
        tracing::info!("ramp {number} of {}", arguments.ramps);
        // A new server for each ramp, so that learned prices do not carry over.
        let server = start(arguments, &place, &file)?;
        let done = u64::from((number - 1) * arguments.steps);
        let on_step = |step: u32| bar.at(done + u64::from(step));
        ramp(arguments, (&place, own, &server), interrupt, (&mut steps, &mut skipped), on_step)?;
    }
    drop(bar);
    let steps: Vec<Repeated> = ramp::repeated(&steps, arguments.ramps);
    let outcome = ramp::outcome(&steps, arguments.steps, skipped.clone());
    if output.is_json() {
        let findings = &outcome.findings;
        output.document(&json!({"model": own, "steps": steps, "findings": findings, "skipped": skipped}))?;
    } else {
        output.text(outcome.text().trim_end())?;
    }
    if steps.is_empty() {
        return Err(Failure::InvalidReported(format!("no step has a result: {}", skipped.join("; "))));
    }
    super::judged(&outcome.findings)
}

/// Measures loads other than those of the ramp, and fits a model.
fn calibrate(arguments: &HeadroomArgs, place: &Place, interrupt: &Interrupt) -> Result<Vec<Model>, Failure> {
    let conditions = ramp::calibration(1.5, 3);
    let conditions: Vec<_> = conditions.into_iter().map(|condition| (DATA.to_owned(), condition)).collect();
    let task = Task { what: DATA, quick: true, conditions: &conditions, notes: &[], within: None };
    let finished = session::measure(&arguments.session, &task, place, interrupt)?;
    model::fit_all(&ramp::typical(&finished.measurements)).map_err(|_| {
        let run = finished.run;
        Failure::InvalidReported(format!(
            "too few valid measurements for a model: `taktwerk lab report {run}` says why"
        ))
    })
}

fn start(arguments: &HeadroomArgs, place: &Place, model: &Temporary) -> Result<Running, Failure> {
    let exe = match &arguments.session.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()
            .map_err(|error| Failure::Environment(format!("cannot find this program: {error}")))?,
    };
    let program = Program::new(exe)
        .args(["serve", "--no-plant", "--bind", "127.0.0.1", "--port", "0", "--exit-with-stdin"])
        .args(["--max-sessions", "10000", "--threads", "1", "--signals"])
        .arg(VARIABLES)
        .arg("--update")
        .arg(INTERVAL_MS)
        .arg("--headroom")
        .arg(model.0.display())
        .on(CpuList::single(place.server_cpu()));
    program.serve(START).map_err(|error| Failure::Environment(error.to_string()))
}

fn ramp(
    arguments: &HeadroomArgs,
    (place, model, server): (&Place, &Model, &Running),
    interrupt: &Interrupt,
    (steps, skipped): (&mut Vec<Step>, &mut Vec<String>),
    mut on_step: impl FnMut(u32),
) -> Result<(), Failure> {
    for number in 1..=arguments.steps {
        on_step(number - 1);
        let wanted = arguments.until * f64::from(number) / f64::from(arguments.steps);
        let clients = ramp::clients_for(model, wanted);
        tracing::info!("step {number} of {}: {clients} clients", arguments.steps);
        let Some(condition) = ramp::step(server.url(), clients, arguments.window) else { continue };
        let end = Arc::new(AtomicBool::new(false));
        let reader = {
            let (url, end) = (server.url().to_owned(), Arc::clone(&end));
            thread::spawn(move || readings(&url, &end))
        };
        let measured = place.measure(DATA, &condition, 0);
        end.store(true, Ordering::Relaxed);
        let readings = reader
            .join()
            .map_err(|_| Failure::Environment("the thread that reads the headroom panicked".to_owned()))?;
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        let readings = readings.map_err(|error| {
            Failure::Connect(format!("cannot read the headroom of {}: {error}", server.url()))
        })?;
        let at = format!("{clients} clients");
        let measured = match measured {
            Ok(measured) if measured.is_valid() => measured,
            Ok(measured) => {
                skipped.push(format!("{at}: {}", measured.invalid.join("; ")));
                continue;
            }
            Err(error) => {
                skipped.push(format!("{at}: {error}"));
                continue;
            }
        };
        let from = measured.get(Figure::STARTED_UNIX_MS).unwrap_or(0.0);
        let until = from + measured.get(Figure::WINDOW_S).unwrap_or(0.0) * 1e3;
        let signals = measured.signals_per_s().unwrap_or(0.0);
        let generator = measured.get(Figure::GENERATOR_CPU_PERCENT).unwrap_or(0.0);
        match Step::of((number, clients), (signals, generator), &readings, (from, until)) {
            Some(step) => match step.problem() {
                Some(problem) => skipped.push(format!("{at}: {problem}")),
                None => steps.push(step),
            },
            None => skipped.push(format!("{at}: the headroom could not be read in the window")),
        }
    }
    Ok(())
}

/// Reads the headroom until the end of a step.
fn readings(url: &str, end: &AtomicBool) -> Result<Vec<Reading>, ClientError> {
    let (mut client, info) = BlockingClient::connect(Arc::new(ClientConfig::default()), Target::new(url)?)?;
    let uri = taktwerk::headroom::NAMESPACE;
    let index = info.namespaces.iter().position(|known| known.as_str() == uri).unwrap_or(0);
    let node = |name: &str| ReadValueId {
        node_id: NodeId::string(u16::try_from(index).unwrap_or(0), format!("Headroom/{name}")),
        attribute_id: VALUE,
        ..ReadValueId::default()
    };
    let mut all = Vec::new();
    while !end.load(Ordering::Relaxed) {
        let nodes_to_read = ["PredictedCpu", "ActualCpu", "RemainingSignals"].map(node).to_vec();
        let answer = client.operate(ReadRequest { nodes_to_read, ..ReadRequest::default() })?;
        let values: Vec<f64> = answer
            .results
            .iter()
            .filter_map(|result| match result.value {
                Some(Variant::Double(value)) => Some(value),
                _ => None,
            })
            .collect();
        if let [predicted, actual, remaining] = values[..] {
            let unix_ms =
                SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
            all.push(Reading { unix_ms, predicted, actual, remaining });
        }
        thread::sleep(LOOK);
    }
    client.disconnect();
    Ok(all)
}
