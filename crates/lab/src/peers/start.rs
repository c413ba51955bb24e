//! Running peers through one interface.

use super::catalogue::{Peer, Recipe, Role};
use super::install::{self, State, source};
use super::tools::which;
use crate::links::Namespace;
use crate::pin::CpuList;
use crate::program::{Program, ProgramError, Running};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a peer may take until it listens: a virtual machine that has to warm up on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How a peer is run.
#[derive(Debug, Clone)]
pub struct PeerOptions {
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The address to listen on.
    pub bind: IpAddr,
    /// How many Double variables it has; of a gateway: how many registers of each device it reads.
    pub variables: u32,
    /// How often all of them change; zero is never. Of a gateway: how often it reads each device.
    pub update: Duration,
    /// The Modbus TCP devices that a gateway reads.
    pub devices: Vec<SocketAddr>,
    /// On which CPUs.
    pub cpus: Option<CpuList>,
    /// In which network.
    pub network: Option<Namespace>,
    /// Nobody waits for it any more once this is set.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self {
            port: 0,
            bind: Ipv4Addr::LOCALHOST.into(),
            variables: 100,
            update: Duration::from_millis(100),
            devices: Vec::new(),
            cpus: None,
            network: None,
            stop: None,
        }
    }
}

/// The peer cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It is not installed.
    #[error("{peer} is not installed: {command}")]
    NotInstalled {
        /// Which.
        peer: &'static str,
        /// The command that mends it.
        command: String,
    },
    /// It does not run.
    #[error("{peer}: {source}")]
    Program {
        /// Which.
        peer: &'static str,
        /// Why.
        source: ProgramError,
    },
}

/// Starts an installed peer and waits until it listens. It ends when this is dropped, and when this process ends.
///
/// [`Running::first_signal`] is its first variable.
///
/// # Errors
/// If it is not installed or does not run.
pub fn start(peer: &'static Peer, directory: &Path, options: &PeerOptions) -> Result<Running, StartError> {
    let failed = |source| StartError::Program { peer: peer.name, source };
    program(peer, directory, options)?.serve_unless(LIMIT, options.stop.as_deref()).map_err(failed)
}

/// The program of an installed peer with its arguments, for those who start it themselves.
///
/// # Errors
/// If it is not installed.
pub fn program(peer: &'static Peer, directory: &Path, options: &PeerOptions) -> Result<Program, StartError> {
    match install::state(peer, directory) {
        State::Installed { .. } => {}
        State::NotInstalled { command } | State::Outdated { command } | State::Missing { command, .. } => {
            return Err(StartError::NotInstalled { peer: peer.name, command });
        }
    }
    // Our programs are written again: another version of this command may have written others.
    install::install(peer, directory)
        .map_err(|error| StartError::NotInstalled { peer: peer.name, command: error.to_string() })?;
    Ok(arranged(peer, directory, options))
}

fn arranged(peer: &Peer, directory: &Path, options: &PeerOptions) -> Program {
    let home = directory.join(peer.name);
    let source = |path: &str| source(directory, path).to_string_lossy().into_owned();
    let mut port = options.port;
    let program = match peer.recipe {
        Recipe::Script { .. } => Program::new(home.join("bin/o6-server")),
        Recipe::Python { folder } => {
            Program::new(home.join("bin/python")).arg(source(&format!("{folder}/server.py")))
        }
        Recipe::Maven { .. } => {
            let path = format!("{0}/classes:{0}/lib/*", home.display());
            // Netty asks the system for its memory by itself; the heap is what a small server needs.
            Program::new(which("java").unwrap_or_else(|| "java".into())).args([
                "-Xmx1g",
                "-cp",
                &path,
                "MiloServer",
            ])
        }
        Recipe::Npm { .. } => {
            Program::new(which("node").unwrap_or_else(|| "node".into())).arg("server.js").in_directory(&home)
        }
        Recipe::Go { program, .. } | Recipe::Cargo { program, .. } => Program::new(home.join(program)),
        Recipe::Debian { .. } => {
            if port == 0 {
                port = free_port(options.bind);
            }
            Program::new("/bin/sh").arg(source("mosquitto/broker.sh"))
        }
    };
    let mut program = program.args(["--port", &port.to_string(), "--bind", &options.bind.to_string()]);
    if peer.role != Role::Mqtt {
        let update = (options.update.as_secs_f64() * 1e3).to_string();
        program = program.args(["--variables", &options.variables.to_string(), "--update", &update]);
    }
    if peer.role == Role::Gateway {
        let devices: Vec<String> = options.devices.iter().map(ToString::to_string).collect();
        program = program.args(["--devices", &devices.join(",")]);
    }
    program = program.arg("--exit-with-stdin");
    if let Some(cpus) = &options.cpus {
        program = program.on(cpus.clone());
    }
    if let Some(network) = &options.network {
        program = program.within(network);
    }
    program
}

/// A port that was free a moment ago. In a network of its own every port is.
fn free_port(address: IpAddr) -> u16 {
    let any = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    TcpListener::bind((address, 0))
        .or_else(|_| any())
        .and_then(|it| it.local_addr())
        .map_or(1883, |it| it.port())
}
