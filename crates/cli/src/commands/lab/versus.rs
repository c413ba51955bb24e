//! `lab versus`: compares the project's performance targets with a peer on this machine.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::overwrite::Overwrite;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taktwerk_lab::peers;
use taktwerk_lab::versus::{self, BUSY, Event, Options, Programs, Row, VersusError, Watch, table};

/// A peer with performance targets.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum PeerName {
    Open62541,
}

/// Arguments of `taktwerk lab versus`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 99: a row fails. Exit code 5: a row could not be measured or is open. A row is open if its interval includes
the limit: use more repetitions.

Examples:
  taktwerk lab peers install open62541 && taktwerk lab versus open62541
  taktwerk lab versus open62541 --rows read-rtt,signal-cpu --repetitions 9 --output versus.json")]
pub(crate) struct VersusArgs {
    /// The stack to compare with.
    peer: PeerName,

    /// Use short windows and 2 repetitions.
    #[arg(long)]
    quick: bool,

    /// Measure only these rows; `pubsub` stands for all rows of PubSub.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rows: Vec<String>,

    /// Measure each side this often [default: 5, with --quick 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: Option<u32>,

    /// Write all samples to this JSON file, again after each row.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

/// Measures the rows and prints each when it is complete.
pub(super) fn run(arguments: &VersusArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let PeerName::Open62541 = arguments.peer;
    let repetitions = arguments.repetitions.unwrap_or(if arguments.quick { 2 } else { 5 });
    let options = Options {
        quick: arguments.quick,
        rows: arguments.rows.clone(),
        repetitions: usize::try_from(repetitions).unwrap_or(usize::MAX),
    };
    options.check().map_err(Failure::Usage)?;
    if let Some(path) = &arguments.output {
        super::session::can_write(path, arguments.overwrite)?;
    }
    let taktwerk = std::env::current_exe()
        .map_err(|error| Failure::Environment(format!("cannot find this program: {error}")))?;
    let peer = peers::directory().join("open62541/bin");
    let programs = Programs { taktwerk, peer, library: None, allocations: None, cipher: None };
    let load = versus::load_average();
    if load > BUSY {
        tracing::warn!("the load average is {load:.1}: other programs distort the results");
    }
    let file = arguments.output.clone();
    let watch =
        Watch { tell: Arc::new(move |event| show(&event, file.as_deref())), stop: Some(interrupt.flag()) };
    let comparison = versus::compare(programs, &options, watch).map_err(failure)?;
    if let Some(path) = &arguments.output {
        super::write_whole(path, &format!("{:#}\n", comparison.document))?;
    }
    if output.is_json() {
        output.document(&comparison.document)?;
    } else {
        output.text(&table(&comparison.rows))?;
    }
    if comparison.stopped { Err(Failure::Interrupted) } else { judge(&comparison.rows) }
}

/// Prints an event on standard error, and saves the measurements.
fn show(event: &Event<'_>, file: Option<&Path>) {
    match event {
        Event::Repetition { id, side, at, of } => {
            tracing::info!("{id}: repetition {at} of {of}, {side}");
        }
        Event::Note(text) => tracing::info!("{text}"),
        Event::Skipped(id, why) => tell!("{id}: left out: {why}"),
        Event::Measured { rows, took, document } => {
            tell!("{}\n{:.0} s", table(rows), took.as_secs_f64());
            if let Some(Err(error)) = file.map(|file| super::write_whole(file, &format!("{document:#}\n"))) {
                tracing::warn!("{error}");
            }
        }
    }
}

fn failure(error: VersusError) -> Failure {
    match error {
        VersusError::Program(taktwerk_lab::program::ProgramError::Stopped { .. }) => Failure::Interrupted,
        other => Failure::Environment(other.to_string()),
    }
}

/// The exit code for the rows.
fn judge(rows: &[Row]) -> Result<(), Failure> {
    let failed = rows.iter().filter(|row| row.holds() == Some(false)).count();
    if failed > 0 {
        return Err(Failure::Threshold(format!("{failed} of {} rows fail", rows.len())));
    }
    if let Some(problem) = rows.iter().find_map(|row| row.problems().first()) {
        return Err(Failure::InvalidReported(problem.clone()));
    }
    match rows.iter().filter(|row| row.is_open()).count() {
        0 => Ok(()),
        open => Err(Failure::InvalidReported(format!(
            "{open} of {} rows are open: use more --repetitions",
            rows.len()
        ))),
    }
}
