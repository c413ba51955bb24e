//! The `taktwerk` command.
//!
//! Each command is a module that holds its arguments and what it does: [`serve`], those in [`commands`], [`config`], [`user`],
//! [`pubsub`] and [`bench`].
//! What they share:
//!
//! - [`endpoint`], [`node`], [`attribute`], [`value`], [`span`]: how servers, nodes, values and times are written;
//! - [`connection`], [`session`], [`resolve`], [`walk`]: a client's connection, node names to ids, browsing;
//! - [`output`]: tables for people, JSON for programs; [`progress`]: bars; [`logging`], [`tell`]: standard error;
//! - [`failure`]: exit codes; [`interrupt`]: SIGINT and SIGTERM.

#![allow(clippy::print_stderr)] // a command line talks

#[macro_use]
mod tell;

mod attribute;
mod bench;
mod commands;
mod config;
mod connection;
mod endpoint;
mod failure;
mod interrupt;
mod logging;
mod node;
mod output;
mod progress;
mod pubsub;
mod recording;
mod resolve;
mod security;
mod serve;
mod session;
mod span;
mod types;
mod user;
mod value;
mod walk;

use clap::{Parser, Subcommand};
use commands::{browse, call, endpoints, lab, model, pki, read, size, watch, write};
use failure::Failure;
use interrupt::Interrupt;
use output::Output;
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 done, 2 the command line or a file is wrong, 3 no connection, 4 the server said Bad, \
    5 the measurement is worth nothing, 6 something is missing on this machine, 99 a threshold does not hold, 130 interrupted, \
    141 nobody reads the output; \
    `lab links run` and `lab cpu run` pass on the code of the program they run";

/// OPC UA: a server to try things with, a client for every service, and a load generator.
#[derive(Debug, Parser)]
#[command(name = "taktwerk", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print JSON instead of tables.
    #[arg(long, short = 'j', global = true)]
    json: bool,

    /// Log more: -v info, -vv debug, -vvv trace.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a server: a demo plant by default.
    Serve(serve::ServeArgs),
    /// What a server offers: addresses, security, users.
    Endpoints(endpoints::EndpointsArgs),
    /// Show the address space.
    Browse(browse::BrowseArgs),
    /// Read attributes.
    Read(read::ReadArgs),
    /// Write values.
    Write(write::WriteArgs),
    /// Call a method.
    Call(call::CallArgs),
    /// Print values as they change.
    #[command(alias = "subscribe")]
    Watch(watch::WatchArgs),
    /// Certificates: our own, whom we trust, why somebody is refused.
    Pki(pki::PkiArgs),
    /// Check a server's configuration file, or begin one.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// The users of a server, with their passwords and roles.
    #[command(subcommand)]
    User(user::UserCommand),
    /// Publish and subscribe without a connection.
    #[command(subcommand, name = "pubsub")]
    PubSub(pubsub::PubSubCommand),
    /// Load a server and measure it.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// The laboratory: published experiments, scenarios, results, reports, links, peers.
    #[command(subcommand)]
    Lab(lab::LabCommand),
    /// What a load will cost, learnt from measurements.
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Will a plant fit on its nodes?
    Size(size::SizeArgs),
}

impl Command {
    /// Whether it has nothing to print or to put back when it is interrupted, and so needs no time for that: it would wait for a
    /// server that does not answer instead.
    fn ends_at_once(&self) -> bool {
        matches!(
            self,
            Self::Endpoints(_)
                | Self::Read(_)
                | Self::Write(_)
                | Self::Call(_)
                | Self::Model(_)
                | Self::Size(_)
        )
    }
}

fn main() -> ExitCode {
    let mut cli = Cli::parse();
    logging::start(cli.verbose);
    let output = Output::new(cli.json);
    let interrupt = if cli.command.ends_at_once() { Ok(Interrupt::uncaught()) } else { Interrupt::catch() };
    match interrupt.and_then(|interrupt| run(&mut cli.command, output, &interrupt)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Unread) {
                tell!("error: {failure}");
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
        Command::Write(arguments) => write::run(arguments, output),
        Command::Call(arguments) => call::run(arguments, output),
        Command::Pki(arguments) => pki::run(arguments, output),
        Command::Watch(arguments) => watch::run(arguments, output, interrupt),
        Command::Config(command) => config::run(command, output),
        Command::User(command) => user::run(command, output),
        Command::PubSub(command) => pubsub::run(command, output, interrupt),
        Command::Bench(command) => bench::run(command, output, interrupt),
        Command::Lab(command) => lab::run(command, output, interrupt),
        Command::Model(command) => model::run(command, output),
        Command::Size(arguments) => size::run(arguments, output),
    }
}
