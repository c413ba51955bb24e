//! `bench mqtt`: measures a broker in the same way as OPC UA servers.
//!
//! - [`clients`]: connections to the broker; [`broker`]: an existing broker, or one started for the measurement;
//! - [`round_trip`]: each client receives its own messages; [`fan`]: one publishes, all others receive and answer;
//! - [`message`]: plain bytes, or PubSub messages.

pub(crate) mod broker;
mod clients;
mod fan;
mod message;
mod round_trip;

use crate::account::Account;
use crate::common::{check_rate, pin};
use crate::context::Context;
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use taktwerk_load::latency::{Latency, Times};
use taktwerk_load::result::{Brokered, BrokeredRequested, FanOut, Unit};
use taktwerk_load::specification::{Mqtt, MqttPattern as Pattern};
use taktwerk_load::validity::{self, Invalid};
use taktwerk_model::figures;

/// Results.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Round trips, or complete transactions.
    latency: Latency,
    /// With fan: time until each receiver had the message, and until the last one had it.
    each: Times,
    last: Times,
    due: u64,
    sent: u64,
    done: u64,
    /// Messages that did not return, after the final waiting time.
    missing: u64,
    lost: usize,
    /// MQTT bytes received and sent within the window.
    bytes: (u64, u64),
    span: u64,
    account: Option<Account>,
}

/// Runs `bench mqtt`.
pub(crate) fn run(arguments: &Mqtt, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    pin(arguments.cpu.as_ref())?;
    check_rate(arguments.rate, "messages")?;
    if arguments.pattern == Pattern::Fan && arguments.clients < 2 {
        return Err(GeneratorError::Usage("fan needs at least two clients: pass -c 2 or more".to_owned()));
    }
    let broker = broker::Broker::of(arguments)?;
    let outcome = match arguments.pattern {
        Pattern::RoundTrip => round_trip::run(arguments, &broker, context)?,
        Pattern::Fan => fan::run(arguments, &broker, context)?,
    };
    Ok(report(arguments, &broker, &outcome).finish(context, None))
}

fn report(arguments: &Mqtt, broker: &broker::Broker, outcome: &Outcome) -> Report {
    let is_fan = arguments.pattern == Pattern::Fan;
    let mut report = Report::new("mqtt", broker.name());
    let per_second = outcome.done as f64 / (outcome.span as f64 / 1e9).max(1e-9);
    report.part(&Brokered {
        requested: BrokeredRequested {
            pattern: Some(arguments.pattern),
            clients: arguments.clients,
            qos: Some(arguments.qos),
            mqtt: Some(arguments.mqtt),
            message: Some(arguments.message),
            payload_bytes: arguments.payload,
            rate: arguments.rate,
            count: arguments.count,
            duration_s: arguments.duration.as_secs_f64(),
            warmup_s: arguments.warmup.as_secs_f64(),
        },
        sent: outcome.sent,
        due: outcome.due,
        messages: outcome.done,
        missing: outcome.missing,
        mqtt_bytes_received: outcome.bytes.0,
        mqtt_bytes_sent: outcome.bytes.1,
        connections_lost: outcome.lost,
        per_second: outcome.account.is_some().then_some(per_second),
    });
    report.latency(&outcome.latency, arguments.rate.is_some());
    report.returned(is_fan, outcome.latency.counted(arguments.rate.is_some()));
    if is_fan {
        report.part(&FanOut { fan_out_each: outcome.each.summary(), fan_out_last: outcome.last.summary() });
        report.times("fan-out: to each receiver", &outcome.each);
        report.times("fan-out: to the last receiver", &outcome.last);
    }
    let unit = if is_fan { Unit::Transaction } else { Unit::Message };
    if let Some(account) = &outcome.account {
        report.fact(
            "throughput",
            format!(
                "{} {}s/s ({} clients, QoS {}, MQTT {})",
                figures::number(per_second),
                unit.name(),
                arguments.clients,
                arguments.qos.level(),
                arguments.mqtt
            ),
        );
        let total = (outcome.bytes.0 + outcome.bytes.1) as f64 / outcome.done.max(1) as f64;
        report.fact("MQTT bytes", format!("{} per {}, both directions", figures::bytes(total), unit.name()));
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
        report.fact("missing", format!("{} messages did not return", outcome.missing));
    }
    if outcome.lost > 0 {
        report.invalid([Invalid::ConnectionsLost { lost: outcome.lost }]);
    }
    if outcome.done == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    report
}
