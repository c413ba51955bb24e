//! Finds the shortest script of faults that breaks an assertion.

use crate::interrupt::Interrupt;
use std::time::{Duration, Instant};
use taktwerk_lab::simulate::Study;
use taktwerk_lab::simulate::seeds::Failed;
use taktwerk_sim::campaign::fewest_faults;
use taktwerk_sim::scenario::text::faults_to_toml;
use taktwerk_sim::scenario::{RunError, run};

/// Maximum time of the search.
const LONGEST: Duration = Duration::from_secs(30);
/// Maximum number of simulations.
const RUNS: usize = 200;

/// The shortest script, as a sentence and as TOML.
pub(super) fn script(study: &Study, failed: &Failed, interrupt: &Interrupt) -> String {
    let Some(case) = study.cases.get(failed.case) else { return String::new() };
    if case.scenario.faults.is_empty() {
        return "it needs no fault".to_owned();
    }
    let until = Instant::now() + LONGEST;
    let mut goes_on = |_| Instant::now() < until && !interrupt.asked();
    let mut breaks =
        |scenario: &_| matches!(run(scenario, failed.seed, &mut goes_on), Err(RunError::Broken(_)));
    let shortest = fewest_faults(&case.scenario, RUNS, &mut breaks);
    if shortest.faults.is_empty() {
        return "it needs no fault: the plant alone shows it".to_owned();
    }
    format!("the shortest script that shows it:\n{}", faults_to_toml(&shortest).trim_end())
}
