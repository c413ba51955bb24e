//! `bench gateway-mqtt`: from messages of an MQTT broker to a client. Starts the broker, a publisher, a gateway and,
//! for the delay, a client of the gateway and a plain subscriber of the broker.
//!
//! - [`publisher`]: publishes as fast as the broker accepts messages, or at a rate; [`subscriber`]: the plain
//!   subscriber;
//! - [`payload`]: messages that contain their publishing time; [`counted`]: values that the gateway has stored.

mod counted;
mod payload;
mod publisher;
mod subscriber;

use super::watcher::{Seen, Watched, Watcher};
use super::{HEAD, NAMESPACE, start, wait};
use crate::account::{self, Account, Window};
use crate::common::pin;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use crate::mqtt::broker::Broker;
use crate::report::{Finished, Report};
use core::fmt::Write;
use counted::Counted;
use publisher::{Pace, Publisher};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;
use subscriber::Subscriber;
use taktwerk_lab::mqtt::Version;
use taktwerk_load::clock;
use taktwerk_load::latency::Times;
use taktwerk_load::process::{Process, Usage};
use taktwerk_load::result::{LimitedBy, Relayed, RelayedRequested, Unit};
use taktwerk_load::specification::GatewayMessages;
use taktwerk_model::figures;
use taktwerk_types::{NodeId, Variant};

/// Required rate of the gateway, unless the broker delivers less.
const RATE_LIMIT: f64 = 200_000.0;
/// Maximum delay that the gateway may add to a plain subscriber's p99, in nanoseconds.
const ADDED_LIMIT: u64 = 2_000_000;
/// Maximum share of missing messages for which the broker or the publisher counts as the bottleneck.
const LOSS_MAX: f64 = 0.001;
/// Time for messages in flight to arrive after publishing stops.
const SETTLE: Duration = Duration::from_secs(1);

/// Results with the publisher at its maximum.
struct Throughput {
    published: u64,
    taken: u64,
    lost: u64,
    account: Account,
    broker: Option<Usage>,
}

impl Throughput {
    fn rate(&self) -> f64 {
        self.taken as f64 / self.account.seconds().max(1e-9)
    }

    fn lost_share(&self) -> f64 {
        self.lost as f64 / (self.taken + self.lost).max(1) as f64
    }
}

/// Delays of values.
struct Delays {
    gateway: Seen,
    plain: Times,
}

/// Measures and reports.
pub(crate) fn run(arguments: &GatewayMessages, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    pin(arguments.cpu.as_ref())?;
    let broker = Broker::start(&arguments.peer, Version::V311, arguments.peer_cpu.clone())?;
    let metrics = free_address().map_err(GeneratorError::environment)?;
    let folder = tempfile::tempdir().map_err(GeneratorError::environment)?;
    let table = folder.path().join(TABLE);
    std::fs::write(&table, tags(arguments))
        .map_err(|error| GeneratorError::Environment(format!("{}: {error}", table.display())))?;
    let configuration = configuration(broker.address(), metrics);
    let gateway = start(&configuration, folder.path(), arguments.gateway_cpu.as_ref(), context)?;
    let publisher =
        Publisher::start(broker.address(), arguments.topics).map_err(|error| said(&broker, error))?;
    let counted = Counted::new(metrics);
    subscribed(&publisher, &counted, context)?;
    let throughput = throughput(arguments, &broker, &publisher, &counted, gateway.pid(), context)?;
    let delays = delays(arguments, &broker, &publisher, gateway.url(), context)?;
    Ok(report(arguments, &broker, gateway.url(), &throughput, &delays).finish(context, None))
}

fn said(broker: &Broker, error: impl core::fmt::Display) -> GeneratorError {
    GeneratorError::Connect(format!("{}: {error}", broker.name()))
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// The table of tags is a separate file, because it can be long.
const TABLE: &str = "tags.csv";

/// A tag for each topic.
fn tags(arguments: &GatewayMessages) -> String {
    let mut text = "name,topic,json,type\n".to_owned();
    for topic in 0..arguments.topics {
        // Writing into a text does not fail.
        let _ = writeln!(text, "{topic},{},$.v,Int64", payload::topic(topic));
    }
    text
}

/// The gateway's configuration: the broker with the table, and metrics.
fn configuration(broker: SocketAddr, metrics: SocketAddr) -> String {
    format!(
        "{HEAD}[web]\nbind = \"{metrics}\"\n[[source]]\nname = \"b\"\ntype = \"mqtt\"\nurl = \"mqtt://{broker}\"\n\
         values_per_second_max = 100000000\ntags = \"{TABLE}\"\n"
    )
}

/// Publishes slowly until the gateway receives messages, which shows that it has subscribed.
fn subscribed(publisher: &Publisher, counted: &Counted, context: &Context<'_>) -> Result<(), GeneratorError> {
    let end = clock::monotonic() + 20_000_000_000;
    publisher.pace(Pace::Rate(1_000));
    while counted.values()? == 0 {
        if context.is_ended() {
            return Err(GeneratorError::Interrupted);
        }
        if clock::monotonic() > end {
            return Err(GeneratorError::Environment(
                "the gateway has received no message for 20 s".to_owned(),
            ));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Sleeps, and shows the remaining time.
fn sleep(what: &str, span: Duration, context: &Context<'_>) {
    let (start, end) = (clock::monotonic(), clock::monotonic() + nanos(span));
    let mut progress = context.time(what, span);
    while clock::monotonic() < end && !context.is_ended() {
        clock::sleep_until(end.min(clock::monotonic() + 200_000_000));
        progress.at((clock::monotonic() - start) / 1_000_000_000);
    }
}

fn throughput(
    arguments: &GatewayMessages,
    broker: &Broker,
    publisher: &Publisher,
    counted: &Counted,
    pid: u32,
    context: &Context<'_>,
) -> Result<Throughput, GeneratorError> {
    publisher.pace(Pace::Pause);
    sleep("waiting", SETTLE, context);
    let (before, sent_before) = (counted.values()?, publisher.sent());
    publisher.pace(Pace::All);
    sleep("warming up", arguments.warmup, context);
    let snapshot = |process: Option<Process>| process.and_then(|process| process.snapshot().ok());
    let broker_before = snapshot(broker.process());
    let (taken, published) = (counted.values()?, publisher.sent());
    let window = Window::open(account::server_process(Some(pid))?, broker.address().port())?;
    sleep("taking messages", arguments.duration, context);
    let (taken, published) = (counted.values()? - taken, publisher.sent() - published);
    let account = window.close()?;
    let broker_after = snapshot(broker.process());
    publisher.check().map_err(|error| said(broker, error))?;
    publisher.pace(Pace::Pause);
    // Queued messages are late, not lost.
    let mut last = counted.values()?;
    loop {
        sleep("waiting", SETTLE, context);
        let now = counted.values()?;
        if now == last || context.is_ended() {
            break;
        }
        last = now;
    }
    Ok(Throughput {
        published,
        taken,
        lost: (publisher.sent() - sent_before).saturating_sub(last - before),
        account,
        broker: broker_before.zip(broker_after).map(|(before, after)| Usage::between(&before, &after)),
    })
}

fn delays(
    arguments: &GatewayMessages,
    broker: &Broker,
    publisher: &Publisher,
    url: &str,
    context: &Context<'_>,
) -> Result<Delays, GeneratorError> {
    let subscriber = Subscriber::start(broker.address()).map_err(|error| said(broker, error))?;
    publisher.pace(Pace::Rate(arguments.rate));
    let mut watcher = Watcher::connect(url, watched(arguments), arguments.interval, context)?;
    wait(&mut watcher, "warming up", arguments.warmup, context)?;
    watcher.take();
    subscriber.take().map_err(|error| said(broker, error))?;
    wait(&mut watcher, "measuring delays", arguments.duration, context)?;
    publisher.check().map_err(|error| said(broker, error))?;
    let plain = subscriber.take().map_err(|error| said(broker, error))?;
    let gateway = watcher.take();
    watcher.leave();
    Ok(Delays { gateway, plain })
}

/// All tags; each message contains its publishing time.
fn watched(arguments: &GatewayMessages) -> Watched {
    Watched {
        nodes: (0..arguments.topics).map(|topic| NodeId::string(NAMESPACE, format!("b/{topic}"))).collect(),
        sampling: arguments.interval,
        queue: 1,
        age: Box::new(|_, value, now| match value {
            Variant::Int64(number) => payload::age(u64::try_from(*number).ok()?, now),
            _ => None,
        }),
    }
}

fn report(
    arguments: &GatewayMessages,
    broker: &Broker,
    url: &str,
    throughput: &Throughput,
    delays: &Delays,
) -> Report {
    let mut report = Report::new("gateway-mqtt", url);
    let seconds = throughput.account.seconds().max(1e-9);
    let (rate, published) = (throughput.rate(), throughput.published as f64 / seconds);
    let broker_cores = throughput.broker.as_ref().map(|usage| usage.cpu_s / seconds);
    report.fact(
        "messages",
        format!(
            "{}/s in the gateway's tags; {}/s published; {} lost",
            figures::number(rate),
            figures::number(published),
            figures::thousands(i64::try_from(throughput.lost).unwrap_or(i64::MAX))
        ),
    );
    if let Some(cores) = broker_cores {
        report.fact("broker, CPU", format!("{:.0} % of a core", cores * 100.0));
    }
    let is_enough = rate >= RATE_LIMIT;
    let is_others = throughput.lost_share() <= LOSS_MAX;
    report.fact(
        "bottleneck",
        match (is_enough, is_others) {
            (true, _) => "none up to 200 000 messages/s",
            (false, true) => "broker or publisher: the gateway received all messages",
            (false, false) => "the gateway: messages are missing",
        },
    );
    let (plain, gateway) = (&delays.plain, &delays.gateway.delays);
    let added = gateway.percentile(99.0).saturating_sub(plain.percentile(99.0));
    report.part(&Relayed {
        requested: RelayedRequested {
            topics: arguments.topics,
            rate_per_s: arguments.rate,
            broker: broker.name().to_owned(),
            publishing_ms: arguments.interval.as_secs_f64() * 1e3,
        },
        messages_per_s: rate,
        published_per_s: published,
        lost: throughput.lost,
        broker_cpu_percent: broker_cores.map(|cores| cores * 100.0),
        limit_of_messages: if is_enough || is_others { LimitedBy::Broker } else { LimitedBy::Gateway },
        plain: plain.summary(),
        delay: gateway.summary(),
        added_p99_us: added as f64 / 1e3,
        p99_within_limit: added <= ADDED_LIMIT,
    });
    report.histogram("plain", plain);
    report.histogram("delay", gateway);
    report.times("plain subscriber", plain);
    report.times("client of the gateway", gateway);
    report.added_to_p99(added, ADDED_LIMIT, "2 ms");
    report.account(&throughput.account, Unit::Message, throughput.taken);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_has_a_tag_for_each_topic() {
        let arguments = GatewayMessages { topics: 3, ..GatewayMessages::default() };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let text = configuration(address, address);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(TABLE), tags(&arguments)).unwrap();
        let path = folder.path().join("gateway.toml");
        taktwerk_config::ConfigFile::parse(&path, &text).unwrap();
        let gateway = taktwerk_gateway::GatewayConfig::parse(&path, &text).unwrap().unwrap();
        assert_eq!(gateway.sources.iter().map(|source| source.tags.len()).collect::<Vec<_>>(), [3]);
    }
}
