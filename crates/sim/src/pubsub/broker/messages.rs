//! The path of messages through a broker: who receives them, what waits, and what is sent.

use super::client::Client;
use super::{Broker, Message};
use crate::network::LinkId;
use crate::pubsub::session::PACKET_MAX;
use rumqttc::{Packet, PubAck, Publish, QoS, matches, valid_topic};
use std::rc::Rc;

impl Broker {
    pub(super) fn publish(&mut self, link: LinkId, publish: Publish) {
        if publish.qos == QoS::ExactlyOnce || !valid_topic(&publish.topic) {
            return self.close(link);
        }
        self.figures.borrow_mut().received += 1;
        let topic: Rc<str> = publish.topic.as_str().into();
        let message =
            Message { topic: Rc::clone(&topic), payload: publish.payload, qos: publish.qos, retain: false };
        if publish.retain {
            // An empty message deletes the retained one (§3.3.1.3).
            if message.payload.is_empty() {
                self.retained.remove(&topic);
            } else {
                self.retained.insert(Rc::clone(&topic), Message { retain: true, ..message.clone() });
            }
        }
        let route = self.route(&topic);
        for (name, qos) in route.iter() {
            self.enqueue(name, Message { qos: least(message.qos, *qos), ..message.clone() });
        }
        // The broker has accepted the message and is responsible for it from now on.
        if publish.qos == QoS::AtLeastOnce {
            self.write(link, &Packet::PubAck(PubAck::new(publish.pkid)));
        }
        for (name, _) in route.iter() {
            self.pump(name);
        }
    }

    /// Who receives it and how: each client once, with the highest quality of its matching filters (§3.3.5).
    pub(super) fn route(&mut self, topic: &Rc<str>) -> Rc<[(String, QoS)]> {
        if let Some(known) = self.routes.get(topic) {
            return Rc::clone(known);
        }
        let wanted = |client: &Client| {
            let filters = client.filters.iter().filter(|(filter, _)| matches(topic, filter));
            filters.map(|(_, qos)| *qos).max_by_key(|qos| *qos as u8)
        };
        let route: Rc<[(String, QoS)]> =
            self.clients.iter().filter_map(|(name, client)| Some((name.clone(), wanted(client)?))).collect();
        self.routes.insert(Rc::clone(topic), Rc::clone(&route));
        route
    }

    pub(super) fn enqueue(&mut self, name: &str, message: Message) {
        let Some(client) = self.clients.get_mut(name) else { return };
        // Messages without acknowledgement are not kept for disconnected clients.
        if client.link.is_none() && message.qos == QoS::AtMostOnce {
            return;
        }
        let mut figures = self.figures.borrow_mut();
        if client.queue.len() >= self.limits.queue {
            figures.dropped += 1;
            *figures.dropped_of.entry(name.to_owned()).or_default() += 1;
            return;
        }
        client.queue.push_back(message);
        figures.queue_max = figures.queue_max.max(client.held() as u64);
    }

    /// Sends a client its waiting messages, as far as its socket and the acknowledgements allow.
    pub(super) fn pump(&mut self, name: &str) {
        let Some(client) = self.clients.get_mut(name) else { return };
        let Some(link) = client.link else { return };
        let Some(connection) = self.connections.get_mut(&link) else { return };
        let mut figures = self.figures.borrow_mut();
        while let Some((publish, is_repeated)) = client.next(connection.output.len(), self.limits.in_flight) {
            self.packets.clear();
            if publish.write(&mut self.packets).is_ok() {
                connection.output.extend_from_slice(&self.packets);
                figures.sent += 1;
                figures.repeated += u64::from(is_repeated);
                self.effort.server.chunks_sent += 1;
                self.effort.server.bytes_sent += self.packets.len() as u64;
            }
        }
        if !connection.is_blocked {
            self.ready.insert(link);
        }
    }

    pub(super) fn write(&mut self, link: LinkId, packet: &Packet) {
        let Some(connection) = self.connections.get_mut(&link) else { return };
        self.packets.clear();
        if packet.write(&mut self.packets, PACKET_MAX).is_ok() {
            connection.output.extend_from_slice(&self.packets);
            self.effort.server.chunks_sent += 1;
            self.effort.server.bytes_sent += self.packets.len() as u64;
            if !connection.is_blocked {
                self.ready.insert(link);
            }
        }
    }
}

/// The lower of two qualities of service.
pub(super) fn least(one: QoS, two: QoS) -> QoS {
    if (one as u8) < two as u8 { one } else { two }
}
