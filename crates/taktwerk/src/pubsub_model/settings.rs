//! TransportSettings and MessageSettings as objects (Part 14 §9.2, §9.3): their types and Properties.

use taktwerk_pubsub::config::{
    ConnectionTransport, DataSetReaderMessage, DataSetReaderTransport, DataSetWriterMessage,
    DataSetWriterTransport, WriterGroupMessage, WriterGroupTransport,
};
use taktwerk_schema::ids::object_type_ids as types;
use taktwerk_schema::{BrokerTransportQualityOfService, NetworkAddressUrlDataType};
use taktwerk_types::{ExtensionObject, UaString, Variant};

/// The settings of one object.
pub(super) struct Settings {
    pub(super) type_id: u32,
    /// Its Properties.
    pub(super) values: Vec<(&'static str, Variant)>,
    /// A child object with an address.
    pub(super) address: Option<(&'static str, NetworkAddressUrlDataType)>,
}

fn settings(type_id: u32, values: Vec<(&'static str, Variant)>) -> Option<Settings> {
    Some(Settings { type_id, values, address: None })
}

impl Settings {
    fn with_address(mut self, name: &'static str, address: &ExtensionObject) -> Self {
        self.address = address.decode().ok().map(|address| (name, address));
        self
    }
}

/// Properties common to all broker settings.
fn broker(
    queue_name: &UaString,
    resource_uri: &UaString,
    authentication_profile_uri: &UaString,
    guarantee: BrokerTransportQualityOfService,
) -> Vec<(&'static str, Variant)> {
    vec![
        ("QueueName", queue_name.clone().into()),
        ("ResourceUri", resource_uri.clone().into()),
        ("AuthenticationProfileUri", authentication_profile_uri.clone().into()),
        ("RequestedDeliveryGuarantee", guarantee.0.into()),
    ]
}

/// `None` if there are no settings, or of an unknown kind.
pub(super) fn of_connection(transport: &ConnectionTransport) -> Option<Settings> {
    match transport {
        ConnectionTransport::Datagram(datagram) => {
            let found = settings(types::DATAGRAM_CONNECTION_TRANSPORT_TYPE, Vec::new())?;
            Some(found.with_address("DiscoveryAddress", &datagram.discovery_address))
        }
        ConnectionTransport::Datagram2(datagram) => {
            let values = vec![
                ("DiscoveryAnnounceRate", datagram.discovery_announce_rate.into()),
                ("DiscoveryMaxMessageSize", datagram.discovery_max_message_size.into()),
                ("QosCategory", datagram.qos_category.clone().into()),
                ("DatagramQos", datagram.datagram_qos.clone().into()),
            ];
            let found = settings(types::DATAGRAM_CONNECTION_TRANSPORT_TYPE, values)?;
            Some(found.with_address("DiscoveryAddress", &datagram.discovery_address))
        }
        ConnectionTransport::Broker(broker) => settings(
            types::BROKER_CONNECTION_TRANSPORT_TYPE,
            vec![
                ("ResourceUri", broker.resource_uri.clone().into()),
                ("AuthenticationProfileUri", broker.authentication_profile_uri.clone().into()),
            ],
        ),
        _ => None,
    }
}

pub(super) fn of_writer_group_transport(transport: &WriterGroupTransport) -> Option<Settings> {
    match transport {
        WriterGroupTransport::Datagram(datagram) => settings(
            types::DATAGRAM_WRITER_GROUP_TRANSPORT_TYPE,
            vec![
                ("MessageRepeatCount", datagram.message_repeat_count.into()),
                ("MessageRepeatDelay", datagram.message_repeat_delay.into()),
            ],
        ),
        WriterGroupTransport::Datagram2(datagram) => {
            let values = vec![
                ("MessageRepeatCount", datagram.message_repeat_count.into()),
                ("MessageRepeatDelay", datagram.message_repeat_delay.into()),
                ("QosCategory", datagram.qos_category.clone().into()),
                ("DatagramQos", datagram.datagram_qos.clone().into()),
                ("DiscoveryAnnounceRate", datagram.discovery_announce_rate.into()),
                ("Topic", datagram.topic.clone().into()),
            ];
            let found = settings(types::DATAGRAM_WRITER_GROUP_TRANSPORT_TYPE, values)?;
            Some(found.with_address("Address", &datagram.address))
        }
        WriterGroupTransport::Broker(of) => settings(
            types::BROKER_WRITER_GROUP_TRANSPORT_TYPE,
            broker(
                &of.queue_name,
                &of.resource_uri,
                &of.authentication_profile_uri,
                of.requested_delivery_guarantee,
            ),
        ),
        _ => None,
    }
}

pub(super) fn of_writer_group_message(message: &WriterGroupMessage) -> Option<Settings> {
    match message {
        WriterGroupMessage::Uadp(uadp) => settings(
            types::UADP_WRITER_GROUP_MESSAGE_TYPE,
            vec![
                ("GroupVersion", uadp.group_version.into()),
                ("DataSetOrdering", uadp.data_set_ordering.0.into()),
                ("NetworkMessageContentMask", uadp.network_message_content_mask.bits().into()),
                ("SamplingOffset", uadp.sampling_offset.into()),
                ("PublishingOffset", uadp.publishing_offset.clone().into()),
            ],
        ),
        WriterGroupMessage::Json(json) => settings(
            types::JSON_WRITER_GROUP_MESSAGE_TYPE,
            vec![("NetworkMessageContentMask", json.network_message_content_mask.bits().into())],
        ),
        _ => None,
    }
}

pub(super) fn of_writer_transport(transport: &DataSetWriterTransport) -> Option<Settings> {
    let DataSetWriterTransport::Broker(of) = transport else { return None };
    let mut values = broker(
        &of.queue_name,
        &of.resource_uri,
        &of.authentication_profile_uri,
        of.requested_delivery_guarantee,
    );
    values.push(("MetaDataQueueName", of.meta_data_queue_name.clone().into()));
    values.push(("MetaDataUpdateTime", of.meta_data_update_time.into()));
    settings(types::BROKER_DATA_SET_WRITER_TRANSPORT_TYPE, values)
}

pub(super) fn of_writer_message(message: &DataSetWriterMessage) -> Option<Settings> {
    match message {
        DataSetWriterMessage::Uadp(uadp) => settings(
            types::UADP_DATA_SET_WRITER_MESSAGE_TYPE,
            vec![
                ("DataSetMessageContentMask", uadp.data_set_message_content_mask.bits().into()),
                ("ConfiguredSize", uadp.configured_size.into()),
                ("NetworkMessageNumber", uadp.network_message_number.into()),
                ("DataSetOffset", uadp.data_set_offset.into()),
            ],
        ),
        DataSetWriterMessage::Json(json) => settings(
            types::JSON_DATA_SET_WRITER_MESSAGE_TYPE,
            vec![("DataSetMessageContentMask", json.data_set_message_content_mask.bits().into())],
        ),
        _ => None,
    }
}

pub(super) fn of_reader_transport(transport: &DataSetReaderTransport) -> Option<Settings> {
    match transport {
        DataSetReaderTransport::Datagram(datagram) => {
            let values = vec![
                ("QosCategory", datagram.qos_category.clone().into()),
                ("DatagramQos", datagram.datagram_qos.clone().into()),
                ("Topic", datagram.topic.clone().into()),
            ];
            let found = settings(types::DATAGRAM_DATA_SET_READER_TRANSPORT_TYPE, values)?;
            Some(found.with_address("Address", &datagram.address))
        }
        DataSetReaderTransport::Broker(of) => {
            let mut values = broker(
                &of.queue_name,
                &of.resource_uri,
                &of.authentication_profile_uri,
                of.requested_delivery_guarantee,
            );
            values.push(("MetaDataQueueName", of.meta_data_queue_name.clone().into()));
            settings(types::BROKER_DATA_SET_READER_TRANSPORT_TYPE, values)
        }
        _ => None,
    }
}

pub(super) fn of_reader_message(message: &DataSetReaderMessage) -> Option<Settings> {
    match message {
        DataSetReaderMessage::Uadp(uadp) => settings(
            types::UADP_DATA_SET_READER_MESSAGE_TYPE,
            vec![
                ("GroupVersion", uadp.group_version.into()),
                ("NetworkMessageNumber", uadp.network_message_number.into()),
                ("DataSetOffset", uadp.data_set_offset.into()),
                ("DataSetClassId", uadp.data_set_class_id.into()),
                ("NetworkMessageContentMask", uadp.network_message_content_mask.bits().into()),
                ("DataSetMessageContentMask", uadp.data_set_message_content_mask.bits().into()),
                ("PublishingInterval", uadp.publishing_interval.into()),
                ("ProcessingOffset", uadp.processing_offset.into()),
                ("ReceiveOffset", uadp.receive_offset.into()),
            ],
        ),
        DataSetReaderMessage::Json(json) => settings(
            types::JSON_DATA_SET_READER_MESSAGE_TYPE,
            vec![
                ("NetworkMessageContentMask", json.network_message_content_mask.bits().into()),
                ("DataSetMessageContentMask", json.data_set_message_content_mask.bits().into()),
            ],
        ),
        _ => None,
    }
}
