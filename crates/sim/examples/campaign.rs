//! A campaign on this machine: `cargo xtask simulate`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)] // a command line talks and has a clock

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use taktwerk_sim::campaign;
use taktwerk_sim::scenario::text::to_toml;

/// Most simulations to find the shortest script.
const SHRINK_RUNS: usize = 2_000;
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

struct Options {
    seeds: u64,
    from: u64,
    threads: u64,
}

fn options() -> Result<Options, String> {
    let mut options = Options { seeds: 2_000, from: 0, threads: 2 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse::<u64>().ok());
        let place = match name.as_str() {
            "--seeds" => &mut options.seeds,
            "--from" => &mut options.from,
            "--threads" => &mut options.threads,
            _ => return Err(format!("unknown option {name}: use --seeds N, --from SEED, --threads N")),
        };
        *place = value.ok_or_else(|| format!("{name} needs a number"))?;
    }
    options.threads = options.threads.clamp(1, 256);
    Ok(options)
}

fn main() -> ExitCode {
    match options() {
        Ok(options) => campaign(&options),
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn campaign(options: &Options) -> ExitCode {
    let (next, done, events) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (simulated_ms, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    // The first seed that fails: which one is told does not depend on threads.
    let first = AtomicU64::new(u64::MAX);
    let started = Instant::now();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.seeds || number > first.load(Ordering::Relaxed) {
                return;
            }
            let seed = options.from.wrapping_add(number);
            match campaign::run(&campaign::script(seed), seed) {
                Ok(outcome) => {
                    events.fetch_add(outcome.events, Ordering::Relaxed);
                    simulated_ms.fetch_add((outcome.simulated * 1e3) as u64, Ordering::Relaxed);
                }
                Err(error) => {
                    eprintln!("seed {seed}: {error}");
                    first.fetch_min(number, Ordering::Relaxed);
                }
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.threads).map(|_| scope.spawn(work)).collect();
        scope.spawn(|| {
            let mut told = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(100));
                if told.elapsed() >= TELL_EVERY {
                    told = Instant::now();
                    eprintln!("{} of {} seeds", done.load(Ordering::Relaxed), options.seeds);
                }
            }
        });
        for worker in workers {
            if worker.join().is_err() {
                eprintln!("a simulation panicked");
                first.fetch_min(u64::MAX - 1, Ordering::Relaxed);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let took = started.elapsed().as_secs_f64();
    let (done, events) = (done.into_inner(), events.into_inner());
    println!(
        "{done} seeds from {}: {:.0} s of virtual time, {events} events, {took:.1} s on {} threads",
        options.from,
        simulated_ms.into_inner() as f64 / 1e3,
        options.threads
    );
    match first.into_inner() {
        u64::MAX => ExitCode::SUCCESS,
        number if number >= options.seeds => ExitCode::FAILURE,
        number => {
            tell_shortest(options.from.wrapping_add(number));
            ExitCode::FAILURE
        }
    }
}

fn tell_shortest(seed: u64) {
    let Some((shortest, error)) = campaign::shortest(&campaign::script(seed), seed, SHRINK_RUNS) else {
        return;
    };
    println!(
        "\nseed {seed}: {error}\nshortest script; run it with `taktwerk sim FILE --seeds 1 --seed {seed}`:\n"
    );
    println!("{}", to_toml(&shortest, &format!("seed {seed}")));
}
