//! Objects below the elements show the configuration, and follow its changes.

use super::{SETS, Setup, admin, empty, free_url, listen, ns0, setup, structure, until, variable};
use std::time::Duration;
use taktwerk::pubsub_model::PubSubModel;
use taktwerk::types::{Guid, NodeId, QualifiedName, UaString, Variant};
use taktwerk::{Client, Server, StatusCode};
use taktwerk_pubsub::PublisherId;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, Connection, ConnectionTransport, DataSetReader, DataSetReaderTransport, DataSetWriter,
    DataSetWriterTransport, PublishedDataSet, ReaderGroup, WriterGroup, WriterGroupTransport,
};
use taktwerk_schema::ids::{method_ids, object_ids, object_type_ids, variable_ids};
use taktwerk_schema::{
    BrokerDataSetReaderTransportDataType, BrokerDataSetWriterTransportDataType,
    BrokerTransportQualityOfService, BrokerWriterGroupTransportDataType, ConfigurationVersionDataType,
    DatagramConnectionTransport2DataType, DatagramWriterGroupTransport2DataType, NetworkAddressUrlDataType,
    NodeClass,
};
use taktwerk_types::{BuiltInType, ExtensionObject};

fn address(url: &str) -> ExtensionObject {
    ExtensionObject::new(&NetworkAddressUrlDataType { network_interface: "lo".into(), url: url.into() })
}

/// A configuration with something of everything, disabled: nothing is sent.
fn with_settings() -> Configuration {
    let mut group = WriterGroup::periodic_fixed("fast", 1, 10.0);
    group.transport = WriterGroupTransport::Datagram2(DatagramWriterGroupTransport2DataType {
        message_repeat_count: 3,
        message_repeat_delay: 2.5,
        address: address("opc.udp://239.0.0.7:4840"),
        topic: "t".into(),
        ..DatagramWriterGroupTransport2DataType::default()
    });
    group.writers.push(DataSetWriter::periodic_fixed("w", 1, "d"));
    let data_set = PublishedDataSet::new("d", vec![field("x", BuiltInType::Float)]);
    let reader = DataSetReader::of(Some(PublisherId::UInt16(1)), &group, &group.writers[0], &data_set);
    let mut udp = Connection::new("udp", Some(PublisherId::UInt16(1)), "opc.udp://239.0.0.1:4840");
    udp.network_interface = "eth7".into();
    udp.enabled = false;
    udp.transport = ConnectionTransport::Datagram2(DatagramConnectionTransport2DataType {
        discovery_address: address("opc.udp://224.0.2.14:4840"),
        discovery_announce_rate: 5,
        ..DatagramConnectionTransport2DataType::default()
    });
    udp.writer_groups.push(group);
    udp.reader_groups.push(ReaderGroup::new("in", vec![reader]));
    let mut json = WriterGroup::json("json", 2, 100.0);
    let guarantee = BrokerTransportQualityOfService::AT_LEAST_ONCE;
    json.transport = WriterGroupTransport::Broker(BrokerWriterGroupTransportDataType {
        queue_name: "queue".into(),
        requested_delivery_guarantee: guarantee,
        ..BrokerWriterGroupTransportDataType::default()
    });
    let mut writer = DataSetWriter::json("w", 2, "d");
    writer.transport = DataSetWriterTransport::Broker(BrokerDataSetWriterTransportDataType {
        meta_data_queue_name: "meta".into(),
        meta_data_update_time: 1_000.0,
        ..BrokerDataSetWriterTransportDataType::default()
    });
    json.writers.push(writer);
    let mut reader = DataSetReader::of(Some(PublisherId::UInt16(2)), &json, &json.writers[0], &data_set);
    reader.transport = DataSetReaderTransport::Broker(BrokerDataSetReaderTransportDataType {
        queue_name: "of-reader".into(),
        ..BrokerDataSetReaderTransportDataType::default()
    });
    let mut broker =
        Connection::new("broker", Some(PublisherId::UInt16(2)), "mqtt+json://me:secret@127.0.0.1:1");
    broker.enabled = false;
    broker.writer_groups.push(json);
    broker.reader_groups.push(ReaderGroup::new("in", vec![reader]));
    Configuration { data_sets: vec![data_set], connections: vec![udp, broker], ..empty() }
}

async fn read(client: &Client, path: &str) -> Variant {
    let node = format!("ns=1;s=PubSub/{path}");
    client.read_value(node.as_str()).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The type of an object found by browsing its parent.
async fn type_of(client: &Client, path: &str) -> NodeId {
    let (parent, name) = path.rsplit_once('/').unwrap();
    let node = format!("ns=1;s=PubSub/{parent}");
    let references = client.browse(node.as_str()).await.unwrap();
    let mut found = references.iter().filter(|one| one.browse_name == QualifiedName::new(0, name));
    let (first, second) = (found.next(), found.next());
    assert!(second.is_none(), "{path} is there once");
    first.unwrap_or_else(|| panic!("{path} is not there")).type_definition.node_id.clone()
}

#[tokio::test]
async fn settings_are_objects_with_the_values_of_the_configuration() {
    let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().authorization(admin());
    let server = server.build().unwrap();
    let configuration = with_settings();
    let model = taktwerk::pubsub_model::PubSubModel::add_to(&server, &configuration).unwrap();
    let running = server.spawn().unwrap();
    let client = Client::connect(&running.url()).await.unwrap();
    for (path, type_id) in [
        ("udp/Address", object_type_ids::NETWORK_ADDRESS_URL_TYPE),
        ("udp/TransportSettings", object_type_ids::DATAGRAM_CONNECTION_TRANSPORT_TYPE),
        ("udp/TransportSettings/DiscoveryAddress", object_type_ids::NETWORK_ADDRESS_URL_TYPE),
        ("udp/fast/TransportSettings", object_type_ids::DATAGRAM_WRITER_GROUP_TRANSPORT_TYPE),
        ("udp/fast/MessageSettings", object_type_ids::UADP_WRITER_GROUP_MESSAGE_TYPE),
        ("udp/fast/w/MessageSettings", object_type_ids::UADP_DATA_SET_WRITER_MESSAGE_TYPE),
        ("udp/in/w/MessageSettings", object_type_ids::UADP_DATA_SET_READER_MESSAGE_TYPE),
        ("udp/in/w/SubscribedDataSet", object_type_ids::SUBSCRIBED_DATA_SET_TYPE),
        ("broker/json/TransportSettings", object_type_ids::BROKER_WRITER_GROUP_TRANSPORT_TYPE),
        ("broker/json/MessageSettings", object_type_ids::JSON_WRITER_GROUP_MESSAGE_TYPE),
        ("broker/json/w/TransportSettings", object_type_ids::BROKER_DATA_SET_WRITER_TRANSPORT_TYPE),
        ("broker/json/w/MessageSettings", object_type_ids::JSON_DATA_SET_WRITER_MESSAGE_TYPE),
        ("broker/in/w/TransportSettings", object_type_ids::BROKER_DATA_SET_READER_TRANSPORT_TYPE),
        ("broker/in/w/MessageSettings", object_type_ids::JSON_DATA_SET_READER_MESSAGE_TYPE),
        ("PublishedDataSets/d/ExtensionFields", object_type_ids::EXTENSION_FIELDS_TYPE),
    ] {
        assert_eq!(type_of(&client, path).await, ns0(type_id), "{path}");
    }
    let taktwerk_pubsub::config::WriterGroupMessage::Uadp(uadp) =
        &configuration.connections[0].writer_groups[0].message
    else {
        panic!("it is UADP");
    };
    for (path, expected) in [
        ("udp/Address/NetworkInterface", Variant::from("eth7")),
        ("udp/Address/Url", "opc.udp://239.0.0.1:4840".into()),
        ("udp/TransportSettings/DiscoveryAddress/Url", "opc.udp://224.0.2.14:4840".into()),
        ("udp/TransportSettings/DiscoveryAnnounceRate", 5u32.into()),
        ("udp/fast/TransportSettings/MessageRepeatCount", 3u8.into()),
        ("udp/fast/TransportSettings/MessageRepeatDelay", 2.5.into()),
        ("udp/fast/TransportSettings/Address/Url", "opc.udp://239.0.0.7:4840".into()),
        ("udp/fast/TransportSettings/Topic", "t".into()),
        (
            "udp/fast/MessageSettings/NetworkMessageContentMask",
            uadp.network_message_content_mask.bits().into(),
        ),
        ("udp/fast/MessageSettings/DataSetOrdering", uadp.data_set_ordering.0.into()),
        ("udp/fast/MessageSettings/PublishingOffset", uadp.publishing_offset.clone().into()),
        ("udp/in/w/MessageSettings/DataSetClassId", Guid::NULL.into()),
        ("broker/json/TransportSettings/QueueName", "queue".into()),
        (
            "broker/json/TransportSettings/RequestedDeliveryGuarantee",
            BrokerTransportQualityOfService::AT_LEAST_ONCE.0.into(),
        ),
        ("broker/json/w/TransportSettings/MetaDataUpdateTime", 1_000.0.into()),
        ("broker/in/w/TransportSettings/QueueName", "of-reader".into()),
        ("PublishedDataSets/d/CyclicDataSet", true.into()),
    ] {
        assert_eq!(read(&client, path).await, expected, "{path}");
    }

    // Every readable value has a good status.
    let mut looked = 0;
    let mut to_look: Vec<NodeId> = vec![ns0(object_ids::PUBLISH_SUBSCRIBE)];
    while let Some(node) = to_look.pop() {
        for reference in client.browse(node).await.unwrap() {
            let id = reference.node_id.node_id.clone();
            // Namespace 0 has Methods for secured channels only, and the data sets' folder.
            if id.namespace_index == 0 && id != ns0(object_ids::PUBLISH_SUBSCRIBE_PUBLISHED_DATA_SETS) {
                continue;
            }
            if reference.node_class == NodeClass::VARIABLE {
                looked += 1;
                let value = client.read_value::<Variant>(id.clone()).await;
                let waits = reference.browse_name.name.as_str() == "MessageSequenceNumber";
                assert!(value.is_ok() || waits, "{id}: {value:?}");
            }
            to_look.push(id);
        }
    }
    assert!(looked > 200, "{looked}");

    // They follow changes: another value, another type, none.
    model
        .change(|configuration| {
            let connection = &mut configuration.connections[0];
            connection.url = "opc.udp://239.0.0.2:4840".into();
            connection.transport = ConnectionTransport::None;
            let group = &mut connection.writer_groups[0];
            group.transport = WriterGroupTransport::Broker(BrokerWriterGroupTransportDataType {
                queue_name: "q".into(),
                ..BrokerWriterGroupTransportDataType::default()
            });
        })
        .unwrap();
    assert_eq!(read(&client, "udp/Address/Url").await, "opc.udp://239.0.0.2:4840".into());
    assert_eq!(read(&client, "udp/fast/TransportSettings/QueueName").await, "q".into());
    for gone in ["udp/TransportSettings/DiscoveryAddress/Url", "udp/fast/TransportSettings/Topic"] {
        let node = format!("ns=1;s=PubSub/{gone}");
        let error = client.read_value::<Variant>(node.as_str()).await.unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_NODE_ID_UNKNOWN, "{gone}");
    }
    drop(client);
    running.stop(std::time::Duration::from_secs(1));
}

async fn add_field(
    setup: &Setup,
    object: &NodeId,
    key: (u16, &str),
    value: Variant,
) -> Result<NodeId, StatusCode> {
    let inputs = vec![QualifiedName::new(key.0, key.1).into(), value];
    setup.add(object, method_ids::EXTENSION_FIELDS_TYPE_ADD_EXTENSION_FIELD, inputs).await
}

#[tokio::test]
async fn extension_fields_are_added_published_and_removed() {
    let mut group = WriterGroup::dynamic("g", 1, 10.0);
    group.writers.push(DataSetWriter::dynamic("w", 1, ""));
    let url = free_url();
    let mut connection = Connection::new("udp", Some(PublisherId::UInt16(1)), &url);
    connection.writer_groups.push(group);
    let setup = setup(Configuration { connections: vec![connection], ..empty() }).await;
    let (_listener, heard) = listen(&url);
    let inputs = vec![
        UaString::from("boiler").into(),
        vec![UaString::from("level")].into(),
        vec![0u16].into(),
        Variant::from_structures(&[variable(setup.level.id())]),
    ];
    let add_items = method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS;
    let outputs = setup.call(&ns0(SETS), add_items, inputs).await.unwrap();
    let data_set: NodeId = outputs[0].clone().try_into().unwrap();
    let version: ConfigurationVersionDataType = structure(&outputs[1]);
    let fields: NodeId = "ns=1;s=PubSub/PublishedDataSets/boiler/ExtensionFields".parse().unwrap();

    let serial = add_field(&setup, &fields, (1, "Serial"), 4_711u32.into()).await.unwrap();
    assert_eq!(setup.client.read_value::<u32>(serial.clone()).await.unwrap(), 4_711);
    let again = add_field(&setup, &fields, (1, "Serial"), 1u32.into()).await;
    assert_eq!(again, Err(StatusCode::BAD_NODE_ID_EXISTS));
    for (key, value) in [((1, ""), 1.into()), ((99, "x"), 1.into()), ((1, "null"), Variant::Empty)] {
        let refused = add_field(&setup, &fields, key, value).await;
        assert_eq!(refused, Err(StatusCode::BAD_INVALID_ARGUMENT), "{key:?}");
    }
    add_field(&setup, &fields, (1, "Site"), "Halle 3".into()).await.unwrap();
    let version_now =
        setup.model.configuration().data_set("boiler").unwrap().meta_data.configuration_version.clone();
    assert_eq!(version_now, version, "nothing else is sent than before");

    // As a field it is published like any Variable.
    let inputs = vec![
        Variant::from_structure(&version),
        vec![UaString::from("serial")].into(),
        vec![false].into(),
        Variant::from_structures(&[variable(&serial)]),
    ];
    let outputs =
        setup.call(&data_set, method_ids::PUBLISHED_DATA_ITEMS_TYPE_ADD_VARIABLES, inputs).await.unwrap();
    let version: ConfigurationVersionDataType = structure(&outputs[0]);
    setup
        .model
        .change(|configuration| {
            let writer = &mut configuration.connections[0].writer_groups[0].writers[0];
            writer.data_set_name = "boiler".into();
        })
        .unwrap();
    until("both fields", || heard.lock().unwrap().get(1).is_some_and(|(_, value)| *value == 4_711u32.into()))
        .await;

    let remove = async |field: &NodeId| {
        let method = method_ids::EXTENSION_FIELDS_TYPE_REMOVE_EXTENSION_FIELD;
        setup.call(&fields, method, vec![field.clone().into()]).await.map(|outputs| outputs.len())
    };
    assert_eq!(remove(&serial).await, Err(StatusCode::BAD_INVALID_STATE), "it is published");
    let inputs = vec![Variant::from_structure(&version), vec![1u32].into()];
    setup.call(&data_set, method_ids::PUBLISHED_DATA_ITEMS_TYPE_REMOVE_VARIABLES, inputs).await.unwrap();
    assert_eq!(remove(&serial).await, Ok(0));
    assert_eq!(remove(&serial).await, Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    assert_eq!(remove(setup.level.id()).await, Err(StatusCode::BAD_NODE_ID_INVALID));
    assert!(setup.client.read_value::<u32>(serial).await.is_err());
    let left = setup.model.configuration().data_set("boiler").unwrap().extension_fields.clone();
    assert_eq!((left.len(), left[0].key.name.as_str()), (1, "Site"));
    // The Methods belong to this object; those of the type cannot be called.
    let elsewhere = add_field(&setup, &data_set, (1, "x"), 1.into()).await;
    assert!(elsewhere.is_err(), "{elsewhere:?}");
    setup.end().await;
}

#[tokio::test]
async fn resources_of_a_session_are_released_when_it_ends() {
    let setup = setup(empty()).await;
    let file = ns0(object_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION);
    let open = ns0(method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN);
    let reserve = ns0(method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_RESERVE_IDS);
    let reserved = async |client: &Client| {
        let profile = UaString::from(taktwerk_pubsub::config::TRANSPORT_UDP_UADP);
        let inputs = vec![profile.into(), 1u16.into(), 0u16.into()];
        let outputs = client.call_variants(file.clone(), reserve.clone(), inputs).await.unwrap();
        Vec::<u16>::try_from(outputs[1].clone()).unwrap()
    };
    let other = Client::connect(&setup.running.url()).await.unwrap();
    assert_eq!(reserved(&other).await, [0x8000]);
    assert_eq!(reserved(&setup.client).await, [0x8001]);
    // It is writing the file, so no other session can.
    let (_handle,): (u32,) = other.call(file.clone(), open.clone(), (6u8,)).await.unwrap();
    let busy = setup.client.call::<_, (u32,)>(file.clone(), open.clone(), (6u8,)).await.unwrap_err();
    assert_eq!(busy.status(), StatusCode::BAD_NOT_WRITABLE);
    other.disconnect().await;
    assert_eq!(reserved(&setup.client).await, [0x8000], "the first is free again");
    let count = ns0(variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN_COUNT);
    assert_eq!(setup.client.read_value::<u16>(count).await.unwrap(), 0);
    let (_handle,): (u32,) = setup.client.call(file, open, (6u8,)).await.unwrap();
    setup.end().await;
}

/// No node under Objects is Good without a value, whatever the configuration.
#[tokio::test]
async fn no_node_is_good_without_a_value() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().authorization(admin()).build().unwrap();
    PubSubModel::add_to(&server, &with_settings()).unwrap();
    let running = server.spawn().unwrap();
    let client = Client::connect(&running.url()).await.unwrap();
    let mut left = vec![ns0(object_ids::OBJECTS_FOLDER)];
    let mut seen = std::collections::BTreeSet::new();
    let (mut variables, mut wrong) = (0, Vec::new());
    while let Some(node) = left.pop() {
        for reference in client.browse(node).await.unwrap_or_default() {
            let id = reference.node_id.node_id.clone();
            if !seen.insert(id.clone()) {
                continue;
            }
            if reference.node_class == NodeClass::VARIABLE {
                variables += 1;
                let value = client.read(id.clone()).await.unwrap();
                let is_null = value.value.as_ref().is_none_or(Variant::is_empty);
                if value.status().is_good() && is_null {
                    wrong.push(id.clone());
                }
            }
            left.push(id);
        }
    }
    assert!(variables > 400, "{variables}");
    assert!(wrong.is_empty(), "Good and null: {wrong:?}");
    drop(client);
    running.stop(Duration::from_secs(1));
}
