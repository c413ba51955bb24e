//! What a broker tells others about a publisher: Status messages, retained, and the last will (Part 14 §7.3.4.7.7).
//!
//! The broker notices when a publisher is gone, so nothing is repeated: IsCyclic is false.

use super::topics;
use taktwerk_pubsub::config::Connection;
use taktwerk_pubsub::uadp::announcement::{Announcement, NumberedAnnouncement};
use taktwerk_pubsub::uadp::{NetworkMessageHeader, NetworkMessageType};
use taktwerk_schema::PubSubState;
use taktwerk_types::Encode;
use taktwerk_types::json::write::{Members, plain, string};

/// The Status messages of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Where they go.
    pub topic: String,
    /// While there is a connection to the broker.
    pub operational: Vec<u8>,
    /// When the publisher ends in an orderly way.
    pub disabled: Vec<u8>,
    /// The last will: what the broker says when it has lost the publisher.
    pub error: Vec<u8>,
}

impl Status {
    /// The messages of a publisher's connection; `None` if it publishes nothing or has no PublisherId to speak for.
    /// `unique` is part of their MessageIds.
    #[must_use]
    pub fn of(prefix: &str, connection: &Connection, unique: &str) -> Option<Self> {
        connection.publisher_id.as_ref()?;
        if connection.writer_groups.is_empty() {
            return None;
        }
        let message = |state: PubSubState, number: u16| {
            let mut out = Vec::new();
            if topics::is_json(connection) {
                json(connection, state, &format!("{unique}-status-{number}"), &mut out);
            } else {
                uadp(connection, state, number, &mut out);
            }
            out
        };
        Some(Self {
            topic: topics::status(prefix, connection),
            operational: message(PubSubState::OPERATIONAL, 1),
            disabled: message(PubSubState::DISABLED, 2),
            error: message(PubSubState::ERROR, 3),
        })
    }
}

fn uadp(connection: &Connection, state: PubSubState, sequence_number: u16, out: &mut Vec<u8>) {
    let header = NetworkMessageHeader {
        publisher_id: connection.publisher_id.as_ref().map(|id| id.as_ref()),
        message_type: NetworkMessageType::DiscoveryAnnouncement,
        ..NetworkMessageHeader::default()
    };
    header.encode(out);
    let announcement = Announcement::Status { state, cyclic: None };
    NumberedAnnouncement { sequence_number, announcement }.encode(out);
}

/// Part 14 Table 191. Without cycles there is no Timestamp and no NextReportTime.
fn json(connection: &Connection, state: PubSubState, message_id: &str, out: &mut Vec<u8>) {
    let publisher = connection.publisher_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut members = Members::open(out);
    members.name("MessageId", out);
    string(message_id, out);
    members.name("MessageType", out);
    string("ua-status", out);
    members.name("PublisherId", out);
    string(&publisher, out);
    members.name("IsCyclic", out);
    plain(false, out);
    members.name("Status", out);
    plain(state.0, out);
    members.close(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_pubsub::PublisherId;
    use taktwerk_pubsub::config::WriterGroup;

    #[test]
    fn of_publishers_in_both_encodings() {
        let id = Some(PublisherId::String("line \"1\"/a".into()));
        let mut connection = Connection::new("c", id, "mqtt+json://host");
        assert_eq!(Status::of("opcua", &connection, "x"), None, "it publishes nothing");
        connection.writer_groups.push(WriterGroup::json("g", 1, 10.0));
        let status = Status::of("opcua", &connection, "x").unwrap();
        assert_eq!(status.topic, "opcua/json/status/line \"1\"_a");
        let will: serde_json::Value = serde_json::from_slice(&status.error).unwrap();
        assert_eq!(
            will,
            serde_json::json!({"MessageId": "x-status-3", "MessageType": "ua-status", "PublisherId": "line \"1\"/a",
                "IsCyclic": false, "Status": 3})
        );
        let mut connection = Connection::new("c", Some(PublisherId::UInt16(7)), "mqtt://host");
        connection.writer_groups.push(WriterGroup::dynamic("g", 1, 10.0));
        let status = Status::of("opcua", &connection, "x").unwrap();
        assert_eq!(status.topic, "opcua/uadp/status/7");
        // Type 5, number 1, status (2), not cyclic, Operational (2).
        assert_eq!(
            status.operational.get(status.operational.len() - 10..).unwrap(),
            [5, 1, 0, 2, 0, 0, 2, 0, 0, 0]
        );
    }
}
