//! Where measurements happen: which programs there are, which CPUs, and one measurement from start to end.

mod bursts;
mod certificates;
mod generator;
mod url;

use bursts::Bursts;
use certificates::Certificates;
use generator::generate;
use url::Url;

use crate::cpu::{Governor, NotPermitted, Set, Wanted, governor};
use crate::links::{Effort, Link, Method, Probed, Profile, probe};
use crate::machine::Machine;
use crate::measurement::Measurement;
use crate::peers::{self, PEERS, Peer, PeerOptions, Role, State};
use crate::pin::{CpuList, ParseCpuListError};
use crate::program::{Program, ProgramError, Running, digest};
use crate::scenario::{BROKERLESS, Condition, CpuCondition, EMBEDDED, Kind, broker};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use taktwerk_load::Specification;
use taktwerk_load::connection::SecurityArgs;
use taktwerk_load::node::NodeSpec;
use taktwerk_load::specification::PubSub;

/// A server with many nodes takes a while to start.
const START_LIMIT: Duration = Duration::from_secs(60);
/// No measurement takes longer.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);
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
    /// Nothing competes for the server's CPU.
    #[error("cpu.condition = \"shared\": no program can compete for the server's CPU: {0}")]
    Competitor(#[from] io::Error),
    /// A peer is not there.
    #[error("the peer {name:?} is not installed: {how}")]
    NoPeer {
        /// Which.
        name: String,
        /// What to do.
        how: String,
    },
    /// Nobody publishes for a stack.
    #[error("there is no publisher of {name:?} here: {how}")]
    NoPublisher {
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
    #[error("no server listens at {url}: {why}")]
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
    /// The CPUs are not as the condition says.
    #[error(
        "cpu.condition = {condition:?} does not go with the server on CPU {server} and the load on {load}: change cpu.server or \
         cpu.load"
    )]
    Contradiction {
        /// Which condition.
        condition: &'static str,
        /// CPUs of the server.
        server: String,
        /// CPUs of the load.
        load: String,
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
    /// A certificate for a measurement was not made.
    #[error("{line} made no certificate")]
    Certificate {
        /// The command line.
        line: String,
    },
    /// A load cannot be written down.
    #[error("the specification of a load cannot be written: {0}")]
    Specification(String),
    /// The load did not come to an end that can be used.
    #[error("{line} ended with {status}: {stderr}")]
    Load {
        /// The command line.
        line: String,
        /// How it ended.
        status: String,
        /// Its exit code; none if a signal ended it.
        code: Option<i32>,
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
    /// Whether the program has a broker in it.
    has_broker: bool,
    allowed: Vec<usize>,
    slack: Duration,
    /// As whom and with what loads go to servers that run already.
    client: Option<Client>,
    /// Ends the load that is being measured.
    stop: Option<Arc<AtomicBool>>,
    /// Links that have been made and probed. They go when this goes.
    links: Mutex<BTreeMap<String, Arc<Standing>>>,
    /// Of servers and loads with security. They go when this goes.
    certificates: Certificates,
}

/// What a load of a server that runs already needs.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// As whom, with which security.
    pub security: SecurityArgs,
    /// What is monitored; empty if the load finds the nodes itself.
    pub nodes: Vec<NodeSpec>,
    /// Monitored items that are created with one request; without it, as many as usual.
    pub per_request: Option<u32>,
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
    running: Option<Running>,
}

/// What to do without it.
const NO_BROKER_INSIDE: &str = "this program was built without a broker: build it with its default features, or \
     `taktwerk lab peers install mosquitto`";
/// The same link every time.
const SEED: u64 = 0x7461_6b74;

impl Place {
    /// This machine with the program `exe`, and peers below `peers`.
    #[must_use]
    pub fn new(exe: PathBuf, peers: PathBuf) -> Self {
        let certificates = Certificates::new(peers.clone());
        Self {
            exe,
            peers,
            has_broker: false,
            allowed: CpuList::allowed().cpus().to_vec(),
            slack: SLACK,
            client: None,
            stop: None,
            links: Mutex::default(),
            certificates,
        }
    }

    /// The same place, with another limit to what a measurement may take beyond its own time.
    #[must_use]
    pub fn with_slack(mut self, slack: Duration) -> Self {
        self.slack = slack;
        self
    }

    /// The same place, whose program has an MQTT broker in it or not.
    #[must_use]
    pub fn with_embedded_broker(mut self, has_broker: bool) -> Self {
        self.has_broker = has_broker;
        self
    }

    /// The same place, with what loads of servers that run already need.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = Some(client);
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

    /// The MQTT brokers that there are, the one that is best known first, and the one in the program last.
    #[must_use]
    pub fn brokers(&self) -> Vec<&'static str> {
        let installed = PEERS.iter().filter(|peer| peer.role == Role::Mqtt && self.has(peer));
        installed.map(|peer| peer.name).chain(self.has_broker.then_some(EMBEDDED)).collect()
    }

    fn has(&self, peer: &Peer) -> bool {
        matches!(peers::state(peer, &self.peers), State::Installed { .. })
            || (peer.name == "open62541" && self.open62541().is_file())
    }

    fn open62541(&self) -> PathBuf {
        self.peers.join("open62541/bin/o6-server")
    }

    fn open62541_publisher(&self) -> PathBuf {
        self.peers.join("open62541/bin/o6-publisher")
    }

    /// Whether a stack has a publisher that can be started here.
    ///
    /// # Errors
    /// What to do.
    pub fn check_publisher(&self, stack: &str) -> Result<(), PlaceError> {
        let how = match stack {
            "own" => return Ok(()),
            "open62541" if self.open62541_publisher().is_file() => return Ok(()),
            "open62541" => "taktwerk lab peers install open62541",
            _ => "those of own and open62541 are known",
        };
        Err(PlaceError::NoPublisher { name: stack.to_owned(), how: how.to_owned() })
    }

    /// Whether there is a publisher that publishes what a condition asks for.
    fn check_publishing(&self, condition: &Condition) -> Result<(), PlaceError> {
        let stack = condition.stack.as_str();
        self.check_publisher(stack)?;
        if stack == "own" || (condition.signals() == 1 && condition.server.update_ms > 0.0) {
            return Ok(());
        }
        let how = "its program publishes one value that changes by itself: write load.items = 1 and a server.update_ms";
        Err(PlaceError::NoPublisher { name: stack.to_owned(), how: how.to_owned() })
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
        self.load_cpus(condition, &self.wanted(condition)?.cpus)?;
        let stack = condition.stack.as_str();
        if condition.kind == Kind::PubSub {
            return self.check_publishing(condition);
        }
        let has_none = matches!(condition.kind, Kind::Update | Kind::Igmp);
        if has_none || stack == BROKERLESS || stack == "own" {
            return Ok(());
        }
        if is_url(stack) {
            let listens = Url::parse(stack).and_then(|url| url.listens());
            return listens.map_err(|why| PlaceError::NoServer { url: stack.to_owned(), why });
        }
        let name = broker(stack).map_or(stack, |(peer, _)| peer);
        let how = match peers::find(name) {
            None if name == EMBEDDED && self.has_broker => return Ok(()),
            None if name == EMBEDDED => NO_BROKER_INSIDE.to_owned(),
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
            None if cpu.condition == CpuCondition::Shared => CpuList::allowed(),
            None => CpuList::single(self.server_cpu()),
        };
        let class = cpu.class.as_ref().map(|class| class.parse()).transpose()?;
        Ok(Wanted { cpus, isolate: cpu.isolate, class, governor: cpu.governor.clone() })
    }

    /// The CPUs of the load: those that are asked for, or one that goes with the server's. On a machine with one CPU it is that
    /// one, whatever the condition.
    fn load_cpus(&self, condition: &Condition, server: &CpuList) -> Result<CpuList, PlaceError> {
        let is_servers = |cpu: &usize| server.cpus().contains(cpu);
        let kind = condition.cpu.condition;
        let contradiction = |load: &CpuList| PlaceError::Contradiction {
            condition: kind.name(),
            server: server.to_string(),
            load: load.to_string(),
        };
        let list: CpuList = match (&condition.cpu.load, kind) {
            (Some(list), _) => list.parse()?,
            (None, CpuCondition::Same | CpuCondition::Shared) => server.clone(),
            (None, CpuCondition::Isolated | CpuCondition::Loaded) => {
                let free = self.allowed.iter().find(|cpu| !is_servers(cpu));
                free.or(server.cpus().first()).map_or_else(|| server.clone(), |cpu| CpuList::single(*cpu))
            }
        };
        if !self.has_two_cpus() || matches!(condition.kind, Kind::Update) {
            return Ok(list);
        }
        let is_right = match kind {
            CpuCondition::Same => list.cpus().iter().any(is_servers),
            CpuCondition::Shared => true,
            CpuCondition::Isolated | CpuCondition::Loaded => !list.cpus().iter().any(is_servers),
        };
        if is_right { Ok(list) } else { Err(contradiction(&list)) }
    }

    fn own_program(&self, condition: &Condition, bind: IpAddr) -> Result<Program, PlaceError> {
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
        if !condition.security.is_none() {
            let pair = self.certificates.pair(&self.exe, bind, &condition.security.policy)?;
            program = program.arg("--pki").arg(pair.server.display());
        }
        if server.interop {
            program = program.arg("--interop");
        }
        if server.profile {
            program = program.arg("--profile");
        }
        if server.random {
            program = program.args(["--signal-values", "random"]);
        }
        Ok(program)
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

    /// open62541's publisher of one value.
    fn open62541_publisher_program(&self, condition: &Condition) -> Program {
        let mut program = Program::new(self.open62541_publisher())
            .args(["--url", PubSub::URL, "--interface", PubSub::INTERFACE, "--exit-with-stdin", "--update"])
            .arg(condition.server.update_ms);
        if let Some(interval) = condition.publishing_ms {
            program = program.arg("--interval").arg(interval);
        }
        program
    }

    /// The broker that is part of our program, in a process of its own, so that its CPU and its bytes are not the load's.
    fn broker_program(&self, bind: IpAddr) -> Program {
        let program = Program::new(&self.exe).args(["pubsub", "broker", "--exit-with-stdin"]);
        program.arg("--listen").arg(SocketAddr::new(bind, 0))
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
            let relayed = |standing: &Standing| Url::parse(stack)?.relayed(&standing.link);
            let url = link.map_or(Ok(stack.to_owned()), relayed).map_err(no_link)?;
            return Ok(Server { url, pid: None, running: None });
        }
        let bind = bind_of(link);
        let network = link.and_then(|standing| standing.link.server_place());
        let program = match stack {
            _ if condition.kind == Kind::PubSub => Some(self.open62541_publisher_program(condition)),
            "own" => Some(self.own_program(condition, bind)?),
            "open62541" if self.open62541().is_file() => Some(self.open62541_program(condition, bind)),
            _ if broker(stack).is_some_and(|(name, _)| name == EMBEDDED) => Some(self.broker_program(bind)),
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
                    update: Duration::try_from_secs_f64(condition.server.update_ms / 1e3).unwrap_or_default(),
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
            let behind = Url::parse(&url).and_then(|url| url.behind(&standing.link, bind));
            url = behind.map_err(no_link)?;
        }
        Ok(Server { url, pid: Some(running.pid()), running: Some(running) })
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
        let load_cpus = self.load_cpus(condition, &server_cpus)?;
        let set = wanted.set()?;
        let is_pinned = condition.cpu.condition != CpuCondition::Shared;
        let is_loaded = condition.cpu.condition == CpuCondition::Loaded;
        let _bursts = is_loaded.then(|| Bursts::on(server_cpus.clone())).transpose()?;
        let mut program = Program::new(&self.exe);
        let mut load = condition.load();
        let server = match &mut load {
            Specification::Update(_) => {
                program = program.on(server_and_load(&server_cpus, &load_cpus));
                None
            }
            Specification::PubSub(_) if condition.stack == BROKERLESS => {
                program = program.on(load_cpus);
                None
            }
            Specification::PubSub(load) => {
                let cpu = |list: &CpuList| list.cpus().first().copied().filter(|_| is_pinned);
                load.subscriber_cpu = cpu(&load_cpus);
                if condition.stack == "own" {
                    load.publisher_cpu = cpu(&server_cpus);
                    None
                } else {
                    self.check_publishing(condition)?;
                    let publisher = self.start(condition, &set, None)?;
                    load.url.clone_from(&publisher.url);
                    PubSub::INTERFACE.clone_into(&mut load.interface);
                    let running = publisher.running.as_ref();
                    load.publisher_id =
                        running.and_then(|running| running.note("PUBLISHER")).map(str::to_owned);
                    Some(publisher)
                }
            }
            Specification::Igmp(_) => None,
            load => {
                let server = self.start(condition, &set, link.as_deref())?;
                program = program.on(load_cpus);
                if let Some(network) = link.as_ref().and_then(|standing| standing.link.client_place()) {
                    program = program.within(network);
                }
                self.aim(load, condition, &server, link.as_deref())?;
                if let (Specification::Probe(probe), Some(cpu)) = (load, server_cpus.cpus().first()) {
                    probe.server_cpu = Some(*cpu);
                }
                Some(server)
            }
        };
        let limit = Duration::try_from_secs_f64(condition.seconds() * 3.0).unwrap_or(LONGEST) + self.slack;
        let result = generate(program, &load, limit, self.stop.as_deref());
        drop(server);
        let mut document = result?;
        // What was asked of the link and what was seen of it belongs to the result: `load::result::Laid` reads it.
        if let Some(standing) = link {
            document.set("link", json!(standing.probed));
        }
        if let Some(kind) = set.isolation() {
            document.set("isolation", json!(kind));
        }
        Ok(Measurement::from_document(experiment, condition.clone(), repetition, document))
    }
}

/// The address that servers listen on.
fn bind_of(link: Option<&Standing>) -> IpAddr {
    link.map_or(Ipv4Addr::LOCALHOST.into(), |standing| standing.link.server_address())
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

fn server_and_load(server: &CpuList, load: &CpuList) -> CpuList {
    let text = format!("{server},{load}");
    text.parse().unwrap_or_else(|_| server.clone())
}

/// Runs a program that prints a document. `name` is for messages.
fn run(
    program: &Program,
    name: &str,
    limit: Duration,
    stop: Option<&AtomicBool>,
) -> Result<Value, PlaceError> {
    let output = program.run_unless(limit, stop)?;
    let failed = || PlaceError::Load {
        line: name.to_owned(),
        status: output.status.to_string(),
        code: output.status.code(),
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    };
    // 5 is a measurement that calls itself invalid: it has printed why.
    if !output.status.success() && output.status.code() != Some(5) {
        return Err(failed());
    }
    serde_json::from_slice(&output.stdout).map_err(|_| failed())
}

#[cfg(test)]
mod tests;
