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
    /// Nothing holds, however little it is.
    #[error("not even {least} signals hold, for the reasons above: that is no figure")]
    Nothing {
        /// What should hold at least.
        least: usize,
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

/// How a connection is secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Secured {
    pub(super) policy: &'static str,
    /// SignAndEncrypt, or Sign.
    pub(super) encrypts: bool,
}

/// Everything that is needed, built.
pub(super) struct Stand {
    ours: PathBuf,
    library: PathBuf,
    peer: PathBuf,
    peer_client: PathBuf,
    peer_publisher: PathBuf,
    floor: PathBuf,
    allocations: PathBuf,
    cipher: PathBuf,
    /// Certificates, made for this run.
    folder: PathBuf,
}

impl Drop for Stand {
    fn drop(&mut self) {
        // It lies among temporary files: what cannot be removed now is removed some day.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
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

/// Kinds of keys that policies take.
const KEYS: [&str; 4] = ["rsa2048", "p256", "p384", "ed25519"];

impl Stand {
    /// Builds the peer, the floor and this project in release mode.
    ///
    /// With `pubsub`, the peer's publisher as well, which is another build of its library.
    pub(super) fn build(root: &Path, pubsub: bool) -> Result<Self, StandError> {
        let peers = root.join("target/peers/open62541");
        let mut build = Command::new(root.join("interop/open62541/build.sh"));
        if pubsub {
            build.env("PUBSUB_TOO", "1");
        }
        run_visibly("building the peer", build.arg(&peers))?;
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
        let bench = |arguments: &[&str], name: &str, what: &'static str| {
            let output = release(arguments)
                .args(["--bench", name, "--no-run", "--message-format", "json-render-diagnostics"])
                .stderr(std::process::Stdio::inherit())
                .output()
                .map_err(|source| ProgramError::Start { path: "cargo".into(), source })?;
            let status = output.status.to_string();
            executable(&output.stdout, name).ok_or(StandError::Build { what, status })
        };
        let allocations =
            bench(&["bench", "-p", "taktwerk-cli"], "allocations", "building the allocation benchmark")?;
        let cipher = bench(
            &["bench", "-p", "taktwerk-crypto", "--features", "aws-lc"],
            "floor",
            "building the floor of cryptography",
        )?;
        let target: PathBuf =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
        let release = target.join("release");
        Self::with(&peers, release.join("taktwerk"), release.join("examples/minimal"), allocations, cipher)
    }

    /// Programs of ours that were built before, in one folder.
    pub(super) fn of(root: &Path, folder: &Path) -> Result<Self, StandError> {
        let peers = root.join("target/peers/open62541");
        let at = |name: &str| folder.join(name);
        Self::with(&peers, at("taktwerk"), at("minimal"), at("allocations"), at("floor"))
    }

    fn with(
        peers: &Path,
        ours: PathBuf,
        library: PathBuf,
        allocations: PathBuf,
        cipher: PathBuf,
    ) -> Result<Self, StandError> {
        let allowed = CpuList::allowed();
        if ![SERVER_CPU, LOAD_CPU].iter().all(|cpu| allowed.cpus().contains(cpu)) {
            return Err(StandError::Cpus(allowed));
        }
        let stand = Self {
            ours,
            library,
            peer: peers.join("bin/o6-server"),
            peer_client: peers.join("bin/o6-client"),
            peer_publisher: peers.join("bin/o6-pubsub-bench"),
            floor: peers.join("bin/tcp-floor"),
            allocations,
            cipher,
            folder: std::env::temp_dir().join(format!("taktwerk-versus-{}", std::process::id())),
        };
        stand.make_certificates()?;
        Ok(stand)
    }

    /// Certificates of our server and client, which trust each other, and of the peer, for all kinds of keys.
    fn make_certificates(&self) -> Result<(), StandError> {
        let pki = |arguments: &[&str], store: &str| {
            let program = Program::new(&self.ours).arg("pki").args(arguments);
            let program = program.arg("--pki").arg(self.folder.join(store).display());
            let output = program.run(START_LIMIT)?;
            if output.status.success() {
                return Ok(());
            }
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(StandError::Failed { line: program.line(), status: output.status.to_string(), stderr })
        };
        for key in KEYS {
            let with_key = |uri| ["init", "--key", key, "--uri", uri];
            pki(&with_key("urn:taktwerk:demo-server"), "server")?;
            pki(&with_key("urn:taktwerk:client"), "client")?;
            pki(&with_key("urn:taktwerk:peer:open62541:server"), &format!("peer-{key}"))?;
            pki(&with_key("urn:taktwerk:peer:open62541:client"), &format!("peer-client-{key}"))?;
        }
        let mut trusted = vec![("client".to_owned(), "server"), ("server".to_owned(), "client")];
        trusted.extend(KEYS.map(|key| (format!("peer-{key}"), "client")));
        for (from, to) in trusted {
            for certificate in self.files(&from, "own/certs")? {
                pki(&["import", &certificate], to)?;
            }
        }
        Ok(())
    }

    /// The files of a folder in a store.
    fn files(&self, store: &str, folder: &str) -> Result<Vec<String>, StandError> {
        let path = self.folder.join(store).join(folder);
        let failed = |source| StandError::Write { path: path.clone(), source };
        let entries = std::fs::read_dir(&path).map_err(failed)?;
        entries.map(|entry| entry.map(|entry| entry.path().display().to_string()).map_err(failed)).collect()
    }

    /// Certificate and key of the peer as arguments of its programs.
    fn peer_certificate(&self, store: &str, security: Secured) -> Result<Vec<String>, StandError> {
        let key = match security.policy {
            policy if policy.starts_with("ECC_nistP384") => "p384",
            policy if policy.starts_with("ECC_curve25519") => "ed25519",
            policy if policy.starts_with("ECC") => "p256",
            _ => "rsa2048",
        };
        let mut arguments = Vec::new();
        for (flag, folder) in [("--cert", "own/certs"), ("--key", "own/private")] {
            let files = self.files(&format!("{store}-{key}"), folder)?;
            arguments.extend([vec![flag.to_owned()], files].concat());
        }
        Ok(arguments)
    }

    /// A server of a side that offers this security and None, on its CPU or on all.
    pub(super) fn secured_server(
        &self,
        side: Side,
        signals: usize,
        update_ms: u32,
        security: Option<Secured>,
        pinned: bool,
    ) -> Result<Running, StandError> {
        let mut program = match side {
            Side::Peer => Program::new(&self.peer).args(["--variables"]),
            Side::Ours | Side::Floor => Program::new(&self.ours).args(["serve", "--no-plant", "--signals"]),
        };
        program = program
            .arg(signals)
            .args(["--update", &update_ms.to_string(), "--port", "0", "--max-sessions", "2000"])
            .arg("--exit-with-stdin");
        if side != Side::Peer {
            program = program.arg("--pki").arg(self.folder.join("server").display());
            // The peer's server offers None besides, too: both modes can be measured on one process.
            program = program.args(["--policy", "None"]);
            if let Some(security) = security {
                program = program.args(["--policy", security.policy]);
            }
        } else if let Some(security) = security {
            program = program.args(["--policies", "all", "--trust-all"]);
            program = program.args(self.peer_certificate("peer", security)?);
        }
        if pinned {
            program = program.on(CpuList::single(SERVER_CPU));
        }
        Ok(program.serve(START_LIMIT)?)
    }

    /// Our load generator with this security: beside the server on its CPU, or on the other one.
    pub(super) fn secured_bench(
        &self,
        server: &Running,
        arguments: &[&str],
        security: Option<Secured>,
        beside: bool,
        limit: Duration,
    ) -> Result<Outcome, StandError> {
        let folder = self.folder.join("client").display().to_string();
        let mut all = arguments.to_vec();
        if let Some(security) = security {
            let mode = if security.encrypts { "SignAndEncrypt" } else { "Sign" };
            all.extend(["--policy", security.policy, "--mode", mode, "--pki", &folder]);
        } else {
            all.extend(["--policy", "None"]);
        }
        self.bench_on(if beside { SERVER_CPU } else { LOAD_CPU }, server, &all, limit)
    }

    /// The peer's own client on the server's CPU.
    pub(super) fn peer_client(
        &self,
        command: &str,
        server: &Running,
        arguments: &[&str],
        security: Option<Secured>,
        beside: bool,
        limit: Duration,
    ) -> Result<Outcome, StandError> {
        let mut program = Program::new(&self.peer_client).arg(command).arg(server.url()).args(arguments);
        if let Some(security) = security {
            let mode = if security.encrypts { "encrypt" } else { "sign" };
            program = program.args(["--policy", security.policy, "--mode", mode]);
            program = program.args(self.peer_certificate("peer-client", security)?);
        }
        let cpu = if beside { SERVER_CPU } else { LOAD_CPU };
        run_measurement(&program.on(CpuList::single(cpu)), limit)
    }

    /// The bare cryptography of a message.
    pub(super) fn cipher(&self, length: usize, limit: Duration) -> Result<Outcome, StandError> {
        let program = Program::new(&self.cipher).arg("--length").arg(length);
        run_measurement(&program.on(CpuList::single(SERVER_CPU)), limit)
    }

    /// A server of a side on its CPU, with `signals` variables that change every `update_ms`.
    pub(super) fn server(&self, side: Side, signals: usize, update_ms: u32) -> Result<Running, StandError> {
        Ok(self.server_program(side, signals, update_ms).serve(START_LIMIT)?)
    }

    fn server_program(&self, side: Side, signals: usize, update_ms: u32) -> Program {
        let program = match side {
            Side::Peer => Program::new(&self.peer).args(["--variables"]),
            Side::Ours | Side::Floor => Program::new(&self.ours).args(["serve", "--no-plant", "--signals"]),
        };
        program
            .arg(signals)
            .args(["--update", &update_ms.to_string(), "--port", "0", "--max-sessions", "2000"])
            .arg("--exit-with-stdin")
            .on(CpuList::single(SERVER_CPU))
    }

    /// The same with values that tell when they were written.
    pub(super) fn server_with_times(
        &self,
        side: Side,
        signals: usize,
        update_ms: u32,
    ) -> Result<Running, StandError> {
        Ok(self
            .server_program(side, signals, update_ms)
            .args(["--signal-values", "time"])
            .serve(START_LIMIT)?)
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

    /// Our publisher on the servers' CPU, its subscriber on the load's.
    pub(super) fn pubsub(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, StandError> {
        let program = Program::new(&self.ours)
            .args(["bench", "pubsub"])
            .args(arguments)
            .arg("--json")
            .arg("--publisher-cpu")
            .arg(SERVER_CPU)
            .arg("--subscriber-cpu")
            .arg(LOAD_CPU);
        run_measurement(&program, limit)
    }

    /// Stations of ours that publish to each other, all on the load's CPU.
    pub(super) fn stations(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, StandError> {
        let program = Program::new(&self.ours).args(["bench", "pubsub"]).args(arguments).arg("--json");
        run_measurement(&program.on(CpuList::single(LOAD_CPU)), limit)
    }

    /// The peer's publisher on the servers' CPU, with a socket on the load's that counts what comes.
    pub(super) fn peer_publisher(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, StandError> {
        let program = Program::new(&self.peer_publisher)
            .args(arguments)
            .arg("--cpu")
            .arg(SERVER_CPU)
            .arg("--receiver-cpu")
            .arg(LOAD_CPU);
        run_measurement(&program, limit)
    }

    /// Messages through mosquitto on the servers' CPU, from our clients on the load's.
    pub(super) fn mosquitto(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, StandError> {
        let program = Program::new(&self.ours)
            .args(["bench", "mqtt", "--peer", "mosquitto"])
            .arg("--peer-cpu")
            .arg(SERVER_CPU)
            .arg("--cpu")
            .arg(LOAD_CPU)
            .args(arguments)
            .arg("--json");
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
