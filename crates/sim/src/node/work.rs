//! What a process does with one input, deadline or socket.

use super::{Input, Node, NodeHost, Socket};
use crate::fabric::Fabric;
use crate::host::Costs;
use crate::ids::HostId;
use crate::network::{End, LinkId, Service, Side};
use crate::pubsub::session::{Session, Step};
use taktwerk_types::Instant;

impl NodeHost {
    pub(crate) fn ring(&mut self, number: u64) -> bool {
        self.alarm.ring(number)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.node.as_ref()? {
            Node::Publisher(publisher) => publisher.poll_timeout(),
            Node::Subscriber(subscriber) => subscriber.poll_timeout(),
            Node::Broker(broker) => broker.poll_timeout(),
            Node::Responder(responder) => responder.poll_timeout(),
            Node::Asker(asker) => asker.poll_timeout(),
        }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.poll_timeout().is_some_and(|at| at <= now)
    }

    /// The next input, unless it is a message and the process does not read.
    pub(super) fn next_input(&mut self) -> Option<Input> {
        let reads = self.reads;
        let is_wanted = |input: &Input| reads || !matches!(input, Input::Datagram(_) | Input::Readable(_));
        let at = if reads { 0 } else { self.inputs.iter().position(is_wanted)? };
        let input = self.inputs.remove(at)?;
        if let Input::Datagram(bytes) = &input {
            self.buffered -= bytes.len();
        }
        Some(input)
    }

    pub(super) fn has_input(&self) -> bool {
        let is_message = |input: &Input| matches!(input, Input::Datagram(_) | Input::Readable(_));
        self.inputs.iter().any(|input| self.reads || !is_message(input))
    }

    /// Handles an input. Returns whether it was received from a socket.
    pub(super) fn apply(&mut self, input: Input, fabric: &mut Fabric) -> bool {
        let now = self.now(fabric);
        let Some(node) = &mut self.node else { return false };
        match input {
            Input::Datagram(bytes) => {
                if let Node::Subscriber(subscriber) = node {
                    subscriber.message(&bytes, now);
                }
                return true;
            }
            Input::Accepted(link) => match node {
                Node::Broker(broker) => broker.accepted(link, now.instant),
                Node::Responder(responder) => responder.accepted(link, now.instant),
                _ => {}
            },
            Input::Connected(link) => {
                if let Some(socket) = self.sockets.get_mut(&link) {
                    socket.is_connected = true;
                    if let Some(session) = session(node) {
                        session.connected(now.instant);
                    }
                }
            }
            Input::Check(ticket) => {
                if let Node::Asker(asker) = node {
                    asker.check(ticket, now.instant);
                }
            }
            Input::Writable(link) => {
                if let Some(socket) = self.sockets.get_mut(&link) {
                    socket.is_blocked = false;
                }
                match node {
                    Node::Broker(broker) => broker.set_blocked(link, false),
                    Node::Responder(responder) => responder.set_blocked(link, false),
                    _ => {}
                }
            }
            Input::Closed(link) => {
                if self.sockets.remove(&link).is_some() {
                    match node {
                        Node::Broker(broker) => broker.closed(link),
                        Node::Responder(responder) => responder.closed(link),
                        Node::Asker(asker) => asker.closed(link, now.instant),
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
                    Node::Responder(responder) => {
                        responder.receive(link, &bytes, now.instant, self.place.is_some());
                        Step::Nothing
                    }
                    Node::Asker(asker) => {
                        asker.receive(link, &bytes, now.instant);
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

    pub(super) fn handle_timeout(&mut self, fabric: &mut Fabric) {
        let now = self.now(fabric);
        let step = match &mut self.node {
            Some(Node::Publisher(publisher)) => publisher.handle_timeout(now),
            Some(Node::Subscriber(subscriber)) => subscriber.handle_timeout(now),
            Some(Node::Broker(broker)) => {
                broker.handle_timeout(now.instant);
                Step::Nothing
            }
            Some(Node::Responder(responder)) => {
                responder.handle_timeout(now.instant);
                Step::Nothing
            }
            Some(Node::Asker(asker)) => {
                asker.handle_timeout(now.instant);
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

    /// The next connection that has bytes to send and can send them.
    pub(super) fn next_write(&mut self) -> Option<LinkId> {
        let node = self.node.as_mut()?;
        match node {
            Node::Broker(broker) => return broker.next_ready(),
            Node::Responder(responder) => return responder.next_ready(),
            _ => {}
        }
        // Publishers and subscribers have one connection, askers one for each check.
        self.sockets
            .iter()
            .filter(|(_, socket)| socket.is_connected && !socket.is_blocked)
            .map(|(link, _)| *link)
            .find(|link| transmit(node, *link).is_some_and(|out| !out.is_empty()))
    }

    pub(super) fn write(&mut self, link: LinkId, fabric: &mut Fabric) {
        let now = self.now(fabric);
        let Some(node) = &mut self.node else { return };
        let Some(socket) = self.sockets.get_mut(&link) else {
            match node {
                Node::Broker(broker) => broker.closed(link),
                Node::Responder(responder) => responder.closed(link),
                _ => {}
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
            Node::Responder(responder) => {
                responder.set_blocked(link, socket.is_blocked);
                Step::Nothing
            }
            node if taken > 0 => {
                session(node).map_or(Step::Nothing, |session| session.transmitted(now.instant))
            }
            _ => Step::Nothing,
        };
        self.carry_out(step, fabric);
    }

    /// Reports finished checks, opens the connections that are needed next, and closes those that are not needed any
    /// more.
    pub(super) fn connect_and_close(&mut self, fabric: &mut Fabric) {
        while let Some(Node::Asker(asker)) = &mut self.node
            && let Some((ticket, verdict)) = asker.poll_done()
        {
            fabric.verdicts.push_back((ticket, verdict));
        }
        while let Some(link) = self.poll_close() {
            if let Some(socket) = self.sockets.remove(&link) {
                fabric.close(socket.end);
            }
        }
        while let Some(Node::Asker(asker)) = &mut self.node
            && let Some((ticket, query)) = asker.poll_connect()
        {
            let service = (Service::Authority, query.numbers);
            let link = fabric.connect_node(service, [self.id, query.node], &query.route);
            asker.opening(ticket, link);
            if fabric.partitioned.contains(&query.node) || fabric.partitioned.contains(&self.id) {
                fabric.network.partition(link);
            }
            let end = End { link, side: Side::Client };
            self.sockets.insert(link, Socket { end, is_connected: false, is_blocked: false });
        }
    }

    fn poll_close(&mut self) -> Option<LinkId> {
        match &mut self.node {
            Some(Node::Broker(broker)) => broker.poll_close(),
            Some(Node::Responder(responder)) => responder.poll_close(),
            Some(Node::Asker(asker)) => asker.poll_close(),
            _ => None,
        }
    }

    pub(super) fn poll_datagram(&mut self) -> Option<Vec<u8>> {
        match &mut self.node {
            Some(Node::Publisher(publisher)) => publisher.poll_datagram(),
            _ => None,
        }
    }

    pub(super) fn deliver(&mut self, fabric: &Fabric) {
        if let Some(Node::Subscriber(subscriber)) = &mut self.node {
            subscriber.deliver(fabric.queue.now());
        }
    }

    pub(super) fn is_delivering(&self) -> bool {
        matches!(&self.node, Some(Node::Subscriber(subscriber)) if subscriber.is_delivering())
    }

    /// The cost in nanoseconds of what was done since the last call.
    pub(super) fn take_cost(&mut self, costs: &Costs) -> f64 {
        match &mut self.node {
            Some(Node::Publisher(publisher)) => publisher.take_effort().cost(costs),
            Some(Node::Subscriber(subscriber)) => subscriber.take_effort().cost(costs),
            Some(Node::Broker(broker)) => broker.take_effort().cost(costs),
            Some(Node::Responder(responder)) => responder.take_work().cost(costs),
            Some(Node::Asker(asker)) => asker.take_work().cost(costs),
            None => 0.0,
        }
    }

    pub(super) fn arm(&mut self, fabric: &mut Fabric) {
        if let Some(at) = self.poll_timeout() {
            self.alarm.arm(HostId::Node(self.id), 0, at, &mut fabric.queue);
        }
    }
}

/// The MQTT client of a process that has one.
fn session(node: &mut Node) -> Option<&mut Session> {
    match node {
        Node::Publisher(publisher) => publisher.session(),
        Node::Subscriber(subscriber) => subscriber.session(),
        Node::Broker(_) | Node::Responder(_) | Node::Asker(_) => None,
    }
}

/// Unsent bytes of a connection.
fn transmit(node: &mut Node, link: LinkId) -> Option<&mut Vec<u8>> {
    match node {
        Node::Broker(broker) => broker.transmit(link),
        Node::Responder(responder) => responder.transmit(link),
        Node::Asker(asker) => asker.transmit(link),
        node => session(node).map(Session::transmit),
    }
}
