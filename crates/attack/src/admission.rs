//! Floods while honest clients log on (see `newcomers`): sessions that are never activated, connections from many
//! addresses, and failed logins that fill the audit file.

use crate::Run;
use crate::guessed::{GUESS, VICTIM};
use crate::newcomers::{Certified, beside};
use crate::report::{Findings, Tally};
use crate::wire::{Raw, Wire, WireError, dial};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::{Duration, Instant};
use taktwerk_schema::UserNameIdentityToken;
use taktwerk_types::ExtensionObject;

/// CreateSession as fast as possible without security, from the address of the canary and of some newcomers.
pub(crate) fn sessions(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let created = AtomicU64::new(0);
    let began = Instant::now();
    let tally = beside(run, &mut findings, |over| {
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..run.connections).map(|_| scope.spawn(|| create(run, over, &created))).collect();
            let mut all = Tally::default();
            threads.into_iter().filter_map(|thread| thread.join().ok()).for_each(|one| all.merge(&one));
            all
        })
    })?;
    let rate = created.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    findings
        .fact("sessions of the attacker", format!("{} created, {rate:.0} per second", created.into_inner()));
    findings.fact("refused", tally);
    Ok(findings)
}

fn create(run: &Run<'_>, over: &AtomicBool, created: &AtomicU64) -> Tally {
    let mut tally = Tally::default();
    while !over.load(Ordering::Relaxed) {
        let mut wire = match Wire::open(run.address, None) {
            Ok(wire) => wire,
            Err(error) => {
                tally.add(format!("connecting: {error}"));
                thread::sleep(Duration::from_millis(20));
                continue;
            }
        };
        while !over.load(Ordering::Relaxed) {
            match wire.create_session() {
                Ok(()) => drop(created.fetch_add(1, Ordering::Relaxed)),
                Err(WireError::Fault(status)) => tally.status(Some(status)),
                Err(error) => {
                    tally.add(error.to_string());
                    break;
                }
            }
        }
    }
    tally
}

/// Connections as fast as possible, each from its own address. Each is closed after 200 newer ones.
pub(crate) fn storm(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let made = AtomicU64::new(0);
    let began = Instant::now();
    beside(run, &mut findings, |over| {
        thread::scope(|scope| {
            for part in 0..2u64 {
                let made = &made;
                scope.spawn(move || connect(run, over, made, part));
            }
        });
    })?;
    let rate = made.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    findings.fact("connections of the attacker", format!("{} made, {rate:.0} per second", made.into_inner()));
    Ok(findings)
}

fn connect(run: &Run<'_>, over: &AtomicBool, made: &AtomicU64, part: u64) {
    let mut alive = std::collections::VecDeque::new();
    let mut number = part;
    while !over.load(Ordering::Relaxed) {
        // The multiplication spreads consecutive connections over the networks.
        let address = number.wrapping_mul(7_919) % run.connections.max(1) as u64;
        number += 2;
        match dial(run.address, run.source(address as usize, 1), None).and_then(Raw::new) {
            Ok(raw) => {
                made.fetch_add(1, Ordering::Relaxed);
                alive.push_back(raw);
            }
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
        if alive.len() > 200 {
            alive.pop_front();
        }
    }
}

/// Failed logins as fast as possible for unknown users, and a few for a user that exists.
pub(crate) fn audit(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let failures = AtomicU64::new(0);
    let began = Instant::now();
    let told = beside(run, &mut findings, |over| {
        thread::scope(|scope| {
            for number in 0..run.connections {
                let failures = &failures;
                scope.spawn(move || fail(run, over, failures, number));
            }
            let mut told = Tally::default();
            for number in 0..GUESSES {
                thread::sleep(Duration::from_millis(400));
                match guess(run, number) {
                    Ok(()) => told.add("let in"),
                    Err(error) => match error.status() {
                        Some(status) => told.status(Some(status)),
                        None => told.add(error.to_string()),
                    },
                }
            }
            told
        })
    })?;
    let rate = failures.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    findings.fact("failures of the attacker", format!("{}, {rate:.0} per second", failures.into_inner()));
    findings.fact(&format!("guesses for {VICTIM:?}"), &told);
    let file = run.keys.folder().join("audit.log");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let name = format!("{VICTIM:?}");
    let lines = text.lines().filter(|line| line.contains(&name) && line.contains("ActivateSession"));
    let found = lines.count();
    findings.fact(
        "of these in the audit file",
        format!("{found}; {} lines, {} bytes in all", text.lines().count(), text.len()),
    );
    findings.claim("all guesses for a user that exists are in the audit file", found >= usize::from(GUESSES));
    Ok(findings)
}

/// Number of guesses for the user that exists.
const GUESSES: u8 = 10;

fn guess(run: &Run<'_>, number: u8) -> Result<(), WireError> {
    let stream = dial(run.address, Some(IpAddr::V4(Ipv4Addr::new(127, 66, number, 7))), None)?;
    let mut user = Certified::connect(run, stream, Duration::ZERO)?;
    user.create()?;
    user.log_on(VICTIM, GUESS)
}

fn fail(run: &Run<'_>, over: &AtomicBool, failures: &AtomicU64, number: usize) {
    let mut attempt = 0u64;
    while !over.load(Ordering::Relaxed) {
        let Ok(mut wire) = Wire::open(run.address, run.source(number, 1)) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !over.load(Ordering::Relaxed) {
            if wire.create_session().is_err() {
                break;
            }
            for _ in 0..20 {
                attempt += 1;
                let token = UserNameIdentityToken {
                    policy_id: "username".into(),
                    user_name: format!("nobody{number}-{attempt}").as_str().into(),
                    password: vec![1; 256].into(),
                    ..UserNameIdentityToken::default()
                };
                match wire.activate(ExtensionObject::new(&token)) {
                    Err(WireError::Fault(_)) => drop(failures.fetch_add(1, Ordering::Relaxed)),
                    _ => break,
                }
            }
        }
    }
}
