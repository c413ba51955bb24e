//! `taktwerk lab`: the laboratory.
//!
//! - [`links`]: networks that are emulated.

mod links;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Subcommand;

/// What the laboratory can do.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Networks to measure over: Wi-Fi, 3G, far away, slow, lossy.
    #[command(subcommand)]
    Links(links::LinksCommand),
}

/// Runs one of them.
pub(crate) fn run(command: &LabCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        LabCommand::Links(command) => links::run(command, output, interrupt),
    }
}
