//! Requests at fixed times, independent of earlier requests (open loop).

use super::answers::Answers;
use super::operation::Operation;
use super::{Outcome, Requests};
use crate::account::Window;
use crate::client::session;
use crate::common::{Generator, environment};
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use taktwerk_client::ClientError;
use taktwerk_client::Misuse;
use taktwerk_load::clock;
use taktwerk_load::process::Process;
use taktwerk_load::schedule::OpenLoop;
use taktwerk_load::specification::Common;
use taktwerk_net::client::{Fleet, MemberId};
use taktwerk_schema::service::Request;
use taktwerk_types::Instant;

/// How long to wait for answers after the window.
const DRAIN: u64 = 2_000_000_000;
/// The waiting times in words.
pub(super) const WAITED: &str = "within 2 s after the window, or within --timeout";
/// Interval for checking whether the user wants to stop, and timeout per connection.
const LOOK: u64 = 100_000_000;

/// Connects all clients of a load.
pub(crate) fn connect_all(
    common: &Common,
    answers: &mut Answers,
    context: &Context<'_>,
) -> Result<Fleet, GeneratorError> {
    let mut fleet = common.fleet(64, context)?;
    let target = common.target(context)?;
    for _ in 0..common.clients {
        fleet.add(target.clone());
    }
    let mut progress = context.step("connecting", u64::from(common.clients));
    while answers.connected < common.clients as usize {
        if let Some(error) = &answers.refused {
            return Err(session::unreachable(&common.connection.endpoint, error));
        }
        if context.is_ended() {
            return Err(GeneratorError::Interrupted);
        }
        let until = Instant::from_nanos(clock::monotonic() + LOOK);
        fleet.run_once(until, answers).map_err(environment)?;
        progress.at(answers.connected as u64);
    }
    Ok(fleet)
}

/// Waits for answers that are still in flight, and counts the missing ones.
pub(crate) fn drain(fleet: &mut Fleet, answers: &mut Answers) -> Result<(), GeneratorError> {
    let end = clock::monotonic() + DRAIN;
    while answers.in_flight() > 0 && clock::monotonic() < end {
        fleet.run_once(Instant::from_nanos(end), answers).map_err(environment)?;
    }
    answers.give_up(clock::monotonic());
    Ok(())
}

/// Sends requests when they are due, to the clients in turn.
pub(crate) fn run<R: Request<Response: 'static>>(
    arguments: &Requests,
    rate: f64,
    server: Option<Process>,
    operation: &mut Operation<R>,
    context: &Context<'_>,
) -> Result<Outcome, GeneratorError> {
    let common = &arguments.common;
    let mut answers = Answers::new(common.clients as usize, operation.checker());
    let mut fleet = connect_all(common, &mut answers, context)?;

    // A millisecond to start; then warm-up and window follow without a gap in the schedule.
    let begin = clock::monotonic() + 1_000_000;
    let mut schedule = OpenLoop::new(begin, rate, None);
    let mut number = 0u64;
    let start = begin + nanos(common.warmup);
    send_until(&mut fleet, operation, &mut answers, &mut schedule, &mut number, start, context)?;

    let polled = fleet.stats().in_vain;
    let window = Window::open(server, common.port())?;
    let by_count = arguments.count.map(|count| (count as f64 / rate * 1e9) as u64);
    let end = start + by_count.unwrap_or_else(|| nanos(common.duration));
    let due_before = schedule.taken();
    answers.window(start, end);
    let mut progress = context.time("measuring", std::time::Duration::from_nanos(end - start));
    let mut until = start;
    while until < end && !context.is_ended() {
        until = end.min(until + 10 * LOOK);
        send_until(&mut fleet, operation, &mut answers, &mut schedule, &mut number, until, context)?;
        progress.at((until - start) / 1_000_000_000);
    }
    let now = clock::monotonic();
    answers.close(now);
    let account = window.close()?.polling(fleet.stats().in_vain.saturating_sub(polled));
    drain(&mut fleet, &mut answers)?;
    let mut outcome = answers.outcome;
    outcome.span = now.min(end) - start.min(now);
    // Requests due exactly at the end belong to the time after the window.
    let last = now.min(end).saturating_sub(1);
    schedule.left(last).for_each(|due| outcome.latency.record_unsent(due, now));
    outcome.due = schedule.taken() - due_before + schedule.backlog(last);
    outcome.account = Some(account);
    Ok(outcome)
}

fn send_until<R: Request<Response: 'static>>(
    fleet: &mut Fleet,
    operation: &mut Operation<R>,
    answers: &mut Answers,
    schedule: &mut OpenLoop,
    number: &mut u64,
    until: u64,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let clients = fleet.len().max(1) as u64;
    loop {
        let now = clock::monotonic();
        if now >= until || context.is_ended() {
            return Ok(());
        }
        while let Some(due) = schedule.next_due().filter(|due| *due <= now && *due < until) {
            let client = (*number % clients) as u32;
            let Some(request) = operation.request(client as usize, *number) else { return Ok(()) };
            let sent_at = clock::monotonic();
            let sent = fleet.with(MemberId(client), |core, now| core.request(request, None, now), answers);
            match sent {
                Some(Ok(handle)) => answers.sent(client, handle, due, sent_at),
                // The client has the maximum number of requests in flight; the backlog keeps its scheduled times.
                Some(Err(ClientError::Local(Misuse::TooManyRequests))) => break,
                // The connection is lost; an event has reported it.
                _ => {}
            }
            schedule.take(now);
            *number += 1;
        }
        let next = schedule.next_due().unwrap_or(until).min(until).max(clock::monotonic() + 1);
        fleet.run_once(Instant::from_nanos(next.min(now + LOOK)), answers).map_err(environment)?;
    }
}
