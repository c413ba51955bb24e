//! `taktwerk lab`: the laboratory.
//!
//! - [`links`]: networks that are emulated;
//! - [`peers`]: other stacks and brokers.

mod links;
mod peers;

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
    /// Other stacks and brokers to compare with.
    #[command(subcommand)]
    Peers(peers::PeersCommand),
}

/// Runs one of them.
pub(crate) fn run(command: &LabCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        LabCommand::Links(command) => links::run(command, output, interrupt),
        LabCommand::Peers(command) => peers::run(command, output, interrupt),
    }
}
