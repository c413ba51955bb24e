//! Many clients; each sends its next request when the previous one was answered, optionally after a pause.

use super::answers::Answers;
use super::open::{connect_all, drain};
use super::operation::Operation;
use super::{Outcome, Requests};
use crate::account::Window;
use crate::common::Generator;
use crate::common::environment;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use std::collections::VecDeque;
use taktwerk_load::clock;
use taktwerk_load::process::Process;
use taktwerk_net::client::{Fleet, MemberId};
use taktwerk_schema::service::Request;
use taktwerk_types::Instant;

/// Interval for checking whether to end.
const LOOK: u64 = 20_000_000;

/// Which client sends next.
#[derive(Debug, Default)]
struct Turns {
    /// Number of the last request.
    number: u64,
    /// Pause of a client between an answer and its next request, in nanoseconds.
    pause: u64,
    /// Pausing clients with the end of their pause. All pauses have the same length, so the order is first in, first
    /// out.
    resting: VecDeque<(u64, u32)>,
}

impl Turns {
    /// Adds clients that have received their answers.
    fn rest(&mut self, clients: impl IntoIterator<Item = u32>, now: u64) {
        let until = now.saturating_add(self.pause);
        self.resting.extend(clients.into_iter().map(|client| (until, client)));
    }

    /// The next client whose pause has ended.
    fn rested(&mut self, now: u64) -> Option<u32> {
        self.next().filter(|until| *until <= now)?;
        self.resting.pop_front().map(|(_, client)| client)
    }

    /// When the next pause ends.
    fn next(&self) -> Option<u64> {
        self.resting.front().map(|(until, _)| *until)
    }
}

/// Keeps one request per client in flight, with a pause before each if configured.
pub(crate) fn run<R: Request<Response: 'static>>(
    arguments: &Requests,
    server: Option<Process>,
    operation: &mut Operation<R>,
    context: &Context<'_>,
) -> Result<Outcome, GeneratorError> {
    let common = &arguments.common;
    let mut answers = Answers::new(common.clients as usize, operation.checker());
    let mut fleet = connect_all(common, &mut answers, context)?;

    let mut turns = Turns { pause: arguments.pause.map_or(0, nanos), ..Turns::default() };
    answers.idle = (0..common.clients).collect();
    let warm = clock::monotonic() + nanos(common.warmup);
    turn_until(&mut fleet, operation, &mut answers, &mut turns, warm, u64::MAX, context)?;

    let polled = fleet.stats().in_vain;
    let window = Window::open(server, common.port())?;
    let start = window.start();
    let mut measuring = context.measuring("requests", arguments.count, start, common.duration);
    let (count, end) = (measuring.count, measuring.end);
    answers.window(start, end);
    while !context.is_ended() && clock::monotonic() < end && !is_over(&answers.outcome, count, common.clients)
    {
        let until = end.min(clock::monotonic() + 10 * LOOK);
        turn_until(&mut fleet, operation, &mut answers, &mut turns, until, count, context)?;
        measuring.at(answers.outcome.answered);
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

/// Whether the load is complete: enough requests were answered or failed, or no client is left.
fn is_over(outcome: &Outcome, count: u64, clients: u32) -> bool {
    outcome.answered + outcome.failed >= count || outcome.lost >= clients as usize
}

fn turn_until<R: Request<Response: 'static>>(
    fleet: &mut Fleet,
    operation: &mut Operation<R>,
    answers: &mut Answers,
    turns: &mut Turns,
    until: u64,
    count: u64,
    context: &Context<'_>,
) -> Result<(), GeneratorError> {
    let clients = u32::try_from(fleet.len()).unwrap_or(u32::MAX);
    while clock::monotonic() < until && !context.is_ended() && !is_over(&answers.outcome, count, clients) {
        let now = clock::monotonic();
        turns.rest(answers.idle.drain(..), now);
        while let Some(client) = turns.rested(now) {
            turns.number += 1;
            let Some(request) = operation.request(client as usize, turns.number) else { continue };
            let now = clock::monotonic();
            let sent = fleet.with(MemberId(client), |core, now| core.request(request, None, now), answers);
            if let Some(Ok(handle)) = sent {
                answers.sent(client, handle, now, now);
            }
        }
        let look = until.min(clock::monotonic() + LOOK).min(turns.next().unwrap_or(u64::MAX));
        fleet.run_once(Instant::from_nanos(look), answers).map_err(environment)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_pauses_after_its_answer() {
        let mut turns = Turns { pause: 100, ..Turns::default() };
        turns.rest([3, 1], 0);
        turns.rest([2], 40);
        assert_eq!((turns.rested(99), turns.next()), (None, Some(100)));
        assert_eq!((turns.rested(100), turns.rested(100), turns.rested(139)), (Some(3), Some(1), None));
        assert_eq!((turns.rested(140), turns.rested(u64::MAX), turns.next()), (Some(2), None, None));
        // Without a pause, clients send at once.
        turns.pause = 0;
        turns.rest([7], 150);
        assert_eq!(turns.rested(150), Some(7));
    }

    #[test]
    fn unanswered_requests_do_not_block_the_end() {
        let of = |answered, failed, lost| Outcome { answered, failed, lost, ..Outcome::default() };
        assert!(!is_over(&of(4, 0, 0), 5, 2) && is_over(&of(5, 0, 0), 5, 2));
        assert!(is_over(&of(1, 4, 0), 5, 2), "failed requests count as well");
        assert!(!is_over(&of(1, 0, 1), u64::MAX, 2) && is_over(&of(1, 0, 2), u64::MAX, 2));
    }
}
