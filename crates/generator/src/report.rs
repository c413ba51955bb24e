//! The result of a load, as text and as a document.

use crate::account::Account;
use crate::context::Context;
use crate::error::GeneratorError;
use serde_json::Value;
use taktwerk_load::latency::{Latency, Summary, Times};
use taktwerk_load::machine::Machine;
use taktwerk_load::result::{
    Answered, Delivered, Document, Ending, Head, Histograms, Latencies, Part, Reason, Received, RoundTrips,
    Transactions, Unit,
};
use taktwerk_load::validity::{self, Invalid};
use taktwerk_model::figures;

/// A subscriber's statistics of a publisher's messages.
pub(crate) struct Delivery<'a> {
    /// From the change of a value to its arrival.
    pub(crate) delivery: &'a Times,
    /// Parts of it: until the cycle, until the message was ready, until it arrived.
    pub(crate) waiting: &'a Times,
    pub(crate) making: &'a Times,
    pub(crate) transfer: &'a Times,
    /// Time between messages.
    pub(crate) period: &'a Times,
    pub(crate) received: Received,
    /// CPU use of the subscriber, if there was one.
    pub(crate) cpu_percent: Option<f64>,
}

/// A result.
#[derive(Debug)]
pub struct Finished {
    /// The result.
    pub document: Document,
    /// The same as text.
    pub lines: Lines,
    /// Why it is invalid, or what else must be reported.
    pub outcome: Result<(), GeneratorError>,
}

/// A result as text.
#[derive(Debug, Default)]
pub struct Lines {
    /// Distributions of times, each with its name.
    pub times: Vec<(String, Summary)>,
    /// All other lines.
    pub facts: Vec<(String, String)>,
}

/// A result under construction.
pub(crate) struct Report {
    document: Document,
    lines: Lines,
    histograms: Histograms,
    invalid: Vec<Invalid>,
}

impl Report {
    /// A report of a command on a server.
    pub(crate) fn new(command: &str, url: &str) -> Self {
        let mut document = Document::default();
        document.add(&Head {
            tool: "taktwerk bench".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            url: url.to_owned(),
            machine: Machine::this(),
        });
        Self { document, lines: Lines::default(), histograms: Histograms::default(), invalid: Vec::new() }
    }

    /// Adds a part of the document.
    pub(crate) fn part(&mut self, part: &impl Part) {
        self.document.add(part);
    }

    /// Adds a member of the document that belongs to no part.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.document.set(name, value);
    }

    /// Adds a line of text.
    pub(crate) fn fact(&mut self, what: &str, value: impl Into<String>) {
        self.lines.facts.push((what.to_owned(), value.into()));
    }

    /// Adds the increase of the 99th percentile of the delay caused by the gateway, in nanoseconds.
    pub(crate) fn added_to_p99(&mut self, added: u64, limit: u64, limit_in_words: &str) {
        let word = if added <= limit { "within" } else { "more than" };
        let value = format!("{}, {word} {limit_in_words}", figures::micros(added as f64 / 1e3));
        self.fact("added to p99", value);
    }

    /// Marks the measurement as invalid.
    pub(crate) fn invalid(&mut self, reason: impl IntoIterator<Item = Invalid>) {
        self.invalid.extend(reason);
    }

    /// Adds a complete histogram to the document, in HdrHistogram's lossless compressed V2 form.
    pub(crate) fn histogram(&mut self, name: &str, times: &Times) {
        self.histograms.add(name, times);
    }

    /// Adds a subscriber's statistics of a publisher's messages.
    pub(crate) fn delivered(&mut self, of: &Delivery<'_>) {
        self.part(&Delivered {
            delivery: of.delivery.summary(),
            waiting: of.waiting.summary(),
            making: of.making.summary(),
            transfer: of.transfer.summary(),
            period_at_subscriber: of.period.summary(),
            received: of.received,
            subscriber_cpu_percent: of.cpu_percent,
        });
        self.histogram("delivery", of.delivery);
        self.histogram("waiting", of.waiting);
        self.histogram("transfer", of.transfer);
        self.histogram("period_at_subscriber", of.period);
    }

    /// Adds the times of round trips, or of complete transactions. OPC UA, PubSub and MQTT use the same names, so that
    /// loads can be compared.
    pub(crate) fn returned(&mut self, is_fan: bool, times: &Times) {
        if is_fan {
            self.part(&Transactions { transaction: times.summary() });
            self.histogram("transaction", times);
        } else {
            self.part(&RoundTrips { roundtrip: times.summary() });
            self.histogram("roundtrip", times);
        }
    }

    /// Adds a distribution of times as text.
    pub(crate) fn times(&mut self, what: &str, times: &Times) {
        self.lines.times.push((what.to_owned(), times.summary()));
    }

    /// Adds latencies, with or without a schedule.
    pub(crate) fn latency(&mut self, latency: &Latency, is_scheduled: bool) {
        self.part(&Answered {
            latency: Latencies::new(latency, is_scheduled),
            unanswered: latency.unanswered,
        });
        self.histogram("latency", latency.counted(is_scheduled));
        if is_scheduled {
            self.histogram("latency_uncorrected", &latency.uncorrected);
            self.histogram("lateness", &latency.lateness);
        }
        if is_scheduled {
            self.times("from schedule (corrected)", &latency.corrected);
            self.times("from send (uncorrected)", &latency.uncorrected);
            self.times("generator's lateness", &latency.lateness);
        } else {
            self.times("round trip", &latency.uncorrected);
        }
    }

    /// Reports the number of requests without an answer within the waiting time.
    pub(crate) fn unanswered(&mut self, latency: &Latency, due: u64, what: &str, waited: &str) {
        if latency.unanswered > 0 {
            let said = format!(
                "{} of {due} {what} were not answered {waited}: each counts with the time it has waited",
                latency.unanswered
            );
            self.fact("unanswered", said);
        }
        self.invalid(validity::check_answers(latency.unanswered, due));
    }

    /// Adds the resources used by generator and server; the server's CPU time is divided by the number of `unit`s.
    pub(crate) fn account(&mut self, account: &Account, unit: Unit, units: u64) {
        self.part(&account.document(unit, units));
        if let Some(joules) = account.joules.get("package") {
            let watts = joules / account.seconds().max(1e-9);
            self.fact("energy of the processor", format!("{joules:.2} J, {watts:.2} W"));
        }
        self.fact("generator CPU", format!("{} % of a core", figures::number(account.own_percent())));
        if let Some(server) = &account.server {
            self.fact(
                "server CPU",
                format!(
                    "{} % of a core (user {:.2} s, kernel {:.2} s), {} per {}",
                    figures::number(server.cpu_percent),
                    server.user_s,
                    server.system_s,
                    figures::micros(server.cpu_us_per(units)),
                    unit.name(),
                ),
            );
            self.fact(
                "server context switches",
                format!(
                    "{}/s voluntary, {}/s involuntary",
                    figures::number(server.voluntary_switches as f64 / server.seconds.max(1e-9)),
                    figures::number(server.involuntary_switches as f64 / server.seconds.max(1e-9)),
                ),
            );
            if let Some(conditions) = &account.conditions {
                self.fact("server's CPU conditions", conditions.to_string());
            }
            self.fact(
                "server memory (RSS)",
                format!(
                    "{}, growth in the window {}",
                    figures::bytes(server.rss_bytes as f64),
                    figures::bytes(server.rss_growth_bytes as f64)
                ),
            );
        }
        if let Some(wire) = account.wire.filter(|wire| wire.payload_in_bytes > 0) {
            self.fact(
                "on the wire (as Ethernet)",
                format!(
                    "{}/s: payload {} in, {} out, TCP/IP {}, Ethernet {}; {} segments retransmitted",
                    figures::bytes(wire.total_bytes as f64 / account.seconds().max(1e-9)),
                    figures::bytes(wire.payload_in_bytes as f64),
                    figures::bytes(wire.payload_out_bytes as f64),
                    figures::bytes(wire.tcp_ip_bytes as f64),
                    figures::bytes(wire.ethernet_bytes as f64),
                    wire.retransmitted
                ),
            );
        }
        self.invalid(account.check());
    }

    /// The finished result. If it is invalid or was stopped early, this is reported first; `otherwise` is reported for
    /// a valid one.
    pub(crate) fn finish(mut self, context: &Context<'_>, otherwise: Option<GeneratorError>) -> Finished {
        let is_ended = context.is_ended();
        self.document.add(&self.histograms);
        self.document.add(&Ending {
            valid: self.invalid.is_empty(),
            invalid: self.invalid.iter().map(Reason::from).collect(),
            interrupted: is_ended,
        });
        let outcome = match (is_ended, self.invalid.is_empty(), otherwise) {
            (true, _, _) => Err(GeneratorError::Interrupted),
            (false, false, _) => Err(GeneratorError::Invalid(self.invalid)),
            (false, true, Some(error)) => Err(error),
            (false, true, None) => Ok(()),
        };
        Finished { document: self.document, lines: self.lines, outcome }
    }
}
