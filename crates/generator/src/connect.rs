//! `bench connect`: time to open a session, and sessions per second.

use crate::account::{Account, Window};
use crate::client::session;
use crate::common::{Generator, check_rate, environment};
use crate::context::Context;
use crate::error::GeneratorError;
use crate::report::Finished;
use taktwerk_client::{ClientError, DataChanges, Event, Reply, RequestHandle, SubscriptionHandle};
use taktwerk_load::clock;
use taktwerk_load::latency::{Latency, Times};
use taktwerk_load::result::{self, Unit};
use taktwerk_load::schedule::OpenLoop;
use taktwerk_load::specification::Connect;
use taktwerk_load::validity::{self, Invalid};
use taktwerk_model::figures;
use taktwerk_net::client::{Fleet, FleetSink, MemberId};
use taktwerk_types::{Instant, StatusCode};

/// Maximum number of sessions kept open.
const HELD_MAX: u64 = 10_000;
/// Interval for checking whether to end.
const LOOK: u64 = 20_000_000;

/// A session being opened.
#[derive(Debug, Clone, Copy)]
struct Opening {
    scheduled: u64,
    begun: u64,
    is_over: bool,
}

/// The account when all sessions had been started and no more events arrived. Waiting for sessions without an answer is
/// not part of the measurement.
struct Settled {
    /// Number of sessions opened at that time. The account is outdated if more have been opened since.
    opened: u64,
    account: Account,
}

/// Receives the events of the clients.
#[derive(Default)]
struct Sessions {
    opening: Vec<Opening>,
    latency: Latency,
    closing: Times,
    closed_from: Vec<u64>,
    opened: u64,
    /// Start of the window, and its end as far as it is known.
    window: (u64, u64),
    /// Number of sessions opened within the window, and the time of the last one.
    counted: u64,
    last: u64,
    failed: u64,
    first_error: Option<ClientError>,
    /// Open sessions that can be closed.
    done: Vec<u32>,
    under_way: usize,
}

impl FleetSink for Sessions {
    fn event(&mut self, member: MemberId, event: Event, now: Instant) {
        let at = member.0 as usize;
        let now = now.as_nanos();
        match event {
            Event::Connected(_) => {
                if let Some(opening) = self.opening.get_mut(at) {
                    opening.is_over = true;
                    self.latency.record(opening.scheduled, opening.begun, now);
                }
                self.opened += 1;
                if now < self.window.1 {
                    self.counted += 1;
                    self.last = now;
                }
                self.under_way -= 1;
                self.done.push(member.0);
            }
            Event::Disconnected(error) => match self.closed_from.get(at).copied().unwrap_or(0) {
                0 => {
                    let opening = self.opening.get_mut(at).filter(|opening| !opening.is_over);
                    if let Some(opening) = opening {
                        opening.is_over = true;
                        // A timeout counts with its waiting time; a refusal is an answer.
                        if error.as_ref().is_some_and(|error| error.status() == StatusCode::BAD_TIMEOUT) {
                            self.latency.record_unanswered(opening.scheduled, opening.begun, now);
                        }
                    }
                    self.failed += 1;
                    self.under_way = self.under_way.saturating_sub(1);
                    self.first_error = self.first_error.take().or(error);
                }
                from => self.closing.record(now.saturating_sub(from)),
            },
            _ => {}
        }
    }

    fn response(&mut self, _: MemberId, _: RequestHandle, _: Result<Reply<'_>, ClientError>, _: Instant) {}

    fn data_changes(&mut self, _: MemberId, _: SubscriptionHandle, _: DataChanges<'_>, _: Instant) {}
}

impl Sessions {
    /// Whether no session can be opened at all; then the load stops and reports why.
    fn is_hopeless(&self) -> bool {
        self.opened == 0 && self.failed > 0
    }

    /// Whether sessions are pending, but none has been opened for a while.
    fn is_quiet(&self, now: u64) -> bool {
        self.opened > 0 && self.under_way > 0 && now.saturating_sub(self.last) > LOOK
    }

    /// Sessions per second: over the whole window if it ends by time, or until the last session if it ends by number.
    /// Waiting for sessions without an answer is not included.
    fn per_second(&self) -> f64 {
        let (start, end) = self.window;
        let end = if end == u64::MAX { self.last } else { end };
        match end.saturating_sub(start) {
            0 => 0.0,
            span => self.counted as f64 / (span as f64 / 1e9),
        }
    }
}

/// Measures and reports.
pub(crate) fn run(arguments: &Connect, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    let common = &arguments.common;
    check_rate(arguments.rate, "sessions")?;
    let server = common.begin()?;
    let target = common.target(context)?;
    // The fleet must not delay connections; this loop decides when a session starts.
    let mut fleet = common.fleet(usize::MAX, context)?;
    let mut sessions = Sessions::default();
    let most = if arguments.hold { HELD_MAX } else { u64::MAX };
    let count = arguments.count.unwrap_or(u64::MAX).min(most);
    let polled = fleet.stats().in_vain;
    let mut window = Window::open(server, common.port())?;
    let mut settled: Option<Settled> = None;
    let start = window.start();
    let mut measuring = context.measuring("sessions", arguments.count, start, common.duration);
    let end = measuring.end;
    sessions.window = (start, end);
    let mut schedule = arguments.rate.map(|rate| OpenLoop::new(start, rate, Some(count)));
    loop {
        let now = clock::monotonic();
        let begun = sessions.opening.len() as u64;
        let is_over = now >= end || context.is_ended();
        if is_over || (begun >= count && sessions.under_way == 0) || sessions.is_hopeless() {
            sessions.window.1 = if is_over { end.min(now) } else { u64::MAX };
            break;
        }
        if begun < count {
            begin_due(&mut fleet, &mut sessions, schedule.as_mut(), common.clients as usize, &target, count);
        }
        close_done(&mut fleet, &mut sessions, arguments.hold);
        let next = schedule.as_ref().and_then(OpenLoop::next_due).unwrap_or(u64::MAX);
        let until = Instant::from_nanos(next.max(now + 1).min(now + LOOK).min(end));
        fleet.run_once(until, &mut sessions).map_err(environment)?;
        let is_known = settled.as_ref().is_some_and(|settled| settled.opened == sessions.opened);
        if begun >= count && !is_known && sessions.is_quiet(clock::monotonic()) {
            let polling = fleet.stats().in_vain.saturating_sub(polled);
            settled = Some(Settled { opened: sessions.opened, account: window.so_far()?.polling(polling) });
        }
        measuring.at(sessions.opened);
    }
    let mut account = match settled {
        Some(settled) if settled.opened == sessions.opened => settled.account,
        _ => window.close()?.polling(fleet.stats().in_vain.saturating_sub(polled)),
    };
    if let Some(schedule) = &schedule {
        // Sessions due exactly at the end belong to the time after the window.
        let now = clock::monotonic();
        let last = now.min(sessions.window.1).saturating_sub(1);
        schedule.left(last).for_each(|due| sessions.latency.record_unsent(due, now));
    }
    // Pending sessions still count with their time, but not for the server's resources.
    while sessions.under_way > 0 && !sessions.is_hopeless() && !context.is_ended() {
        close_done(&mut fleet, &mut sessions, arguments.hold);
        let until = Instant::from_nanos(clock::monotonic() + LOOK);
        fleet.run_once(until, &mut sessions).map_err(environment)?;
    }
    if !arguments.hold {
        // The kernel's counters belong to open connections; these are closed.
        account.wire = None;
    }
    close_held(&mut fleet, &mut sessions);
    if let (0, Some(error)) = (sessions.opened, &sessions.first_error) {
        return Err(session::unreachable(&common.connection.endpoint, error));
    }
    let mut report = common.report("connect");
    let per_second = sessions.per_second();
    report.part(&result::Sessions {
        requested: result::SessionsRequested {
            concurrency: common.clients,
            rate: arguments.rate,
            count: arguments.count,
            duration_s: common.duration.as_secs_f64(),
            hold: arguments.hold,
        },
        sessions: sessions.counted,
        failed: sessions.failed,
        per_second,
        closing: sessions.closing.summary(),
    });
    report.latency(&sessions.latency, arguments.rate.is_some());
    let begun = sessions.opening.len() as u64;
    report.unanswered(&sessions.latency, begun, "sessions", "in time");
    if sessions.closing.count() > 0 {
        report.times("closing", &sessions.closing);
    }
    report.fact("throughput", format!("{} sessions/s", figures::number(per_second)));
    if let Some(error) = &sessions.first_error {
        report.fact("failed", format!("{}, the first with: {error}", sessions.failed));
    }
    report.account(&account, Unit::Session, sessions.counted);
    if let Some(rate) = arguments.rate {
        report.invalid(validity::check_lateness(&sessions.latency.lateness, (1e9 / rate) as u64));
    }
    if sessions.counted == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    let failed = sessions.first_error.map(|error| {
        GeneratorError::Connect(format!("{} sessions could not be opened: {error}", sessions.failed))
    });
    Ok(report.finish(context, failed))
}

/// Starts due sessions: by schedule, or as many as may be pending.
fn begin_due(
    fleet: &mut Fleet,
    sessions: &mut Sessions,
    mut schedule: Option<&mut OpenLoop>,
    concurrency: usize,
    target: &taktwerk_client::Target,
    count: u64,
) {
    loop {
        let now = clock::monotonic();
        let scheduled = match &mut schedule {
            Some(schedule) => schedule.take(now),
            None => {
                (sessions.under_way < concurrency && (sessions.opening.len() as u64) < count).then_some(now)
            }
        };
        let Some(scheduled) = scheduled else { return };
        sessions.opening.push(Opening { scheduled, begun: now, is_over: false });
        sessions.closed_from.push(0);
        sessions.under_way += 1;
        fleet.add(target.clone());
    }
}

/// Closes the sessions that were kept open. Otherwise servers would keep them until their timeout.
fn close_held(fleet: &mut Fleet, sessions: &mut Sessions) {
    for member in std::mem::take(&mut sessions.done) {
        fleet.with(MemberId(member), |core, now| core.disconnect(now), sessions);
    }
}

fn close_done(fleet: &mut Fleet, sessions: &mut Sessions, hold: bool) {
    let done = std::mem::take(&mut sessions.done);
    if hold {
        return;
    }
    for member in done {
        // The server may have closed the session already; then there is nothing to close or time.
        if !fleet.get(MemberId(member)).is_some_and(taktwerk_client::Client::is_up) {
            continue;
        }
        if let Some(from) = sessions.closed_from.get_mut(member as usize) {
            *from = clock::monotonic();
        }
        fleet.with(MemberId(member), |core, now| core.disconnect(now), sessions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions opened at these times, in seconds.
    fn opened(end: u64, at: &[u64]) -> Sessions {
        let opening = Opening { scheduled: 0, begun: 0, is_over: false };
        let mut sessions = Sessions {
            opening: vec![opening; at.len() + 1],
            // One more session never gets an answer.
            under_way: at.len() + 1,
            window: (0, end),
            ..Sessions::default()
        };
        for (member, at) in (0..).zip(at) {
            let now = Instant::from_nanos(at * 1_000_000_000);
            sessions.event(MemberId(member), Event::Connected(Box::default()), now);
        }
        sessions
    }

    #[test]
    fn waiting_after_the_window_is_not_counted() {
        // A window of ten seconds, and a session opened later, while waiting for the one without an answer.
        let sessions = opened(10_000_000_000, &[2, 4, 6, 8, 12]);
        assert_eq!((sessions.opened, sessions.counted, sessions.under_way), (5, 4, 1));
        assert_eq!(sessions.per_second(), 0.4);
        assert_eq!(sessions.latency.uncorrected.count(), 5, "it started in time, so its time counts");
        // Five sessions without a time limit: until the last one.
        assert_eq!(opened(u64::MAX, &[2, 4, 6, 8, 10]).per_second(), 0.5);
        assert_eq!(opened(u64::MAX, &[]).per_second(), 0.0);
    }
}
