//! `taktwerk lab`: the laboratory.
//!
//! - [`cpu`]: where a program runs, and what else runs there;
//! - [`links`]: networks that are emulated;
//! - [`peers`]: other stacks and brokers.

mod cpu;
mod links;
mod peers;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Subcommand;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// What the laboratory can do.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// CPU conditions: pinning, isolation, scheduling class, governor.
    #[command(subcommand)]
    Cpu(cpu::CpuCommand),
    /// Networks to measure over: Wi-Fi, 3G, far away, slow, lossy.
    #[command(subcommand)]
    Links(links::LinksCommand),
    /// Other stacks and brokers to compare with.
    #[command(subcommand)]
    Peers(peers::PeersCommand),
}

/// Runs one of them.
pub(crate) fn run(command: &LabCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        LabCommand::Cpu(command) => cpu::run(command, output, interrupt),
        LabCommand::Links(command) => links::run(command, output, interrupt),
        LabCommand::Peers(command) => peers::run(command, output, interrupt),
    }
}

/// Waits until a program ends. An interrupt ends it too.
fn wait(child: &mut Child, interrupt: &Interrupt) -> io::Result<ExitStatus> {
    const STEP: Duration = Duration::from_millis(50);
    /// A terminal has told the program too; who does not listen within five seconds is ended.
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

/// Asks a program to end. It may have ended by itself in the meantime.
fn end(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}
