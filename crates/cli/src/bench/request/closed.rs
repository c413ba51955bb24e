//! Many clients, each of which sends its next request when the last one was answered.

use super::answers::Answers;
use super::open::{connect_all, drain};
use super::operation::Operation;
use super::{Outcome, RequestArgs};
use crate::bench::account::Window;
use crate::bench::common::{environment, nanos};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use taktwerk_lab::clock;
use taktwerk_lab::process::Process;
use taktwerk_net::client::{Fleet, MemberId};
use taktwerk_schema::service::Request;
use taktwerk_types::Instant;

/// How often the loop looks whether it should end.
const LOOK: u64 = 20_000_000;

/// Keeps one request of each client in flight.
pub(crate) fn run<R: Request<Response: 'static>>(
    arguments: &RequestArgs,
    server: Option<Process>,
    operation: &mut Operation<R>,
    interrupt: &Interrupt,
) -> Result<Outcome, Failure> {
    let common = &arguments.common;
    let mut answers = Answers::new(common.clients as usize, operation.checker());
    let mut fleet = connect_all(common, &mut answers, interrupt)?;

    let mut number = 0;
    answers.idle = (0..common.clients).collect();
    let warm = clock::monotonic() + nanos(common.warmup);
    turn_until(&mut fleet, operation, &mut answers, &mut number, warm, u64::MAX, interrupt)?;

    let polled = fleet.stats().in_vain;
    let window = Window::open(server, common.port())?;
    let start = window.start();
    let end = if arguments.count.is_some() { u64::MAX } else { start + nanos(common.duration) };
    answers.window(start, end);
    let mut progress = match arguments.count {
        Some(count) => Progress::new("requests", count),
        None => Progress::of_time("measuring", common.duration),
    };
    let count = arguments.count.unwrap_or(u64::MAX);
    while !interrupt.asked() && clock::monotonic() < end && !is_over(&answers.outcome, count, common.clients)
    {
        let until = end.min(clock::monotonic() + 10 * LOOK);
        turn_until(&mut fleet, operation, &mut answers, &mut number, until, count, interrupt)?;
        let seconds = (clock::monotonic() - start) / 1_000_000_000;
        progress.at(if arguments.count.is_some() { answers.outcome.answered } else { seconds });
    }
    let now = clock::monotonic();
    answers.close(now);
    let account = window.close()?.polling(fleet.stats().in_vain.saturating_sub(polled));
    let renewals: u64 = (0..common.clients)
        .filter_map(|client| fleet.with(MemberId(client), |core, _| core.renewals(), &mut answers))
        .sum();
    drain(&mut fleet, &mut answers)?;
    let mut outcome = answers.outcome;
    outcome.due = outcome.sent;
    outcome.span = now - start;
    outcome.renewals = Some(renewals);
    outcome.account = Some(account);
    Ok(outcome)
}

/// Whether there is nothing more to wait for: so many requests had their answer or failed, or no client is left to send any.
fn is_over(outcome: &Outcome, count: u64, clients: u32) -> bool {
    outcome.answered + outcome.failed >= count || outcome.lost >= clients as usize
}

fn turn_until<R: Request<Response: 'static>>(
    fleet: &mut Fleet,
    operation: &mut Operation<R>,
    answers: &mut Answers,
    number: &mut u64,
    until: u64,
    count: u64,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let clients = u32::try_from(fleet.len()).unwrap_or(u32::MAX);
    while clock::monotonic() < until && !interrupt.asked() && !is_over(&answers.outcome, count, clients) {
        while let Some(client) = answers.idle.pop() {
            *number += 1;
            let Some(request) = operation.request(client as usize, *number) else { continue };
            let now = clock::monotonic();
            let sent = fleet.with(MemberId(client), |core, now| core.request(request, None, now), answers);
            if let Some(Ok(handle)) = sent {
                answers.sent(client, handle, now, now);
            }
        }
        let look = until.min(clock::monotonic() + LOOK);
        fleet.run_once(Instant::from_nanos(look), answers).map_err(environment)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_not_waited_for_without_end() {
        let of = |answered, failed, lost| Outcome { answered, failed, lost, ..Outcome::default() };
        assert!(!is_over(&of(4, 0, 0), 5, 2) && is_over(&of(5, 0, 0), 5, 2));
        assert!(is_over(&of(1, 4, 0), 5, 2), "those that failed count as well");
        assert!(!is_over(&of(1, 0, 1), u64::MAX, 2) && is_over(&of(1, 0, 2), u64::MAX, 2));
    }
}
