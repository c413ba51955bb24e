//! What a gateway costs, and how late the values are that go through it.
//!
//! - [`registers`]: from registers of field devices ([`device`]) to a client; [`against`]: the same with gateways of others;
//! - [`messages`]: from messages of an MQTT broker to a client;
//! - [`servers`]: from other OPC UA servers to many clients;
//! - [`watcher`]: the clients.

mod against;
mod device;
mod messages;
mod registers;
mod servers;
mod watcher;

pub(crate) use messages::MessagesArgs;
pub(super) use messages::run as run_messages;
pub(crate) use registers::GatewayArgs;
pub(super) use registers::run as run_registers;
pub(crate) use servers::ServersArgs;
pub(super) use servers::run as run_servers;

use super::common::{environment, nanos};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use taktwerk_lab::clock;
use taktwerk_lab::pin::CpuList;
use taktwerk_lab::program::{Program, Running};
use watcher::Watcher;

/// How long the gateway may take to start.
const START: Duration = Duration::from_secs(60);
/// The namespace of the tags: the first one behind the server's own.
const NAMESPACE: u16 = 2;
/// What every configuration begins with: a server for everybody on this machine, on any port.
const HEAD: &str = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = false\n[security]\nnone = true\n[identities]\n\
                    anonymous = true\n[permissions]\nunspecified = \"open\"\n";

/// Starts Modbus TCP devices that run until this process ends; says where they are.
pub(crate) fn field_devices(count: u32, registers: u16, interval: Duration) -> io::Result<Vec<SocketAddr>> {
    device::Devices::start(count, registers, nanos(interval), 0).map(|devices| devices.addresses().to_vec())
}

/// Starts this program as a gateway.
fn start(configuration: &str, folder: &Path, cpus: Option<&CpuList>) -> Result<Running, Failure> {
    let file = folder.join("gateway.toml");
    std::fs::write(&file, configuration)
        .map_err(|error| Failure::Environment(format!("{}: {error}", file.display())))?;
    let exe = std::env::current_exe()
        .map_err(|error| Failure::Environment(format!("cannot find this program: {error}")))?;
    let mut program = Program::new(exe).args(["serve", "--exit-with-stdin", "--config"]).arg(file.display());
    if let Some(cpus) = cpus {
        program = program.on(cpus.clone());
    }
    program.serve(START).map_err(|error| Failure::Environment(error.to_string()))
}

/// Receives for some time.
fn wait(watcher: &mut Watcher, what: &str, span: Duration, interrupt: &Interrupt) -> Result<(), Failure> {
    let (start, end) = (clock::monotonic(), clock::monotonic() + nanos(span));
    let mut progress = Progress::of_time(what, span);
    while clock::monotonic() < end && !interrupt.asked() {
        watcher.run_until(end.min(clock::monotonic() + 500_000_000)).map_err(environment)?;
        progress.at((clock::monotonic() - start) / 1_000_000_000);
    }
    watcher.check()
}
