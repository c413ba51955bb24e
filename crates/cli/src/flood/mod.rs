//! `taktwerk lab flood`: what a server has to survive, done to a server on this machine, while an honest client looks
//! whether it notices.
//!
//! - [`idle`], [`slow`]: connections that do nothing, or next to nothing; [`reader`]: clients that do not read;
//! - [`storm`]: connections and handshakes as fast as they go; [`forged`]: handshakes that are looked at; [`chunks`]: messages that never end;
//! - [`services`]: sessions, subscriptions, items, requests up to their limits and beyond; [`discovery`]: what
//!   strangers are answered; [`login`]: guessed passwords, at a server with [`guessed`] users; [`timing`], [`passwords`]:
//!   what the time of a refusal tells;
//! - [`canary`]: the honest client, and [`keys`] for it; [`crowd`], [`wire`]: sockets; [`report`]: what came of it.

mod canary;
mod chunks;
mod crowd;
mod discovery;
mod forged;
mod guessed;
mod idle;
mod keys;
mod login;
mod passwords;
mod reader;
mod report;
mod services;
mod slow;
mod storm;
mod timing;
mod wire;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use canary::Canary;
use clap::{Args, ValueEnum};
use keys::Keys;
use report::{Findings, Memory, Report};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use taktwerk_lab::process::Process;
use taktwerk_lab::program::{Program, Running};

/// Floods a server on this machine and says what that did to an honest client.
#[derive(Debug, Args)]
pub(crate) struct FloodArgs {
    /// What to do to the server.
    #[arg(value_enum)]
    attack: Attack,

    /// Connections of the attacker; each attack has its own default.
    #[arg(long, short = 'c', value_name = "N")]
    connections: Option<usize>,

    /// How long the attack goes on; those that end by themselves take as long as they take.
    #[arg(long, short = 'd', value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,

    /// How long to wait afterwards before memory is compared.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    settle: u64,

    /// For `chunks`: bytes to send in all, in MB.
    #[arg(long, value_name = "MB", default_value_t = 10_000)]
    megabytes: u64,

    /// Start the server with the limits of `taktwerk serve` on loopback instead of those for strangers.
    #[arg(long)]
    wide: bool,

    /// The canary's 99th percentile of reads must stay below this.
    #[arg(long, value_name = "MS", default_value_t = 200.0)]
    p99: f64,

    /// Report the canary's times and the memory without judging them: for machines that do other things meanwhile.
    #[arg(long)]
    no_times: bool,
}

/// What can be done to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// Connections that never say Hello.
    Idle,
    /// Open channels with half a chunk each.
    HalfChunks,
    /// More connections from one address than one may have.
    OneAddress,
    /// Hello, OpenSecureChannel and messages at a byte per second.
    SlowLoris,
    /// Clients that ask and never read.
    ZeroWindow,
    /// Connections as fast as they go.
    Connects,
    /// OpenSecureChannel requests with junk in them as fast as they go.
    Opens,
    /// Handshakes of strangers with certificates in order, and of somebody trusted with wrong signatures, no faster than
    /// addresses may connect: each is looked at.
    Forged,
    /// Messages that never end.
    Chunks,
    /// Sessions, subscriptions, items, Publish requests and continuation points up to the limit and beyond.
    Services,
    /// Sessions that are never activated.
    Sessions,
    /// GetEndpoints and FindServers as fast as they go.
    Discovery,
    /// Guessed passwords.
    Logins,
    /// Handshakes that are broken in different ways: whether the time that they take tells which.
    Timing,
    /// Logins that fail in different ways: whether the time that they take tells whether a user exists.
    Passwords,
}

impl Attack {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether it is about users with passwords. Those are readable on the way, which a server that has a policy refuses: so
    /// nothing is secured.
    fn guesses(self) -> bool {
        matches!(self, Self::Logins | Self::Passwords)
    }

    fn connections(self) -> usize {
        match self {
            Self::Idle | Self::HalfChunks => 10_000,
            Self::SlowLoris => 2_000,
            Self::ZeroWindow => 500,
            Self::OneAddress => 300,
            Self::Chunks => 200,
            Self::Sessions => 3_000,
            Self::Logins => 10_000,
            // Half a minute: as long as it takes until the store of those that were refused is full.
            Self::Forged => 24_000,
            Self::Timing => 6_000,
            Self::Passwords => 1_000,
            Self::Connects | Self::Opens | Self::Services | Self::Discovery => 50,
        }
    }
}

/// Where an attack takes place.
pub(crate) struct Scene<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) duration: Duration,
    pub(crate) bytes: u64,
    pub(crate) is_wide: bool,
    pub(crate) judges_times: bool,
    pub(crate) keys: &'a Keys,
    memory: &'a AtomicU64,
    pid: u32,
    process: Process,
    interrupt: &'a Interrupt,
}

impl Scene<'_> {
    /// An attacker's address: so many connections share each. The canary's is not among them.
    pub(crate) fn source(&self, number: usize, per_address: usize) -> Option<IpAddr> {
        if !self.address.ip().is_loopback() || !self.address.is_ipv4() {
            return None;
        }
        let number = u32::try_from(number / per_address.max(1)).unwrap_or(u32::MAX) % 60_000;
        Some(IpAddr::V4(Ipv4Addr::from(0x7f01_0001 + number)))
    }

    /// How long to wait for something: as long as it may take, or much longer where times are not judged.
    pub(crate) fn patience(&self, span: Duration) -> Duration {
        if self.judges_times { span } else { 5 * span }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.interrupt.asked()
    }

    /// How many files the server has open: each connection is one.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }

    /// The most memory that the server had so far, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.rss();
        self.memory.load(Ordering::Relaxed)
    }

    /// Memory of the server now, in bytes.
    pub(crate) fn rss(&self) -> u64 {
        let rss = self.process.snapshot().map_or(0, |snapshot| snapshot.rss);
        self.memory.fetch_max(rss, Ordering::Relaxed);
        rss
    }
}

/// Runs an attack.
pub(crate) fn run(arguments: &FloodArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let connections = arguments.connections.unwrap_or(arguments.attack.connections());
    let files = taktwerk_lab::files::raise_limit();
    enough_files(arguments.attack, connections, files)?;
    let keys = Keys::make()?;
    let mut server = start(arguments, &keys)?;
    let (url, pid) = (server.url().to_owned(), server.pid());
    let address = address(&url)?;
    let process = Process::new(pid);
    let failed = |what: String| Failure::Environment(what);
    let provider = (!arguments.attack.guesses()).then(|| keys.canary());
    let mut canary = Canary::start(&url, provider)
        .map_err(|error| failed(format!("the canary does not start: {error}")))?;
    // What the first requests allocate is no part of the comparison.
    pause(Duration::from_secs(arguments.settle.min(2)), interrupt);
    let peak = Arc::new(AtomicU64::new(0));
    let scene = Scene {
        address,
        connections,
        duration: Duration::from_secs(arguments.seconds),
        bytes: arguments.megabytes * 1_000_000,
        is_wide: arguments.wide,
        judges_times: !arguments.no_times,
        keys: &keys,
        memory: &peak,
        pid,
        process,
        interrupt,
    };
    let before = scene.rss();
    let watch = watch_memory(process, &peak);
    let began = Instant::now();
    let mut findings = attack(arguments.attack, &scene).map_err(failed)?;
    let took = began.elapsed();
    pause(Duration::from_secs(arguments.settle), interrupt);
    let first = peak.load(Ordering::Relaxed);
    let after = scene.rss();
    drop(watch);
    let memory = Memory { before, peak: first, after };
    let song = canary.stop();
    findings.claim("the server is alive", server.is_running());
    let mut report = Report::new(arguments, connections, took, findings, memory, song);
    if interrupt.asked() {
        // Who interrupts this command from a terminal, or with timeout(1), interrupts the server as well: it says good-bye
        // to everybody, and none of that is an answer to the attack.
        report.judge_nothing();
        report.print(output)?;
        return Err(Failure::Interrupted);
    }
    report.print(output)?;
    match report.first_failure() {
        None => Ok(()),
        Some(claim) => Err(Failure::Threshold(claim)),
    }
}

fn attack(attack: Attack, scene: &Scene<'_>) -> Result<Findings, String> {
    match attack {
        Attack::Idle => idle::silent(scene),
        Attack::HalfChunks => idle::half_chunks(scene),
        Attack::OneAddress => idle::one_address(scene),
        Attack::SlowLoris => slow::loris(scene),
        Attack::ZeroWindow => reader::zero_window(scene),
        Attack::Connects => storm::connects(scene),
        Attack::Opens => storm::opens(scene),
        Attack::Forged => forged::handshakes(scene),
        Attack::Chunks => chunks::endless(scene),
        Attack::Services => services::limits(scene),
        Attack::Sessions => services::unactivated(scene),
        Attack::Discovery => discovery::ask(scene),
        Attack::Logins => login::guess(scene),
        Attack::Timing => timing::handshakes(scene),
        Attack::Passwords => passwords::compare(scene),
    }
}

/// Descriptors that the attack needs, against those that this process may have.
fn enough_files(attack: Attack, connections: usize, limit: u64) -> Result<(), Failure> {
    let needed = match attack {
        Attack::Logins | Attack::Timing | Attack::Passwords | Attack::Forged => 200,
        _ => connections as u64 + 100,
    };
    if limit >= needed {
        return Ok(());
    }
    Err(Failure::Environment(format!(
        "{needed} open files are needed and {limit} allowed, which is the hard limit: raise it (ulimit -Hn, \
         /etc/security/limits.conf) or use fewer connections (--connections {})",
        limit.saturating_sub(100)
    )))
}

/// The server under attack: this program, so that its memory is its own.
fn start(arguments: &FloodArgs, keys: &Keys) -> Result<Running, Failure> {
    let environment = |error: &dyn core::fmt::Display| Failure::Environment(error.to_string());
    crate::commands::lab::clean_up();
    let path = std::env::current_exe().map_err(|error| environment(&error))?;
    let mut program = Program::new(path)
        .args(["serve", "--update", "100", "--exit-with-stdin", "--signals"])
        .arg(canary::ITEMS);
    if arguments.attack.guesses() {
        let config = guessed::write(keys.folder())?;
        program = program.arg("--config").arg(config.display());
    } else {
        program = program.args(["--port", "0", "--no-plant", "--pki"]).arg(keys.server().display());
        if !arguments.wide {
            program = program.arg("--guarded");
        }
    }
    program.serve(Duration::from_secs(20)).map_err(|error| environment(&error))
}

fn address(url: &str) -> Result<SocketAddr, Failure> {
    let authority = url.strip_prefix("opc.tcp://").unwrap_or(url).split('/').next().unwrap_or_default();
    authority.parse().map_err(|_| Failure::Environment(format!("{url} is not an address")))
}

fn pause(span: Duration, interrupt: &Interrupt) {
    let end = Instant::now() + span;
    while Instant::now() < end && !interrupt.asked() {
        thread::sleep(Duration::from_millis(50));
    }
}

/// Looks at the server's memory until it is dropped.
struct Watch(Arc<AtomicBool>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn watch_memory(process: Process, peak: &Arc<AtomicU64>) -> Watch {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, peak) = (Arc::clone(&stop), Arc::clone(peak));
    // It ends within a moment of the attack; nobody waits for it.
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
