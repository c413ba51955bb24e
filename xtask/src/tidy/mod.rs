//! Workspace rules that no compiler checks: allowed dependencies, circular modules, purity of the core, and style.

mod circles;
mod dependencies;
mod form;
mod profile;
mod purity;
mod randomness;
mod source;
mod wasm;

use crate::Failure;
use crate::codegen::files_below;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The pure core crates: no clock, socket, thread, environment or file, and no order that depends on a hash.
pub(crate) const CORE: [&str; 11] = [
    "types", "schema", "nodeset", "slots", "crypto", "channel", "server", "client", "pubsub", "netem",
    "model",
];

/// A violation and its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    /// From 1; 0 for the whole file.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Runs all checks; with `wasm`, also builds the core for a target without an operating system.
pub(crate) fn run(root: &Path, wasm: bool) -> Result<(), Failure> {
    let table = dependencies::Table::parse(&read(&root.join("ARCHITECTURE.md"))?)?;
    let metadata = metadata(root)?;
    let mut findings = dependencies::check(&table, &metadata)?;
    findings.extend(profile::check(&read(&root.join("Cargo.toml"))?));
    for file in rust_files(root)? {
        let path = relative(root, &file);
        let text = read(&file)?;
        let code = source::Code::new(&text);
        findings.extend(form::unfinished(&path, &code));
        findings.extend(randomness::check(&path, &code));
        if core_source(&path) {
            findings.extend(purity::check(&path, &code));
        }
        if let Some(warning) = form::long_file(&path, &text) {
            println!("warning: {warning}");
        }
    }
    for directory in crate_directories(root) {
        findings.extend(form::crate_root(root, &directory));
        findings.extend(circles::check(root, &directory)?);
    }
    for path in tracked_files(root)? {
        // Lock files contain registry names; binary files are not read.
        if !path.ends_with(".lock")
            && let Ok(text) = std::fs::read_to_string(root.join(&path))
        {
            findings.extend(form::machine_names(&path, &text, &root.display().to_string()));
        }
    }
    findings.sort();
    findings.dedup();
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        return Err(format!("tidy: {} findings", findings.len()));
    }
    println!("tidy: dependency table, purity of the core and form hold");
    if wasm { wasm::check(root) } else { Ok(()) }
}

/// Whether a file belongs to a core crate and is not a test.
fn core_source(path: &str) -> bool {
    let mut parts = path.split('/');
    let core = parts.next() == Some("crates") && parts.next().is_some_and(|name| CORE.contains(&name));
    core && parts.next() == Some("src") && !path.ends_with("/tests.rs") && !path.contains("/tests/")
}

fn metadata(root: &Path) -> Result<serde_json::Value, Failure> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--no-deps"]).current_dir(root);
    let output = cargo.output().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn crate_directories(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    directories.push(root.join("xtask"));
    directories.retain(|directory| directory.join("Cargo.toml").is_file());
    directories.sort();
    directories
}

fn rust_files(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for directory in crate_directories(root) {
        files.extend(files_below(&directory)?);
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    Ok(files)
}

fn tracked_files(root: &Path) -> Result<Vec<String>, Failure> {
    let output = Command::new("git").arg("ls-files").current_dir(root).output();
    let output = output.map_err(|error| format!("cannot start git: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn relative(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/")
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_sources_are_recognized() {
        assert!(core_source("crates/slots/src/slot.rs"));
        assert!(!core_source("crates/net/src/lib.rs"));
        assert!(!core_source("crates/server/src/space/tests.rs"));
        assert!(!core_source("crates/server/tests/pair.rs"));
    }

    #[test]
    fn findings_point_at_lines() {
        assert_eq!(Finding::new("a.rs", 3, "bad").to_string(), "a.rs:3: bad");
        assert_eq!(Finding::new("a.rs", 0, "bad").to_string(), "a.rs: bad");
    }
}
