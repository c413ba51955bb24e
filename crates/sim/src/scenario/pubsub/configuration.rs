//! The configurations of the engines.

use super::{Encoding, Publishers, Quality, SecurityMode, Subscribers, Transport};
use crate::pubsub::publisher::Topics;
use core::time::Duration;
use rumqttc::QoS;
use taktwerk_pubsub::PublisherId;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetWriter, GroupSecurity, PublishedDataSet, ReaderGroup, WriterGroup,
};
use taktwerk_types::BuiltInType;

/// The first level of topics, as in `taktwerk-net`.
const PREFIX: &str = "opcua";
/// The name of the WriterGroup of every publisher.
const GROUP: &str = "group";

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

fn kind(value_len: usize) -> BuiltInType {
    match value_len {
        1 => BuiltInType::Byte,
        2 => BuiltInType::Int16,
        4 => BuiltInType::Int32,
        8 => BuiltInType::Int64,
        _ => BuiltInType::ByteString,
    }
}

/// The configuration of a publisher, by its number in the plant.
pub(super) fn publisher(publishers: &Publishers, number: u16) -> Configuration {
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let interval = milliseconds(publishers.publishing_interval);
    let mut group = match publishers.encoding {
        Encoding::Uadp => WriterGroup::dynamic(GROUP, 1, interval),
        Encoding::Json => WriterGroup::json(GROUP, 1, interval),
    };
    group.keep_alive_time = milliseconds(publishers.keep_alive());
    if publishers.security != SecurityMode::None {
        group.security = GroupSecurity {
            mode: publishers.security,
            security_group_id: publishers.name.clone(),
            security_key_services: Vec::new(),
        };
    }
    for (id, (signals, fields)) in (1..).zip(publishers.data_sets()) {
        let value_len = publishers.signals.get(signals).map_or(8, |signals| signals.value_len);
        let fields = (0..fields).map(|at| field(&format!("f{at}"), kind(value_len)));
        let name = format!("set{id}");
        configuration.data_sets.push(PublishedDataSet::new(&name, fields.collect()));
        let writer = format!("writer{id}");
        let mut writer = match publishers.encoding {
            Encoding::Uadp => DataSetWriter::dynamic(&writer, id, &name),
            Encoding::Json => DataSetWriter::json(&writer, id, &name),
        };
        writer.key_frame_count = publishers.key_frame_count;
        group.writers.push(writer);
    }
    let url = match (publishers.transport, publishers.encoding) {
        (Transport::Broker(..), Encoding::Json) => "mqtt+json://broker:1883",
        (Transport::Broker(..), Encoding::Uadp) => "mqtt://broker:1883",
        _ => "opc.udp://239.0.0.1:4840",
    };
    let mut connection = Connection::new("connection", Some(PublisherId::UInt16(number)), url);
    connection.writer_groups.push(group);
    configuration.connections.push(connection);
    configuration
}

/// The configuration of a subscriber to some publishers, with one ReaderGroup for each.
pub(super) fn subscriber(subscribers: &Subscribers, publishers: &[&Configuration]) -> Configuration {
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let mut whole: Option<Connection> = None;
    for (at, publisher) in publishers.iter().enumerate() {
        for connection in Configuration::subscriber_of(publisher).connections {
            let named = |group: ReaderGroup| ReaderGroup { name: format!("group{at}"), ..group };
            let groups: Vec<ReaderGroup> = connection.reader_groups.iter().cloned().map(named).collect();
            let all = whole.get_or_insert_with(|| Connection { reader_groups: Vec::new(), ..connection });
            all.reader_groups.extend(groups);
        }
    }
    if let Some(timeout) = subscribers.timeout {
        let readers = whole.iter_mut().flat_map(|connection| &mut connection.reader_groups);
        for reader in readers.flat_map(|group| &mut group.readers) {
            reader.message_receive_timeout = milliseconds(timeout);
        }
    }
    configuration.connections.extend(whole);
    configuration
}

/// MQTT's name of a quality of service.
pub(super) fn qos(quality: Quality) -> QoS {
    match quality {
        Quality::AtMostOnce => QoS::AtMostOnce,
        Quality::AtLeastOnce => QoS::AtLeastOnce,
    }
}

fn root(encoding: Encoding, kind: &str) -> String {
    let mapping = match encoding {
        Encoding::Uadp => "uadp",
        Encoding::Json => "json",
    };
    format!("{PREFIX}/{mapping}/{kind}")
}

/// The topics of a publisher's messages: the default tree of Part 14 §7.3.4.7.
pub(super) fn topics(publishers: &Publishers, number: u16, quality: Quality) -> Topics {
    let of = |kind: &str| root(publishers.encoding, kind);
    let writers = 1..=publishers.data_sets().len();
    Topics {
        qos: qos(quality),
        data: format!("{}/{number}/{GROUP}", of("data")),
        meta_data: writers.map(|id| format!("{}/{number}/{GROUP}/writer{id}", of("metadata"))).collect(),
    }
}

/// The topics of one publisher that a subscriber subscribes to: retained metadata before the data that needs it.
pub(super) fn filters(encoding: Encoding, number: u16, quality: Quality) -> [(String, QoS); 2] {
    [
        (format!("{}/{number}/#", root(encoding, "metadata")), QoS::AtLeastOnce),
        (format!("{}/{number}/#", root(encoding, "data")), qos(quality)),
    ]
}
