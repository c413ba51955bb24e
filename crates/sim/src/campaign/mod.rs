//! Campaigns: random plants and fault scripts, one for each seed, and the shortest script that breaks a promise.
//!
//! - [`script`]: the plant and faults of a seed;
//! - [`series`]: many seeds on several threads;
//! - [`run`]: simulates a script and checks all promises;
//! - [`shrink`]: removes everything from a script that is not needed to break its promise; [`fewest_faults`] keeps the
//!   plant.

mod random;
pub mod series;
mod shrink;

pub use random::script;
pub use shrink::{fewest_faults, shrink};

use crate::scenario::{Instruments, Outcome, RunError, Scenario, run_with};
use core::time::Duration;

/// Maximum virtual time until a server has released everything of clients that have left. Sessions and subscriptions of
/// [`script`] have shorter lifetimes.
const FORGET: Duration = Duration::from_secs(300);

/// Simulates a script and checks all promises, including those after all clients have left.
///
/// # Errors
/// The broken promise, or the panic.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Outcome, RunError> {
    let instruments = Instruments { farewell: Some(FORGET), ..Instruments::default() };
    run_with(scenario, seed, instruments, &mut |_| true)
}

/// The shortest script that breaks a promise or panics with this seed, and the failure. `None` if the script does
/// neither.
/// `runs_max` limits the work.
#[must_use]
pub fn shortest(scenario: &Scenario, seed: u64, runs_max: usize) -> Option<(Scenario, RunError)> {
    series::shortest_with(scenario, runs_max, &mut |script| run(script, seed))
}
