//! Writes what happens in a world in the JSON trace event format, which Perfetto and Chrome can read.
//!
//! Hosts and machines are shown as processes. Their threads are processors, shards, client threads, and connections.
//! Turns and the steps in them are slices; a message is a flow from the write that completes it to the read that does.
//! Events are written as they happen and only pending state is kept in memory, so a trace can be as long as the file
//! system allows.
//!
//! Turns of hosts without a machine take no time, so only their connections are shown.

mod events;
mod messages;
mod mqtt;

use crate::host::machine::{Owner, Ran};
use crate::ids::{ClientId, HostId, MachineId, NodeId, ServerId};
use crate::network::{End, LinkId, Side};
use core::fmt::Write as _;
use events::Events;
use messages::{Message, Messages};
use mqtt::Packets;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use taktwerk_types::Instant;

/// Shown as a process in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Process {
    Machine(MachineId),
    Server(ServerId),
    Client(ClientId),
    Node(NodeId),
    /// The threads that clients share.
    ClientThreads,
    /// Faults of a scenario.
    Scenario,
}

/// Shown as a thread in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Track {
    /// A processor of a machine.
    Core(MachineId, u32),
    /// A shard of a server.
    Shard(ServerId, u32),
    /// A client thread.
    Clients(u32),
    /// A publisher, subscriber, broker or certificate authority, or a process that asks authorities.
    Node(NodeId),
    /// One end of a connection.
    Connection(End),
    /// Datagrams that a publisher or subscriber sends or receives.
    Datagrams(NodeId),
    /// Faults and other marks.
    Marks,
}

/// The hosts at the two ends of a connection: the one that opened it is first.
pub(crate) type Hosts = [HostId; 2];

/// Finds messages in sent data.
#[derive(Debug)]
enum Parser {
    OpcUa(Box<Messages>),
    Mqtt(Packets),
    /// Each write counts as a message: only long revocation lists need several.
    Http(u64),
}

impl Parser {
    fn feed(&mut self, bytes: &[u8], found: &mut dyn FnMut(Message)) {
        match self {
            Self::OpcUa(messages) => messages.feed(bytes, found),
            Self::Mqtt(packets) => packets.feed(bytes, found),
            Self::Http(offset) => {
                let len = bytes.len() as u64;
                *offset += len;
                found(Message { end: *offset, name: "HTTP", len });
            }
        }
    }
}

/// Messages of one direction that were sent and not yet read.
#[derive(Debug)]
struct Direction {
    messages: Parser,
    read: u64,
    under_way: VecDeque<UnderWay>,
}

impl Direction {
    fn both(hosts: Hosts) -> [Self; 2] {
        hosts.map(|_| {
            let messages = match hosts {
                [_, HostId::Node(_)] => Parser::Mqtt(Packets::default()),
                _ => Parser::OpcUa(Box::default()),
            };
            Self { messages, read: 0, under_way: VecDeque::new() }
        })
    }
}

#[derive(Debug)]
struct UnderWay {
    /// Offset in the stream just after its last byte.
    end: u64,
    sent: Instant,
    name: &'static str,
    len: u64,
}

/// Writes the trace of one world. See [`World::set_trace`](crate::World::set_trace).
#[derive(Debug)]
pub struct Trace {
    events: Events,
    processes: BTreeMap<Process, u32>,
    threads: BTreeMap<Track, (u32, u32)>,
    machines: BTreeMap<MachineId, Box<str>>,
    servers: BTreeMap<ServerId, Box<str>>,
    clients: BTreeMap<ClientId, Box<str>>,
    nodes: BTreeMap<NodeId, Box<str>>,
    /// Slices that have begun and not ended.
    open: BTreeMap<Track, u32>,
    links: BTreeMap<LinkId, [Direction; 2]>,
    last_process: u32,
    last_thread: u32,
    last_flow: u64,
}

impl Trace {
    /// Creates a trace that is written to `out`. Use a buffered writer: there is a write for each event.
    #[must_use]
    pub fn new(out: Box<dyn io::Write + Send>) -> Self {
        Self {
            events: Events::new(out),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            machines: BTreeMap::new(),
            servers: BTreeMap::new(),
            clients: BTreeMap::new(),
            nodes: BTreeMap::new(),
            open: BTreeMap::new(),
            links: BTreeMap::new(),
            last_process: 0,
            last_thread: 0,
            last_flow: 0,
        }
    }

    /// Ends all open slices and the file.
    ///
    /// # Errors
    /// The first write that failed.
    pub(crate) fn finish(mut self, now: Instant) -> io::Result<()> {
        for track in self.open.keys().copied().collect::<Vec<_>>() {
            self.end_all(track, now);
        }
        self.events.finish()
    }

    pub(crate) fn name_machine(&mut self, id: MachineId, name: &str) {
        self.machines.insert(id, name.into());
    }

    pub(crate) fn name_server(&mut self, id: ServerId, name: &str) {
        self.servers.insert(id, name.into());
    }

    pub(crate) fn name_client(&mut self, id: ClientId, name: &str) {
        self.clients.insert(id, name.into());
    }

    pub(crate) fn name_node(&mut self, id: NodeId, name: &str) {
        self.nodes.insert(id, name.into());
    }

    /// Marks an event that belongs to no host: a fault or a broken promise.
    pub(crate) fn mark(&mut self, text: &str, now: Instant) {
        let thread = self.thread(Track::Marks, Process::Scenario);
        self.events.instant(thread, now, text);
    }

    /// The messages of a new connection are HTTP.
    pub(crate) fn set_http(&mut self, link: LinkId) {
        let direction = || Direction { messages: Parser::Http(0), read: 0, under_way: VecDeque::new() };
        self.links.insert(link, [direction(), direction()]);
    }

    // ---- turns

    /// Begins a slice inside the open one.
    pub(crate) fn begin(&mut self, track: Track, name: &str, now: Instant) {
        let thread = self.thread_of(track);
        self.events.begin(thread, now, name);
        *self.open.entry(track).or_default() += 1;
    }

    /// Ends the innermost slice.
    pub(crate) fn end(&mut self, track: Track, now: Instant) {
        let Some(depth) = self.open.get_mut(&track) else { return };
        *depth -= 1;
        if *depth == 0 {
            self.open.remove(&track);
        }
        let thread = self.thread_of(track);
        self.events.end(thread, now);
    }

    /// Ends all open slices of the track, because the process dies.
    pub(crate) fn end_all(&mut self, track: Track, now: Instant) {
        while self.open.contains_key(&track) {
            self.end(track, now);
        }
    }

    /// Records the work of a processor.
    pub(crate) fn ran(&mut self, ran: &Ran) {
        let name = match ran.owner {
            Owner::Shard { server, shard, .. } => {
                format!("{}, shard {shard}", self.server_name(ServerId(server)))
            }
            Owner::Worker { server, pool, slot, .. } => {
                let kind = crate::host::pool::POOL_NAMES.get(usize::from(pool)).copied().unwrap_or("jobs");
                format!("{}, {kind}, worker {slot}", self.server_name(ServerId(server)))
            }
            Owner::Clients(number) => format!("clients, thread {number}"),
            Owner::Node { node, .. } => self.node_name(NodeId(node)).to_owned(),
            Owner::Competitor(number) => format!("other program {number}"),
        };
        let thread = self.thread_of(Track::Core(ran.machine, ran.core));
        self.events.slice(thread, ran.since, ran.until, &name, None);
    }

    // ---- messages

    /// An end has passed bytes to the network.
    pub(crate) fn sent(&mut self, end: End, hosts: Hosts, bytes: &[u8], now: Instant) {
        let both = self.links.entry(end.link).or_insert_with(|| Direction::both(hosts));
        let direction = &mut both[end.side as usize];
        let before = direction.under_way.len();
        let under_way = &mut direction.under_way;
        direction.messages.feed(bytes, &mut |message| {
            let Message { end, name, len } = message;
            under_way.push_back(UnderWay { end, sent: now, name, len });
        });
        let complete = direction.under_way.iter().skip(before);
        let text = describe("send", complete, bytes.len());
        let thread = self.connection(end, hosts);
        self.events.slice(thread, now, now, &text, Some(bytes.len()));
    }

    /// An end has taken bytes from the network.
    pub(crate) fn received(&mut self, end: End, hosts: Hosts, len: usize, now: Instant) {
        let peer = End { side: end.side.other(), ..end };
        let both = self.links.entry(end.link).or_insert_with(|| Direction::both(hosts));
        let direction = &mut both[peer.side as usize];
        direction.read += len as u64;
        let read = direction.read;
        let count = direction.under_way.iter().take_while(|message| message.end <= read).count();
        let complete: Vec<UnderWay> = direction.under_way.drain(..count).collect();
        let text = describe("receive", complete.iter(), len);
        let (from, to) = (self.connection(peer, hosts), self.connection(end, hosts));
        self.events.slice(to, now, now, &text, Some(len));
        for message in complete {
            self.last_flow += 1;
            self.events.flow(self.last_flow, message.name, message.len, (from, message.sent), (to, now));
        }
    }

    /// A publisher has sent a datagram.
    pub(crate) fn datagram_sent(&mut self, from: NodeId, len: usize, now: Instant) {
        let thread = self.thread(Track::Datagrams(from), Process::Node(from));
        self.events.slice(thread, now, now, "send a NetworkMessage", Some(len));
    }

    /// A subscriber's socket has received a datagram.
    pub(crate) fn datagram_arrived(
        &mut self,
        (from, sent): (NodeId, Instant),
        to: NodeId,
        len: usize,
        now: Instant,
    ) {
        let sender = self.thread(Track::Datagrams(from), Process::Node(from));
        let receiver = self.thread(Track::Datagrams(to), Process::Node(to));
        self.events.slice(receiver, now, now, "receive a NetworkMessage", Some(len));
        self.last_flow += 1;
        self.events.flow(self.last_flow, "NetworkMessage", len as u64, (sender, sent), (receiver, now));
    }

    /// A connection has ended. Messages in transit on it never arrive.
    pub(crate) fn forget(&mut self, link: LinkId) {
        self.links.remove(&link);
        for side in [Side::Client, Side::Server] {
            self.threads.remove(&Track::Connection(End { link, side }));
        }
    }

    // ---- names

    fn server_name(&self, id: ServerId) -> &str {
        self.servers.get(&id).map_or("server", |name| name)
    }

    fn node_name(&self, id: NodeId) -> &str {
        self.nodes.get(&id).map_or("node", |name| name)
    }

    fn connection(&mut self, end: End, hosts: Hosts) -> (u32, u32) {
        let process = match hosts[end.side as usize] {
            HostId::Client(id) => Process::Client(id),
            HostId::Server(id) => Process::Server(id),
            HostId::Node(id) => Process::Node(id),
        };
        self.thread(Track::Connection(end), process)
    }

    fn thread_of(&mut self, track: Track) -> (u32, u32) {
        let process = match track {
            Track::Core(machine, _) => Process::Machine(machine),
            Track::Shard(server, _) => Process::Server(server),
            Track::Clients(_) => Process::ClientThreads,
            Track::Node(id) | Track::Datagrams(id) => Process::Node(id),
            // Connections are identified by their first message.
            Track::Connection(_) | Track::Marks => Process::Scenario,
        };
        self.thread(track, process)
    }

    /// The numbers of process and thread. Names are written when they are first needed.
    fn thread(&mut self, track: Track, process: Process) -> (u32, u32) {
        if let Some(known) = self.threads.get(&track) {
            return *known;
        }
        let process = self.process(process);
        self.last_thread += 1;
        let mut name = String::new();
        // Writing into a String cannot fail.
        let _ = match track {
            Track::Core(_, core) => write!(name, "core {core}"),
            Track::Shard(_, shard) => write!(name, "shard {shard}"),
            Track::Clients(number) => write!(name, "thread {number}"),
            Track::Node(_) => write!(name, "thread"),
            Track::Datagrams(_) => write!(name, "datagrams"),
            Track::Connection(end) => write!(name, "connection {}", end.link.number()),
            Track::Marks => write!(name, "faults"),
        };
        let thread = (process, self.last_thread);
        self.events.name_thread(thread, &name);
        self.threads.insert(track, thread);
        thread
    }

    fn process(&mut self, process: Process) -> u32 {
        if let Some(known) = self.processes.get(&process) {
            return *known;
        }
        self.last_process += 1;
        let name = match process {
            Process::Machine(id) => match self.machines.get(&id) {
                Some(name) => format!("host {name}"),
                None => format!("host {}", id.0),
            },
            Process::Server(id) => format!("server {}", self.server_name(id)),
            Process::Client(id) => {
                self.clients.get(&id).map_or_else(|| format!("client {}", id.0), |name| name.to_string())
            }
            Process::Node(id) => self.node_name(id).to_owned(),
            Process::ClientThreads => "threads of clients".to_owned(),
            Process::Scenario => "scenario".to_owned(),
        };
        self.events.name_process(self.last_process, &name);
        self.processes.insert(process, self.last_process);
        self.last_process
    }
}

/// Describes the messages of a write or read.
fn describe<'a>(verb: &str, mut complete: impl Iterator<Item = &'a UnderWay>, len: usize) -> String {
    match (complete.next(), complete.count()) {
        (None, _) => format!("{verb} {len} bytes of a message"),
        (Some(one), 0) => format!("{verb} {}", one.name),
        (Some(one), more) => format!("{verb} {} and {more} more", one.name),
    }
}
