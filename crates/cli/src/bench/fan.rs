//! `bench fan`: one client writes, all others see it and answer with a write of their own, and the first waits until it
//! has seen all answers (Rocha et al. 2019, Fig. 12).

use super::account::Window;
use super::common::{CommonArgs, environment, nanos};
use super::report::Report;
use crate::attribute::Attribute;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::session;
use crate::span;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use taktwerk_client::{
    ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionEvent, SubscriptionHandle,
    SubscriptionParams,
};
use taktwerk_lab::latency::Times;
use taktwerk_lab::validity::Invalid;
use taktwerk_lab::{clock, figures};
use taktwerk_net::client::{Fleet, FleetSink, MemberId};
use taktwerk_schema::{
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadValueId, WriteRequest, WriteValue,
};
use taktwerk_types::{DataValue, Instant, NodeId, Variant};

/// Arguments of `taktwerk bench fan`. The server needs as many signals as there are clients (`serve --signals N
/// --update 0`).
#[derive(Debug, Args)]
pub(crate) struct FanArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// Stop after so many transactions, warm-up not counted.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,

    /// Publishing interval to ask for, in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1", value_parser = span::millis)]
    interval: Duration,
}

/// How long a transaction, or setting up, may take without progress.
const PATIENCE: u64 = 30_000_000_000;
/// Numbers of transactions are added to this, so that no first value can be taken for one.
const BASE: f64 = 1e9;

#[derive(Default)]
struct Star {
    connected: Vec<u32>,
    created: Vec<(u32, SubscriptionHandle)>,
    /// Items that are monitored.
    ready: usize,
    error: Option<ClientError>,
    refused: Option<String>,
    revised_ms: f64,
    transaction: f64,
    /// Clients that have seen the transaction and have to answer.
    to_answer: Vec<u32>,
    answered: usize,
    last_answer: u64,
}

impl FleetSink for Star {
    fn event(&mut self, member: MemberId, event: Event, _: Instant) {
        match event {
            Event::Connected(_) => self.connected.push(member.0),
            Event::Disconnected(error) => self.error = error.or_else(|| self.error.take()),
            Event::ConnectionLost { error, .. } => self.error = Some(error),
            Event::Subscription(handle, SubscriptionEvent::Created { publishing_interval_ms, .. }) => {
                self.revised_ms = publishing_interval_ms;
                self.created.push((member.0, handle));
            }
            Event::Subscription(_, SubscriptionEvent::CreateFailed(error)) => self.error = Some(error),
            Event::Subscription(_, SubscriptionEvent::Items(results)) => {
                self.ready += results.len();
                if let Some(bad) = results.iter().find(|item| item.status.is_bad()) {
                    self.refused = Some(bad.status.to_string());
                }
            }
            _ => {}
        }
    }

    fn response(
        &mut self,
        _: MemberId,
        _: RequestHandle,
        result: Result<Reply<'_>, ClientError>,
        _: Instant,
    ) {
        match result {
            Ok(reply) => {
                if let Some(status) = super::request::check_write(&reply).first {
                    self.refused = Some(status.to_string());
                }
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn data_changes(
        &mut self,
        member: MemberId,
        _: SubscriptionHandle,
        changes: DataChanges<'_>,
        now: Instant,
    ) {
        for (_, value) in changes.flatten() {
            let Some(Variant::Double(number)) = value.value else { continue };
            if number != self.transaction {
                continue;
            }
            if member.0 == 0 {
                self.answered += 1;
                self.last_answer = now.as_nanos();
            } else {
                self.to_answer.push(member.0);
            }
        }
    }
}

fn signal(index: u32) -> NodeId {
    NodeId::numeric(1, 100_000 + index)
}

fn item(index: u32) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: signal(index),
            attribute_id: Attribute::VALUE.id(),
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: index,
            sampling_interval: 0.0,
            queue_size: 1,
            discard_oldest: true,
            ..Default::default()
        },
    }
}

/// Measures and reports.
pub(crate) fn run(arguments: &FanArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let common = &arguments.common;
    if common.clients < 2 {
        return Err(Failure::Usage("a fan needs at least two clients: give -c 2 or more".to_owned()));
    }
    let server = common.begin()?;
    let mut star = Star::default();
    let mut fleet = common.fleet(64)?;
    let target = common.target()?;
    for _ in 0..common.clients {
        fleet.add(target.clone());
    }
    set_up(arguments, &mut fleet, &mut star, interrupt)?;
    let mut number = BASE;
    let warm = clock::monotonic() + nanos(common.warmup);
    while clock::monotonic() < warm && !interrupt.asked() {
        number += 1.0;
        one(common, &mut fleet, &mut star, number, interrupt)?;
    }
    let window = Window::open(server, common.port())?;
    let start = window.start();
    let count = arguments.count.unwrap_or(u64::MAX);
    let end = if arguments.count.is_some() { u64::MAX } else { start + nanos(common.duration) };
    let mut progress = match arguments.count {
        Some(count) => Progress::new("transactions", count),
        None => Progress::of_time("measuring", common.duration),
    };
    let mut times = Times::new();
    while times.count() < count && clock::monotonic() < end && !interrupt.asked() {
        number += 1.0;
        if let Some(time) = one(common, &mut fleet, &mut star, number, interrupt)? {
            times.record(time);
        }
        let seconds = (clock::monotonic() - start) / 1_000_000_000;
        progress.at(if arguments.count.is_some() { times.count() } else { seconds });
    }
    let account = window.close()?;
    for member in 0..common.clients {
        fleet.with(MemberId(member), |core, now| core.disconnect(now), &mut star);
    }
    let mut report = Report::new("fan", &common.connection.endpoint.to_string());
    report.set(
        "requested",
        json!({"clients": common.clients, "publishing_ms": arguments.interval.as_secs_f64() * 1e3,
            "count": arguments.count}),
    );
    report.set("revised_publishing_ms", star.revised_ms);
    report.set("transaction", json!(times.summary()));
    report.histogram("transaction", &times);
    report.times("write to last answer", &times);
    report.fact("publishing interval", format!("revised to {} ms", figures::number(star.revised_ms)));
    report.account(&account, "transaction", times.count());
    if times.count() == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    report.print(output, interrupt)
}

fn write(fleet: &mut Fleet, star: &mut Star, member: u32, index: u32, number: f64) -> Result<(), Failure> {
    let mut request = WriteRequest {
        nodes_to_write: vec![WriteValue {
            node_id: signal(index),
            attribute_id: Attribute::VALUE.id(),
            value: DataValue { value: Some(Variant::Double(number)), ..DataValue::default() },
            ..Default::default()
        }],
        ..Default::default()
    };
    match fleet.with(MemberId(member), |core, now| core.request(&mut request, None, now), star) {
        Some(Err(error)) => Err(session::failure(&error)),
        _ => Ok(()),
    }
}

/// One transaction; `None` if interrupted meanwhile.
fn one(
    common: &CommonArgs,
    fleet: &mut Fleet,
    star: &mut Star,
    number: f64,
    interrupt: &Interrupt,
) -> Result<Option<u64>, Failure> {
    (star.transaction, star.answered) = (number, 0);
    star.to_answer.clear();
    let begin = clock::monotonic();
    write(fleet, star, 0, 0, number)?;
    let wanted = common.clients as usize - 1;
    while star.answered < wanted {
        while let Some(member) = star.to_answer.pop() {
            write(fleet, star, member, member, number)?;
        }
        if let Some(error) = &star.error {
            return Err(session::failure(error));
        }
        if let Some(status) = &star.refused {
            return Err(Failure::BadStatus(format!(
                "a write was refused with {status}: the server needs {} writable signals ns=1;i=100000 and on",
                common.clients
            )));
        }
        let now = clock::monotonic();
        if interrupt.asked() {
            return Ok(None);
        }
        if now - begin > PATIENCE {
            return Err(Failure::Connect(format!("only {} of {wanted} answers came", star.answered)));
        }
        if star.answered < wanted {
            fleet.run_once(Instant::from_nanos(now + 100_000_000), star).map_err(environment)?;
        }
    }
    Ok(Some(star.last_answer.saturating_sub(begin)))
}

fn set_up(
    arguments: &FanArgs,
    fleet: &mut Fleet,
    star: &mut Star,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let clients = arguments.common.clients;
    let interval = arguments.interval.as_secs_f64() * 1e3;
    let params = SubscriptionParams {
        publishing_interval_ms: interval,
        lifetime_count: (120_000.0 / interval.max(1.0)) as u32,
        keep_alive_count: (10_000.0 / interval.max(1.0)) as u32,
        ..SubscriptionParams::default()
    };
    // The first client watches the answers of all others, each of them the first signal.
    let wanted = 2 * (clients as usize - 1);
    let begin = clock::monotonic();
    let mut progress = Progress::new("subscribing", wanted as u64);
    while star.ready < wanted {
        if let Some(error) = &star.error {
            return Err(session::unreachable(&arguments.common.connection.endpoint, error));
        }
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        if clock::monotonic() - begin > PATIENCE {
            return Err(Failure::Connect(format!("only {} of {wanted} items were created", star.ready)));
        }
        for member in std::mem::take(&mut star.connected) {
            fleet.with(MemberId(member), |core, now| core.create_subscription(params.clone(), now), star);
        }
        for (member, handle) in std::mem::take(&mut star.created) {
            let items: Vec<_> = if member == 0 { (1..clients).map(item).collect() } else { vec![item(0)] };
            let added = fleet.with(MemberId(member), |core, now| core.add_items(handle, items, now), star);
            if let Some(Err(error)) = added {
                return Err(Failure::Connect(error.to_string()));
            }
        }
        progress.at(star.ready as u64);
        let until = Instant::from_nanos(clock::monotonic() + 50_000_000);
        fleet.run_once(until, star).map_err(environment)?;
    }
    match &star.refused {
        Some(status) => Err(Failure::BadStatus(format!(
            "monitoring was refused with {status}: the server needs {clients} signals ns=1;i=100000 and on"
        ))),
        None => Ok(()),
    }
}
