//! Invalid handshakes that the server must check, at a rate below the connection limit. One third have valid
//! certificates of unknown clients. The others use the trusted certificate, with a wrong signature or with random bytes
//! instead of ciphertext.

use crate::Run;
use crate::report::{Findings, Tally};
use crate::timing::{Broken, POLICY, message, refusal};
use std::fs::read_dir;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use taktwerk_pki::{CertificateSettings, NewKey, PrivateKey, REJECTED_MAX, create};
use taktwerk_types::StatusCode;

/// Number of concurrent handshakes.
const AT_A_TIME: usize = 64;
/// Time between handshakes. With `--guarded` limits, a server accepts 1000 connections per second of all addresses
/// together.
const PACE: Duration = Duration::from_micros(1_250);
/// Number of untrusted certificates: more than the store of rejected certificates keeps.
const STRANGERS: usize = 150;
/// Number of different requests of each kind with the trusted certificate.
const VARIANTS: usize = 50;

const KINDS: [&str; 3] = ["of unknown clients", "with a wrong signature", "of random bytes"];

/// Sends the handshakes of all kinds in turns.
pub(crate) fn handshakes(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let messages = messages(run)?;
    let (next, began) = (AtomicUsize::new(0), Instant::now());
    let tallies: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_A_TIME.min(run.connections))
            .map(|_| scope.spawn(|| send(run, &messages, &next, began)))
            .collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let took = began.elapsed();
    let mut all: [Tally; KINDS.len()] = Default::default();
    for tally in tallies {
        let tally = tally.map_err(|_| "a sender panicked")?;
        all.iter_mut().zip(&tally).for_each(|(all, one)| all.merge(one));
    }
    let looked_at = StatusCode::BAD_SECURITY_CHECKS_FAILED.to_string();
    for (kind, tally) in KINDS.iter().zip(&all) {
        findings.fact(&format!("handshakes {kind}"), tally);
    }
    let rate = run.connections as f64 / took.as_secs_f64();
    let checked: u64 = all.iter().map(|tally| tally.count(&looked_at)).sum();
    findings.fact("rate", format!("{rate:.0} per second, {checked} of {} were looked at", run.connections));
    let kept = read_dir(run.keys.server().join("rejected/certs")).map_or(0, Iterator::count);
    findings.fact("kept of those that were refused", format!("{kept} certificates"));
    // Shed connections get Bad_TcpServerTooBusy and no other status.
    let busy = StatusCode::BAD_TCP_SERVER_TOO_BUSY.to_string();
    let refused = |tally: &Tally| tally.kinds().iter().all(|kind| *kind == looked_at || *kind == busy);
    findings.claim("all are refused, because of security or overload", all.iter().all(refused));
    // Half of them, because it is random which are shed.
    let half = run.connections as u64 / (2 * KINDS.len() as u64);
    let is_looked_at = |tally: &Tally| tally.count(&looked_at) >= half;
    findings.claim("at least half of each kind were checked", all.iter().all(is_looked_at));
    // Writes to the store are rate limited, so the number depends on the duration.
    let claim = format!("at most {REJECTED_MAX} certificates are kept, and some are");
    findings.claim(claim, (1..=REJECTED_MAX).contains(&kept));
    Ok(findings)
}

/// All requests by kind.
fn messages(run: &Run<'_>) -> Result<[Vec<Vec<u8>>; KINDS.len()], String> {
    let provider = run.keys.canary();
    let own = provider.own_certificate(POLICY).ok_or("there is no certificate")?.to_vec();
    // One key is enough, because its signature is never verified.
    let key = PrivateKey::generate(NewKey::Rsa2048).map_err(|error| error.to_string())?;
    let stranger = |number: usize| {
        let settings =
            CertificateSettings::new(&format!("stranger {number}"), &format!("urn:stranger:{number}"));
        let certificate = create::self_signed(&settings, &key).map_err(|error| error.to_string())?;
        message(run, certificate.der(), Broken::Signature, number)
    };
    let trusted = |kind: Broken| -> Result<Vec<_>, String> {
        (0..VARIANTS).map(|number| message(run, &own, kind, number)).collect()
    };
    Ok([
        (0..STRANGERS).map(stranger).collect::<Result<_, _>>()?,
        trusted(Broken::Signature)?,
        trusted(Broken::Cipher)?,
    ])
}

/// Sends until all handshakes are sent.
fn send(
    run: &Run<'_>,
    messages: &[Vec<Vec<u8>>; KINDS.len()],
    next: &AtomicUsize,
    began: Instant,
) -> [Tally; KINDS.len()] {
    let mut tallies: [Tally; KINDS.len()] = Default::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= run.connections || run.is_over() {
            return tallies;
        }
        let due = PACE * u32::try_from(number).unwrap_or(u32::MAX);
        thread::sleep(due.saturating_sub(began.elapsed()));
        let (kind, turn) = (number % KINDS.len(), number / KINDS.len());
        let variants = messages.get(kind).map_or(&[][..], Vec::as_slice);
        let Some(message) = variants.get(turn % variants.len().max(1)) else { return tallies };
        let Some(tally) = tallies.get_mut(kind) else { return tallies };
        match refusal(run, number, message) {
            Ok((_, raw)) => tally.status(raw.error()),
            Err(error) => tally.add(format!("connection: {}", error.kind())),
        }
    }
}
