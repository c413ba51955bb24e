//! Publishers, subscribers and brokers in a world.

use super::World;
use crate::client::Application;
use crate::event::Flight;
use crate::fabric::Ways;
use crate::host::machine::{MachineId, ThreadId};
use crate::ids::{HostId, NodeId};
use crate::network::{End, Side, Signal};
use crate::pubsub::{Node, NodeHost, Peer};
use crate::trace::Track;
use core::time::Duration;

impl<A: Application> World<A> {
    // ---- building

    /// The id that the next node will have.
    pub(crate) fn next_node(&self) -> NodeId {
        NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
    }

    /// Adds a PubSub process.
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

    /// Sets the destinations of a publisher's datagrams.
    pub(crate) fn set_ways(&mut self, id: NodeId, ways: Ways) {
        self.fabric.ways.insert(id, ways);
    }

    // ---- looking

    /// A publisher, subscriber or broker.
    ///
    /// If it does not belong to this world.
    /// If it is not of this world.
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

    /// Blocks all traffic of a publisher or subscriber, without notifying anyone.
    pub fn partition_node(&mut self, id: NodeId) {
        self.fabric.partitioned.insert(id);
        for link in self.node(id).links() {
            self.fabric.network.partition(link);
        }
    }

    /// Ends a partition.
    pub fn heal_node(&mut self, id: NodeId) {
        self.fabric.partitioned.remove(&id);
        for link in self.node(id).links() {
            self.fabric.network.heal(link);
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
