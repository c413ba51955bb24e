//! Guessed passwords, from one identity and from a hundred, while a user with the right one logs in.

use super::Scene;
use super::report::{Findings, Tally};
use super::wire::{Wire, WireError};
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Names that are guessed for.
const NAMES: usize = 100;
/// Time between guesses: a server for strangers takes a thousand connections per second of all addresses together. What it
/// does when there are more is another attack (`connects`); here it is asked whether guessing keeps somebody out.
const PACE: Duration = Duration::from_millis(2);
/// The user of `taktwerk serve --interop` that knows its password.
const USER: (&str, &str) = ("user1", "password");

pub(super) fn guess(scene: &Scene<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let mut tally = Tally::default();
    let mut honest = Vec::new();
    let mut locked_out = 0u64;
    let mut by_name: BTreeMap<bool, Tally> = BTreeMap::new();
    let began = Instant::now();
    for attempt in 0..scene.connections {
        if scene.is_over() {
            break;
        }
        let due = PACE * u32::try_from(attempt).unwrap_or(u32::MAX);
        thread::sleep(due.saturating_sub(began.elapsed()));
        // Half of the guesses are for a user that exists, the others for many that do not.
        let exists = attempt % 2 == 0;
        let name = if exists { "user2".to_owned() } else { format!("guest{}", attempt % NAMES) };
        let outcome = match try_login(scene, attempt, &name, "wrong") {
            Ok(_) => "let in".to_owned(),
            Err(error) => {
                error.status().map_or_else(|| "connection broken".to_owned(), |status| status.to_string())
            }
        };
        by_name.entry(exists).or_default().add(outcome.clone());
        tally.add(outcome);
        if attempt % 100 == 0 {
            let began = Instant::now();
            match try_login(scene, usize::MAX, USER.0, USER.1) {
                Ok(()) => honest.push(began.elapsed()),
                Err(_) => locked_out += 1,
            }
        }
    }
    honest.sort_unstable();
    let at = |part: usize| honest.get(honest.len() * part / 100).copied().unwrap_or_default();
    findings.fact("guesses", &tally);
    for (exists, tally) in &by_name {
        findings.fact(if *exists { "for a user that exists" } else { "for users that do not" }, tally);
    }
    findings.fact(
        "logins of the honest user",
        format!("{}, {locked_out} refused; p50 {:.2} ms, p99 {:.2} ms", honest.len(), ms(at(50)), ms(at(99))),
    );
    findings.claim("no guess is let in", tally.count("let in") == 0);
    findings.claim("the honest user is never refused", locked_out == 0 && !honest.is_empty());
    let same = match (by_name.get(&true), by_name.get(&false)) {
        (Some(one), Some(other)) => one.kinds() == other.kinds(),
        _ => scene.connections < 2,
    };
    findings.claim("users that exist get the same answers as others", same);
    Ok(findings)
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

fn try_login(scene: &Scene<'_>, number: usize, name: &str, password: &str) -> Result<(), WireError> {
    let source = if number == usize::MAX { None } else { scene.source(number % NAMES, 1) };
    let mut wire = Wire::open(scene.address, source)?;
    wire.create_session()?;
    wire.login(name, password)
}
