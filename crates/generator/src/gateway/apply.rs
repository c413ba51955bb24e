//! `bench gateway-apply`: from registers of field devices to a client, while the configuration of other devices
//! changes. Starts the devices, the gateway and the client, measures, and then applies one configuration after the
//! other.

use super::device::{Devices, age};
use super::watcher::{Seen, Watched, Watcher};
use super::{HEAD, NAMESPACE, start, wait};
use crate::account::{self, Account, Window};
use crate::common::{environment, pin};
use crate::context::{Context, nanos};
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use core::fmt::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;
use taktwerk_lab::program::Program;
use taktwerk_load::clock;
use taktwerk_load::latency::Times;
use taktwerk_load::result::{Reconfigured, ReconfiguredRequested, Unit};
use taktwerk_load::specification::GatewayApply;
use taktwerk_model::figures;
use taktwerk_types::{NodeId, Variant};

/// Maximum of the intervals, because the 16-bit time in a register wraps after 6.5 seconds.
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Maximum ratio of the 99th percentile to the one before.
const RATIO_MAX: f64 = 2.0;
/// Timeout for applying a configuration, and for a command that reads a value.
const PATIENCE: Duration = Duration::from_secs(120);
/// Interval for checking whether a configuration has been applied.
const LOOK: u64 = 2_000_000;

/// Observations while configurations were applied.
#[derive(Default)]
struct During {
    values: u64,
    delays: Times,
    apply: Times,
    /// Observed time in nanoseconds.
    span: u64,
}

/// Measures and reports.
pub(crate) fn run(arguments: &GatewayApply, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    if arguments.poll > INTERVAL_MAX || arguments.interval > INTERVAL_MAX {
        return Err(GeneratorError::Usage("--poll and --interval: at most 2000 ms".to_owned()));
    }
    pin(arguments.cpu.as_ref())?;
    let registers = u32::from(arguments.registers);
    let changing = arguments.changed.div_ceil(registers);
    let devices = Devices::start(arguments.devices + changing, arguments.registers, nanos(arguments.poll), 0)
        .map_err(|error| GeneratorError::Environment(format!("cannot start the devices: {error}")))?;
    let folder = tempfile::tempdir().map_err(GeneratorError::environment)?;
    write_tables(arguments, folder.path(), 0)?;
    let text = configuration(arguments, &devices);
    let gateway = start(&text, folder.path(), arguments.gateway_cpu.as_ref(), context)?;
    let mut watcher = Watcher::connect(gateway.url(), watched(arguments), arguments.interval, context)?;
    wait(&mut watcher, "warming up", arguments.warmup, context)?;
    watcher.take();
    let window = Window::open(account::server_process(Some(gateway.pid()))?, watcher.port())?;
    wait(&mut watcher, "measuring", arguments.duration, context)?;
    let (account, calm) = (window.close()?, watcher.take());
    let mut during = During::default();
    for number in 1..=arguments.applies {
        if context.is_ended() {
            break;
        }
        let high = high(number);
        write_tables(arguments, folder.path(), number)?;
        watcher.take();
        apply(arguments, folder.path(), &mut watcher, context, &mut during)?;
        let seen = watcher.take();
        during.values += seen.values;
        during.delays.merge(&seen.delays);
        check(arguments, gateway.url(), high, context)?;
        wait(&mut watcher, "between two configurations", arguments.warmup, context)?;
    }
    watcher.leave();
    Ok(report(arguments, gateway.url(), &calm, &during, &account).finish(context, None))
}

/// The name of the configuration file, as `start` writes it.
const FILE: &str = "gateway.toml";

/// EURange.High of the changing tags in a configuration.
fn high(number: u32) -> u32 {
    1000 + number
}

/// The tables of tags are separate files, because the tags of a large plant exceed the size limit of a configuration.
const STEADY: &str = "steady.csv";
const CHANGING: &str = "changing.csv";
const LAST: &str = "last.csv";

/// A source for each device. The last device whose tags change may have fewer tags than registers.
fn configuration(arguments: &GatewayApply, devices: &Devices) -> String {
    let mut text = HEAD.to_owned();
    let poll = arguments.poll.as_secs_f64() * 1e3;
    let (unchanged, last) = (arguments.devices as usize, devices.addresses().len() - 1);
    for (device, address) in devices.addresses().iter().enumerate() {
        let table = if device < unchanged {
            STEADY
        } else if device == last {
            LAST
        } else {
            CHANGING
        };
        // Writing into a text does not fail.
        let _ = write!(
            text,
            "[[source]]\nname = \"d{device}\"\ntype = \"modbus\"\naddress = \"{address}\"\nunit = 1\n\
             interval = \"{poll} ms\"\ntags = \"{table}\"\n"
        );
    }
    text
}

/// A table of tags; the changing ones have a range.
fn table(count: u32, high: Option<u32>) -> String {
    let mut text = "name,address,range\n".to_owned();
    let range = high.map_or_else(String::new, |high| format!("0..{high}"));
    for register in 0..count {
        // Writing into a text does not fail.
        let _ = writeln!(text, "{register},holding:{register},{range}");
    }
    text
}

/// Writes the tables of a configuration.
fn write_tables(arguments: &GatewayApply, folder: &Path, number: u32) -> Result<(), GeneratorError> {
    let registers = u32::from(arguments.registers);
    let last = (arguments.changed - 1) % registers + 1;
    let high = Some(high(number));
    for (name, text) in
        [(STEADY, table(registers, None)), (CHANGING, table(registers, high)), (LAST, table(last, high))]
    {
        let file = folder.join(name);
        std::fs::write(&file, text)
            .map_err(|error| GeneratorError::Environment(format!("{}: {error}", file.display())))?;
    }
    Ok(())
}

/// The tags that do not change. The registers of a device change together and arrive in one message; only the first one
/// carries a time.
fn watched(arguments: &GatewayApply) -> Watched {
    let registers = u32::from(arguments.registers);
    let node = move |device, register| NodeId::string(NAMESPACE, format!("d{device}/{register}"));
    Watched {
        nodes: (0..arguments.devices)
            .flat_map(|device| (0..registers).map(move |register| node(device, register)))
            .collect(),
        sampling: arguments.interval,
        queue: 1,
        age: Box::new(move |tag, value, now| match value {
            Variant::UInt16(number) if tag % registers == 0 => Some(age(*number, now)),
            _ => None,
        }),
    }
}

/// Makes the gateway apply its file, and receives values until those read in the meantime have arrived.
fn apply(
    arguments: &GatewayApply,
    folder: &Path,
    watcher: &mut Watcher,
    context: &Context<'_>,
    during: &mut During,
) -> Result<(), GeneratorError> {
    let command = command(arguments, context)?.args(["config", "apply", "--json"]);
    let command = command.arg(folder.join(FILE).display());
    let begin = clock::monotonic();
    let applied = thread::spawn(move || (command.run(PATIENCE), clock::monotonic()));
    while !applied.is_finished() {
        watcher.run_until(clock::monotonic() + LOOK).map_err(environment)?;
    }
    let (output, end) =
        applied.join().map_err(|_| GeneratorError::Environment("`config apply` panicked".to_owned()))?;
    let output = output.map_err(GeneratorError::environment)?;
    let told = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !told.contains("\"tag\"") {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(GeneratorError::Environment(format!("`config apply` changed no tags: {told}{error}")));
    }
    during.apply.record(end - begin);
    let last = end + nanos(arguments.poll) + nanos(arguments.interval);
    watcher.run_until(last).map_err(environment)?;
    during.span += last.max(clock::monotonic()) - begin;
    watcher.check()
}

/// This program, on the gateway's CPUs.
fn command(arguments: &GatewayApply, context: &Context<'_>) -> Result<Program, GeneratorError> {
    let program = Program::new(context.program()?);
    Ok(match &arguments.gateway_cpu {
        Some(cpus) => program.on(cpus.clone()),
        None => program,
    })
}

/// Checks that the last tag has the configured value.
fn check(
    arguments: &GatewayApply,
    url: &str,
    high: u32,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let last = arguments.changed - 1;
    let registers = u32::from(arguments.registers);
    let (device, register) = (arguments.devices + last / registers, last % registers);
    let node = format!("/Objects/{NAMESPACE}:d{device}/{NAMESPACE}:{register}/EURange");
    let read = Program::new(context.program()?).args(["read", url, &node, "--json"]).run(PATIENCE);
    let read = read.map_err(GeneratorError::environment)?;
    let told = String::from_utf8_lossy(&read.stdout);
    if told.contains(&format!("{high}.0")) || told.contains(&format!("\"High\":{high}")) {
        return Ok(());
    }
    Err(GeneratorError::Environment(format!("{node} is not up to {high} after `config apply`: {told}")))
}

fn report(arguments: &GatewayApply, url: &str, calm: &Seen, during: &During, account: &Account) -> Report {
    let mut report = Report::new("gateway-apply", url);
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let p99 = |times: &Times| times.percentile(99.0) as f64;
    let ratio = p99(&during.delays) / p99(&calm.delays).max(1.0);
    let calm_rate = calm.values as f64 / account.seconds().max(1e-9);
    let rate = during.values as f64 / (during.span as f64 / 1e9).max(1e-9);
    let within = ratio <= RATIO_MAX;
    report.part(&Reconfigured {
        requested: ReconfiguredRequested {
            changed: arguments.changed,
            applies: arguments.applies,
            devices: arguments.devices,
            registers: arguments.registers,
            poll_ms: millis(arguments.poll),
            publishing_ms: millis(arguments.interval),
        },
        apply: during.apply.summary(),
        calm: calm.delays.summary(),
        during: during.delays.summary(),
        calm_values_per_s: calm_rate,
        during_values_per_s: rate,
        p99_ratio: ratio,
        p99_within_limit: within,
    });
    report.histogram("calm", &calm.delays);
    report.histogram("during", &during.delays);
    report.fact(
        "changed tags",
        format!("{} with each configuration", figures::number(arguments.changed.into())),
    );
    report.fact(
        "values of the other tags",
        format!(
            "{}/s before, {}/s while configurations are applied",
            figures::number(calm_rate),
            figures::number(rate)
        ),
    );
    report.times("register to client, before", &calm.delays);
    report.times("while configurations are applied", &during.delays);
    report.times("config apply", &during.apply);
    let verdict = if within { "at most" } else { "more than" };
    report.fact("p99 of the other tags", format!("{ratio:.2} × that before: {verdict} {RATIO_MAX} ×"));
    let read = f64::from(arguments.devices) * f64::from(arguments.registers) + f64::from(arguments.changed);
    let units = (read / arguments.poll.as_secs_f64() * account.seconds()).round();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count of values
    report.account(account, Unit::Value, units as u64);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_changes_exactly_the_requested_tags() {
        let devices = Devices::start(4, 3, 100_000_000, 0).unwrap();
        let arguments = GatewayApply { devices: 2, registers: 3, changed: 4, ..GatewayApply::default() };
        let folder = tempfile::tempdir().unwrap();
        let parse = |number| {
            write_tables(&arguments, folder.path(), number).unwrap();
            let text = configuration(&arguments, &devices);
            taktwerk_gateway::GatewayConfig::parse(&folder.path().join(FILE), &text).unwrap().unwrap()
        };
        let (one, two) = (parse(1), parse(2));
        assert_eq!((one.sources.len(), one.tag_count()), (4, 10));
        let tags = |config: &taktwerk_gateway::GatewayConfig| -> Vec<_> {
            let all = config.sources.iter().flat_map(|source| &source.tags);
            all.map(|it| (it.tag.full_name(), it.tag.range)).collect()
        };
        let differ: Vec<_> = tags(&one).into_iter().zip(tags(&two)).filter(|(one, two)| one != two).collect();
        assert_eq!(differ.len(), 4);
        assert!(differ.iter().all(|((name, _), _)| name.starts_with("d2/") || name.starts_with("d3/")));
    }
}
