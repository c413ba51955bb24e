//! Runs single measurements on this machine: the available programs, CPUs and links, and one measurement from start to
//! end.

mod bursts;
mod certificates;
mod error;
mod generator;
mod line;
mod recording;
mod url;
mod watch;

use bursts::Bursts;
use certificates::Certificates;
pub use error::PlaceError;
use generator::generate;
use line::Line;
use recording::Recording;
use url::Url;

use crate::cpu::{Governor, Set, Wanted, governor};
use crate::links::{Effort, Link, Method, Probed, Profile, probe};
use crate::machine::Machine;
use crate::measurement::Measurement;
use crate::peers::{self, PEERS, Peer, PeerOptions, Role, State};
use crate::pin::CpuList;
use crate::process::Process;
use crate::program::{Program, Running, digest};
use crate::scenario::{BROKERLESS, Condition, CpuCondition, EMBEDDED, Kind, broker};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use taktwerk_load::Specification;
use taktwerk_load::connection::SecurityArgs;
use taktwerk_load::node::NodeSpec;
use taktwerk_load::result::{Accounts, Profiled};
use taktwerk_load::specification::PubSub;

/// Start timeout; a server with many nodes is slow to start.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Upper limit for the duration of a measurement.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);
/// Allowance of a measurement beyond its planned duration.
const SLACK: Duration = Duration::from_secs(60);

/// The programs, CPUs and links of this machine.
#[derive(Debug)]
pub struct Place {
    /// The `taktwerk` program: server, client and load generator in one.
    exe: PathBuf,
    /// Directory of installed peers.
    peers: PathBuf,
    /// Whether the program has a built-in broker.
    has_broker: bool,
    allowed: Vec<usize>,
    slack: Duration,
    /// User, security and nodes for loads of servers that are already running.
    client: Option<Client>,
    /// Ends the current load when set.
    stop: Option<Arc<AtomicBool>>,
    /// Links that have been created and probed. They are removed when this is dropped.
    links: Mutex<BTreeMap<String, Arc<Standing>>>,
    /// Certificates for secured servers and loads. They are removed when this is dropped.
    certificates: Certificates,
}

/// Options for loads of a server that is already running.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// User and security.
    pub security: SecurityArgs,
    /// Nodes to monitor; if empty, the load finds nodes itself.
    pub nodes: Vec<NodeSpec>,
    /// Monitored items per CreateMonitoredItems request; `None` for the default.
    pub per_request: Option<u32>,
}

/// A running link with its probe results.
#[derive(Debug)]
struct Standing {
    link: Link,
    probed: Probed,
}

/// A server under test.
struct Server {
    url: String,
    pid: Option<u32>,
    /// Stops the server when dropped.
    running: Option<Running>,
}

/// What to do without a built-in broker.
const NO_BROKER_INSIDE: &str = "this program was built without a broker: build it with its default features, or \
     `taktwerk lab peers install mosquitto`";
/// Fixed seed, so that a link behaves the same each time.
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

    /// Sets the allowance of a measurement beyond its planned duration.
    #[must_use]
    pub fn with_slack(mut self, slack: Duration) -> Self {
        self.slack = slack;
        self
    }

    /// Sets whether the program has a built-in MQTT broker.
    #[must_use]
    pub fn with_embedded_broker(mut self, has_broker: bool) -> Self {
        self.has_broker = has_broker;
        self
    }

    /// Sets the options for loads of servers that are already running.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Sets a flag that ends the current measurement with an error.
    #[must_use]
    pub fn with_stop(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The CPU of servers: the first CPU that this process may use.
    #[must_use]
    pub fn server_cpu(&self) -> usize {
        self.allowed.first().copied().unwrap_or(0)
    }

    /// The CPU of the load: the second one, or the same on a machine with one.
    #[must_use]
    pub fn load_cpu(&self) -> usize {
        self.allowed.get(1).copied().unwrap_or_else(|| self.server_cpu())
    }

    /// Whether server and load have separate CPUs.
    #[must_use]
    pub fn has_two_cpus(&self) -> bool {
        self.allowed.len() > 1
    }

    /// Machine and versions, stored with every result.
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
            // Builds of the same version may differ.
            "program": digest(&self.exe).ok().map(|digest| format!("{digest:016x}")),
            "server_cpu": self.server_cpu(),
            "load_cpu": self.load_cpu(),
            "peers": peers,
        })
    }

    /// The stacks that can be measured here, `own` first.
    #[must_use]
    pub fn stacks(&self) -> Vec<String> {
        let mut stacks = vec!["own".to_owned()];
        let installed = PEERS.iter().filter(|peer| peer.role == Role::OpcUa && self.has(peer));
        stacks.extend(installed.map(|peer| peer.name.to_owned()));
        stacks
    }

    /// The available MQTT brokers: the most widely used first, the built-in one last.
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

    /// Whether a publisher of this stack can be started here.
    ///
    /// # Errors
    /// What to do.
    pub fn check_publisher(&self, stack: &str) -> Result<(), PlaceError> {
        let how = match stack {
            "own" => return Ok(()),
            "open62541" if self.open62541_publisher().is_file() => return Ok(()),
            "open62541" => "taktwerk lab peers install open62541",
            _ => "only own and open62541 have one",
        };
        Err(PlaceError::NoPublisher { name: stack.to_owned(), how: how.to_owned() })
    }

    /// Whether a publisher supports the publishing options of a condition.
    fn check_publishing(&self, condition: &Condition) -> Result<(), PlaceError> {
        let stack = condition.stack.as_str();
        self.check_publisher(stack)?;
        if stack == "own" || (condition.signals() == 1 && condition.server.update_ms > 0.0) {
            return Ok(());
        }
        let how =
            "it publishes one value that changes by itself: write load.items = 1 and a server.update_ms";
        Err(PlaceError::NoPublisher { name: stack.to_owned(), how: how.to_owned() })
    }

    /// Whether a link is available. Creates and probes it if necessary.
    ///
    /// # Errors
    /// If the name is unknown, or this machine cannot emulate it properly.
    pub fn check_link(&self, name: &str) -> Result<(), PlaceError> {
        self.link(name).map(drop)
    }

    /// Whether a link is available that connects network namespaces. TCP connections over it are those of the programs;
    /// a relay in user space has two connections instead.
    ///
    /// # Errors
    /// If the link is not available, or this user may not create network namespaces.
    pub fn check_namespaces(&self, name: &str) -> Result<(), PlaceError> {
        let standing = self.link(name)?;
        if standing.link.client_place().is_some() {
            return Ok(());
        }
        // Without the advice to use a relay.
        let cause = standing.link.notes().last().and_then(|note| note.split("; ").next()).unwrap_or_default();
        let why = format!("this needs network namespaces: run it as root ({cause})");
        Err(PlaceError::NoLink { name: name.to_owned(), why })
    }

    /// Whether a link with this name exists, without creating it.
    ///
    /// # Errors
    /// If the name is unknown.
    pub fn know_link(&self, name: &str) -> Result<(), PlaceError> {
        let unknown =
            |why: &dyn std::fmt::Display| PlaceError::NoLink { name: name.to_owned(), why: why.to_string() };
        name.parse::<Profile>().map(drop).map_err(|error| unknown(&error))
    }

    fn link(&self, name: &str) -> Result<Arc<Standing>, PlaceError> {
        self.link_by(name, None)
    }

    /// Creates a link with the given method, or the most exact one that works here.
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
            // Probe again, because the machine may have been busy for a moment.
            probed = look()?;
        }
        if !probed.is_verified() {
            return Err(failed(format!("the probe found deviations: {}", probed.deviations.join("; "))));
        }
        let standing = Arc::new(Standing { link, probed });
        links.insert(key, Arc::clone(&standing));
        Ok(standing)
    }

    /// Whether the CPU conditions are available: sets them, tries them with a program, and undoes them.
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

    /// Two governors that can be set on the server's CPU: `performance`, and the current or a power-saving one. Empty
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

    /// Whether a condition can be measured here, as far as can be checked in advance: stack, link and CPUs.
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

    /// The CPUs of the load: the requested ones, or one that suits the server's. On a machine with one CPU it is always
    /// that one.
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
            .args(["serve", "--no-plant", "--threads", &server.threads.to_string()])
            .args(["--bind", &bind.to_string()])
            .args(["--port", "0", "--max-sessions", "10000", "--exit-with-stdin"]);
        if server.sets.is_empty() && condition.signals() > 0 {
            program = program.arg("--signals").arg(condition.signals()).arg("--update").arg(server.update_ms);
        }
        if let Some(adapters) = &server.adapters {
            program = program.arg("--adapters").arg(adapters);
        }
        for set in &server.sets {
            program = program.arg("--signal-set").arg(set);
        }
        if server.busy_poll_us > 0 {
            program = program.arg("--busy-poll").arg(format!("{}us", server.busy_poll_us));
        }
        if !bind.is_loopback() {
            // In the laboratory's own namespace. For non-loopback addresses, servers require an explicit policy.
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

    /// open62541 with security, which the common interface of peers does not support.
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

    /// open62541's publisher, which publishes one value.
    fn open62541_publisher_program(&self, condition: &Condition) -> Program {
        let mut program = Program::new(self.open62541_publisher())
            .args(["--url", PubSub::URL, "--interface", PubSub::INTERFACE, "--exit-with-stdin", "--update"])
            .arg(condition.server.update_ms);
        if let Some(interval) = condition.publishing_ms {
            program = program.arg("--interval").arg(interval);
        }
        program
    }

    /// The built-in broker, in a separate process, so that its CPU and bytes are not counted for the load.
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
        // The adapters of a gateway share its CPUs. Those that start later inherit them.
        for adapter in Process::new(running.pid()).children() {
            // It may have ended.
            let _ = cpus.move_onto(adapter);
        }
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
    /// If something is missing or a program fails. An invalid measurement is not an error; it contains the reason.
    pub fn measure(
        &self,
        experiment: &str,
        condition: &Condition,
        repetition: u32,
    ) -> Result<Measurement, PlaceError> {
        // A running server cannot be moved into a namespace; use a relay.
        let method = is_url(&condition.stack).then_some(Method::Proxy);
        let link = condition.link.as_ref().map(|name| self.link_by(name, method)).transpose()?;
        let wanted = self.wanted(condition)?;
        let server_cpus = wanted.cpus.clone();
        let load_cpus = self.load_cpus(condition, &server_cpus)?;
        // What watches a load shares its CPUs, not the server's.
        let watch_cpus = load_cpus.clone();
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
        // Without a thread, the figures of the line are missing.
        let line = link.as_ref().and_then(|standing| Line::watch(standing, watch_cpus.clone()).ok());
        // Reading the processes of other stacks would cost what no table shows.
        let is_own = condition.stack == "own";
        let is_recorded = is_own && (condition.server.profile || condition.server.adapters.is_some());
        let recorded = server.as_ref().and_then(|server| server.pid).filter(|_| is_recorded);
        let recording = recorded.and_then(|pid| Recording::start(pid, watch_cpus).ok());
        let result = generate(program, &load, limit, self.stop.as_deref());
        let accounts = result.as_ref().ok().and_then(|document| document.part::<Accounts>().ok());
        let accounts = accounts.unwrap_or_default();
        // Before the server ends: its last reading would have no processes.
        let profile = recording.and_then(|recording| recording.profile(&accounts));
        drop(server);
        let mut document = result?;
        if let Some(rates) = line.and_then(|line| line.rates(&accounts)) {
            document.set("line", json!(rates));
        }
        document.add(&Profiled { profile });
        // The probe results are part of the result; `load::result::Laid` reads them.
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

/// Whether a stack is a server that is already running.
fn is_url(stack: &str) -> bool {
    stack.contains("://")
}

fn server_and_load(server: &CpuList, load: &CpuList) -> CpuList {
    let text = format!("{server},{load}");
    text.parse().unwrap_or_else(|_| server.clone())
}

/// Runs a program that prints a document. `name` is used in messages.
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
    // Exit code 5: the measurement is invalid, and the document contains the reason.
    if !output.status.success() && output.status.code() != Some(5) {
        return Err(failed());
    }
    serde_json::from_slice(&output.stdout).map_err(|_| failed())
}

#[cfg(test)]
mod tests;
