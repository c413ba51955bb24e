//! Builds the world of a scenario.

use super::application::{Board, Shape, Worker};
use super::authority;
use super::durable::{Memory, WRITE_TIME};
use super::events::{self, Emitter};
use super::instruments::{Instruments, Providers};
use super::outcome::RunError;
use super::pubsub;
use super::site::{FIRST, Group, Site, Stores};
use super::{
    Clients, Fault, FaultKind, Lines, Link, Load, Login, Operation, Scenario, Server, history, login,
};
use crate::capture::Captures;
use crate::effect::EffectTime;
use crate::host::client::ClientThreadId;
use crate::host::{Costs, MachineId};
use crate::ids::ClientId;
use crate::network::{LineId, Path, Route};
use crate::plant::{Plant, add_variable, url};
use crate::signals::{Rhythm, value};
use crate::world::World;
use core::cell::RefCell;
use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_channel::ChannelLimits;
use taktwerk_client::{Client, ClientConfig, Security, Target};
use taktwerk_crypto::{Entropy, MessageSecurityMode, SecurityPolicy};
use taktwerk_crypto_dummy::DummyProvider;
use taktwerk_server::space::VariableHandle;
use taktwerk_server::{AddressSpace, EndpointConfig, Limits, ServerConfig, Shard, UserTokenConfig};
use taktwerk_types::Instant;

/// RSA key size of the simulated certificates, so that sizes on the wire are realistic.
const KEY_BITS: u16 = 2048;

/// A world that is ready to run.
pub(super) struct Built {
    pub(super) world: World<Worker>,
    pub(super) board: Rc<Board>,
    pub(super) providers: Option<Providers>,
    /// All servers; those of one kind are adjacent.
    pub(super) sites: Vec<Rc<RefCell<Site>>>,
    /// The kind of each server.
    pub(super) kind_of: Vec<usize>,
    /// By group: clients in the order of their servers.
    pub(super) clients: Vec<Vec<ClientId>>,
    /// By kind of link.
    pub(super) lines: Vec<Vec<LineId>>,
    /// By group of clients.
    pub(super) threads: Vec<Vec<ClientThreadId>>,
    /// When each client begins to connect.
    pub(super) starts: Vec<(Instant, ClientId)>,
    pub(super) pubsub: pubsub::Parts,
    pub(super) authorities: authority::Parts,
}

/// Builds everything.
pub(super) fn build(
    scenario: &Scenario,
    seed: u64,
    instruments: &mut Instruments,
) -> Result<Built, RunError> {
    let mut built = Built {
        world: World::new(seed),
        board: Rc::default(),
        providers: instruments.providers.take(),
        sites: Vec::new(),
        kind_of: Vec::new(),
        clients: Vec::new(),
        lines: vec![Vec::new(); scenario.links.len()],
        threads: Vec::new(),
        starts: Vec::new(),
        pubsub: pubsub::Parts::default(),
        authorities: authority::Parts::default(),
    };
    if let Some(meter) = instruments.meter.take() {
        built.world.set_meter(meter);
    }
    if let Some(trace) = instruments.trace.take() {
        built.world.set_trace(trace);
    }
    let mut machines = Machines::new(scenario)?;
    let mut shapes = Vec::new();
    for (kind, server) in scenario.servers.iter().enumerate() {
        let shape = Rc::new(shape(scenario, kind, server));
        for number in 0..server.count {
            let site = site(&mut built, scenario, kind, number)?;
            if let Some(host) = server.host {
                let machine = machines.of_server(host, server.count > 1, &mut built.world);
                built.world.place_server(site.borrow().id, machine);
            }
            shapes.push(Rc::clone(&shape));
            built.kind_of.push(kind);
            built.sites.push(site);
        }
    }
    shapes = shapes
        .iter()
        .zip(&built.sites)
        .map(|(shape, site)| {
            let rhythms = site.borrow().groups.iter().map(rhythm).collect();
            Rc::new(Shape { rhythms, ..Shape::clone(shape) })
        })
        .collect();
    let mut routes = Routes::default();
    for (group, clients) in scenario.clients.iter().enumerate() {
        add_clients(&mut built, scenario, (group, clients), &shapes, &mut machines, &mut routes)?;
    }
    pubsub::build(scenario, &mut built, &mut machines, &mut routes)?;
    authority::build(scenario, &mut built, &mut machines, &mut routes);
    if !instruments.captures.is_empty() {
        let mut captures = Captures::new(built.world.utc_origin());
        for (link, capture) in instruments.captures.drain(..) {
            captures.add(built.lines.get(link).map(Vec::as_slice).unwrap_or_default(), capture);
        }
        built.world.set_tap(Some(Box::new(captures)));
    }
    Ok(built)
}

/// The largest response of a server: 1 MiB, or with many or long values the largest message of a channel. A notification can
/// have several values of each item, with timestamps and client handle, and a response to HistoryRead many of a variable.
fn response_len_max(scenario: &Scenario, kind: usize) -> usize {
    const USUAL: u64 = 1 << 20;
    const EACH: u64 = 48;
    /// Values of an item that wait in its queue after an interruption.
    const QUEUED: u64 = 4;
    let signals = scenario.servers.get(kind).map(|server| server.signals.as_slice()).unwrap_or_default();
    let longest = signals.iter().map(|signals| signals.value_len as u64 + EACH).max().unwrap_or(EACH);
    let bytes_of = |clients: &Clients| match &clients.load {
        Load::Subscribe(it) => {
            // Queues have room for the values of an interval.
            let fastest = signals.iter().filter(|one| !one.period.is_zero()).map(|one| one.period).min();
            let values =
                fastest.map_or(1, |period| 1 + it.publishing_interval.as_nanos() / period.as_nanos().max(1));
            let items: u64 = signals.iter().map(|signals| u64::from(signals.count)).sum();
            items
                .saturating_mul(longest)
                .saturating_mul(QUEUED)
                .saturating_mul(u64::try_from(values).unwrap_or(u64::MAX))
        }
        Load::Request(it) => match it.operation {
            Operation::ReadHistory(values) => u64::from(it.batch) * u64::from(values) * longest,
            Operation::Read | Operation::Write => u64::from(it.batch) * longest,
        },
    };
    let clients = scenario.clients.iter().filter(|clients| clients.server == kind);
    let is_usual = clients.map(bytes_of).max().unwrap_or_default() <= USUAL;
    let largest = ChannelLimits::default().message_size_max;
    if is_usual { USUAL as usize } else { largest as usize }
}

/// Rhythms belong to one server; the assignment of variables to groups is the same for all servers of a kind.
fn shape(scenario: &Scenario, kind: usize, server: &Server) -> Shape {
    let groups = server.signals.iter().enumerate();
    let group_of = groups.flat_map(|(group, signals)| (0..signals.count).map(move |_| group)).collect();
    let ends = |kind: &FaultKind| matches!(kind, FaultKind::Crash(_) | FaultKind::Restart(_));
    let ends = scenario.faults.iter().any(|fault| ends(&fault.kind) && fault.kind.which().group == kind);
    let is_clock =
        |fault: &Fault| matches!(fault.kind, FaultKind::ClientClock(..) | FaultKind::ServerClock(..));
    let has_true_clocks = !scenario.faults.iter().any(is_clock);
    let writes = |load: &Load| matches!(load, Load::Request(it) if it.operation == Operation::Write);
    let has_writers = scenario.clients.iter().any(|clients| clients.server == kind && writes(&clients.load));
    Shape {
        rhythms: Vec::new(),
        group_of,
        history: server.history,
        has_complete_history: !ends,
        has_writers,
        has_true_clocks,
    }
}

fn rhythm(group: &Group) -> Rhythm {
    let (period, value_len) = (group.signals.period, group.signals.value_len);
    Rhythm { start: group.start, period, spread: group.spread, value_len }
}

/// The name in URLs.
fn host_name(server: &Server, number: u32) -> String {
    if server.count == 1 { server.name.clone() } else { format!("{}-{}", server.name, number + 1) }
}

fn site(
    built: &mut Built,
    scenario: &Scenario,
    kind: usize,
    number: u32,
) -> Result<Rc<RefCell<Site>>, RunError> {
    let Some(server) = scenario.servers.get(kind) else {
        return Err(invalid(&format!("server.{kind}"), &"there is no such server"));
    };
    let providers = built.providers.clone();
    let world = &mut built.world;
    let start = world.now().instant;
    let mut entropy = world.fork_entropy();
    let mut groups: Vec<Group> = Vec::new();
    for signals in &server.signals {
        let phase = Duration::from_nanos(entropy.below(nanos(signals.period)));
        groups.push(Group {
            signals: signals.clone(),
            start: start + phase,
            spread: server.spread.min(signals.period),
            count: 0,
            variables: Vec::new(),
            written: 0,
        });
    }
    let phase = Duration::from_nanos(entropy.below(nanos(server.event_period)));
    let mut emitter = Emitter::new(server.event_period, start + phase);
    let stores = Stores {
        durable: has_durable(scenario, kind).then(Arc::default),
        history: history::Archive::of(server),
    };
    let started = start_server(world, scenario, (kind, number), &mut groups, &stores, providers.as_ref())?;
    let name = host_name(server, number);
    let id = world.add_server_of(&name, started.shards);
    world.server_mut(id).response_len_max = response_len_max(scenario, kind);
    emitter.space = Some(started.space);
    if stores.durable.is_some() {
        world.server_mut(id).effect_time = EffectTime::Between(WRITE_TIME.0, WRITE_TIME.1);
    }
    if let Some(archive) = &stores.history {
        world.server_mut(id).set_values_read(Arc::clone(&archive.values_read));
    }
    let has_history = stores.history.is_some();
    let window = (Instant::FAR, Instant::FAR);
    let site = Site { id, is_up: true, groups, emitter, stores, window, until: Instant::FAR };
    let site = Rc::new(RefCell::new(site));
    events::schedule(world, Rc::clone(&site));
    if has_history {
        history::schedule(world, Rc::clone(&site));
    }
    for (at, group) in (0..).zip(&server.signals) {
        if !group.period.is_zero() {
            schedule(world, Rc::clone(&site), at);
        }
    }
    Ok(site)
}

/// Schedules the next write of a group.
fn schedule(world: &mut World<Worker>, site: Rc<RefCell<Site>>, at: usize) {
    let next = {
        let site = site.borrow();
        let group = site.groups.get(at);
        group.and_then(|group| rhythm(group).written_at(group.count + 1)).filter(|next| *next <= site.until)
    };
    let Some(next) = next else { return };
    world.at(next, move |world| {
        let now = world.now();
        {
            let mut site = site.borrow_mut();
            let is_counted = now.instant >= site.window.0 && now.instant < site.window.1;
            let is_up = site.is_up;
            if let Some(group) = site.groups.get_mut(at) {
                group.tick(is_up, is_counted, now.utc);
            }
        }
        schedule(world, site, at);
    });
}

/// A server's process.
pub(super) struct Started {
    pub(super) shards: Vec<Shard>,
    pub(super) space: Arc<AddressSpace>,
}

/// Starts a server's process with the current values of its variables.
pub(super) fn start_server(
    world: &mut World<Worker>,
    scenario: &Scenario,
    (kind, number): (usize, u32),
    groups: &mut [Group],
    stores: &Stores,
    providers: Option<&Providers>,
) -> Result<Started, RunError> {
    let Some(server) = scenario.servers.get(kind) else {
        return Err(invalid(&format!("server.{kind}"), &"there is no such server"));
    };
    let entropy = Box::new(world.fork_entropy());
    let more = (1..server.shards.max(1)).map(|_| Box::new(world.fork_entropy()) as Box<dyn Entropy>);
    let more = more.collect();
    let name = host_name(server, number);
    let securities = securities(scenario, kind);
    let now = world.now().utc;
    let endpoint = url(&name);
    let change = |config: &mut ServerConfig| {
        configure(config, &endpoint, &securities, providers);
        config.durable = stores.durable.as_ref().map(Memory::config);
    };
    let origin = world.utc_origin();
    let plant = if stores.history.is_some() {
        Plant::with_recorder(&name, origin, (entropy, more), history::QUEUE_LEN, change)
    } else {
        Plant::of_shards(&name, 0, origin, entropy, more, change)
    };
    let key = format!("server.{kind}.signals");
    let plant = plant.map_err(|error| invalid(&key, &error))?;
    let mut variable = 0;
    for group in groups {
        let handles = (0..group.signals.count).map(|_| {
            let first = value(group.signals.value_len, group.count);
            let handle = add_variable(&plant.space, FIRST + variable, first, now);
            variable += 1;
            handle.map_err(|error| invalid(&key, &error))
        });
        group.variables = handles.collect::<Result<Vec<VariableHandle>, RunError>>()?;
    }
    let space = Arc::clone(&plant.space);
    if let Some(archive) = &stores.history {
        let key = format!("server.{kind}.history");
        archive.record(&space, server, now).map_err(|error| invalid(&key, &error))?;
    }
    Ok(Started { shards: plant.into_shards(), space })
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether a client of this kind of server has a durable subscription.
fn has_durable(scenario: &Scenario, kind: usize) -> bool {
    let of_kind = |clients: &&Clients| clients.server == kind;
    scenario.clients.iter().filter(of_kind).any(|clients| clients.load.is_durable())
}

/// A policy and mode with the users that log in over it.
type Access = (SecurityPolicy, MessageSecurityMode, Vec<Login>);

/// Policies and modes that clients of a kind of server use.
fn securities(scenario: &Scenario, kind: usize) -> Vec<Access> {
    let mut all: Vec<Access> = Vec::new();
    for clients in scenario.clients.iter().filter(|clients| clients.server == kind) {
        let (policy, mode) = clients.security;
        match all.iter_mut().find(|one| (one.0, one.1) == clients.security) {
            Some((.., logins)) if logins.contains(&clients.login) => {}
            Some((.., logins)) => logins.push(clients.login),
            None => all.push((policy, mode, vec![clients.login])),
        }
    }
    if all.is_empty() {
        all.push((SecurityPolicy::None, MessageSecurityMode::None, vec![Login::Anonymous]));
    }
    all
}

fn configure(
    config: &mut ServerConfig,
    endpoint: &str,
    securities: &[Access],
    providers: Option<&Providers>,
) {
    if let Some(Providers { server, server_uri, .. }) = providers {
        config.provider = Arc::clone(server);
        config.application_uri.clone_from(server_uri);
    } else if securities.iter().any(|(policy, ..)| *policy != SecurityPolicy::None) {
        config.provider = Arc::new(DummyProvider::new("server", KEY_BITS));
        config.application_uri = "urn:dummy:server".to_owned();
    }
    config.endpoints = securities
        .iter()
        .map(|(policy, mode, logins)| EndpointConfig {
            url: endpoint.to_owned(),
            policy: *policy,
            mode: *mode,
            user_tokens: logins
                .iter()
                .map(|login| match login {
                    Login::Anonymous => UserTokenConfig::anonymous(),
                    Login::Password => UserTokenConfig::user_name(),
                })
                .collect(),
        })
        .collect();
    if securities.iter().any(|(.., logins)| logins.contains(&Login::Password)) {
        config.verifier = Some(Arc::new(login::Verifier));
        // Over a channel without security, passwords are sent in clear text.
        config.allow_clear_passwords = true;
    }
    // All clients in a simulation have the same address.
    config.limits = Limits::laboratory();
}

fn add_clients(
    built: &mut Built,
    scenario: &Scenario,
    (group, clients): (usize, &Clients),
    shapes: &[Rc<Shape>],
    machines: &mut Machines,
    routes: &mut Routes,
) -> Result<(), RunError> {
    let mut ids = Vec::new();
    let mut threads = Vec::new();
    if let Some(host) = clients.host {
        let machine = machines.shared(host, &mut built.world);
        threads = (0..clients.threads.max(1)).map(|_| built.world.add_client_thread(machine)).collect();
    }
    let sites: Vec<usize> = (0..)
        .zip(&built.kind_of)
        .filter(|(_, kind)| **kind == clients.server)
        .map(|(site, _)| site)
        .collect();
    let all = u64::from(clients.count) * sites.len() as u64;
    // A fleet does not connect at one instant, unless a fault causes it.
    let spread = Duration::from_millis(all.min(10_000));
    let mut entropy = built.world.fork_entropy();
    for site in sites {
        let server = built.sites.get(site).map(|site| site.borrow().id);
        let (Some(server), Some(shape)) = (server, shapes.get(site)) else { continue };
        let name = built.world.server(server).name().to_owned();
        for number in 0..clients.count {
            let total = u32::try_from(shape.group_of.len()).unwrap_or(u32::MAX).max(1);
            let count = clients.items.unwrap_or(total).min(total);
            let first = u64::from(number) * u64::from(count) % u64::from(total);
            let variables =
                (0..u64::from(count)).map(|item| ((first + item) % u64::from(total)) as u32).collect();
            let label = format!("client {} of {} at {name}", number + 1, clients.name);
            let worker = Worker::new(
                label.clone(),
                (site, group),
                &clients.load,
                variables,
                Rc::clone(shape),
                Rc::clone(&built.board),
            );
            let route = routes.of(clients.link, site, scenario, built);
            let core = core(clients, built);
            let id = built.world.add_client(core, worker, route);
            built.world.name_client(id, &label);
            if let Some(thread) = threads.get(number as usize % threads.len().max(1)) {
                built.world.place_client(id, *thread);
            }
            let spread = u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX);
            let start = built.world.now().instant + Duration::from_nanos(entropy.below(spread));
            built.starts.push((start, id));
            ids.push(id);
        }
    }
    built.clients.push(ids);
    built.threads.push(threads);
    Ok(())
}

fn core(clients: &Clients, built: &mut Built) -> Client {
    let mut channel = ChannelConfig { utc_origin: built.world.utc_origin(), ..ChannelConfig::default() };
    if let Some(Providers { client, .. }) = &built.providers {
        channel.provider = Arc::clone(client);
    } else if clients.security.0 != SecurityPolicy::None {
        channel.provider = Arc::new(DummyProvider::new("client", KEY_BITS));
    }
    let mut config = ClientConfig {
        channel: Arc::new(channel),
        session_timeout_ms: clients.session_timeout.as_secs_f64() * 1e3,
        ..ClientConfig::default()
    };
    config.reconnect.retry_first = true;
    if let Load::Subscribe(settings) = &clients.load
        && let Some(most) = settings.publish_requests
    {
        config.publish_max = most as usize;
    }
    Client::new(Arc::new(config), Box::new(built.world.fork_entropy()))
}

/// What a client of the group connects to.
pub(super) fn target(clients: &Clients, client: ClientId, name: &str) -> Result<Target, RunError> {
    let mut target = Target::new(&url(name)).map_err(|error| invalid("server.name", &error))?;
    target.security = Security::Exactly(clients.security.0, clients.security.1);
    target.identity = login::identity(clients.login, client);
    target.allow_plaintext_password = true;
    Ok(target)
}

pub(super) fn invalid(key: &str, problem: &dyn core::fmt::Display) -> RunError {
    RunError::Invalid { key: key.to_owned(), problem: problem.to_string() }
}

/// Machines, created when they are needed.
pub(super) struct Machines {
    costs: Vec<Arc<Costs>>,
    hosts: Vec<super::Host>,
    shared: BTreeMap<usize, MachineId>,
}

impl Machines {
    fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let mut costs = Vec::new();
        for (number, host) in scenario.hosts.iter().enumerate() {
            let cost = Costs::new(&host.profile);
            costs.push(Arc::new(cost.map_err(|error| invalid(&format!("host.{number}.profile"), &error))?));
        }
        Ok(Self { costs, hosts: scenario.hosts.clone(), shared: BTreeMap::new() })
    }

    /// The single shared machine of this kind.
    pub(super) fn shared(&mut self, host: usize, world: &mut World<Worker>) -> MachineId {
        if let Some(machine) = self.shared.get(&host) {
            return *machine;
        }
        let machine = self.another(host, world);
        self.shared.insert(host, machine);
        machine
    }

    pub(super) fn of_server(
        &mut self,
        host: usize,
        is_one_of_many: bool,
        world: &mut World<Worker>,
    ) -> MachineId {
        if is_one_of_many { self.another(host, world) } else { self.shared(host, world) }
    }

    fn another(&self, host: usize, world: &mut World<Worker>) -> MachineId {
        // The scenario was checked, so this host exists.
        let free = || {
            let profile = taktwerk_model::HostProfile::free(1);
            Costs::new(&profile).map(Arc::new)
        };
        let costs = self.costs.get(host).cloned().map_or_else(free, Ok);
        let Ok(costs) = costs else { unreachable!("a profile without costs is valid") };
        let machine = world.add_machine(costs);
        if let Some(host) = self.hosts.get(host) {
            world.name_machine(machine, &host.name);
        }
        for competitor in self.hosts.get(host).into_iter().flat_map(|host| &host.competitors) {
            world.compete(machine, *competitor);
        }
        machine
    }
}

/// Who shares a line of a link, unless everybody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineOwner {
    All,
    /// The clients of a server.
    Site(usize),
    /// A publisher of datagrams.
    Publisher(u32),
    /// All receivers of datagrams.
    Subscribers,
    /// The clients of a broker.
    Broker(usize),
    /// A group of clients that asks certificate authorities.
    Clients(usize),
}

/// Lines, created when they are needed.
#[derive(Default)]
pub(super) struct Routes {
    known: BTreeMap<(usize, LineOwner), LineId>,
}

impl Routes {
    fn of(&mut self, link: Option<usize>, site: usize, scenario: &Scenario, built: &mut Built) -> Route {
        let found = link.and_then(|at| Some((at, scenario.links.get(at)?)));
        let Some((at, link)) = found else {
            return Route::symmetric(Path::IDEAL);
        };
        Route::on(self.line_of(at, link, LineOwner::Site(site), built), &link.profile)
    }

    /// A line of a link for a publisher, subscriber or broker.
    pub(super) fn line(
        &mut self,
        link: Option<usize>,
        owner: LineOwner,
        scenario: &Scenario,
        built: &mut Built,
    ) -> Option<LineId> {
        let at = link?;
        Some(self.line_of(at, scenario.links.get(at)?, owner, built))
    }

    fn line_of(&mut self, at: usize, link: &Link, owner: LineOwner, built: &mut Built) -> LineId {
        match link.lines {
            Lines::One => self.shared((at, LineOwner::All), link, built),
            Lines::PerServer => self.shared((at, owner), link, built),
            Lines::PerClient => another(at, link, built),
        }
    }

    fn shared(&mut self, key: (usize, LineOwner), link: &Link, built: &mut Built) -> LineId {
        if let Some(line) = self.known.get(&key) {
            return *line;
        }
        let line = another(key.0, link, built);
        self.known.insert(key, line);
        line
    }
}

fn another(at: usize, link: &Link, built: &mut Built) -> LineId {
    let line = built.world.add_line(&link.profile, link.is_half_duplex);
    if let Some(lines) = built.lines.get_mut(at) {
        lines.push(line);
    }
    line
}
