//! `cargo xtask simulate`: campaigns of random plants and faults in virtual time (crates/sim/examples/campaign.rs), or with
//! `--speed` how fast the simulator is (speed.rs beside it).

use crate::Failure;
use std::path::Path;
use std::process::Command;

/// Runs a campaign with these options.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<(), Failure> {
    let (example, options) = match options {
        ["--speed"] => ("speed", &[][..]),
        options => ("campaign", options),
    };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "taktwerk-sim", "--example", example, "--target-dir"])
        .arg(target.join("simulate"))
        .arg("--")
        .args(options)
        .current_dir(root)
        // Thousands of runs: worth two minutes of compiling. Checks of overflow and assertions stay on.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the campaign ended with {status}")) }
}
