//! Servers and clients connected by a network, in one virtual time.

use crate::client::{Application, ClientHost};
use crate::event::Event;
use crate::fabric::Fabric;
use crate::host::Costs;
use crate::host::client::{ClientThread, ClientThreadId};
use crate::host::machine::{Competitor, Machine, MachineId, Owner, RanLog, ThreadId};
pub use crate::ids::{ClientId, HostId, NodeId, ServerId};
use crate::meter::Meter;
use crate::network::{CloseReason, End, LineId, LinkId, Network, Route, Side, Signal, Tap};
use crate::node::NodeHost;
use crate::server::ServerHost;
use crate::trace::{Trace, Track};
use crate::violation::{Broken, Violation};
use crate::wire_check::{TokenUse, Unanswered, WireCheck};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_client::{Client, ClientError, EndpointUrl, RequestHandle};
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_netem::Profile;
use taktwerk_schema::service::Request;
use taktwerk_server::{Now, Shard};
use taktwerk_types::{Instant, UtcTime};

mod nodes;

/// An action that a scenario schedules.
type Action<A> = Box<dyn FnOnce(&mut World<A>)>;
/// A promise that a scenario adds to those that are always checked.
type Promise<A> = Box<dyn Fn(&World<A>) -> Result<(), String>>;

/// Servers and clients, the network between them, and the scheduled events.
///
/// All randomness comes from the seed: two runs with the same seed and the same calls are identical, to the nanosecond.
pub struct World<A> {
    fabric: Fabric,
    entropy: SeededEntropy,
    servers: Vec<ServerHost>,
    /// By host name in URLs.
    names: BTreeMap<Box<str>, ServerId>,
    clients: Vec<ClientHost<A>>,
    client_threads: Vec<ClientThread>,
    nodes: Vec<NodeHost>,
    /// Some shard was woken by a write to a variable.
    any_woken: Arc<AtomicBool>,
    actions: BTreeMap<u64, Action<A>>,
    next_action: u64,
    promises: Vec<Promise<A>>,
    /// Hosts affected in this turn.
    touched: BTreeSet<HostId>,
    /// Servers that were active since their last check.
    unchecked: BTreeSet<ServerId>,
    events: u64,
    /// What processors have done since the last event, for the trace.
    ran: RanLog,
}

impl<A> fmt::Debug for World<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("now", &self.fabric.queue.now())
            .field("servers", &self.servers.len())
            .field("clients", &self.clients.len())
            .finish_non_exhaustive()
    }
}

impl<A: Application> World<A> {
    /// An empty world.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut entropy = SeededEntropy::new(seed);
        let network = SeededEntropy::new(entropy.next_u64());
        // Not zero, so that a core that uses zero for "never" is detected.
        let start = Instant::ZERO + Duration::from_secs(1);
        let utc_origin = UtcTime::from_civil(2026, 1, 1, 0, 0, 0).unwrap_or_default();
        Self {
            fabric: Fabric::new(start, utc_origin, network),
            entropy,
            servers: Vec::new(),
            names: BTreeMap::new(),
            clients: Vec::new(),
            client_threads: Vec::new(),
            nodes: Vec::new(),
            any_woken: Arc::default(),
            actions: BTreeMap::new(),
            next_action: 0,
            promises: Vec::new(),
            touched: BTreeSet::new(),
            unchecked: BTreeSet::new(),
            events: 0,
            ran: RanLog::default(),
        }
    }

    // ---- building

    /// A separate source of random numbers, for a core or a scenario.
    pub fn fork_entropy(&mut self) -> SeededEntropy {
        SeededEntropy::new(self.entropy.next_u64())
    }

    /// Adds a server of one shard whose endpoint URLs have this host name.
    pub fn add_server(&mut self, name: &str, shard: Shard) -> ServerId {
        self.add_server_of(name, vec![shard])
    }

    /// Adds a server of several shards, which are numbered from 0 in this order.
    pub fn add_server_of(&mut self, name: &str, shards: Vec<Shard>) -> ServerId {
        let id = ServerId(u32::try_from(self.servers.len()).unwrap_or(u32::MAX));
        let entropy = self.fork_entropy();
        let woken = Arc::clone(&self.any_woken);
        if let Some(trace) = &mut self.fabric.trace {
            trace.name_server(id, name);
        }
        self.servers.push(ServerHost::new(id, name, shards, entropy, woken, &mut self.fabric));
        self.names.entry(name.into()).or_insert(id);
        self.touched.insert(HostId::Server(id));
        id
    }

    /// Adds a machine that hosts can be placed on. The work of hosts without a machine takes no time.
    pub fn add_machine(&mut self, costs: Arc<Costs>) -> MachineId {
        let id = MachineId(u32::try_from(self.fabric.machines.len()).unwrap_or(u32::MAX));
        let entropy = self.fork_entropy();
        let mut machine = Machine::new(id, costs, entropy);
        machine.log = self.fabric.trace.as_ref().map(|_| Rc::clone(&self.ran));
        self.fabric.machines.push(machine);
        id
    }

    /// Adds a program that takes a share of a machine's processors.
    pub fn compete(&mut self, id: MachineId, competitor: Competitor) {
        if let Some((machine, queue)) = self.fabric.machine_and_queue(id) {
            machine.compete(competitor, queue);
        }
    }

    /// Runs a server on a machine: each shard gets a thread, and each kind of slow job gets some.
    pub fn place_server(&mut self, id: ServerId, machine: MachineId) {
        if let Some(server) = self.servers.get_mut(id.0 as usize) {
            server.place(machine, &mut self.fabric);
            self.touched.insert(HostId::Server(id));
        }
    }

    /// Adds a thread that clients can share.
    ///
    /// # Panics
    /// If the machine does not belong to this world.
    pub fn add_client_thread(&mut self, machine: MachineId) -> ClientThreadId {
        let number = u32::try_from(self.client_threads.len()).unwrap_or(u32::MAX);
        let thread = self.fabric.machines[machine.0 as usize].spawn(Owner::Clients(number));
        self.client_threads.push(ClientThread::new(machine, thread));
        ClientThreadId(number)
    }

    /// Runs a client on a thread.
    pub fn place_client(&mut self, id: ClientId, thread: ClientThreadId) {
        let machine = self.client_threads.get(thread.0 as usize).map(|thread| thread.machine);
        if let (Some(client), Some(machine)) = (self.clients.get_mut(id.0 as usize), machine) {
            client.set_thread(thread, machine);
            self.touch_client(id);
        }
    }

    /// Adds a client.
    pub fn add_client(&mut self, client: Client, application: A, route: Route) -> ClientId {
        let id = ClientId(u32::try_from(self.clients.len()).unwrap_or(u32::MAX));
        let entropy = self.fork_entropy();
        self.clients.push(ClientHost::new(id, client, application, route, entropy));
        id
    }

    /// Adds a line that carries the packets of several clients: see [`Network::add_line`].
    pub fn add_line(&mut self, link: &Profile, is_half_duplex: bool) -> LineId {
        self.fabric.network.add_line(link, is_half_duplex)
    }

    /// Reports every packet on every line to the tap from now on.
    pub fn set_tap(&mut self, tap: Option<Box<dyn Tap>>) {
        self.fabric.network.set_tap(tap);
    }

    /// Records what happens from now on, including for machines, servers and clients that are added later.
    pub fn set_trace(&mut self, mut trace: Trace) {
        for server in &self.servers {
            trace.name_server(server.id(), server.name());
        }
        self.fabric.machines.iter_mut().for_each(|machine| machine.log = Some(Rc::clone(&self.ran)));
        self.fabric.trace = Some(Box::new(trace));
    }

    /// Gives a machine a name in the trace.
    pub fn name_machine(&mut self, id: MachineId, name: &str) {
        if let Some(trace) = &mut self.fabric.trace {
            trace.name_machine(id, name);
        }
    }

    /// Gives a client a name in the trace.
    pub fn name_client(&mut self, id: ClientId, name: &str) {
        if let Some(trace) = &mut self.fabric.trace {
            trace.name_client(id, name);
        }
    }

    /// Writes something into the trace, if there is one.
    pub fn mark(&mut self, text: &str) {
        let now = self.now().instant;
        if let Some(trace) = &mut self.fabric.trace {
            trace.mark(text, now);
        }
    }

    /// Measures the real processor time of the work of hosts that are on a machine.
    pub fn set_meter(&mut self, meter: Box<dyn Meter>) {
        self.fabric.meter = Some(meter);
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish_trace(&mut self) -> io::Result<()> {
        let now = self.now().instant;
        self.fabric.machines.iter_mut().for_each(|machine| machine.log = None);
        self.fabric.trace.take().map_or(Ok(()), |trace| trace.finish(now))
    }

    /// Adds the work of the processors to the trace.
    fn trace_processors(&mut self) {
        if let Some(trace) = &mut self.fabric.trace {
            self.ran.borrow_mut().drain(..).for_each(|ran| trace.ran(&ran));
        }
    }

    /// Stops reporting packets to the tap.
    ///
    /// # Errors
    /// The error that the tap reports at its end.
    pub fn finish_tap(&mut self) -> io::Result<()> {
        self.fabric.network.take_tap().map_or(Ok(()), |mut tap| tap.finish())
    }

    /// Adds a promise that is checked after every event.
    pub fn promise(&mut self, promise: impl Fn(&Self) -> Result<(), String> + 'static) {
        self.promises.push(Box::new(promise));
    }

    // ---- looking

    /// The virtual time. The clocks of all hosts show the same time unless they were changed.
    #[must_use]
    pub fn now(&self) -> Now {
        self.fabric.now()
    }

    /// Wall time at [`Instant::ZERO`].
    #[must_use]
    pub fn utc_origin(&self) -> UtcTime {
        self.fabric.utc_origin
    }

    /// Number of events so far; equal in identical runs.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.fabric.network
    }

    /// A server.
    ///
    /// # Panics
    /// If it does not belong to this world.
    #[must_use]
    pub fn server(&self, id: ServerId) -> &ServerHost {
        &self.servers[id.0 as usize]
    }

    /// A server's settings.
    ///
    /// # Panics
    /// If it does not belong to this world.
    pub fn server_mut(&mut self, id: ServerId) -> &mut ServerHost {
        &mut self.servers[id.0 as usize]
    }

    /// A client.
    ///
    /// # Panics
    /// If it does not belong to this world.
    #[must_use]
    pub fn client(&self, id: ClientId) -> &ClientHost<A> {
        &self.clients[id.0 as usize]
    }

    /// A client's settings and application. To call the client, see [`World::with_client`].
    ///
    /// # Panics
    /// If it does not belong to this world.
    pub fn client_mut(&mut self, id: ClientId) -> &mut ClientHost<A> {
        &mut self.clients[id.0 as usize]
    }

    /// A machine.
    ///
    /// # Panics
    /// If it does not belong to this world.
    #[must_use]
    pub fn machine(&self, id: MachineId) -> &Machine {
        &self.fabric.machines[id.0 as usize]
    }

    /// Processor time that a server's threads have used since its last start.
    #[must_use]
    pub fn server_used(&self, id: ServerId) -> Duration {
        let server = self.server(id);
        server.machine().map_or(Duration::ZERO, |machine| server.used(self.machine(machine)))
    }

    /// Processor time that a client thread has used.
    #[must_use]
    pub fn client_thread_used(&self, id: ClientThreadId) -> Duration {
        self.client_threads.get(id.0 as usize).map_or(Duration::ZERO, |thread| {
            self.machine(thread.machine).used_by(|owner| owner == Owner::Clients(id.0))
        })
    }

    /// The requests of a client that the server has not answered, as seen on the wire.
    #[must_use]
    pub fn unanswered(&self, id: ClientId) -> Vec<Unanswered> {
        let check = self.client(id).link().and_then(|link| self.fabric.checks.get(&link));
        check.map(|check| check.unanswered().collect()).unwrap_or_default()
    }

    /// How often a client has requested a security token on its current connection.
    #[must_use]
    pub fn opens(&self, id: ClientId) -> u32 {
        let check = self.client(id).link().and_then(|link| self.fabric.checks.get(&link));
        check.map_or(0, WireCheck::opens)
    }

    /// How the security tokens of a client's current connection were used, as seen on the wire.
    #[must_use]
    pub fn tokens(&self, id: ClientId) -> TokenUse {
        let check = self.client(id).link().and_then(|link| self.fabric.checks.get(&link));
        check.map(WireCheck::tokens).unwrap_or_default()
    }

    // ---- acting

    /// Sends a request of a client; the client must deliver exactly one answer.
    ///
    /// # Errors
    /// The errors of [`Client::request`].
    pub fn request<R: Request>(
        &mut self,
        id: ClientId,
        mut request: R,
    ) -> Result<RequestHandle, ClientError> {
        let handle =
            self.with_client(id, |client, _, now| client.request(&mut request, None, now.instant))?;
        self.client_mut(id).expect(handle);
        Ok(handle)
    }

    /// Calls a client.
    pub fn with_client<R>(&mut self, id: ClientId, act: impl FnOnce(&mut Client, &mut A, Now) -> R) -> R {
        let now = self.client(id).now(&self.fabric);
        let (client, application) = self.client_mut(id).parts();
        let result = act(client, application, now);
        self.touch_client(id);
        result
    }

    /// Calls a server's shard. `None` while the server is down.
    pub fn with_shard<R>(&mut self, id: ServerId, act: impl FnOnce(&mut Shard, Now) -> R) -> Option<R> {
        let now = self.server(id).now(&self.fabric);
        let result = self.server_mut(id).shard_mut().map(|shard| act(shard, now));
        self.touched.insert(HostId::Server(id));
        result
    }

    /// Lets a server store the values that were written since the last call, if it has a history.
    pub fn record(&mut self, id: ServerId) {
        if let Some(server) = self.servers.get_mut(id.0 as usize) {
            server.record(&mut self.fabric);
        }
    }

    /// Runs an action at a time.
    pub fn at(&mut self, at: Instant, action: impl FnOnce(&mut Self) + 'static) {
        self.next_action += 1;
        self.actions.insert(self.next_action, Box::new(action));
        self.fabric.queue.schedule(at, Event::Action(self.next_action));
    }

    /// Runs an action after a time span.
    pub fn after(&mut self, span: Duration, action: impl FnOnce(&mut Self) + 'static) {
        let at = self.now().instant + span;
        self.at(at, action);
    }

    /// Runs an action repeatedly until it returns false.
    pub fn every(&mut self, span: Duration, mut action: impl FnMut(&mut Self) -> bool + 'static)
    where
        A: 'static,
    {
        self.after(span, move |world| {
            if action(world) {
                world.every(span, action);
            }
        });
    }

    // ---- faults

    /// Breaks a client's connection; both ends are notified.
    pub fn cut(&mut self, id: ClientId) {
        if let Some(link) = self.client(id).link() {
            self.fabric.network.cut(link);
        }
    }

    /// Breaks a client's connection after this many more bytes; see [`ClientHost::cut_next`] for the next connection.
    pub fn cut_at_byte(&mut self, id: ClientId, side: Side, bytes: u64) {
        if let Some(link) = self.client(id).link() {
            let end = End { link, side };
            let sent = self.fabric.network.traffic(end).stream_bytes;
            self.fabric.network.cut_at_byte(end, sent + bytes);
        }
    }

    /// Blocks all traffic between a client and its server, without notifying them.
    pub fn partition(&mut self, id: ClientId) {
        self.client_mut(id).partitioned = true;
        for link in self.links_of(id) {
            self.fabric.network.partition(link);
        }
    }

    /// Ends a partition.
    pub fn heal(&mut self, id: ClientId) {
        self.client_mut(id).partitioned = false;
        for link in self.links_of(id) {
            self.fabric.network.heal(link);
        }
    }

    fn links_of(&self, id: ClientId) -> Vec<LinkId> {
        let is_of = |hosts: &[HostId; 2]| hosts[0] == HostId::Client(id);
        self.fabric.links.iter().filter(|(_, hosts)| is_of(hosts)).map(|(link, _)| *link).collect()
    }

    /// Stops or resumes reading from the socket in a client's process.
    pub fn set_reads(&mut self, id: ClientId, reads: bool) {
        self.clients[id.0 as usize].set_reads(reads, &mut self.fabric);
        self.touch_client(id);
    }

    /// A server's process dies. Its connections are reset, and new ones are refused.
    pub fn crash(&mut self, id: ServerId) {
        self.servers[id.0 as usize].crash(&mut self.fabric);
    }

    /// Sets a server's wall clock ahead by this much from now on.
    pub fn set_server_clock(&mut self, id: ServerId, offset_nanos: i64) {
        self.server_mut(id).clock_offset = offset_nanos;
        self.touched.insert(HostId::Server(id));
    }

    /// Sets a client's wall clock ahead by this much from now on.
    pub fn set_client_clock(&mut self, id: ClientId, offset_nanos: i64) {
        self.clients[id.0 as usize].set_clock_offset(offset_nanos, &self.fabric);
        self.touch_client(id);
    }

    /// A server's process is started again.
    pub fn restart(&mut self, id: ServerId, shard: Shard) {
        self.restart_of(id, vec![shard]);
    }

    /// A server's process is started again, with several shards.
    pub fn restart_of(&mut self, id: ServerId, shards: Vec<Shard>) {
        self.crash(id);
        self.servers[id.0 as usize].start(shards, &mut self.fabric);
        self.touched.insert(HostId::Server(id));
    }

    // ---- running

    /// Runs all events up to `until` and sets the clock to it.
    ///
    /// # Errors
    /// The first broken promise; after that, the world cannot be used any more.
    pub fn run_until(&mut self, until: Instant) -> Result<(), Violation> {
        while self.step(until)? {}
        self.fabric.queue.advance(until);
        Ok(())
    }

    /// Like [`World::run_until`], but runs at most `most` events. Returns whether all events up to `until` have run.
    ///
    /// # Errors
    /// The errors of [`World::run_until`].
    pub fn run_some(&mut self, until: Instant, most: u64) -> Result<bool, Violation> {
        for _ in 0..most {
            if !self.step(until)? {
                self.fabric.queue.advance(until);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs for a time span.
    ///
    /// # Errors
    /// The errors of [`World::run_until`].
    pub fn run_for(&mut self, span: Duration) -> Result<(), Violation> {
        self.run_until(self.now().instant + span)
    }

    /// Runs while `going_on` returns true, but at most for `span`. Returns whether it has returned false.
    ///
    /// # Errors
    /// The errors of [`World::run_until`].
    pub fn run_while(
        &mut self,
        span: Duration,
        mut going_on: impl FnMut(&Self) -> bool,
    ) -> Result<bool, Violation> {
        let until = self.now().instant + span;
        self.settle()?;
        while going_on(self) {
            if !self.step(until)? {
                self.fabric.queue.advance(until);
                return Ok(!going_on(self));
            }
        }
        Ok(true)
    }

    /// Runs the next event if it is due at `until` or earlier.
    ///
    /// # Errors
    /// The errors of [`World::run_until`].
    pub fn step(&mut self, until: Instant) -> Result<bool, Violation> {
        self.settle()?;
        let Some(event) = self.fabric.queue.pop_until(until) else { return Ok(false) };
        self.events += 1;
        self.handle(event);
        let settled = self.settle();
        self.trace_processors();
        settled?;
        self.check()?;
        Ok(true)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Wire(wire) => self.fabric.network.handle(wire, &mut self.fabric.queue),
            Event::Datagram(flight) => self.on_datagram(&flight),
            Event::Core { machine, core, number } => self.on_core(machine, core, number),
            Event::Competitor { machine, number } => {
                if let Some((machine, queue)) = self.fabric.machine_and_queue(machine) {
                    machine.wake_competitor(number, queue);
                }
            }
            Event::Timer { host, shard, number } => {
                let rings = match host {
                    HostId::Server(id) => self.server_mut(id).ring(shard, number),
                    HostId::Client(id) => self.client_mut(id).ring(number),
                    HostId::Node(id) => self.node_rings(id, number),
                };
                if rings {
                    self.touched.insert(host);
                }
            }
            Event::ServerEffect { server, incarnation, shard, token, job } => {
                let effect = (incarnation, shard);
                self.servers[server.0 as usize].effect_done(effect, token, job, &mut self.fabric);
                self.touched.insert(HostId::Server(server));
            }
            Event::SourceWork { server, incarnation, work } => {
                self.servers[server.0 as usize].source_works(incarnation, work, &mut self.fabric);
                self.touched.insert(HostId::Server(server));
            }
            Event::ClientEffect { client, token, job, provider } => {
                let provider = provider.as_ref();
                self.clients[client.0 as usize].effect_done(token, *job, provider, &mut self.fabric);
                self.touched.insert(HostId::Client(client));
            }
            Event::Action(number) => {
                if let Some(action) = self.actions.remove(&number) {
                    action(self);
                }
            }
        }
    }

    /// A processor has finished its work.
    fn on_core(&mut self, id: MachineId, core: u32, number: u64) {
        let Some((machine, queue)) = self.fabric.machine_and_queue(id) else { return };
        let Some((owner, thread)) = machine.event(core, number, queue) else { return };
        match owner {
            Owner::Shard { server, shard, incarnation } => {
                let Some(host) = self.servers.get_mut(server as usize) else { return };
                let track = Track::Shard(ServerId(server), shard);
                self.fabric.trace_end(track);
                let step = host.step(incarnation, shard, &mut self.fabric);
                match step {
                    Some((_, name)) => self.fabric.trace_begin(track, name),
                    None => self.fabric.trace_end(track),
                }
                self.go_on(id, thread, step.map(|(cost, _)| cost));
                self.unchecked.insert(ServerId(server));
                // The other shards of the server may have received something.
                self.touched.insert(HostId::Server(ServerId(server)));
            }
            Owner::Worker { server, pool, slot, incarnation } => {
                let Some(host) = self.servers.get_mut(server as usize) else { return };
                host.worker_done(incarnation, pool, slot, &mut self.fabric);
                self.touched.insert(HostId::Server(ServerId(server)));
            }
            Owner::Clients(number) => self.on_client_thread(number, id, thread),
            Owner::Node { node, incarnation } => self.on_node_thread((node, incarnation), id, thread),
            Owner::Competitor(number) => machine.compete_again(number, queue),
        }
    }

    fn on_client_thread(&mut self, number: u32, machine: MachineId, thread: ThreadId) {
        self.fabric.trace_end(Track::Clients(number));
        loop {
            let Some(clients) = self.client_threads.get_mut(number as usize) else { return };
            let Some(current) = clients.current.or_else(|| clients.pop()) else {
                clients.is_awake = false;
                self.fabric.trace_end(Track::Clients(number));
                return self.go_on(machine, thread, None);
            };
            clients.current = Some(current);
            let names = &self.names;
            let resolve = |url: &EndpointUrl| names.get(&*url.host).copied();
            let cost = self.clients[current.0 as usize].step(&mut self.fabric, resolve);
            if cost.is_some() {
                if self.fabric.trace.is_some() {
                    let name = format!("client {}", current.0);
                    self.fabric.trace_begin(Track::Clients(number), &name);
                }
                return self.go_on(machine, thread, cost);
            }
            if let Some(clients) = self.client_threads.get_mut(number as usize) {
                clients.current = None;
            }
        }
    }

    fn go_on(&mut self, machine: MachineId, thread: ThreadId, cost: Option<Duration>) {
        let Some((machine, queue)) = self.fabric.machine_and_queue(machine) else { return };
        match cost {
            Some(cost) => machine.resume(thread, cost, queue),
            None => machine.sleep(thread, queue),
        }
    }

    fn touch_client(&mut self, id: ClientId) {
        self.touched.insert(HostId::Client(id));
    }

    /// Does everything that is pending at this instant and does not involve the network.
    fn settle(&mut self) -> Result<(), Violation> {
        loop {
            while let Some(signal) = self.fabric.network.poll_signal() {
                self.on_signal(signal);
            }
            if self.any_woken.swap(false, Ordering::Relaxed) {
                for (number, server) in (0..).zip(&self.servers) {
                    if server.is_woken() {
                        self.touched.insert(HostId::Server(ServerId(number)));
                    }
                }
            }
            self.settle_checks();
            let Some(host) = self.touched.pop_first() else { break };
            match host {
                HostId::Server(id) => {
                    self.servers[id.0 as usize].settle(&mut self.fabric);
                    self.unchecked.insert(id);
                }
                HostId::Client(id) => self.settle_client(id),
                HostId::Node(id) => self.settle_node(id),
            }
            if let Some(violation) = &self.fabric.violation {
                return Err(violation.clone());
            }
        }
        Ok(())
    }

    fn settle_client(&mut self, id: ClientId) {
        if let Some(thread) = self.clients[id.0 as usize].thread() {
            let Some(clients) = self.client_threads.get_mut(thread.0 as usize) else { return };
            if clients.current != Some(id) {
                clients.push(id);
            }
            if !core::mem::replace(&mut clients.is_awake, true)
                && let Some((machine, queue)) = self.fabric.machine_and_queue(clients.machine)
            {
                let driver = machine.costs.client;
                let cost = machine.noisy(driver.wake + driver.turn);
                machine.start(clients.thread, cost, driver.cold(), queue);
                let track = Track::Clients(thread.0);
                self.fabric.trace_begin(track, "turn");
                self.fabric.trace_begin(track, "wake");
            }
            return;
        }
        let names = &self.names;
        let resolve = |url: &EndpointUrl| names.get(&*url.host).copied();
        self.clients[id.0 as usize].settle(&mut self.fabric, resolve);
    }

    fn on_signal(&mut self, signal: Signal) {
        let (link, end) = match signal {
            Signal::Incoming(link) => (link, None),
            Signal::Connected(end)
            | Signal::Unreachable(end)
            | Signal::Readable(end)
            | Signal::Writable(end)
            | Signal::Closed(end, _) => (end.link, Some(end)),
        };
        let Some(hosts) = self.fabric.links.get(&link).copied() else { return };
        let (client_id, server_id) = match hosts {
            [HostId::Client(client), HostId::Server(server)] => (client, server),
            hosts => return self.on_node_signal(signal, hosts),
        };
        let server = &mut self.servers[server_id.0 as usize];
        let client = &mut self.clients[client_id.0 as usize];
        let fabric = &mut self.fabric;
        match (signal, end.map(|end| end.side)) {
            (Signal::Incoming(link), _) => server.accept(link, fabric),
            (Signal::Connected(end), _) => client.connected(end, fabric),
            (Signal::Unreachable(end), _) => client.closed(end, "nobody answers", fabric),
            (Signal::Readable(end), Some(Side::Server)) => server.readable(end, fabric),
            (Signal::Readable(end), _) => client.readable(end, fabric),
            (Signal::Writable(end), Some(Side::Server)) => server.writable(end, fabric),
            (Signal::Writable(end), _) => client.writable(end, fabric),
            (Signal::Closed(end, _), Some(Side::Server)) => server.closed(end, fabric),
            (Signal::Closed(end, reason), _) => client.closed(end, describe(reason), fabric),
        }
        if let Signal::Closed(..) | Signal::Unreachable(_) = signal {
            fabric.checks.remove(&link);
            fabric.forget_dead(link);
        }
        let host = match end {
            Some(End { side: Side::Client, .. }) => HostId::Client(client_id),
            _ => HostId::Server(server_id),
        };
        self.touched.insert(host);
    }

    fn check(&mut self) -> Result<(), Violation> {
        while let Some(id) = self.unchecked.pop_first() {
            self.servers[id.0 as usize].check(&mut self.fabric);
        }
        let broken = self.promises.iter().find_map(|promise| promise(self).err());
        if let Some(what) = broken {
            self.fabric.broken(Broken::Scenario(what));
        }
        self.fabric.violation.clone().map_or(Ok(()), Err)
    }
}

fn describe(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Finished => "closed by the server",
        CloseReason::Reset => "connection reset",
        CloseReason::TimedOut => "connection timed out",
    }
}
