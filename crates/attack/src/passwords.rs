//! Failed logins: whether the response time reveals whether a user exists (Part 4 §7.40, `docs/security/README.md`).

use crate::Run;
use crate::guessed::{GUESS, VICTIM};
use crate::report::{Findings, Tally};
use crate::wire::{Wire, WireError};
use std::time::{Duration, Instant};
use taktwerk_lab::statistics::{median, median_ratio};

/// Maximum difference of the medians, as a share of a check. A search among thousands of users would show much more.
const DIFFERENCE_MAX: f64 = 0.03;
/// Number of guesses per name and address that the server checks. Later ones are refused without a check.
const FREE: usize = 5;
/// Refusals of each kind in a round. They take only microseconds and vary as much, so many are needed.
const LOCKED_ROUND: usize = 25;
/// Number of checked guesses per round of lockout refusals.
const GUESSES_PER_ROUND: usize = 10;

/// One kind of login, with response times in microseconds.
struct Kind {
    title: &'static str,
    name: fn(usize) -> String,
    times: Vec<f64>,
}

fn kinds(titles: [&'static str; 2]) -> [Kind; 2] {
    let [exists, not] = titles;
    [
        Kind { title: exists, name: |_| VICTIM.to_owned(), times: Vec::new() },
        Kind { title: not, name: |number| format!("nobody{number}"), times: Vec::new() },
    ]
}

pub(crate) fn compare(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut tally = Tally::default();
    let mut wrong = kinds(["wrong password", "no such user"]);
    let mut locked = kinds(["locked out", "locked out, no such user"]);
    let mut failed = 0u64;
    // Every guess has its own address, so that all of them are checked.
    for number in 0..run.connections {
        if run.is_over() {
            break;
        }
        // The order changes, so that a slower machine affects both kinds alike.
        let at = (number + number / 2) % 2;
        let Some(kind) = wrong.get_mut(at) else { continue };
        match refusal(run, number, &(kind.name)(number), &mut tally) {
            Ok(took) => kind.times.push(took),
            Err(_) => failed += 1,
        }
    }
    // Several logins from one address, to measure lockout.
    let rounds = run.connections / GUESSES_PER_ROUND;
    for round in 0..rounds {
        if run.is_over() {
            break;
        }
        let source = run.connections + round;
        // The fifth failure locks out for at least one second.
        for kind in &locked {
            for _ in 0..FREE {
                failed += u64::from(refusal(run, source, &(kind.name)(round), &mut tally).is_err());
            }
        }
        // Interleaved, because machine noise is larger than the effect that is measured.
        for attempt in 0..2 * LOCKED_ROUND {
            let Some(kind) = locked.get_mut((attempt + attempt / 2) % 2) else { continue };
            match refusal(run, source, &(kind.name)(round), &mut tally) {
                Ok(took) => kind.times.push(took),
                Err(_) => failed += 1,
            }
        }
    }
    let mut largest = 0.0f64;
    for pair in [&wrong, &locked] {
        let [exists, ..] = pair;
        for kind in pair {
            let (ratio, (low, high)) =
                median_ratio(&kind.times, &exists.times).ok_or("no login was refused")?;
            let median = median(&kind.times).unwrap_or_default();
            largest = largest.max((ratio - 1.0).abs());
            let ratio = format!("{ratio:.3} of {:?} (between {low:.3} and {high:.3})", exists.title);
            findings.fact(kind.title, format!("{}: median {median:.1} us, {ratio}", kind.times.len()));
        }
    }
    findings.fact("told", format!("{tally}, failed: {failed}"));
    findings.claim("all get the same status", tally.kinds().len() == 1 && failed == 0);
    if run.judges_times {
        let claim =
            format!("whether the user exists changes a median by at most {:.0} %", DIFFERENCE_MAX * 100.0);
        findings.claim(claim, largest <= DIFFERENCE_MAX);
    }
    Ok(findings)
}

/// The time in microseconds that the server takes to refuse a guess.
fn refusal(run: &Run<'_>, source: usize, name: &str, tally: &mut Tally) -> Result<f64, WireError> {
    let mut wire = Wire::open(run.address, run.source(source, 1))?;
    wire.create_session()?;
    let began = Instant::now();
    let answer = wire.login(name, GUESS);
    let took: Duration = began.elapsed();
    match answer {
        Ok(()) => tally.add("let in"),
        Err(error @ (WireError::Io(_) | WireError::Protocol(_))) => return Err(error),
        Err(error) => tally.status(error.status()),
    }
    Ok(took.as_secs_f64() * 1e6)
}
