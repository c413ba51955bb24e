//! Builders for common configurations.

use super::layouts;
use super::{
    Configuration, Connection, ConnectionTransport, DataSetReader, DataSetReaderMessage, DataSetSource,
    DataSetWriter, DataSetWriterMessage, PublishedDataSet, ReaderGroup, TRANSPORT_MQTT_JSON,
    TRANSPORT_MQTT_UADP, TRANSPORT_UDP_UADP, WriterGroup, WriterGroupMessage, WriterGroupTransport,
};
use crate::publisher_id::PublisherId;
use taktwerk_schema::{
    ConfigurationVersionDataType, DataSetMetaDataType, DatagramConnectionTransport2DataType,
    DatagramWriterGroupTransport2DataType, FieldMetaData, JsonDataSetMessageContentMask,
    JsonDataSetReaderMessageDataType, JsonDataSetWriterMessageDataType, JsonNetworkMessageContentMask,
    JsonWriterGroupMessageDataType, UadpDataSetReaderMessageDataType,
};
use taktwerk_types::{BuiltInType, NodeId};

/// The metadata of a scalar field of a built-in type.
#[must_use]
pub fn field(name: &str, kind: BuiltInType) -> FieldMetaData {
    FieldMetaData {
        name: name.into(),
        built_in_type: kind.number(),
        data_type: NodeId::numeric(0, u32::from(kind.number())),
        value_rank: -1,
        ..FieldMetaData::default()
    }
}

impl PublishedDataSet {
    /// A data set that the application fills in every cycle.
    #[must_use]
    pub fn new(name: &str, fields: Vec<FieldMetaData>) -> Self {
        let meta_data = DataSetMetaDataType {
            name: name.into(),
            fields,
            configuration_version: ConfigurationVersionDataType { major_version: 1, minor_version: 1 },
            ..DataSetMetaDataType::default()
        };
        Self {
            name: name.to_owned(),
            meta_data,
            source: DataSetSource::Custom { cyclic: true },
            ..Self::default()
        }
    }
}

impl Connection {
    /// A connection for a URL: `opc.udp://…`, `opc.eth://…`, `mqtt://…` and `mqtts://…` (UADP), or `mqtt+json://…` and
    /// `mqtts+json://…`.
    #[must_use]
    pub fn new(name: &str, publisher_id: Option<PublisherId>, url: &str) -> Self {
        let (profile, url) = match url.split_once("+json://") {
            Some((scheme @ ("mqtt" | "mqtts"), rest)) => (TRANSPORT_MQTT_JSON, format!("{scheme}://{rest}")),
            _ if url.starts_with("mqtt") => (TRANSPORT_MQTT_UADP, url.to_owned()),
            _ if url.starts_with("opc.eth") => (super::TRANSPORT_ETH_UADP, url.to_owned()),
            _ => (TRANSPORT_UDP_UADP, url.to_owned()),
        };
        Self {
            name: name.to_owned(),
            enabled: true,
            publisher_id,
            transport_profile_uri: profile.to_owned(),
            url,
            ..Self::default()
        }
    }

    /// Makes a datagram connection send announcements every `seconds` seconds without a probe (DiscoveryAnnounceRate,
    /// Part 14 §6.4.1.2.3 and §6.4.1.3.7): status, configuration, and the metadata of its DataSetWriters. 0: only in
    /// answer to probes. Does not apply to groups added later.
    pub fn announce_every(&mut self, seconds: u32) {
        match &mut self.transport {
            ConnectionTransport::Datagram2(transport) => transport.discovery_announce_rate = seconds,
            ConnectionTransport::Datagram(transport) => {
                self.transport = ConnectionTransport::Datagram2(DatagramConnectionTransport2DataType {
                    discovery_address: transport.discovery_address.clone(),
                    discovery_announce_rate: seconds,
                    ..Default::default()
                });
            }
            ConnectionTransport::None if seconds > 0 => {
                self.transport = ConnectionTransport::Datagram2(DatagramConnectionTransport2DataType {
                    discovery_announce_rate: seconds,
                    ..Default::default()
                });
            }
            _ => {}
        }
        for group in &mut self.writer_groups {
            match &mut group.transport {
                WriterGroupTransport::Datagram2(transport) => transport.discovery_announce_rate = seconds,
                WriterGroupTransport::Datagram(transport) => {
                    group.transport =
                        WriterGroupTransport::Datagram2(DatagramWriterGroupTransport2DataType {
                            message_repeat_count: transport.message_repeat_count,
                            message_repeat_delay: transport.message_repeat_delay,
                            discovery_announce_rate: seconds,
                            ..Default::default()
                        });
                }
                WriterGroupTransport::None if seconds > 0 => {
                    group.transport =
                        WriterGroupTransport::Datagram2(DatagramWriterGroupTransport2DataType {
                            discovery_announce_rate: seconds,
                            ..Default::default()
                        });
                }
                _ => {}
            }
        }
    }

    /// The interval of [`Self::announce_every`]; 0: none.
    #[must_use]
    pub fn announces_every(&self) -> u32 {
        match &self.transport {
            ConnectionTransport::Datagram2(transport) => transport.discovery_announce_rate,
            _ => 0,
        }
    }
}

impl WriterGroup {
    /// A group with the dynamic layout of Annex A.2.2.
    #[must_use]
    pub fn dynamic(name: &str, writer_group_id: u16, publishing_interval: f64) -> Self {
        Self {
            name: name.to_owned(),
            enabled: true,
            writer_group_id,
            publishing_interval,
            keep_alive_time: publishing_interval * 10.0,
            header_layout_uri: layouts::DYNAMIC_URI.to_owned(),
            message: WriterGroupMessage::Uadp(layouts::dynamic_group()),
            ..Self::default()
        }
    }

    /// A group with the periodic fixed layout of Annex A.2.1.
    #[must_use]
    pub fn periodic_fixed(name: &str, writer_group_id: u16, publishing_interval: f64) -> Self {
        Self {
            header_layout_uri: layouts::PERIODIC_FIXED_URI.to_owned(),
            message: WriterGroupMessage::Uadp(layouts::periodic_fixed_group()),
            ..Self::dynamic(name, writer_group_id, publishing_interval)
        }
    }

    /// A group of JSON NetworkMessages with all headers.
    #[must_use]
    pub fn json(name: &str, writer_group_id: u16, publishing_interval: f64) -> Self {
        let mask = JsonNetworkMessageContentMask::NETWORK_MESSAGE_HEADER
            | JsonNetworkMessageContentMask::DATA_SET_MESSAGE_HEADER
            | JsonNetworkMessageContentMask::PUBLISHER_ID;
        let message = JsonWriterGroupMessageDataType { network_message_content_mask: mask };
        Self {
            header_layout_uri: String::new(),
            message: WriterGroupMessage::Json(message),
            ..Self::dynamic(name, writer_group_id, publishing_interval)
        }
    }
}

impl DataSetWriter {
    /// A writer for the dynamic layout of Annex A.2.2.
    #[must_use]
    pub fn dynamic(name: &str, data_set_writer_id: u16, data_set_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            enabled: true,
            data_set_writer_id,
            key_frame_count: 1,
            data_set_name: data_set_name.to_owned(),
            message: DataSetWriterMessage::Uadp(layouts::dynamic_writer()),
            ..Self::default()
        }
    }

    /// A writer for the periodic fixed layout of Annex A.2.1.
    #[must_use]
    pub fn periodic_fixed(name: &str, data_set_writer_id: u16, data_set_name: &str) -> Self {
        Self {
            field_content_mask: layouts::periodic_fixed_fields(),
            message: DataSetWriterMessage::Uadp(layouts::periodic_fixed_writer()),
            ..Self::dynamic(name, data_set_writer_id, data_set_name)
        }
    }

    /// A writer of JSON DataSetMessages in the verbose encoding with all headers.
    #[must_use]
    pub fn json(name: &str, data_set_writer_id: u16, data_set_name: &str) -> Self {
        Self {
            message: DataSetWriterMessage::Json(JsonDataSetWriterMessageDataType {
                data_set_message_content_mask: json_headers(),
            }),
            ..Self::dynamic(name, data_set_writer_id, data_set_name)
        }
    }
}

fn json_headers() -> JsonDataSetMessageContentMask {
    JsonDataSetMessageContentMask::DATA_SET_WRITER_ID
        | JsonDataSetMessageContentMask::SEQUENCE_NUMBER
        | JsonDataSetMessageContentMask::TIMESTAMP
        | JsonDataSetMessageContentMask::STATUS
        | JsonDataSetMessageContentMask::MESSAGE_TYPE
        | JsonDataSetMessageContentMask::META_DATA_VERSION
        | JsonDataSetMessageContentMask::FIELD_ENCODING2
}

impl ReaderGroup {
    /// A group of readers.
    #[must_use]
    pub fn new(name: &str, readers: Vec<DataSetReader>) -> Self {
        Self { name: name.to_owned(), enabled: true, readers, ..Self::default() }
    }
}

impl DataSetReader {
    /// A reader for a writer's messages: same ids, masks and metadata, and a timeout of three keep-alive times.
    #[must_use]
    pub fn of(
        publisher_id: Option<PublisherId>,
        group: &WriterGroup,
        writer: &DataSetWriter,
        data_set: &PublishedDataSet,
    ) -> Self {
        let message = match (&group.message, &writer.message) {
            (WriterGroupMessage::Json(group), DataSetWriterMessage::Json(writer)) => {
                DataSetReaderMessage::Json(JsonDataSetReaderMessageDataType {
                    network_message_content_mask: group.network_message_content_mask,
                    data_set_message_content_mask: writer.data_set_message_content_mask,
                })
            }
            (WriterGroupMessage::Uadp(uadp), DataSetWriterMessage::Uadp(writer)) => {
                DataSetReaderMessage::Uadp(UadpDataSetReaderMessageDataType {
                    group_version: uadp.group_version,
                    network_message_number: writer.network_message_number,
                    data_set_offset: writer.data_set_offset,
                    data_set_class_id: data_set.meta_data.data_set_class_id,
                    network_message_content_mask: uadp.network_message_content_mask,
                    data_set_message_content_mask: writer.data_set_message_content_mask,
                    publishing_interval: group.publishing_interval,
                    ..UadpDataSetReaderMessageDataType::default()
                })
            }
            _ => DataSetReaderMessage::default(),
        };
        Self {
            name: writer.name.clone(),
            enabled: true,
            publisher_id,
            writer_group_id: group.writer_group_id,
            data_set_writer_id: writer.data_set_writer_id,
            meta_data: data_set.meta_data.clone(),
            field_content_mask: writer.field_content_mask,
            message_receive_timeout: group.keep_alive_time.max(group.publishing_interval) * 3.0,
            key_frame_count: writer.key_frame_count,
            header_layout_uri: group.header_layout_uri.clone(),
            message,
            ..Self::default()
        }
    }
}

impl Configuration {
    /// The configuration of a subscriber to everything that `publisher` sends, with the same security modes and groups.
    #[must_use]
    pub fn subscriber_of(publisher: &Self) -> Self {
        let mut connections = Vec::new();
        for connection in &publisher.connections {
            let groups = connection.writer_groups.iter().map(|group| {
                let readers = group.writers.iter().filter_map(|writer| {
                    let data_set = publisher.data_set(&writer.data_set_name)?;
                    Some(DataSetReader::of(connection.publisher_id.clone(), group, writer, data_set))
                });
                ReaderGroup {
                    security: group.security.clone(),
                    ..ReaderGroup::new(&group.name, readers.collect())
                }
            });
            connections.push(Connection {
                publisher_id: None,
                writer_groups: Vec::new(),
                reader_groups: groups.collect(),
                ..connection.clone()
            });
        }
        Self {
            enabled: true,
            connections,
            security_groups: publisher.security_groups.clone(),
            default_security_key_services: publisher.default_security_key_services.clone(),
            ..Self::default()
        }
    }

    /// A PublishedDataSet by name.
    #[must_use]
    pub fn data_set(&self, name: &str) -> Option<&PublishedDataSet> {
        self.data_sets.iter().find(|data_set| data_set.name == name)
    }
}
