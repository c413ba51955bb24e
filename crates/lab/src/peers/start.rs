//! Starts peers through one interface.

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

/// Timeout until a peer listens; long enough for a virtual machine that warms up on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How to start a peer.
#[derive(Debug, Clone)]
pub struct PeerOptions {
    /// The port; 0 chooses a free one.
    pub port: u16,
    /// The address to listen on.
    pub bind: IpAddr,
    /// Number of Double variables; for a gateway, the number of registers per device.
    pub variables: u32,
    /// Interval between changes of all variables; zero means never. For a gateway, its polling interval.
    pub update: Duration,
    /// Modbus TCP devices for a gateway.
    pub devices: Vec<SocketAddr>,
    /// CPU affinity.
    pub cpus: Option<CpuList>,
    /// Network namespace.
    pub network: Option<Namespace>,
    /// Stops waiting for it when set.
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
        /// The peer.
        peer: &'static str,
        /// The command that installs it.
        command: String,
    },
    /// It does not run.
    #[error("{peer}: {source}")]
    Program {
        /// The peer.
        peer: &'static str,
        /// The reason.
        source: ProgramError,
    },
}

/// Starts an installed peer and waits until it listens. It ends when dropped, and when this process ends.
///
/// [`Running::first_signal`] returns its first variable.
///
/// # Errors
/// If it is not installed or does not run.
pub fn start(peer: &'static Peer, directory: &Path, options: &PeerOptions) -> Result<Running, StartError> {
    let failed = |source| StartError::Program { peer: peer.name, source };
    program(peer, directory, options)?.serve_unless(LIMIT, options.stop.as_deref()).map_err(failed)
}

/// The program of an installed peer with its arguments, for callers that start it themselves.
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
    // Writes our programs again: another version of this command may have written different ones.
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
            // Netty allocates memory outside of the heap; the heap is sufficient for a small server.
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

/// A port that was free a moment ago. In a separate namespace all ports are free.
fn free_port(address: IpAddr) -> u16 {
    let any = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    TcpListener::bind((address, 0))
        .or_else(|_| any())
        .and_then(|it| it.local_addr())
        .map_or(1883, |it| it.port())
}
