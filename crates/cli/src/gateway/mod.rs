//! `taktwerk gateway`: what a plant engineer does before and beside `taktwerk serve --config`.
//!
//! - [`check`]: all mistakes of a file, and what is suspicious in it;
//! - [`browse`]: what a source offers; [`scan`]: devices and servers in a range that the user names ([`targets`]);
//! - [`import`]: files of other products, and tags as a table.

mod browse;
mod check;
mod import;
mod scan;
mod targets;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Subcommand;

/// Largest file.
const FILE_LEN_MAX: u64 = 64 << 20;

/// What to do with sources and tags.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// List all errors and warnings in a file's sources, tags and destinations.
    #[command(after_help = crate::examples::GATEWAY_CHECK)]
    Check(check::CheckArgs),
    /// Show what a source offers: nodes of a server, topics of a broker, values in JSON, the identity of Modbus units.
    #[command(after_help = crate::examples::GATEWAY_BROWSE)]
    Browse(browse::BrowseArgs),
    /// Look for Modbus units and OPC UA servers. Only the hosts and ports that are named are contacted.
    #[command(after_help = crate::examples::GATEWAY_SCAN)]
    Scan(Box<scan::ScanArgs>),
    /// Convert OPC Publisher's publishednodes.json or Kepware's tag table to sources and tags.
    #[command(after_help = crate::examples::GATEWAY_IMPORT)]
    Import(import::ImportArgs),
    /// Write the tags of a file as a CSV table, for the key `tags` of a source.
    #[command(after_help = crate::examples::GATEWAY_EXPORT)]
    Export(import::ExportArgs),
}

/// Runs a command.
pub(crate) fn run(command: &GatewayCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        GatewayCommand::Check(arguments) => check::run(arguments, output),
        GatewayCommand::Browse(arguments) => browse::run(arguments, output, interrupt),
        GatewayCommand::Scan(arguments) => scan::run(arguments, output, interrupt),
        GatewayCommand::Import(arguments) => import::import(arguments, output),
        GatewayCommand::Export(arguments) => import::export(arguments, output),
    }
}
