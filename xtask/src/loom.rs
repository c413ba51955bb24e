//! `cargo xtask loom`: checks the lock-free parts with the loom model checker, under all interleavings.
//!
//! They are compiled with `--cfg loom`, which replaces the atomics by loom's. That affects the crates below them,
//! so the build has a separate target directory.

use crate::Failure;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// The modules with models.
const MODELS: [(&str, &str); 1] = [("taktwerk-slots", "store::model")];

/// Runs all models.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into).join("loom");
    for (package, models) in MODELS {
        let mut child = Command::new("cargo")
            .args(["test", "--package", package, "--lib", models, "--target-dir"])
            .arg(&target)
            // Optimizing takes longer than the models.
            .arg(format!("--config=profile.dev.package.{package}.opt-level=0"))
            .current_dir(root)
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cargo does not start: {error}"))?;
        let mut count = 0;
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.map_err(|error| format!("its output cannot be read: {error}"))?;
            println!("{line}");
            count += passed(&line);
        }
        let status = child.wait().map_err(|error| format!("cargo cannot be waited for: {error}"))?;
        if !status.success() {
            return Err(format!("the models of {package} do not hold: {status}"));
        }
        if count == 0 {
            return Err(format!("{package} has no models in {models}: they have moved"));
        }
    }
    Ok(())
}

/// Number of passed tests in the last line of a test run.
fn passed(line: &str) -> u64 {
    let Some(rest) = line.strip_prefix("test result: ok. ") else { return 0 };
    rest.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::passed;

    #[test]
    fn closing_lines_are_counted() {
        assert_eq!(
            passed("test result: ok. 14 passed; 0 failed; 0 ignored; 0 measured; 900 filtered out"),
            14
        );
        assert_eq!(passed("test result: FAILED. 14 passed; 1 failed"), 0);
        assert_eq!(passed("test copies_are_whole ... ok"), 0);
    }
}
