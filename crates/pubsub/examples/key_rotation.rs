//! Ten million messages over a hundred keys of AES-256-CTR (security acceptance 34):
//!
//! ```text
//! cargo run --release -p taktwerk-pubsub --example key_rotation [MESSAGES [MESSAGES_PER_KEY [SEED]]]
//! ```
//!
//! Prints a report and exits with 99 if a guarantee was violated.
#![allow(clippy::print_stdout, clippy::print_stderr)] // that is what it is for

#[path = "../tests/messages/endurance/mod.rs"]
mod endurance;

use endurance::{Plan, run};
use std::process::ExitCode;
use std::sync::Arc;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;

fn main() -> ExitCode {
    let mut numbers = [10_000_000, 100_000, 1];
    for (number, text) in numbers.iter_mut().zip(std::env::args().skip(1)) {
        match text.parse() {
            Ok(given) if given > 0 => *number = given,
            _ => {
                eprintln!("{text:?} is not a number: key_rotation [MESSAGES [MESSAGES_PER_KEY [SEED]]]");
                return ExitCode::from(2);
            }
        }
    }
    let [messages, messages_per_key, seed] = numbers;
    // A key must live longer than the service's minimum of 100 ms and than the maximum delay of the link.
    if messages_per_key < 400 {
        eprintln!("{messages_per_key} messages per key are too few: the minimum is 400");
        return ExitCode::from(2);
    }
    let mut told = 0;
    let report = run(Plan { messages, messages_per_key, seed }, Arc::new(AwsPubSubProvider), |sent| {
        if sent >= told + messages.div_ceil(10) {
            told = sent;
            eprintln!("{sent} of {messages} sent");
        }
    });
    for (name, count) in [
        ("messages sent", report.sent),
        ("keys used", report.keys),
        ("publisher restarts", report.restarts),
        ("calls of GetSecurityKeys", report.key_requests),
        ("  of these not answered", report.key_requests_failed),
        ("dropped by the link", report.dropped),
        ("delivered", report.delivered),
        ("copies and old messages offered", report.replays_offered),
        ("forged messages offered", report.forged_offered),
        ("refused as replays", report.replays_refused),
        ("refused by security, total", report.refused_by_security),
        ("nonces", report.nonces),
        ("nonces used twice", report.nonces_repeated),
        ("valid messages lost", report.lost),
        ("forged or replayed messages accepted", report.wrong),
    ] {
        println!("{name:<36} {count:>12}");
    }
    println!("{}", if report.holds() { "holds" } else { "DOES NOT HOLD" });
    ExitCode::from(if report.holds() { 0 } else { 99 })
}
