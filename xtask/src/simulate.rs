//! `cargo xtask simulate`: campaigns of random plants and faults in virtual time (crates/sim/examples/campaign.rs), or
//! with `--speed` the speed of the simulator (speed.rs beside it). With `--development` as first option, uses the
//! campaign built for tests: slower, but without compiling.

use crate::Failure;
use std::path::Path;
use std::process::Command;

/// Runs a campaign with these options.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<(), Failure> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    if let ["--development", options @ ..] = options {
        let program = target.join("debug").join("examples").join("campaign");
        if !program.is_file() {
            return Err(format!("{} is missing: run cargo test -p taktwerk-sim first", program.display()));
        }
        return ran(Command::new(program).args(options).current_dir(root));
    }
    let (example, options) = match options {
        ["--speed"] => ("speed", &[][..]),
        options => ("campaign", options),
    };
    let mut cargo = Command::new("cargo");
    cargo
        .args(["run", "--quiet", "--package", "taktwerk-sim", "--example", example, "--target-dir"])
        .arg(target.join("simulate"))
        .arg("--")
        .args(options)
        .current_dir(root)
        // Optimized, because thousands of runs justify two minutes of compiling. Overflow checks and assertions stay
        // enabled.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0");
    ran(&mut cargo)
}

fn ran(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the campaign ended with {status}")) }
}
