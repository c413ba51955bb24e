//! An MQTT 3.1.1 broker without sockets: connections, sessions, retained messages, fan-out by topic filters.
//!
//! Quality of service 0 and 1 (§4.3): messages with 1 are kept for disconnected clients that have a session, up to the
//! limit of their queue; beyond it, new messages are dropped and counted. When the client reconnects, everything that
//! was sent but not acknowledged is repeated with DUP before anything else is sent. The messages of a client keep their
//! order.
//!
//! This module handles connections and sessions; `client` is the state of a client; `messages` is the path of messages
//! through the broker.
//!
//! Not supported: users, wills, shared subscriptions, and quality of service 2, which is granted as 1.

mod client;
mod messages;

use self::client::Client;
use self::messages::least;
use super::figures::BrokerFigures;
use super::output::Effort;
use super::session::PACKET_MAX;
use bytes::{Bytes, BytesMut};
use core::cell::RefCell;
use core::time::Duration;
use rumqttc::{
    ConnAck, Connect, ConnectReturnCode, Packet, QoS, SubAck, Subscribe, SubscribeReasonCode, UnsubAck,
    matches, valid_filter,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use taktwerk_types::Instant;

use crate::network::LinkId;

/// Maximum time that a connection may stay open without CONNECT (§3.1).
const GREETING: Duration = Duration::from_secs(10);

/// Limits of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerLimits {
    /// Maximum number of messages that wait for one client.
    pub queue: usize,
    /// Maximum number of messages with quality of service 1 that were sent to one client and not acknowledged.
    pub in_flight: u16,
}

impl Default for BrokerLimits {
    /// Typical defaults of common brokers.
    fn default() -> Self {
        Self { queue: 1_000, in_flight: 20 }
    }
}

/// A message as kept by the broker.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) topic: Rc<str>,
    pub(super) payload: Bytes,
    pub(super) qos: QoS,
    pub(super) retain: bool,
}

#[derive(Debug)]
struct Connection {
    input: BytesMut,
    output: Vec<u8>,
    /// The client's name, after CONNECT.
    name: Option<String>,
    /// One and a half times the keep-alive interval that the client announced (§3.1.2.10).
    patience: Option<Duration>,
    deadline: Option<Instant>,
    is_blocked: bool,
}

/// A broker.
#[derive(Debug)]
pub(crate) struct Broker {
    limits: BrokerLimits,
    connections: BTreeMap<LinkId, Connection>,
    deadlines: BTreeSet<(Instant, LinkId)>,
    clients: BTreeMap<String, Client>,
    retained: BTreeMap<Rc<str>, Message>,
    /// The receivers of each topic; cleared when subscriptions change.
    routes: BTreeMap<Rc<str>, Rc<[(String, QoS)]>>,
    closing: VecDeque<LinkId>,
    /// Connections that have bytes to send and whose sockets accept them.
    ready: BTreeSet<LinkId>,
    packets: BytesMut,
    figures: Rc<RefCell<BrokerFigures>>,
    effort: Effort,
}

impl Broker {
    pub(crate) fn new(limits: BrokerLimits, figures: Rc<RefCell<BrokerFigures>>) -> Self {
        figures.borrow_mut().lives += 1;
        Self {
            limits,
            connections: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            clients: BTreeMap::new(),
            retained: BTreeMap::new(),
            routes: BTreeMap::new(),
            closing: VecDeque::new(),
            ready: BTreeSet::new(),
            packets: BytesMut::new(),
            figures,
            effort: Effort::default(),
        }
    }

    pub(crate) fn take_effort(&mut self) -> Effort {
        core::mem::take(&mut self.effort)
    }

    // ---- connections

    pub(crate) fn accepted(&mut self, link: LinkId, now: Instant) {
        let deadline = Some(now + GREETING);
        self.connections.insert(
            link,
            Connection {
                input: BytesMut::new(),
                output: Vec::new(),
                name: None,
                patience: None,
                deadline,
                is_blocked: false,
            },
        );
        self.deadlines.insert((now + GREETING, link));
    }

    pub(crate) fn closed(&mut self, link: LinkId) {
        self.ready.remove(&link);
        let Some(connection) = self.connections.remove(&link) else { return };
        if let Some(at) = connection.deadline {
            self.deadlines.remove(&(at, link));
        }
        let Some(name) = connection.name else { return };
        let Some(client) = self.clients.get_mut(&name).filter(|client| client.link == Some(link)) else {
            return;
        };
        client.disconnect();
        if client.is_clean {
            self.clients.remove(&name);
            self.routes.clear();
        }
    }

    /// The next connection that the driver has to close.
    pub(crate) fn poll_close(&mut self) -> Option<LinkId> {
        let link = self.closing.pop_front()?;
        self.closed(link);
        Some(link)
    }

    fn close(&mut self, link: LinkId) {
        if !self.closing.contains(&link) {
            self.closing.push_back(link);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Disconnects clients that have been silent for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, link)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.pop_first();
            if let Some(connection) = self.connections.get_mut(&link) {
                connection.deadline = None;
                self.figures.borrow_mut().silent += 1;
                self.close(link);
            }
        }
    }

    /// Bytes for a connection. Call [`Self::transmitted`] after taking some.
    pub(crate) fn transmit(&mut self, link: LinkId) -> Option<&mut Vec<u8>> {
        self.connections.get_mut(&link).map(|connection| &mut connection.output)
    }

    /// The next connection that has bytes to send and can send them.
    pub(crate) fn next_ready(&mut self) -> Option<LinkId> {
        while let Some(link) = self.ready.first().copied() {
            if self.connections.get(&link).is_some_and(|connection| !connection.output.is_empty()) {
                return Some(link);
            }
            self.ready.remove(&link);
        }
        None
    }

    /// A socket has stopped accepting bytes, or accepts them again.
    pub(crate) fn set_blocked(&mut self, link: LinkId, is_blocked: bool) {
        if let Some(connection) = self.connections.get_mut(&link) {
            connection.is_blocked = is_blocked;
            if is_blocked {
                self.ready.remove(&link);
            } else {
                self.ready.insert(link);
            }
        }
    }

    /// A socket has accepted bytes, so waiting messages of this client can be sent.
    pub(crate) fn transmitted(&mut self, link: LinkId) {
        if let Some(name) = self.connections.get(&link).and_then(|connection| connection.name.clone()) {
            self.pump(&name);
        }
    }

    /// Number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Handles bytes received on a connection.
    pub(crate) fn receive(&mut self, link: LinkId, bytes: &[u8], now: Instant) {
        self.effort.took(bytes.len());
        let Some(connection) = self.connections.get_mut(&link) else { return };
        connection.input.extend_from_slice(bytes);
        loop {
            let Some(connection) = self.connections.get_mut(&link).filter(|_| !self.closing.contains(&link))
            else {
                return;
            };
            match Packet::read(&mut connection.input, PACKET_MAX) {
                Ok(packet) => {
                    self.effort.server.chunks_received += 1;
                    self.take(link, packet, now);
                }
                Err(rumqttc::Error::InsufficientBytes(_)) => break,
                Err(_) => return self.close(link),
            }
        }
        self.heard(link, now);
    }

    fn heard(&mut self, link: LinkId, now: Instant) {
        let Some(connection) = self.connections.get_mut(&link) else { return };
        let Some(patience) = connection.patience else { return };
        if let Some(at) = connection.deadline.replace(now + patience) {
            self.deadlines.remove(&(at, link));
        }
        self.deadlines.insert((now + patience, link));
    }

    fn take(&mut self, link: LinkId, packet: Packet, now: Instant) {
        let name = self.connections.get(&link).and_then(|connection| connection.name.clone());
        match (packet, name) {
            (Packet::Connect(connect), None) => self.connect(link, &connect, now),
            (Packet::Publish(publish), Some(_)) => self.publish(link, publish),
            (Packet::PubAck(answer), Some(name)) => {
                if let Some(client) = self.clients.get_mut(&name) {
                    client.acknowledged(answer.pkid);
                }
                self.pump(&name);
            }
            (Packet::Subscribe(subscribe), Some(name)) => self.subscribe(link, &name, subscribe),
            (Packet::Unsubscribe(unsubscribe), Some(name)) => {
                if let Some(client) = self.clients.get_mut(&name) {
                    client.filters.retain(|(filter, _)| !unsubscribe.topics.contains(filter));
                    self.routes.clear();
                }
                self.write(link, &Packet::UnsubAck(UnsubAck::new(unsubscribe.pkid)));
            }
            (Packet::PingReq, Some(_)) => self.write(link, &Packet::PingResp),
            // A second CONNECT, a packet before CONNECT, or a packet that only brokers send (§3.1).
            _ => self.close(link),
        }
    }

    fn connect(&mut self, link: LinkId, connect: &Connect, now: Instant) {
        let name = connect.client_id.clone();
        if let Some(known) = self.clients.get_mut(&name)
            && let Some(old) = known.link.take()
        {
            // A new connection of the same client replaces the old one (§3.1.4).
            known.disconnect();
            self.close(old);
        }
        if connect.clean_session {
            self.clients.remove(&name);
            self.routes.clear();
        }
        let session_present = self.clients.contains_key(&name);
        let client = self.clients.entry(name.clone()).or_default();
        client.is_clean = connect.clean_session;
        client.link = Some(link);
        if let Some(connection) = self.connections.get_mut(&link) {
            connection.name = Some(name.clone());
            let keep_alive = Duration::from_secs(connect.keep_alive.into());
            connection.patience = Some(keep_alive * 3 / 2).filter(|patience| !patience.is_zero());
            if let Some(at) = connection.deadline.take() {
                self.deadlines.remove(&(at, link));
            }
        }
        self.heard(link, now);
        let answer = ConnAck { session_present, code: ConnectReturnCode::Success };
        self.write(link, &Packet::ConnAck(answer));
        self.pump(&name);
    }

    fn subscribe(&mut self, link: LinkId, name: &str, subscribe: Subscribe) {
        let mut codes = Vec::new();
        let mut granted = Vec::new();
        for filter in subscribe.filters {
            if !valid_filter(&filter.path) {
                codes.push(SubscribeReasonCode::Failure);
                continue;
            }
            let qos = least(filter.qos, QoS::AtLeastOnce);
            codes.push(SubscribeReasonCode::Success(qos));
            granted.push((filter.path, qos));
        }
        self.write(link, &Packet::SubAck(SubAck::new(subscribe.pkid, codes)));
        self.routes.clear();
        for (filter, qos) in granted {
            let found = self.retained.values().filter(|message| matches(&message.topic, &filter));
            let found: Vec<Message> =
                found.map(|message| Message { qos: least(message.qos, qos), ..message.clone() }).collect();
            if let Some(client) = self.clients.get_mut(name) {
                client.filters.retain(|(known, _)| *known != filter);
                client.filters.push((filter, qos));
            }
            found.into_iter().for_each(|message| self.enqueue(name, message));
        }
        self.pump(name);
    }

    /// The first client that has more messages stored than the limits allow.
    pub(crate) fn over_budget(&self) -> Option<String> {
        let most = self.limits.queue + usize::from(self.limits.in_flight);
        let (name, client) = self.clients.iter().find(|(_, client)| client.held() > most)?;
        Some(format!("a broker keeps {} messages for {name}, more than its limit of {most}", client.held()))
    }
}

#[cfg(test)]
mod tests;
