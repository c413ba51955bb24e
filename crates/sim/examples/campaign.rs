//! Runs a campaign on this machine: `cargo xtask simulate`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)] // a command line talks and has a clock

use core::sync::atomic::{AtomicBool, Ordering};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use taktwerk_model::HostProfile;
use taktwerk_sim::campaign;
use taktwerk_sim::campaign::series::{Options, Series};
use taktwerk_sim::scenario::text::to_toml;
use taktwerk_sim::scenario::{self, RunError};

/// Maximum number of simulations for finding the shortest script.
const SHRINK_RUNS: usize = 2_000;
/// Interval between progress messages.
const TELL_EVERY: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => campaign(options),
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn campaign(options: Options) -> ExitCode {
    let (series, is_over) = (Series::new(options), AtomicBool::new(false));
    let started = Instant::now();
    let goes_on = || options.longest.is_none_or(|longest| started.elapsed() < longest);
    let work = || series.work(&goes_on, &|seed, error| eprintln!("seed {seed}: {error}"));
    let mut has_panicked = false;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.threads).map(|_| scope.spawn(work)).collect();
        scope.spawn(|| {
            let mut told = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(100));
                if told.elapsed() >= TELL_EVERY {
                    told = Instant::now();
                    eprintln!("{}", progress(&series, options, started.elapsed()));
                }
            }
        });
        for worker in workers {
            // A panic of a simulation is an error of its seed; this one is of the campaign itself.
            has_panicked |= worker.join().is_err();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!(
        "{} seeds from {}: {:.0} s of virtual time, {} events, {:.1} s on {} threads",
        series.done(),
        options.from,
        series.simulated().as_secs_f64(),
        series.events(),
        started.elapsed().as_secs_f64(),
        options.threads
    );
    if let Some(seed) = series.failed() {
        tell_shortest(seed);
        return ExitCode::FAILURE;
    }
    if has_panicked { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn progress(series: &Series, options: Options, elapsed: Duration) -> String {
    let done = series.done();
    let hours = |span: Duration| span.as_secs_f64() / 3600.0;
    let seeds = if options.seeds == u64::MAX {
        format!("{done} seeds")
    } else {
        format!("{done} of {} seeds", options.seeds)
    };
    match options.longest {
        Some(longest) => format!("{seeds}, {:.2} of {:.2} hours", hours(elapsed), hours(longest)),
        None => seeds,
    }
}

fn tell_shortest(seed: u64) {
    // A panic was reported already; each smaller script may panic again.
    std::panic::set_hook(Box::new(|_| {}));
    let Some((shortest, error)) = campaign::shortest(&campaign::script(seed), seed, SHRINK_RUNS) else {
        return;
    };
    println!("\nseed {seed}: {error}");
    if matches!(
        scenario::run(&shortest, seed, &mut |_| true),
        Err(RunError::Broken(_) | RunError::Panicked(_))
    ) {
        println!("shortest script; run it with `taktwerk sim FILE --seeds 1 --seed {seed}`:\n");
    } else {
        println!(
            "shortest script; it fails after the clients were told to leave, which `taktwerk sim` does not do. Repeat it \
             with `cargo xtask simulate --from {seed} --seeds 1`:\n"
        );
    }
    println!("{}", to_toml(&shortest, &format!("seed {seed}")));
    for profile in shortest.hosts.iter().map(|host| &host.profile) {
        if *profile != HostProfile::free(profile.machine.cores) {
            println!("the file {:?} beside it:\n\n{}", profile.name, profile.to_toml());
        }
    }
}
