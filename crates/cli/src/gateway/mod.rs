//! `taktwerk gateway`: tools for the configuration of a gateway.
//!
//! - [`check`]: errors and warnings in a file;
//! - [`browse`]: what a source offers; [`scan`]: searches a given range ([`targets`]) for devices and servers;
//! - [`import`]: conversion of files of other products, and export of tags as a table;
//! - [`adapter`]: a program for sources of type `program`, for demonstrations and loads.

mod adapter;
mod browse;
mod check;
mod import;
mod scan;
mod targets;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Subcommand;

/// Largest imported file, in bytes.
const FILE_LEN_MAX: u64 = 64 << 20;

/// The subcommand.
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
    /// Make a value for each tag: a program for a source of type `program`, for demonstrations and loads. The gateway
    /// starts it.
    #[command(after_help = crate::examples::GATEWAY_ADAPTER)]
    Adapter,
}

/// Runs a command.
pub(crate) fn run(command: &GatewayCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        GatewayCommand::Check(arguments) => check::run(arguments, output),
        GatewayCommand::Browse(arguments) => browse::run(arguments, output, interrupt),
        GatewayCommand::Scan(arguments) => scan::run(arguments, output, interrupt),
        GatewayCommand::Import(arguments) => import::import(arguments, output),
        GatewayCommand::Export(arguments) => import::export(arguments, output),
        GatewayCommand::Adapter => adapter::run(interrupt),
    }
}
