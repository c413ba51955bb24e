//! Many seeds, on any number of threads: what the command line asks for, and the first seed that fails.
//!
//! The caller owns the threads and the clock.

use super::{run, script};
use crate::scenario::{Outcome, RunError, Scenario};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

/// Number of seeds without `--seeds` and `--hours`.
const SEEDS: u64 = 2_000;
/// Longest time for `--hours`: a year.
const HOURS_MAX: f64 = 8_784.0;

/// What to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Number of seeds; `u64::MAX` for no limit.
    pub seeds: u64,
    /// The first seed.
    pub from: u64,
    /// Maximum real time. Seeds that have begun are completed.
    pub longest: Option<Duration>,
    /// Number of threads.
    pub threads: u64,
}

impl Options {
    /// Parses `--seeds N`, `--hours H`, `--from SEED` and `--threads N`. With `--hours` alone, there is no limit on the
    /// number of seeds. With both, the campaign ends with what is reached first.
    ///
    /// # Errors
    /// A sentence about the wrong option.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (mut seeds, mut from, mut threads, mut longest) = (None, 0, 2, None);
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().unwrap_or_default();
            let whole = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("{name} {value:?}: not a whole number from 0 upward"))
            };
            match name.as_str() {
                "--seeds" => seeds = Some(whole()?),
                "--from" => from = whole()?,
                "--threads" => threads = whole()?.clamp(1, 256),
                "--hours" => {
                    let hours = value.parse::<f64>().ok().filter(|hours| *hours > 0.0 && *hours <= HOURS_MAX);
                    let hours = hours.ok_or_else(|| {
                        format!(
                            "--hours {value:?}: not a number above 0 and up to {HOURS_MAX}, such as 8 or 0.5"
                        )
                    })?;
                    longest = Some(Duration::from_secs_f64(hours * 3600.0));
                }
                _ => {
                    return Err(format!(
                        "unknown option {name}: use --seeds N, --hours H, --from SEED, --threads N"
                    ));
                }
            }
        }
        let seeds = seeds.unwrap_or(if longest.is_some() { u64::MAX } else { SEEDS });
        Ok(Self { seeds, from, longest, threads })
    }
}

/// A campaign in progress, shared by its threads.
#[derive(Debug)]
pub struct Series {
    options: Options,
    next: AtomicU64,
    done: AtomicU64,
    events: AtomicU64,
    simulated_ms: AtomicU64,
    /// The first failed seed, counted from the first one.
    failed: AtomicU64,
}

impl Series {
    /// Before the first seed.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let [next, done, events, simulated_ms] = [0; 4].map(AtomicU64::new);
        Self { options, next, done, events, simulated_ms, failed: AtomicU64::new(u64::MAX) }
    }

    /// Runs seeds until all have run, one has failed or `goes_on` is false. Any number of threads may call it. `tell`
    /// receives failed seeds.
    pub fn work(&self, goes_on: &dyn Fn() -> bool, tell: &dyn Fn(u64, &RunError)) {
        self.work_with(goes_on, tell, &|seed| run(&script(seed), seed));
    }

    fn work_with(
        &self,
        goes_on: &dyn Fn() -> bool,
        tell: &dyn Fn(u64, &RunError),
        run: &dyn Fn(u64) -> Result<Outcome, RunError>,
    ) {
        while goes_on() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            // Seeds before a failed one are completed, so that the first failure does not depend on the threads.
            if number >= self.options.seeds || number > self.failed.load(Ordering::Relaxed) {
                return;
            }
            let seed = self.options.from.wrapping_add(number);
            match run(seed) {
                Ok(outcome) => {
                    self.events.fetch_add(outcome.events, Ordering::Relaxed);
                    self.simulated_ms.fetch_add((outcome.simulated * 1e3) as u64, Ordering::Relaxed);
                }
                Err(error) => {
                    tell(seed, &error);
                    self.failed.fetch_min(number, Ordering::Relaxed);
                }
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of completed seeds.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Number of simulated events in them.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Their virtual time.
    #[must_use]
    pub fn simulated(&self) -> Duration {
        Duration::from_millis(self.simulated_ms.load(Ordering::Relaxed))
    }

    /// The first failed seed.
    #[must_use]
    pub fn failed(&self) -> Option<u64> {
        let number = self.failed.load(Ordering::Relaxed);
        (number != u64::MAX).then(|| self.options.from.wrapping_add(number))
    }
}

/// The shortest script that fails like this one, and the last failure. `None` if it does not fail.
pub(super) fn shortest_with(
    scenario: &Scenario,
    runs_max: usize,
    run: &mut dyn FnMut(&Scenario) -> Result<Outcome, RunError>,
) -> Option<(Scenario, RunError)> {
    let mut error = run(scenario).err()?;
    let shortest = super::shrink(scenario, runs_max, &mut |script| match run(script) {
        Err(found) if is_fault_of_software(&found) => {
            error = found;
            true
        }
        _ => false,
    });
    Some((shortest, error))
}

/// Whether this is not a contradiction that was introduced by shrinking.
fn is_fault_of_software(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Broken(_) | RunError::Panicked(_) | RunError::NoSession(..) | RunError::NoValues(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Instruments, run_with};
    use std::cell::{Cell, RefCell};

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_limit_seeds_or_hours() {
        let usual = Options { seeds: 2_000, from: 0, longest: None, threads: 2 };
        assert_eq!(parse(""), Ok(usual));
        let (hours, none) = (Some(Duration::from_secs(5_400)), u64::MAX);
        assert_eq!(parse("--hours 1.5"), Ok(Options { seeds: none, longest: hours, ..usual }));
        let both = Options { seeds: 7, from: 3, longest: hours, threads: 1 };
        assert_eq!(parse("--seeds 7 --hours 1.5 --from 3 --threads 0"), Ok(both));
        for wrong in ["--hours 0", "--hours -1", "--hours NaN", "--hours", "--hours 1e9"] {
            assert!(parse(wrong).unwrap_err().contains("above 0"), "{wrong}");
        }
        assert!(parse("--seeds x").unwrap_err().contains("--seeds \"x\""));
        assert!(parse("--days 1").unwrap_err().contains("--hours H"));
    }

    #[test]
    fn the_time_limit_ends_a_campaign_without_a_seed_limit() {
        let series = Series::new(parse("--hours 1 --from 5").unwrap());
        let (left, seeds) = (Cell::new(4), RefCell::new(Vec::new()));
        let goes_on = || left.replace(left.get() - 1) > 0;
        series.work_with(&goes_on, &|_, _| {}, &|seed| {
            seeds.borrow_mut().push(seed);
            Ok(Outcome { events: 2, simulated: 0.5, ..Outcome::default() })
        });
        assert_eq!(*seeds.borrow(), [5, 6, 7, 8]);
        assert_eq!((series.done(), series.events(), series.failed()), (4, 8, None));
        assert_eq!(series.simulated(), Duration::from_secs(2));
    }

    /// A run that panics, as the cores would.
    fn panics(scenario: &Scenario, seed: u64) -> Result<Outcome, RunError> {
        run_with(scenario, seed, Instruments::default(), &mut |_| panic!("index {seed} out of bounds"))
    }

    #[test]
    fn a_panic_names_its_seed_and_ends_the_campaign() {
        let series = Series::new(parse("--from 40 --seeds 9").unwrap());
        let told = RefCell::new(Vec::new());
        series.work_with(
            &|| true,
            &|seed, error| told.borrow_mut().push((seed, error.to_string())),
            &|seed| {
                if seed == 42 { panics(&script(seed), seed) } else { Ok(Outcome::default()) }
            },
        );
        assert_eq!((series.done(), series.failed()), (3, Some(42)));
        let told = told.into_inner();
        assert!(told.len() == 1 && told[0].0 == 42, "{told:?}");
        assert!(told[0].1.contains("panicked: index 42 out of bounds"), "{told:?}");
    }

    #[test]
    fn a_script_that_panics_is_shrunk() {
        // A script with faults; the panic needs one of them.
        let seed = (0..).find(|seed| script(*seed).faults.len() > 2).unwrap();
        let whole = script(seed);
        let mut run = |scenario: &Scenario| {
            if scenario.faults.is_empty() { Ok(Outcome::default()) } else { panics(scenario, seed) }
        };
        let (shortest, error) = shortest_with(&whole, 500, &mut run).unwrap();
        assert_eq!(shortest.faults.len(), 1);
        assert!(shortest.clients.len() <= whole.clients.len() && matches!(error, RunError::Panicked(_)));
    }
}
