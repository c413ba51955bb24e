//! Topics: as configured, or the default tree of Part 14 §7.3.4.7.

use super::options::QualityOfService;
use std::collections::BTreeSet;
use taktwerk_pubsub::config::{
    Connection, DataSetReader, DataSetReaderTransport, DataSetWriterTransport, TRANSPORT_MQTT_JSON,
    WriterGroup, WriterGroupTransport,
};
use taktwerk_pubsub::{Datagram, DatagramKind, PublisherId};
use taktwerk_schema::BrokerTransportQualityOfService as Guarantee;

/// Whether a connection's messages are JSON.
pub(super) fn is_json(connection: &Connection) -> bool {
    connection.transport_profile_uri == TRANSPORT_MQTT_JSON
}

fn level(id: Option<&PublisherId>) -> String {
    id.map_or_else(|| "+".to_owned(), |id| clean(&id.to_string()))
}

/// Replaces characters that are separators or wildcards in topics.
fn clean(name: &str) -> String {
    name.chars().map(|one| if matches!(one, '/' | '+' | '#' | '\0') { '_' } else { one }).collect()
}

fn root(prefix: &str, connection: &Connection, kind: &str) -> String {
    format!("{prefix}/{}/{kind}", if is_json(connection) { "json" } else { "uadp" })
}

/// Topic of Status messages (Part 14 §7.3.4.7.7).
pub(super) fn status(prefix: &str, connection: &Connection) -> String {
    format!("{}/{}", root(prefix, connection, "status"), level(connection.publisher_id.as_ref()))
}

/// Topics of the Status messages of the publishers that a connection's readers subscribe to.
#[must_use]
pub fn status_filters(prefix: &str, connection: &Connection) -> Vec<String> {
    let readers = connection.reader_groups.iter().flat_map(|group| &group.readers);
    let publishers: BTreeSet<String> = readers.map(|reader| level(reader.publisher_id.as_ref())).collect();
    let root = root(prefix, connection, "status");
    publishers.into_iter().map(|publisher| format!("{root}/{publisher}")).collect()
}

fn quality(guarantee: Guarantee) -> Option<QualityOfService> {
    match guarantee {
        Guarantee::BEST_EFFORT | Guarantee::AT_MOST_ONCE => Some(QualityOfService::AtMostOnce),
        Guarantee::AT_LEAST_ONCE => Some(QualityOfService::AtLeastOnce),
        Guarantee::EXACTLY_ONCE => Some(QualityOfService::ExactlyOnce),
        _ => None,
    }
}

/// Destination of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The topic.
    pub topic: String,
    /// Whether the broker keeps it for later subscribers.
    pub retain: bool,
    /// The quality of service that the configuration asks for.
    pub quality: Option<QualityOfService>,
    /// Seconds after which the broker may discard it: for metadata that is sent repeatedly.
    pub expiry: Option<u32>,
}

/// Destination of a publisher's message; `None`: it is not sent.
#[must_use]
pub fn destination(prefix: &str, connection: &Connection, datagram: &Datagram<'_>) -> Option<Destination> {
    let publisher = level(connection.publisher_id.as_ref());
    let group = datagram.writer_group.and_then(|group| connection.writer_groups.get(group));
    let writer = group.and_then(|group| group.writers.get(datagram.writer?));
    let broker_group = group.and_then(|group| match &group.transport {
        WriterGroupTransport::Broker(broker) => Some(broker),
        _ => None,
    });
    let broker_writer = writer.and_then(|writer| match &writer.transport {
        DataSetWriterTransport::Broker(broker) => Some(broker),
        _ => None,
    });
    let guarantee = broker_writer
        .and_then(|broker| quality(broker.requested_delivery_guarantee))
        .or_else(|| broker_group.and_then(|broker| quality(broker.requested_delivery_guarantee)));
    let to = |topic: String, retain| Some(Destination { topic, retain, quality: guarantee, expiry: None });
    let named = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(str::to_owned);
    match datagram.kind {
        DatagramKind::Data => {
            let own = named(broker_writer.map(|broker| broker.queue_name.as_str()))
                .or_else(|| named(broker_group.map(|broker| broker.queue_name.as_str())));
            let topic = own.unwrap_or_else(|| {
                let group = group.map_or_else(String::new, |group| clean(&group.name));
                format!("{}/{publisher}/{group}", root(prefix, connection, "data"))
            });
            to(topic, false)
        }
        kind @ (DatagramKind::MetaData | DatagramKind::ActionMetaData) => {
            let level = if kind == DatagramKind::MetaData { "metadata" } else { "action-metadata" };
            let own = named(broker_writer.map(|broker| broker.meta_data_queue_name.as_str()));
            let topic = own.unwrap_or_else(|| {
                let group = group.map_or_else(String::new, |group| clean(&group.name));
                let writer = writer.map_or_else(String::new, |writer| clean(&writer.name));
                format!("{}/{publisher}/{group}/{writer}", root(prefix, connection, level))
            });
            // Longer than the update interval (Part 14 §6.4.2.5.6), so that the broker always has one.
            let update_time = broker_writer.map_or(0.0, |broker| broker.meta_data_update_time);
            let expiry = (kind == DatagramKind::MetaData && update_time > 0.0)
                .then(|| (update_time / 1e3 * 2.0).ceil().clamp(1.0, f64::from(u32::MAX)) as u32);
            Some(Destination { topic, retain: true, quality: guarantee, expiry })
        }
        // The first bytes tell the kinds of announcements apart; subscribers skip the kinds they do not need.
        DatagramKind::Announcement => {
            to(format!("{}/{publisher}", root(prefix, connection, "connection")), true)
        }
        DatagramKind::ActionResponder => {
            to(format!("{}/{publisher}", root(prefix, connection, "action-responder")), true)
        }
        // The requestor knows the topic from the responder.
        DatagramKind::ActionRequest => {
            to(datagram.address.filter(|topic| is_topic(topic))?.to_owned(), false)
        }
        // Brokers close connections that publish to an invalid topic.
        DatagramKind::ActionResponse => match datagram.address.filter(|topic| is_topic(topic)) {
            Some(topic) => to(topic.to_owned(), false),
            None => {
                let group = connection.writer_groups.first().map_or_else(String::new, |one| clean(&one.name));
                to(format!("{}/{publisher}/{group}", root(prefix, connection, "action-response")), false)
            }
        },
        // A broker has no probes: the announcements are retained.
        _ => None,
    }
}

/// Whether a topic can be published to: not empty, no wildcards, within MQTT's maximum length.
#[must_use]
pub fn is_topic(text: &str) -> bool {
    (1..=usize::from(u16::MAX)).contains(&text.len()) && !text.contains(['+', '#', '\0'])
}

/// Request topic of a WriterGroup of a responder: its QueueName, or the default (Part 14 §7.3.4.7.9).
#[must_use]
pub fn action_request_topic(prefix: &str, connection: &Connection, group: &WriterGroup) -> String {
    match &group.transport {
        WriterGroupTransport::Broker(broker) if !broker.queue_name.is_empty() => {
            broker.queue_name.as_str().to_owned()
        }
        _ => {
            let publisher = level(connection.publisher_id.as_ref());
            format!("{}/{publisher}/{}", root(prefix, connection, "action-request"), clean(&group.name))
        }
    }
}

/// Response topic of a requestor, which it sends in its requests.
#[must_use]
pub fn action_response_topic(prefix: &str, connection: &Connection, requestor: &PublisherId) -> String {
    format!("{}/{}", root(prefix, connection, "action-response"), clean(&requestor.to_string()))
}

/// Topic on which a responder of a connection, or all responders, announce their Actions.
#[must_use]
pub fn action_filters(prefix: &str, connection: &Connection) -> Vec<String> {
    let publisher = level(connection.publisher_id.as_ref());
    vec![
        format!("{}/{publisher}", root(prefix, connection, "action-responder")),
        format!("{}/{publisher}/#", root(prefix, connection, "action-metadata")),
    ]
}

/// Topics that the readers of a connection subscribe to.
#[must_use]
pub fn filters(prefix: &str, connection: &Connection) -> Vec<(String, Option<QualityOfService>)> {
    let mut filters: Vec<(String, Option<QualityOfService>)> = Vec::new();
    let mut add = |filter: String, quality| {
        if !filters.iter().any(|(known, _)| *known == filter) {
            filters.push((filter, quality));
        }
    };
    for reader in connection.reader_groups.iter().flat_map(|group| &group.readers) {
        let (data, meta_data, guarantee) = reader_topics(prefix, connection, reader);
        // Metadata first: it is retained and arrives before the data that needs it.
        add(meta_data, Some(QualityOfService::AtLeastOnce));
        add(data, guarantee);
    }
    filters
}

fn reader_topics(
    prefix: &str,
    connection: &Connection,
    reader: &DataSetReader,
) -> (String, String, Option<QualityOfService>) {
    let publisher = level(reader.publisher_id.as_ref());
    let broker = match &reader.transport {
        DataSetReaderTransport::Broker(broker) => Some(broker),
        _ => None,
    };
    let named = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(str::to_owned);
    let data = named(broker.map(|broker| broker.queue_name.as_str()))
        .unwrap_or_else(|| format!("{}/{publisher}/#", root(prefix, connection, "data")));
    let meta_data = named(broker.map(|broker| broker.meta_data_queue_name.as_str()))
        .unwrap_or_else(|| format!("{}/{publisher}/#", root(prefix, connection, "metadata")));
    (data, meta_data, broker.and_then(|broker| quality(broker.requested_delivery_guarantee)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_pubsub::config::{DataSetWriter, ReaderGroup};
    use taktwerk_schema::BrokerWriterGroupTransportDataType;
    use taktwerk_types::Instant;

    fn datagram(kind: DatagramKind, writer: Option<usize>) -> Datagram<'static> {
        Datagram {
            connection: 0,
            writer_group: Some(0),
            writer,
            kind,
            due: Instant::ZERO,
            address: None,
            bytes: &[],
        }
    }

    #[test]
    fn default_tree_and_names_of_the_configuration() {
        let id = Some(PublisherId::String("line/1".into()));
        let mut connection = Connection::new("c", id, "mqtt+json://host");
        let mut group = WriterGroup::json("fast", 1, 10.0);
        group.writers.push(DataSetWriter::json("boiler", 1, "boiler"));
        connection.writer_groups.push(group);
        let topic = |connection: &Connection, kind, writer| {
            destination("opcua", connection, &datagram(kind, writer))
                .map(|to| (to.topic, to.retain, to.quality))
        };
        let plain = |topic: &str, retain| Some((topic.to_owned(), retain, None));
        assert_eq!(
            topic(&connection, DatagramKind::Data, Some(0)),
            plain("opcua/json/data/line_1/fast", false)
        );
        assert_eq!(
            topic(&connection, DatagramKind::MetaData, Some(0)),
            plain("opcua/json/metadata/line_1/fast/boiler", true)
        );
        assert_eq!(topic(&connection, DatagramKind::Probe, None), None);
        assert_eq!(
            topic(&connection, DatagramKind::ActionMetaData, Some(0)),
            plain("opcua/json/action-metadata/line_1/fast/boiler", true)
        );
        assert_eq!(
            topic(&connection, DatagramKind::ActionResponder, None),
            plain("opcua/json/action-responder/line_1", true)
        );
        assert_eq!(
            action_filters("opcua", &connection),
            ["opcua/json/action-responder/line_1", "opcua/json/action-metadata/line_1/#"]
        );
        let request =
            |connection: &Connection| action_request_topic("opcua", connection, &connection.writer_groups[0]);
        assert_eq!(request(&connection), "opcua/json/action-request/line_1/fast");
        let to = |kind, address| {
            let datagram = Datagram { address, ..datagram(kind, None) };
            destination("opcua", &connection, &datagram).map(|to| to.topic)
        };
        assert_eq!(to(DatagramKind::ActionRequest, None), None);
        assert_eq!(to(DatagramKind::ActionRequest, Some("a/b")).as_deref(), Some("a/b"));
        assert_eq!(to(DatagramKind::ActionResponse, Some("me")).as_deref(), Some("me"));
        // Requestors cannot make us publish to an invalid topic.
        for strange in ["", "a/#", "a/+/b", "a\0"] {
            let response = to(DatagramKind::ActionResponse, Some(strange));
            assert_eq!(response.as_deref(), Some("opcua/json/action-response/line_1/fast"));
        }
        connection.writer_groups[0].transport =
            WriterGroupTransport::Broker(BrokerWriterGroupTransportDataType {
                queue_name: "my/topic".into(),
                requested_delivery_guarantee: Guarantee::EXACTLY_ONCE,
                ..Default::default()
            });
        let exactly = Some(("my/topic".to_owned(), false, Some(QualityOfService::ExactlyOnce)));
        assert_eq!(topic(&connection, DatagramKind::Data, None), exactly);
        let group = &connection.writer_groups[0];
        assert_eq!(action_request_topic("opcua", &connection, group), "my/topic");
    }

    #[test]
    fn readers_subscribe_once_to_each_topic() {
        let mut connection = Connection::new("c", None, "mqtt://host");
        let reader = |id: Option<u16>| DataSetReader {
            publisher_id: id.map(PublisherId::UInt16),
            ..DataSetReader::default()
        };
        connection
            .reader_groups
            .push(ReaderGroup::new("g", vec![reader(Some(7)), reader(Some(7)), reader(None)]));
        let filters: Vec<_> = filters("opcua", &connection).into_iter().map(|(filter, _)| filter).collect();
        assert_eq!(
            filters,
            [
                "opcua/uadp/metadata/7/#",
                "opcua/uadp/data/7/#",
                "opcua/uadp/metadata/+/#",
                "opcua/uadp/data/+/#"
            ]
        );
    }
}
