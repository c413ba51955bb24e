//! `bench gateway`: from a register of a field device to a client. It starts the devices, a gateway that reads them and a
//! client that subscribes to everything. With `--against`, other gateways read devices of the same kind: see [`against`].

use super::device::{Devices, age};
use super::watcher::{Seen, Watched, Watcher};
use super::{HEAD, NAMESPACE, against, start, wait};
use crate::bench::account::{self, Account, Window};
use crate::bench::common::nanos;
use crate::bench::report::Report;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::span;
use clap::Args;
use core::fmt::Write;
use serde_json::json;
use std::time::Duration;
use taktwerk_lab::figures;
use taktwerk_lab::pin::CpuList;
use taktwerk_load::result::Unit;
use taktwerk_types::{NodeId, Variant};

/// Arguments of `taktwerk bench gateway`.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// Modbus TCP devices.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) devices: u32,

    /// Registers of each device; each one is a tag.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(super) registers: u16,

    /// How often the gateway reads each device, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    pub(super) poll: Duration,

    /// Publishing interval of the client, in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    pub(super) interval: Duration,

    /// Measure twice; the second time, this many devices do not answer. The others are compared.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "against")]
    hang: u32,

    /// Compare with these gateways, installed by `taktwerk lab peers install`: asyncua-pymodbus, node-red. Each one reads 1, 2,
    /// 5, 10 … devices, as many as it holds.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) against: Vec<String>,

    /// How long to measure.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::some)]
    pub(super) duration: Duration,

    /// Warm-up before the measurement, not counted.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span::seconds)]
    pub(super) warmup: Duration,

    /// CPU for the gateway.
    #[arg(long, value_name = "LIST")]
    pub(super) gateway_cpu: Option<CpuList>,

    /// CPU for the devices and the client.
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,
}

/// Longest of the intervals: the time in a register begins again after six and a half seconds.
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// What a change may take beyond the two intervals.
const ALLOWANCE: u64 = 5_000_000;

/// Measures and reports.
pub(in crate::bench) fn run(
    arguments: &GatewayArgs,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if arguments.hang >= arguments.devices {
        return Err(Failure::Usage(format!(
            "--hang {}: some of the {} devices have to answer",
            arguments.hang, arguments.devices
        )));
    }
    if arguments.poll > INTERVAL_MAX || arguments.interval > INTERVAL_MAX {
        return Err(Failure::Usage("--poll and --interval: 2000 ms at most".to_owned()));
    }
    if let Some(cpus) = &arguments.cpu {
        cpus.pin().map_err(|error| Failure::Environment(error.to_string()))?;
    }
    if !arguments.against.is_empty() {
        return against::run(arguments, output, interrupt);
    }
    let devices = devices(arguments, arguments.devices)?;
    let folder = tempfile::tempdir().map_err(|error| Failure::Environment(error.to_string()))?;
    let gateway = start(&configuration(arguments, &devices), folder.path(), arguments.gateway_cpu.as_ref())?;
    let mut watcher = Watcher::connect(
        gateway.url(),
        watched(arguments, arguments.devices, NAMESPACE),
        arguments.interval,
        interrupt,
    )?;
    wait(&mut watcher, "warming up", arguments.warmup, interrupt)?;
    let (calm, account) = window(arguments, &mut watcher, gateway.pid(), interrupt)?;
    let mut hanging = None;
    if arguments.hang > 0 && !interrupt.asked() {
        devices.hang();
        // Until the gateway has noticed, and does what it does with such devices.
        wait(&mut watcher, "devices stop answering", arguments.warmup.max(5 * arguments.poll), interrupt)?;
        hanging = Some(window(arguments, &mut watcher, gateway.pid(), interrupt)?.0);
    }
    watcher.leave();
    report(arguments, gateway.url(), &calm, hanging.as_ref(), &account).print(output, interrupt)
}

/// Starts so many devices.
pub(super) fn devices(arguments: &GatewayArgs, count: u32) -> Result<Devices, Failure> {
    Devices::start(count, arguments.registers, nanos(arguments.poll), arguments.hang)
        .map_err(|error| Failure::Environment(format!("cannot start the devices: {error}")))
}

/// All tags of so many devices. The registers of a device change together and come in one message: the first one tells its age.
pub(super) fn watched(arguments: &GatewayArgs, devices: u32, namespace: u16) -> Watched {
    let (registers, hanging) = (u32::from(arguments.registers), arguments.hang);
    let node = move |device, register| NodeId::string(namespace, format!("d{device}/{register}"));
    Watched {
        nodes: (0..devices)
            .flat_map(|device| (0..registers).map(move |register| node(device, register)))
            .collect(),
        sampling: arguments.interval,
        queue: 1,
        age: Box::new(move |tag, value, now| match value {
            Variant::UInt16(number) if tag % registers == 0 && tag / registers >= hanging => {
                Some(age(*number, now))
            }
            _ => None,
        }),
    }
}

/// The gateway's configuration: a tag for each register.
pub(super) fn configuration(arguments: &GatewayArgs, devices: &Devices) -> String {
    let mut text = HEAD.to_owned();
    let poll = arguments.poll.as_secs_f64() * 1e3;
    for (number, address) in devices.addresses().iter().enumerate() {
        // Writing into a text does not fail.
        let _ = write!(
            text,
            "[[source]]\nname = \"d{number}\"\ntype = \"modbus\"\naddress = \"{address}\"\nunit = 1\n\
             interval = \"{poll} ms\"\n"
        );
        for register in 0..arguments.registers {
            let _ = write!(
                text,
                "[[tag]]\nsource = \"d{number}\"\nname = \"{register}\"\naddress = \"holding:{register}\"\n"
            );
        }
    }
    text
}

pub(super) fn window(
    arguments: &GatewayArgs,
    watcher: &mut Watcher,
    pid: u32,
    interrupt: &Interrupt,
) -> Result<(Seen, Account), Failure> {
    watcher.take();
    let window = Window::open(account::server_process(Some(pid))?, watcher.port())?;
    wait(watcher, "measuring", arguments.duration, interrupt)?;
    let account = window.close()?;
    Ok((watcher.take(), account))
}

fn report(
    arguments: &GatewayArgs,
    url: &str,
    calm: &Seen,
    hanging: Option<&Seen>,
    account: &Account,
) -> Report {
    let mut report = Report::new("gateway", url);
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let read = f64::from(arguments.devices) * f64::from(arguments.registers) / arguments.poll.as_secs_f64();
    let limit = nanos(arguments.poll) + nanos(arguments.interval) + ALLOWANCE;
    report.set(
        "requested",
        json!({"devices": arguments.devices, "registers": arguments.registers, "poll_ms": millis(arguments.poll),
            "publishing_ms": millis(arguments.interval), "hang": arguments.hang}),
    );
    let rate = calm.values as f64 / account.seconds().max(1e-9);
    report.set("values", calm.values);
    report.set("values_per_s", rate);
    report.set("read_per_s", read);
    report.set("delay", json!(calm.delays.summary()));
    report.set("delay_limit_us", limit as f64 / 1e3);
    report.histogram("delay", &calm.delays);
    report.fact(
        "values",
        format!("{}/s to the client; {}/s are read", figures::number(rate), figures::number(read)),
    );
    report.times("register to client", &calm.delays);
    if let Some(hanging) = hanging {
        report.set("delay_while_others_hang", json!(hanging.delays.summary()));
        report.times("while others hang", &hanging.delays);
    }
    let late = calm.delays.percentile(99.0) > limit;
    report.set("p99_within_limit", !late);
    report.fact(
        "p99 of the delay",
        format!(
            "{} the two intervals and 5 ms ({})",
            if late { "more than" } else { "within" },
            figures::micros(limit as f64 / 1e3)
        ),
    );
    // Each value that was read, whether it had changed or not: that is what the gateway works on.
    let units = (read * account.seconds()).round();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count of values
    report.account(account, Unit::Value, units as u64);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_has_a_tag_for_each_register() {
        let devices = Devices::start(2, 3, 100_000_000, 0).unwrap();
        let arguments = GatewayArgs {
            devices: 2,
            registers: 3,
            poll: Duration::from_millis(100),
            interval: Duration::from_millis(100),
            hang: 0,
            against: Vec::new(),
            duration: Duration::from_secs(1),
            warmup: Duration::ZERO,
            gateway_cpu: None,
            cpu: None,
        };
        let text = configuration(&arguments, &devices);
        let path = std::path::Path::new("gateway.toml");
        taktwerk_config::ConfigFile::parse(path, &text).unwrap();
        let gateway = taktwerk_gateway::GatewayConfig::parse(path, &text).unwrap().unwrap();
        let tags: usize = gateway.sources.iter().map(|source| source.tags.len()).sum();
        assert_eq!((gateway.sources.len(), tags), (2, 6));
    }
}
