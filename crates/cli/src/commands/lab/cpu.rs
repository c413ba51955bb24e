//! `taktwerk lab cpu`: runs a program under CPU conditions, and reports the actual ones.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::{Args, Subcommand};
use serde_json::json;
use std::process::{Child, Command};
use taktwerk_lab::cpu::{Class, NotPermitted, Observed, Set, Wanted, observe};
use taktwerk_lab::orphans;
use taktwerk_lab::pin::CpuList;

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum CpuCommand {
    /// Show the CPU conditions of a running program.
    Show(ShowArgs),
    /// Run a program under CPU conditions, which are undone when it ends.
    Run(RunArgs),
}

/// Arguments of `lab cpu show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Process id. Default: this program.
    #[arg(value_name = "PID")]
    pid: Option<u32>,
}

/// Arguments of `lab cpu run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// CPUs that the program may use.
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,
    /// Move all other programs off these CPUs.
    #[arg(long, requires = "cpus")]
    isolate: bool,
    /// Scheduling class: other, fifo:PRIORITY or rr:PRIORITY.
    #[arg(long, value_name = "CLASS")]
    class: Option<Class>,
    /// Frequency governor of these CPUs.
    #[arg(long, value_name = "NAME", requires = "cpus")]
    governor: Option<String>,
    /// The program.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs a command.
pub(crate) fn run(command: &CpuCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        CpuCommand::Show(arguments) => show(arguments.pid.unwrap_or_else(std::process::id), output),
        CpuCommand::Run(arguments) => under(arguments, output, interrupt),
    }
}

fn show(pid: u32, output: Output) -> Result<(), Failure> {
    let seen = observe(pid).ok_or_else(|| Failure::Environment(format!("process {pid} does not exist")))?;
    if output.is_json() { output.document(&json!(seen)) } else { output.text(&seen.to_string()) }
}

fn refused(error: NotPermitted) -> Failure {
    Failure::Environment(error.to_string())
}

fn under(arguments: &RunArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let wanted = Wanted {
        cpus: arguments.cpus.clone().unwrap_or_else(CpuList::allowed),
        isolate: arguments.isolate,
        class: arguments.class,
        governor: arguments.governor.clone(),
    };
    // Control groups of a killed run reserve CPUs.
    taktwerk_lab::leftovers::clean_up();
    let set = wanted.set().map_err(refused)?;
    let mut child = start(arguments, &set)?;
    let conditions = || -> Result<Observed, Failure> {
        set.admit(child.id()).map_err(refused)?;
        observe(child.id()).ok_or_else(|| Failure::Environment("the program ended at once".to_owned()))
    };
    let seen = match conditions() {
        Ok(seen) => seen,
        Err(failure) => {
            // Refuse to run under other conditions than requested. Errors mean that the program has ended already.
            let _ = child.kill();
            let _ = child.wait();
            return Err(failure);
        }
    };
    if output.is_json() {
        tell!("{}", json!({ "pid": child.id(), "conditions": seen, "isolation": set.isolation() }));
    } else {
        tell!("{seen}");
    }
    let status = super::wait(&mut child, interrupt)
        .map_err(|error| Failure::Environment(format!("{}: {error}", arguments.command.join(" "))))?;
    match (interrupt.asked(), status.success()) {
        (true, _) => Err(Failure::Interrupted),
        (false, true) => Ok(()),
        (false, false) => Err(Failure::Ended { line: arguments.command.join(" "), status }),
    }
}

/// Starts the program on its CPUs: it inherits the affinity of the starting thread. On isolated CPUs, it is moved into
/// the group afterwards.
fn start(arguments: &RunArgs, set: &Set) -> Result<Child, Failure> {
    let (program, rest) = arguments
        .command
        .split_first()
        .ok_or_else(|| Failure::Usage("there is no program to run".to_owned()))?;
    let pinned = arguments.cpus.as_ref().and_then(|_| set.start_on());
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| -> Result<Child, Failure> {
            if let Some(cpus) = pinned {
                cpus.pin().map_err(|error| Failure::Environment(error.to_string()))?;
            }
            Command::new(program)
                .args(rest)
                .env(orphans::OWNER, orphans::owner())
                .spawn()
                .map_err(|error| Failure::Environment(format!("cannot run {program}: {error}")))
        });
        starting
            .join()
            .unwrap_or_else(|_| Err(Failure::Environment("the starting thread panicked".to_owned())))
    })
}
