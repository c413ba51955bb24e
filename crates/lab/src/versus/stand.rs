//! The compared programs, their CPUs, and single measurements with them.

use super::samples::Side;
use super::{Event, Watch};
use crate::pin::CpuList;
use crate::process::{Process, ProcessError, Snapshot};
use crate::program::{Program, ProgramError, Running};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// CPU of the servers.
const SERVER_CPU: usize = 0;
/// CPU of the load, unless a figure needs both on one CPU.
const LOAD_CPU: usize = 1;
/// Start timeout: a server with 400 000 nodes is slow to start, especially the peer's.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum VersusError {
    /// The peer is not installed.
    #[error("{0} does not exist: run `taktwerk lab peers install open62541`")]
    NoPeer(PathBuf),
    /// A program is missing that can only be built in a checkout.
    #[error("{0} is missing: `cargo xtask versus` builds it")]
    NotHere(&'static str),
    /// The machine has too few CPUs.
    #[error("server and load each need a CPU of their own, and this process may only use CPU {0}")]
    Cpus(CpuList),
    /// A program failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The resources of a process could not be read.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A measurement ended with an error.
    #[error("{line} ended with {status}: {stderr}")]
    Failed {
        /// The command line.
        line: String,
        /// Its exit status.
        status: String,
        /// Its error output.
        stderr: String,
    },
    /// The output lacks a number.
    #[error("{line} printed no number at {pointer}")]
    Missing {
        /// The command line.
        line: String,
        /// JSON pointer of the number.
        pointer: String,
    },
    /// The created certificates cannot be listed.
    #[error("cannot read {path}: {source}")]
    Folder {
        /// Their directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// No load is sustained.
    #[error("no figure: not even {least} signals are sustained, for the reasons above")]
    Nothing {
        /// The smallest load tried.
        least: usize,
    },
}

/// How a connection is secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Secured {
    pub(super) policy: &'static str,
    /// SignAndEncrypt, or Sign.
    pub(super) encrypts: bool,
}

/// Paths of the compared programs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The `taktwerk` program: server and load generator.
    pub taktwerk: PathBuf,
    /// The directory with the peer's programs and the TCP floor, as built by `interop/open62541/build.sh`.
    pub peer: PathBuf,
    /// A server with only the library.
    pub library: Option<PathBuf>,
    /// The benchmark that counts allocations.
    pub allocations: Option<PathBuf>,
    /// The floor of cryptography.
    pub cipher: Option<PathBuf>,
}

/// The programs, their CPUs, and their certificates.
pub(super) struct Stand {
    programs: Programs,
    /// Certificates created for this run.
    folder: PathBuf,
    watch: Watch,
}

impl Drop for Stand {
    fn drop(&mut self) {
        // The directory is temporary; if removing it fails, the system removes it later.
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
    pub(super) fn number(&self, pointer: &str) -> Result<f64, VersusError> {
        let missing = || VersusError::Missing { line: self.line.clone(), pointer: pointer.to_owned() };
        self.document.pointer(pointer).and_then(Value::as_f64).ok_or_else(missing)
    }
}

/// Kinds of keys for the policies.
const KEYS: [&str; 4] = ["rsa2048", "p256", "p384", "ed25519"];

impl Stand {
    /// Checks the machine and creates certificates.
    pub(super) fn new(programs: Programs, watch: Watch) -> Result<Self, VersusError> {
        let allowed = CpuList::allowed();
        if ![SERVER_CPU, LOAD_CPU].iter().all(|cpu| allowed.cpus().contains(cpu)) {
            return Err(VersusError::Cpus(allowed));
        }
        let server = programs.peer.join("o6-server");
        if !server.is_file() {
            return Err(VersusError::NoPeer(server));
        }
        let folder = std::env::temp_dir().join(format!("taktwerk-versus-{}", std::process::id()));
        let stand = Self { programs, folder, watch };
        stand.make_certificates()?;
        Ok(stand)
    }

    pub(super) fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Reports progress of a search.
    pub(super) fn note(&self, text: &str) {
        (self.watch.tell)(Event::Note(text));
    }

    /// Whether the comparison was stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.watch.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// A program of the peer.
    fn peer(&self, name: &str) -> Program {
        Program::new(self.programs.peer.join(name))
    }

    fn taktwerk(&self) -> Program {
        Program::new(&self.programs.taktwerk)
    }

    /// A program that can only be built in a checkout.
    fn optional(path: Option<&PathBuf>, what: &'static str) -> Result<Program, VersusError> {
        path.map(Program::new).ok_or(VersusError::NotHere(what))
    }

    fn serve(&self, program: Program) -> Result<Running, VersusError> {
        Ok(program.serve_unless(START_LIMIT, self.watch.stop.as_deref())?)
    }

    /// Certificates of our server and client, which trust each other, and of the peer, for all kinds of keys.
    fn make_certificates(&self) -> Result<(), VersusError> {
        let pki = |arguments: &[&str], store: &str| {
            let program = self.taktwerk().arg("pki").args(arguments);
            let program = program.arg("--pki").arg(self.folder.join(store).display());
            let output = program.run(START_LIMIT)?;
            if output.status.success() {
                return Ok(());
            }
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(VersusError::Failed { line: program.line(), status: output.status.to_string(), stderr })
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
    fn files(&self, store: &str, folder: &str) -> Result<Vec<String>, VersusError> {
        let path = self.folder.join(store).join(folder);
        let failed = |source| VersusError::Folder { path: path.clone(), source };
        let entries = std::fs::read_dir(&path).map_err(failed)?;
        entries.map(|entry| entry.map(|entry| entry.path().display().to_string()).map_err(failed)).collect()
    }

    /// Certificate and key of the peer, as arguments of its programs.
    fn peer_certificate(&self, store: &str, security: Secured) -> Result<Vec<String>, VersusError> {
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

    /// A server of a side that offers this security and None, on its CPU or on all CPUs.
    pub(super) fn secured_server(
        &self,
        side: Side,
        signals: usize,
        update_ms: u32,
        security: Option<Secured>,
        pinned: bool,
    ) -> Result<Running, VersusError> {
        let mut program = match side {
            Side::Peer => self.peer("o6-server").args(["--variables"]),
            Side::Ours | Side::Floor => self.taktwerk().args(["serve", "--no-plant", "--signals"]),
        };
        program = program
            .arg(signals)
            .args(["--update", &update_ms.to_string(), "--port", "0", "--max-sessions", "2000"])
            .arg("--exit-with-stdin");
        if side != Side::Peer {
            program = program.arg("--pki").arg(self.folder.join("server").display());
            // The peer's server also offers None, so both modes can be measured in one process.
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
        self.serve(program)
    }

    /// Our load generator with this security, on the server's CPU or on the other one.
    pub(super) fn secured_bench(
        &self,
        server: &Running,
        arguments: &[&str],
        security: Option<Secured>,
        beside: bool,
        limit: Duration,
    ) -> Result<Outcome, VersusError> {
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
    ) -> Result<Outcome, VersusError> {
        let mut program = self.peer("o6-client").arg(command).arg(server.url()).args(arguments);
        if let Some(security) = security {
            let mode = if security.encrypts { "encrypt" } else { "sign" };
            program = program.args(["--policy", security.policy, "--mode", mode]);
            program = program.args(self.peer_certificate("peer-client", security)?);
        }
        let cpu = if beside { SERVER_CPU } else { LOAD_CPU };
        self.measurement(&program.on(CpuList::single(cpu)), limit)
    }

    /// The bare cryptography of a message.
    pub(super) fn cipher(&self, length: usize, limit: Duration) -> Result<Outcome, VersusError> {
        let program = Self::optional(self.programs.cipher.as_ref(), "the floor of cryptography")?
            .arg("--length")
            .arg(length);
        self.measurement(&program.on(CpuList::single(SERVER_CPU)), limit)
    }

    /// A server of a side on its CPU, with `signals` variables that change every `update_ms`.
    pub(super) fn server(&self, side: Side, signals: usize, update_ms: u32) -> Result<Running, VersusError> {
        self.serve(self.server_program(side, signals, update_ms))
    }

    fn server_program(&self, side: Side, signals: usize, update_ms: u32) -> Program {
        let program = match side {
            Side::Peer => self.peer("o6-server").args(["--variables"]),
            Side::Ours | Side::Floor => self.taktwerk().args(["serve", "--no-plant", "--signals"]),
        };
        program
            .arg(signals)
            .args(["--update", &update_ms.to_string(), "--port", "0", "--max-sessions", "2000"])
            .arg("--exit-with-stdin")
            .on(CpuList::single(SERVER_CPU))
    }

    /// Like [`Self::server`], with values that contain the time of their write.
    pub(super) fn server_with_times(
        &self,
        side: Side,
        signals: usize,
        update_ms: u32,
    ) -> Result<Running, VersusError> {
        self.serve(self.server_program(side, signals, update_ms).args(["--signal-values", "time"]))
    }

    /// A program with only our library, as the peer's server has only its library.
    pub(super) fn library_server(&self) -> Result<Running, VersusError> {
        let program = Self::optional(self.programs.library.as_ref(), "the example `minimal`")?;
        self.serve(program.on(CpuList::single(SERVER_CPU)))
    }

    /// The load generator on its CPU, measuring the CPU time of a server.
    pub(super) fn bench(
        &self,
        server: &Running,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Outcome, VersusError> {
        self.bench_on(LOAD_CPU, server, arguments, limit)
    }

    /// The same on the server's CPU.
    pub(super) fn bench_beside(
        &self,
        server: &Running,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Outcome, VersusError> {
        self.bench_on(SERVER_CPU, server, arguments, limit)
    }

    fn bench_on(
        &self,
        cpu: usize,
        server: &Running,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Outcome, VersusError> {
        let program = self
            .taktwerk()
            .arg("bench")
            .args(arguments)
            .arg(server.url())
            .arg("--json")
            .arg("--server-pid")
            .arg(server.pid())
            .on(CpuList::single(cpu));
        self.measurement(&program, limit)
    }

    /// Our publisher on the servers' CPU, and its subscriber on the load's.
    pub(super) fn pubsub(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, VersusError> {
        let program = self
            .taktwerk()
            .args(["bench", "pubsub"])
            .args(arguments)
            .arg("--json")
            .arg("--publisher-cpu")
            .arg(SERVER_CPU)
            .arg("--subscriber-cpu")
            .arg(LOAD_CPU);
        self.measurement(&program, limit)
    }

    /// Our stations, which publish to each other, all on the load's CPU.
    pub(super) fn stations(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, VersusError> {
        let program = self.taktwerk().args(["bench", "pubsub"]).args(arguments).arg("--json");
        self.measurement(&program.on(CpuList::single(LOAD_CPU)), limit)
    }

    /// The peer's publisher on the servers' CPU, and a socket on the load's CPU that counts datagrams.
    pub(super) fn peer_publisher(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, VersusError> {
        let program = self
            .peer("o6-pubsub-bench")
            .args(arguments)
            .arg("--cpu")
            .arg(SERVER_CPU)
            .arg("--receiver-cpu")
            .arg(LOAD_CPU);
        self.measurement(&program, limit)
    }

    /// Messages through mosquitto on the servers' CPU, from our clients on the load's CPU.
    pub(super) fn mosquitto(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, VersusError> {
        let program = self
            .taktwerk()
            .args(["bench", "mqtt", "--peer", "mosquitto"])
            .arg("--peer-cpu")
            .arg(SERVER_CPU)
            .arg("--cpu")
            .arg(LOAD_CPU)
            .args(arguments)
            .arg("--json");
        self.measurement(&program, limit)
    }

    /// The bare TCP program.
    pub(super) fn floor(&self, arguments: &[&str], limit: Duration) -> Result<Outcome, VersusError> {
        self.measurement(&self.peer("tcp-floor").args(arguments), limit)
    }

    /// The benchmark that counts allocations.
    pub(super) fn allocations(&self, limit: Duration) -> Result<Outcome, VersusError> {
        let program = Self::optional(self.programs.allocations.as_ref(), "the allocation benchmark")?
            .arg("--taktwerk")
            .arg(self.programs.taktwerk.display());
        self.measurement(&program, limit)
    }

    fn measurement(&self, program: &Program, limit: Duration) -> Result<Outcome, VersusError> {
        let output = program.run_unless(limit, self.watch.stop.as_deref())?;
        let line = program.line();
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(VersusError::Failed { line, status: output.status.to_string(), stderr });
        }
        let document = serde_json::from_slice(&output.stdout)
            .map_err(|_| VersusError::Missing { line: line.clone(), pointer: "/ (no JSON)".into() })?;
        Ok(Outcome { line, document })
    }
}

/// Resource use of a server once it is constant.
pub(super) fn settled(server: &Running) -> Result<Snapshot, VersusError> {
    std::thread::sleep(Duration::from_secs(1));
    Ok(Process::new(server.pid()).snapshot()?)
}
