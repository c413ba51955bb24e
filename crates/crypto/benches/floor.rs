//! Cost of the bare cryptography of a message: AES-256-CBC and HMAC-SHA256 of AWS-LC, with reused keyed contexts.
//! Without chunks, headers and copies, it is the lower bound for SignAndEncrypt with Basic256Sha256.
//!
//! `cargo bench -p taktwerk-crypto --features aws-lc --bench floor -- --length BYTES` prints a JSON document. With
//! `--pause MS --burst N`, there is a pause before every N messages, as in a server that publishes ten times a second.
//! Caches and clock frequency then resemble the server's instead of a tight loop's.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)] // a benchmark talks, and has a clock

use aws_lc_rs::cipher::{AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Number of runs; the median is reported.
const RUNS: usize = 21;
/// Bytes per run: some milliseconds.
const RUN_LEN: usize = 8 << 20;
/// A block of AES.
const BLOCK_LEN: usize = 16;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test` and `cargo bench` without arguments only check that this builds and starts.
    let Some(at) = arguments.iter().position(|argument| argument == "--length") else {
        eprintln!("give the length of a message: --length BYTES");
        return ExitCode::SUCCESS;
    };
    let number = |at: usize| -> Option<usize> {
        arguments.get(at + 1).and_then(|text| text.parse().ok()).filter(|number| *number > 0)
    };
    let option = |name: &str| arguments.iter().position(|argument| argument == name).and_then(number);
    let length = number(at);
    let pace = option("--pause").map(|pause| Pace {
        pause: Duration::from_millis(pause as u64),
        burst: option("--burst").unwrap_or(1),
    });
    let measured = length
        .ok_or_else(|| "--length takes a number of bytes".into())
        .and_then(|length| measure(length, pace.as_ref()));
    match measured {
        Ok(nanoseconds) => {
            println!("{{\"length\":{},\"seal_ns\":{nanoseconds:.1}}}", length.unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Timing of messages.
struct Pace {
    /// Pause before every burst.
    pause: Duration,
    /// Number of messages per burst.
    burst: usize,
}

/// Nanoseconds per message: signed, then encrypted in place.
fn measure(length: usize, pace: Option<&Pace>) -> Result<f64, Box<dyn Error>> {
    let cipher = EncryptingKey::cbc(UnboundCipherKey::new(&AES_256, &[7; 32])?)?;
    let signer = hmac::Key::new(hmac::HMAC_SHA256, &[9; 32]);
    let mut message = vec![0x5a; length.next_multiple_of(BLOCK_LEN)];
    let rounds = pace.map_or((RUN_LEN / message.len()).max(16), |pace| pace.burst);
    let mut runs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        if let Some(pace) = pace {
            std::thread::sleep(pace.pause);
        }
        let begin = Instant::now();
        for _ in 0..rounds {
            black_box(hmac::sign(&signer, black_box(&message)));
            let context = EncryptionContext::Iv128(FixedLength::from([3; BLOCK_LEN]));
            cipher.less_safe_encrypt(black_box(&mut message), context)?;
        }
        runs.push(begin.elapsed().as_nanos() as f64 / rounds as f64);
    }
    runs.sort_by(f64::total_cmp);
    runs.get(RUNS / 2).copied().ok_or_else(|| "nothing was measured".into())
}
