//! Publishers, subscribers, brokers, certificate authorities and those that ask them, in a world.

use super::World;
use crate::authority::{Asker, Authority, AuthorityFigures, Query, Responder};
use crate::client::Application;
use crate::event::Flight;
use crate::fabric::Ways;
use crate::host::machine::{MachineId, ThreadId};
use crate::ids::{ClientId, HostId, NodeId, ServerId};
use crate::network::{End, LinkId, Side, Signal};
use crate::node::{Node, NodeHost, Peer};
use crate::trace::Track;
use core::cell::RefCell;
use core::time::Duration;
use std::rc::Rc;

impl<A: Application> World<A> {
    // ---- building

    /// The id that the next node will have.
    pub(crate) fn next_node(&self) -> NodeId {
        NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
    }

    /// Adds a process.
    pub(crate) fn add_node(&mut self, name: &str, node: Node, peer: Option<Peer>) -> NodeId {
        let id = self.next_node();
        if let Some(trace) = &mut self.fabric.trace {
            trace.name_node(id, name);
        }
        self.nodes.push(NodeHost::new(id, node, peer));
        self.touched.insert(HostId::Node(id));
        id
    }

    /// Runs a node on a machine, with its own thread.
    pub(crate) fn place_node(&mut self, id: NodeId, machine: MachineId) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.place(machine, &mut self.fabric);
            self.touched.insert(HostId::Node(id));
        }
    }

    /// Adds a certificate authority. Its figures are counted in `figures`.
    pub fn add_authority(&mut self, authority: Authority, figures: &Rc<RefCell<AuthorityFigures>>) -> NodeId {
        let name = format!("certificate authority {}", authority.name);
        let responder = Responder::new(authority, Rc::clone(figures));
        self.add_node(&name, Node::Responder(Box::new(responder)), None)
    }

    /// Adds a process that asks the authorities of a chain, the issuer first. `figures` are those of each authority.
    pub fn add_asker(
        &mut self,
        name: &str,
        chain: Rc<[Query]>,
        figures: Vec<Rc<RefCell<AuthorityFigures>>>,
    ) -> NodeId {
        self.add_node(name, Node::Asker(Box::new(Asker::new(chain, figures))), None)
    }

    /// Lets a server accept certificates of clients only after an asker has checked them.
    pub fn check_at_server(&mut self, id: ServerId, asker: NodeId) {
        self.server_mut(id).set_asker(asker);
    }

    /// Lets a client accept certificates of servers only after an asker has checked them.
    pub fn check_at_client(&mut self, id: ClientId, asker: NodeId) {
        self.client_mut(id).set_asker(asker);
    }

    /// Sets the destinations of a publisher's datagrams.
    pub(crate) fn set_ways(&mut self, id: NodeId, ways: Ways) {
        self.fabric.ways.insert(id, ways);
    }

    // ---- looking

    /// A process.
    ///
    /// # Panics
    /// If it does not belong to this world.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &NodeHost {
        &self.nodes[id.0 as usize]
    }

    /// Processor time that a node's thread has used.
    #[must_use]
    pub fn node_used(&self, id: NodeId) -> Duration {
        let node = self.node(id);
        node.machine().map_or(Duration::ZERO, |machine| node.used(self.machine(machine)))
    }

    // ---- faults

    /// Breaks all connections of a node; both ends are notified.
    pub fn cut_node(&mut self, id: NodeId) {
        for link in self.node(id).links() {
            self.fabric.network.cut(link);
        }
    }

    /// Blocks all traffic of a process, without notifying anyone.
    pub fn partition_node(&mut self, id: NodeId) {
        self.fabric.partitioned.insert(id);
        for link in self.links_of_node(id) {
            self.fabric.network.partition(link);
        }
    }

    /// Its connections, including attempts that have not reached it.
    fn links_of_node(&self, id: NodeId) -> Vec<LinkId> {
        let links = self.fabric.links.iter().filter(|(_, hosts)| hosts.contains(&HostId::Node(id)));
        links.map(|(link, _)| *link).collect()
    }

    /// Ends a partition.
    pub fn heal_node(&mut self, id: NodeId) {
        self.fabric.partitioned.remove(&id);
        for link in self.links_of_node(id) {
            self.fabric.network.heal(link);
        }
    }

    /// Each answer of an authority takes this much longer from now on.
    pub fn set_node_slow(&mut self, id: NodeId, slow: Duration) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.set_slow(slow);
        }
    }

    /// A node's process dies.
    pub fn crash_node(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.crash(&mut self.fabric);
        }
    }

    /// A node's process is started again.
    pub(crate) fn start_node(&mut self, id: NodeId, process: Node) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.start(process, &mut self.fabric);
            self.touched.insert(HostId::Node(id));
        }
    }

    /// Stops or resumes reading from the sockets of a node.
    pub fn set_node_reads(&mut self, id: NodeId, reads: bool) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.set_reads(reads);
            self.touched.insert(HostId::Node(id));
        }
    }

    /// Sets a node's wall clock ahead by this much from now on.
    pub fn set_node_clock(&mut self, id: NodeId, offset_nanos: i64) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.set_clock_offset(offset_nanos);
            self.touched.insert(HostId::Node(id));
        }
    }

    // ---- running

    pub(super) fn node_rings(&mut self, id: NodeId, number: u64) -> bool {
        self.nodes.get_mut(id.0 as usize).is_some_and(|node| node.ring(number))
    }

    /// Begins the checks that are due, and reports those that have ended.
    pub(super) fn settle_checks(&mut self) {
        while let Some((asker, ticket)) = self.fabric.checks_due.pop_front() {
            if let Some(node) = self.nodes.get_mut(asker.0 as usize) {
                node.check(ticket);
                self.touched.insert(HostId::Node(asker));
            }
        }
        while let Some((ticket, verdict)) = self.fabric.verdicts.pop_front() {
            let Some(host) = self.fabric.take_ticket(ticket) else { continue };
            match host {
                HostId::Server(id) => self.servers[id.0 as usize].checked(ticket, verdict, &mut self.fabric),
                HostId::Client(id) => self.clients[id.0 as usize].checked(ticket, verdict, &mut self.fabric),
                HostId::Node(_) => {}
            }
            self.touched.insert(host);
        }
    }

    pub(super) fn settle_node(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.settle(&mut self.fabric);
        }
    }

    pub(super) fn on_datagram(&mut self, flight: &Flight) {
        if !flight.is_down {
            return self.fabric.forward(flight);
        }
        let Some(ways) = self.fabric.ways.get(&flight.from) else { return };
        let Some(leg) = flight.leg.and_then(|leg| ways.legs.get(leg)) else { return };
        let (now, len) = (self.fabric.queue.now(), flight.bytes.len());
        for (to, _) in &leg.to {
            if self.fabric.partitioned.contains(to) {
                continue;
            }
            let Some(node) = self.nodes.get_mut(to.0 as usize) else { continue };
            node.datagram(flight.bytes.clone());
            self.touched.insert(HostId::Node(*to));
            if let Some(trace) = &mut self.fabric.trace {
                trace.datagram_arrived((flight.from, flight.sent), *to, len, now);
            }
        }
    }

    pub(super) fn on_node_thread(
        &mut self,
        (number, incarnation): (u32, u32),
        machine: MachineId,
        thread: ThreadId,
    ) {
        let Some(node) = self.nodes.get_mut(number as usize) else { return };
        let track = Track::Node(NodeId(number));
        self.fabric.trace_end(track);
        let step = node.step(incarnation, &mut self.fabric);
        match step {
            Some((_, name)) => self.fabric.trace_begin(track, name),
            None => self.fabric.trace_end(track),
        }
        self.go_on(machine, thread, step.map(|(cost, _)| cost));
    }

    pub(super) fn on_node_signal(&mut self, signal: Signal, hosts: [HostId; 2]) {
        let (link, side) = match signal {
            Signal::Incoming(link) => (link, Side::Server),
            Signal::Connected(end)
            | Signal::Unreachable(end)
            | Signal::Readable(end)
            | Signal::Writable(end)
            | Signal::Closed(end, _) => (end.link, end.side),
        };
        let host = hosts[side as usize];
        if let HostId::Node(id) = host
            && let Some(node) = self.nodes.get_mut(id.0 as usize)
        {
            let end = End { link, side };
            match signal {
                Signal::Incoming(link) => node.accept(link, &mut self.fabric),
                Signal::Connected(_) => node.connected(end),
                Signal::Readable(_) => node.readable(end),
                Signal::Writable(_) => node.writable(end),
                Signal::Closed(..) | Signal::Unreachable(_) => node.closed(end),
            }
        }
        if let Signal::Closed(..) | Signal::Unreachable(_) = signal {
            self.fabric.forget_dead(link);
        }
        self.touched.insert(host);
    }
}
