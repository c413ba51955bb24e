//! Installs and runs the results with `packaging/trial/run.sh`.

use super::{Place, shown};
use crate::Failure;
use std::process::Command;

/// Runs the trial with the files in the output folder.
pub(super) fn run(place: &Place, is_development: bool) -> Result<(), Failure> {
    println!("==> trying what was made");
    let mut trial = Command::new(place.root.join("packaging").join("trial").join("run.sh"));
    trial.arg(&place.output);
    if is_development {
        trial.arg("development");
    }
    shown(trial.current_dir(&place.root))
}
