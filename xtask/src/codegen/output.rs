//! The generated files: formatted, then written or compared.

use crate::Failure;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// First line of every generated Rust file.
const HEADER: &str = "// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.\n\n";

/// Directories with generated files only: other files in them are stale.
const GENERATED_ONLY: [&str; 1] = ["crates/schema/src/generated"];

/// Generated files by their path from the workspace root.
#[derive(Default)]
pub(crate) struct Output {
    files: BTreeMap<String, Vec<u8>>,
}

impl Output {
    /// Adds a Rust file.
    pub(crate) fn rust(&mut self, path: &str, text: String) {
        self.files.insert(path.to_owned(), format!("{HEADER}{text}").into_bytes());
    }

    /// Adds a file of bytes.
    pub(crate) fn binary(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), bytes);
    }

    /// Formats everything, then writes the changes; with `check`, fails if there are any.
    pub(crate) fn finish(mut self, root: &Path, check: bool) -> Result<(), Failure> {
        self.format(root)?;
        let stale = self.stale(root)?;
        let mut differing = Vec::new();
        for (path, wanted) in &self.files {
            if std::fs::read(root.join(path)).ok().as_ref() != Some(wanted) {
                differing.push(path.clone());
            }
        }
        if check {
            return report(&differing, &stale);
        }
        for path in &differing {
            write(&root.join(path), self.files.get(path).map_or(&[], Vec::as_slice))?;
        }
        for path in &stale {
            std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let bytes: usize = self.files.values().map(Vec::len).sum();
        println!(
            "{} files, {bytes} bytes; {} written, {} removed",
            self.files.len(),
            differing.len(),
            stale.len()
        );
        Ok(())
    }

    /// Runs rustfmt, so that `cargo fmt` does not change the committed files.
    fn format(&mut self, root: &Path) -> Result<(), Failure> {
        let configuration = root.join("rustfmt.toml");
        for (path, bytes) in self.files.iter_mut().filter(|(path, _)| path.ends_with(".rs")) {
            *bytes =
                formatted(&configuration, bytes).map_err(|reason| format!("rustfmt, {path}: {reason}"))?;
        }
        Ok(())
    }

    fn stale(&self, root: &Path) -> Result<Vec<PathBuf>, Failure> {
        let mut stale = Vec::new();
        for directory in GENERATED_ONLY {
            for file in files_below(&root.join(directory))? {
                let relative = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
                if !self.files.contains_key(&relative) {
                    stale.push(file);
                }
            }
        }
        Ok(stale)
    }
}

/// Formats one file with rustfmt. On standard input, rustfmt does not follow `mod` lines into other files.
fn formatted(configuration: &Path, text: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024", "--config-path"]).arg(configuration);
    rustfmt.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = rustfmt.spawn().map_err(|error| format!("cannot start: {error}"))?;
    // rustfmt reads all input before it writes, so there is no deadlock.
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text).map_err(|error| error.to_string())?;
    }
    let done = child.wait_with_output().map_err(|error| error.to_string())?;
    if done.status.success() {
        Ok(done.stdout)
    } else {
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }
}

fn report(differing: &[String], stale: &[PathBuf]) -> Result<(), Failure> {
    if differing.is_empty() && stale.is_empty() {
        println!("generated files are up to date");
        return Ok(());
    }
    let mut message = String::from("generated files are out of date; run cargo xtask codegen:");
    for path in differing {
        let _ = write!(message, "\n  differs: {path}");
    }
    for path in stale {
        let _ = write!(message, "\n  stale: {}", path.display());
    }
    Err(message)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    std::fs::write(path, bytes).map_err(fail)
}

/// All files below a directory; none if it does not exist.
pub(crate) fn files_below(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", directory.display()))?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
