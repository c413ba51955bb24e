//! The `taktwerk` command.
//!
//! Each command is a module with its arguments and its implementation: [`serve`], those in [`commands`], [`config`],
//! `gateway`, [`user`], [`pubsub`] and [`bench`].
//! Shared modules:
//!
//! - [`value`], and [`endpoint`], [`node`], [`attribute`], [`span`] of the crate `load`: syntax of values, servers,
//!   nodes, attributes and times; [`connection`]: connection options; [`suggestion`]: similar names for misspelt ones;
//! - [`session`], and [`resolve`], [`walk`], [`security`] of the crate `generator`: the client session, browse paths,
//!   browsing, certificates; [`event_stream`]: events of one node; [`reconnection`]: messages about lost connections;
//! - [`output`]: tables, or JSON; [`overwrite`]: `--force`; [`progress`]: progress bars; [`logging`], [`tell`]:
//!   standard error;
//! - [`arguments`]: the command line and `TAKTWERK_ENDPOINT`; [`examples`]: the examples of `--help`;
//! - [`failure`]: exit codes; [`interrupt`]: SIGINT and SIGTERM.

#![allow(clippy::print_stderr)] // standard error is the user interface

#[macro_use]
mod tell;

mod arguments;
mod bench;
mod commands;
mod config;
mod config_file;
mod config_init;
mod event_stream;
mod examples;
mod failure;
#[cfg(feature = "gateway")]
mod gateway;
mod hosts;
mod interrupt;
mod logging;
mod output;
mod overwrite;
mod progress;
mod pubsub;
mod reconnection;
mod serve;
mod session;
mod supervised;
mod terminal;
mod text_file;
mod types;
mod user;
mod value;

use clap::{Parser, Subcommand};
use commands::{
    alarms, backup, browse, call, completions, endpoints, events, history, lab, man, model, nodes, nodeset,
    pki, query, read, sim, size, tune, watch, write,
};
use failure::Failure;
use interrupt::Interrupt;
use output::{ColorChoice, Output};
use std::process::ExitCode;
pub(crate) use taktwerk_generator::client::{resolve, security, walk};
pub(crate) use taktwerk_load::{attribute, connection, endpoint, node, span, suggestion};

/// A server, client and load generator for OPC UA.
#[derive(Debug, Parser)]
#[command(name = "taktwerk", version, max_term_width = 100, after_help = examples::EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print JSON instead of tables.
    #[arg(long, short = 'j', global = true)]
    json: bool,

    /// Print more to standard error: -v steps of a connection, -vv debug, -vvv trace.
    #[arg(long, short, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,

    /// Print only results and errors: no warnings, no progress.
    #[arg(long, short, global = true)]
    quiet: bool,

    /// When to use colours. NO_COLOR turns them off too.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    color: ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a server: a demo plant by default.
    #[command(after_help = examples::SERVE)]
    Serve(serve::ServeArgs),
    /// List the endpoints of a server.
    #[command(after_help = examples::ENDPOINTS)]
    Endpoints(endpoints::EndpointsArgs),
    /// Show the address space.
    #[command(after_help = examples::BROWSE)]
    Browse(browse::BrowseArgs),
    /// Read attributes.
    #[command(after_help = examples::READ)]
    Read(read::ReadArgs),
    /// Find nodes by their type, filtered by what they have.
    #[command(after_help = examples::QUERY)]
    Query(query::QueryArgs),
    /// Read the history of a variable: values, aggregates, charts.
    #[command(after_help = examples::HISTORY)]
    History(history::HistoryArgs),
    /// Write values.
    #[command(after_help = examples::WRITE)]
    Write(write::WriteArgs),
    /// Add and delete nodes and references.
    #[command(after_help = examples::NODE, subcommand)]
    Node(nodes::NodeCommand),
    /// Write nodes of a server to a NodeSet2 file.
    #[command(after_help = examples::NODESET_EXPORT, subcommand, name = "nodeset")]
    NodeSet(nodeset::NodeSetCommand),
    /// Call a method.
    #[command(after_help = examples::CALL)]
    Call(call::CallArgs),
    /// Print values as they change.
    #[command(after_help = examples::WATCH, alias = "subscribe")]
    Watch(watch::WatchArgs),
    /// Print events as they happen.
    #[command(after_help = examples::EVENTS)]
    Events(events::EventsArgs),
    /// Show alarms and conditions; acknowledge, confirm, shelve them.
    #[command(after_help = examples::ALARMS)]
    Alarms(alarms::AlarmsArgs),
    /// Manage certificates and trust lists.
    #[command(after_help = examples::PKI)]
    Pki(pki::PkiArgs),
    /// Write or check a configuration file.
    #[command(after_help = examples::CONFIG, subcommand)]
    Config(config::ConfigCommand),
    /// Prepare the sources of a gateway: check files, browse devices, import tags.
    #[cfg(feature = "gateway")]
    #[command(after_help = examples::GATEWAY, subcommand)]
    Gateway(gateway::GatewayCommand),
    /// Write an installation to one file: configuration, certificates, users, history.
    #[command(after_help = examples::BACKUP)]
    Backup(backup::BackupArgs),
    /// Restore an installation from a backup.
    #[command(after_help = examples::RESTORE)]
    Restore(backup::restore::RestoreArgs),
    /// Manage the users of a server.
    #[command(after_help = examples::USER, subcommand)]
    User(user::UserCommand),
    /// Publish and subscribe over UDP, Ethernet or MQTT.
    #[command(after_help = examples::PUBSUB, subcommand, name = "pubsub")]
    PubSub(pubsub::PubSubCommand),
    /// Load a server and measure it.
    #[command(after_help = examples::BENCH, subcommand)]
    Bench(bench::BenchCommand),
    /// Run experiments and scenarios; manage results, links and peers.
    #[command(after_help = examples::LAB, subcommand)]
    Lab(lab::LabCommand),
    /// Fit and query the CPU cost model.
    #[command(after_help = examples::MODEL, subcommand)]
    Model(model::ModelCommand),
    /// Check whether a plant fits its hardware.
    #[command(after_help = examples::SIZE)]
    Size(size::SizeArgs),
    /// Simulate a plant: delays, losses, load of links and processors.
    #[command(after_help = examples::SIM)]
    Sim(sim::SimArgs),
    /// Find the best settings for a plant or a running server.
    #[command(after_help = examples::TUNE)]
    Tune(tune::TuneArgs),
    /// Print completions for a shell.
    Completions(completions::CompletionsArgs),
    /// Write the manual pages.
    Man(man::ManArgs),
}

impl Command {
    /// Whether the command has nothing to print or undo when interrupted, so that signals may end it at once.
    fn ends_at_once(&self) -> bool {
        matches!(
            self,
            Self::Endpoints(_)
                | Self::Read(_)
                | Self::Query(_)
                | Self::History(_)
                | Self::Write(_)
                | Self::Node(_)
                | Self::Call(_)
                | Self::Model(_)
                | Self::Size(_)
                | Self::Completions(_)
                | Self::Man(_)
        )
    }
}

fn main() -> ExitCode {
    let mut cli: Cli = arguments::parse();
    logging::start(cli.verbose, cli.quiet, cli.color);
    progress::start(cli.quiet);
    let output = Output::new(cli.json, cli.color);
    let interrupt = match &cli.command {
        command if command.ends_at_once() => Ok(Interrupt::uncaught()),
        Command::Serve(_) => Interrupt::catch_and_say(),
        _ => Interrupt::catch(),
    };
    let interrupt = interrupt::survive_file_size_limits().and(interrupt);
    match interrupt.and_then(|interrupt| run(&mut cli.command, output, &interrupt)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            match failure {
                Failure::BrokenPipe => {}
                // The user ended the command: this is no error.
                Failure::Interrupted => tell!("{failure}"),
                _ => tell!("error: {failure}"),
            }
            failure.exit_code()
        }
    }
}

fn run(command: &mut Command, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        Command::Serve(arguments) => serve::run(arguments, output, interrupt),
        Command::Endpoints(arguments) => endpoints::run(arguments, output),
        Command::Browse(arguments) => browse::run(arguments, output, interrupt),
        Command::Read(arguments) => read::run(arguments, output),
        Command::Query(arguments) => query::run(arguments, output),
        Command::History(arguments) => history::run(arguments, output),
        Command::Write(arguments) => write::run(arguments, output),
        Command::Node(command) => nodes::run(command, output),
        Command::NodeSet(command) => nodeset::run(command, output, interrupt),
        Command::Call(arguments) => call::run(arguments, output),
        Command::Pki(arguments) => pki::run(arguments, output),
        Command::Watch(arguments) => watch::run(arguments, output, interrupt),
        Command::Events(arguments) => events::run(arguments, output, interrupt),
        Command::Alarms(arguments) => alarms::run(arguments, output, interrupt),
        Command::Config(command) => config::run(command, output),
        #[cfg(feature = "gateway")]
        Command::Gateway(command) => gateway::run(command, output, interrupt),
        Command::Backup(arguments) => backup::run(arguments, output),
        Command::Restore(arguments) => backup::restore::run(arguments, output),
        Command::User(command) => user::run(command, output),
        Command::PubSub(command) => pubsub::run(command, output, interrupt),
        Command::Bench(command) => bench::run(command, output, interrupt),
        Command::Lab(command) => lab::run(command, output, interrupt),
        Command::Model(command) => model::run(command, output),
        Command::Size(arguments) => size::run(arguments, output),
        Command::Sim(arguments) => sim::run(arguments, output, interrupt),
        Command::Tune(arguments) => tune::run(arguments, output, interrupt),
        Command::Completions(arguments) => completions::run(arguments, output),
        Command::Man(arguments) => man::run(arguments, output),
    }
}
