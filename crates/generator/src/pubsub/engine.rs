//! The measured publisher and subscriber.

use super::line::Line;
use super::plant::{Plant, Signals, Source};
use super::{MessageSecurity, Options, PubSub, add, failure};
use crate::context::Context;
use crate::error::GeneratorError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use taktwerk::pubsub::{DataSetMessage, Prepare, RealTime, Sink};
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_load::clock::own_cpu;
use taktwerk_load::latency::Times;
use taktwerk_net::clock::{monotonic, thread_cpu};
use taktwerk_net::pubsub::{
    PublisherDriverOptions, RunningPublisher, RunningSubscriber, SubscriberDriverOptions,
};
use taktwerk_pubsub::{GroupIndex, PublisherEvent};
use taktwerk_types::Variant;

/// Warm-up of a round: until memory pages are touched, the estimated preparation time is stable, and the subscriber has
/// learned when messages arrive.
pub(super) fn warm_up(interval: Duration) -> Duration {
    const CYCLES: u32 = 8;
    const LEAST: Duration = Duration::from_millis(200);
    LEAST.max(interval * CYCLES)
}

/// Results.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// CPU time of the whole process within the windows.
    pub(super) process_nanos: u64,
    pub(super) total: Times,
    pub(super) encode: Times,
    pub(super) send: Times,
    /// From the change of a value to its receipt.
    pub(super) delivery: Times,
    /// Part of it until the cycle that published the value: changed → published.
    pub(super) waiting: Times,
    /// Part of it for building the message, and waiting if it was built early: published → sent.
    pub(super) making: Times,
    /// The rest, the delivery time of Morato et al.: message ready → received.
    pub(super) transfer: Times,
    pub(super) period: Times,
    /// Sums over the rounds: mean period error in nanoseconds multiplied by the cycles, and the cycles.
    drift: (f64, f64),
    pub(super) cycles: u64,
    pub(super) missed: u64,
    /// Missed cycles for which building and sending the previous ones took too long.
    pub(super) missed_busy: u64,
    pub(super) messages: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    pub(super) cpu_nanos: u64,
    /// CPU time of the subscriber's thread.
    pub(super) subscriber_cpu_nanos: u64,
    pub(super) nanos: u64,
    /// Late cycles by cause: timer, encoding, sending.
    pub(super) late: [u64; 3],
    pub(super) received: u64,
    pub(super) missing_messages: u64,
}

impl Outcome {
    /// Error of the mean period in nanoseconds; positive if the period is too long.
    pub(super) fn period_error(&self) -> Option<f64> {
        (self.drift.1 > 0.0).then(|| self.drift.0 / self.drift.1)
    }
}

#[derive(Default)]
struct Heard {
    counts: bool,
    delivery: Times,
    waiting: Times,
    making: Times,
    transfer: Times,
    changed: u64,
    /// When the last messages of the publisher were ready.
    sending: Option<Arc<AtomicU64>>,
    sent_before: u64,
    period: Times,
    line: Line,
    /// Cycles missed by the publisher, which have no number.
    missed: Arc<AtomicU64>,
    last: Option<(u64, u32)>,
    received: u64,
    missing: u64,
}

/// The subscriber.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Heard>>);

impl Sink for Ear {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        let now = monotonic().as_nanos();
        let [changed, published, cycle] = message.fields else { return };
        let (Some(Variant::UInt64(changed)), Some(Variant::UInt64(published)), Some(Variant::UInt32(cycle))) =
            (&changed.value.value, &published.value.value, &cycle.value.value)
        else {
            return;
        };
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !heard.counts {
            return;
        }
        heard.received += 1;
        let sending = heard.sending.as_ref().map_or(0, |sending| sending.load(Ordering::Acquire));
        // Ready in this cycle, not in one before the previous receipt.
        if sending >= heard.sent_before && sending <= now {
            heard.transfer.record(now - sending);
            heard.making.record(sending.saturating_sub(*published));
        }
        heard.sent_before = sending + 1;
        // A value unchanged since the last cycle is not counted as delivered again.
        if *changed != std::mem::replace(&mut heard.changed, *changed) {
            heard.delivery.record(now.saturating_sub(*changed));
            heard.waiting.record(published.saturating_sub(*changed));
        }
        if let Some((before, number)) = heard.last {
            if number.wrapping_add(1) == *cycle {
                heard.period.record(now.saturating_sub(before));
            } else {
                heard.missing += u64::from(cycle.wrapping_sub(number).wrapping_sub(1));
            }
        }
        let missed = heard.missed.load(Ordering::Relaxed);
        heard.line.add(cycle.wrapping_add(missed as u32), now);
        heard.last = Some((now, *cycle));
    }
}

/// Measures one round with both.
pub(super) fn run(
    arguments: &PubSub,
    plant: &Plant,
    round: Duration,
    context: &Context<'_>,
    outcome: &mut Outcome,
) -> Result<(), GeneratorError> {
    let ear = Ear::default();
    let source = match arguments.update {
        Some(every) => Some(Source::start(every, arguments.publisher_cpu)?),
        None => None,
    };
    let is_secured = arguments.security != MessageSecurity::None;
    let subscriber = if arguments.no_subscriber {
        None
    } else {
        let mut options = SubscriberDriverOptions::default();
        let mut real_time = RealTime::default();
        real_time.cpu = arguments.subscriber_cpu;
        (options.real_time, options.busy_poll) = (real_time, arguments.busy_poll);
        options.only_sleep = arguments.only_sleep;
        options.keys = is_secured.then(|| Box::new(Plant::keys()) as _);
        let provider = Arc::new(AwsPubSubProvider);
        Some(RunningSubscriber::start(plant.subscriber(), ear.clone(), provider, options).map_err(failure)?)
    };
    let mut options = PublisherDriverOptions::default();
    options.real_time = arguments.real_time();
    options.discovery = false;
    options.keys = is_secured.then(|| Box::new(Plant::keys()) as _);
    if arguments.when_due {
        options.prepare = Prepare::WhenDue;
    }
    let missed_cycles = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&missed_cycles);
    options.events = Some(Box::new(move |event| {
        if let PublisherEvent::Missed { cycles, .. } = event {
            counting.fetch_add(*cycles, Ordering::Relaxed);
        }
    }));
    let provider = Arc::new(AwsPubSubProvider);
    let values = Signals::new(source.as_ref().map(Source::changed));
    let publisher =
        RunningPublisher::start(plant.configuration.clone(), values, provider, options).map_err(failure)?;
    with(&ear, |heard| {
        heard.sending = Some(publisher.sending());
        heard.missed = missed_cycles;
        heard.line = Line::new(arguments.interval_nanos());
    });
    context.sleep(warm_up(arguments.interval));
    let missed = |publisher: &RunningPublisher| {
        let group = GroupIndex { connection: 0, group: 0 };
        publisher.ask(move |engine, _| engine.counters(group)).map_or(0, |counters| counters.missed)
    };
    let (missed_before, sent_before, lateness_before) =
        (missed(&publisher), publisher.sent(), publisher.lateness());
    let received_with = || {
        let used = subscriber.as_ref().and_then(|subscriber| subscriber.ask(|_, _, _| thread_cpu()));
        used.map_or(0, |used| u64::try_from(used.as_nanos()).unwrap_or(u64::MAX))
    };
    let subscriber_before = received_with();
    let process_before = own_cpu();
    let start = monotonic();
    with(&ear, |heard| heard.counts = true);
    context.sleep(round);
    with(&ear, |heard| heard.counts = false);
    let end = monotonic();
    outcome.process_nanos += own_cpu().saturating_sub(process_before);
    let (sent, lateness) = (publisher.sent(), publisher.lateness());
    let missed_after = missed(&publisher);
    outcome.subscriber_cpu_nanos += received_with().saturating_sub(subscriber_before);
    publisher.stop();
    drop(subscriber);
    outcome.nanos += end.as_nanos() - start.as_nanos();
    add(&mut outcome.total, &lateness.total.since(&lateness_before.total));
    add(&mut outcome.encode, &lateness.encode.since(&lateness_before.encode));
    add(&mut outcome.send, &lateness.send.since(&lateness_before.send));
    outcome.late[0] += lateness.late_timer - lateness_before.late_timer;
    outcome.late[1] += lateness.late_encode - lateness_before.late_encode;
    outcome.late[2] += lateness.late_send - lateness_before.late_send;
    outcome.cycles += sent.turns - sent_before.turns;
    outcome.messages += sent.messages - sent_before.messages;
    outcome.failed += sent.failed - sent_before.failed;
    outcome.bytes += sent.bytes - sent_before.bytes;
    outcome.cpu_nanos += sent.cpu_nanos - sent_before.cpu_nanos;
    outcome.missed += missed_after - missed_before;
    outcome.missed_busy += lateness.missed_busy - lateness_before.missed_busy;
    let heard = ear.0.lock().unwrap_or_else(PoisonError::into_inner);
    outcome.delivery.merge(&heard.delivery);
    outcome.waiting.merge(&heard.waiting);
    outcome.making.merge(&heard.making);
    outcome.transfer.merge(&heard.transfer);
    outcome.period.merge(&heard.period);
    outcome.received += heard.received;
    outcome.missing_messages += heard.missing;
    if let Some(period) = heard.line.slope() {
        let cycles = heard.line.cycles() as f64;
        outcome.drift.0 += (period - arguments.interval_nanos() as f64) * cycles;
        outcome.drift.1 += cycles;
    }
    Ok(())
}

fn with(ear: &Ear, change: impl FnOnce(&mut Heard)) {
    change(&mut ear.0.lock().unwrap_or_else(PoisonError::into_inner));
}
