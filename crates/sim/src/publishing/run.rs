//! One simulation.

use super::collector::{Collector, Group};
use super::{Delays, HostUse, LineUse, Outcome, PublishRequests, Settings, Setup};
use crate::error::SimulateError;
use crate::host::MachineId;
use crate::network::{End, Side, Traffic, Transport};
use crate::pair::{NAME, Pair};
use crate::plant::{Plant, add_variable, monitor};
use crate::signals::{Rhythm, value};
use crate::world::{ClientId, World};
use core::cell::Cell;
use core::time::Duration;
use std::rc::Rc;
use taktwerk_client::SubscriptionParams;
use taktwerk_netem::emulator::Conditions;
use taktwerk_schema::TimestampsToReturn;
use taktwerk_server::space::{NodeError, VariableHandle};
use taktwerk_types::Instant;

/// Maximum number of signals. Larger plants are a task for the laboratory.
const SIGNALS_MAX: u32 = 100_000;
/// After the measured time, late values have this long to arrive.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum time until the session is up.
const CONNECT_MAX: Duration = Duration::from_secs(300);
/// Longest queue: the maximum that a server with default limits grants.
const QUEUE_MAX: u32 = 10_000;
/// Longest simulated time.
const SPAN_MAX: Duration = Duration::from_secs(24 * 3600);
/// Size of an application's certificate in bytes.
const CERTIFICATE_LEN: usize = 1_000;

/// Simulates what a subscription with these settings delivers in this plant.
///
/// # Errors
/// [`SimulateError`]: fields that contradict each other, or a link over which no session can be opened.
pub fn simulate(setup: &Setup, settings: &Settings) -> Result<Outcome, SimulateError> {
    check(setup, settings)?;
    let mut world = World::new(setup.seed);
    let entropy = Box::new(world.fork_entropy());
    let origin = world.utc_origin();
    let pair = Pair {
        name: NAME,
        link: &setup.link,
        is_half_duplex: setup.is_half_duplex,
        transport: Transport::UaTcp,
        security: settings.security,
        certificate_len: CERTIFICATE_LEN,
        server: setup.server.as_ref(),
        client: setup.client.as_ref(),
        delayed_ack: setup.delayed_ack,
        publish_max: match settings.publish_requests {
            PublishRequests::AtMost(most) => Some(most),
            PublishRequests::Automatic | PublishRequests::Every { .. } => None,
        },
        reads_limits: true,
    };
    let plant = Plant::new(NAME, 0, origin, entropy, |config| pair.configure(config));
    let plant = plant.map_err(|error| invalid("signals", &error, "variables that the server can have"))?;
    let mut variables: Vec<Vec<VariableHandle>> = Vec::new();
    let mut collector = Collector::new(params(settings), setup.signals.len());
    let mut number = 0;
    for (at, signals) in setup.signals.iter().enumerate() {
        let mut group = Vec::new();
        for _ in 0..signals.count {
            let handle = add_variable(&plant.space, number, value(signals.value_len, 0), origin);
            group.push(handle.map_err(|error: NodeError| {
                invalid("signals", &error, "variables that the server can have")
            })?);
            let mut item = monitor(number, queue_size(settings, signals.period));
            item.requested_parameters.sampling_interval = settings.sampling_interval.as_secs_f64() * 1e3;
            collector.items.push(item);
            collector.group_of.push(at);
            number += 1;
        }
        variables.push(group);
    }
    if let PublishRequests::Every { percent } = settings.publish_requests {
        let limits = &plant.shard.shared().config().limits.subscriptions;
        collector.ahead = limits.publish_requests_per_session_max;
        collector.by_clock = Some(settings.publishing_interval * percent / 100);
    }
    let start = world.now().instant;
    let placed = pair.place(&mut world, plant, collector)?;
    let client = placed.client;
    let is_up = |world: &World<Collector>| world.client(client).application.connected_at.is_some();
    if !world.run_while(CONNECT_MAX, |world| !is_up(world))? {
        let trouble = world.client(client).application.trouble.clone();
        return Err(SimulateError::NoSession(CONNECT_MAX, trouble.unwrap_or_else(|| "no answer".to_owned())));
    }
    let up = world.now().instant.since(start);
    if let Some(every) = world.client(client).application.by_clock {
        world.every(every, move |world| {
            world.with_client(client, |client, application, now| application.publish(client, now));
            true
        });
    }

    let measured_from = world.now().instant + setup.warmup;
    let window = (measured_from, measured_from + setup.measured);
    let written: Vec<Rc<Cell<u64>>> = setup.signals.iter().map(|_| Rc::default()).collect();
    for ((signals, group), written) in setup.signals.iter().zip(variables).zip(&written) {
        let start = world.now().instant;
        let period = signals.period;
        let rhythm = Rhythm { start, period, spread: setup.spread.min(period), value_len: signals.value_len };
        let written = Rc::clone(written);
        write_next(&mut world, Writer { rhythm, count: 0, group, window, written });
    }
    world.run_for(setup.warmup)?;
    let from = world.now();
    let until = from.utc.plus(setup.measured);
    let application = &mut world.client_mut(client).application;
    (application.from, application.until) = (from.utc, until);
    let before = traffic(&world, client);
    let machines = [placed.client_machine, placed.server_machine];
    let used = |world: &World<Collector>| machines.map(|machine| processor_time(world, machine));
    let used_before = used(&world);
    world.run_for(setup.measured)?;
    let after = traffic(&world, client);
    let used_after = used(&world);
    world.run_for(GRACE)?;

    let application = &world.client(client).application;
    let seconds = setup.measured.as_secs_f64();
    let host = |at: usize| HostUse {
        cpu: used_before[at]
            .zip(used_after[at])
            .map(|(before, after)| (after - before).as_secs_f64() / seconds),
    };
    let line = |side: Side, conditions: &Conditions| {
        line_use(before[side as usize], after[side as usize], seconds, conditions)
    };
    let mut to_server = line(Side::Client, &setup.link.up);
    let mut to_client = line(Side::Server, &setup.link.down);
    if setup.is_half_duplex {
        let both = to_server.bits_per_second + to_client.bits_per_second;
        to_server.utilisation = utilisation(both, &setup.link.up);
        to_client.utilisation = to_server.utilisation;
    }
    Ok(Outcome {
        groups: setup
            .signals
            .iter()
            .zip(&application.groups)
            .zip(&written)
            .map(|((signals, group), written)| delays(signals.count, written.get(), group))
            .collect(),
        values: application.values.clone(),
        up: to_server,
        down: to_client,
        client: host(0),
        server: host(1),
        refused: application.refused,
        publishing_interval: application.interval_ms / 1e3,
        messages_per_second: application.messages as f64 / seconds,
        session_up: up.as_secs_f64(),
        simulated: world.now().instant.since(start).as_secs_f64(),
        events: world.events(),
    })
}

fn invalid(key: &'static str, value: &dyn core::fmt::Display, expected: &'static str) -> SimulateError {
    SimulateError::Invalid { key, value: value.to_string(), expected }
}

fn check(setup: &Setup, settings: &Settings) -> Result<(), SimulateError> {
    let span = |span: Duration| format!("{span:?}");
    let count = setup.signals.iter().fold(0u32, |sum, signals| sum.saturating_add(signals.count));
    if !(1..=SIGNALS_MAX).contains(&count) {
        return Err(invalid("signals", &count, "at least one signal and at most 100 000"));
    }
    if let Some(signals) = setup.signals.iter().find(|signals| signals.period < Duration::from_micros(100)) {
        return Err(invalid("signals.period", &span(signals.period), "at least 100 µs"));
    }
    if let Some(signals) = setup.signals.iter().find(|signals| signals.value_len > 1 << 16) {
        return Err(invalid("signals.value_len", &signals.value_len, "at most 65 536 bytes"));
    }
    if setup.measured.is_zero() || setup.measured + setup.warmup > SPAN_MAX {
        return Err(invalid(
            "measured",
            &span(setup.measured),
            "more than zero, and at most a day with the warm-up",
        ));
    }
    if settings.publishing_interval.is_zero() {
        return Err(invalid("publishing_interval", &span(settings.publishing_interval), "more than zero"));
    }
    if settings.queue_size == Some(0) {
        return Err(invalid("queue_size", &0, "at least 1"));
    }
    if settings.publish_requests == PublishRequests::AtMost(0) {
        return Err(invalid(
            "publish_requests",
            &0,
            "at least 1: without a request, the server cannot publish",
        ));
    }
    if let PublishRequests::Every { percent } = settings.publish_requests
        && !(1..=1_000).contains(&percent)
    {
        return Err(invalid(
            "publish_requests",
            &percent,
            "from 1 to 1000 per cent of the publishing interval",
        ));
    }
    if !matches!(settings.timestamps, TimestampsToReturn::SOURCE | TimestampsToReturn::BOTH) {
        return Err(invalid(
            "timestamps",
            &format!("{:?}", settings.timestamps),
            "SOURCE or BOTH: delays count from them",
        ));
    }
    Ok(())
}

fn processor_time(world: &World<Collector>, machine: Option<MachineId>) -> Option<Duration> {
    machine.map(|machine| world.machine(machine).used())
}

fn params(settings: &Settings) -> SubscriptionParams {
    SubscriptionParams {
        publishing_interval_ms: settings.publishing_interval.as_secs_f64() * 1e3,
        keep_alive_count: settings.keep_alive_count,
        lifetime_count: settings.keep_alive_count.saturating_mul(3).max(100_000),
        notifications_max: settings.notifications_max,
        timestamps: settings.timestamps,
        ..SubscriptionParams::default()
    }
}

/// Room for every value of two publishing intervals and one second.
fn queue_size(settings: &Settings, period: Duration) -> u32 {
    settings.queue_size.unwrap_or_else(|| {
        let span = settings.publishing_interval.as_secs_f64() * 2.0 + 1.0;
        // `as` saturates.
        ((span / period.as_secs_f64()).ceil() as u32).clamp(2, QUEUE_MAX)
    })
}

/// A group of signals that is written.
struct Writer {
    rhythm: Rhythm,
    /// Number of the last value.
    count: i64,
    group: Vec<VariableHandle>,
    /// Start and end of the measured time. The start is included, the end is not.
    window: (Instant, Instant),
    /// Number of writes within it.
    written: Rc<Cell<u64>>,
}

fn write_next(world: &mut World<Collector>, mut writer: Writer) {
    let Some(next) = writer.rhythm.written_at(writer.count + 1) else { return };
    world.at(next, move |world| {
        writer.count += 1;
        let now = world.now();
        let value = value(writer.rhythm.value_len, writer.count);
        writer.group.iter().for_each(|variable| variable.set_at(value.clone(), now.utc));
        let (from, until) = writer.window;
        if now.instant >= from && now.instant < until {
            writer.written.set(writer.written.get() + 1);
        }
        write_next(world, writer);
    });
}

fn traffic(world: &World<Collector>, client: ClientId) -> [Traffic; 2] {
    let of = |side| {
        let link = world.client(client).link();
        link.map_or_else(Traffic::default, |link| world.network().traffic(End { link, side }))
    };
    [of(Side::Client), of(Side::Server)]
}

fn line_use(before: Traffic, after: Traffic, seconds: f64, conditions: &Conditions) -> LineUse {
    let of = |count: fn(&Traffic) -> u64| count(&after).saturating_sub(count(&before));
    let bits_per_second = of(|traffic| traffic.wire_bytes) as f64 * 8.0 / seconds;
    LineUse {
        bits_per_second,
        packets_per_second: of(|traffic| traffic.segments) as f64 / seconds,
        utilisation: utilisation(bits_per_second, conditions),
        lost: of(|traffic| traffic.lost),
    }
}

fn utilisation(bits_per_second: f64, conditions: &Conditions) -> Option<f64> {
    conditions.rate.map(|rate| bits_per_second / rate.max(1) as f64 + conditions.busy)
}

fn delays(count: u32, writes: u64, group: &Group) -> Delays {
    let messages = group.messages.max(1) as f64;
    let written = writes * u64::from(count);
    Delays {
        values: group.values.clone(),
        messages: group.messages,
        message_min: group.min as f64 / messages / 1e9,
        message_mean: group.mean / messages / 1e9,
        message_max: group.max as f64 / messages / 1e9,
        written,
        lost: written.saturating_sub(group.arrived),
        overflows: group.overflows,
    }
}
