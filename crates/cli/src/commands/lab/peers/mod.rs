//! `taktwerk lab peers`: other stacks and brokers to compare with; [`check`] starts them and speaks to them.

mod check;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Waiting;
use crate::span;
use clap::{Args, Subcommand};
use serde_json::json;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use taktwerk_lab::outcome::wrapped;
use taktwerk_lab::peers::{self, InstallError, PEERS, Peer, PeerOptions, Role, State};
use taktwerk_lab::pin::CpuList;
use taktwerk_lab::table::{Align, Table};

/// What can be done with peers.
#[derive(Debug, Subcommand)]
pub(crate) enum PeersCommand {
    /// List the peers, which are installed, and what the others need.
    List(ListArgs),
    /// Install peers from their ordinary registries, at the pinned versions.
    Install(InstallArgs),
    /// Start installed peers and connect to them.
    Check(CheckArgs),
    /// Run a peer until interrupted.
    Run(RunArgs),
}

/// The directory of the peers.
#[derive(Debug, Args)]
pub(crate) struct DirectoryArgs {
    /// Directory of installed peers. Default: target/peers in a checkout, else the user's data directory.
    #[arg(long, value_name = "DIR", env = peers::DIRECTORY)]
    dir: Option<PathBuf>,
}

impl DirectoryArgs {
    fn directory(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(peers::directory)
    }
}

/// Arguments of `lab peers list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    place: DirectoryArgs,
}

/// Arguments of `lab peers install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Peers to install, or all.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    place: DirectoryArgs,
}

/// Arguments of `lab peers check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Peers to check. Default: all installed ones.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    place: DirectoryArgs,
}

/// Arguments of `lab peers run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Name of the peer.
    name: String,
    /// Port to listen on; 0 for any free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Number of Double variables; for a gateway: registers of each device.
    #[arg(long, value_name = "N", default_value_t = 100)]
    variables: u32,
    /// Interval at which they change, 0 for never; for a gateway: interval at which it reads each device.
    #[arg(long, value_name = "SPAN", default_value = "100ms", value_parser = span::millis)]
    update: Duration,
    /// Modbus TCP device that a gateway reads. Repeat it for more.
    #[arg(long = "device", value_name = "HOST:PORT")]
    devices: Vec<SocketAddr>,
    /// CPU to run on.
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,
    #[command(flatten)]
    place: DirectoryArgs,
}

/// Runs a command.
pub(crate) fn run(command: &PeersCommand, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        PeersCommand::List(arguments) => list(arguments, output),
        PeersCommand::Install(arguments) => install(arguments, output, interrupt),
        PeersCommand::Check(arguments) => check_all(arguments, output, interrupt),
        PeersCommand::Run(arguments) => serve(arguments, output, interrupt),
    }
}

fn list(arguments: &ListArgs, output: Output) -> Result<(), Failure> {
    let directory = arguments.place.directory();
    let states: Vec<(&Peer, State)> =
        PEERS.iter().map(|peer| (peer, peers::state(peer, &directory))).collect();
    if output.is_json() {
        let peers: Vec<_> = states
            .iter()
            .map(|(peer, state)| {
                json!({
                    "name": peer.name, "role": peer.role, "language": peer.language, "version": peer.version,
                    "licence": peer.licence, "registry": peer.registry, "state": state,
                })
            })
            .collect();
        return output.document(&json!({ "directory": directory, "peers": peers }));
    }
    let mut table = Table::new(&[
        ("peer", Align::Left),
        ("what", Align::Left),
        ("language", Align::Left),
        ("version", Align::Left),
        ("licence", Align::Left),
        ("state", Align::Wrap),
    ]);
    for (peer, state) in &states {
        let what = match peer.role {
            Role::OpcUa => "OPC UA server",
            Role::Mqtt => "MQTT broker",
            Role::Gateway => "gateway",
        };
        let (version, state) = match state {
            State::Installed { version } => (version.clone(), "installed".to_owned()),
            State::NotInstalled { .. } => (peer.version.to_owned(), "not installed".to_owned()),
            State::Outdated { .. } => (peer.version.to_owned(), "outdated: install again".to_owned()),
            State::Missing { tools, .. } => (peer.version.to_owned(), format!("needs {}", tools.join(", "))),
        };
        table.row([peer.name, what, peer.language, &version, peer.licence, &state]);
    }
    output.text(&table.to_string())?;
    let mut hints = format!("\nin {}\n", directory.display());
    for (peer, state) in &states {
        if let State::Missing { command, .. } = state {
            hints.push_str(&wrapped(&format!("{}: ", peer.name), command));
        }
    }
    output.text(&format!("{hints}taktwerk lab peers install NAME…|all"))
}

fn find(name: &str) -> Result<&'static Peer, Failure> {
    peers::find(name).ok_or_else(|| {
        let names: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        Failure::Usage(format!("unknown peer {name:?}; known peers: {}", names.join(", ")))
    })
}

fn install(arguments: &InstallArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let directory = arguments.place.directory();
    let wants_all = arguments.names.iter().any(|name| name == "all");
    let wanted: Vec<&'static Peer> = if wants_all {
        PEERS.iter().collect()
    } else {
        arguments.names.iter().map(|name| find(name)).collect::<Result<_, _>>()?
    };
    let mut failures = Vec::new();
    let mut results = Vec::new();
    taktwerk_lab::leftovers::clean_up();
    for (at, peer) in wanted.iter().copied().enumerate() {
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        tell!("{}: installing {} from {}", peer.name, peer.version, peer.registry);
        let waiting = Waiting::of_step(peer.name, at, wanted.len());
        let result = peers::install_unless(peer, &directory, Some(&interrupt.flag()));
        drop(waiting);
        if matches!(result, Err(InstallError::Stopped { .. })) {
            return Err(Failure::Interrupted);
        }
        match &result {
            Ok(()) => tell!("{}: installed", peer.name),
            // With explicit names, the first failure ends the command. With `all`, installation continues.
            Err(error) => failures.push(error.to_string()),
        }
        let error = result.err().map(|error| error.to_string());
        results.push(json!({ "name": peer.name, "version": peer.version, "error": error }));
    }
    if output.is_json() {
        output.document(&json!({ "directory": directory, "peers": results }))?;
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Environment(failures.join("\n"))) }
}

fn check_all(arguments: &CheckArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    taktwerk_lab::leftovers::clean_up();
    let directory = arguments.place.directory();
    let named: Vec<_> = arguments.names.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
    let is_wanted = |peer: &Peer| match named.is_empty() {
        true => matches!(peers::state(peer, &directory), State::Installed { .. }),
        false => named.iter().any(|wanted| wanted.name == peer.name),
    };
    let mut table =
        Table::new(&[("peer", Align::Left), ("check", Align::Left), ("", Align::Left), ("", Align::Wrap)]);
    let (mut results, mut failed, mut all) = (Vec::new(), 0, 0);
    for peer in PEERS.iter().filter(|peer| is_wanted(peer)) {
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        let checks = check::run(peer, &directory)?;
        for (index, check) in checks.iter().enumerate() {
            let (verdict, detail) = match &check.result {
                Ok(detail) => ("ok", detail),
                Err(detail) => ("FAILED", detail),
            };
            table.row([if index == 0 { peer.name } else { "" }, &check.name, verdict, detail]);
            failed += usize::from(check.result.is_err());
            all += 1;
        }
        let checks: Vec<_> = checks.iter().map(check::Check::document).collect();
        results.push(json!({ "peer": peer.name, "version": peer.version, "checks": checks }));
    }
    if output.is_json() {
        output.document(&json!({ "directory": directory, "failed": failed, "peers": results }))?;
    } else {
        output.text(&table.to_string())?;
    }
    match (all, failed) {
        (0, _) => {
            Err(Failure::Environment("no peer is installed: taktwerk lab peers install all".to_owned()))
        }
        (_, 0) => Ok(()),
        _ => Err(Failure::BadStatus(format!("{failed} of {all} checks failed"))),
    }
}

fn serve(arguments: &RunArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let peer = find(&arguments.name)?;
    taktwerk_lab::leftovers::clean_up();
    let options = PeerOptions {
        port: arguments.port,
        bind: arguments.bind,
        variables: arguments.variables,
        update: arguments.update,
        devices: arguments.devices.clone(),
        cpus: arguments.cpu.clone(),
        network: None,
        stop: Some(interrupt.flag()),
    };
    let running = peers::start(peer, &arguments.place.directory(), &options).map_err(|error| {
        if interrupt.asked() { Failure::Interrupted } else { Failure::Environment(error.to_string()) }
    })?;
    if output.is_json() {
        let first = (peer.role == Role::OpcUa).then(|| running.first_signal().to_owned());
        output.line(&json!({
            "peer": peer.name, "version": peer.version, "url": running.url(), "pid": running.pid(), "node": first,
        }))?;
    } else {
        output.text(&format!("READY {}", running.url()))?;
    }
    while !interrupt.asked() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = running.pid();
    running.stop().map_err(|error| Failure::Environment(format!("{pid}: {error}")))
}
