//! Tasks of the workspace: `cargo xtask <task>`.
//!
//! - `codegen` writes the generated parts of `taktwerk-types` and `taktwerk-schema`; `--check` only compares;
//! - `nodesets` fetches the published NodeSet files for tests;
//! - `tidy` checks workspace rules that no compiler checks;
//! - `docs` checks the links of the documentation and builds it as a book;
//! - `loom` checks the lock-free parts under all interleavings;
//! - `dist` builds packages, archives and container images, and tests them;
//! - `simulate` runs campaigns of random plants and faults in virtual time;
//! - `test` runs all tests and checks;
//! - `versus` compares performance with a peer.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line talks

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod codegen;
mod dist;
mod docs;
mod inputs;
mod loom;
mod simulate;
mod test;
mod tidy;
#[cfg(feature = "versus")]
mod versus;

/// Why a task failed, as text.
type Failure = String;

const USAGE: &str = "usage: cargo xtask <task>

  codegen [--check]   write the generated code (or only compare; exit code 1 if it differs)
  nodesets            fetch the published NodeSet files for tests into target/codegen
  tidy [--wasm]       check dependency table, bans and style (and the wasm32 build of the core)
  docs [--check]      build the documentation in target/book (or only check its links)
  loom                check the lock-free parts under all interleavings
  dist …              build packages, archives and container images in target/dist (docs/packages.md)
  simulate [--seeds N] [--hours H] [--from SEED] [--threads N]
                      run random plants and faults in virtual time; print the shortest script with a violation
  simulate --speed    how fast the simulator is on one processor
  test [--quick|--nightly]
                      run all tests and checks (quick: without peers; nightly: with libFuzzer and 20 000 simulations)
  versus <peer> …     compare performance with a peer (`versus` alone shows the options)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    if let ["versus", rest @ ..] = arguments.as_slice() {
        return versus::run(&root, rest);
    }
    let result = match arguments.as_slice() {
        ["codegen"] => codegen::run(&root, false),
        ["codegen", "--check"] => codegen::run(&root, true),
        ["nodesets"] => inputs::nodesets(&root).map(|directory| println!("{}", directory.display())),
        ["docs"] => docs::run(&root, false),
        ["docs", "--check"] => docs::run(&root, true),
        ["loom"] => loom::run(&root),
        ["dist", rest @ ..] => dist::run(&root, rest),
        ["simulate", options @ ..] => simulate::run(&root, options),
        ["test"] => test::run(&root, test::Extent::Full),
        ["test", "--quick"] => test::run(&root, test::Extent::Quick),
        ["test", "--nightly"] => test::run(&root, test::Extent::Nightly),
        ["tidy"] => tidy::run(&root, false),
        ["tidy", "--wasm"] => tidy::run(&root, true),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(feature = "versus"))]
mod versus {
    use std::path::Path;
    use std::process::{Command, ExitCode};

    /// Builds this program with the laboratory, and runs it.
    pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
        let mut cargo = Command::new("cargo");
        cargo.args(["run", "--quiet", "--package", "xtask", "--features", "versus", "--manifest-path"]);
        match cargo.arg(root.join("Cargo.toml")).args(["--", "versus"]).args(arguments).status() {
            Ok(status) => {
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                code.map_or(ExitCode::FAILURE, ExitCode::from)
            }
            Err(error) => {
                eprintln!("error: cargo does not start: {error}");
                ExitCode::from(6)
            }
        }
    }
}

/// The workspace in which `cargo xtask` was called. It may differ from the one this program was compiled in: one build
/// can serve several checkouts.
fn workspace_root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map_or_else(|| own.clone(), Path::to_owned)
}
