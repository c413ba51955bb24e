//! `bench gateway-opcua`: from other OPC UA servers to many clients. Starts the servers and one more that is not behind
//! the gateway. Measures the delay of a direct client of that one. Then starts a gateway that reads the other servers, and
//! clients that subscribe to all tags. Meanwhile the direct client goes on, in a thread on the CPU of the gateway, so that
//! servers with the gateway and with one client are compared at the same time, and wake the same CPU.

use super::watcher::{Seen, Watched, Watcher};
use super::{HEAD, NAMESPACE, START, STEP, start, wait};
use crate::account::{self, Account, Window};
use crate::common::{environment, pin};
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use crate::signals;
use core::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use taktwerk_lab::program::{Program, Running};
use taktwerk_load::clock;
use taktwerk_load::process::{Process, Snapshot, Usage};
use taktwerk_load::result::{Aggregated, AggregatedRequested, Unit};
use taktwerk_load::specification::GatewayServers;
use taktwerk_model::figures;
use taktwerk_types::{NodeId, Variant};

/// Maximum delay that the gateway may add beyond one publishing interval, in nanoseconds.
const ALLOWANCE: u64 = 2_000_000;
/// One in this many variables contains its time of writing: reading the clock for each value would slow down the
/// clients.
const TELLS: u32 = 50;

/// Observations with the gateway.
struct Way {
    seen: Seen,
    account: Account,
    /// CPU use of each server behind it, and of the one with a direct client, in percent of one core.
    behind: Vec<f64>,
    apart: f64,
}

/// Measures and reports.
pub(crate) fn run(arguments: &GatewayServers, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    if arguments.interval.is_zero() {
        return Err(GeneratorError::Usage("--interval: at least 1 ms".to_owned()));
    }
    pin(arguments.cpu.as_ref())?;
    let mut servers = servers(arguments, context)?;
    let Some(apart) = servers.pop().filter(|_| !servers.is_empty()) else {
        return Err(GeneratorError::Usage("--servers: at least 1".to_owned()));
    };
    let direct = || {
        let nodes = (0..arguments.items).map(signals::id).collect();
        let watched = Watched { nodes, sampling: arguments.interval, queue: 1, age: Box::new(age) };
        Watcher::connect(apart.url(), watched, arguments.interval, context)
    };
    let mut watcher = direct()?;
    wait(&mut watcher, "warming up", arguments.warmup, context)?;
    watcher.take();
    wait(&mut watcher, "one client of one server", arguments.duration, context)?;
    let alone = watcher.take();
    watcher.leave();
    drop(watcher);

    let folder = tempfile::tempdir().map_err(GeneratorError::environment)?;
    let table = folder.path().join(TABLE);
    std::fs::write(&table, tags(arguments))
        .map_err(|error| GeneratorError::Environment(format!("{}: {error}", table.display())))?;
    let gateway =
        start(&configuration(arguments, &servers), folder.path(), arguments.gateway_cpu.as_ref(), context)?;
    let mut clients = Watcher::connect_all(
        gateway.url(),
        arguments.clients,
        watched(arguments),
        arguments.interval,
        context,
    )?;
    let through = way(arguments, &mut clients, &direct, gateway.pid(), (&servers, &apart), context)?;
    clients.leave();
    Ok(report(arguments, gateway.url(), &alone, &through).finish(context, None))
}

/// Starts the servers, one more than those behind the gateway. Their values are the times of their writes.
fn servers(arguments: &GatewayServers, context: &Context<'_>) -> Result<Vec<Running>, GeneratorError> {
    let exe = context.program()?;
    let update = format!("{}ms", arguments.interval.as_millis());
    let mut progress = context.step("starting servers", u64::from(arguments.servers) + 1);
    (0..=arguments.servers)
        .map(|number| {
            if context.is_ended() {
                return Err(GeneratorError::Interrupted);
            }
            progress.at(number.into());
            Program::new(&exe)
                .args(["serve", "--exit-with-stdin", "--no-plant", "--port", "0"])
                .args(["--signal-values", "time", "--update", &update, "--signals"])
                .arg(arguments.items)
                .serve(START)
                .map_err(GeneratorError::environment)
        })
        .collect()
}

/// Minimum of the gateway's limit for monitored items.
const MONITORED_ITEMS: u64 = 1_000_000;
/// The table of tags, the same for all servers. A separate file, because it can be long.
const TABLE: &str = "tags.csv";

/// A tag for each variable of a server.
fn tags(arguments: &GatewayServers) -> String {
    let mut text = "name,address,type\n".to_owned();
    for item in 0..arguments.items {
        // Writing into a text does not fail.
        let _ = writeln!(text, "{item},{},Double", signals::id(item));
    }
    text
}

/// The gateway's configuration: each server is a source.
fn configuration(arguments: &GatewayServers, servers: &[Running]) -> String {
    let items = u64::from(arguments.servers) * u64::from(arguments.items);
    let all = (items * u64::from(arguments.clients)).max(MONITORED_ITEMS);
    let each = items.max(MONITORED_ITEMS);
    let mut text =
        format!("{HEAD}[limits]\nmonitored_items = {all}\nmonitored_items_per_subscription = {each}\n");
    let interval = arguments.interval.as_secs_f64() * 1e3;
    for (number, server) in servers.iter().enumerate() {
        // Writing into a text does not fail.
        let _ = write!(
            text,
            "[[source]]\nname = \"s{number}\"\ntype = \"opcua\"\nurl = \"{}\"\n\
             publishing_interval = \"{interval} ms\"\ntags = \"{TABLE}\"\n",
            server.url()
        );
    }
    text
}

/// All tags.
fn watched(arguments: &GatewayServers) -> Watched {
    let node = |server, item| NodeId::string(NAMESPACE, format!("s{server}/{item}"));
    Watched {
        nodes: (0..arguments.servers)
            .flat_map(|server| (0..arguments.items).map(move |item| node(server, item)))
            .collect(),
        sampling: arguments.interval,
        queue: 1,
        age: Box::new(age),
    }
}

/// Time since a variable was written, if it contains its time: seconds since 1970.
fn age(item: u32, value: &Variant, _: u64) -> Option<u64> {
    let Variant::Double(seconds) = value else { return None };
    if !item.is_multiple_of(TELLS) || !seconds.is_finite() {
        return None;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(nanos(now.saturating_sub(Duration::try_from_secs_f64(*seconds).ok()?)))
}

/// Measures the clients of the gateway, whose process is `pid`, and the servers, while a direct client receives.
fn way(
    arguments: &GatewayServers,
    clients: &mut Watcher,
    direct: &(impl Fn() -> Result<Watcher, GeneratorError> + Sync),
    pid: u32,
    servers: (&[Running], &Running),
    context: &Context<'_>,
) -> Result<Way, GeneratorError> {
    let stop = AtomicBool::new(false);
    let (connected, is_connected) = mpsc::channel();
    let cpus = arguments.gateway_cpu.as_ref();
    let receive = || -> Result<(), GeneratorError> {
        // Dropped at the end of this thread in any case, so that the other side does not wait for ever.
        let connected = connected;
        pin(cpus)?;
        let mut watcher = direct()?;
        let _ = connected.send(());
        while !stop.load(Ordering::Relaxed) {
            watcher.run_until(clock::monotonic() + STEP).map_err(environment)?;
        }
        watcher.leave();
        watcher.check()
    };
    std::thread::scope(|scope| {
        let receiving = scope.spawn(receive);
        let way = match is_connected.recv() {
            Ok(()) => compare(arguments, clients, pid, servers, context),
            Err(_) => Err(GeneratorError::Environment("the direct client did not connect".to_owned())),
        };
        stop.store(true, Ordering::Relaxed);
        let ended = receiving.join();
        ended.map_err(|_| GeneratorError::Environment("the direct client ended".to_owned()))??;
        way
    })
}

/// Measures the clients of the gateway and the servers.
fn compare(
    arguments: &GatewayServers,
    clients: &mut Watcher,
    pid: u32,
    (servers, apart): (&[Running], &Running),
    context: &Context<'_>,
) -> Result<Way, GeneratorError> {
    let snapshots = || -> Result<Vec<Snapshot>, GeneratorError> {
        let all = servers.iter().chain([apart]);
        all.map(|server| Process::new(server.pid()).snapshot().map_err(GeneratorError::environment)).collect()
    };
    wait(clients, "warming up", arguments.warmup, context)?;
    clients.take();
    let before = snapshots()?;
    let window = Window::open(account::server_process(Some(pid))?, clients.port())?;
    wait(clients, "clients of the gateway", arguments.duration, context)?;
    let account = window.close()?;
    let after = snapshots()?;
    let mut behind: Vec<f64> =
        before.iter().zip(&after).map(|(before, after)| Usage::between(before, after).cpu_percent).collect();
    let apart = behind.pop().unwrap_or_default();
    Ok(Way { seen: clients.take(), account, behind, apart })
}

fn report(arguments: &GatewayServers, url: &str, alone: &Seen, through: &Way) -> Report {
    let mut report = Report::new("gateway-opcua", url);
    let per_second = through.seen.values as f64 / through.account.seconds().max(1e-9);
    let due = f64::from(arguments.servers) * f64::from(arguments.items) / arguments.interval.as_secs_f64();
    report.fact(
        "values",
        format!(
            "{}/s to {} clients; {}/s change",
            figures::number(per_second),
            arguments.clients,
            figures::number(due)
        ),
    );
    let many = through.behind.iter().sum::<f64>() / through.behind.len().max(1) as f64;
    let one = through.apart;
    report.fact(
        "CPU of a server behind it",
        format!(
            "{many:.2} % of a core (mean); {one:.2} % with one client and no gateway, at the same time: {:.2} ×",
            many / one.max(1e-9)
        ),
    );
    let (direct, gateway) = (&alone.delays, &through.seen.delays);
    let added = gateway.percentile(99.0).saturating_sub(direct.percentile(99.0));
    let limit = nanos(arguments.interval) + ALLOWANCE;
    report.part(&Aggregated {
        requested: AggregatedRequested {
            servers: arguments.servers,
            items: arguments.items,
            clients: arguments.clients,
            publishing_ms: arguments.interval.as_secs_f64() * 1e3,
        },
        values: through.seen.values,
        values_per_s: per_second,
        changes_per_s: due,
        source_cpu_percent_one_client: one,
        source_cpu_percent_gateway: many,
        source_cpu_ratio: (one > 0.0).then(|| many / one),
        direct: direct.summary(),
        delay: gateway.summary(),
        added_p99_us: added as f64 / 1e3,
        p99_within_limit: added <= limit,
    });
    report.histogram("direct", direct);
    report.histogram("delay", gateway);
    report.times("write to client, direct", direct);
    report.times("through the gateway", gateway);
    report.added_to_p99(added, limit, "one interval and 2 ms");
    report.account(&through.account, Unit::Value, through.seen.values);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_takes_the_items_of_all_clients() {
        let arguments = GatewayServers { items: 5_000, ..GatewayServers::default() };
        let text = configuration(&arguments, &[]);
        let file = taktwerk_config::ConfigFile::parse(std::path::Path::new("g.toml"), &text).unwrap();
        let mut limits = taktwerk_server::Limits::default();
        file.apply_limits(&mut limits);
        assert_eq!(limits.subscriptions.monitored_items_max, 5_000_000);
    }

    #[test]
    fn some_variables_tell_when_they_were_written() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let written = Variant::Double((now - Duration::from_millis(250)).as_secs_f64());
        let told = age(100, &written, 0).unwrap();
        assert!((240_000_000..10_000_000_000).contains(&told), "{told}");
        assert_eq!(age(101, &written, 0), None);
        for wrong in [Variant::Double(f64::NAN), Variant::Double(-1.0), Variant::UInt16(7)] {
            assert_eq!(age(100, &wrong, 0), None);
        }
    }
}
