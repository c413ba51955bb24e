//! A directory for a test, with a copy of the program and its own results store.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The directory; deleted when dropped.
pub(crate) struct Workspace(pub(crate) PathBuf);

impl Workspace {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taktwerk-lab-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The program in the directory, without standard input.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        command.args(arguments).current_dir(&self.0).env("TAKTWERK_RESULTS", self.0.join("results.sqlite"));
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The printed JSON document.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Ignores whether the measurement is valid, because machines that run tests are not idle.
pub(crate) fn is_measured(output: &Output) -> bool {
    matches!(output.status.code(), Some(0 | 5))
}
