//! Password guessing for one user, for a hundred names, and for new names, while two users with correct passwords log
//! in: one from its usual address, the other from a new address each time.

use crate::Run;
use crate::guessed::{GUESS, HONEST, VICTIM};
use crate::report::{Findings, Tally};
use crate::wire::{Wire, WireError};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of names that are guessed repeatedly, and of addresses that guess.
const NAMES: usize = 100;
/// Number of concurrent guesses.
const GUESSERS: usize = 64;
/// Time between guesses. With `--guarded` limits, a server accepts 1000 connections per second of all addresses
/// together. A higher rate is another attack (`connects`).
const PACE: Duration = Duration::from_millis(2);
/// Time between logins of the honest users.
const HONEST_EVERY: Duration = Duration::from_millis(200);
/// Number of logins before the attack, as a baseline.
const CALM: usize = 20;
/// Maximum slowdown of logins from a known address.
const SLOWER_MAX: f64 = 2.0;

/// The kinds of guesses, in turns.
const KINDS: [&str; 3] = ["for a user that exists", "for a hundred names", "for ever new names"];

fn name(attempt: usize) -> String {
    match attempt % KINDS.len() {
        0 => VICTIM.to_owned(),
        1 => format!("guest{}", attempt % NAMES),
        _ => format!("nobody{attempt}"),
    }
}

/// Logins of one honest user.
#[derive(Default)]
struct Logins {
    times: Vec<Duration>,
    refused: Tally,
}

impl Logins {
    fn try_one(&mut self, run: &Run<'_>, source: Option<IpAddr>) {
        let began = Instant::now();
        match try_login(run, source, HONEST.0, HONEST.1) {
            Ok(()) => self.times.push(began.elapsed()),
            Err(error) => self.refused.status(error.status()),
        }
    }

    fn at(&self, part: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() * part / 100).or(times.last()).copied().unwrap_or_default()
    }

    fn is_served(&self) -> bool {
        !self.times.is_empty() && self.refused.kinds().is_empty()
    }
}

impl core::fmt::Display for Logins {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (p50, p99) = (ms(self.at(50)), ms(self.at(99)));
        write!(f, "{}: p50 {p50:.1} ms, p99 {p99:.1} ms; refused: {}", self.times.len(), self.refused)
    }
}

pub(crate) fn guess(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut calm = Logins::default();
    for _ in 0..CALM {
        calm.try_one(run, None);
    }
    let (over, next, began) = (AtomicBool::new(false), AtomicUsize::new(0), Instant::now());
    let (tallies, usual, elsewhere) = thread::scope(|scope| {
        let guessers: Vec<_> =
            (0..GUESSERS.min(run.connections)).map(|_| scope.spawn(|| guesses(run, &next, began))).collect();
        let honest = scope.spawn(|| {
            let (mut usual, mut elsewhere) = (Logins::default(), Logins::default());
            let mut number = 0u16;
            while !over.load(Ordering::Relaxed) {
                usual.try_one(run, None);
                elsewhere.try_one(run, somewhere(run, number));
                number = number.wrapping_add(1);
                thread::sleep(HONEST_EVERY);
            }
            (usual, elsewhere)
        });
        let tallies: Vec<_> = guessers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        let (usual, elsewhere) = honest.join().unwrap_or_default();
        (tallies, usual, elsewhere)
    });
    let mut all: [Tally; 3] = Default::default();
    for tally in tallies {
        let tally = tally.map_err(|_| "a guesser panicked")?;
        all.iter_mut().zip(&tally).for_each(|(all, one)| all.merge(one));
    }
    for (kind, tally) in KINDS.iter().zip(&all) {
        findings.fact(&format!("guesses {kind}"), tally);
    }
    findings.fact("logins before", &calm);
    findings.fact("from the usual address", &usual);
    findings.fact("from ever new addresses", &elsewhere);
    findings.claim("no guess succeeds", all.iter().all(|tally| tally.count("let in") == 0));
    findings.claim("honest users are never refused", usual.is_served() && elsewhere.is_served());
    let [exists, others @ ..] = &all;
    let same = others.iter().all(|other| other.kinds() == exists.kinds());
    findings.claim("users that exist get the same answers as others", same || run.connections < KINDS.len());
    if run.judges_times {
        let claim = format!("users at known addresses wait at most {SLOWER_MAX} times as long (p99)");
        findings.claim(claim, ms(usual.at(99)) <= SLOWER_MAX * ms(calm.at(99)));
        let claim = format!(
            "users at new addresses wait for at most one check for each of {GUESSERS} guessers (p99)"
        );
        findings.claim(claim, ms(elsewhere.at(99)) <= (GUESSERS + 1) as f64 * ms(calm.at(50)));
    }
    Ok(findings)
}

/// Guesses until all guesses are made.
fn guesses(run: &Run<'_>, next: &AtomicUsize, began: Instant) -> [Tally; 3] {
    let mut tallies: [Tally; 3] = Default::default();
    loop {
        let attempt = next.fetch_add(1, Ordering::Relaxed);
        if attempt >= run.connections || run.is_over() {
            return tallies;
        }
        let due = PACE * u32::try_from(attempt).unwrap_or(u32::MAX);
        thread::sleep(due.saturating_sub(began.elapsed()));
        let outcome = match try_login(run, run.source(attempt % NAMES, 1), &name(attempt), GUESS) {
            Ok(()) => "let in".to_owned(),
            Err(error) => {
                error.status().map_or_else(|| "connection broken".to_owned(), |status| status.to_string())
            }
        };
        if let Some(tally) = tallies.get_mut(attempt % KINDS.len()) {
            tally.add(outcome);
        }
    }
}

/// An address that no other client uses.
fn somewhere(run: &Run<'_>, number: u16) -> Option<IpAddr> {
    run.source(0, 1).map(|_| IpAddr::V4(Ipv4Addr::from(0x7f40_0001 + u32::from(number))))
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

fn try_login(run: &Run<'_>, source: Option<IpAddr>, name: &str, password: &str) -> Result<(), WireError> {
    let mut wire = Wire::open(run.address, source)?;
    wire.create_session()?;
    wire.login(name, password)
}
