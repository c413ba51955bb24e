//! A process with its sockets and deadlines, with or without a processor: a publisher, subscriber, MQTT broker,
//! certificate authority, or a process that asks authorities.
//!
//! - `work`: what the process does with one input, deadline or socket; `turns`: when it does it.

mod turns;
mod work;

use crate::alarm::Alarm;
use crate::authority::{Asker, Responder};
use crate::fabric::Fabric;
use crate::host::Machine;
use crate::host::machine::{MachineId, Owner, ThreadId};
use crate::ids::NodeId;
use crate::network::{End, LinkId, Route, Service};
use crate::pubsub::broker::Broker;
use crate::pubsub::publisher::PublisherNode;
use crate::pubsub::subscriber::SubscriberNode;
use crate::trace::Track;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use taktwerk_server::Now;

/// Size in bytes of a socket's receive buffer for datagrams; `taktwerk-net` requests the same size.
const SOCKET_BUFFER: usize = 8 << 20;

/// What runs in the process.
#[derive(Debug)]
pub(crate) enum Node {
    Publisher(Box<PublisherNode>),
    Subscriber(Box<SubscriberNode>),
    Broker(Box<Broker>),
    Responder(Box<Responder>),
    Asker(Box<Asker>),
}

/// The broker that a publisher or subscriber connects to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) broker: NodeId,
    pub(crate) route: Route,
    /// The service shown in captures.
    pub(crate) service: Service,
    pub(crate) numbers: (u32, u32),
}

/// Inputs of a process, handled when its thread runs.
#[derive(Debug)]
enum Input {
    Datagram(Rc<[u8]>),
    Accepted(LinkId),
    Connected(LinkId),
    Readable(LinkId),
    Writable(LinkId),
    Closed(LinkId),
    /// A check with this ticket is to begin.
    Check(u64),
}

/// Output that leaves when the thread has finished the work.
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

/// A process.
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
    /// Processor time of threads that have ended.
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

    /// Its connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        match &self.node {
            Some(Node::Broker(broker)) => broker.connections(),
            Some(Node::Responder(responder)) => responder.connections(),
            _ => self.sockets.len(),
        }
    }

    /// Where it stores more than its limits allow.
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

    /// The process dies: connections are reset, and its state is lost.
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
            // Inputs that arrived in the meantime are reported again.
            let links: Vec<LinkId> = self.sockets.keys().copied().collect();
            links.into_iter().for_each(|link| self.inputs.push_back(Input::Readable(link)));
        }
    }

    /// A fault of an authority: each answer takes this much longer.
    pub(crate) fn set_slow(&mut self, slow: Duration) {
        if let Some(Node::Responder(responder)) = &mut self.node {
            responder.set_slow(slow);
        }
    }

    /// Begins a check with this ticket.
    pub(crate) fn check(&mut self, ticket: u64) {
        if self.node.is_some() {
            self.inputs.push_back(Input::Check(ticket));
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
        if !matches!(self.node, Some(Node::Broker(_) | Node::Responder(_))) {
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
}
