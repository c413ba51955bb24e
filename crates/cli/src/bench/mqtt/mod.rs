//! `bench mqtt`: a broker, measured as the OPC UA servers are.
//!
//! - [`clients`]: connections to the broker; [`broker`]: an address, or a broker that is started for the measurement;
//! - [`round_trip`]: each client receives what it publishes; [`fan`]: one publishes, all others receive and answer;
//! - [`message`]: bytes, or PubSub's messages.

pub(super) mod broker;
mod clients;
mod fan;
mod message;
mod round_trip;

use super::account::Account;
use super::common::check_rate;
use super::report::Report;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::span;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::time::Duration;
use taktwerk_lab::figures;
use taktwerk_lab::latency::{Latency, Times};
use taktwerk_lab::mqtt::{Qos, Version};
use taktwerk_lab::pin::CpuList;
use taktwerk_lab::validity::{self, Invalid};

/// Communication pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Pattern {
    /// Each client publishes to itself.
    RoundTrip,
    /// One client publishes, all others answer at once, the first waits for all answers.
    Fan,
}

/// Arguments of `taktwerk bench mqtt`.
#[derive(Debug, Args)]
pub(crate) struct MqttArgs {
    /// The broker: mqtt://host[:1883] or host[:port].
    #[arg(value_name = "BROKER", required_unless_present = "peer", conflicts_with = "peer")]
    url: Option<String>,

    /// Start this broker for the measurement: mosquitto or rumqttd (see `lab peers`).
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,

    /// CPU for the broker that is started.
    #[arg(long, value_name = "LIST", requires = "peer")]
    peer_cpu: Option<CpuList>,

    /// Communication pattern.
    #[arg(long, value_enum, default_value = "round-trip")]
    pattern: Pattern,

    /// Quality of service: 0, 1 or 2.
    #[arg(long, value_name = "LEVEL", default_value = "0")]
    qos: Qos,

    /// 3.1.1 or 5.
    #[arg(long, value_name = "VERSION", default_value = "3.1.1")]
    mqtt: Version,

    /// Content of a message.
    #[arg(long, value_enum, default_value = "bytes")]
    message: message::Content,

    /// Bytes of a message, or of the value in it.
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u32).range(8..=8 << 20))]
    payload: u32,

    /// Clients, each with its own connection.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=20_000))]
    clients: u32,

    /// Messages (with fan: transactions) per second over all clients, sent on schedule. Default: each client publishes
    /// when its last message has come back.
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,

    /// Stop after this many messages or transactions, without the warm-up.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// How long to measure.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::seconds)]
    duration: Duration,

    /// Warm-up before the measurement, not counted.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span::seconds)]
    warmup: Duration,

    /// Process id of the broker, if it runs on this machine.
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,

    /// CPU to run on.
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,

    /// Never sleep while waiting for messages.
    #[arg(long)]
    busy_poll: bool,

    /// Exit when stdin closes (for supervisors).
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Round trips or whole transactions.
    latency: Latency,
    /// With fan: until each receiver had the message, and until the last had it.
    each: Times,
    last: Times,
    due: u64,
    sent: u64,
    done: u64,
    /// Messages that had not come back when the time was over, although everything was waited for.
    missing: u64,
    lost: usize,
    /// Bytes of MQTT in the window, received and sent.
    bytes: (u64, u64),
    span: u64,
    account: Option<Account>,
}

/// Runs `bench mqtt`.
pub(crate) fn run(arguments: &MqttArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    if arguments.exit_with_stdin {
        crate::supervised::end_with_stdin()?;
    }
    if let Some(cpus) = &arguments.cpu {
        cpus.pin().map_err(|error| Failure::Environment(error.to_string()))?;
    }
    check_rate(arguments.rate, "messages")?;
    if arguments.pattern == Pattern::Fan && arguments.clients < 2 {
        return Err(Failure::Usage("fan needs at least two clients: -c 10".to_owned()));
    }
    let broker = broker::Broker::of(arguments)?;
    let outcome = match arguments.pattern {
        Pattern::RoundTrip => round_trip::run(arguments, &broker, interrupt)?,
        Pattern::Fan => fan::run(arguments, &broker, interrupt)?,
    };
    report(arguments, &broker, &outcome).print(output, interrupt)
}

fn report(arguments: &MqttArgs, broker: &broker::Broker, outcome: &Outcome) -> Report {
    let is_fan = arguments.pattern == Pattern::Fan;
    let mut report = Report::new("mqtt", broker.name());
    report.set(
        "requested",
        json!({
            "pattern": if is_fan { "fan" } else { "round-trip" },
            "clients": arguments.clients,
            "qos": arguments.qos,
            "mqtt": arguments.mqtt,
            "message": arguments.message.name(),
            "payload_bytes": arguments.payload,
            "rate": arguments.rate,
            "count": arguments.count,
            "duration_s": arguments.duration.as_secs_f64(),
            "warmup_s": arguments.warmup.as_secs_f64(),
        }),
    );
    for (name, value) in [
        ("sent", outcome.sent),
        ("due", outcome.due),
        ("messages", outcome.done),
        ("missing", outcome.missing),
        ("mqtt_bytes_received", outcome.bytes.0),
        ("mqtt_bytes_sent", outcome.bytes.1),
    ] {
        report.set(name, value);
    }
    report.set("connections_lost", outcome.lost);
    report.latency(&outcome.latency, arguments.rate.is_some());
    // By the names that the same loads have with OPC UA, so that the two can stand side by side.
    let name = if is_fan { "transaction" } else { "roundtrip" };
    report.set(name, json!(outcome.latency.counted(arguments.rate.is_some()).summary()));
    report.histogram(name, outcome.latency.counted(arguments.rate.is_some()));
    if is_fan {
        report.set("fan_out_each", json!(outcome.each.summary()));
        report.set("fan_out_last", json!(outcome.last.summary()));
        report.times("fan-out: each has it", &outcome.each);
        report.times("fan-out: the last has it", &outcome.last);
    }
    let unit = if is_fan { "transaction" } else { "message" };
    if let Some(account) = &outcome.account {
        let per_second = outcome.done as f64 / (outcome.span as f64 / 1e9).max(1e-9);
        report.set("per_second", per_second);
        report.fact(
            "throughput",
            format!(
                "{} {unit}s/s ({} clients, QoS {}, MQTT {})",
                figures::number(per_second),
                arguments.clients,
                arguments.qos.level(),
                arguments.mqtt
            ),
        );
        let total = (outcome.bytes.0 + outcome.bytes.1) as f64 / outcome.done.max(1) as f64;
        report.fact("MQTT bytes", format!("{} per {unit}, both directions", figures::bytes(total)));
        report.account(account, unit, outcome.done);
    }
    if let Some(rate) = arguments.rate {
        let interval = f64::from(arguments.clients) / rate * 1e9;
        report.invalid(validity::check_lateness(&outcome.latency.lateness, interval as u64));
        if outcome.sent * 100 < outcome.due * 99 {
            report.invalid([Invalid::NotSent { due: outcome.due, sent: outcome.sent }]);
        }
    }
    let (what, waited) =
        if is_fan { ("transactions", fan::WAITED) } else { ("messages", round_trip::WAITED) };
    report.unanswered(&outcome.latency, outcome.due, what, waited);
    if outcome.missing > 0 {
        report.fact("missing", format!("{} messages did not come back", outcome.missing));
    }
    if outcome.lost > 0 {
        report.invalid([Invalid::ConnectionsLost { lost: outcome.lost }]);
    }
    if outcome.done == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    report
}
