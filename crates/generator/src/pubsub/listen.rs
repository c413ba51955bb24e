//! Subscribes to an existing publisher. Measures when received values changed, when their messages were ready, and how
//! regularly they arrive. These times are in the messages, so both programs must use the same clock.

use super::line::Line;
use super::{MessageSecurity, Options, PubSub, engine, failure, publisher_id};
use crate::context::Context;
use crate::error::GeneratorError;
use crate::report::{Delivery, Finished, Report};
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk::pubsub::config::{Configuration, Connection, DataSetReader, DataSetReaderMessage, ReaderGroup};
use taktwerk::pubsub::{DataSetMessage, DataSetMessageKind, PublisherId, RealTime, Sink};
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_load::latency::Times;
use taktwerk_load::result::{self, Drift, Received};
use taktwerk_load::validity::Invalid;
use taktwerk_model::figures;
use taktwerk_net::clock::{monotonic, thread_cpu, wall};
use taktwerk_net::pubsub::{RunningSubscriber, SubscriberDriverOptions};
use taktwerk_schema::UadpDataSetReaderMessageDataType;
use taktwerk_types::UtcTime;

/// Ages above this, in nanoseconds, indicate another clock.
const OLDEST: u64 = 3_600_000_000_000;

/// Times in a message, as far as it contains them.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    /// When the value changed: SourceTimestamp of the field.
    changed: Option<UtcTime>,
    /// When it was sampled: ServerTimestamp of the field.
    sampled: Option<UtcTime>,
    /// When the message was ready: Timestamp of the message.
    ready: Option<UtcTime>,
}

/// The sender: PublisherId, WriterGroupId and DataSetWriterId, as far as they are sent.
type Writer = (Option<PublisherId>, Option<u16>, Option<u16>);

#[derive(Debug, Default)]
struct Heard {
    counts: bool,
    /// The first sender heard; only its messages are measured.
    writer: Option<Writer>,
    /// Number of messages of other senders.
    others: u64,
    delivery: Times,
    waiting: Times,
    making: Times,
    transfer: Times,
    period: Times,
    changed: Option<UtcTime>,
    line: Line,
    /// Number of the last message, including missing ones.
    number: u32,
    last: Option<u64>,
    received: u64,
    missing: u64,
}

/// Age of a time in nanoseconds; `None` if it is missing or in the future.
fn age(time: Option<UtcTime>, now: UtcTime) -> Option<u64> {
    let time = time.filter(|time| !time.is_null())?;
    u64::try_from(now.unix_nanos() - time.unix_nanos()).ok().filter(|age| *age <= OLDEST)
}

impl Heard {
    /// Records a message; `missing` messages of its writer before it did not arrive. `now` is the monotonic time in
    /// nanoseconds.
    fn take(&mut self, told: Told, missing: u32, now: u64, utc: UtcTime) {
        if !self.counts {
            return;
        }
        self.received += 1;
        let (sampled, ready) = (age(told.sampled, utc), age(told.ready, utc));
        if let Some(ready) = ready {
            self.transfer.record(ready);
            if let Some(sampled) = sampled {
                self.making.record(sampled.saturating_sub(ready));
            }
        }
        // A value unchanged since the last message is not counted as delivered again.
        let before = std::mem::replace(&mut self.changed, told.changed);
        if before != told.changed
            && let Some(changed) = age(told.changed, utc)
        {
            self.delivery.record(changed);
            if let Some(sampled) = sampled {
                self.waiting.record(changed.saturating_sub(sampled));
            }
        }
        if let Some(last) = self.last.replace(now) {
            self.missing += u64::from(missing);
            self.number = self.number.wrapping_add(missing).wrapping_add(1);
            if missing == 0 {
                self.period.record(now.saturating_sub(last));
            }
        }
        self.line.add(self.number, now);
    }

    /// Why the measurement is invalid; `unread` is the number of datagrams that could not be decoded.
    fn problem(&self, url: &str, unread: u64) -> Option<Invalid> {
        match (self.received, self.transfer.count() + self.delivery.count()) {
            (0, _) if self.writer.is_none() => {
                Some(Invalid::NothingHeard { url: url.to_owned(), datagrams: unread })
            }
            // The publisher has stopped, or its interval is longer than the window.
            (0, _) => Some(Invalid::NoSamples),
            (messages, 0) => Some(Invalid::NoTimes { messages }),
            _ => None,
        }
    }
}

/// The subscriber.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Heard>>);

impl Ear {
    fn with(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Sink for Ear {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        let (now, utc) = (monotonic().as_nanos(), wall());
        // A keep-alive message contains no values.
        if message.kind == DataSetMessageKind::KeepAlive {
            return;
        }
        let id = message.publisher_id.map(|id| id.to_owned());
        let writer = (id, message.writer_group_id, message.data_set_writer_id);
        let field = message.fields.first().map(|field| &field.value);
        let told = Told {
            changed: field.and_then(|value| value.source_timestamp),
            sampled: field.and_then(|value| value.server_timestamp),
            ready: message.timestamp,
        };
        let missing = message.missing;
        self.with(|heard| {
            if *heard.writer.get_or_insert_with(|| writer.clone()) == writer {
                heard.take(told, missing, now, utc);
            } else if heard.counts {
                heard.others += 1;
            }
        });
    }
}

/// A reader of any publisher, or of the named one. The meaning of the fields does not matter.
fn configuration(arguments: &PubSub) -> Result<Configuration, GeneratorError> {
    let asked = arguments.publisher_id.as_deref().map(publisher_id).transpose();
    let asked = asked.map_err(|why| GeneratorError::Usage(format!("--publisher-id: {why}")))?;
    let reader = DataSetReader {
        name: "reader".to_owned(),
        enabled: true,
        publisher_id: asked,
        message: DataSetReaderMessage::Uadp(UadpDataSetReaderMessageDataType {
            publishing_interval: arguments.interval.as_secs_f64() * 1e3,
            ..UadpDataSetReaderMessageDataType::default()
        }),
        ..DataSetReader::default()
    };
    let mut connection = Connection::new("bench", None, &arguments.url);
    connection.network_interface.clone_from(&arguments.interface);
    connection.reader_groups.push(ReaderGroup::new("group", vec![reader]));
    Ok(Configuration { enabled: true, connections: vec![connection], ..Configuration::default() })
}

/// Measures and reports.
pub(super) fn run(arguments: &PubSub, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    if arguments.security != MessageSecurity::None {
        return Err(GeneratorError::Usage(
            "--pattern listen has no keys: remove --security, and configure the publisher without security"
                .to_owned(),
        ));
    }
    let ear = Ear::default();
    ear.with(|heard| heard.line = Line::new(arguments.interval_nanos()));
    let mut options = SubscriberDriverOptions::default();
    let mut real_time = RealTime::default();
    real_time.cpu = arguments.subscriber_cpu;
    (options.real_time, options.busy_poll) = (real_time, arguments.busy_poll);
    options.only_sleep = arguments.only_sleep;
    options.engine.ask_for_meta_data = false;
    let provider = Arc::new(AwsPubSubProvider);
    let subscriber = RunningSubscriber::start(configuration(arguments)?, ear.clone(), provider, options)
        .map_err(failure)?;
    let used = || {
        let used = subscriber.ask(|_, _, _| thread_cpu());
        used.map_or(0, |used| u64::try_from(used.as_nanos()).unwrap_or(u64::MAX))
    };
    context.sleep(engine::warm_up(arguments.interval));
    let (before, start) = (used(), monotonic().as_nanos());
    ear.with(|heard| heard.counts = true);
    context.sleep(arguments.duration);
    ear.with(|heard| heard.counts = false);
    let window = monotonic().as_nanos().saturating_sub(start);
    let cpu = used().saturating_sub(before);
    let counters = subscriber.counters();
    let unread = counters.malformed + counters.security_errors + counters.unwanted;
    subscriber.stop();
    let heard = ear.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(report(arguments, &heard, window, cpu, unread).finish(context, None))
}

fn report(arguments: &PubSub, heard: &Heard, window: u64, cpu: u64, unread: u64) -> Report {
    let mut report = Report::new("pubsub", &arguments.url);
    report.part(&result::Heard {
        requested: result::HeardRequested {
            pattern: Some(arguments.pattern),
            interval_ms: arguments.interval.as_secs_f64() * 1e3,
            interface: arguments.interface.clone(),
            duration_s: arguments.duration.as_secs_f64(),
            receiver: arguments.receiver(),
            subscriber_cpu: arguments.subscriber_cpu,
        },
        window_s: window as f64 / 1e9,
    });
    let percent = cpu as f64 / window.max(1) as f64 * 100.0;
    report.delivered(&Delivery {
        delivery: &heard.delivery,
        waiting: &heard.waiting,
        making: &heard.making,
        transfer: &heard.transfer,
        period: &heard.period,
        received: Received {
            messages: heard.received,
            missing: heard.missing,
            of_other_writers: Some(heard.others),
        },
        cpu_percent: Some(percent),
    });
    for (what, times) in [
        ("value changed → received", &heard.delivery),
        ("  changed → sampled", &heard.waiting),
        ("  sampled → message ready", &heard.making),
        ("  message ready → received", &heard.transfer),
        ("from message to message", &heard.period),
    ] {
        if times.count() > 0 {
            report.times(what, times);
        }
    }
    if let Some((id, group, writer)) = &heard.writer {
        let shown = |id: &Option<u16>| id.map_or_else(|| "–".to_owned(), |id| id.to_string());
        let publisher = id.as_ref().map_or_else(|| "–".to_owned(), |id| format!("{id:?}"));
        report.fact(
            "listened to",
            format!("publisher {publisher}, WriterGroup {}, DataSetWriter {}", shown(group), shown(writer)),
        );
    }
    report.fact(
        "subscriber",
        format!(
            "{} messages received, {} missing, {} of other writers; {} % of a core",
            heard.received,
            heard.missing,
            heard.others,
            figures::number(percent)
        ),
    );
    if let Some(period) = heard.line.slope() {
        let error = period - arguments.interval_nanos() as f64;
        let drift = error / arguments.interval_nanos() as f64 * 1e6;
        report.part(&Drift { drift_ppm: drift, mean_period_error_ns: error });
        report.fact("drift", format!("{drift:.2} ppm (mean period against --interval)"));
    }
    report.invalid(heard.problem(&arguments.url, unread));
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    /// A time in microseconds on both clocks.
    fn at(us: u64) -> (u64, UtcTime) {
        (us * 1_000, UtcTime::from_unix(Duration::from_micros(1_800_000_000_000_000 + us)))
    }

    fn heard() -> Heard {
        Heard { counts: true, line: Line::new(100_000_000), ..Heard::default() }
    }

    #[test]
    fn delays_use_the_times_in_the_message() {
        let mut heard = heard();
        let told = |changed: u64, sampled: u64, ready: u64| {
            let utc = |us| Some(at(us).1);
            Told { changed: utc(changed), sampled: utc(sampled), ready: utc(ready) }
        };
        let mut take = |told: Told, us: u64| {
            let (now, utc) = at(us);
            heard.take(told, 0, now, utc);
        };
        take(told(70_000, 100_000, 100_010), 100_050);
        // The value has not changed since the last message.
        take(told(70_000, 200_000, 200_010), 200_050);
        take(told(290_000, 300_000, 300_020), 300_080);
        // Within the resolution of the histogram.
        let longest = |times: &Times, us: f64| (times.max() as f64 / 1e3 / us - 1.0).abs() < 1e-3;
        assert_eq!((heard.delivery.count(), heard.waiting.count()), (2, 2));
        assert!(longest(&heard.delivery, 30_050.0) && longest(&heard.waiting, 30_000.0));
        assert_eq!((heard.making.count(), heard.transfer.count()), (3, 3));
        assert!(longest(&heard.making, 20.0) && longest(&heard.transfer, 60.0));
        assert_eq!((heard.period.count(), heard.received), (2, 3));
    }

    #[test]
    fn times_of_another_clock_are_ignored() {
        let (now, utc) = at(5_000_000_000);
        let two_hours_ago = UtcTime::from_ticks(utc.ticks() - 72_000_000_000);
        for wrong in [None, Some(UtcTime::NULL), Some(two_hours_ago), Some(utc.plus(Duration::from_secs(1)))]
        {
            assert_eq!(age(wrong, utc), None, "{wrong:?}");
            let mut heard = heard();
            heard.take(Told { changed: wrong, sampled: wrong, ready: wrong }, 0, now, utc);
            assert_eq!((heard.received, heard.delivery.count(), heard.transfer.count()), (1, 0, 0));
        }
        assert_eq!(age(Some(utc), utc), Some(0));
    }

    #[test]
    fn windows_without_times_are_invalid_with_a_reason() {
        let url = "opc.udp://239.192.0.2:14850";
        let mut heard = heard();
        let silence = Invalid::NothingHeard { url: url.to_owned(), datagrams: 3 };
        assert_eq!(heard.problem(url, 3), Some(silence));
        heard.writer = Some((None, Some(1), Some(1)));
        assert_eq!(heard.problem(url, 0), Some(Invalid::NoSamples));
        let (now, utc) = at(100);
        heard.take(Told::default(), 0, now, utc);
        assert_eq!(heard.problem(url, 0), Some(Invalid::NoTimes { messages: 1 }));
        heard.take(Told { ready: Some(at(90).1), ..Told::default() }, 0, now, utc);
        assert_eq!(heard.problem(url, 0), None);
    }

    #[test]
    fn lost_messages_do_not_lengthen_the_period() {
        let mut heard = heard();
        // Messages lost before the first counted one do not count.
        for (missing, us) in [(7, 0), (0, 100_000), (2, 400_000), (0, 500_000)] {
            let (now, utc) = at(us);
            heard.take(Told::default(), missing, now, utc);
        }
        assert_eq!((heard.received, heard.missing, heard.period.count()), (4, 2, 2));
        assert!((heard.line.slope().unwrap() - 100e6).abs() < 1.0);
        heard.counts = false;
        heard.take(Told::default(), 3, 0, at(0).1);
        assert_eq!((heard.received, heard.missing), (4, 2));
    }
}
