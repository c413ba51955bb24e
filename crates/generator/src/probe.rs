//! `bench probe`: reads at fixed times. Records the counters of the scheduler and TCP around each request, so that slow
//! answers can be explained. Requests without an answer count with the time they have waited.

use crate::account::Window;
use crate::again::{Came, Line};
use crate::client::Session;
use crate::common::Generator;
use crate::context::Context;
use crate::context::nanos;
use crate::error::GeneratorError;
use crate::nodes;
use crate::report::Finished;
use crate::values;
use std::collections::VecDeque;
use taktwerk_load::latency::Latency;
use taktwerk_load::outliers::{Cause, Counted, Sample};
use taktwerk_load::pin::CpuList;
use taktwerk_load::process::{Process, Turns};
use taktwerk_load::result::{Probed, ProbedRequested, Unit};
use taktwerk_load::schedule::OpenLoop;
use taktwerk_load::specification::Probe;
use taktwerk_load::validity::{self, Invalid};
use taktwerk_load::{clock, outliers, wire};
use taktwerk_model::figures;
use taktwerk_schema::{ReadRequest, TimestampsToReturn};

/// Time span for the load of a CPU in nanoseconds, because CPU time is counted in clock ticks.
const LOAD_SPAN: u64 = 100_000_000;

/// The counters around a request.
#[derive(Default, Clone, Copy)]
struct Look {
    server: Turns,
    own: Turns,
    retransmitted: u64,
    counted: Option<Counted>,
    at: u64,
}

/// Whether the counters are read before or after a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    After,
}

/// Reads the counters. The scheduler's are read closest to the request, so that reading the others does not affect
/// them.
fn look(when: When, server: Option<Process>, port: u16, cpus: &[usize]) -> Look {
    let turns = || {
        let own = || Process::own().turns().unwrap_or_default();
        let server = || server.and_then(|process| process.turns().ok()).unwrap_or_default();
        match when {
            When::Before => {
                let own = own();
                (server(), own)
            }
            When::After => (server(), own()),
        }
    };
    let others = || {
        let pid = server.map(|process| process.pid());
        let retransmitted = wire::carried(port, pid).map_or(0, |carried| carried.retransmitted);
        (retransmitted, outliers::counted(cpus))
    };
    let ((server, own), (retransmitted, counted)) = match when {
        When::Before => {
            let others = others();
            (turns(), others)
        }
        When::After => (turns(), others()),
    };
    Look { server, own, retransmitted, counted, at: clock::monotonic() }
}

/// Measures and reports.
pub(crate) fn run(arguments: &Probe, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    let common = &arguments.common;
    if !(arguments.rate > 0.0 && arguments.rate.is_finite()) {
        return Err(GeneratorError::Usage(format!(
            "--rate {}: give a number of requests per second",
            arguments.rate
        )));
    }
    if !common.busy_poll.is_zero() {
        return Err(GeneratorError::Usage(
            "--busy-poll: a probe sleeps until each request is due, and while it waits for the answer: leave it out"
                .to_owned(),
        ));
    }
    let server = common.begin()?;
    let found = {
        let mut session = Session::connect(&common.connection, context)?;
        let found = nodes::find(&mut session, &arguments.nodes, Some(arguments.batch))?;
        session.close();
        found
    };
    let mut request = ReadRequest {
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read: found.iter().cycle().take(arguments.batch as usize).cloned().map(values::of).collect(),
        ..Default::default()
    };
    let mut line = Line::connect(common, context)?;

    let interval = (1e9 / arguments.rate) as u64;
    let count = arguments.count.unwrap_or_else(|| nanos(common.duration) / interval.max(1));
    let warm = nanos(common.warmup) / interval.max(1);
    let port = common.port();
    let mut latency = Latency::new();
    let mut samples: Vec<Sample> = Vec::new();
    let (mut bad, mut first_bad) = (0u64, None);
    // Lost connections, why there is none any more, and requests that were due but not sent because nothing answered.
    let (mut lost, mut gone, mut unsent) = (0usize, None, 0u64);
    let mut progress = context.step("requests", count);
    let window = Window::open(server, port)?;
    let begin = clock::monotonic() + 1_000_000;
    // The server's CPU, whose load is recorded, and ours: the hypervisor may steal time from any of them.
    let mut cpus: Vec<usize> = arguments.server_cpu.into_iter().collect();
    cpus.extend(CpuList::allowed().cpus().iter().copied().filter(|cpu| arguments.server_cpu != Some(*cpu)));
    let mut free = begin;
    let mut earlier = VecDeque::from([look(When::Before, server, port, &cpus)]);
    let mut schedule = OpenLoop::new(begin, arguments.rate, Some(warm.saturating_add(count)));
    let (start, end) = (schedule.due(warm), schedule.due(warm.saturating_add(count)));
    while let Some(due) = schedule.next_due().filter(|_| !context.is_ended()) {
        let index = schedule.taken();
        schedule.take(due);
        clock::sleep_until(due);
        let woken = clock::monotonic();
        // Delays caused by the previous request are not attributed to the timer.
        let timer_late = woken.saturating_sub(due.max(free));
        let before = look(When::Before, server, port, &cpus);
        let sent = clock::monotonic();
        let came = line.ask(&mut request, |reply| crate::request::check_read(&reply))?;
        let done = clock::monotonic();
        let after = look(When::After, server, port, &cpus);
        let is_answered = matches!(came, Came::Answer(_));
        if index >= warm {
            if is_answered {
                latency.record(due, sent, done);
            } else {
                latency.record_unanswered(due, sent, done);
            }
            let turned = after.server.since(&before.server);
            let own = after.own.since(&before.own);
            let load = earlier.front().filter(|_| arguments.server_cpu.is_some()).and_then(|first| {
                let span = after.at.saturating_sub(first.at).max(1) as f64;
                Some(after.counted?.busy.saturating_sub(first.counted?.busy) as f64 / span * 100.0)
            });
            let stolen = after.counted.zip(before.counted);
            let stolen = stolen.map_or(0, |(after, before)| after.stolen.saturating_sub(before.stolen));
            samples.push(Sample {
                at_s: due.saturating_sub(begin) as f64 / 1e9,
                rtt_us: (done - sent) as f64 / 1e3,
                unanswered: !is_answered,
                context: outliers::Context {
                    timer_late_us: timer_late as f64 / 1e3,
                    server_wait_us: turned.waiting as f64 / 1e3,
                    server_run_us: turned.on_cpu as f64 / 1e3,
                    client_wait_us: own.waiting as f64 / 1e3,
                    stolen_us: stolen as f64 / 1e3,
                    retransmitted: after.retransmitted.saturating_sub(before.retransmitted),
                    load_percent: load.map(|load: f64| load.min(100.0)),
                    server_known: server.is_some(),
                },
            });
        }
        earlier.push_back(after);
        let is_over = match came {
            Came::Answer(checked) => {
                bad += checked.bad;
                first_bad = first_bad.or(checked.first);
                false
            }
            // The schedule has ended: do not wait for a stalled server with each remaining request.
            Came::Nothing => clock::monotonic() >= end,
            Came::Lost(error) => {
                lost += usize::from(index >= warm);
                gone = line.again(&error, context).err();
                gone.is_some()
            }
        };
        free = clock::monotonic();
        if is_over {
            for due in schedule.left(free).filter(|due| *due >= start) {
                latency.record_unsent(due, free);
                unsent += 1;
            }
            break;
        }
        while earlier.len() > 1 && earlier.front().is_some_and(|first| after.at - first.at > LOAD_SPAN) {
            earlier.pop_front();
        }
        progress.at(index.saturating_sub(warm));
    }
    let account = match window.close() {
        // A server that has ended has no counters; its end is reported.
        Err(_) if gone.is_some() => None,
        account => Some(account?),
    };
    line.close();
    let explained = outliers::explain(&samples, arguments.slow);
    let mut report = common.report("probe");
    let (sent, answered) = (samples.len() as u64, samples.len() as u64 - latency.unanswered);
    let due = sent + unsent;
    report.latency(&latency, true);
    report.unanswered(&latency, due, "requests", "within --timeout, or before the connection was lost");
    if lost > 0 {
        report.fact("connections lost", lost.to_string());
    }
    report.fact(
        "slow answers",
        format!("{} of {} (from {} times the fastest on)", explained.len(), samples.len(), arguments.slow),
    );
    for cause in Cause::ALL {
        let count = explained.iter().filter(|slow| slow.cause == cause).count();
        if count > 0 {
            report.fact(&format!("  because of {cause}"), count.to_string());
        }
    }
    if let Some(worst) = explained.iter().max_by(|a, b| a.rtt_us.total_cmp(&b.rtt_us)) {
        report.fact("slowest", format!("{}: {}", figures::micros(worst.rtt_us), worst.proof));
    }
    report.part(&Probed {
        requested: ProbedRequested {
            rate: arguments.rate,
            count,
            batch: arguments.batch,
            slow: arguments.slow,
        },
        sent,
        due,
        requests: answered,
        connections_lost: lost,
        samples,
        slow: explained,
    });
    if let Some(account) = &account {
        report.account(account, Unit::Request, answered);
    }
    // A late request is only invalid if the schedule was not kept at all: times count from the request, and the cause
    // of lateness is recorded.
    report.invalid(validity::check_pace(&latency.lateness, interval));
    if sent * 100 < due * 99 {
        report.invalid([Invalid::NotSent { due, sent }]);
    }
    if lost > 0 {
        report.invalid([Invalid::ConnectionsLost { lost }]);
    }
    if answered == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    let failed = first_bad
        .map(|status| GeneratorError::BadStatus(format!("{bad} reads failed; the first with {status}")));
    let mut finished = report.finish(context, failed);
    // The reason for an early end is more useful than the message that there are too few samples.
    let is_invalid = matches!(finished.outcome, Err(GeneratorError::Invalid(_)));
    if let Some(gone) = gone.filter(|_| is_invalid) {
        finished.outcome = Err(gone);
    }
    Ok(finished)
}
