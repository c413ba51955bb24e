//! Starts the server and the canary, runs the attack and judges the result.

use crate::attack::ServerKind;
use crate::canary::{self, Canary};
use crate::keys::Keys;
use crate::report::{Findings, Memory, Report};
use crate::{
    Attack, AttackError, Limits, Options, Run, admission, chunks, discovery, forged, guessed, idle, login,
    memory, passwords, reader, services, slow, storm, timing,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use taktwerk_lab::process::Process;
use taktwerk_lab::program::{Program, Running};

/// Runs an attack. If `interrupt` is set, the attack ends early and the report contains no claims.
///
/// # Errors
///
/// The server or the canary does not start, or this machine allows too few open files.
pub fn run(options: &Options, interrupt: &AtomicBool) -> Result<Report, AttackError> {
    let connections = options.connections.unwrap_or(options.attack.connections());
    let files = taktwerk_lab::files::raise_limit();
    enough_files(options.attack, connections, files)?;
    let keys = Keys::make(&options.server)?;
    let mut server = start(options, &keys)?;
    let (url, pid) = (server.url().to_owned(), server.pid());
    let address = address(&url)?;
    let process = Process::new(pid);
    let provider = (options.attack.server() != ServerKind::ClearPasswords).then(|| keys.canary());
    let mut canary = Canary::start(&url, provider)
        .map_err(|error| AttackError::Environment(format!("the canary does not start: {error}")))?;
    // Memory that the first requests allocate belongs to the baseline.
    pause(options.settle.min(Duration::from_secs(2)), interrupt);
    let peak = Arc::new(AtomicU64::new(0));
    let run = Run {
        address,
        connections,
        duration: options.duration,
        bytes: options.bytes,
        limits: options.limits,
        judges_times: options.judges_times,
        keys: &keys,
        memory: &peak,
        pid,
        process,
        interrupt,
    };
    let before = run.rss();
    let watch = watch_memory(process, &peak);
    let began = Instant::now();
    let mut findings = attack(options.attack, &run).map_err(AttackError::Environment)?;
    let took = began.elapsed();
    pause(options.settle, interrupt);
    let first = peak.load(Ordering::Relaxed);
    let after = run.rss();
    drop(watch);
    let memory = Memory { before, peak: first, after };
    let canary = canary.stop();
    findings.claim("the server is alive", server.is_running());
    let mut report = Report::new(options, connections, took, findings, memory, canary);
    if run.is_over() {
        // An interrupt from a terminal or from timeout(1) also reaches the server. It closes its connections, so
        // nothing can be judged.
        report.drop_claims();
    }
    Ok(report)
}

fn attack(attack: Attack, run: &Run<'_>) -> Result<Findings, String> {
    match attack {
        Attack::Idle => idle::silent(run),
        Attack::HalfChunks => idle::half_chunks(run),
        Attack::OneAddress => idle::one_address(run),
        Attack::SlowLoris => slow::loris(run),
        Attack::ZeroWindow => reader::zero_window(run),
        Attack::Connects => storm::connects(run),
        Attack::Opens => storm::opens(run),
        Attack::Forged => forged::handshakes(run),
        Attack::Chunks => chunks::endless(run),
        Attack::Services => services::limits(run),
        Attack::Sessions => services::unactivated(run),
        Attack::Discovery => discovery::ask(run),
        Attack::Logins => login::guess(run),
        Attack::Timing => timing::handshakes(run),
        Attack::Passwords => passwords::compare(run),
        Attack::CreateSessions => admission::sessions(run),
        Attack::Storm => admission::storm(run),
        Attack::Audit => admission::audit(run),
        Attack::SessionStrings => memory::sessions(run),
        Attack::Acknowledgements => memory::acknowledgements(run),
        Attack::IndexRanges => memory::index_ranges(run),
    }
}

/// Whether this process may open as many files as the attack needs.
fn enough_files(attack: Attack, connections: usize, limit: u64) -> Result<(), AttackError> {
    let needed = attack.files(connections);
    if limit >= needed {
        return Ok(());
    }
    Err(AttackError::Environment(format!(
        "the attack needs {needed} open files, but the hard limit is {limit}. Raise it (ulimit -Hn, \
         /etc/security/limits.conf) or use fewer connections (--connections {})",
        limit.saturating_sub(100)
    )))
}

/// Starts the server in a separate process, so that its memory can be measured.
fn start(options: &Options, keys: &Keys) -> Result<Running, AttackError> {
    let mut program = Program::new(options.server.path.clone())
        .args(["serve", "--update", "100", "--exit-with-stdin", "--signals"])
        .arg(canary::ITEMS);
    let kind = options.attack.server();
    if kind == ServerKind::Plain {
        program = program.args(["--port", "0", "--no-plant", "--pki"]).arg(keys.server().display());
        if options.limits == Limits::Strangers {
            program = program.arg("--guarded");
        }
    } else {
        let config = guessed::write(keys.folder(), kind, &options.server)?;
        program = program.arg("--config").arg(config.display());
    }
    program.serve(Duration::from_secs(20)).map_err(AttackError::environment)
}

fn address(url: &str) -> Result<SocketAddr, AttackError> {
    let authority = url.strip_prefix("opc.tcp://").unwrap_or(url).split('/').next().unwrap_or_default();
    authority.parse().map_err(|_| AttackError::Environment(format!("{url} is not an address")))
}

fn pause(span: Duration, interrupt: &AtomicBool) {
    let end = Instant::now() + span;
    while Instant::now() < end && !interrupt.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50));
    }
}

/// Samples the server's memory until it is dropped.
struct Watch(Arc<AtomicBool>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn watch_memory(process: Process, peak: &Arc<AtomicU64>) -> Watch {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, peak) = (Arc::clone(&stop), Arc::clone(peak));
    // The thread ends soon after the attack and is not joined.
    let _ = thread::Builder::new().name("memory".to_owned()).spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            if let Ok(snapshot) = process.snapshot() {
                peak.fetch_max(snapshot.rss, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(100));
        }
    });
    Watch(stop)
}
