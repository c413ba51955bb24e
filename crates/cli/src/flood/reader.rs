//! Clients that ask and never read.

use super::Scene;
use super::crowd::{Crowd, Member};
use super::report::Findings;
use super::wire::{Raw, Wire, dial};
use std::time::{Duration, Instant};
use taktwerk_schema::{ReadRequest, ReadValueId};
use taktwerk_types::NodeId;

/// How long a server keeps a connection that takes nothing, and some.
const PATIENCE: Duration = Duration::from_secs(75);
/// All unsent bytes that a server keeps for strangers, and its overhead.
const UNSENT_MAX: u64 = (256 + 64) << 20;

pub(super) fn zero_window(scene: &Scene<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let (before, files) = (scene.rss(), scene.files());
    let mut crowd = Crowd::default();
    let mut asked = 0u64;
    for number in 0..scene.connections {
        if scene.is_over() {
            break;
        }
        let ask = || -> Result<(Raw, u64), super::wire::WireError> {
            let stream = dial(scene.address, scene.source(number, 40), Some(4096))?;
            // Requests are small, so that all of them fit the server's receive buffer and ours.
            let mut wire = Wire::open_with(stream)?;
            wire.create_session()?;
            wire.activate(taktwerk_types::ExtensionObject::NULL)?;
            let mut asked = 0;
            let node_id = NodeId::numeric(0, 2256);
            let node = ReadValueId { node_id, attribute_id: 13, ..ReadValueId::default() };
            for _ in 0..20 {
                let mut request =
                    ReadRequest { nodes_to_read: vec![node.clone(); 500], ..ReadRequest::default() };
                wire.send(&mut request)?;
                asked += 1;
            }
            Ok((Raw::new(wire.into_stream())?, asked))
        };
        match ask() {
            Ok((raw, count)) => {
                asked += count;
                crowd.members.push(Member { raw, since: Instant::now(), ended: None });
            }
            Err(_) => crowd.failed += 1,
        }
    }
    let held = scene.rss().saturating_sub(before);
    // Nothing is read, so the end of a connection does not show here: the server's open files tell.
    let began = Instant::now();
    let mut left = scene.files().saturating_sub(files);
    while left > 0 && began.elapsed() < scene.patience(PATIENCE) && !scene.is_over() {
        std::thread::sleep(Duration::from_millis(500));
        left = scene.files().saturating_sub(files);
    }
    let took = began.elapsed();
    let peak = scene.peak().saturating_sub(before);
    findings
        .fact("connected", format!("{} (failed: {}), {asked} requests", crowd.members.len(), crowd.failed));
    findings.fact("memory while nobody reads", format!("{:.1} MiB more", held as f64 / f64::from(1 << 20)));
    findings.fact("closed by the server", format!("after {:.1} s, {left} left", took.as_secs_f64()));
    findings.claim("all are closed", left == 0 && !crowd.members.is_empty());
    if scene.judges_times {
        findings.claim("memory stays within the budget of unsent bytes", peak <= UNSENT_MAX);
    }
    Ok(findings)
}
