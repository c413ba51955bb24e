//! Campaigns: plants and fault scripts at random, one for each seed, and the shortest script that breaks a promise.
//!
//! - [`script`]: the plant and its faults that belong to a seed;
//! - [`run`]: simulates a script with all promises;
//! - [`shrink`]: takes away from a script what it does not need to break its promise; [`fewest_faults`] leaves the plant alone.

mod random;
mod shrink;

pub use random::script;
pub use shrink::{fewest_faults, shrink};

use crate::scenario::{Instruments, Outcome, RunError, Scenario, run_with};
use core::time::Duration;

/// Longest virtual time after which a server must have forgotten clients that have left. Sessions and subscriptions of
/// [`script`] live for less.
const FORGET: Duration = Duration::from_secs(300);

/// Simulates a script and holds it to all promises, also to those about the time after all clients have left.
///
/// # Errors
/// The promise that was broken.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Outcome, RunError> {
    let instruments = Instruments { farewell: Some(FORGET), ..Instruments::default() };
    run_with(scenario, seed, instruments, &mut |_| true)
}

/// The shortest script that breaks a promise with this seed, and what it breaks. `None` if this one breaks none.
/// `runs_max` bounds the work.
#[must_use]
pub fn shortest(scenario: &Scenario, seed: u64, runs_max: usize) -> Option<(Scenario, RunError)> {
    let mut error = run(scenario, seed).err()?;
    let shortest = shrink(scenario, runs_max, &mut |script| match run(script, seed) {
        // Something else than a contradiction that taking away has made.
        Err(found @ (RunError::Broken(_) | RunError::NoSession(..) | RunError::NoValues(..))) => {
            error = found;
            true
        }
        _ => false,
    });
    Some((shortest, error))
}
