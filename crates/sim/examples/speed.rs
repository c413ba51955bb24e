//! Measures the speed of the simulator on one processor of this machine: `cargo xtask simulate --speed`.
//!
//! Processor time is measured, not real time, which can be several times longer on a busy machine.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line talks

use std::process::ExitCode;
use std::time::Duration;
use taktwerk_sim::campaign;
use taktwerk_sim::publishing::{PublishRequests, Settings, Setup, Signals, simulate};

/// Repetitions of each load. The fastest one counts, because other programs can only slow it down.
const REPETITIONS: u32 = 3;
/// Number of seeds in the timed campaign.
const SEEDS: u64 = 100;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    println!("load                            virtual s       CPU s   virtual/CPU     events/s");
    for interval in [15, 35, 100] {
        time(&format!("cavalieri-publish, {interval} ms"), || publish(interval))?;
    }
    time(&format!("campaign, {SEEDS} seeds"), || {
        let mut sum = (0.0, 0);
        for seed in 0..SEEDS {
            let outcome = campaign::run(&campaign::script(seed), seed).map_err(|error| error.to_string())?;
            sum = (sum.0 + outcome.simulated, sum.1 + outcome.events);
        }
        Ok(sum)
    })
}

/// Processor time of this thread in seconds, from the kernel.
fn processor_time() -> Result<f64, String> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    let nanos = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    nanos.map(|nanos| nanos / 1e9).ok_or_else(|| format!("{path} has no number"))
}

/// Three sets of five variables at 5, 10 and 15 ms over 2 Mbit/s with 30 % other traffic (Cavalieri and Chiacchio
/// 2013).
fn publish(interval_ms: u64) -> Result<(f64, u64), String> {
    let link = "ppp-2m,busy=30%".parse().map_err(|error| format!("the link: {error}"))?;
    let signals =
        [5, 10, 15].map(|period| Signals { count: 5, period: Duration::from_millis(period), value_len: 4 });
    let mut setup = Setup::new(link, signals.to_vec());
    setup.measured = Duration::from_secs(60);
    let mut settings = Settings::new(Duration::from_millis(interval_ms));
    settings.publish_requests = PublishRequests::Every { percent: 80 };
    let outcome = simulate(&setup, &settings).map_err(|error| error.to_string())?;
    Ok((outcome.simulated, outcome.events))
}

fn time(name: &str, mut load: impl FnMut() -> Result<(f64, u64), String>) -> Result<(), String> {
    let mut best: Option<(f64, f64, u64)> = None;
    for _ in 0..REPETITIONS {
        let started = processor_time()?;
        let (simulated, events) = load()?;
        let took = processor_time()? - started;
        if best.is_none_or(|(least, ..)| took < least) {
            best = Some((took, simulated, events));
        }
    }
    let Some((took, simulated, events)) = best else { return Ok(()) };
    let (ratio, rate) = (simulated / took, events as f64 / took);
    println!("{name:<28} {simulated:>12.1} {took:>11.3} {ratio:>13.0} {rate:>12.0}");
    Ok(())
}
