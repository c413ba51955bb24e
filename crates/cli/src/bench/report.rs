//! The result of a load, as a table and as a document.

use super::account::Account;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use serde_json::Value;
use taktwerk_lab::figures;
use taktwerk_lab::latency::{Latency, Summary, Times};
use taktwerk_lab::machine::Machine;
use taktwerk_lab::table::{Align, Table};
use taktwerk_lab::validity::{self, Invalid};
use taktwerk_load::result::{
    Answered, Delivered, Document, Ending, Head, Histograms, Latencies, Part, Reason, Received, RoundTrips,
    Transactions, Unit,
};

/// What a subscriber had of a publisher's messages.
pub(crate) struct Delivery<'a> {
    /// Change of a value to its arrival.
    pub(crate) delivery: &'a Times,
    /// Of it: until the cycle, until the message was ready, until it arrived.
    pub(crate) waiting: &'a Times,
    pub(crate) making: &'a Times,
    pub(crate) transfer: &'a Times,
    /// From message to message.
    pub(crate) period: &'a Times,
    pub(crate) received: Received,
    /// CPU use of the subscriber, if there was one.
    pub(crate) cpu_percent: Option<f64>,
}

/// A result under construction.
pub(crate) struct Report {
    document: Document,
    facts: Table,
    times: Table,
    comparison: Option<Table>,
    histograms: Histograms,
    invalid: Vec<Invalid>,
}

impl Report {
    /// A report of a command against a server.
    pub(crate) fn new(command: &str, url: &str) -> Self {
        let mut document = Document::default();
        document.add(&Head {
            tool: "taktwerk bench".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            url: url.to_owned(),
            machine: Machine::this(),
        });
        let times = ["", "count", "mean", "p50", "p90", "p99", "p99.9", "max"];
        let times: Vec<(&str, Align)> = times
            .iter()
            .enumerate()
            .map(|(at, title)| (*title, if at == 0 { Align::Left } else { Align::Right }))
            .collect();
        Self {
            document,
            facts: Table::new(&[("what", Align::Left), ("value", Align::Wrap)]),
            times: Table::new(&times),
            comparison: None,
            histograms: Histograms::default(),
            invalid: Vec::new(),
        }
    }

    /// Adds a part of the document.
    pub(crate) fn part(&mut self, part: &impl Part) {
        self.document.add(part);
    }

    /// Adds a member of the document that no part owns.
    #[cfg(feature = "gateway")]
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.document.set(name, value);
    }

    /// Adds a line for people.
    pub(crate) fn fact(&mut self, what: &str, value: impl Into<String>) {
        self.facts.row([what.to_owned(), value.into()]);
    }

    #[cfg(feature = "gateway")]
    /// Adds a table of its own, which is printed before everything else.
    pub(crate) fn comparison(&mut self, table: Table) {
        self.comparison = Some(table);
    }

    /// Notes that the measurement is worth nothing.
    pub(crate) fn invalid(&mut self, reason: impl IntoIterator<Item = Invalid>) {
        self.invalid.extend(reason);
    }

    /// Adds a whole histogram to the document, in HdrHistogram's compressed V2 form: nothing is lost.
    pub(crate) fn histogram(&mut self, name: &str, times: &Times) {
        self.histograms.add(name, times);
    }

    /// Adds what a subscriber had of a publisher's messages.
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

    /// Adds the times of round trips, or of whole transactions: by the same names with OPC UA, PubSub and MQTT, so that the same
    /// loads can stand side by side.
    pub(crate) fn returned(&mut self, is_fan: bool, times: &Times) {
        if is_fan {
            self.part(&Transactions { transaction: times.summary() });
            self.histogram("transaction", times);
        } else {
            self.part(&RoundTrips { roundtrip: times.summary() });
            self.histogram("roundtrip", times);
        }
    }

    /// Adds a line of percentiles for people.
    pub(crate) fn times(&mut self, what: &str, times: &Times) {
        let Summary { count, mean_us, p50_us, p90_us, p99_us, p999_us, max_us, .. } = times.summary();
        let mut row = vec![what.to_owned(), figures::thousands(i64::try_from(count).unwrap_or(i64::MAX))];
        row.extend([mean_us, p50_us, p90_us, p99_us, p999_us, max_us].map(figures::micros));
        self.times.row(row);
    }

    /// Adds latencies: of a schedule, or of a loop without one.
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

    /// Says how many of so many requests had no answer in the time that was waited for it.
    pub(crate) fn unanswered(&mut self, latency: &Latency, due: u64, what: &str, waited: &str) {
        if latency.unanswered > 0 {
            let said = format!(
                "{} of {due} {what} were not answered {waited}: each counts as if it had been then",
                latency.unanswered
            );
            self.fact("unanswered", said);
        }
        self.invalid(validity::check_answers(latency.unanswered, due));
    }

    /// Adds what generator and server used; `unit` is what the server's CPU time is divided by.
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
                    "{}, grew by {} in the window",
                    figures::bytes(server.rss_bytes as f64),
                    figures::bytes(server.rss_growth_bytes as f64)
                ),
            );
        }
        if let Some(wire) = account.wire.filter(|wire| wire.payload_in_bytes > 0) {
            self.fact(
                "on the wire (as Ethernet)",
                format!(
                    "{}/s: payload {} in, {} out, TCP/IP {}, Ethernet {}; {} segments sent again",
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

    /// Prints everything. An invalid measurement is printed too, and then fails; an interrupted one likewise.
    pub(crate) fn print(mut self, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
        self.document.add(&self.histograms);
        self.document.add(&Ending {
            valid: self.invalid.is_empty(),
            invalid: self.invalid.iter().map(Reason::from).collect(),
            interrupted: interrupt.asked(),
        });
        if output.is_json() {
            output.document(&self.document.into_value())?;
        } else {
            if let Some(table) = &self.comparison {
                output.text(&format!("{table}\n"))?;
            }
            if !self.times.is_empty() {
                output.text(&format!("{}\n", self.times))?;
            }
            output.text(&self.facts.to_string())?;
        }
        if interrupt.asked() {
            return Err(Failure::Interrupted);
        }
        if self.invalid.is_empty() { Ok(()) } else { Err(Failure::Invalid(self.invalid)) }
    }
}
