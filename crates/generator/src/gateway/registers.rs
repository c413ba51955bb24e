//! `bench gateway`: from a register of a field device to a client. Starts the devices, a gateway that reads them, and a
//! client that subscribes to all tags. With `--against`, other gateways read devices of the same kind: see [`against`].

use super::device::{Devices, age};
use super::watcher::{Seen, Watched, Watcher};
use super::{HEAD, NAMESPACE, against, start, wait};
use crate::account::{self, Account, Window};
use crate::common::pin;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use core::fmt::Write;
use std::time::Duration;
use taktwerk_load::result::{Hanging, Polled, PolledRequested, Unit};
use taktwerk_load::specification::GatewayDevices;
use taktwerk_model::figures;
use taktwerk_types::{NodeId, Variant};

/// Maximum of the intervals, because the 16-bit time in a register wraps after 6.5 seconds.
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Maximum delay of a change beyond the two intervals.
const ALLOWANCE: u64 = 5_000_000;

/// Measures and reports.
pub(crate) fn run(arguments: &GatewayDevices, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    if arguments.hang >= arguments.devices {
        return Err(GeneratorError::Usage(format!(
            "--hang {}: at least one of the {} devices must answer",
            arguments.hang, arguments.devices
        )));
    }
    if arguments.poll > INTERVAL_MAX || arguments.interval > INTERVAL_MAX {
        return Err(GeneratorError::Usage("--poll and --interval: at most 2000 ms".to_owned()));
    }
    pin(arguments.cpu.as_ref())?;
    if !arguments.against.is_empty() {
        return against::run(arguments, context);
    }
    let devices = devices(arguments, arguments.devices)?;
    let folder = tempfile::tempdir().map_err(GeneratorError::environment)?;
    let gateway =
        start(&configuration(arguments, &devices), folder.path(), arguments.gateway_cpu.as_ref(), context)?;
    let mut watcher = Watcher::connect(
        gateway.url(),
        watched(arguments, arguments.devices, NAMESPACE),
        arguments.interval,
        context,
    )?;
    wait(&mut watcher, "warming up", arguments.warmup, context)?;
    let (calm, account) = window(arguments, &mut watcher, gateway.pid(), context)?;
    let mut hanging = None;
    if arguments.hang > 0 && !context.is_ended() {
        devices.hang();
        // Until the gateway has noticed the hanging devices and reduced polling them.
        wait(&mut watcher, "devices stop answering", arguments.warmup.max(5 * arguments.poll), context)?;
        hanging = Some(window(arguments, &mut watcher, gateway.pid(), context)?.0);
    }
    watcher.leave();
    Ok(report(arguments, gateway.url(), &calm, hanging.as_ref(), &account).finish(context, None))
}

/// Starts this many devices.
pub(super) fn devices(arguments: &GatewayDevices, count: u32) -> Result<Devices, GeneratorError> {
    Devices::start(count, arguments.registers, nanos(arguments.poll), arguments.hang)
        .map_err(|error| GeneratorError::Environment(format!("cannot start the devices: {error}")))
}

/// All tags of this many devices. The registers of a device change together and arrive in one message; only the first
/// one carries a time.
pub(super) fn watched(arguments: &GatewayDevices, devices: u32, namespace: u16) -> Watched {
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
pub(super) fn configuration(arguments: &GatewayDevices, devices: &Devices) -> String {
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
    arguments: &GatewayDevices,
    watcher: &mut Watcher,
    pid: u32,
    context: &Context<'_>,
) -> Result<(Seen, Account), GeneratorError> {
    watcher.take();
    let window = Window::open(account::server_process(Some(pid))?, watcher.port())?;
    wait(watcher, "measuring", arguments.duration, context)?;
    let account = window.close()?;
    Ok((watcher.take(), account))
}

fn report(
    arguments: &GatewayDevices,
    url: &str,
    calm: &Seen,
    hanging: Option<&Seen>,
    account: &Account,
) -> Report {
    let mut report = Report::new("gateway", url);
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let read = f64::from(arguments.devices) * f64::from(arguments.registers) / arguments.poll.as_secs_f64();
    let limit = nanos(arguments.poll) + nanos(arguments.interval) + ALLOWANCE;
    let rate = calm.values as f64 / account.seconds().max(1e-9);
    let late = calm.delays.percentile(99.0) > limit;
    report.part(&Polled {
        requested: PolledRequested {
            devices: arguments.devices,
            registers: arguments.registers,
            poll_ms: millis(arguments.poll),
            publishing_ms: millis(arguments.interval),
            hang: arguments.hang,
        },
        values: calm.values,
        values_per_s: rate,
        read_per_s: read,
        delay: calm.delays.summary(),
        delay_limit_us: limit as f64 / 1e3,
        p99_within_limit: !late,
    });
    report.histogram("delay", &calm.delays);
    report.fact(
        "values",
        format!("{}/s to the client; {}/s read from devices", figures::number(rate), figures::number(read)),
    );
    report.times("register to client", &calm.delays);
    if let Some(hanging) = hanging {
        report.part(&Hanging { delay_while_others_hang: hanging.delays.summary() });
        report.times("while others hang", &hanging.delays);
    }
    report.fact(
        "p99 of the delay",
        format!(
            "{} the two intervals and 5 ms ({})",
            if late { "more than" } else { "within" },
            figures::micros(limit as f64 / 1e3)
        ),
    );
    // All values that were read, changed or not, because the gateway processes all of them.
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
        let arguments = GatewayDevices { devices: 2, registers: 3, ..GatewayDevices::default() };
        let text = configuration(&arguments, &devices);
        let path = std::path::Path::new("gateway.toml");
        taktwerk_config::ConfigFile::parse(path, &text).unwrap();
        let gateway = taktwerk_gateway::GatewayConfig::parse(path, &text).unwrap().unwrap();
        let tags: usize = gateway.sources.iter().map(|source| source.tags.len()).sum();
        assert_eq!((gateway.sources.len(), tags), (2, 6));
    }
}
