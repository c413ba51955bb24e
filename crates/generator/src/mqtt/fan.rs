//! One client publishes; all others receive the message and publish an answer at once; the first waits for all answers.

use super::Outcome;
use super::broker::Broker;
use super::clients::{LOOK, connect, mark};
use super::message::Messages;
use crate::account::Window;
use crate::common::environment;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use taktwerk_lab::mqtt::{Event, Fleet, Happened, Qos};
use taktwerk_load::clock;
use taktwerk_load::schedule::OpenLoop;
use taktwerk_load::specification::Mqtt;

/// Timeout of a transaction.
const PATIENCE: u64 = 10_000_000_000;
/// The same in words.
pub(super) const WAITED: &str = "within 10 s";

struct Fan {
    fleet: Fleet,
    out: String,
    back: String,
    messages: Messages,
    qos: Qos,
    next: u64,
    outcome: Outcome,
}

/// Measures.
pub(super) fn run(
    arguments: &Mqtt,
    broker: &Broker,
    context: &Context<'_>,
) -> Result<Outcome, GeneratorError> {
    let topic = |name: &str| format!("tw/{:08x}/{name}", mark());
    let (out, back) = (topic("out"), topic("back"));
    let fleet =
        connect(arguments, broker, context, |client| if client == 0 { back.clone() } else { out.clone() })?;
    let messages = Messages::new(arguments)?;
    let outcome = Outcome::default();
    let mut fan = Fan { fleet, out, back, messages, qos: arguments.qos, next: 0, outcome };

    let start = clock::monotonic() + nanos(arguments.warmup);
    while clock::monotonic() < start && fan.outcome.lost == 0 && !context.is_ended() {
        fan.transaction(clock::monotonic(), context)?;
    }
    let (lost, missing) = (fan.outcome.lost, fan.outcome.missing);
    fan.outcome = Outcome { lost, missing, ..Outcome::default() };

    let (bytes_before, polled) = (fan.fleet.bytes(), fan.fleet.in_vain());
    let window = Window::open(broker.process(), broker.address().port())?;
    let start = window.start();
    let mut measuring = context.measuring("transactions", arguments.count, start, arguments.duration);
    let end = measuring.end;
    let mut schedule = arguments.rate.map(|rate| OpenLoop::new(start, rate, arguments.count));
    while fan.outcome.sent < measuring.count && fan.outcome.lost == 0 && !context.is_ended() {
        let now = clock::monotonic();
        let scheduled = match &mut schedule {
            None => now,
            Some(schedule) => match schedule.next_due() {
                // A transaction that became due during the previous one is dropped if the window has ended.
                Some(due) if due < end && now < end => {
                    clock::sleep_until(due);
                    schedule.take(clock::monotonic()).unwrap_or(due)
                }
                _ => break,
            },
        };
        if now >= end {
            break;
        }
        fan.transaction(scheduled, context)?;
        measuring.at(fan.outcome.done);
    }
    let now = clock::monotonic().min(end);
    let account = window.close()?.polling(fan.fleet.in_vain().saturating_sub(polled));
    let bytes_after = fan.fleet.bytes();
    fan.fleet.disconnect();
    let mut outcome = fan.outcome;
    outcome.due = outcome.sent;
    if let Some(schedule) = schedule {
        // Transactions due exactly at the end belong to the time after the window.
        let last = now.saturating_sub(1);
        schedule.left(last).for_each(|due| outcome.latency.record_unsent(due, clock::monotonic()));
        outcome.due = schedule.taken() + schedule.backlog(last);
    }
    outcome.bytes = (bytes_after.0 - bytes_before.0, bytes_after.1 - bytes_before.1);
    outcome.span = now.saturating_sub(start);
    outcome.account = Some(account);
    Ok(outcome)
}

impl Fan {
    fn transaction(&mut self, scheduled: u64, context: &Context<'_>) -> Result<(), GeneratorError> {
        let receivers = self.fleet.len().saturating_sub(1);
        let this = self.next;
        self.next += 1;
        let sent = clock::monotonic();
        let message = self.messages.with(0, this);
        if !self.fleet.publish(0, &self.out, message, self.qos) {
            return Ok(());
        }
        self.outcome.sent += 1;
        let (mut received, mut answered) = (0usize, 0usize);
        let mut due = Vec::with_capacity(receivers);
        while answered < receivers {
            let now = clock::monotonic();
            let is_given_up = now > sent + PATIENCE || self.outcome.lost > 0;
            if is_given_up || context.is_ended() {
                self.outcome.missing += (receivers - answered) as u64;
                if is_given_up {
                    self.outcome.latency.record_unanswered(scheduled, sent, now);
                }
                return Ok(());
            }
            due.clear();
            let Self { fleet, messages, outcome, .. } = &mut *self;
            fleet
                .run_once(now + LOOK, |client, what| match what {
                    Happened::Event(Event::Message { payload, .. }) => {
                        if messages.number(client, payload) != Some(this) {
                            return;
                        }
                        if client == 0 {
                            answered += 1;
                        } else {
                            received += 1;
                            let now = clock::monotonic();
                            outcome.each.record(now - sent);
                            if received == receivers {
                                outcome.last.record(now - sent);
                            }
                            due.push(client);
                        }
                    }
                    Happened::Event(_) => {}
                    Happened::Lost | Happened::Failed(_) => outcome.lost += 1,
                })
                .map_err(environment)?;
            for client in &due {
                let message = self.messages.with(*client, this);
                self.fleet.publish(*client, &self.back, message, self.qos);
            }
        }
        self.outcome.latency.record(scheduled, sent, clock::monotonic());
        self.outcome.done += 1;
        Ok(())
    }
}
