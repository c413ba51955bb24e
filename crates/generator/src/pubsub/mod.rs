//! `bench pubsub`: a publisher compared with a loop that only wakes up and sends the same datagrams.
//!
//! - `plant`: the configuration with a number of signals; `engine`: publisher and subscriber; `bare`: the loop; `line`:
//!   the mean period;
//! - `stations`: messages that are answered, as `bench mqtt` does through a broker;
//! - `listen`: only a subscriber, for an existing publisher.
//!
//! Engine and loop alternate within one run, so that both see the same conditions.

mod bare;
mod engine;
mod line;
mod listen;
mod plant;
mod stations;

use crate::context::Context;
use crate::error::GeneratorError;
use crate::report::{Delivery, Finished, Report};
use taktwerk::pubsub::{PubSubError, PublisherId, RealTime, SecurityMode};
use taktwerk_load::latency::Times;
use taktwerk_load::result::{Drift, Late, Published, PublishedRequested, Received, Receiver};
use taktwerk_load::specification::{Layout, MessageSecurity, PubSub, PubSubPattern as Pattern};
use taktwerk_load::validity::Invalid;
use taktwerk_model::figures;
use taktwerk_net::pubsub::HistogramSnapshot;

/// Settings derived from the options.
pub(super) trait Options {
    /// Scheduling of the publisher's thread.
    fn real_time(&self) -> RealTime;
    /// Waiting strategy of the subscriber.
    fn receiver(&self) -> Receiver;
    /// The publishing interval in nanoseconds.
    fn interval_nanos(&self) -> u64;
    /// Protection of messages.
    fn mode(&self) -> SecurityMode;
}

impl Options for PubSub {
    fn real_time(&self) -> RealTime {
        let mut real_time = RealTime::default();
        (real_time.fifo, real_time.cpu) = (self.fifo, self.publisher_cpu);
        real_time
    }

    fn receiver(&self) -> Receiver {
        match (self.busy_poll, self.only_sleep) {
            (true, _) => Receiver::Busy,
            (false, true) => Receiver::Asleep,
            (false, false) => Receiver::Expecting,
        }
    }

    fn interval_nanos(&self) -> u64 {
        u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    fn mode(&self) -> SecurityMode {
        match self.security {
            MessageSecurity::None => SecurityMode::None,
            MessageSecurity::Sign => SecurityMode::Sign,
            MessageSecurity::SignAndEncrypt => SecurityMode::SignAndEncrypt,
        }
    }
}

/// A publisher id: a number (16 bits, or with a type such as `uint32:7`) or a text (`string:line-1`).
///
/// # Errors
/// The accepted notation.
pub fn publisher_id(text: &str) -> Result<PublisherId, String> {
    let wrong =
        || format!("{text:?} is not a publisher id: write 2234, byte:1, uint32:7, uint64:7 or string:line-1");
    let (kind, value) = text.split_once(':').unwrap_or(("uint16", text));
    Ok(match kind {
        "byte" => PublisherId::Byte(value.parse().map_err(|_| wrong())?),
        "uint16" => PublisherId::UInt16(value.parse().map_err(|_| wrong())?),
        "uint32" => PublisherId::UInt32(value.parse().map_err(|_| wrong())?),
        "uint64" => PublisherId::UInt64(value.parse().map_err(|_| wrong())?),
        "string" if !value.is_empty() => PublisherId::String(value.into()),
        _ => return Err(wrong()),
    })
}

/// Converts a start error of the publisher.
pub(super) fn failure(error: PubSubError) -> GeneratorError {
    match error {
        PubSubError::NotPermitted { .. } | PubSubError::Thread { .. } => {
            GeneratorError::Environment(error.to_string())
        }
        PubSubError::Socket { .. } => GeneratorError::Connect(error.to_string()),
        _ => GeneratorError::Usage(error.to_string()),
    }
}

/// Adds a histogram to another.
pub(super) fn add(times: &mut Times, histogram: &HistogramSnapshot) {
    for (nanos, count) in histogram.values() {
        (0..count).for_each(|_| times.record(nanos));
    }
}

/// Runs `bench pubsub`.
pub(crate) fn run(arguments: &PubSub, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    if arguments.interval.is_zero() {
        return Err(GeneratorError::Usage("--interval 0: cycles need time".to_owned()));
    }
    if arguments.update.is_some_and(|span| span.is_zero()) {
        return Err(GeneratorError::Usage(
            "--update 0: remove it for values that are new in every cycle".to_owned(),
        ));
    }
    match arguments.pattern {
        Pattern::Cycles => {}
        Pattern::RoundTrip | Pattern::Fan => return stations::run(arguments, context),
        Pattern::Listen => return listen::run(arguments, context),
    }
    let plant = plant::Plant::new(arguments);
    let (mut engine, mut bare) = (engine::Outcome::default(), bare::Outcome::default());
    let round = arguments.duration / arguments.rounds;
    for _ in 0..arguments.rounds {
        if context.is_ended() {
            break;
        }
        engine::run(arguments, &plant, round, context, &mut engine)?;
        if !arguments.no_bare && !context.is_ended() {
            bare::run(arguments, &plant, round, context, &mut bare)?;
        }
    }
    Ok(report(arguments, &plant, &engine, &bare).finish(context, None))
}

fn report(
    arguments: &PubSub,
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
    // The whole process except the subscriber's thread, comparable with a server process.
    let process = engine.process_nanos.saturating_sub(engine.subscriber_cpu_nanos);
    let subscriber_percent = engine.subscriber_cpu_nanos as f64 / engine.nanos.max(1) as f64 * 100.0;
    let ratio = |percent: f64| {
        let other = bare.lateness.percentile(percent).max(1) as f64;
        engine.total.percentile(percent) as f64 / other
    };
    let [p50, p99] = [50.0, 99.0].map(|percent| (bare.cycles > 0).then(|| ratio(percent)));
    let [timer, encode, send] = engine.late;
    report.part(&Published {
        requested: PublishedRequested {
            signals: arguments.signals,
            interval_ms: arguments.interval.as_secs_f64() * 1e3,
            layout: Some(arguments.layout),
            security: arguments.security.into(),
            update_ms: arguments.update.map(|span| span.as_secs_f64() * 1e3),
            interface: arguments.interface.clone(),
            duration_s: arguments.duration.as_secs_f64(),
            rounds: arguments.rounds,
            fifo: arguments.fifo,
            receiver: arguments.receiver(),
            publisher_cpu: arguments.publisher_cpu,
            subscriber_cpu: arguments.subscriber_cpu,
        },
        window_s: seconds,
        cycles: engine.cycles,
        cycles_missed: engine.missed,
        cycles_missed_busy: engine.missed_busy,
        messages_sent: engine.messages,
        messages_failed: engine.failed,
        bytes_sent: engine.bytes,
        datagrams_per_cycle: plant.datagrams.len() as u64,
        signals_per_s: signals as f64 / seconds.max(1e-9),
        publisher_cpu_percent: cpu_percent,
        process_cpu_percent: process as f64 / engine.nanos.max(1) as f64 * 100.0,
        publisher_cpu_ns_per_signal: per_signal,
        lateness: engine.total.summary(),
        encode: engine.encode.summary(),
        send: engine.send.summary(),
        late: Late { timer, encode, send },
        bare_cpu_percent: bare_percent,
        bare_cycles: bare.cycles,
        bare_cycles_missed: bare.missed,
        bare_lateness: bare.lateness.summary(),
        lateness_p50_ratio: p50,
        lateness_p99_ratio: p99,
    });
    report.histogram("lateness", &engine.total);
    report.histogram("bare_lateness", &bare.lateness);
    report.delivered(&Delivery {
        delivery: &engine.delivery,
        waiting: &engine.waiting,
        making: &engine.making,
        transfer: &engine.transfer,
        period: &engine.period,
        received: Received {
            messages: engine.received,
            missing: engine.missing_messages,
            of_other_writers: None,
        },
        cpu_percent: (!arguments.no_subscriber).then_some(subscriber_percent),
    });
    report.times("publisher: due → send", &engine.total);
    if bare.cycles > 0 {
        report.times("bare loop: due → send", &bare.lateness);
    }
    report.times("publisher: encoding messages", &engine.encode);
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
    if let (Some(p50), Some(p99)) = (p50, p99) {
        report.fact("bare loop CPU", format!("{} % of a core", figures::number(bare_percent)));
        report.fact("lateness relative to the bare loop", format!("p50 × {p50:.2}, p99 × {p99:.2}"));
    }
    if let Some(error) = engine.period_error() {
        let drift = error / arguments.interval_nanos() as f64 * 1e6;
        report.part(&Drift { drift_ppm: drift, mean_period_error_ns: error });
        report.fact(
            "drift",
            format!("{drift:.2} ppm (mean period against the configured one, at the subscriber)"),
        );
    }
    let late: u64 = engine.late.iter().sum();
    report.fact(
        "cycles",
        format!(
            "{} run, {} missed ({} of them busy); {late} later than 1 ms (timer {timer}, encode {encode}, send {send})",
            figures::thousands(i64::try_from(engine.cycles).unwrap_or(i64::MAX)),
            engine.missed,
            engine.missed_busy
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publisher_ids() {
        assert_eq!(publisher_id("7"), Ok(PublisherId::UInt16(7)));
        assert_eq!(publisher_id("byte:7"), Ok(PublisherId::Byte(7)));
        assert_eq!(publisher_id("string:a:b"), Ok(PublisherId::String("a:b".into())));
        for wrong in ["", "x", "70000", "byte:300", "string:", "int:3"] {
            assert!(publisher_id(wrong).is_err(), "{wrong}");
        }
    }
}
