//! `taktwerk lab`: scenarios, published experiments, their results, and comparisons.

mod calibrate;
mod capacity;
mod compare;
mod cpu;
#[cfg_attr(not(feature = "attack"), path = "no_flood.rs")]
mod flood;
mod headroom;
mod host;
mod host_jobs;
mod links;
mod list;
mod live;
mod peers;
mod report;
mod reproduce;
mod runs;
mod scenario;
mod session;
mod truth;
mod versus;

pub(crate) use calibrate::DATA as CALIBRATE;
pub(crate) use session::{can_write, write_whole};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::{Args, Subcommand};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Duration;
use taktwerk_lab::outcome::Finding;
use taktwerk_lab::peers as installed;
use taktwerk_lab::place::Place;
use taktwerk_lab::store::{self, Store, StoreError};

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the published experiments that can be reproduced.
    List(list::ListArgs),
    /// Run published experiments and write a report.
    Reproduce(reproduce::ReproduceArgs),
    /// Measure a scenario from a file.
    Run(scenario::RunArgs),
    /// Measure what a load costs on this machine, for `taktwerk model`.
    Calibrate(calibrate::CalibrateArgs),
    /// Measure loads over emulated links and simulate the same loads: how far is the simulator off?
    Truth(truth::TruthArgs),
    /// Load one server step by step: does it predict its CPU?
    Headroom(headroom::HeadroomArgs),
    /// Search for the largest load that a server sustains.
    Capacity(Box<capacity::CapacityArgs>),
    /// Set CPU conditions: pinning, isolation, scheduling class, governor.
    #[command(subcommand)]
    Cpu(cpu::CpuCommand),
    /// Emulate networks: Wi-Fi, 3G, far away, slow, lossy.
    #[command(subcommand)]
    Links(links::LinksCommand),
    /// Attack a server on this machine and check whether honest clients notice (feature `attack`).
    Flood(flood::FloodArgs),
    /// Install and run other stacks and brokers to compare with.
    #[command(subcommand)]
    Peers(peers::PeersCommand),
    /// List the stored runs.
    Runs(runs::RunsArgs),
    /// Compare this program with a peer, row by row, with verdicts.
    Versus(versus::VersusArgs),
    /// Compare two runs.
    Compare(compare::CompareArgs),
    /// Write the report of a run again.
    Report(report::ReportArgs),
}

/// The results file.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArgs {
    /// File with all results (TAKTWERK_RESULTS).
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
}

impl StoreArgs {
    fn path(&self) -> PathBuf {
        self.results.clone().unwrap_or_else(store::default_path)
    }

    /// Opens the file, or creates it.
    pub(crate) fn open(&self) -> Result<Store, Failure> {
        Ok(Store::open(&self.path())?)
    }

    /// Opens an existing file for reading. A misspelt name must not create a file.
    pub(crate) fn open_to_read(&self) -> Result<Store, Failure> {
        match &self.results {
            Some(path) if !path.exists() => Err(Failure::Usage(format!(
                "the file {} does not exist: `taktwerk lab reproduce`, `lab run` and `lab calibrate` create one",
                path.display()
            ))),
            _ => self.open(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoRun { .. }
            | StoreError::NoneComplete { .. }
            | StoreError::Running { .. }
            | StoreError::Elsewhere { .. } => Self::Usage(error.to_string()),
            other => Self::Environment(other.to_string()),
        }
    }
}

/// A failure that lists the findings that do not hold.
pub(super) fn judged(findings: &[Finding]) -> Result<(), Failure> {
    let failed = findings.iter().filter(|finding| finding.holds == Some(false));
    let failed: Vec<_> = failed.map(|finding| format!("{}: {}", finding.claim, finding.evidence)).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::Threshold(failed.join("; "))) }
}

/// This machine, and this program or another build of it.
pub(crate) fn place(program: Option<&PathBuf>) -> Result<Place, Failure> {
    // Cleans up first, because control groups of a killed run reserve CPUs.
    taktwerk_lab::leftovers::clean_up();
    let exe = match program {
        Some(program) => program.clone(),
        None => std::env::current_exe()
            .map_err(|error| Failure::Environment(format!("cannot find this program: {error}")))?,
    };
    Ok(Place::new(exe, installed::directory()).with_embedded_broker(cfg!(feature = "embedded-broker")))
}

/// Runs a command.
pub(crate) fn run(command: &LabCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        LabCommand::List(arguments) => list::run(arguments, output),
        LabCommand::Reproduce(arguments) => reproduce::run(arguments, output, interrupt),
        LabCommand::Run(arguments) => scenario::run(arguments, output, interrupt),
        LabCommand::Calibrate(arguments) => calibrate::run(arguments, output, interrupt),
        LabCommand::Truth(arguments) => truth::run(arguments, output, interrupt),
        LabCommand::Headroom(arguments) => headroom::run(arguments, output, interrupt),
        LabCommand::Capacity(arguments) => capacity::run(arguments, output, interrupt),
        LabCommand::Cpu(command) => cpu::run(command, output, interrupt),
        LabCommand::Links(command) => links::run(command, output, interrupt),
        LabCommand::Flood(arguments) => flood::run(arguments, output, interrupt),
        LabCommand::Peers(command) => peers::run(command, output, interrupt),
        LabCommand::Runs(arguments) => runs::run(arguments, output),
        LabCommand::Versus(arguments) => versus::run(arguments, output, interrupt),
        LabCommand::Compare(arguments) => compare::run(arguments, output),
        LabCommand::Report(arguments) => report::run(arguments, output),
    }
}

/// Waits until a program ends. An interrupt is passed on.
fn wait(child: &mut Child, interrupt: &Interrupt) -> io::Result<ExitStatus> {
    const STEP: Duration = Duration::from_millis(50);
    /// A terminal has sent the signal to the program too. After five seconds the program is killed.
    const PATIENCE: u32 = 100;
    let mut asked = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.asked() {
            asked += 1;
            if asked == 1 {
                end(child.id());
            } else if asked == PATIENCE {
                child.kill()?;
            }
        }
        std::thread::sleep(STEP);
    }
}

/// Sends SIGTERM to a program, which may have ended already.
fn end(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}
