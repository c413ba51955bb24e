//! Connections that hold places and do nothing.

use super::Scene;
use super::crowd::{Crowd, timed_dial};
use super::report::Findings;
use super::wire::{Wire, chunk_head};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// The deadline of the server for a Hello, an open channel or the rest of a chunk, and two seconds.
pub(super) const STAGE: Duration = Duration::from_secs(12);
/// Bytes that an idle connection may cost.
const COST_MAX: u64 = 8 << 10;

/// Connections that never say Hello.
pub(super) fn silent(scene: &Scene<'_>) -> Result<Findings, String> {
    let before = scene.rss();
    let mut crowd = Crowd::gather(scene, scene.connections, 40, |_| {});
    finish(scene, before, &mut crowd)
}

/// Open channels that have sent a part of a chunk and say no more.
pub(super) fn half_chunks(scene: &Scene<'_>) -> Result<Findings, String> {
    let before = scene.rss();
    let mut crowd = Crowd::default();
    for number in 0..scene.connections {
        if scene.is_over() {
            break;
        }
        let half = || -> Result<_, super::wire::WireError> {
            let wire = Wire::open(scene.address, scene.source(number, 40))?;
            let mut chunk = chunk_head(b'F', 65_536, wire.channel_id(), 1, 52, 2);
            chunk.resize(4_000, 0);
            let mut stream = wire.into_stream();
            stream.write_all(&chunk)?;
            Ok(super::wire::Raw::new(stream)?)
        };
        match half() {
            Ok(raw) => crowd.members.push(super::crowd::Member { raw, since: Instant::now(), ended: None }),
            Err(_) => crowd.failed += 1,
        }
        if number % 64 == 63 {
            crowd.listen();
        }
    }
    finish(scene, before, &mut crowd)
}

fn finish(scene: &Scene<'_>, before: u64, crowd: &mut Crowd) -> Result<Findings, String> {
    let mut findings = Findings::default();
    crowd.listen();
    let (held, most) = (crowd.open() as u64, scene.rss());
    let each = most.saturating_sub(before) / held.max(1);
    crowd.wait(scene, scene.patience(STAGE), |_| {});
    findings.fact("connected", format!("{} (failed: {})", crowd.members.len(), crowd.failed));
    findings.fact("held at the same time", held);
    findings.fact("memory for each", format!("{each} bytes"));
    findings.fact("ended by the server", crowd.farewells());
    findings.fact("longest", format!("{:.1} s", crowd.longest().as_secs_f64()));
    findings.claim("all are closed within the deadline and two seconds", crowd.open() == 0);
    if scene.judges_times {
        findings.claim(format!("each costs at most {COST_MAX} bytes"), each <= COST_MAX || held < 100);
    }
    Ok(findings)
}

/// More connections from one address than one may have: the rest is refused, and quickly.
pub(super) fn one_address(scene: &Scene<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut crowd = Crowd::default();
    let mut refusals = Vec::new();
    for _ in 0..scene.connections {
        let Ok((mut raw, began)) = timed_dial(scene, 0, usize::MAX) else { continue };
        // A refusal is there at once; who is let in hears nothing before its Hello.
        let patience = began + Duration::from_millis(20);
        while !raw.is_closed && Instant::now() < patience {
            raw.listen();
            thread::yield_now();
        }
        if raw.is_closed {
            refusals.push(began.elapsed());
        }
        let ended = raw.is_closed.then(Instant::now);
        crowd.members.push(super::crowd::Member { raw, since: began, ended });
    }
    thread::sleep(Duration::from_millis(200));
    crowd.listen();
    let refused = crowd.members.len() - crowd.open();
    refusals.sort_unstable();
    let median = refusals.get(refusals.len() / 2).copied().unwrap_or_default();
    findings.fact("let in", crowd.open());
    findings.fact("refused", refused);
    findings.fact("a refusal takes", format!("{:.2} ms (median)", median.as_secs_f64() * 1e3));
    findings.fact("words of refusal", crowd.farewells());
    if scene.is_wide {
        findings.claim("nobody is refused", refused == 0);
    } else {
        findings.claim("some are refused", scene.connections <= 200 || refused > 0);
        if scene.judges_times {
            findings.claim("a refusal takes at most 5 ms", median <= Duration::from_millis(5));
        }
    }
    Ok(findings)
}
