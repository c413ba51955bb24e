//! State that a broker keeps per client: subscriptions, waiting messages, and messages sent but not acknowledged.

use super::Message;
use crate::network::LinkId;
use rumqttc::{Publish, QoS};
use std::collections::VecDeque;

/// If a connection has more unsent bytes than this, messages wait in the queue, where they are counted.
const OUTPUT_MAX: usize = 64 << 10;

/// State of one client.
#[derive(Debug, Default)]
pub(super) struct Client {
    /// Its connection.
    pub(super) link: Option<LinkId>,
    /// The client's state is deleted when the connection ends.
    pub(super) is_clean: bool,
    pub(super) filters: Vec<(String, QoS)>,
    pub(super) queue: VecDeque<Message>,
    /// Sent with a packet identifier and not yet acknowledged, in order.
    in_flight: VecDeque<(u16, Message)>,
    /// This many messages at the end of `in_flight` were sent on an earlier connection and not yet repeated.
    to_repeat: usize,
    last_id: u16,
}

impl Client {
    /// Number of messages kept.
    pub(super) fn held(&self) -> usize {
        self.queue.len() + self.in_flight.len()
    }

    /// The connection is gone.
    pub(super) fn disconnect(&mut self) {
        self.link = None;
        self.to_repeat = self.in_flight.len();
        self.queue.retain(|message| message.qos != QoS::AtMostOnce);
    }

    pub(super) fn acknowledged(&mut self, id: u16) {
        if let Some(at) = self.in_flight.iter().position(|(known, _)| *known == id) {
            self.in_flight.remove(at);
            // The messages still to be repeated are the last ones of the former `in_flight`.
            let first = self.in_flight.len() + 1 - self.to_repeat.min(self.in_flight.len() + 1);
            if at >= first {
                self.to_repeat = self.to_repeat.saturating_sub(1);
            }
        }
    }

    /// The next message to send, given this many unsent bytes, and whether it is a repetition.
    pub(super) fn next(&mut self, unsent: usize, in_flight_max: u16) -> Option<(Publish, bool)> {
        if unsent >= OUTPUT_MAX {
            return None;
        }
        if self.to_repeat > 0 {
            let at = self.in_flight.len().checked_sub(self.to_repeat)?;
            self.to_repeat -= 1;
            let (id, message) = self.in_flight.get(at)?;
            return Some((packet(message, *id, true), true));
        }
        let needs_id = self.queue.front()?.qos != QoS::AtMostOnce;
        if !needs_id {
            let message = self.queue.pop_front()?;
            return Some((packet(&message, 0, false), false));
        }
        if self.in_flight.len() >= usize::from(in_flight_max.max(1)) {
            return None;
        }
        let id = self.identifier()?;
        let message = self.queue.pop_front()?;
        let publish = packet(&message, id, false);
        self.in_flight.push_back((id, message));
        Some((publish, false))
    }

    fn identifier(&mut self) -> Option<u16> {
        // There are more packet identifiers than messages in flight.
        for _ in 0..=u16::MAX {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if self.in_flight.iter().all(|(known, _)| *known != self.last_id) {
                return Some(self.last_id);
            }
        }
        None
    }
}

fn packet(message: &Message, id: u16, is_repeated: bool) -> Publish {
    let mut publish = Publish::from_bytes(&*message.topic, message.qos, message.payload.clone());
    (publish.pkid, publish.dup, publish.retain) = (id, is_repeated, message.retain);
    publish
}
