//! Runs conditions in an interleaved order, so that a slow drift of the machine affects all alike, and stores each
//! result at once.

use crate::measurement::Measurement;
use crate::place::{Place, PlaceError};
use crate::scenario::{Condition, Pace};
use crate::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Progress events.
#[derive(Debug)]
pub enum Step<'a> {
    /// A measurement begins.
    Begin {
        /// The experiment that requested it; empty for a user's scenario.
        experiment: &'a str,
        /// The condition.
        condition: &'a Condition,
        /// Number of completed measurements.
        done: usize,
        /// Total number of measurements.
        total: usize,
        /// Estimated remaining time in seconds.
        seconds_left: f64,
    },
    /// A measurement has ended, valid or not.
    End(&'a Measurement),
}

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Storing results failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan has no loads.
    #[error("there is nothing to measure: a list of loads is empty; give each factor at least one value")]
    Nothing,
    /// The plan has too many measurements.
    #[error(
        "{count} measurements exceed the limit of {MEASUREMENTS_MAX} per run: use fewer values or fewer repetitions"
    )]
    TooMany {
        /// Their number.
        count: u64,
    },
    /// The user stopped the run. Results so far are kept.
    #[error("interrupted")]
    Interrupted,
}

/// The inputs of a run.
#[derive(Debug)]
pub struct Runner<'a> {
    /// Where to measure.
    pub place: &'a Place,
    /// Where to store results.
    pub store: &'a mut Store,
    /// The run in the store.
    pub run: i64,
    /// Set when the user wants to stop.
    pub asked: &'a AtomicBool,
    /// Time limit: repetitions that do not fit are left out. Every condition is measured at least once.
    pub within: Option<Duration>,
}

/// Maximum number of measurements per run: more than a year of work.
const MEASUREMENTS_MAX: u64 = 1_000_000;

/// All measurements of conditions, evenly distributed over the whole time: in rounds, each with a new shuffled order
/// that is the same for everyone who runs the plan. Computed lazily.
pub fn order(conditions: &[(String, Condition)]) -> impl Iterator<Item = (usize, u32)> + '_ {
    let most = conditions.iter().map(|(_, condition)| condition.time.repetitions).max().unwrap_or(0);
    (0..most).flat_map(move |round| {
        // Conditions with fewer repetitions than rounds skip some rounds.
        let repetition = |at: &usize| {
            let wanted = u64::from(conditions.get(*at)?.1.time.repetitions);
            let until = |round: u64| (round * wanted).div_ceil(u64::from(most)) as u32;
            let (before, after) = (until(u64::from(round)), until(u64::from(round) + 1));
            (after > before).then_some(before)
        };
        let mut these: Vec<(usize, u32)> =
            (0..conditions.len()).filter_map(|at| Some((at, repetition(&at)?))).collect();
        let mut random = 0x7461_6b74_u64 + u64::from(round);
        for last in (1..these.len()).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            these.swap(last, (random >> 33) as usize % (last + 1));
        }
        these
    })
}

/// The remaining measurements of the plan, in order.
#[must_use]
pub fn missing(conditions: &[(String, Condition)], already: &[Measurement]) -> Vec<(usize, u32)> {
    let mut done: BTreeMap<(&str, u32), Vec<&Condition>> = BTreeMap::new();
    for one in already {
        done.entry((&one.experiment, one.repetition)).or_default().push(&one.condition);
    }
    let is_missing = |(at, repetition): &(usize, u32)| {
        let Some((experiment, condition)) = conditions.get(*at) else { return false };
        let done = done.get(&(experiment.as_str(), *repetition));
        !done.is_some_and(|done| done.iter().any(|one| one.is_repeated_by(condition)))
    };
    order(conditions).filter(is_missing).collect()
}

/// Whether a plan can be run.
///
/// # Errors
/// If it has no measurements or far too many.
pub fn check(conditions: &[(String, Condition)]) -> Result<(), RunError> {
    match conditions.iter().map(|(_, condition)| u64::from(condition.time.repetitions)).sum::<u64>() {
        0 => Err(RunError::Nothing),
        1..=MEASUREMENTS_MAX => Ok(()),
        count => Err(RunError::TooMany { count }),
    }
}

/// Servers that were not ready within minutes. They are not tried again in the same run with as many variables or more.
#[derive(Default)]
struct TooLarge(BTreeMap<String, u32>);

impl TooLarge {
    fn add(&mut self, condition: &Condition) {
        let least = self.0.entry(condition.stack.clone()).or_insert(u32::MAX);
        *least = condition.signals().min(*least);
    }

    fn why(&self, condition: &Condition) -> Option<String> {
        let least = self.0.get(&condition.stack).filter(|least| condition.signals() >= **least)?;
        Some(format!("not tried again: {} was not ready in time with {least} variables", condition.stack))
    }
}

fn fits(within: Option<Duration>, seconds: f64) -> bool {
    within.is_none_or(|limit| seconds <= limit.as_secs_f64())
}

impl Runner<'_> {
    /// Runs all measurements that `already` does not contain. Each condition comes with the id of its experiment.
    /// Returns existing and new measurements, in that order.
    ///
    /// # Errors
    /// If there is nothing to measure or far too much, storing fails, or the user stops the run.
    pub fn run(
        &mut self,
        conditions: &[(String, Condition)],
        already: Vec<Measurement>,
        mut tell: impl FnMut(Step<'_>),
    ) -> Result<Vec<Measurement>, RunError> {
        check(conditions)?;
        let plan = missing(conditions, &already);
        let (begin, mut spent) = (Instant::now(), 0.0);
        let mut pace = Pace::default();
        let expected = |(at, _): &(usize, u32)| conditions.get(*at).map_or(0.0, |(_, c)| pace.seconds(c));
        let expected: Vec<f64> = plan.iter().map(expected).collect();
        let mut left: f64 = expected.iter().sum();
        let mut measurements = already;
        measurements.reserve(plan.len());
        let mut too_large = TooLarge::default();
        for (done, ((at, repetition), expected)) in plan.iter().zip(expected).enumerate() {
            let Some((experiment, condition)) = conditions.get(*at) else { continue };
            if self.asked.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            // The overhead of starting programs is scaled to this machine once a few measurements are done.
            let elapsed = begin.elapsed().as_secs_f64();
            let stretch = if spent > 5.0 { elapsed / spent } else { 1.0 };
            if *repetition > 0 && !fits(self.within, elapsed + expected * stretch) {
                left -= expected;
                continue;
            }
            tell(Step::Begin {
                experiment,
                condition,
                done,
                total: plan.len(),
                seconds_left: left * stretch,
            });
            if let Some(why) = too_large.why(condition) {
                let measurement = Measurement::failed(experiment, condition.clone(), *repetition, why);
                self.store.add(self.run, &measurement)?;
                left -= expected;
                tell(Step::End(&measurement));
                measurements.push(measurement);
                continue;
            }
            let measured = self.place.measure(experiment, condition, *repetition);
            if measured.as_ref().is_err_and(PlaceError::is_slow_start) {
                too_large.add(condition);
            }
            if self.asked.load(Ordering::Relaxed) {
                // The signal has reached the load as well, so this result is incomplete.
                return Err(RunError::Interrupted);
            }
            let measurement = measured.unwrap_or_else(|error: PlaceError| {
                Measurement::failed(experiment, condition.clone(), *repetition, error.to_string())
            });
            self.store.add(self.run, &measurement)?;
            left -= expected;
            spent += expected;
            tell(Step::End(&measurement));
            measurements.push(measurement);
        }
        Ok(measurements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Kind, LoadSpec, Scenario, Sweep};

    #[test]
    fn repetitions_are_interleaved_and_shuffled_the_same_way_each_time() {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(Sweep::Many(vec![1, 10, 100, 1000]));
        let mut scenario = Scenario::new("x", load);
        scenario.time.repetitions = 3;
        let conditions: Vec<_> = scenario.conditions().into_iter().map(|c| (String::new(), c)).collect();
        let plan: Vec<_> = order(&conditions).collect();
        assert_eq!(plan.len(), 12);
        assert_eq!(plan, order(&conditions).collect::<Vec<_>>());
        for repetition in 0..3 {
            let mut round: Vec<usize> =
                plan.iter().filter(|(_, r)| *r == repetition).map(|(at, _)| *at).collect();
            assert!(plan[repetition as usize * 4..][..4].iter().all(|(_, r)| *r == repetition));
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn fewer_repetitions_are_spread_over_the_whole_time() {
        let with = |repetitions| {
            let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
            scenario.time.repetitions = repetitions;
            scenario.conditions().into_iter().map(|c| (String::new(), c))
        };
        let conditions: Vec<_> = [7, 3, 1, 0].into_iter().flat_map(with).collect();
        let plan: Vec<_> = order(&conditions).collect();
        let repetitions = |of| plan.iter().filter(|(at, _)| *at == of).map(|(_, r)| *r).collect::<Vec<_>>();
        assert_eq!(repetitions(0), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(repetitions(1), [0, 1, 2]);
        assert_eq!(repetitions(2), [0], "first, in case that there is no time for more");
        assert!(repetitions(3).is_empty());
        let last = plan.iter().rposition(|one| *one == (1, 2)).unwrap();
        assert!(last >= 7, "{plan:?}");
    }

    #[test]
    fn empty_and_oversized_plans_are_refused_before_expansion() {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(Sweep::Many(vec![1, 10]));
        let mut scenario = Scenario::new("x", load);
        let with = |scenario: &Scenario| -> Vec<(String, Condition)> {
            scenario.conditions().into_iter().map(|c| (String::new(), c)).collect()
        };
        scenario.time.repetitions = 500_000;
        assert!(check(&with(&scenario)).is_ok());
        scenario.time.repetitions = u32::MAX;
        let refused = check(&with(&scenario)).unwrap_err().to_string();
        assert!(refused.starts_with("8589934590 measurements"), "{refused}");
        // Taking the first elements is as fast as for any other plan.
        assert_eq!(order(&with(&scenario)).take(4).filter(|(_, repetition)| *repetition == 1).count(), 2);
        assert!(matches!(check(&[]), Err(RunError::Nothing)));
        scenario.time.repetitions = 0;
        assert!(matches!(check(&with(&scenario)), Err(RunError::Nothing)));
    }

    #[test]
    fn servers_that_do_not_start_are_not_tried_again() {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(Sweep::One(1));
        let mut scenario = Scenario::new("x", load);
        scenario.stacks = vec!["slow".to_owned(), "quick".to_owned()];
        scenario.server.signals = 20_000;
        let conditions = scenario.conditions();
        let mut too_large = TooLarge::default();
        assert!(conditions.iter().all(|condition| too_large.why(condition).is_none()));
        too_large.add(&conditions[0]);
        let why = too_large.why(&conditions[0]).unwrap();
        assert!(why.contains("slow was not ready in time with 20000 variables"), "{why}");
        assert_eq!(too_large.why(&conditions[1]), None, "another stack");
        scenario.server.signals = 19_999;
        assert_eq!(too_large.why(&scenario.conditions()[0]), None, "fewer variables");
    }

    #[test]
    fn existing_measurements_are_not_repeated() {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(Sweep::Many(vec![1, 10]));
        let mut scenario = Scenario::new("x", load);
        scenario.time.repetitions = 2;
        let of = |scenario: &Scenario| -> Vec<(String, Condition)> {
            scenario.conditions().into_iter().map(|c| ("e".to_owned(), c)).collect()
        };
        let conditions = of(&scenario);
        let done = |at: usize, repetition| {
            Measurement::failed("e", conditions[at].1.clone(), repetition, "it counts all the same".into())
        };
        let mut already = vec![done(0, 0), done(1, 0), done(1, 1)];
        assert_eq!(missing(&conditions, &already), [(0, 1)]);
        // The same load in another experiment is a different measurement.
        already[2].experiment = "f".into();
        assert_eq!(missing(&conditions, &already).len(), 2);
        already[2].experiment = "e".into();
        scenario.time.repetitions = 3;
        let left = missing(&of(&scenario), &already);
        assert_eq!((left.len(), left[0]), (3, (0, 1)));
    }

    #[test]
    fn repetitions_beyond_the_time_limit_are_left_out() {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(Sweep::Many(vec![1, 10]));
        let mut scenario = Scenario::new("x", load);
        scenario.stacks = vec!["nobody".to_owned()];
        scenario.time.repetitions = 3;
        let conditions: Vec<_> =
            scenario.conditions().into_iter().map(|condition| ("e".to_owned(), condition)).collect();
        let place = Place::new("/bin/true".into(), "/none".into());
        let path = std::env::temp_dir().join(format!("taktwerk-within-{}.sqlite", std::process::id()));
        let count = |within: Option<Duration>| {
            let mut store = Store::open(&path).unwrap();
            let run = store.begin("x", "x", true, &place.fingerprint()).unwrap();
            let asked = AtomicBool::new(false);
            let mut runner = Runner { place: &place, store: &mut store, run, asked: &asked, within };
            let measured = runner.run(&conditions, Vec::new(), |_| {}).unwrap();
            measured.iter().map(|one| one.repetition).collect::<Vec<_>>()
        };
        assert_eq!(count(None), [0, 0, 1, 1, 2, 2]);
        assert_eq!(count(Some(Duration::ZERO)), [0, 0]);
        assert_eq!(count(Some(Duration::from_secs(600))).len(), 6);
        let _ = std::fs::remove_file(&path);
    }
}
