//! Messages that never end.

use crate::Run;
use crate::report::{Findings, Tally};
use crate::wire::{Raw, Wire, chunk_head};
use std::thread;
use std::time::{Duration, Instant};

/// Size of a chunk, in bytes.
const CHUNK: u32 = 65_536;
/// Maximum growth of memory: the budget of incomplete messages and an overhead.
const GROWTH_MAX: u64 = (64 + 32) << 20;

struct Talker {
    raw: Raw,
    channel: u32,
    sequence: u32,
    /// The unsent rest of the current chunk.
    left: Vec<u8>,
}

/// Sends intermediate chunks on all connections until `run.bytes` bytes are sent. Closed connections are replaced.
pub(crate) fn endless(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let before = run.rss();
    let mut talkers: Vec<Option<Talker>> = (0..run.connections).map(|_| None).collect();
    let mut tally = Tally::default();
    let (mut sent, mut opened, mut failed) = (0u64, 0u64, 0u64);
    let end = Instant::now() + run.duration.max(Duration::from_secs(1)) * 30;
    while sent < run.bytes && Instant::now() < end && !run.is_over() {
        let mut moved = false;
        for (number, place) in talkers.iter_mut().enumerate() {
            if place.is_none() {
                match start(run, number) {
                    Some(talker) => {
                        opened += 1;
                        *place = Some(talker);
                    }
                    None => failed += 1,
                }
            }
            let Some(talker) = place else { continue };
            let count = talker.talk();
            sent += count as u64;
            moved |= count > 0;
            if talker.raw.is_closed {
                talker.raw.listen();
                tally.status(talker.raw.error());
                *place = None;
                moved = true;
            }
        }
        if !moved {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let growth = run.peak().saturating_sub(before);
    findings.fact("sent", format!("{:.1} MB on {opened} connections (failed: {failed})", sent as f64 / 1e6));
    findings.fact("ended by the server", tally);
    findings.fact("memory", format!("{:.1} MiB more at most", growth as f64 / f64::from(1 << 20)));
    findings.claim("all bytes were sent", sent >= run.bytes);
    if run.judges_times {
        let claim = "memory grows by the budget of incomplete messages + 32 MiB at most";
        findings.claim(claim, growth <= GROWTH_MAX);
    }
    Ok(findings)
}

fn start(run: &Run<'_>, number: usize) -> Option<Talker> {
    let wire = Wire::open(run.address, run.source(number, 2)).ok()?;
    let channel = wire.channel_id();
    let raw = Raw::new(wire.into_stream()).ok()?;
    Some(Talker { raw, channel, sequence: 1, left: Vec::new() })
}

impl Talker {
    /// Sends as much of a chunk as the kernel accepts.
    fn talk(&mut self) -> usize {
        if self.left.is_empty() {
            self.sequence += 1;
            self.left = chunk_head(b'C', CHUNK, self.channel, 1, self.sequence, 7);
            self.left.resize(CHUNK as usize, 0x55);
        }
        let count = self.raw.send(&self.left);
        self.left.drain(..count);
        self.raw.listen();
        count
    }
}
