//! One MQTT client without a socket: bytes in, bytes and events out.

use super::packet::{self, MqttError, Packet, Qos, Version, parse};
use std::collections::BTreeSet;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The broker accepted the connection.
    Connected,
    /// The broker accepted a subscription.
    Subscribed,
    /// A message arrived. With [`Qos::ExactlyOnce`], it is reported once, when it first arrives.
    Message {
        /// The topic.
        topic: &'a str,
        /// The payload.
        payload: &'a [u8],
    },
    /// The broker acknowledged a message: PUBACK or PUBCOMP.
    Taken {
        /// Packet identifier returned by [`Session::publish`].
        id: u16,
    },
}

/// A client.
#[derive(Debug)]
pub struct Session {
    version: Version,
    input: Vec<u8>,
    output: Vec<u8>,
    last_id: u16,
    /// Our messages that the broker has not acknowledged yet.
    open: BTreeSet<u16>,
    /// Received exactly-once messages that are not released yet.
    held: BTreeSet<u16>,
    received: u64,
    sent: u64,
}

/// Maximum number of messages in flight per client: the default Receive Maximum of MQTT 5 (§3.1.2.11.3).
pub const IN_FLIGHT_MAX: usize = 65_534;

impl Session {
    /// A client that will connect under this name.
    #[must_use]
    pub fn new(version: Version, name: &str) -> Self {
        let mut session = Self {
            version,
            input: Vec::new(),
            output: Vec::new(),
            last_id: 0,
            open: BTreeSet::new(),
            held: BTreeSet::new(),
            received: 0,
            sent: 0,
        };
        packet::connect(&mut session.output, version, name);
        session
    }

    fn identifier(&mut self) -> Option<u16> {
        if self.open.len() >= IN_FLIGHT_MAX {
            return None;
        }
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.open.contains(&self.last_id) {
                return Some(self.last_id);
            }
        }
    }

    /// Subscribes to a filter.
    pub fn subscribe(&mut self, filter: &str, qos: Qos) {
        // A subscription is the first action of a client, so an identifier is always free.
        let id = self.identifier().unwrap_or(1);
        packet::subscribe(&mut self.output, self.version, id, filter, qos);
    }

    /// Publishes a message. Returns its packet identifier, 0 for messages without acknowledgement, or `None` if the
    /// maximum number of messages is in flight.
    pub fn publish(&mut self, topic: &str, payload: &[u8], qos: Qos) -> Option<u16> {
        let id = if qos == Qos::AtMostOnce { 0 } else { self.identifier()? };
        if id != 0 {
            self.open.insert(id);
        }
        packet::publish(&mut self.output, self.version, topic, payload, qos, id);
        Some(id)
    }

    /// Sends DISCONNECT.
    pub fn disconnect(&mut self) {
        packet::disconnect(&mut self.output);
    }

    /// Bytes to send. Report the number of bytes sent with [`Session::sent`].
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Records that bytes were sent.
    pub fn sent(&mut self, count: usize) {
        self.sent += count as u64;
        self.output.drain(..count.min(self.output.len()));
    }

    /// MQTT bytes received and sent so far.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.received, self.sent)
    }

    /// Number of our messages that the broker has not acknowledged yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.open.len()
    }

    /// Processes bytes from the broker.
    ///
    /// # Errors
    /// If they are not MQTT, or the broker refused something. The connection is unusable afterwards.
    pub fn receive(&mut self, bytes: &[u8], mut tell: impl FnMut(Event<'_>)) -> Result<(), MqttError> {
        self.received += bytes.len() as u64;
        // Most reads contain whole packets, so usually nothing is copied.
        let mut kept = std::mem::take(&mut self.input);
        let input: &[u8] = if kept.is_empty() {
            bytes
        } else {
            kept.extend_from_slice(bytes);
            &kept
        };
        let mut at = 0;
        while let Some((packet, length)) = parse(input.get(at..).unwrap_or_default(), self.version)? {
            at += length;
            self.take(packet, &mut tell)?;
        }
        self.input = input.get(at..).unwrap_or_default().to_vec();
        Ok(())
    }

    fn take(&mut self, packet: Packet<'_>, tell: &mut impl FnMut(Event<'_>)) -> Result<(), MqttError> {
        match packet {
            Packet::ConnAck { code: 0 } => tell(Event::Connected),
            Packet::ConnAck { code } => return Err(MqttError::Refused { what: "connection", code }),
            Packet::SubAck { code: 0..=2, .. } => tell(Event::Subscribed),
            Packet::SubAck { code, .. } => return Err(MqttError::Refused { what: "subscription", code }),
            Packet::Publish { topic, payload, qos, id } => {
                let is_new = match qos {
                    Qos::AtMostOnce => true,
                    Qos::AtLeastOnce => {
                        packet::puback(&mut self.output, id);
                        true
                    }
                    Qos::ExactlyOnce => {
                        packet::pubrec(&mut self.output, id);
                        self.held.insert(id)
                    }
                };
                if is_new {
                    tell(Event::Message { topic, payload });
                }
            }
            Packet::PubAck(id) | Packet::PubComp(id) => {
                if self.open.remove(&id) {
                    tell(Event::Taken { id });
                }
            }
            Packet::PubRec(id) => packet::pubrel(&mut self.output, id),
            Packet::PubRel(id) => {
                self.held.remove(&id);
                packet::pubcomp(&mut self.output, id);
            }
            Packet::PingResp => {}
            Packet::Disconnect { code } => return Err(MqttError::Disconnected(code)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(session: &mut Session, bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        session.receive(bytes, |event| events.push(format!("{event:?}"))).unwrap();
        events
    }

    fn drained(session: &mut Session) -> Vec<u8> {
        let bytes = session.output().to_vec();
        session.sent(bytes.len());
        bytes
    }

    #[test]
    fn exactly_once_in_both_directions() {
        let mut session = Session::new(Version::V311, "x");
        drained(&mut session);
        assert_eq!(told(&mut session, &[0x20, 2, 0, 0]), ["Connected"]);
        let id = session.publish("t", b"m", Qos::ExactlyOnce).unwrap();
        assert_eq!((id, session.in_flight()), (1, 1));
        assert_eq!(drained(&mut session)[0], 0x34);
        assert!(told(&mut session, &[0x50, 2, 0, 1]).is_empty());
        assert_eq!(drained(&mut session), [0x62, 2, 0, 1]);
        assert_eq!(told(&mut session, &[0x70, 2, 0, 1]), ["Taken { id: 1 }"]);
        assert_eq!(session.in_flight(), 0);
        // A repeated message is reported once until it is released.
        let message = [0x34, 6, 0, 1, b't', 0, 9, b'm'];
        assert_eq!(told(&mut session, &message).len(), 1);
        assert_eq!(told(&mut session, &message).len(), 0);
        drained(&mut session);
        assert!(told(&mut session, &[0x62, 2, 0, 9]).is_empty());
        assert_eq!(drained(&mut session), [0x70, 2, 0, 9]);
        assert_eq!(told(&mut session, &message).len(), 1);
    }

    #[test]
    fn packets_may_arrive_byte_by_byte() {
        let mut session = Session::new(Version::V5, "x");
        let mut stream = vec![0x20, 3, 0, 0, 0];
        packet::publish(&mut stream, Version::V5, "a", b"hello", Qos::AtLeastOnce, 3);
        let mut events = Vec::new();
        for byte in &stream {
            events.extend(told(&mut session, &[*byte]));
        }
        assert_eq!(events.len(), 2);
        assert_eq!(session.bytes().0, stream.len() as u64);
        assert!(session.output().ends_with(&[0x40, 2, 0, 3]));
    }

    #[test]
    fn refusals_are_errors() {
        let mut session = Session::new(Version::V311, "x");
        let refused = |what, code| Err(MqttError::Refused { what, code });
        assert_eq!(session.receive(&[0x20, 2, 0, 5], |_| {}), refused("connection", 5));
        assert_eq!(session.receive(&[0x90, 3, 0, 1, 0x80], |_| {}), refused("subscription", 0x80));
        assert_eq!(session.receive(&[0xe0, 1, 0x8e], |_| {}), Err(MqttError::Disconnected(0x8e)));
    }

    #[test]
    fn identifiers_are_not_used_twice() {
        let mut session = Session::new(Version::V311, "x");
        for _ in 0..IN_FLIGHT_MAX {
            assert!(session.publish("t", b"", Qos::AtLeastOnce).is_some_and(|id| id != 0));
        }
        assert_eq!(session.publish("t", b"", Qos::AtLeastOnce), None);
        assert_eq!(session.publish("t", b"", Qos::AtMostOnce), Some(0));
        assert_eq!(told(&mut session, &[0x40, 2, 0x10, 0]), ["Taken { id: 4096 }"]);
        // 65535 was never used; the identifier that was freed comes after it.
        assert_eq!(session.publish("t", b"", Qos::AtLeastOnce), Some(65_535));
        assert_eq!(session.publish("t", b"", Qos::AtLeastOnce), None);
        told(&mut session, &[0x40, 2, 0x20, 0]);
        assert_eq!(session.publish("t", b"", Qos::AtLeastOnce), Some(4_096));
    }
}
