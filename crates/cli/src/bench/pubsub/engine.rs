//! Publisher and subscriber under measurement.

use super::plant::{Plant, Signals, Source};
use super::{Mode, PubSubArgs, add, failure};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use taktwerk::pubsub::{DataSetMessage, Prepare, RealTime, Sink};
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_lab::latency::Times;
use taktwerk_lab::statistics::median;
use taktwerk_net::clock::{monotonic, thread_cpu};
use taktwerk_net::pubsub::{
    PublisherDriverOptions, RunningPublisher, RunningSubscriber, SubscriberDriverOptions,
};
use taktwerk_pubsub::{GroupIndex, PublisherEvent};
use taktwerk_types::Variant;

/// Cycles before a round counts: pages are touched, the estimate of the preparation has settled, and the subscriber knows when
/// messages come.
const WARM_UP_CYCLES: u32 = 8;
const WARM_UP: Duration = Duration::from_millis(200);

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) total: Times,
    pub(super) encode: Times,
    pub(super) send: Times,
    /// From the change of a value to its receipt.
    pub(super) delivery: Times,
    /// Of that, until the cycle that published it: changed → published.
    pub(super) waiting: Times,
    /// Then making the message, and waiting until it is due if it was made early: published → sent.
    pub(super) making: Times,
    /// And the rest, the delivery time of Morato et al.: message ready → received.
    pub(super) transfer: Times,
    pub(super) period: Times,
    /// Sums over the rounds: mean error of the period in nanoseconds times its cycles, and these cycles.
    drift: (f64, f64),
    pub(super) cycles: u64,
    pub(super) missed: u64,
    /// Of these, those that were missed because making and sending the ones before them took so long.
    pub(super) missed_busy: u64,
    pub(super) messages: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    pub(super) cpu_nanos: u64,
    /// Of the subscriber's thread.
    pub(super) subscriber_cpu_nanos: u64,
    pub(super) nanos: u64,
    /// Late because of the timer, of making messages, of sending.
    pub(super) late: [u64; 3],
    pub(super) received: u64,
    pub(super) missing_messages: u64,
}

impl Outcome {
    /// By how many nanoseconds the mean period is too long.
    pub(super) fn period_error(&self) -> Option<f64> {
        (self.drift.1 > 0.0).then(|| self.drift.0 / self.drift.1)
    }
}

/// When cycles were received, for the mean period: of each fortieth of the window the cycle that was the least late, and the
/// median of the slopes between each of these and the one that came half a window later.
///
/// A receiver that is asleep for some time and awake for some is late by 100 µs in the one and not in the other, which is
/// nothing of the publisher's. One late message, wherever it stands, moves one of these slopes; of the time between the first
/// and the last message of a short window, or of a least-squares line, a late one at an edge is a large part: 20 ms in ten
/// cycles of 100 ms are 2 %.
#[derive(Debug, Default)]
struct Line {
    received: Vec<(u32, u64)>,
    /// What the period should be, nanoseconds.
    nominal: u64,
}

/// Parts of a window of which the cycle that was the least late counts.
const PARTS: usize = 40;

impl Line {
    fn add(&mut self, cycle: u32, nanos: u64) {
        self.received.push((cycle, nanos));
    }

    fn slope(&self) -> Option<f64> {
        let first = self.received.first()?.0;
        let late = |(cycle, nanos): &&(u32, u64)| {
            i128::from(*nanos) - i128::from(cycle.wrapping_sub(first)) * i128::from(self.nominal)
        };
        let parts = self.received.chunks((self.received.len() / PARTS).max(1));
        let received: Vec<&(u32, u64)> = parts.filter_map(|part| part.iter().min_by_key(late)).collect();
        let half = received.len().div_ceil(2);
        let later = received.iter().skip(half);
        let slopes: Vec<f64> = received
            .iter()
            .zip(later)
            .filter_map(|((cycle, nanos), (later_cycle, later_nanos))| {
                let cycles = later_cycle.wrapping_sub(*cycle);
                (cycles > 0).then(|| later_nanos.saturating_sub(*nanos) as f64 / f64::from(cycles))
            })
            .collect();
        median(&slopes)
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
    /// When the publisher's last messages were ready.
    sending: Option<Arc<AtomicU64>>,
    sent_before: u64,
    period: Times,
    line: Line,
    /// Cycles that the publisher has missed: they have no number.
    missed: Arc<AtomicU64>,
    last: Option<(u64, u32)>,
    received: u64,
    missing: u64,
}

/// The subscriber's side.
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
        // Of this cycle, and not of one that was sent before this one was received.
        if sending >= heard.sent_before && sending <= now {
            heard.transfer.record(now - sending);
            heard.making.record(sending.saturating_sub(*published));
        }
        heard.sent_before = sending + 1;
        // A value that has not changed since the last cycle is not delivered again.
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

/// Runs both for a round.
pub(super) fn run(
    arguments: &PubSubArgs,
    plant: &Plant,
    round: Duration,
    interrupt: &Interrupt,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let ear = Ear::default();
    let source = match arguments.update {
        Some(every) => Some(Source::start(every, arguments.publisher_cpu)?),
        None => None,
    };
    let is_secured = arguments.security != Mode::None;
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
        heard.line.nominal = arguments.interval_nanos();
    });
    wait(WARM_UP.max(arguments.interval * WARM_UP_CYCLES), interrupt);
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
    let start = monotonic();
    with(&ear, |heard| heard.counts = true);
    wait(round, interrupt);
    with(&ear, |heard| heard.counts = false);
    let end = monotonic();
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
        let cycles = heard.line.received.len() as f64;
        outcome.drift.0 += (period - arguments.interval_nanos() as f64) * cycles;
        outcome.drift.1 += cycles;
    }
    Ok(())
}

fn with(ear: &Ear, change: impl FnOnce(&mut Heard)) {
    change(&mut ear.0.lock().unwrap_or_else(PoisonError::into_inner));
}

fn wait(span: Duration, interrupt: &Interrupt) {
    let end = Instant::now() + span;
    while !interrupt.asked() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slope(cycles: impl IntoIterator<Item = (u32, u64)>) -> Option<f64> {
        let mut line = Line { nominal: 1_000_000, ..Line::default() };
        cycles.into_iter().for_each(|(cycle, nanos)| line.add(cycle, nanos));
        line.slope()
    }

    #[test]
    fn the_slope_is_the_mean_period() {
        assert_eq!((slope([]), slope([(7, 9)])), (None, None));
        // Late by up to 60 µs, in no order that repeats with the cycle.
        let late = |cycle: u32| u64::from(cycle.wrapping_mul(2_654_435_761) >> 16) % 60_000;
        let at = |cycle: u32| {
            let time = 5_000_000 + u64::from(cycle) * 1_000_100 + late(cycle);
            (cycle.wrapping_add(u32::MAX - 500), time)
        };
        let error = slope((0..1000).map(at)).unwrap() - 1_000_000.0;
        assert!((error - 100.0).abs() < 20.0, "{error}");
    }

    #[test]
    fn a_receiver_that_is_awake_for_some_time_only_is_no_other_period() {
        let at = |cycle: u32| {
            let asleep = if cycle < 300 && !cycle.is_multiple_of(7) { 100_000 } else { 0 };
            (cycle, 5_000_000 + u64::from(cycle) * 1_000_000 + asleep)
        };
        let error = slope((0..600).map(at)).unwrap() - 1_000_000.0;
        assert!(error.abs() < 1.0, "{error}");
    }

    #[test]
    fn a_late_message_at_the_edge_of_a_short_window_is_no_other_period() {
        const PERIOD: u64 = 100_000_000;
        let cycles = |late: u32| {
            (0..10u32).map(move |n| (n, u64::from(n) * PERIOD + 60_000_000 * u64::from(n == late)))
        };
        for late in [0, 4, 9] {
            let error = slope(cycles(late)).unwrap() / PERIOD as f64 - 1.0;
            assert!(error.abs() < 1e-9, "{late}: {error}");
        }
        // A cycle whose number was noted wrongly, because the publisher had missed another one meanwhile.
        let counted =
            (0..10u32).map(|n| (n + u32::from(n == 4 || n > 5), u64::from(n + u32::from(n > 5)) * PERIOD));
        assert!((slope(counted).unwrap() / PERIOD as f64 - 1.0).abs() < 1e-9);
        // One that stretches is seen, also beside a late message.
        let stretched = cycles(9).map(|(n, at)| (n, at + u64::from(n) * 1_600_000));
        assert!((slope(stretched).unwrap() / PERIOD as f64 - 1.016).abs() < 1e-9);
    }
}
