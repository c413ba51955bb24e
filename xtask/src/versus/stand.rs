//! The programs that are compared, where they run, and one measurement with them.

use super::samples::Side;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use taktwerk_lab::pin::CpuList;
use taktwerk_lab::process::{Process, ProcessError, Snapshot};
use taktwerk_lab::program::{Program, ProgramError, Running};

/// CPU of the servers.
const SERVER_CPU: usize = 0;
/// CPU of the load, unless a figure wants both on one.
const LOAD_CPU: usize = 1;
/// A server with 400 000 nodes takes a while to start, the peer's above all.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum StandError {
    /// A tool or a build failed.
    #[error("{what} failed ({status}); its output is above")]
    Build {
        /// Which.
        what: &'static str,
        /// How it ended.
        status: String,
    },
    /// The machine is too small.
    #[error("server and load each need a CPU of their own, and this process may only use CPU {0}")]
    Cpus(CpuList),
    /// A program failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A process could not be accounted for.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A measurement ended with an error.
    #[error("{line} ended with {status}: {stderr}")]
    Failed {
        /// The command line.
        line: String,
        /// How it ended.
        status: String,
        /// What it said.
        stderr: String,
    },
    /// The output has not what was looked for.
    #[error("{line} printed no number at {pointer}")]
    Missing {
        /// The command line.
        line: String,
        /// Where in the document.
        pointer: String,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Everything that is needed, built.
pub(super) struct Stand {
    ours: PathBuf,
    library: PathBuf,
    peer: PathBuf,
    floor: PathBuf,
    allocations: PathBuf,
}

/// A document that a measurement printed.
pub(super) struct Outcome {
    line: String,
    document: Value,
}

impl Outcome {
    /// A number in the document.
    pub(super) fn number(&self, pointer: &str) -> Result<f64, StandError> {
        let missing = || StandError::Missing { line: self.line.clone(), pointer: pointer.to_owned() };
        self.document.pointer(pointer).and_then(Value::as_f64).ok_or_else(missing)
    }
}

impl Stand {
    /// Builds the peer, the floor and this project in release mode.
    pub(super) fn build(root: &Path) -> Result<Self, StandError> {
        let allowed = CpuList::allowed();
        if ![SERVER_CPU, LOAD_CPU].iter().all(|cpu| allowed.cpus().contains(cpu)) {
            return Err(StandError::Cpus(allowed));
        }
        let peers = root.join("target/peers/open62541");
        let build = root.join("interop/open62541/build.sh");
        run_visibly("building the peer", Command::new(build).arg(&peers))?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let release = |arguments: &[&str]| {
            let mut command = Command::new(&cargo);
            command.current_dir(root).args(arguments);
            command
        };
        run_visibly(
            "building taktwerk",
            &mut release(&["build", "--release", "-p", "taktwerk-cli", "--bins"]),
        )?;
        run_visibly(
            "building a program with the library",
            &mut release(&["build", "--release", "-p", "taktwerk", "--example", "minimal"]),
        )?;
        let bench = release(&["bench", "-p", "taktwerk-cli", "--bench", "allocations", "--no-run"])
            .args(["--message-format", "json-render-diagnostics"])
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|source| ProgramError::Start { path: "cargo".into(), source })?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
        Ok(Self {
            ours: target.join("release/taktwerk"),
            library: target.join("release/examples/minimal"),
            peer: peers.join("bin/o6-server"),
            floor: peers.join("bin/tcp-floor"),
            allocations: executable(&bench.stdout, "allocations").ok_or(StandError::Build {
                what: "building the allocation benchmark",
                status: bench.status.to_string(),
            })?,
        })
    }

    /// A server of a side on its CPU, with `signals` variables that change every `update_ms`.
    pub(super) fn server(&self, side: Side, signals: usize, update_ms: u32) -> Result<Running, StandError> {
        let program = match side {
            Side::Peer => Program::new(&self.peer).args(["--variables"]),
            Side::Ours | Side::Floor => Program::new(&self.ours).args(["serve", "--no-plant", "--signals"]),
        };
        let program = program
            .arg(signals)
            .args(["--update", &update_ms.to_string(), "--port", "0", "--max-sessions", "2000"])
            .arg("--exit-with-stdin")
            .on(CpuList::single(SERVER_CPU));
        Ok(program.serve(START_LIMIT)?)
    }

    /// A program that has our library and nothing else in it, as the peer's server has theirs.
    pub(super) fn library_server(&self) -> Result<Running, StandError> {
        Ok(Program::new(&self.library).on(CpuList::single(SERVER_CPU)).serve(START_LIMIT)?)
    }

    /// The load generator on its CPU against a server whose CPU time it accounts for.
    pub(super) fn bench(
        &self,
        server: &Running,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Outcome, StandError> {
        self.bench_on(LOAD_CPU, server, arguments, limit)
    }

    /// The same on the server's CPU.
    pub(super) fn bench_beside(
        &self,
        server: &Running,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Outcome, StandError> {
        self.bench_on(SERVER_CPU, server, arguments, limit)
    }

    fn bench_on(
        &self,
        cpu: usize,
        server: &Running,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Outcome, StandError> {
        let program = Program::new(&self.ours)
            .arg("bench")
            .args(arguments)
            .arg(server.url())
            .arg("--json")
            .arg("--server-pid")
            .arg(server.pid())
            .on(CpuList::single(cpu));
        run_measurement(&program, limit)
    }

    /// The bare TCP program.
    pub(super) fn floor(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, StandError> {
        run_measurement(&Program::new(&self.floor).args(arguments), limit)
    }

    /// The benchmark that counts allocations.
    pub(super) fn allocations(&self, limit: Duration) -> Result<Outcome, StandError> {
        let program = Program::new(&self.allocations).arg("--taktwerk").arg(self.ours.display());
        run_measurement(&program, limit)
    }
}

/// A server's account once it has settled.
pub(super) fn settled(server: &Running) -> Result<Snapshot, StandError> {
    std::thread::sleep(Duration::from_secs(1));
    Ok(Process::new(server.pid()).snapshot()?)
}

fn run_visibly(what: &'static str, command: &mut Command) -> Result<(), StandError> {
    // Results go to standard output, so a build may not print there.
    let status = command.stdout(io::stderr()).status();
    let status =
        status.map_err(|source| ProgramError::Start { path: command.get_program().into(), source })?;
    if status.success() { Ok(()) } else { Err(StandError::Build { what, status: status.to_string() }) }
}

fn run_measurement(program: &Program, limit: Duration) -> Result<Outcome, StandError> {
    let output = program.run(limit)?;
    let line = program.line();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(StandError::Failed { line, status: output.status.to_string(), stderr });
    }
    let document = serde_json::from_slice(&output.stdout)
        .map_err(|_| StandError::Missing { line: line.clone(), pointer: "/ (no JSON)".into() })?;
    Ok(Outcome { line, document })
}

/// A target's program in cargo's messages.
fn executable(messages: &[u8], target: &str) -> Option<PathBuf> {
    messages
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| message.pointer("/target/name").and_then(Value::as_str) == Some(target))
        .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_executable_in_cargos_messages() {
        let messages = br#"{"reason":"x","target":{"name":"wanted"},"executable":null}
{"target":{"name":"wanted"},"executable":"/t/a"}
no json
{"target":{"name":"other"},"executable":"/t/b"}
"#;
        assert_eq!(executable(messages, "wanted"), Some(PathBuf::from("/t/a")));
        assert_eq!(executable(b"", "wanted"), None);
    }
}
