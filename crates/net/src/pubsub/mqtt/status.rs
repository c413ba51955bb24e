//! Status messages of a publisher, retained (Part 14 §7.3.4.7.7).
//!
//! If only one connection uses a PublisherId, the broker publishes the last will when the publisher is lost, and
//! nothing is repeated. If several connections share it, the publisher repeats its status in cycles, with the time of
//! the next message.

use super::options::StatusMessages;
use super::topics;
use core::time::Duration;
use std::time::Instant;
use taktwerk_pubsub::config::Connection;
use taktwerk_pubsub::uadp::announcement::{Announcement, NumberedAnnouncement};
use taktwerk_pubsub::uadp::{NetworkMessageHeader, NetworkMessageType};
use taktwerk_schema::PubSubState;
use taktwerk_types::{Encode, UtcTime};

/// Creates the Status messages of a connection when they are due.
#[derive(Debug)]
pub struct Status {
    /// Their topic.
    topic: String,
    connection: Connection,
    unique: String,
    /// Interval of cyclic messages.
    interval: Option<Duration>,
    /// Number of messages made so far.
    count: u64,
    /// When the next message is due.
    due: Option<Instant>,
}

impl Status {
    /// For a publisher's connection. `None` if it publishes nothing, has no PublisherId, or Status messages are
    /// disabled. `unique` is part of the MessageIds.
    #[must_use]
    pub fn of(how: StatusMessages, prefix: &str, connection: &Connection, unique: &str) -> Option<Self> {
        connection.publisher_id.as_ref()?;
        let interval = match how {
            StatusMessages::None => return None,
            StatusMessages::LastWill => None,
            StatusMessages::Cyclic(interval) => Some(interval.max(Duration::from_millis(1))),
        };
        if connection.writer_groups.is_empty() {
            return None;
        }
        let topic = topics::status(prefix, connection);
        // Groups and writers do not matter here.
        let connection =
            Connection { writer_groups: Vec::new(), reader_groups: Vec::new(), ..connection.clone() };
        let unique = unique.to_owned();
        Some(Self { topic, connection, unique, interval, count: 0, due: None })
    }

    /// Topic of the messages.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Payload of the last will. `None` for cyclic messages: their absence reports the loss.
    pub fn last_will(&mut self) -> Option<Vec<u8>> {
        if self.interval.is_some() {
            return None;
        }
        Some(self.message(PubSubState::ERROR, None))
    }

    /// The connection is up: the status has to be published at once.
    pub fn connected(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// The connection is down: nothing is due.
    pub fn disconnected(&mut self) {
        self.due = None;
    }

    /// The message that is due now, if any. Call [`told`](Self::told) after it was sent.
    pub fn due(&mut self, now: Instant, utc: UtcTime) -> Option<Vec<u8>> {
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        let next = self.interval.map(|interval| (utc.plus(interval), utc));
        Some(self.message(PubSubState::OPERATIONAL, next))
    }

    /// The message that was due has been sent.
    pub fn told(&mut self, now: Instant) {
        self.due = self.interval.map(|interval| now + interval);
    }

    /// The message for an orderly end. `None` for cyclic messages, which are only for present publishers (Part 14
    /// §7.2.4.6.7).
    pub fn end(&mut self) -> Option<Vec<u8>> {
        if self.interval.is_some() {
            return None;
        }
        Some(self.message(PubSubState::DISABLED, None))
    }

    fn message(&mut self, state: PubSubState, cyclic: Option<(UtcTime, UtcTime)>) -> Vec<u8> {
        self.count += 1;
        let mut out = Vec::new();
        if topics::is_json(&self.connection) {
            let message_id = format!("{}-status-{}", self.unique, self.count);
            let publisher =
                self.connection.publisher_id.as_ref().map(ToString::to_string).unwrap_or_default();
            taktwerk_pubsub::json::status::encode(&message_id, &publisher, state, cyclic, &mut out);
        } else {
            uadp(&self.connection, state, cyclic, (self.count & 0xffff) as u16, &mut out);
        }
        out
    }
}

fn uadp(
    connection: &Connection,
    state: PubSubState,
    cyclic: Option<(UtcTime, UtcTime)>,
    sequence_number: u16,
    out: &mut Vec<u8>,
) {
    let header = NetworkMessageHeader {
        publisher_id: connection.publisher_id.as_ref().map(|id| id.as_ref()),
        message_type: NetworkMessageType::DiscoveryAnnouncement,
        ..NetworkMessageHeader::default()
    };
    header.encode(out);
    let announcement = Announcement::Status { state, cyclic };
    NumberedAnnouncement { sequence_number, announcement }.encode(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_pubsub::PublisherId;
    use taktwerk_pubsub::config::WriterGroup;

    fn publishing(id: PublisherId, url: &str, group: WriterGroup) -> Connection {
        Connection { writer_groups: vec![group], ..Connection::new("c", Some(id), url) }
    }

    #[test]
    fn with_a_last_will_in_both_encodings() {
        let id = PublisherId::String("line \"1\"/a".into());
        let silent = Connection::new("c", Some(id.clone()), "mqtt+json://host");
        let of = |connection: &Connection| Status::of(StatusMessages::LastWill, "opcua", connection, "x");
        assert!(of(&silent).is_none(), "it publishes nothing");
        let connection = publishing(id, "mqtt+json://host", WriterGroup::json("g", 1, 10.0));
        assert!(Status::of(StatusMessages::None, "opcua", &connection, "x").is_none());
        let mut status = of(&connection).unwrap();
        assert_eq!(status.topic(), "opcua/json/status/line \"1\"_a");
        let will: serde_json::Value = serde_json::from_slice(&status.last_will().unwrap()).unwrap();
        assert_eq!(
            will,
            serde_json::json!({"MessageId": "x-status-1", "MessageType": "ua-status", "PublisherId": "line \"1\"/a",
                "IsCyclic": false, "Status": 3})
        );
        let connection =
            publishing(PublisherId::UInt16(7), "mqtt://host", WriterGroup::dynamic("g", 1, 10.0));
        let mut status = of(&connection).unwrap();
        assert_eq!(status.topic(), "opcua/uadp/status/7");
        let (now, utc) = (Instant::now(), UtcTime::NULL);
        assert_eq!(status.due(now, utc), None, "there is no connection");
        status.connected(now);
        let operational = status.due(now, utc).unwrap();
        // Type 5, number 1, status (2), not cyclic, Operational (2).
        assert_eq!(operational.get(operational.len() - 10..).unwrap(), [5, 1, 0, 2, 0, 0, 2, 0, 0, 0]);
        assert!(status.due(now, utc).is_some(), "the message was not sent yet");
        status.told(now);
        assert_eq!(status.due(now + Duration::from_secs(3_600), utc), None, "the broker has the status");
        status.disconnected();
        status.connected(now);
        assert!(status.due(now, utc).is_some(), "a broker may have lost the status");
        assert!(status.end().is_some());
    }

    #[test]
    fn in_cycles_where_the_id_is_shared() {
        let connection =
            publishing(PublisherId::UInt16(7), "mqtt+json://host", WriterGroup::json("g", 1, 10.0));
        let how = StatusMessages::Cyclic(Duration::from_secs(2));
        let mut status = Status::of(how, "opcua", &connection, "x").unwrap();
        assert_eq!(status.last_will(), None, "others may still be there");
        let (now, utc) = (Instant::now(), UtcTime::from_unix(Duration::from_secs(1_000)));
        status.connected(now);
        let first: serde_json::Value = serde_json::from_slice(&status.due(now, utc).unwrap()).unwrap();
        assert_eq!(
            first,
            serde_json::json!({"MessageId": "x-status-1", "MessageType": "ua-status", "PublisherId": "7",
                "Timestamp": "1970-01-01T00:16:40Z", "IsCyclic": true, "Status": 2,
                "NextReportTime": "1970-01-01T00:16:42Z"})
        );
        status.told(now);
        assert_eq!(status.due(now + Duration::from_millis(1_999), utc), None);
        assert!(status.due(now + Duration::from_secs(2), utc).is_some());
        assert_eq!(status.end(), None);
    }
}
