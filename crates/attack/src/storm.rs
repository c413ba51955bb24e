//! Connections and handshakes as fast as possible.

use crate::Run;
use crate::report::{Findings, Tally};
use crate::wire::{Raw, dial, hello, open};
use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

/// How long the server may take to send something.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of open connections.
const ALIVE_MAX: usize = 200;

/// Connects and closes as fast as possible, each from its own address.
pub(crate) fn connects(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let (made, tally) = storm(run, false, |_| {});
    let rate = made as f64 / run.duration.as_secs_f64();
    findings.fact("connections", format!("{made}, {rate:.0} per second"));
    findings.fact("outcome", tally);
    Ok(findings)
}

/// OpenSecureChannel with an RSA policy, an invalid certificate and a random body, faster than connections are
/// admitted. Handshakes behind admission are tested by `forged`.
pub(crate) fn opens(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let policy = "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256";
    let mut noise = vec![0u8; 512];
    for (at, byte) in noise.iter_mut().enumerate() {
        *byte = (at * 167 + 13) as u8;
    }
    let mut message = hello();
    message.extend_from_slice(&open(policy, Some(&[0x30; 900]), Some(&[7; 20]), &noise));
    let (made, tally) = storm(run, true, |raw| {
        raw.send(&message);
    });
    let rate = made as f64 / run.duration.as_secs_f64();
    let held = tally.count("open until it was closed here");
    findings.fact("requests", format!("{made}, {rate:.0} per second"));
    findings.fact("outcome", tally);
    findings.claim("all are refused", held == 0);
    Ok(findings)
}

/// Connects until the time is over. Each connection is closed after [`ALIVE_MAX`] newer ones.
fn storm(run: &Run<'_>, expects_words: bool, mut greet: impl FnMut(&mut Raw)) -> (u64, Tally) {
    let mut tally = Tally::default();
    let mut alive: VecDeque<(Raw, Instant)> = VecDeque::new();
    let (mut made, mut number) = (0, 0);
    let end = Instant::now() + run.duration;
    while Instant::now() < end && !run.is_over() {
        number += 1;
        match dial(run.address, run.source(number % run.connections.max(1), 1), None).and_then(Raw::new) {
            Ok(mut raw) => {
                made += 1;
                greet(&mut raw);
                alive.push_back((raw, Instant::now()));
            }
            Err(error) => {
                tally.add(format!("connect: {}", error.kind()));
                thread::sleep(Duration::from_millis(1));
            }
        }
        let is_old = |since: &Instant| since.elapsed() > PATIENCE;
        while alive.len() > ALIVE_MAX || alive.front().is_some_and(|(_, since)| is_old(since)) {
            let Some((raw, since)) = alive.pop_front() else { break };
            settle(raw, since, &mut tally, expects_words);
        }
    }
    for (raw, since) in alive {
        settle(raw, since, &mut tally, expects_words);
    }
    (made, tally)
}

/// Records how a connection ended, after waiting for an Error message if one is expected.
fn settle(mut raw: Raw, since: Instant, tally: &mut Tally, expects_words: bool) {
    raw.listen();
    while expects_words && !raw.is_closed && raw.error().is_none() && since.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
        raw.listen();
    }
    if raw.is_closed || raw.error().is_some() {
        tally.status(raw.error());
    } else {
        tally.add("open until it was closed here");
    }
}
