//! `bench gateway-mqtt`: from the messages of an MQTT broker to a client. It starts the broker, a publisher, a gateway and,
//! for the delay, a client of the gateway and a plain subscriber of the broker.
//!
//! - [`publisher`]: as fast as the broker takes messages, or at a rate; [`subscriber`]: the plain one;
//! - [`payload`]: a message that says when it was published; [`counted`]: what the gateway has taken.

mod counted;
mod payload;
mod publisher;
mod subscriber;

use super::watcher::{Seen, Watched, Watcher};
use super::{HEAD, NAMESPACE, start, wait};
use crate::bench::account::{self, Account, Window};
use crate::bench::common::nanos;
use crate::bench::mqtt::broker::Broker;
use crate::bench::report::Report;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::span;
use clap::Args;
use core::fmt::Write;
use counted::Counted;
use publisher::{Pace, Publisher};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;
use subscriber::Subscriber;
use taktwerk_lab::latency::Times;
use taktwerk_lab::mqtt::Version;
use taktwerk_lab::pin::CpuList;
use taktwerk_lab::process::{Process, Usage};
use taktwerk_lab::{clock, figures};
use taktwerk_load::result::Unit;
use taktwerk_types::{NodeId, Variant};

/// Arguments of `taktwerk bench gateway-mqtt`.
#[derive(Debug, Args)]
pub(crate) struct MessagesArgs {
    /// Topics; each one is a tag.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    topics: u32,

    /// Messages per second while the delay is measured.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,

    /// Publishing interval of the client, in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1", value_parser = span::millis)]
    interval: Duration,

    /// The broker: mosquitto or rumqttd (see `lab peers`).
    #[arg(long, value_name = "NAME", default_value = "mosquitto")]
    peer: String,

    /// How long to measure each: how many messages the gateway takes, and how late they are.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::some)]
    duration: Duration,

    /// Load before a measurement begins, not counted.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span::seconds)]
    warmup: Duration,

    /// CPU for the gateway.
    #[arg(long, value_name = "LIST")]
    gateway_cpu: Option<CpuList>,

    /// CPU for the broker.
    #[arg(long, value_name = "LIST")]
    peer_cpu: Option<CpuList>,

    /// CPU for the publisher, the client and the plain subscriber.
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,
}

/// What the gateway has to take, unless the broker gives less.
const RATE_LIMIT: f64 = 200_000.0;
/// What it may add to the delay of a plain subscriber, p99, nanoseconds.
const ADDED_LIMIT: u64 = 2_000_000;
/// Of all messages, how many may be missing for it to be the broker or the publisher that sets the limit.
const LOSS_MAX: f64 = 0.001;
/// What is on its way when publishing stops has come after this.
const SETTLE: Duration = Duration::from_secs(1);

/// What was taken while the publisher did what it could.
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

/// How late values were.
struct Delays {
    gateway: Seen,
    plain: Times,
}

/// Measures and reports.
pub(in crate::bench) fn run(
    arguments: &MessagesArgs,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if let Some(cpus) = &arguments.cpu {
        cpus.pin().map_err(|error| Failure::Environment(error.to_string()))?;
    }
    let broker = Broker::start(&arguments.peer, Version::V311, arguments.peer_cpu.clone())?;
    let metrics = free_address().map_err(|error| Failure::Environment(error.to_string()))?;
    let folder = tempfile::tempdir().map_err(|error| Failure::Environment(error.to_string()))?;
    let table = folder.path().join(TABLE);
    std::fs::write(&table, tags(arguments))
        .map_err(|error| Failure::Environment(format!("{}: {error}", table.display())))?;
    let configuration = configuration(broker.address(), metrics);
    let gateway = start(&configuration, folder.path(), arguments.gateway_cpu.as_ref())?;
    let publisher =
        Publisher::start(broker.address(), arguments.topics).map_err(|error| said(&broker, error))?;
    let counted = Counted::new(metrics);
    subscribed(&publisher, &counted, interrupt)?;
    let throughput = throughput(arguments, &broker, &publisher, &counted, gateway.pid(), interrupt)?;
    let delays = delays(arguments, &broker, &publisher, gateway.url(), interrupt)?;
    report(arguments, &broker, gateway.url(), &throughput, &delays).print(output, interrupt)
}

fn said(broker: &Broker, error: impl core::fmt::Display) -> Failure {
    Failure::Connect(format!("{}: {error}", broker.name()))
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// The table of tags: a file for itself, because it can be long.
const TABLE: &str = "tags.csv";

/// A tag for each topic.
fn tags(arguments: &MessagesArgs) -> String {
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

/// Publishes slowly until the gateway takes what is published: then it has subscribed.
fn subscribed(publisher: &Publisher, counted: &Counted, interrupt: &Interrupt) -> Result<(), Failure> {
    let end = clock::monotonic() + 20_000_000_000;
    publisher.pace(Pace::Rate(1_000));
    while counted.values()? == 0 {
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        if clock::monotonic() > end {
            return Err(Failure::Environment("the gateway has taken no message for 20 s".to_owned()));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Sleeps, and shows how much is left.
fn sleep(what: &str, span: Duration, interrupt: &Interrupt) {
    let (start, end) = (clock::monotonic(), clock::monotonic() + nanos(span));
    let mut progress = Progress::of_time(what, span);
    while clock::monotonic() < end && !interrupt.asked() {
        clock::sleep_until(end.min(clock::monotonic() + 200_000_000));
        progress.at((clock::monotonic() - start) / 1_000_000_000);
    }
}

fn throughput(
    arguments: &MessagesArgs,
    broker: &Broker,
    publisher: &Publisher,
    counted: &Counted,
    pid: u32,
    interrupt: &Interrupt,
) -> Result<Throughput, Failure> {
    publisher.pace(Pace::Pause);
    sleep("waiting", SETTLE, interrupt);
    let (before, sent_before) = (counted.values()?, publisher.sent());
    publisher.pace(Pace::All);
    sleep("warming up", arguments.warmup, interrupt);
    let snapshot = |process: Option<Process>| process.and_then(|process| process.snapshot().ok());
    let broker_before = snapshot(broker.process());
    let (taken, published) = (counted.values()?, publisher.sent());
    let window = Window::open(account::server_process(Some(pid))?, broker.address().port())?;
    sleep("taking messages", arguments.duration, interrupt);
    let (taken, published) = (counted.values()? - taken, publisher.sent() - published);
    let account = window.close()?;
    let broker_after = snapshot(broker.process());
    publisher.check().map_err(|error| said(broker, error))?;
    publisher.pace(Pace::Pause);
    // What lies in queues comes late, and is not lost.
    let mut last = counted.values()?;
    loop {
        sleep("waiting", SETTLE, interrupt);
        let now = counted.values()?;
        if now == last || interrupt.asked() {
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
    arguments: &MessagesArgs,
    broker: &Broker,
    publisher: &Publisher,
    url: &str,
    interrupt: &Interrupt,
) -> Result<Delays, Failure> {
    let subscriber = Subscriber::start(broker.address()).map_err(|error| said(broker, error))?;
    publisher.pace(Pace::Rate(arguments.rate));
    let mut watcher = Watcher::connect(url, watched(arguments), arguments.interval, interrupt)?;
    wait(&mut watcher, "warming up", arguments.warmup, interrupt)?;
    watcher.take();
    subscriber.take().map_err(|error| said(broker, error))?;
    wait(&mut watcher, "measuring delays", arguments.duration, interrupt)?;
    publisher.check().map_err(|error| said(broker, error))?;
    let plain = subscriber.take().map_err(|error| said(broker, error))?;
    let gateway = watcher.take();
    watcher.leave();
    Ok(Delays { gateway, plain })
}

/// All tags; each message tells its age.
fn watched(arguments: &MessagesArgs) -> Watched {
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
    arguments: &MessagesArgs,
    broker: &Broker,
    url: &str,
    throughput: &Throughput,
    delays: &Delays,
) -> Report {
    let mut report = Report::new("gateway-mqtt", url);
    report.set(
        "requested",
        json!({"topics": arguments.topics, "rate_per_s": arguments.rate, "broker": broker.name(),
            "publishing_ms": arguments.interval.as_secs_f64() * 1e3}),
    );
    let seconds = throughput.account.seconds().max(1e-9);
    let (rate, published) = (throughput.rate(), throughput.published as f64 / seconds);
    let broker_cores = throughput.broker.as_ref().map(|usage| usage.cpu_s / seconds);
    report.set("messages_per_s", rate);
    report.set("published_per_s", published);
    report.set("lost", throughput.lost);
    report.set("broker_cpu_percent", broker_cores.map(|cores| cores * 100.0));
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
    report.set("limit_of_messages", if is_enough || is_others { "broker" } else { "gateway" });
    report.fact(
        "who sets the limit",
        match (is_enough, is_others) {
            (true, _) => "at least 200 000 messages/s",
            (false, true) => "the broker and its publisher: the gateway took all",
            (false, false) => "the gateway: messages are missing",
        },
    );
    let (plain, gateway) = (&delays.plain, &delays.gateway.delays);
    let added = gateway.percentile(99.0).saturating_sub(plain.percentile(99.0));
    report.set("plain", json!(plain.summary()));
    report.set("delay", json!(gateway.summary()));
    report.set("added_p99_us", added as f64 / 1e3);
    report.set("p99_within_limit", added <= ADDED_LIMIT);
    report.histogram("plain", plain);
    report.histogram("delay", gateway);
    report.times("plain subscriber", plain);
    report.times("client of the gateway", gateway);
    report.fact(
        "added to p99",
        format!(
            "{}, {} 2 ms",
            figures::micros(added as f64 / 1e3),
            if added <= ADDED_LIMIT { "within" } else { "more than" }
        ),
    );
    report.account(&throughput.account, Unit::Message, throughput.taken);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_has_a_tag_for_each_topic() {
        let arguments = MessagesArgs {
            topics: 3,
            rate: 1,
            interval: Duration::from_millis(1),
            peer: "mosquitto".to_owned(),
            duration: Duration::from_secs(1),
            warmup: Duration::ZERO,
            gateway_cpu: None,
            peer_cpu: None,
            cpu: None,
        };
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
