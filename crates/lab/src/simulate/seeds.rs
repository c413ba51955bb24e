//! Runs each case with each seed on all processors. The outcomes do not depend on the number of threads.

use super::study::Case;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;
use taktwerk_load::clock::thread_cpu;
use taktwerk_sim::scenario::{Instruments, Outcome, Progress, RunError, run_with};

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The number of its case.
    pub case: usize,
    /// Its seed.
    pub seed: u64,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its processor time: its real duration if nothing else runs on the processor.
    pub took: Duration,
}

/// A run that failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{label}, seed {seed}: {error}")]
pub struct Failed {
    /// The number of its case.
    pub case: usize,
    /// Label of the case.
    pub label: String,
    /// Its seed.
    pub seed: u64,
    /// The reason.
    pub error: RunError,
}

/// Interval between progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Runs all cases with all seeds; cases vary fastest. `report` receives completed and expected virtual milliseconds,
/// and returns whether to continue. `instruments` apply to the first case with the first seed.
///
/// # Errors
/// The first failed run, in the order of cases and seeds.
pub fn run_all(
    cases: &[Case],
    seeds: &[u64],
    threads: usize,
    instruments: Instruments,
    report: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Vec<Run>, Box<Failed>> {
    let jobs: Vec<(usize, u64)> =
        seeds.iter().flat_map(|seed| (0..cases.len()).map(move |case| (case, *seed))).collect();
    let expected: u64 = jobs
        .iter()
        .filter_map(|(case, _)| cases.get(*case))
        .map(|case| milliseconds(case.scenario.warmup + case.scenario.measured))
        .sum();
    let (next, done, running) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicUsize::new(0));
    let instruments = Mutex::new(instruments);
    let (stop, results) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    // Jobs before a failed one continue, so that the reported failure does not depend on timing.
    let first_failed = AtomicUsize::new(usize::MAX);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let is_wanted = || !stop.load(Ordering::Relaxed) && number < first_failed.load(Ordering::Relaxed);
            let Some((case, seed)) = jobs.get(number).copied().filter(|_| is_wanted()) else { break };
            let Some(known) = cases.get(case) else { break };
            let mut told = 0;
            let whole = milliseconds(known.scenario.warmup + known.scenario.measured);
            let mut tell = |progress: Progress| {
                let now = milliseconds(progress.simulated).min(whole);
                done.fetch_add(now.saturating_sub(told), Ordering::Relaxed);
                told = told.max(now);
                is_wanted()
            };
            let started = thread_cpu();
            let records = match instruments.lock() {
                Ok(mut instruments) if number == 0 => core::mem::take(&mut *instruments),
                _ => Instruments::default(),
            };
            let outcome = run_with(&known.scenario, seed, records, &mut tell);
            let took = Duration::from_nanos(thread_cpu() - started);
            let result = match outcome {
                Ok(outcome) => Ok(Run { case, seed, outcome, took }),
                Err(error) => {
                    if error != RunError::Stopped {
                        first_failed.fetch_min(number, Ordering::Relaxed);
                    }
                    Err(Box::new(Failed { case, label: known.label.clone(), seed, error }))
                }
            };
            if let Ok(mut results) = results.lock() {
                results.push((number, result));
            }
        }
        running.fetch_sub(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let threads = threads.clamp(1, jobs.len().max(1));
        running.store(threads, Ordering::Relaxed);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        while running.load(Ordering::Relaxed) > 0 {
            if !report(done.load(Ordering::Relaxed), expected) {
                stop.store(true, Ordering::Relaxed);
            }
            std::thread::park_timeout(REPORT_EVERY.min(Duration::from_millis(20)));
            // A panicked worker counts as finished; the scope propagates its panic.
            if workers.iter().all(|worker| worker.is_finished()) {
                break;
            }
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(number, _)| *number);
    let mut results: Vec<Result<Run, Box<Failed>>> = results.into_iter().map(|(_, result)| result).collect();
    // Runs that were stopped because another one failed are not reported.
    let is_stopped = |result: &Result<Run, Box<Failed>>| matches!(result, Err(failed) if failed.error == RunError::Stopped);
    if let Some(at) = results.iter().position(|result| result.is_err() && !is_stopped(result)) {
        results.swap(0, at);
        results.truncate(1);
    }
    let mut runs = results.into_iter().collect::<Result<Vec<Run>, _>>()?;
    runs.sort_by_key(|run| (run.case, run.seed));
    Ok(runs)
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
