//! Tells the program from which commit it was built and when that was made, for ServerStatus.BuildInfo.
//!
//! The same sources give the same program: the date is SOURCE_DATE_EPOCH or that of the commit, not that of the build.
//! Development builds ask no git, because each commit would then compile the program again.

#![allow(clippy::print_stdout)] // cargo reads it

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The workspace, from the folder of this crate.
const ROOT: &str = "../..";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let (mut commit, mut time) = (None, env::var("SOURCE_DATE_EPOCH").ok());
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && is_checkout() {
        watch();
        commit = git(&["describe", "--always", "--dirty", "--exclude=*"]);
        time = time.or_else(|| git(&["log", "-1", "--format=%ct"]));
    }
    if let Some(commit) = commit {
        println!("cargo::rustc-env=TAKTWERK_BUILD_COMMIT={commit}");
    }
    if let Some(time) = time {
        println!("cargo::rustc-env=TAKTWERK_BUILD_TIME={time}");
    }
}

/// Whether the workspace is a repository of its own, and not a copy in another one.
fn is_checkout() -> bool {
    let real = |path: &str| fs::canonicalize(path).ok();
    git(&["rev-parse", "--show-toplevel"]).is_some_and(|top| real(&top) == real(ROOT))
}

/// Runs again after a commit, and when sources differ from it.
fn watch() {
    println!("cargo::rerun-if-changed={ROOT}/crates");
    let files = ["logs/HEAD", "HEAD"].map(|name| git(&["rev-parse", "--git-path", name]));
    if let Some(path) = files.into_iter().flatten().find(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// The first line that git prints; `None` without git or a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}
