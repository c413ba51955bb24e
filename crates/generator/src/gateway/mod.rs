//! Loads of gateways: their cost, and the delay of values through them.
//!
//! - `registers`: from registers of field devices (`device`) to a client; `against`: the same with other gateways;
//! - `messages`: from messages of an MQTT broker to a client;
//! - `servers`: from other OPC UA servers to many clients;
//! - `apply`: values of devices while the configuration changes;
//! - `watcher`: the clients.

mod against;
pub(crate) mod apply;
mod device;
pub(crate) mod messages;
pub(crate) mod registers;
pub(crate) mod servers;
mod watcher;

use crate::common::environment;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};
use taktwerk_load::clock;
use taktwerk_load::pin::CpuList;
use watcher::Watcher;

/// Start timeout of the gateway.
const START: Duration = Duration::from_secs(60);
/// The namespace of the tags: the first one after the server's own.
const NAMESPACE: u16 = 2;
/// Beginning of every configuration: an open server for this machine only, on any port.
const HEAD: &str = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = false\n[security]\nnone = true\n[identities]\n\
                    anonymous = true\n[permissions]\nunspecified = \"open\"\n";

/// Starts Modbus TCP devices that run until this process ends. Returns their addresses.
///
/// # Errors
/// If no threads or ports are available.
pub fn field_devices(count: u32, registers: u16, interval: Duration) -> io::Result<Vec<SocketAddr>> {
    device::Devices::start(count, registers, nanos(interval), 0).map(|devices| devices.addresses().to_vec())
}

/// Starts this program as a gateway.
fn start(
    configuration: &str,
    folder: &Path,
    cpus: Option<&CpuList>,
    context: &Context<'_>,
) -> Result<Running, GeneratorError> {
    let file = folder.join("gateway.toml");
    std::fs::write(&file, configuration)
        .map_err(|error| GeneratorError::Environment(format!("{}: {error}", file.display())))?;
    let mut program =
        Program::new(context.program()?).args(["serve", "--exit-with-stdin", "--config"]).arg(file.display());
    if let Some(cpus) = cpus {
        program = program.on(cpus.clone());
    }
    program.serve(START).map_err(GeneratorError::environment)
}

/// How long a client receives before the time is looked at, in nanoseconds.
const STEP: u64 = 500_000_000;

/// Receives for some time.
fn wait(
    watcher: &mut Watcher,
    what: &str,
    span: Duration,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let (start, end) = (clock::monotonic(), clock::monotonic() + nanos(span));
    let mut progress = context.time(what, span);
    while clock::monotonic() < end && !context.is_ended() {
        watcher.run_until(end.min(clock::monotonic() + STEP)).map_err(environment)?;
        progress.at((clock::monotonic() - start) / 1_000_000_000);
    }
    watcher.check()
}
