//! Connections that occupy slots and do nothing.

use crate::connections::{Connections, timed_dial};
use crate::report::Findings;
use crate::wire::{Wire, chunk_head};
use crate::{Limits, Run};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// The server's deadline for a Hello, an open channel or the rest of a chunk, plus two seconds.
pub(crate) const STAGE: Duration = Duration::from_secs(12);
/// Maximum memory of an idle connection, in bytes.
const COST_MAX: u64 = 8 << 10;

/// Connections that never send a Hello.
pub(crate) fn silent(run: &Run<'_>) -> Result<Findings, String> {
    let before = run.rss();
    let mut connections = Connections::gather(run, run.connections, 40, |_| {});
    finish(run, before, &mut connections)
}

/// Open channels that have sent a part of a chunk.
pub(crate) fn half_chunks(run: &Run<'_>) -> Result<Findings, String> {
    let before = run.rss();
    let mut connections = Connections::default();
    for number in 0..run.connections {
        if run.is_over() {
            break;
        }
        let half = || -> Result<_, crate::wire::WireError> {
            let wire = Wire::open(run.address, run.source(number, 40))?;
            let mut chunk = chunk_head(b'F', 65_536, wire.channel_id(), 1, 52, 2);
            chunk.resize(4_000, 0);
            let mut stream = wire.into_stream();
            stream.write_all(&chunk)?;
            Ok(crate::wire::Raw::new(stream)?)
        };
        match half() {
            Ok(raw) => connections.members.push(crate::connections::Member {
                raw,
                since: Instant::now(),
                ended: None,
            }),
            Err(_) => connections.failed += 1,
        }
        if number % 64 == 63 {
            connections.listen();
        }
    }
    finish(run, before, &mut connections)
}

fn finish(run: &Run<'_>, before: u64, connections: &mut Connections) -> Result<Findings, String> {
    let mut findings = Findings::default();
    connections.listen();
    let (held, most) = (connections.open() as u64, run.rss());
    let each = most.saturating_sub(before) / held.max(1);
    connections.wait(run, run.patience(STAGE), |_| {});
    findings.fact("connected", format!("{} (failed: {})", connections.members.len(), connections.failed));
    findings.fact("held at the same time", held);
    findings.fact("memory for each", format!("{each} bytes"));
    findings.fact("ended by the server", connections.outcomes());
    findings.fact("longest", format!("{:.1} s", connections.longest().as_secs_f64()));
    findings.claim("all are closed within the deadline and two seconds", connections.open() == 0);
    if run.judges_times {
        findings.claim(format!("each costs at most {COST_MAX} bytes"), each <= COST_MAX || held < 100);
    }
    Ok(findings)
}

/// More connections from one address than the limit. The rest must be refused quickly.
pub(crate) fn one_address(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut connections = Connections::default();
    let mut refusals = Vec::new();
    for _ in 0..run.connections {
        let Ok((mut raw, began)) = timed_dial(run, 0, usize::MAX) else { continue };
        // Refusals arrive at once. An accepted connection receives nothing before its Hello.
        let patience = began + Duration::from_millis(20);
        while !raw.is_closed && Instant::now() < patience {
            raw.listen();
            thread::yield_now();
        }
        if raw.is_closed {
            refusals.push(began.elapsed());
        }
        let ended = raw.is_closed.then(Instant::now);
        connections.members.push(crate::connections::Member { raw, since: began, ended });
    }
    thread::sleep(Duration::from_millis(200));
    connections.listen();
    let refused = connections.members.len() - connections.open();
    refusals.sort_unstable();
    let median = refusals.get(refusals.len() / 2).copied().unwrap_or_default();
    findings.fact("let in", connections.open());
    findings.fact("refused", refused);
    findings.fact("a refusal takes", format!("{:.2} ms (median)", median.as_secs_f64() * 1e3));
    findings.fact("told", connections.outcomes());
    if run.limits == Limits::Loopback {
        findings.claim("no connection is refused", refused == 0);
    } else {
        findings.claim("some are refused", run.connections <= 200 || refused > 0);
        if run.judges_times {
            findings.claim("a refusal takes at most 5 ms", median <= Duration::from_millis(5));
        }
    }
    Ok(findings)
}
