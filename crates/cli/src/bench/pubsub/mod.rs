//! `bench pubsub`: a publisher measured against a loop that does nothing but wake and send the same datagrams.
//!
//! - [`plant`]: the configuration of so many signals; [`engine`]: publisher and subscriber; [`bare`]: the loop;
//!   [`line`]: the mean period;
//! - [`stations`]: messages that are answered, as `bench mqtt` sends them through a broker;
//! - [`listen`]: a subscriber alone, to a publisher that is somebody else's.
//!
//! Engine and loop take turns within one run, so that both see the same machine.

mod bare;
mod engine;
mod line;
mod listen;
mod plant;
mod stations;

use super::report::Report;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::pubsub::{Mode, publisher_id};
use crate::span;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::time::Duration;
use taktwerk::pubsub::{PubSubError, PublisherId, RealTime};
use taktwerk_lab::figures;
use taktwerk_lab::latency::Times;
use taktwerk_lab::pin::CpuList;
use taktwerk_lab::validity::Invalid;
use taktwerk_net::pubsub::HistogramSnapshot;

/// Layout of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LayoutName {
    /// Every field has a fixed position, without its type.
    PeriodicFixed,
    /// Messages describe their fields.
    Dynamic,
}

/// Who publishes, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Pattern {
    /// One publisher in cycles.
    Cycles,
    /// One station publishes to itself, each time the last message has arrived.
    RoundTrip,
    /// One client publishes, all others answer at once, the first waits for all answers.
    Fan,
    /// Only receive UADP without message security from another program. Times count from the SourceTimestamp and
    /// ServerTimestamp of a message's first field and the message's Timestamp.
    Listen,
}

/// Arguments of `taktwerk bench pubsub`.
#[derive(Debug, Args)]
pub(crate) struct PubSubArgs {
    /// Where to: opc.udp://host[:port].
    #[arg(value_name = "URL", default_value = "opc.udp://239.192.0.2:14850")]
    pub(super) url: String,

    /// Network interface, by name or address.
    #[arg(long, value_name = "NAME", default_value = "lo")]
    pub(super) interface: String,

    /// Number of floats, all of which change in every cycle.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(super) signals: u32,

    /// Publishing interval; a plain number is in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    pub(super) interval: Duration,

    /// Layout of the messages.
    #[arg(long, value_enum, default_value = "periodic-fixed")]
    pub(super) layout: LayoutName,

    /// Message security.
    #[arg(long, value_enum, default_value = "none")]
    pub(super) security: Mode,

    /// Change the value at this interval in milliseconds, independent of the publisher, and measure delivery from the
    /// change. Default: a value is new when it is sampled.
    #[arg(long, value_name = "MS", value_parser = span::millis)]
    pub(super) update: Option<Duration>,

    /// Who publishes, and when. The options --signals to --when-due but for --interface and --duration are for cycles,
    /// those from --clients on for the others; listen takes --interface, --interval (the publisher's), --duration,
    /// --subscriber-cpu, --busy-poll, --only-sleep and --publisher-id.
    #[arg(long, value_enum, default_value = "cycles")]
    pub(super) pattern: Pattern,

    /// Duration of the measurement, for publisher and bare loop each.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::seconds)]
    pub(super) duration: Duration,

    /// Number of turns of publisher and bare loop within that time.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,

    /// Leave out the bare loop that sends the same datagrams.
    #[arg(long)]
    pub(super) no_bare: bool,

    /// Leave out the subscriber.
    #[arg(long)]
    pub(super) no_subscriber: bool,

    /// CPU of the publisher's thread and of the bare loop.
    #[arg(long, value_name = "N")]
    pub(super) publisher_cpu: Option<usize>,

    /// CPU of the subscriber's thread.
    #[arg(long, value_name = "N")]
    pub(super) subscriber_cpu: Option<usize>,

    /// The subscriber never sleeps.
    #[arg(long)]
    pub(super) busy_poll: bool,

    /// The subscriber sleeps until a message arrives, instead of waking shortly before.
    #[arg(long, conflicts_with = "busy_poll")]
    pub(super) only_sleep: bool,

    /// Real-time priority (SCHED_FIFO) of the publisher's thread and of the bare loop's, 1 to 99.
    #[arg(long, value_name = "PRIORITY")]
    pub(super) fifo: Option<u8>,

    /// Sample when a cycle is due, instead of earlier by the time that preparing the messages takes.
    #[arg(long)]
    pub(super) when_due: bool,

    /// Stations, each publisher and subscriber (fan).
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) clients: u32,

    /// Bytes of a message's value (round-trip, fan).
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u32).range(8..=8 << 20))]
    pub(super) payload: u32,

    /// Stop after this many round trips or transactions, without the warm-up.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,

    /// Warm-up (round-trip, fan).
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span::seconds)]
    pub(super) warmup: Duration,

    /// CPU to run on (round-trip, fan).
    #[arg(long, value_name = "LIST")]
    pub(super) cpu: Option<CpuList>,

    /// Publisher to listen to: 2234, byte:1, uint32:7, string:line-1 (listen). Default: the first one received.
    #[arg(long, value_name = "ID", value_parser = publisher_id)]
    pub(super) publisher_id: Option<PublisherId>,
}

impl PubSubArgs {
    pub(super) fn real_time(&self) -> RealTime {
        let mut real_time = RealTime::default();
        (real_time.fifo, real_time.cpu) = (self.fifo, self.publisher_cpu);
        real_time
    }

    /// How the subscriber waits for messages.
    pub(super) fn receiver(&self) -> &'static str {
        match (self.busy_poll, self.only_sleep) {
            (true, _) => "busy",
            (false, true) => "asleep",
            (false, false) => "expecting",
        }
    }

    pub(super) fn interval_nanos(&self) -> u64 {
        u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX).max(1)
    }
}

/// What a publisher that does not start comes to.
pub(super) fn failure(error: PubSubError) -> Failure {
    match error {
        PubSubError::NotPermitted { .. } | PubSubError::Thread { .. } => {
            Failure::Environment(error.to_string())
        }
        PubSubError::Socket { .. } => Failure::Connect(error.to_string()),
        _ => Failure::Usage(error.to_string()),
    }
}

/// Adds a histogram to another.
pub(super) fn add(times: &mut Times, histogram: &HistogramSnapshot) {
    for (nanos, count) in histogram.values() {
        (0..count).for_each(|_| times.record(nanos));
    }
}

/// Runs `bench pubsub`.
pub(crate) fn run(arguments: &PubSubArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    if arguments.interval.is_zero() {
        return Err(Failure::Usage("--interval 0: cycles need time".to_owned()));
    }
    if arguments.update.is_some_and(|span| span.is_zero()) {
        return Err(Failure::Usage(
            "--update 0: leave it out for values that are new in every cycle".to_owned(),
        ));
    }
    match arguments.pattern {
        Pattern::Cycles => {}
        Pattern::RoundTrip | Pattern::Fan => return stations::run(arguments, output, interrupt),
        Pattern::Listen => return listen::run(arguments, output, interrupt),
    }
    let plant = plant::Plant::new(arguments);
    let (mut engine, mut bare) = (engine::Outcome::default(), bare::Outcome::default());
    let round = arguments.duration / arguments.rounds;
    for _ in 0..arguments.rounds {
        if interrupt.asked() {
            break;
        }
        engine::run(arguments, &plant, round, interrupt, &mut engine)?;
        if !arguments.no_bare && !interrupt.asked() {
            bare::run(arguments, &plant, round, interrupt, &mut bare)?;
        }
    }
    report(arguments, &plant, &engine, &bare).print(output, interrupt)
}

fn report(
    arguments: &PubSubArgs,
    plant: &plant::Plant,
    engine: &engine::Outcome,
    bare: &bare::Outcome,
) -> Report {
    let mut report = Report::new("pubsub", &arguments.url);
    let signals = engine.cycles * u64::from(arguments.signals);
    let seconds = engine.nanos as f64 / 1e9;
    let per_signal = engine.cpu_nanos as f64 / signals.max(1) as f64;
    let cpu_percent = engine.cpu_nanos as f64 / engine.nanos.max(1) as f64 * 100.0;
    let bare_percent = bare.cpu_nanos as f64 / bare.nanos.max(1) as f64 * 100.0;
    report.set(
        "requested",
        json!({
            "signals": arguments.signals,
            "interval_ms": arguments.interval.as_secs_f64() * 1e3,
            "layout": if arguments.layout == LayoutName::PeriodicFixed { "periodic-fixed" } else { "dynamic" },
            "security": match arguments.security {
                Mode::None => "None",
                Mode::Sign => "Sign",
                Mode::SignAndEncrypt => "SignAndEncrypt",
            },
            "update_ms": arguments.update.map(|span| span.as_secs_f64() * 1e3),
            "interface": arguments.interface,
            "duration_s": arguments.duration.as_secs_f64(),
            "rounds": arguments.rounds,
            "fifo": arguments.fifo,
            "receiver": arguments.receiver(),
            "publisher_cpu": arguments.publisher_cpu,
            "subscriber_cpu": arguments.subscriber_cpu,
        }),
    );
    report.set("window_s", seconds);
    report.set("cycles", engine.cycles);
    report.set("cycles_missed", engine.missed);
    report.set("cycles_missed_busy", engine.missed_busy);
    report.set("messages_sent", engine.messages);
    report.set("messages_failed", engine.failed);
    report.set("bytes_sent", engine.bytes);
    report.set("datagrams_per_cycle", plant.datagrams.len() as u64);
    report.set("signals_per_s", signals as f64 / seconds.max(1e-9));
    report.set("publisher_cpu_percent", cpu_percent);
    // All of this process but the subscriber's thread: what a server's process is measured by.
    let process = engine.process_nanos.saturating_sub(engine.subscriber_cpu_nanos);
    report.set("process_cpu_percent", process as f64 / engine.nanos.max(1) as f64 * 100.0);
    report.set("publisher_cpu_ns_per_signal", per_signal);
    let subscriber_percent = engine.subscriber_cpu_nanos as f64 / engine.nanos.max(1) as f64 * 100.0;
    if !arguments.no_subscriber {
        report.set("subscriber_cpu_percent", subscriber_percent);
    }
    report.set("bare_cpu_percent", bare_percent);
    report.set("bare_cycles", bare.cycles);
    report.set("bare_cycles_missed", bare.missed);
    report.set("late", json!({"timer": engine.late[0], "encode": engine.late[1], "send": engine.late[2]}));
    report.set("received", json!({"messages": engine.received, "missing": engine.missing_messages}));
    report.set("lateness", json!(engine.total.summary()));
    report.set("bare_lateness", json!(bare.lateness.summary()));
    report.set("encode", json!(engine.encode.summary()));
    report.set("send", json!(engine.send.summary()));
    report.set("delivery", json!(engine.delivery.summary()));
    report.set("waiting", json!(engine.waiting.summary()));
    report.set("making", json!(engine.making.summary()));
    report.set("transfer", json!(engine.transfer.summary()));
    report.set("period_at_subscriber", json!(engine.period.summary()));
    report.histogram("lateness", &engine.total);
    report.histogram("bare_lateness", &bare.lateness);
    report.histogram("delivery", &engine.delivery);
    report.histogram("waiting", &engine.waiting);
    report.histogram("transfer", &engine.transfer);
    report.histogram("period_at_subscriber", &engine.period);
    report.times("publisher: due → send", &engine.total);
    if bare.cycles > 0 {
        report.times("bare loop: due → send", &bare.lateness);
    }
    report.times("publisher: making messages", &engine.encode);
    report.times("publisher: sending them", &engine.send);
    if engine.delivery.count() > 0 {
        report.times("value changed → received", &engine.delivery);
        report.times("  changed → cycle", &engine.waiting);
        report.times("  cycle → message ready", &engine.making);
        report.times("  message ready → received", &engine.transfer);
        report.times("cycle at the subscriber", &engine.period);
    }
    let per_second = signals as f64 / seconds.max(1e-9);
    report.fact(
        "published",
        format!(
            "{} signals/s in {} datagrams per cycle, {} per datagram",
            figures::number(per_second),
            plant.datagrams.len(),
            figures::bytes(engine.bytes as f64 / engine.messages.max(1) as f64)
        ),
    );
    report.fact(
        "publisher CPU",
        format!(
            "{} % of a core, {} ns per signal",
            figures::number(cpu_percent),
            figures::number(per_signal)
        ),
    );
    if bare.cycles > 0 {
        let ratio = |percent: f64| {
            let other = bare.lateness.percentile(percent).max(1) as f64;
            engine.total.percentile(percent) as f64 / other
        };
        report.set("lateness_p99_ratio", ratio(99.0));
        report.set("lateness_p50_ratio", ratio(50.0));
        report.fact("bare loop CPU", format!("{} % of a core", figures::number(bare_percent)));
        report.fact(
            "lateness against the bare loop",
            format!("p50 × {:.2}, p99 × {:.2}", ratio(50.0), ratio(99.0)),
        );
    }
    if let Some(error) = engine.period_error() {
        let drift = error / arguments.interval_nanos() as f64 * 1e6;
        report.set("drift_ppm", drift);
        report.set("mean_period_error_ns", error);
        report.fact(
            "drift",
            format!("{drift:.2} ppm (mean period against the configured one, at the subscriber)"),
        );
    }
    let late: u64 = engine.late.iter().sum();
    report.fact(
        "cycles",
        format!(
            "{} run, {} missed ({} of them busy); {late} later than 1 ms (timer {}, encode {}, send {})",
            figures::thousands(i64::try_from(engine.cycles).unwrap_or(i64::MAX)),
            engine.missed,
            engine.missed_busy,
            engine.late[0],
            engine.late[1],
            engine.late[2]
        ),
    );
    if bare.cycles > 0 {
        let cycles = figures::thousands(i64::try_from(bare.cycles).unwrap_or(i64::MAX));
        report.fact("bare loop's cycles", format!("{cycles} run, {} missed", bare.missed));
    }
    if !arguments.no_subscriber {
        report.fact(
            "subscriber",
            format!(
                "{} cycles received, {} missing; {} % of a core",
                engine.received,
                engine.missing_messages,
                figures::number(subscriber_percent)
            ),
        );
    }
    if engine.cycles == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    let due = engine.cycles + engine.missed;
    if engine.missed * 100 > due {
        report.invalid([Invalid::NotSent { due, sent: engine.cycles }]);
    }
    report
}
