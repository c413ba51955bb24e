//! One client on the blocking driver, for the shortest possible round trip.

use super::answers::is_silence;
use super::operation::Operation;
use super::view::Checked;
use super::{Outcome, Requests};
use crate::account::Window;
use crate::client::session;
use crate::common::Generator;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use taktwerk_client::ClientError;
use taktwerk_load::clock;
use taktwerk_load::process::Process;
use taktwerk_net::client::BlockingClient;
use taktwerk_schema::service::Request;

/// Fast requests between two checks whether the user wants to stop.
const LOOK: u64 = 256;
/// Answers slower than this, in nanoseconds, are followed by a check, whose cost is then negligible.
const SLOW: u64 = 1_000_000;

/// Sends each request when the previous one was answered.
pub(crate) fn run<R: Request<Response: 'static>>(
    arguments: &Requests,
    server: Option<Process>,
    operation: &mut Operation<R>,
    context: &Context<'_>,
) -> Result<Outcome, GeneratorError> {
    let common = &arguments.common;
    let connected = BlockingClient::connect(common.client_config(context)?, common.target(context)?);
    let (client, _) = connected.map_err(|error| session::unreachable(&common.connection.endpoint, &error))?;
    let mut client = client.busy_poll(!common.busy_poll.is_zero());
    let mut outcome = Outcome::default();

    let warm = clock::monotonic() + nanos(common.warmup);
    let mut number = 0;
    while clock::monotonic() < warm && !context.is_ended() {
        one(&mut client, operation, &mut number).map_err(|error| session::failure(&error))?;
    }

    let window = Window::open(server, common.port())?;
    let start = window.start();
    let mut measuring = context.measuring("requests", arguments.count, start, common.duration);
    let mut sent_at = clock::monotonic();
    let mut took = 0;
    while outcome.sent < measuring.count && sent_at < measuring.end {
        if outcome.sent.is_multiple_of(LOOK) || took > SLOW || arguments.pause.is_some() {
            if context.is_ended() {
                break;
            }
            measuring.at(outcome.sent);
        }
        if let Some(pause) = arguments.pause {
            context.sleep(pause);
            if context.is_ended() {
                break;
            }
            sent_at = clock::monotonic();
        }
        outcome.sent += 1;
        match one(&mut client, operation, &mut number) {
            Ok(checked) => {
                // The end of one round trip is the beginning of the next: read the clock once for both.
                let done = clock::monotonic();
                took = done - sent_at;
                outcome.latency.uncorrected.record(took);
                sent_at = done;
                outcome.answered += 1;
                outcome.count(checked);
            }
            Err(error) => {
                let done = clock::monotonic();
                took = done - sent_at;
                if is_silence(&error) {
                    outcome.latency.record_unanswered(sent_at, sent_at, done);
                }
                outcome.fail(&error);
                if error.is_connection() {
                    break;
                }
                sent_at = done;
            }
        }
    }
    outcome.span = clock::monotonic() - start;
    outcome.account = Some(window.close()?.spinning(!common.busy_poll.is_zero()));
    outcome.due = outcome.sent;
    if outcome.lost == 0 {
        client.disconnect();
    }
    Ok(outcome)
}

#[inline]
fn one<R: Request<Response: 'static>>(
    client: &mut BlockingClient,
    operation: &mut Operation<R>,
    number: &mut u64,
) -> Result<Checked, ClientError> {
    *number += 1;
    let check = operation.checker();
    let Some(request) = operation.request(0, *number) else { return Ok(Checked::default()) };
    client.call_with(request, |reply| check(&reply))
}

impl Outcome {
    /// Counts the results of an answer.
    #[inline]
    pub(super) fn count(&mut self, checked: Checked) {
        self.bad += checked.bad;
        if let (Some(status), None) = (checked.first, &self.first_bad) {
            self.first_bad = Some(status.to_string());
        }
    }

    /// Counts a request that failed as a whole.
    pub(super) fn fail(&mut self, error: &ClientError) {
        self.failed += 1;
        self.lost += usize::from(error.is_connection());
        if self.first_bad.is_none() {
            self.first_bad = Some(error.to_string());
        }
    }
}
