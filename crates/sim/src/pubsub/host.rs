//! A process: a publisher, subscriber or broker with its sockets and deadlines.

use super::broker::Broker;
use super::output::Effort;
use super::publisher::PublisherNode;
use super::session::{Session, Step};
use super::subscriber::SubscriberNode;
use crate::alarm::Alarm;
use crate::fabric::Fabric;
use crate::host::costs::DriverCosts;
use crate::host::machine::{MachineId, Owner, ThreadId};
use crate::host::{Costs, Machine};
use crate::ids::{HostId, NodeId};
use crate::network::{End, LinkId, Route, Service, Side};
use crate::trace::Track;
use crate::violation::Broken;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_server::Now;
use taktwerk_types::Instant;

/// Turns at one instant after which a process is said not to come to rest.
const TURNS_MAX: usize = 5_000_000;
/// Bytes of datagrams that a socket holds until they are read, as `taktwerk-net` asks for.
const SOCKET_BUFFER: usize = 8 << 20;

/// What runs in the process.
#[derive(Debug)]
pub(crate) enum Node {
    Publisher(Box<PublisherNode>),
    Subscriber(Box<SubscriberNode>),
    Broker(Box<Broker>),
}

/// The broker that a publisher or subscriber connects to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) broker: NodeId,
    pub(crate) route: Route,
    /// What captures show.
    pub(crate) service: Service,
    pub(crate) numbers: (u32, u32),
}

/// What a process is told, when its thread gets to it.
#[derive(Debug)]
enum Input {
    Datagram(Rc<[u8]>),
    Accepted(LinkId),
    Connected(LinkId),
    Readable(LinkId),
    Writable(LinkId),
    Closed(LinkId),
}

/// What leaves when the thread is done with it.
#[derive(Debug)]
enum Doing {
    Datagram(Vec<u8>),
    Write(LinkId),
}

#[derive(Debug)]
struct Socket {
    end: End,
    is_connected: bool,
    is_blocked: bool,
}

/// A process of PubSub.
#[derive(Debug)]
pub struct NodeHost {
    id: NodeId,
    /// `None` while it is down.
    node: Option<Node>,
    incarnation: u32,
    peer: Option<Peer>,
    place: Option<MachineId>,
    thread: Option<ThreadId>,
    is_awake: bool,
    /// Processor time of threads that are no more.
    used: Duration,
    clock_offset: i64,
    reads: bool,
    sockets: BTreeMap<LinkId, Socket>,
    inputs: VecDeque<Input>,
    /// Bytes of datagrams in `inputs`.
    buffered: usize,
    /// Datagrams dropped because the socket was full.
    socket_dropped: u64,
    doing: Option<Doing>,
    alarm: Alarm,
}

impl NodeHost {
    pub(crate) fn new(id: NodeId, node: Node, peer: Option<Peer>) -> Self {
        Self {
            id,
            node: Some(node),
            incarnation: 0,
            peer,
            place: None,
            thread: None,
            is_awake: false,
            used: Duration::ZERO,
            clock_offset: 0,
            reads: true,
            sockets: BTreeMap::new(),
            inputs: VecDeque::new(),
            buffered: 0,
            socket_dropped: 0,
            doing: None,
            alarm: Alarm::default(),
        }
    }

    /// Datagrams dropped because the socket's buffer was full.
    #[must_use]
    pub fn socket_dropped(&self) -> u64 {
        self.socket_dropped
    }

    /// Its machine.
    #[must_use]
    pub fn machine(&self) -> Option<MachineId> {
        self.place
    }

    /// Connections of a broker.
    #[must_use]
    pub fn connections(&self) -> usize {
        match &self.node {
            Some(Node::Broker(broker)) => broker.connections(),
            _ => self.sockets.len(),
        }
    }

    /// What it keeps more of than its limits allow.
    pub(crate) fn over_budget(&self) -> Option<String> {
        match &self.node {
            Some(Node::Broker(broker)) => broker.over_budget(),
            _ => None,
        }
    }

    pub(crate) fn now(&self, fabric: &Fabric) -> Now {
        fabric.now_off_by(self.clock_offset)
    }

    /// Processor time that its threads have used.
    pub(crate) fn used(&self, machine: &Machine) -> Duration {
        self.used + machine.used_by(|owner| owner == self.owner())
    }

    fn owner(&self) -> Owner {
        Owner::Node { node: self.id.0, incarnation: self.incarnation }
    }

    // ---- life

    pub(crate) fn place(&mut self, machine: MachineId, fabric: &mut Fabric) {
        self.place = Some(machine);
        let owner = self.owner();
        self.thread = fabric.machine(machine).map(|machine| machine.spawn(owner));
    }

    /// The process dies: connections are reset, and what it knew is gone.
    pub(crate) fn crash(&mut self, fabric: &mut Fabric) {
        if self.node.take().is_none() {
            return;
        }
        for socket in core::mem::take(&mut self.sockets).into_values() {
            fabric.reset(socket.end);
        }
        self.inputs.clear();
        (self.buffered, self.doing, self.is_awake) = (0, None, false);
        let owner = self.owner();
        if let Some(thread) = self.thread.take()
            && let Some((machine, queue)) = self.place.and_then(|place| fabric.machine_and_queue(place))
        {
            self.used += machine.used_by(|other| other == owner);
            machine.kill(thread, queue);
        }
        fabric.trace_end_all(Track::Node(self.id));
        self.incarnation += 1;
    }

    /// The process is started again.
    pub(crate) fn start(&mut self, node: Node, fabric: &mut Fabric) {
        self.crash(fabric);
        self.node = Some(node);
        if let Some(machine) = self.place {
            self.place(machine, fabric);
        }
    }

    pub(crate) fn is_partitioned(&self, fabric: &Fabric) -> bool {
        fabric.partitioned.contains(&self.id)
    }

    pub(crate) fn set_clock_offset(&mut self, nanos: i64) {
        self.clock_offset = nanos;
    }

    pub(crate) fn set_reads(&mut self, reads: bool) {
        self.reads = reads;
        if reads {
            // What has come meanwhile is told once more.
            let links: Vec<LinkId> = self.sockets.keys().copied().collect();
            links.into_iter().for_each(|link| self.inputs.push_back(Input::Readable(link)));
        }
    }

    /// Its connections.
    pub(crate) fn links(&self) -> Vec<LinkId> {
        self.sockets.keys().copied().collect()
    }

    // ---- what the network reports

    pub(crate) fn datagram(&mut self, bytes: Rc<[u8]>) {
        if self.node.is_none() {
            return;
        }
        if self.buffered + bytes.len() > SOCKET_BUFFER {
            self.socket_dropped += 1;
            return;
        }
        self.buffered += bytes.len();
        self.inputs.push_back(Input::Datagram(bytes));
    }

    pub(crate) fn accept(&mut self, link: LinkId, fabric: &mut Fabric) {
        if !matches!(self.node, Some(Node::Broker(_))) {
            return fabric.network.refuse(link, &mut fabric.queue);
        }
        let end = fabric.network.accept(link, &mut fabric.queue);
        self.sockets.insert(link, Socket { end, is_connected: true, is_blocked: false });
        self.inputs.push_back(Input::Accepted(link));
    }

    pub(crate) fn connected(&mut self, end: End) {
        self.tell(Input::Connected(end.link), end.link);
    }

    pub(crate) fn readable(&mut self, end: End) {
        let is_known = self
            .inputs
            .iter()
            .rev()
            .take(16)
            .any(|known| matches!(known, Input::Readable(link) if *link == end.link));
        if !is_known {
            self.tell(Input::Readable(end.link), end.link);
        }
    }

    pub(crate) fn writable(&mut self, end: End) {
        self.tell(Input::Writable(end.link), end.link);
    }

    pub(crate) fn closed(&mut self, end: End) {
        self.tell(Input::Closed(end.link), end.link);
    }

    fn tell(&mut self, input: Input, link: LinkId) {
        if self.node.is_some() && self.sockets.contains_key(&link) {
            self.inputs.push_back(input);
        }
    }

    // ---- work

    pub(crate) fn ring(&mut self, number: u64) -> bool {
        self.alarm.ring(number)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.node.as_ref()? {
            Node::Publisher(publisher) => publisher.poll_timeout(),
            Node::Subscriber(subscriber) => subscriber.poll_timeout(),
            Node::Broker(broker) => broker.poll_timeout(),
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.poll_timeout().is_some_and(|at| at <= now)
    }

    /// The next input, unless it is a message and the process does not read.
    fn next_input(&mut self) -> Option<Input> {
        let reads = self.reads;
        let is_wanted = |input: &Input| reads || !matches!(input, Input::Datagram(_) | Input::Readable(_));
        let at = if reads { 0 } else { self.inputs.iter().position(is_wanted)? };
        let input = self.inputs.remove(at)?;
        if let Input::Datagram(bytes) = &input {
            self.buffered -= bytes.len();
        }
        Some(input)
    }

    fn has_input(&self) -> bool {
        let is_message = |input: &Input| matches!(input, Input::Datagram(_) | Input::Readable(_));
        self.inputs.iter().any(|input| self.reads || !is_message(input))
    }

    /// Does what an input asks for. Says whether it was received from a socket.
    fn apply(&mut self, input: Input, fabric: &mut Fabric) -> bool {
        let now = self.now(fabric);
        let Some(node) = &mut self.node else { return false };
        match input {
            Input::Datagram(bytes) => {
                if let Node::Subscriber(subscriber) = node {
                    subscriber.message(&bytes, now);
                }
                return true;
            }
            Input::Accepted(link) => {
                if let Node::Broker(broker) = node {
                    broker.accepted(link, now.instant);
                }
            }
            Input::Connected(link) => {
                if let (Some(socket), Some(session)) = (self.sockets.get_mut(&link), session(node)) {
                    socket.is_connected = true;
                    session.connected(now.instant);
                }
            }
            Input::Writable(link) => {
                if let Some(socket) = self.sockets.get_mut(&link) {
                    socket.is_blocked = false;
                }
                if let Node::Broker(broker) = node {
                    broker.set_blocked(link, false);
                }
            }
            Input::Closed(link) => {
                if self.sockets.remove(&link).is_some() {
                    match node {
                        Node::Broker(broker) => broker.closed(link),
                        node => {
                            if let Some(session) = session(node) {
                                session.closed(now.instant);
                            }
                        }
                    }
                }
            }
            Input::Readable(link) => {
                let Some(socket) = self.sockets.get(&link) else { return false };
                let mut bytes = Vec::new();
                fabric.read(socket.end, &mut bytes);
                if bytes.is_empty() {
                    return false;
                }
                let step = match node {
                    Node::Broker(broker) => {
                        broker.receive(link, &bytes, now.instant);
                        Step::Nothing
                    }
                    Node::Publisher(publisher) => publisher.receive(&bytes, now),
                    Node::Subscriber(subscriber) => subscriber.receive(&bytes, now),
                };
                self.carry_out(step, fabric);
                return true;
            }
        }
        false
    }

    fn handle_timeout(&mut self, fabric: &mut Fabric) {
        let now = self.now(fabric);
        let step = match &mut self.node {
            Some(Node::Publisher(publisher)) => publisher.handle_timeout(now),
            Some(Node::Subscriber(subscriber)) => subscriber.handle_timeout(now),
            Some(Node::Broker(broker)) => {
                broker.handle_timeout(now.instant);
                Step::Nothing
            }
            None => Step::Nothing,
        };
        self.carry_out(step, fabric);
    }

    fn carry_out(&mut self, step: Step, fabric: &mut Fabric) {
        match step {
            Step::Nothing => {}
            Step::Close => {
                for socket in core::mem::take(&mut self.sockets).into_values() {
                    fabric.close(socket.end);
                }
            }
            Step::Connect => {
                let Some(peer) = self.peer else { return };
                let nodes = [self.id, peer.broker];
                let link = fabric.connect_node((peer.service, peer.numbers), nodes, &peer.route);
                if self.is_partitioned(fabric) {
                    fabric.network.partition(link);
                }
                let end = End { link, side: Side::Client };
                let socket = Socket { end, is_connected: false, is_blocked: false };
                for old in core::mem::take(&mut self.sockets).into_values() {
                    fabric.close(old.end);
                }
                self.sockets.insert(link, socket);
            }
        }
    }

    /// The next connection that has bytes to send and can.
    fn next_write(&mut self) -> Option<LinkId> {
        let node = self.node.as_mut()?;
        if let Node::Broker(broker) = node {
            return broker.next_ready();
        }
        // Others have one connection.
        self.sockets
            .iter()
            .filter(|(_, socket)| socket.is_connected && !socket.is_blocked)
            .map(|(link, _)| *link)
            .find(|link| transmit(node, *link).is_some_and(|out| !out.is_empty()))
    }

    fn write(&mut self, link: LinkId, fabric: &mut Fabric) {
        let now = self.now(fabric);
        let Some(node) = &mut self.node else { return };
        let Some(socket) = self.sockets.get_mut(&link) else {
            if let Node::Broker(broker) = node {
                broker.closed(link);
            }
            return;
        };
        let Some(out) = transmit(node, link) else { return };
        let taken = fabric.write(socket.end, out);
        socket.is_blocked = taken < out.len();
        out.drain(..taken);
        let step = match node {
            Node::Broker(broker) => {
                broker.set_blocked(link, socket.is_blocked);
                broker.transmitted(link);
                Step::Nothing
            }
            node if taken > 0 => {
                session(node).map_or(Step::Nothing, |session| session.transmitted(now.instant))
            }
            _ => Step::Nothing,
        };
        self.carry_out(step, fabric);
    }

    fn close_what_is_closed(&mut self, fabric: &mut Fabric) {
        while let Some(Node::Broker(broker)) = &mut self.node
            && let Some(link) = broker.poll_close()
        {
            if let Some(socket) = self.sockets.remove(&link) {
                fabric.close(socket.end);
            }
        }
    }

    fn poll_datagram(&mut self) -> Option<Vec<u8>> {
        match &mut self.node {
            Some(Node::Publisher(publisher)) => publisher.poll_datagram(),
            _ => None,
        }
    }

    fn deliver(&mut self, fabric: &Fabric) {
        if let Some(Node::Subscriber(subscriber)) = &mut self.node {
            subscriber.deliver(fabric.queue.now());
        }
    }

    fn is_delivering(&self) -> bool {
        matches!(&self.node, Some(Node::Subscriber(subscriber)) if subscriber.is_delivering())
    }

    fn take_effort(&mut self) -> Effort {
        match &mut self.node {
            Some(Node::Publisher(publisher)) => publisher.take_effort(),
            Some(Node::Subscriber(subscriber)) => subscriber.take_effort(),
            Some(Node::Broker(broker)) => broker.take_effort(),
            None => Effort::default(),
        }
    }

    fn arm(&mut self, fabric: &mut Fabric) {
        if let Some(at) = self.poll_timeout() {
            self.alarm.arm(HostId::Node(self.id), 0, at, &mut fabric.queue);
        }
    }

    /// Does everything that there is to do at this instant, or sees to it that its thread does.
    pub(crate) fn settle(&mut self, fabric: &mut Fabric) {
        if self.place.is_some() {
            return self.wake(fabric);
        }
        for _ in 0..TURNS_MAX {
            self.deliver(fabric);
            self.close_what_is_closed(fabric);
            if let Some(bytes) = self.poll_datagram() {
                fabric.send_datagram(self.id, &bytes);
            } else if let Some(link) = self.next_write() {
                self.write(link, fabric);
            } else if let Some(input) = self.next_input() {
                self.apply(input, fabric);
            } else if self.is_due(fabric.queue.now()) {
                self.handle_timeout(fabric);
            } else if !self.is_delivering() {
                return self.arm(fabric);
            }
        }
        let reason = "a publisher, subscriber or broker";
        fabric.broken(Broken::Restless { host: HostId::Node(self.id), reason });
    }

    fn driver(&self, costs: &Costs) -> DriverCosts {
        match &self.node {
            Some(Node::Subscriber(_)) => costs.client,
            _ => costs.server,
        }
    }

    fn wake(&mut self, fabric: &mut Fabric) {
        let Some(machine) = self.place else { return };
        let has_work = self.has_input() || self.is_due(fabric.queue.now());
        let Some(thread) = self.thread.filter(|_| has_work && !self.is_awake) else {
            if !self.is_awake {
                self.arm(fabric);
            }
            return;
        };
        let Some((machine, queue)) = fabric.machine_and_queue(machine) else { return };
        let driver = self.driver(&Arc::clone(&machine.costs));
        self.is_awake = true;
        let cost = machine.noisy(driver.wake + driver.turn);
        machine.start(thread, cost, driver.cold(), queue);
        fabric.trace_begin(Track::Node(self.id), "turn");
        fabric.trace_begin(Track::Node(self.id), "wake");
    }

    /// Its thread has done what was asked for. Carries out what came of it, and begins the next: its cost and its name, or
    /// `None` if there is nothing to do.
    pub(crate) fn step(&mut self, incarnation: u32, fabric: &mut Fabric) -> Option<(Duration, &'static str)> {
        if incarnation != self.incarnation {
            return None;
        }
        let machine = self.place?;
        let costs = Arc::clone(&fabric.machine(machine)?.costs);
        let driver = self.driver(&costs);
        match self.doing.take() {
            Some(Doing::Datagram(bytes)) => fabric.send_datagram(self.id, &bytes),
            Some(Doing::Write(link)) => self.write(link, fabric),
            None => {}
        }
        self.deliver(fabric);
        self.close_what_is_closed(fabric);
        // What has come of a write.
        let mut nanos = self.take_effort().cost(&costs);
        let name = if let Some(bytes) = self.poll_datagram() {
            self.doing = Some(Doing::Datagram(bytes));
            nanos += driver.send;
            "send"
        } else if let Some(link) = self.next_write() {
            self.doing = Some(Doing::Write(link));
            nanos += driver.send;
            "send"
        } else if let Some(input) = self.next_input() {
            if self.apply(input, fabric) {
                nanos += driver.receive;
            }
            nanos += self.take_effort().cost(&costs);
            "receive"
        } else if self.is_due(fabric.queue.now()) {
            self.handle_timeout(fabric);
            nanos += driver.timer + self.take_effort().cost(&costs);
            "deadline"
        } else if nanos > 0.0 {
            "rest"
        } else {
            self.is_awake = false;
            self.arm(fabric);
            return None;
        };
        Some((fabric.machine(machine)?.noisy(nanos), name))
    }
}

/// The MQTT client of a process that has one.
fn session(node: &mut Node) -> Option<&mut Session> {
    match node {
        Node::Publisher(publisher) => publisher.session(),
        Node::Subscriber(subscriber) => subscriber.session(),
        Node::Broker(_) => None,
    }
}

/// Unsent bytes of a connection.
fn transmit(node: &mut Node, link: LinkId) -> Option<&mut Vec<u8>> {
    match node {
        Node::Broker(broker) => broker.transmit(link),
        node => session(node).map(Session::transmit),
    }
}
