//! Where measurements happen: which programs there are, which CPUs, and one measurement from start to end.

use crate::clock;
use crate::cpu::{Governor, NotPermitted, Set, Wanted, governor};
use crate::links::{Effort, Link, Method, Probed, Profile, probe};
use crate::machine::Machine;
use crate::measurement::Measurement;
use crate::peers::{self, PEERS, Peer, PeerOptions, Role, State};
use crate::pin::{CpuList, ParseCpuListError};
use crate::program::{Program, ProgramError, Running, digest};
use crate::scenario::{BROKERLESS, Condition, CpuCondition, Kind, broker};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A server with many nodes takes a while to start.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a server that runs already may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// What a measurement may take beyond its own time.
const SLACK: Duration = Duration::from_secs(60);

/// Why a measurement did not come about.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A program failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A list of CPUs makes no sense.
    #[error(transparent)]
    Cpus(#[from] ParseCpuListError),
    /// A peer is not there.
    #[error("the peer {name:?} is not installed: {how}")]
    NoPeer {
        /// Which.
        name: String,
        /// What to do.
        how: String,
    },
    /// A peer is there and does not run.
    #[error("the peer {name:?} did not start: {source}")]
    Peer {
        /// Which.
        name: &'static str,
        /// Why.
        source: ProgramError,
    },
    /// Nobody listens where the server should be.
    #[error("nobody listens at {url}: {why}")]
    NoServer {
        /// Where.
        url: String,
        /// Why.
        why: String,
    },
    /// CPUs that this process may not use, or that there are not.
    #[error("the CPUs {asked} are not all there: this process may use {allowed}")]
    NoCpus {
        /// Which were asked for.
        asked: String,
        /// Which there are.
        allowed: String,
    },
    /// A link is not there.
    #[error("the link {name:?} cannot be emulated here: {why}")]
    NoLink {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// The CPU conditions cannot be had.
    #[error(transparent)]
    Conditions(#[from] NotPermitted),
    /// The load did not come to an end that can be used.
    #[error("{line} ended with {status}: {stderr}")]
    Load {
        /// The command line.
        line: String,
        /// How it ended.
        status: String,
        /// What it said.
        stderr: String,
    },
}

impl PlaceError {
    /// A server was not ready in the time that it was given.
    pub(crate) fn is_slow_start(&self) -> bool {
        matches!(self, Self::Peer { source: ProgramError::TimedOut { .. }, .. })
    }
}

/// The programs, the CPUs and the links that stand.
#[derive(Debug)]
pub struct Place {
    /// The `taktwerk` program: server, client and load generator in one.
    exe: PathBuf,
    /// Where peers are installed.
    peers: PathBuf,
    allowed: Vec<usize>,
    slack: Duration,
    /// What loads need beside a URL to be let in.
    client: Vec<String>,
    /// Ends the load that is being measured.
    stop: Option<Arc<AtomicBool>>,
    /// Links that have been made and probed. They go when this goes.
    links: Mutex<BTreeMap<String, Arc<Standing>>>,
}

/// A link that stands, with what was seen of it.
#[derive(Debug)]
struct Standing {
    link: Link,
    probed: Probed,
}

/// A server under test.
struct Server {
    url: String,
    pid: Option<u32>,
    /// Stops it when dropped.
    _running: Option<Running>,
}

/// The same link every time.
const SEED: u64 = 0x7461_6b74;

impl Place {
    /// This machine with the program `exe`, and peers below `peers`.
    #[must_use]
    pub fn new(exe: PathBuf, peers: PathBuf) -> Self {
        Self {
            exe,
            peers,
            allowed: CpuList::allowed().cpus().to_vec(),
            slack: SLACK,
            client: Vec::new(),
            stop: None,
            links: Mutex::default(),
        }
    }

    /// The same place, with another limit to what a measurement may take beyond its own time.
    #[must_use]
    pub fn with_slack(mut self, slack: Duration) -> Self {
        self.slack = slack;
        self
    }

    /// The same place, with options of `taktwerk bench` for servers that run already: as whom, with which security.
    #[must_use]
    pub fn with_client(mut self, options: Vec<String>) -> Self {
        self.client = options;
        self
    }

    /// The same place, where a measurement ends with an error as soon as this is set.
    #[must_use]
    pub fn with_stop(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The CPU of servers: the first this process may use.
    #[must_use]
    pub fn server_cpu(&self) -> usize {
        self.allowed.first().copied().unwrap_or(0)
    }

    /// The CPU of the load: the second, or the same on a machine with one.
    #[must_use]
    pub fn load_cpu(&self) -> usize {
        self.allowed.get(1).copied().unwrap_or_else(|| self.server_cpu())
    }

    /// Whether server and load have a CPU each.
    #[must_use]
    pub fn has_two_cpus(&self) -> bool {
        self.allowed.len() > 1
    }

    /// What stands beside every result.
    #[must_use]
    pub fn fingerprint(&self) -> Value {
        let version = |stack: &String| {
            let peer = peers::find(stack)?;
            Some((stack.clone(), json!(peer.version)))
        };
        let peers: serde_json::Map<String, Value> = self.stacks().iter().filter_map(version).collect();
        json!({
            "machine": Machine::this(),
            "version": env!("CARGO_PKG_VERSION"),
            // Versions do not tell two builds apart.
            "program": digest(&self.exe).ok().map(|digest| format!("{digest:016x}")),
            "server_cpu": self.server_cpu(),
            "load_cpu": self.load_cpu(),
            "peers": peers,
        })
    }

    /// The stacks that can be measured here: `own` first.
    #[must_use]
    pub fn stacks(&self) -> Vec<String> {
        let mut stacks = vec!["own".to_owned()];
        let installed = PEERS.iter().filter(|peer| peer.role == Role::OpcUa && self.has(peer));
        stacks.extend(installed.map(|peer| peer.name.to_owned()));
        stacks
    }

    /// The MQTT brokers that are installed, the one that is best known first.
    #[must_use]
    pub fn brokers(&self) -> Vec<&'static str> {
        let installed = PEERS.iter().filter(|peer| peer.role == Role::Mqtt && self.has(peer));
        installed.map(|peer| peer.name).collect()
    }

    fn has(&self, peer: &Peer) -> bool {
        matches!(peers::state(peer, &self.peers), State::Installed { .. })
            || (peer.name == "open62541" && self.open62541().is_file())
    }

    fn open62541(&self) -> PathBuf {
        self.peers.join("open62541/bin/o6-server")
    }

    /// Whether a link can be had: it is made and probed now if it does not stand yet.
    ///
    /// # Errors
    /// If there is none of this name, or this machine cannot emulate it as it should be.
    pub fn check_link(&self, name: &str) -> Result<(), PlaceError> {
        self.link(name).map(drop)
    }

    /// Whether there is a link of this name, without making it.
    ///
    /// # Errors
    /// If there is none.
    pub fn know_link(&self, name: &str) -> Result<(), PlaceError> {
        let unknown =
            |why: &dyn std::fmt::Display| PlaceError::NoLink { name: name.to_owned(), why: why.to_string() };
        name.parse::<Profile>().map(drop).map_err(|error| unknown(&error))
    }

    fn link(&self, name: &str) -> Result<Arc<Standing>, PlaceError> {
        self.link_by(name, None)
    }

    /// A link that is made in one way, or in the most exact that works here.
    fn link_by(&self, name: &str, method: Option<Method>) -> Result<Arc<Standing>, PlaceError> {
        let failed = |why: String| PlaceError::NoLink { name: name.to_owned(), why };
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let key = method.map_or_else(|| name.to_owned(), |method| format!("{name} by {method}"));
        if let Some(standing) = links.get(&key) {
            return Ok(Arc::clone(standing));
        }
        let profile: Profile = name.parse().map_err(|error| failed(format!("{error}")))?;
        let link = match method {
            Some(method) => Link::by(method, &profile, SEED),
            None => Link::up(&profile, SEED),
        };
        let link = link.map_err(|error| failed(error.to_string()))?;
        let look =
            || probe(&link, &Effort::BRIEF).map_err(|error| failed(format!("probing failed: {error}")));
        let mut probed = look()?;
        if !probed.is_verified() {
            // A machine that was busy for a moment is no reason to do without the link.
            probed = look()?;
        }
        if !probed.is_verified() {
            return Err(failed(format!("it does not do what it should: {}", probed.deviations.join("; "))));
        }
        let standing = Arc::new(Standing { link, probed });
        links.insert(key, Arc::clone(&standing));
        Ok(standing)
    }

    /// Whether a condition's CPU conditions can be had: they are set, tried on a program, and undone again.
    ///
    /// # Errors
    /// What is missing on this machine.
    pub fn check_cpu(&self, condition: &Condition) -> Result<(), PlaceError> {
        if !condition.cpu.is_special() {
            return Ok(());
        }
        let set = self.wanted(condition)?.set()?;
        let mut sleeper = Program::new("/bin/sh").args(["-c", "echo READY here; exec sleep 60"]);
        if let Some(cpus) = set.start_on() {
            sleeper = sleeper.on(cpus.clone());
        }
        let running = sleeper.serve(START_LIMIT)?;
        Ok(set.admit(running.pid())?)
    }

    /// Two governors that can be set on the server's CPU: the one that it has, or one that saves, and `performance`. Empty
    /// if they cannot be set.
    #[must_use]
    pub fn governors(&self) -> Vec<String> {
        let cpu = self.server_cpu();
        let known = governor::known(cpu);
        let present = governor::of(cpu).filter(|it| it != "performance");
        let saving = present.or_else(|| known.iter().find(|it| *it != "performance").cloned());
        let pair = saving.into_iter().chain(known.iter().find(|it| *it == "performance").cloned());
        let can = |name: &String| Governor::set(name, &CpuList::single(cpu)).is_ok();
        pair.filter(can).collect()
    }

    /// Whether a condition can be measured here, as far as that can be known without measuring: its stack, link and CPUs.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&self, condition: &Condition) -> Result<(), PlaceError> {
        if let Some(link) = &condition.link {
            self.know_link(link)?;
        }
        for asked in condition.cpu.server.iter().chain(&condition.cpu.load) {
            let list: CpuList = asked.parse()?;
            if !list.cpus().iter().all(|cpu| self.allowed.contains(cpu)) {
                return Err(PlaceError::NoCpus {
                    asked: asked.clone(),
                    allowed: CpuList::allowed().to_string(),
                });
            }
        }
        let stack = condition.stack.as_str();
        let has_none = matches!(condition.kind, Kind::Update | Kind::PubSub | Kind::Igmp);
        if has_none || stack == BROKERLESS || stack == "own" {
            return Ok(());
        }
        if is_url(stack) {
            return listens(stack).map_err(|why| PlaceError::NoServer { url: stack.to_owned(), why });
        }
        let name = broker(stack).map_or(stack, |(peer, _)| peer);
        let how = match peers::find(name) {
            Some(peer) if self.has(peer) => return Ok(()),
            Some(_) => format!("taktwerk lab peers install {name}"),
            None => "`taktwerk lab peers list` says which there are".to_owned(),
        };
        Err(PlaceError::NoPeer { name: stack.to_owned(), how })
    }

    /// The CPU conditions of the server.
    fn wanted(&self, condition: &Condition) -> Result<Wanted, PlaceError> {
        let cpu = &condition.cpu;
        let cpus = match &cpu.server {
            Some(list) => list.parse()?,
            None => CpuList::single(self.server_cpu()),
        };
        let class = cpu.class.as_ref().map(|class| class.parse()).transpose()?;
        Ok(Wanted { cpus, isolate: cpu.isolate, class, governor: cpu.governor.clone() })
    }

    fn own_program(&self, condition: &Condition, bind: IpAddr) -> Program {
        let server = &condition.server;
        let mut program = Program::new(&self.exe)
            .args(["serve", "--no-plant", "--signals"])
            .arg(condition.signals())
            .args(["--threads", &server.threads.to_string()])
            .args(["--bind", &bind.to_string()])
            .arg("--update")
            .arg(server.update_ms)
            .args(["--port", "0", "--max-sessions", "10000", "--exit-with-stdin"]);
        if !bind.is_loopback() {
            // A network of the lab's own; beyond loopback a server wants to be told what it offers.
            program = program.args(["--policy", &condition.security.policy]);
        }
        if server.interop {
            program = program.arg("--interop");
        }
        if server.profile {
            program = program.arg("--profile");
        }
        program
    }

    /// An empty folder for the certificates of a load: a peer that has just been started has made one that nobody knows, and
    /// what the user trusts is none of the laboratory's business.
    fn fresh_pki(&self) -> PathBuf {
        let folder = self.peers.join("load-pki");
        // What is still there has been trusted for one measurement only. If it cannot go, the load says what is wrong.
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    /// open62541 with security, which the common interface of peers does not have.
    fn open62541_program(&self, condition: &Condition, bind: IpAddr) -> Program {
        let mut program = Program::new(self.open62541())
            .arg("--variables")
            .arg(condition.signals())
            .args(["--bind", &bind.to_string()])
            .arg("--update")
            .arg(condition.server.update_ms)
            .args(["--port", "0", "--max-sessions", "10000", "--exit-with-stdin"]);
        if !condition.security.is_none() {
            program = program.args(["--policies", "all", "--trust-all"]);
        }
        program
    }

    fn start(
        &self,
        condition: &Condition,
        cpus: &Set,
        link: Option<&Standing>,
    ) -> Result<Server, PlaceError> {
        let stack = condition.stack.as_str();
        let no_link = |why| PlaceError::NoLink { name: condition.link.clone().unwrap_or_default(), why };
        if is_url(stack) {
            let url = link.map_or(Ok(stack.to_owned()), |standing| relayed(&standing.link, stack));
            return Ok(Server { url: url.map_err(no_link)?, pid: None, _running: None });
        }
        let bind = link.map_or(Ipv4Addr::LOCALHOST.into(), |standing| standing.link.server_address());
        let network = link.and_then(|standing| standing.link.server_place());
        let program = match stack {
            "own" => Some(self.own_program(condition, bind)),
            "open62541" if self.open62541().is_file() => Some(self.open62541_program(condition, bind)),
            _ => None,
        };
        let peer = broker(stack).map_or(stack, |(peer, _)| peer);
        let running = match (program, peers::find(peer)) {
            (Some(mut program), _) => {
                if let Some(network) = network {
                    program = program.within(network);
                }
                if let Some(cpus) = cpus.start_on() {
                    program = program.on(cpus.clone());
                }
                program.serve_unless(START_LIMIT, self.stop.as_deref())?
            }
            (None, Some(peer)) => {
                let options = PeerOptions {
                    bind,
                    variables: condition.signals(),
                    update: Duration::from_secs_f64(condition.server.update_ms.max(0.0) / 1e3),
                    cpus: cpus.start_on().cloned(),
                    network: network.cloned(),
                    stop: self.stop.clone(),
                    ..PeerOptions::default()
                };
                let failed = |error| match error {
                    peers::StartError::Program { peer, source } => PlaceError::Peer { name: peer, source },
                    peers::StartError::NotInstalled { peer, command } => {
                        PlaceError::NoPeer { name: peer.to_owned(), how: command }
                    }
                };
                peers::start(peer, &self.peers, &options).map_err(failed)?
            }
            (None, None) => {
                let how = "`taktwerk lab peers list` says which there are".to_owned();
                return Err(PlaceError::NoPeer { name: stack.to_owned(), how });
            }
        };
        cpus.admit(running.pid())?;
        let mut url = running.url().to_owned();
        if let Some(standing) = link {
            url = through(&standing.link, &url).map_err(no_link)?;
        }
        Ok(Server { url, pid: Some(running.pid()), _running: Some(running) })
    }

    /// Measures a condition once.
    ///
    /// # Errors
    /// If something is missing or a program fails. A measurement that is worth nothing is no error: it says so itself.
    pub fn measure(
        &self,
        experiment: &str,
        condition: &Condition,
        repetition: u32,
    ) -> Result<Measurement, PlaceError> {
        // A server that runs already can be in no network of ours: there it is a relay.
        let method = is_url(&condition.stack).then_some(Method::Proxy);
        let link = condition.link.as_ref().map(|name| self.link_by(name, method)).transpose()?;
        let wanted = self.wanted(condition)?;
        let server_cpus = wanted.cpus.clone();
        let load_cpu = match condition.cpu.condition {
            CpuCondition::Same => self.server_cpu(),
            CpuCondition::Isolated | CpuCondition::Shared => self.load_cpu(),
        };
        let load_cpus = match &condition.cpu.load {
            Some(list) => list.parse()?,
            None => CpuList::single(load_cpu),
        };
        let set = wanted.set()?;
        let _bursts =
            (condition.cpu.condition == CpuCondition::Shared).then(|| Bursts::on(server_cpus.clone()));
        let mut program = Program::new(&self.exe).arg("bench").args(condition.arguments());
        let server = match condition.kind {
            Kind::Update => {
                program = program.on(server_and_load(&server_cpus, &load_cpus));
                None
            }
            Kind::PubSub => {
                let pair = server_cpus.cpus().first().zip(load_cpus.cpus().first());
                if let Some((publisher, subscriber)) = pair {
                    program = program.arg("--publisher-cpu").arg(publisher);
                    program = program.arg("--subscriber-cpu").arg(subscriber);
                }
                None
            }
            Kind::Igmp => None,
            _ if condition.stack == BROKERLESS => {
                program = program.on(load_cpus);
                None
            }
            _ => {
                let server = self.start(condition, &set, link.as_deref())?;
                program = program.arg(&server.url).arg("--exit-with-stdin").on(load_cpus);
                if let Some(network) = link.as_ref().and_then(|standing| standing.link.client_place()) {
                    program = program.within(network);
                }
                if let Some(pid) = server.pid {
                    program = program.arg("--server-pid").arg(pid);
                }
                let mut says_security = !condition.security.is_none() || !server.url.starts_with("opc.tcp:");
                if is_url(&condition.stack) {
                    program = program.args(&self.client);
                    says_security |=
                        self.client.iter().any(|option| option == "--policy" || option == "--cert");
                }
                if !condition.security.is_none() && condition.stack != "own" && !is_url(&condition.stack) {
                    program =
                        program.arg("--pki").arg(self.fresh_pki().display()).arg("--trust-on-first-use");
                }
                if !says_security {
                    // Where the server is, behind a link or on another machine, is not what decides.
                    program = program.args(["--policy", "None"]);
                }
                if let (Kind::Probe, Some(cpu)) = (condition.kind, server_cpus.cpus().first()) {
                    program = program.arg("--server-cpu").arg(cpu);
                }
                Some(server)
            }
        };
        let limit = Duration::from_secs_f64(condition.seconds() * 3.0) + self.slack;
        let result = run(&program.arg("--json"), limit, self.stop.as_deref());
        drop(server);
        let mut document = result?;
        if let (Some(standing), Some(document)) = (link, document.as_object_mut()) {
            // What was asked of the link and what was seen of it belongs to the result.
            document.insert("link".to_owned(), json!(standing.probed));
        }
        if let (Some(kind), Some(document)) = (set.isolation(), document.as_object_mut()) {
            document.insert("isolation".to_owned(), json!(kind));
        }
        Ok(Measurement::from_document(experiment, condition.clone(), repetition, document))
    }
}

/// Whether a stack can be measured with encryption: the common interface of peers has no security.
#[must_use]
pub fn can_encrypt(stack: &str) -> bool {
    matches!(stack, "own" | "open62541") || is_url(stack)
}

/// Whether a stack is a server that runs already.
fn is_url(stack: &str) -> bool {
    stack.contains("://")
}

/// Whether somebody listens at a URL. Schemes whose port is not known are not looked at.
fn listens(url: &str) -> Result<(), String> {
    let Some((scheme, rest)) = url.split_once("://") else { return Err("it is no URL".to_owned()) };
    let port = match scheme.split('+').next() {
        Some("opc.tcp") => 4840,
        Some("mqtt") => 1883,
        Some("mqtts") => 8883,
        _ => return Ok(()),
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let authority = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    let mut error = "the name has no address".to_owned();
    for address in authority.to_socket_addrs().map_err(|error| error.to_string())? {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(_) => return Ok(()),
            Err(refused) => error = refused.to_string(),
        }
    }
    Err(error)
}

/// The URL of a relay to a server that runs already.
fn relayed(link: &Link, url: &str) -> Result<String, String> {
    /// The port that IANA gave to opc.tcp.
    const DEFAULT_PORT: u16 = 4840;
    let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("{url} is no URL"))?;
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let authority = if has_port { authority.to_owned() } else { format!("{authority}:{DEFAULT_PORT}") };
    let mut found = authority.to_socket_addrs().map_err(|error| format!("{authority}: {error}"))?;
    let server = found.next().ok_or_else(|| format!("{authority} has no address"))?;
    let address = link.reach(server).map_err(|error| error.to_string())?;
    Ok(format!("{scheme}://{address}{path}"))
}

/// The URL by which clients reach a server or broker behind a link.
fn through(link: &Link, url: &str) -> Result<String, String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("{url} is no URL"))?;
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (_, port) = authority.rsplit_once(':').ok_or_else(|| format!("{url} has no port"))?;
    let port: u16 = port.parse().map_err(|_| format!("{url} has no port"))?;
    let address =
        link.reach(SocketAddr::new(link.server_address(), port)).map_err(|error| error.to_string())?;
    Ok(format!("{scheme}://{address}{path}"))
}

fn server_and_load(server: &CpuList, load: &CpuList) -> CpuList {
    let text = format!("{server},{load}");
    text.parse().unwrap_or_else(|_| server.clone())
}

fn run(program: &Program, limit: Duration, stop: Option<&AtomicBool>) -> Result<Value, PlaceError> {
    let output = program.run_unless(limit, stop)?;
    let line = program.line();
    let failed = || PlaceError::Load {
        line: line.clone(),
        status: output.status.to_string(),
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    };
    // 5 is a measurement that calls itself invalid: it has printed why.
    if !output.status.success() && output.status.code() != Some(5) {
        return Err(failed());
    }
    serde_json::from_slice(&output.stdout).map_err(|_| failed())
}

/// A thread that computes in bursts on given CPUs, half of the time, as other programs on a gateway do.
struct Bursts {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bursts {
    fn on(cpus: CpuList) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let thread = std::thread::Builder::new().name("bursts".to_owned()).spawn(move || {
            if cpus.pin().is_err() {
                return;
            }
            // Bursts of 1 to 16 ms, each followed by a rest as long as itself.
            let mut random = 1u64;
            while !ended.load(Ordering::Relaxed) {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let span = 1_000_000 + (random >> 33) % 15_000_000;
                let until = clock::monotonic() + span;
                while clock::monotonic() < until {
                    std::hint::spin_loop();
                }
                clock::sleep_until(until + span);
            }
        });
        Self { end, thread: thread.ok() }
    }
}

impl Drop for Bursts {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{LoadSpec, Scenario};

    #[test]
    fn a_missing_peer_and_a_failing_load_are_told() {
        let place = Place::new("/bin/sh".into(), "/no/such/peers".into());
        assert_eq!(place.stacks(), ["own"]);
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        scenario.stacks = vec!["milo".into()];
        let condition = scenario.conditions().remove(0);
        let error = place.measure("", &condition, 0).unwrap_err().to_string();
        assert!(error.contains("milo") && error.contains("not installed"), "{error}");
        scenario.link = Some("moon".into());
        let error = place.measure("", &scenario.conditions()[0], 0).unwrap_err().to_string();
        assert!(error.contains("moon") && error.contains("wan-tokyo"), "{error}");
        scenario.link = None;
        scenario.stacks = vec!["opc.tcp://127.0.0.1:1".into()];
        // A shell knows no program called bench: it fails, and says so.
        let error = place.measure("", &scenario.conditions()[0], 0).unwrap_err();
        assert!(matches!(error, PlaceError::Load { .. }), "{error}");
    }

    #[test]
    fn servers_that_run_already_are_behind_a_relay() {
        let link = Link::by(Method::Proxy, &"delay=1ms".parse().unwrap(), 1).unwrap();
        let url = relayed(&link, "opc.tcp://127.0.0.1/path").unwrap();
        assert!(url.starts_with("opc.tcp://127.0.0.1:") && url.ends_with("/path"), "{url}");
        assert!(!url.contains(":4840/"), "{url}");
        assert!(relayed(&link, "opc.tcp://no host").is_err());
    }

    #[test]
    fn cpu_conditions_are_refused_with_a_reason_or_stand() {
        let place = Place::new("/bin/true".into(), "/no/such/peers".into());
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        assert!(place.check_cpu(&scenario.conditions()[0]).is_ok());
        scenario.cpu.governor = Some("warp".into());
        let refused = place.check_cpu(&scenario.conditions()[0]).unwrap_err();
        assert!(matches!(refused, PlaceError::Conditions(_)) && refused.to_string().contains("governor"));
    }

    #[test]
    fn bursts_end() {
        let first = CpuList::single(CpuList::allowed().cpus()[0]);
        let bursts = Bursts::on(first);
        let end = Arc::clone(&bursts.end);
        drop(bursts);
        assert!(end.load(Ordering::Relaxed));
    }
}
