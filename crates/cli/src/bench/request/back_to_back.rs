//! One client on the blocking driver: the shortest round trip there is.

use super::answers::is_silence;
use super::operation::Operation;
use super::view::Checked;
use super::{Outcome, Requests};
use crate::bench::account::Window;
use crate::bench::common::Generator;
use crate::bench::common::nanos;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::session;
use taktwerk_client::ClientError;
use taktwerk_lab::clock;
use taktwerk_lab::process::Process;
use taktwerk_net::client::BlockingClient;
use taktwerk_schema::service::Request;

/// Requests between two looks at whether the user wants to stop, as long as they are quick.
const LOOK: u64 = 256;
/// From so many nanoseconds on an answer is slow: a look costs nothing beside it.
const SLOW: u64 = 1_000_000;
/// How long a rest goes on before the next look.
const SLICE: u64 = 100_000_000;

/// Sends each request when the last one was answered.
pub(crate) fn run<R: Request<Response: 'static>>(
    arguments: &Requests,
    server: Option<Process>,
    operation: &mut Operation<R>,
    interrupt: &Interrupt,
) -> Result<Outcome, Failure> {
    let common = &arguments.common;
    let connected = BlockingClient::connect(common.client_config()?, common.target()?);
    let (client, _) = connected.map_err(|error| session::unreachable(&common.connection.endpoint, &error))?;
    let mut client = client.busy_poll(!common.busy_poll.is_zero());
    let mut outcome = Outcome::default();

    let warm = clock::monotonic() + nanos(common.warmup);
    let mut number = 0;
    while clock::monotonic() < warm && !interrupt.asked() {
        one(&mut client, operation, &mut number).map_err(|error| session::failure(&error))?;
    }

    let window = Window::open(server, common.port())?;
    let count = arguments.count.unwrap_or(u64::MAX);
    let start = window.start();
    let end = if arguments.count.is_some() { u64::MAX } else { start + nanos(common.duration) };
    let mut progress = match arguments.count {
        Some(count) => Progress::new("requests", count),
        None => Progress::of_time("measuring", common.duration),
    };
    let mut sent_at = clock::monotonic();
    let mut took = 0;
    while outcome.sent < count && sent_at < end {
        if outcome.sent.is_multiple_of(LOOK) || took > SLOW || arguments.pause.is_some() {
            if interrupt.asked() {
                break;
            }
            let at = if arguments.count.is_some() { outcome.sent } else { (sent_at - start) / 1_000_000_000 };
            progress.at(at);
        }
        if let Some(pause) = arguments.pause {
            rest(nanos(pause), interrupt);
            if interrupt.asked() {
                break;
            }
            sent_at = clock::monotonic();
        }
        outcome.sent += 1;
        match one(&mut client, operation, &mut number) {
            Ok(checked) => {
                // The end of one round trip is the beginning of the next: one look at the clock for both.
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

/// Sleeps so long, or until the user wants to stop.
fn rest(span: u64, interrupt: &Interrupt) {
    let end = clock::monotonic().saturating_add(span);
    let mut now = 0;
    while now < end && !interrupt.asked() {
        clock::sleep_until(end.min(clock::monotonic() + SLICE));
        now = clock::monotonic();
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_rest_of_a_year_ends_when_the_user_wants_to_stop() {
        let interrupt = Interrupt::uncaught();
        interrupt.flag().store(true, Ordering::Relaxed);
        rest(365 * 86_400 * 1_000_000_000, &interrupt);
        interrupt.flag().store(false, Ordering::Relaxed);
        let begin = clock::monotonic();
        rest(1_000_000, &interrupt);
        assert!(clock::monotonic() >= begin + 1_000_000);
    }
}
