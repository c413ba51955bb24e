//! Each client publishes to a topic that it has subscribed to.

use super::Outcome;
use super::broker::Broker;
use super::clients::{LOOK, connect, mark};
use super::message::Messages;
use crate::account::Window;
use crate::common::environment;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use std::collections::HashMap;
use std::time::Duration;
use taktwerk_lab::mqtt::{Event, Fleet, Happened, Qos};
use taktwerk_load::clock;
use taktwerk_load::schedule::OpenLoop;
use taktwerk_load::specification::Mqtt;

/// How long to wait for messages after the window.
const DRAIN: u64 = 2_000_000_000;
/// How long a client without a schedule waits for its message before it sends the next one. Messages lost with QoS 0
/// never arrive, and a load with a fixed number of messages would not end.
const PATIENCE: u64 = 20_000_000_000;
/// Both times in words.
pub(super) const WAITED: &str = "within 2 s after the window, or within 20 s without --rate";

/// A message in flight.
#[derive(Debug, Clone, Copy)]
struct Pending {
    scheduled: u64,
    sent: u64,
    client: usize,
}

struct Load {
    fleet: Fleet,
    topics: Vec<String>,
    messages: Messages,
    qos: Qos,
    next: u64,
    pending: HashMap<u64, Pending>,
    /// Clients whose message has returned.
    idle: Vec<usize>,
    /// Start and end of the window.
    window: (u64, u64),
    outcome: Outcome,
}

/// Measures.
pub(super) fn run(
    arguments: &Mqtt,
    broker: &Broker,
    context: &Context<'_>,
) -> Result<Outcome, GeneratorError> {
    let topics: Vec<String> =
        (0..arguments.clients).map(|client| format!("tw/{:08x}/{client}", mark())).collect();
    let fleet =
        connect(arguments, broker, context, |client| topics.get(client).cloned().unwrap_or_default())?;
    let begin = clock::monotonic() + 1_000_000;
    let start = begin + nanos(arguments.warmup);
    let mut load = Load {
        idle: (0..fleet.len()).rev().collect(),
        fleet,
        topics,
        messages: Messages::new(arguments)?,
        qos: arguments.qos,
        next: 0,
        pending: HashMap::new(),
        window: (start, u64::MAX),
        outcome: Outcome::default(),
    };
    let mut schedule = arguments.rate.map(|rate| OpenLoop::new(begin, rate, None));
    load.until(start, &mut schedule, None, context)?;

    let due_before = schedule.map_or(0, |it| it.taken());
    let (bytes_before, polled) = (load.fleet.bytes(), load.fleet.in_vain());
    let window = Window::open(broker.process(), broker.address().port())?;
    let limit = arguments.count.filter(|_| arguments.rate.is_none());
    let end = end(start, arguments.count, arguments.rate, arguments.duration);
    load.window.1 = end;
    let mut progress = match limit {
        Some(count) => context.step("messages", count),
        None => context.time("measuring", Duration::from_nanos(end - start)),
    };
    let mut until = start;
    while until < end && !context.is_ended() && !load.is_over(limit) {
        until = end.min(until + 10 * LOOK);
        load.until(until, &mut schedule, limit, context)?;
        if schedule.is_none() {
            load.give_up(clock::monotonic());
        }
        progress.at(if limit.is_some() { load.outcome.done } else { (until - start) / 1_000_000_000 });
    }
    let now = clock::monotonic().min(end);
    load.window.1 = now;
    let account = window.close()?.polling(load.fleet.in_vain().saturating_sub(polled));
    let bytes_after = load.fleet.bytes();
    let drained = clock::monotonic() + DRAIN;
    while !load.pending.is_empty() && load.outcome.lost == 0 && clock::monotonic() < drained {
        load.listen(drained)?;
    }
    load.fleet.disconnect();
    let (mut outcome, given_up) = (load.outcome, clock::monotonic());
    for it in load.pending.values().filter(|it| (start..now).contains(&it.scheduled)) {
        outcome.missing += 1;
        outcome.latency.record_unanswered(it.scheduled, it.sent, given_up);
    }
    outcome.bytes = (bytes_after.0 - bytes_before.0, bytes_after.1 - bytes_before.1);
    outcome.span = now.saturating_sub(start);
    outcome.due = outcome.sent;
    if let Some(schedule) = schedule {
        // Messages due exactly at the end belong to the time after the window.
        let last = now.saturating_sub(1);
        schedule.left(last).for_each(|due| outcome.latency.record_unsent(due, now));
        outcome.due = schedule.taken() - due_before + schedule.backlog(last);
    }
    outcome.account = Some(account);
    Ok(outcome)
}

/// End of the window. With a number and a rate, the end of the schedule. With only a number, unlimited. Otherwise, the
/// end of its duration.
fn end(start: u64, count: Option<u64>, rate: Option<f64>, duration: Duration) -> u64 {
    match (count, rate) {
        (Some(count), Some(rate)) => start.saturating_add((count as f64 / rate * 1e9) as u64),
        (Some(_), None) => u64::MAX,
        (None, _) => start.saturating_add(nanos(duration)),
    }
}

impl Load {
    /// Whether the load is complete: enough messages have returned or are lost, or a connection is lost.
    fn is_over(&self, limit: Option<u64>) -> bool {
        let outcome = &self.outcome;
        outcome.lost > 0 || limit.is_some_and(|limit| outcome.done + outcome.missing >= limit)
    }

    /// Gives up on messages that have timed out; their clients send the next one.
    fn give_up(&mut self, now: u64) {
        let Self { pending, idle, window, outcome, .. } = self;
        for (_, it) in pending.extract_if(|_, it| now.saturating_sub(it.sent) > PATIENCE) {
            idle.push(it.client);
            if (window.0..window.1).contains(&it.scheduled) {
                outcome.missing += 1;
                outcome.latency.record_unanswered(it.scheduled, it.sent, now);
            }
        }
    }

    /// Sends due messages, or the next ones of idle clients, until the clock reaches `end`.
    fn until(
        &mut self,
        end: u64,
        schedule: &mut Option<OpenLoop>,
        limit: Option<u64>,
        context: &Context<'_>,
    ) -> Result<(), GeneratorError> {
        loop {
            let now = clock::monotonic();
            if now >= end || self.is_over(limit) || context.is_ended() {
                return Ok(());
            }
            let wake = match schedule {
                Some(schedule) => {
                    while schedule.next_due().is_some_and(|due| due <= now && due < end) {
                        let due = schedule.next_due().unwrap_or(now);
                        let client = (self.next % self.fleet.len().max(1) as u64) as usize;
                        // The client has too many messages in flight; the backlog keeps its scheduled times.
                        if !self.send(client, due) {
                            break;
                        }
                        schedule.take(now);
                    }
                    schedule.next_due().unwrap_or(end).max(now + 1)
                }
                None => {
                    while let Some(client) = self.idle.pop() {
                        self.send(client, clock::monotonic());
                    }
                    end
                }
            };
            self.listen(wake.min(end).min(now + LOOK))?;
        }
    }

    fn send(&mut self, client: usize, scheduled: u64) -> bool {
        let Some(topic) = self.topics.get(client) else { return false };
        let sent = clock::monotonic();
        // Encoding is part of the measured time, as with PubSub over UDP.
        let message = self.messages.with(client, self.next);
        if !self.fleet.publish(client, topic, message, self.qos) {
            return false;
        }
        self.pending.insert(self.next, Pending { scheduled, sent, client });
        self.next += 1;
        if scheduled >= self.window.0 && scheduled < self.window.1 {
            self.outcome.sent += 1;
        }
        true
    }

    /// Receives messages.
    fn listen(&mut self, deadline: u64) -> Result<(), GeneratorError> {
        let Self { fleet, messages, pending, idle, window, outcome, .. } = self;
        fleet
            .run_once(deadline, |client, what| match what {
                Happened::Event(Event::Message { payload, .. }) => {
                    let number = messages.number(client, payload);
                    let now = clock::monotonic();
                    if let Some(it) = number.and_then(|number| pending.remove(&number)) {
                        idle.push(it.client);
                        if it.scheduled >= window.0 && it.scheduled < window.1 {
                            outcome.latency.record(it.scheduled, it.sent, now);
                            outcome.done += 1;
                        }
                    }
                }
                Happened::Event(_) => {}
                Happened::Lost | Happened::Failed(_) => outcome.lost += 1,
            })
            .map_err(environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Bench {
        #[command(flatten)]
        arguments: Mqtt,
    }

    #[test]
    fn loads_by_count_have_no_time_limit() {
        let span = Duration::from_secs(10);
        assert_eq!(end(5, Some(1_000), None, span), u64::MAX);
        assert_eq!(
            (end(5, None, None, span), end(5, None, Some(3.0), span)),
            (10_000_000_005, 10_000_000_005)
        );
        assert_eq!(end(5, Some(100), Some(50.0), span), 2_000_000_005);
    }

    #[test]
    fn lost_messages_time_out() {
        let arguments = Bench::parse_from(["bench", "broker"]).arguments;
        let sent = |sent| Pending { scheduled: sent, sent, client: 3 };
        let mut load = Load {
            fleet: Fleet::new(false).unwrap(),
            topics: Vec::new(),
            messages: Messages::new(&arguments).unwrap(),
            qos: arguments.qos,
            next: 3,
            // One message of the warm-up, and two of the window.
            pending: HashMap::from([(0, sent(50)), (1, sent(120)), (2, sent(200))]),
            idle: Vec::new(),
            window: (100, u64::MAX),
            outcome: Outcome { done: 1, ..Outcome::default() },
        };
        load.give_up(PATIENCE + 150);
        assert_eq!((load.outcome.missing, load.outcome.latency.unanswered), (1, 1));
        assert_eq!(load.idle, [3, 3], "their clients continue");
        assert!(load.pending.contains_key(&2) && load.pending.len() == 1);
        assert!(!load.is_over(None) && !load.is_over(Some(3)) && load.is_over(Some(2)));
        load.outcome.lost = 1;
        assert!(load.is_over(None), "no more messages after a lost connection");
    }
}
