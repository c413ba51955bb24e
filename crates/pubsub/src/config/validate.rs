//! Validates a configuration and describes its problems.

use super::{
    Configuration, Connection, DataSetReaderMessage, DataSetSource, DataSetWriter, DataSetWriterMessage,
    DataSetWriterTransport, GroupSecurity, PublishedDataSet, TRANSPORT_MQTT_JSON, TRANSPORT_MQTT_UADP,
    WriterGroup, WriterGroupMessage, WriterGroupTransport, layouts,
};
use crate::publisher_id::PublisherId;
use crate::uadp::raw::RawLayout;
use crate::uadp::{FieldEncoding, SecurityMode, fields::encoding_of};
use std::collections::BTreeSet;
use taktwerk_schema::UadpNetworkMessageContentMask as NetworkMask;

/// Beginning of the problem of a writer without data set.
pub(super) const NO_DATA_SET: &str = "there is no data set";

/// Both mappings under one topic could be confused.
const UADP_OVER_JSON: &str = "its messages are binary (UADP), but the connection is for JSON: make them JSON, or make the connection \
                              one of UADP (mqtt://, mqtts://)";
const JSON_OVER_UADP: &str = "its messages are JSON, but the connection is for UADP: make the connection one for JSON \
                              (mqtt+json://, mqtts+json://)";

/// A problem that keeps a part of the configuration from working.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{element}: {message}")]
pub struct Problem {
    /// The part, such as `connection "udp" / writer group "fast"`.
    pub element: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// All problems of a configuration. If there are none, it can run.
#[must_use]
pub fn validate(configuration: &Configuration) -> Vec<Problem> {
    let mut check = Check { problems: Vec::new() };
    let mut names = BTreeSet::new();
    for data_set in &configuration.data_sets {
        let element = format!("data set {:?}", data_set.name);
        check.name(&element, &data_set.name, &mut names);
        check.data_set(&element, data_set);
    }
    let mut names = BTreeSet::new();
    for connection in &configuration.connections {
        let element = format!("connection {:?}", connection.name);
        check.name(&element, &connection.name, &mut names);
        check.connection(configuration, &element, connection);
    }
    check.problems
}

struct Check {
    problems: Vec<Problem>,
}

impl Check {
    fn add(&mut self, element: &str, message: impl Into<String>) {
        self.problems.push(Problem { element: element.to_owned(), message: message.into() });
    }

    fn name<'a>(&mut self, element: &str, name: &'a str, names: &mut BTreeSet<&'a str>) {
        if name.is_empty() {
            self.add(element, "it has no name");
        } else if !names.insert(name) {
            self.add(element, "its name is used twice");
        }
    }

    fn data_set(&mut self, element: &str, data_set: &PublishedDataSet) {
        let fields = &data_set.meta_data.fields;
        if fields.len() > usize::from(u16::MAX) {
            self.add(element, format!("{} fields are more than 65535", fields.len()));
        }
        let mut names = BTreeSet::new();
        for field in fields {
            if field.name.is_empty() || !names.insert(field.name.as_str()) {
                self.add(element, format!("the field name {:?} is empty or used twice", field.name.as_str()));
            }
        }
        match &data_set.source {
            DataSetSource::Items(items) if items.len() != fields.len() => {
                let message =
                    format!("{} variables for {} fields: give each field one", items.len(), fields.len());
                self.add(element, message);
            }
            DataSetSource::Events(events) if events.selected_fields.len() != fields.len() => {
                let (selected, fields) = (events.selected_fields.len(), fields.len());
                self.add(element, format!("{selected} selected event fields for {fields} fields"));
            }
            _ => {}
        }
    }

    fn connection(&mut self, configuration: &Configuration, element: &str, connection: &Connection) {
        if connection.url.is_empty() {
            self.add(element, "it has no address: set one such as opc.udp://239.0.0.1:4840");
        }
        if !connection.writer_groups.is_empty() {
            match &connection.publisher_id {
                None => self.add(element, "it has writer groups but no publisher id"),
                Some(PublisherId::String(id)) if id.is_empty() => {
                    self.add(element, "its publisher id is empty")
                }
                Some(_) => {}
            }
        }
        let (mut names, mut ids, mut writer_ids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for group in &connection.writer_groups {
            let element = format!("{element} / writer group {:?}", group.name);
            self.name(&element, &group.name, &mut names);
            if group.writer_group_id != 0 && !ids.insert(group.writer_group_id) {
                self.add(&element, format!("the writer group id {} is used twice", group.writer_group_id));
            }
            match (connection.transport_profile_uri.as_str(), &group.message) {
                (TRANSPORT_MQTT_JSON, WriterGroupMessage::Uadp(_)) => self.add(&element, UADP_OVER_JSON),
                (TRANSPORT_MQTT_UADP, WriterGroupMessage::Json(_)) => self.add(&element, JSON_OVER_UADP),
                _ => {}
            }
            self.writer_group(&element, group);
            let mut writer_names = BTreeSet::new();
            for writer in &group.writers {
                let element = format!("{element} / writer {:?}", writer.name);
                self.name(&element, &writer.name, &mut writer_names);
                if writer.data_set_writer_id == 0 {
                    self.add(&element, "its data set writer id is 0: give it another one");
                } else if !writer_ids.insert(writer.data_set_writer_id) {
                    let id = writer.data_set_writer_id;
                    self.add(&element, format!("the data set writer id {id} is used twice by the publisher"));
                }
                self.writer(configuration, &element, group, writer);
            }
        }
        for group in &connection.reader_groups {
            let element = format!("{element} / reader group {:?}", group.name);
            self.name(&element, &group.name, &mut names);
            self.security(&element, &group.security);
            let mut reader_names = BTreeSet::new();
            for reader in &group.readers {
                let element = format!("{element} / reader {:?}", reader.name);
                self.name(&element, &reader.name, &mut reader_names);
                if let Some(security) = &reader.security {
                    self.security(&element, security);
                }
                match (connection.transport_profile_uri.as_str(), &reader.message) {
                    (TRANSPORT_MQTT_JSON, DataSetReaderMessage::Uadp(_)) => {
                        self.add(&element, UADP_OVER_JSON)
                    }
                    (TRANSPORT_MQTT_UADP, DataSetReaderMessage::Json(_)) => {
                        self.add(&element, JSON_OVER_UADP)
                    }
                    _ => {}
                }
                let security = reader.security.as_ref().unwrap_or(&group.security);
                if security.mode != SecurityMode::None
                    && matches!(reader.message, DataSetReaderMessage::Json(_))
                {
                    self.add(
                        &element,
                        "JSON messages are never secured, and it would take none: set its security mode to None \
                         and protect the transport, or use UADP",
                    );
                }
                if encoding_of(reader.field_content_mask) == FieldEncoding::RawData
                    && matches!(reader.message, DataSetReaderMessage::Uadp(_))
                    && let Err(error) = RawLayout::new(&reader.meta_data)
                {
                    self.add(&element, error.to_string());
                }
            }
        }
    }

    fn security(&mut self, element: &str, security: &GroupSecurity) {
        if security.mode != SecurityMode::None && security.security_group_id.is_empty() {
            self.add(element, "it has a security mode but no security group: messages cannot get keys");
        }
    }

    /// A topic with wildcards cannot be published to, and a broker closes the connection of a client that tries.
    fn topic(&mut self, element: &str, setting: &str, topic: &str) {
        if topic.contains(['+', '#', '\0']) || topic.len() > usize::from(u16::MAX) {
            self.add(
                element,
                format!("its {setting} is not a valid topic: it may not contain + or #, and has at most 65535 bytes"),
            );
        }
    }

    fn writer_group(&mut self, element: &str, group: &WriterGroup) {
        self.security(element, &group.security);
        if let WriterGroupTransport::Broker(broker) = &group.transport {
            self.topic(element, "QueueName", broker.queue_name.as_str());
        }
        if !(group.publishing_interval > 0.0 && group.publishing_interval.is_finite()) {
            self.add(element, "its publishing interval is not a positive number of milliseconds");
        }
        let WriterGroupMessage::Uadp(uadp) = &group.message else {
            if group.security.mode != SecurityMode::None {
                self.add(element, "JSON messages cannot be secured: protect the transport, or use UADP");
            }
            if matches!(group.message, WriterGroupMessage::Other(_)) {
                self.add(element, "its message mapping is neither UADP nor JSON");
            }
            return;
        };
        let mask = uadp.network_message_content_mask;
        let in_group_header = NetworkMask::WRITER_GROUP_ID
            | NetworkMask::GROUP_VERSION
            | NetworkMask::NETWORK_MESSAGE_NUMBER
            | NetworkMask::SEQUENCE_NUMBER;
        if mask.intersects(in_group_header) && !mask.contains(NetworkMask::GROUP_HEADER) {
            self.add(element, "fields of the group header are selected, but not GroupHeader itself");
        }
        if mask.contains(NetworkMask::PICO_SECONDS) && !mask.contains(NetworkMask::TIMESTAMP) {
            self.add(element, "PicoSeconds needs Timestamp");
        }
        if mask.contains(NetworkMask::WRITER_GROUP_ID) && group.writer_group_id == 0 {
            self.add(element, "WriterGroupId is sent, but it is 0");
        }
        let is_fixed = group.header_layout_uri == layouts::PERIODIC_FIXED_URI;
        if is_fixed && mask != layouts::periodic_fixed_group().network_message_content_mask {
            self.add(
                element,
                format!("its NetworkMessageContentMask {mask} is not that of UADP-Periodic-Fixed"),
            );
        }
        let is_dynamic = group.header_layout_uri == layouts::DYNAMIC_URI;
        if is_dynamic && mask != layouts::dynamic_group().network_message_content_mask {
            self.add(element, format!("its NetworkMessageContentMask {mask} is not that of UADP-Dynamic"));
        }
    }

    fn writer(
        &mut self,
        configuration: &Configuration,
        element: &str,
        group: &WriterGroup,
        writer: &DataSetWriter,
    ) {
        if let DataSetWriterTransport::Broker(broker) = &writer.transport {
            self.topic(element, "QueueName", broker.queue_name.as_str());
            self.topic(element, "MetaDataQueueName", broker.meta_data_queue_name.as_str());
        }
        match (&group.message, &writer.message) {
            (WriterGroupMessage::Uadp(_), DataSetWriterMessage::Uadp(_))
            | (WriterGroupMessage::Json(_), DataSetWriterMessage::Json(_)) => {}
            _ => self.add(element, "its message mapping is not that of its group"),
        }
        if writer.data_set_name.is_empty() {
            return;
        }
        let Some(data_set) = configuration.data_set(&writer.data_set_name) else {
            let message = format!("{NO_DATA_SET} {:?}", writer.data_set_name);
            return self.add(element, message);
        };
        let encoding = encoding_of(writer.field_content_mask);
        let request = match &data_set.source {
            DataSetSource::Actions(actions) => Some(&actions.request_data_set_meta_data),
            DataSetSource::ActionMethods(actions) => Some(&actions.request_data_set_meta_data),
            _ => None,
        };
        if let Some(request) = request {
            if encoding == FieldEncoding::DataValue {
                self.add(
                    element,
                    "fields of Actions are Variants or RawData: its field content mask must be 0 or RawData",
                );
            }
            if encoding == FieldEncoding::RawData
                && let Err(error) = RawLayout::new(request)
            {
                self.add(element, format!("of the request, {error}"));
            }
        }
        if !matches!(writer.message, DataSetWriterMessage::Uadp(_)) {
            return;
        }
        if matches!(data_set.source, DataSetSource::Events(_)) && encoding != FieldEncoding::Variant {
            self.add(element, "events are sent as Variants: its field content mask must be 0");
        }
        if encoding == FieldEncoding::RawData {
            if writer.key_frame_count > 1 {
                self.add(element, "raw data has key frames only: set its key frame count to 1");
            }
            if let Err(error) = RawLayout::new(&data_set.meta_data) {
                self.add(element, error.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::field;
    use super::*;
    use taktwerk_types::BuiltInType;

    fn good() -> Configuration {
        let mut group = WriterGroup::periodic_fixed("fast", 1, 10.0);
        group.writers.push(DataSetWriter::periodic_fixed("w", 1, "d"));
        let mut connection = Connection::new("udp", Some(PublisherId::UInt16(1)), "opc.udp://239.0.0.1:4840");
        connection.writer_groups.push(group);
        Configuration {
            enabled: true,
            data_sets: vec![PublishedDataSet::new("d", vec![field("x", BuiltInType::Float)])],
            connections: vec![connection],
            ..Configuration::default()
        }
    }

    #[test]
    fn each_problem_names_its_element() {
        assert_eq!(validate(&good()), []);
        type Change = fn(&mut Configuration);
        let cases: [(&str, Change); 19] = [
            ("JSON messages are never secured", |c| {
                c.connections[0].writer_groups[0] = WriterGroup::json("j", 2, 10.0);
                let writer = DataSetWriter::json("w", 1, "d");
                c.connections[0].writer_groups[0].writers.push(writer);
                let mut subscriber = Configuration::subscriber_of(c);
                let group = &mut subscriber.connections[0].reader_groups[0];
                group.security.mode = SecurityMode::Sign;
                group.security.security_group_id = "g".into();
                group.readers[0].security = None;
                *c = subscriber;
            }),
            ("its QueueName is not a valid topic", |c| {
                let transport = taktwerk_schema::BrokerWriterGroupTransportDataType {
                    queue_name: "plant/+".into(),
                    ..Default::default()
                };
                c.connections[0].writer_groups[0].transport = WriterGroupTransport::Broker(transport);
            }),
            ("its QueueName is not a valid topic", |c| {
                c.connections[0].writer_groups[0].writers[0].transport =
                    DataSetWriterTransport::Broker(taktwerk_schema::BrokerDataSetWriterTransportDataType {
                        queue_name: "x".repeat(70_000).as_str().into(),
                        ..Default::default()
                    });
            }),
            ("its MetaDataQueueName is not a valid topic", |c| {
                c.connections[0].writer_groups[0].writers[0].transport =
                    DataSetWriterTransport::Broker(taktwerk_schema::BrokerDataSetWriterTransportDataType {
                        meta_data_queue_name: "meta/#".into(),
                        ..Default::default()
                    });
            }),
            ("no publisher id", |c| c.connections[0].publisher_id = None),
            ("no address", |c| c.connections[0].url.clear()),
            ("used twice", |c| c.data_sets.push(c.data_sets[0].clone())),
            ("used twice by the publisher", |c| {
                let group = &mut c.connections[0].writer_groups[0];
                group.writers.push(group.writers[0].clone());
            }),
            ("is 0", |c| c.connections[0].writer_groups[0].writers[0].data_set_writer_id = 0),
            ("no data set \"other\"", |c| {
                c.connections[0].writer_groups[0].writers[0].data_set_name = "other".into();
            }),
            ("no security group", |c| {
                c.connections[0].writer_groups[0].security.mode = SecurityMode::Sign;
            }),
            ("publishing interval", |c| {
                c.connections[0].writer_groups[0].publishing_interval = f64::NAN;
            }),
            ("key frame count", |c| c.connections[0].writer_groups[0].writers[0].key_frame_count = 5),
            ("no fixed size", |c| {
                c.data_sets[0].meta_data.fields[0].built_in_type = BuiltInType::NodeId.number();
            }),
            ("not that of UADP-Periodic-Fixed", |c| {
                c.connections[0].writer_groups[0].message = WriterGroupMessage::default();
            }),
            ("not that of its group", |c| {
                c.connections[0].writer_groups[0].writers[0].message =
                    DataSetWriter::json("w", 1, "d").message;
            }),
            ("fields of Actions are Variants or RawData", |c| {
                c.data_sets[0].source = DataSetSource::Actions(Default::default());
                c.connections[0].writer_groups[0].writers[0].field_content_mask =
                    taktwerk_schema::DataSetFieldContentMask::STATUS_CODE;
            }),
            ("of the request", |c| {
                let mut actions = taktwerk_schema::PublishedActionDataType::default();
                let id = field("id", BuiltInType::NodeId);
                actions.request_data_set_meta_data.fields.push(id);
                c.data_sets[0].source = DataSetSource::Actions(Box::new(actions));
            }),
            ("JSON messages cannot be secured", |c| {
                let mut group = WriterGroup::json("j", 2, 10.0);
                group.security.mode = SecurityMode::Sign;
                c.connections[0].writer_groups.push(group);
            }),
        ];
        for (expected, change) in cases {
            let mut configuration = good();
            change(&mut configuration);
            let problems = validate(&configuration);
            assert!(
                problems.iter().any(|problem| problem.to_string().contains(expected)),
                "{expected}: {problems:?}"
            );
        }
    }

    #[test]
    fn passwords_in_urls_are_not_printed() {
        let mut configuration = good();
        configuration.connections[0].url = "mqtt://me:secret@broker:1883".to_owned();
        let printed = format!("{configuration:?}");
        assert!(printed.contains("mqtt://broker:1883") && !printed.contains("secret"), "{printed}");
    }

    #[test]
    fn conversion_to_the_standard_structures_is_lossless() {
        let publisher = good();
        let subscriber = Configuration::subscriber_of(&publisher);
        assert_eq!(validate(&subscriber), []);
        for configuration in [publisher, subscriber] {
            let schema = configuration.to_schema();
            assert_eq!(Configuration::from_schema(&schema).unwrap(), configuration);
            let file = super::super::binary_file::write(&configuration);
            assert_eq!(super::super::binary_file::read(&file).unwrap(), configuration);
            for cut in [0, 1, 10, file.len() - 1] {
                assert!(super::super::binary_file::read(&file[..cut]).is_err());
            }
        }
    }
}
