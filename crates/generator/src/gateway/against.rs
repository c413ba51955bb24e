//! `bench gateway --against`: other gateways read devices of the same kind for the same client.
//!
//! The number of devices grows in steps. At each step, the gateways that sustained the previous one are measured one
//! after the other. The cost of a gateway is compared at the largest load that it sustains.

use super::device::Devices;
use super::registers::{configuration, devices, watched, window};
use super::watcher::{Seen, Watcher};
use super::{NAMESPACE, START, start, wait};
use crate::account::Account;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use std::time::Duration;
use taktwerk_lab::peers::{self, PEERS, Peer, PeerOptions, Role, State};
use taktwerk_lab::program::Running;
use taktwerk_load::latency::{Summary, Times};
use taktwerk_load::result::{Alternative, Compared, ComparedRequested, Contest, Cost, Load};
use taktwerk_load::specification::GatewayDevices;
use taktwerk_load::validity::Invalid;
use taktwerk_model::figures;

/// Maximum delay of a value beyond the poll and the publishing interval. Ours has a limit of a tenth of this; other
/// gateways should not fail because of a late timer.
const TOLERANCE: u64 = 50_000_000;
/// Minimum share of changes that must arrive in time.
const SHARE: f64 = 0.95;
/// Maximum cost per value of our gateway, relative to the best alternative.
const RATIO: f64 = 0.1;
/// Queue size of monitored items. With a queue of one and equally long intervals, a value is lost whenever two polls
/// fall into one publishing interval, regardless of the load.
const QUEUE: u32 = 10;
/// Number of attempts to show that a gateway sustains a load, because a window may be disturbed.
const WINDOWS: u32 = 2;

/// A compared gateway; this program if it has no peer.
struct Contender {
    peer: Option<&'static Peer>,
    /// Whether it has sustained all loads so far.
    holds: bool,
}

impl Contender {
    fn name(&self) -> &'static str {
        self.peer.map_or("taktwerk", |peer| peer.name)
    }

    fn version(&self) -> &'static str {
        self.peer.map_or(env!("CARGO_PKG_VERSION"), |peer| peer.version)
    }
}

/// One gateway with one number of devices.
struct Row {
    name: &'static str,
    version: &'static str,
    devices: u32,
    /// The measurement, or why there is none.
    outcome: Result<Measured, String>,
}

/// Results of a gateway in a window.
struct Measured {
    /// Received values per second, and changes per second.
    values_per_s: f64,
    due_per_s: f64,
    /// Share of changes that arrived in time.
    in_time: f64,
    delay: Summary,
    cpu_percent: Option<f64>,
    /// CPU time of the gateway per received value.
    cpu_us: Option<f64>,
    rss_bytes: u64,
    /// Why the measurement is invalid, if it is.
    invalid: Option<Invalid>,
}

impl Measured {
    fn new(seen: &Seen, account: &Account, due: f64, limit: u64) -> Self {
        let seconds = account.seconds().max(1e-9);
        let server = account.server.as_ref();
        Self {
            values_per_s: seen.values as f64 / seconds,
            due_per_s: due / seconds,
            in_time: (seen.values as f64 * share_within(&seen.delays, limit) / due.max(1.0)).min(1.0),
            delay: seen.delays.summary(),
            cpu_percent: server.map(|usage| usage.cpu_percent),
            cpu_us: server.map(|usage| usage.cpu_us_per(seen.values)),
            rss_bytes: server.map_or(0, |usage| usage.rss_bytes),
            invalid: account.check(),
        }
    }

    fn holds(&self) -> bool {
        self.in_time >= SHARE
    }
}

impl Row {
    /// Cost per value, if it sustained the load.
    fn cost(&self) -> Option<f64> {
        self.outcome.as_ref().ok().filter(|it| it.holds())?.cpu_us
    }

    /// The part of the document, with the cost per value of this program for the same number of devices.
    fn document(&self, ours: Option<f64>) -> Contest {
        let measured = self.outcome.as_ref().ok();
        Contest {
            gateway: self.name.to_owned(),
            version: self.version.to_owned(),
            devices: self.devices,
            holds: measured.is_some_and(Measured::holds),
            measured: measured.map(|it| Load {
                values_per_s: it.values_per_s,
                changes_per_s: it.due_per_s,
                in_time: it.in_time,
                delay: it.delay,
                cpu_percent: it.cpu_percent,
                cpu_us_per_value: it.cpu_us,
                rss_bytes: it.rss_bytes,
                ratio: ours.zip(it.cpu_us).map(|(ours, cost)| cost / ours),
                invalid: it.invalid.clone(),
            }),
            error: self.outcome.as_ref().err().cloned(),
        }
    }
}

/// Share of the delays within a limit.
fn share_within(delays: &Times, limit: u64) -> f64 {
    let within: u64 = delays.values().filter(|(delay, _)| *delay <= limit).map(|(_, count)| count).sum();
    within as f64 / delays.count().max(1) as f64
}

/// Ascending numbers of devices: 1, 2, 5, 10, 20, 50 …, and finally all.
fn steps(devices: u32) -> Vec<u32> {
    let decades = (0..).map(|exponent| 10_u32.saturating_pow(exponent));
    let round = decades.flat_map(|decade| [1, 2, 5].map(|digit| decade.saturating_mul(digit)));
    round.take_while(|step| *step < devices).chain([devices]).collect()
}

/// This program and the gateways named in the arguments.
fn contenders(names: &[String]) -> Result<Vec<Contender>, GeneratorError> {
    let mut all = vec![Contender { peer: None, holds: true }];
    for name in names {
        let peer = peers::find(name).filter(|peer| peer.role == Role::Gateway).ok_or_else(|| {
            let gateways = PEERS.iter().filter(|peer| peer.role == Role::Gateway).map(|peer| peer.name);
            let gateways: Vec<_> = gateways.collect();
            GeneratorError::Usage(format!("--against {name}: unknown gateway; use {}", gateways.join(" or ")))
        })?;
        match peers::state(peer, &peers::directory()) {
            State::Installed { .. } => all.push(Contender { peer: Some(peer), holds: true }),
            State::NotInstalled { command }
            | State::Outdated { command }
            | State::Missing { command, .. } => {
                return Err(GeneratorError::Environment(format!("{name} is not installed: {command}")));
            }
        }
    }
    Ok(all)
}

/// Measures all gateways and reports.
pub(super) fn run(arguments: &GatewayDevices, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    let mut contenders = contenders(&arguments.against)?;
    taktwerk_lab::leftovers::clean_up();
    let mut rows = Vec::new();
    for step in steps(arguments.devices) {
        // Steps that only this program sustains are skipped, except the last one.
        if step < arguments.devices && !contenders.iter().any(|it| it.peer.is_some() && it.holds) {
            continue;
        }
        for contender in contenders.iter_mut().filter(|it| it.holds) {
            if context.is_ended() {
                break;
            }
            let outcome = match measure(arguments, contender, step, context) {
                Err(GeneratorError::Interrupted) => break,
                outcome => outcome.map_err(|failure| failure.to_string()),
            };
            let row = Row { name: contender.name(), version: contender.version(), devices: step, outcome };
            // Ours continues to the end, as the baseline for the others.
            contender.holds = contender.peer.is_none() || row.cost().is_some();
            rows.push(row);
        }
    }
    Ok(report(arguments, &rows).finish(context, None))
}

/// Measures one gateway with this many new devices.
fn measure(
    arguments: &GatewayDevices,
    contender: &Contender,
    count: u32,
    context: &Context<'_>,
) -> Result<Measured, GeneratorError> {
    let devices = devices(arguments, count)?;
    let folder = tempfile::tempdir().map_err(GeneratorError::environment)?;
    let (gateway, namespace) = match contender.peer {
        None => {
            let text = configuration(arguments, &devices);
            (start(&text, folder.path(), arguments.gateway_cpu.as_ref(), context)?, NAMESPACE)
        }
        Some(peer) => start_peer(arguments, peer, &devices, context)?,
    };
    // Request sampling interval 0: servers that sample by their own timer would add its interval to the delay.
    let mut watched = watched(arguments, count, namespace);
    watched.sampling = Duration::ZERO;
    watched.queue = QUEUE;
    let mut watcher = Watcher::connect(gateway.url(), watched, arguments.interval, context)?;
    let what = format!("{}, devices: {count}, warming up", contender.name());
    wait(&mut watcher, &what, arguments.warmup, context)?;
    let limit = nanos(arguments.poll) + nanos(arguments.interval) + TOLERANCE;
    let mut windows = 0;
    let measured = loop {
        windows += 1;
        let (seen, account) = window(arguments, &mut watcher, gateway.pid(), context)?;
        let due = devices.changes(Duration::from_nanos(account.span));
        let measured = Measured::new(&seen, &account, due, limit);
        if measured.holds() || windows == WINDOWS || context.is_ended() {
            break measured;
        }
    };
    watcher.leave();
    Ok(measured)
}

/// Starts another gateway. Returns the namespace of its tags.
fn start_peer(
    arguments: &GatewayDevices,
    peer: &'static Peer,
    devices: &Devices,
    context: &Context<'_>,
) -> Result<(Running, u16), GeneratorError> {
    let options = PeerOptions {
        variables: u32::from(arguments.registers),
        update: arguments.poll,
        devices: devices.addresses().to_vec(),
        cpus: arguments.gateway_cpu.clone(),
        stop: Some(context.end()),
        ..PeerOptions::default()
    };
    let waiting = context.wait(&format!("starting {}", peer.name), START);
    let running = peers::start(peer, &peers::directory(), &options).map_err(|error| {
        if context.is_ended() {
            GeneratorError::Interrupted
        } else {
            GeneratorError::Environment(error.to_string())
        }
    })?;
    drop(waiting);
    let namespace = running.note("NAMESPACE").and_then(|it| it.parse().ok()).unwrap_or(NAMESPACE);
    Ok((running, namespace))
}

fn report(arguments: &GatewayDevices, rows: &[Row]) -> Report {
    let mut report = Report::new("gateway", "");
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let limit = nanos(arguments.poll) + nanos(arguments.interval) + TOLERANCE;
    let is_ours = |row: &&Row| row.name == "taktwerk";
    let ours_at =
        |devices| rows.iter().filter(is_ours).find(|row| row.devices == devices).and_then(Row::cost);
    report.fact(
        "in time",
        format!(
            "share of changes that arrive within {} (both intervals and {}); {} % sustain a load",
            figures::micros(limit as f64 / 1e3),
            figures::micros(TOLERANCE as f64 / 1e3),
            SHARE * 100.0
        ),
    );
    for row in rows {
        if let Err(error) = &row.outcome {
            report.fact(&format!("{}, {} devices", row.name, row.devices), error.as_str());
        }
    }
    let full = ours_at(arguments.devices);
    let (mut alternatives, mut least) = (Vec::new(), None::<f64>);
    for name in &arguments.against {
        let held = rows.iter().filter(|row| row.name == name.as_str() && row.cost().is_some());
        let Some(row) = held.max_by_key(|row| row.devices) else {
            report.fact(name, "sustains no load");
            alternatives.push(Alternative { gateway: name.clone(), devices: 0, cost: None });
            continue;
        };
        let cost = row.cost().unwrap_or(f64::NAN);
        let (same, all) = (ours_at(row.devices).map(|it| cost / it), full.map(|it| cost / it));
        let times = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), figures::number);
        let (devices, many) = (row.devices, arguments.devices);
        report.fact(
            name,
            format!(
                "{}: sustains {devices} {} at {} per value: {} × taktwerk with {devices}, {} × with {many}",
                row.version,
                if devices == 1 { "device" } else { "devices" },
                figures::micros(cost),
                times(same),
                times(all)
            ),
        );
        let cost_of = Cost {
            version: row.version.to_owned(),
            cpu_us_per_value: cost,
            ratio_same_load: same,
            ratio_all_devices: all,
        };
        alternatives.push(Alternative { gateway: name.clone(), devices, cost: Some(cost_of) });
        least = Some(least.map_or(cost, |least| least.min(cost)));
    }
    let ratio = full.zip(least).map(|(full, least)| full / least);
    report.part(&Compared {
        requested: ComparedRequested {
            devices: arguments.devices,
            registers: arguments.registers,
            poll_ms: millis(arguments.poll),
            publishing_ms: millis(arguments.interval),
            against: arguments.against.clone(),
            delay_limit_us: limit as f64 / 1e3,
            share_in_time: SHARE,
        },
        comparison: rows.iter().map(|row| row.document(ours_at(row.devices))).collect(),
        alternatives,
        cpu_ratio_to_best: ratio,
        cpu_ratio_within_limit: ratio.map(|ratio| ratio <= RATIO),
    });
    if let (Some(full), Some(ratio)) = (full, ratio) {
        report.fact(
            "CPU per value",
            format!(
                "{} with {} devices, {ratio:.4} × that of the best alternative: {} {RATIO}",
                figures::micros(full),
                arguments.devices,
                if ratio <= RATIO { "within" } else { "more than" }
            ),
        );
    }
    report.invalid(rows.iter().filter_map(|row| row.outcome.as_ref().ok()?.invalid.clone()));
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, devices: u32, in_time: f64, cpu_us: f64) -> Row {
        let delay = Times::new().summary();
        let measured = Measured {
            values_per_s: 100.0,
            due_per_s: 100.0,
            in_time,
            delay,
            cpu_percent: Some(1.0),
            cpu_us: Some(cpu_us),
            rss_bytes: 1,
            invalid: None,
        };
        Row { name, version: "1", devices, outcome: Ok(measured) }
    }

    #[test]
    fn loads_grow_to_all_devices() {
        assert_eq!(steps(50), [1, 2, 5, 10, 20, 50]);
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(130), [1, 2, 5, 10, 20, 50, 100, 130]);
        assert_eq!(steps(u32::MAX).last(), Some(&u32::MAX));
    }

    #[test]
    fn only_changes_in_time_count() {
        let mut delays = Times::new();
        delays.record_many(1_000_000, 3);
        delays.record(300_000_000);
        assert!((share_within(&delays, 250_000_000) - 0.75).abs() < 1e-9);
        assert!((share_within(&Times::new(), 1)).abs() < 1e-9);
        assert_eq!(row("a", 1, 0.96, 5.0).cost(), Some(5.0));
        assert_eq!(row("a", 1, 0.94, 5.0).cost(), None);
        let failed = Row { name: "a", version: "1", devices: 1, outcome: Err("gone".to_owned()) };
        let document = failed.document(None);
        assert_eq!((failed.cost(), document.measured, document.error.as_deref()), (None, None, Some("gone")));
    }

    #[test]
    fn only_gateways_are_accepted_as_contenders() {
        for wrong in ["mosquitto", "kepware"] {
            let error = contenders(&[wrong.to_owned()]).err().unwrap();
            assert!(
                matches!(&error, GeneratorError::Usage(text) if text.contains("asyncua-pymodbus")),
                "{error:?}"
            );
        }
        assert_eq!(contenders(&[]).unwrap().len(), 1);
    }
}
