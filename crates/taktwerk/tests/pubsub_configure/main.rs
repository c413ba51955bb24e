//! A client configures PubSub at run time, with Methods and the PubSubConfiguration file.

#![allow(clippy::unwrap_used)] // a helper that fails is a test that fails

mod actions;
mod permitted;
mod shown;

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taktwerk::pubsub::{Publisher, Subscriber, named};
use taktwerk::pubsub_model::{PubSubModel, SavedConfiguration, load};
use taktwerk::server::authorization::{Authorization, IdentityRule};
use taktwerk::types::{ByteString, NodeId, UaString, Variant};
use taktwerk::{Client, RunningServer, Server, StatusCode, Variable};
use taktwerk_pubsub::component::Component;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetWriter, PublishedDataSet, ReaderGroup,
    SubscribedDataSet, WriterGroup, binary_file,
};
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::{GroupIndex, PublisherId};
use taktwerk_schema::ids::{method_ids, object_ids};
use taktwerk_schema::{
    ConfigurationVersionDataType, FieldTargetDataType, PubSubConfigurationRefDataType,
    PubSubConfigurationRefMask as Mask, PubSubConfigurationValueDataType, PublishedVariableDataType,
};
use taktwerk_types::{BuiltInType, ExtensionObject};

fn ns0(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

fn admin() -> Authorization {
    let mut authorization = Authorization::open();
    authorization.role_mut("ConfigureAdmin").unwrap().identities.push(IdentityRule::Anonymous);
    authorization
}

/// A server whose PubSub has both engines with empty configurations.
struct Setup {
    running: RunningServer,
    client: Client,
    model: PubSubModel,
    publisher: Arc<Publisher>,
    subscriber: Arc<Subscriber>,
    level: Variable<f64>,
    count: Variable<i32>,
}

async fn setup(configuration: Configuration) -> Setup {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().authorization(admin()).build().unwrap();
    let level = server.objects().variable("Level", 1.5).writable().add().unwrap();
    let count = server.objects().variable("Count", 7).writable().add().unwrap();
    let model = PubSubModel::add_to(&server, &configuration).unwrap();
    let publisher =
        Publisher::of(configuration.clone()).space(server.space()).on_event(model.publisher_events());
    let publisher = Arc::new(publisher.start().unwrap());
    let mut tell = model.subscriber_events();
    let subscriber = Subscriber::of(configuration).space(server.space()).on_event(move |event| tell(&event));
    let subscriber = Arc::new(subscriber.start().unwrap());
    model.attach_publisher(&publisher);
    model.attach_subscriber(&subscriber);
    let running = server.spawn().unwrap();
    let client = Client::connect(&running.url()).await.unwrap();
    Setup { running, client, model, publisher, subscriber, level, count }
}

fn empty() -> Configuration {
    Configuration { enabled: true, ..Configuration::default() }
}

fn free_url() -> String {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("opc.udp://127.0.0.1:{port}")
}

impl Setup {
    async fn call(
        &self,
        object: &NodeId,
        method: u32,
        inputs: Vec<Variant>,
    ) -> Result<Vec<Variant>, StatusCode> {
        let called = self.client.call_variants(object.clone(), ns0(method), inputs).await;
        called.map_err(|error| error.status())
    }

    /// A Method that returns the node that it has created.
    async fn add(&self, object: &NodeId, method: u32, inputs: Vec<Variant>) -> Result<NodeId, StatusCode> {
        let outputs = self.call(object, method, inputs).await?;
        Ok(outputs[0].clone().try_into().unwrap())
    }

    async fn end(self) {
        drop(self.client);
        drop((self.publisher, self.subscriber));
        self.running.stop(Duration::from_secs(1));
    }
}

fn structure<T: taktwerk::types::Structure>(value: &Variant) -> T {
    let object: ExtensionObject = value.clone().try_into().unwrap();
    object.decode().unwrap()
}

fn variable(id: &NodeId) -> PublishedVariableDataType {
    PublishedVariableDataType {
        published_variable: id.clone(),
        attribute_id: 13,
        ..PublishedVariableDataType::default()
    }
}

/// The last values received by a listener: names and values.
type Heard = Arc<Mutex<Vec<(String, Variant)>>>;

fn listen(url: &str) -> (Subscriber, Heard) {
    let heard = Heard::default();
    let theirs = Arc::clone(&heard);
    let listener = Subscriber::builder(url).on_message(move |message| {
        let fields =
            named(message).map(|(name, value)| (name.into_owned(), value.value.clone().unwrap_or_default()));
        *theirs.lock().unwrap() = fields.collect();
    });
    (listener.start().unwrap(), heard)
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen");
}

const SETS: u32 = object_ids::PUBLISH_SUBSCRIBE_PUBLISHED_DATA_SETS;

#[tokio::test]
async fn methods_add_and_remove_a_publisher() {
    let setup = setup(empty()).await;
    let root = ns0(object_ids::PUBLISH_SUBSCRIBE);
    // A data set of a Variable; a missing one is reported and skipped.
    let inputs = || {
        vec![
            UaString::from("boiler").into(),
            vec![UaString::from("level"), UaString::from("none")].into(),
            vec![0u16, 0].into(),
            Variant::from_structures(&[variable(setup.level.id()), variable(&NodeId::numeric(1, 4_711))]),
        ]
    };
    let add_items = method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS;
    let outputs = setup.call(&ns0(SETS), add_items, inputs()).await.unwrap();
    let data_set: NodeId = outputs[0].clone().try_into().unwrap();
    let version: ConfigurationVersionDataType = structure(&outputs[1]);
    assert!(version.major_version > 700_000_000, "seconds since 2000: {version:?}");
    let results: Vec<StatusCode> = outputs[2].clone().try_into().unwrap();
    assert_eq!(results, [StatusCode::GOOD, StatusCode::BAD_NODE_ID_UNKNOWN]);
    let again = setup.call(&ns0(SETS), add_items, inputs()).await;
    assert_eq!(again, Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED));

    // With a connection, a group and a writer it publishes.
    let url = free_url();
    let (_listener, heard) = listen(&url);
    let connection = Connection::new("udp", None, &url).to_schema();
    let add_connection = method_ids::PUBLISH_SUBSCRIBE_ADD_CONNECTION;
    let added = setup.add(&root, add_connection, vec![Variant::from_structure(&connection)]).await;
    let connection_id = added.unwrap();
    let group = WriterGroup::dynamic("fast", 0, 10.0).to_schema();
    let add_group = method_ids::PUB_SUB_CONNECTION_TYPE_ADD_WRITER_GROUP;
    let group_id = setup.add(&connection_id, add_group, vec![Variant::from_structure(&group)]).await.unwrap();
    let writer = DataSetWriter::dynamic("writer", 1, "boiler").to_schema();
    let add_writer = method_ids::WRITER_GROUP_TYPE_ADD_DATA_SET_WRITER;
    let writer_inputs = || vec![Variant::from_structure(&writer)];
    let writer_id = setup.add(&group_id, add_writer, writer_inputs()).await.unwrap();
    assert_eq!(writer_id, NodeId::string(1, "PubSub/udp/fast/writer"));
    assert_eq!(
        setup.add(&group_id, add_writer, writer_inputs()).await,
        Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED)
    );
    let group_number: u16 = setup.client.read_value("ns=1;s=PubSub/udp/fast/WriterGroupId").await.unwrap();
    assert!(group_number >= 0x8000, "ids that the server gives out: {group_number:#x}");
    until("a message", || heard.lock().unwrap().first().is_some_and(|(_, value)| *value == 1.5.into())).await;
    setup.level.set(2.5);
    until("the new value", || heard.lock().unwrap().first().is_some_and(|(_, value)| *value == 2.5.into()))
        .await;
    let state: i32 = setup.client.read_value("ns=1;s=PubSub/udp/fast/writer/Status/State").await.unwrap();
    assert_eq!(state, 2, "Operational");

    // Another field at the end is a minor version change, a removed one a major change.
    let add_variables = method_ids::PUBLISHED_DATA_ITEMS_TYPE_ADD_VARIABLES;
    let more = |version: &ConfigurationVersionDataType| {
        vec![
            Variant::from_structure(version),
            vec![UaString::from("count")].into(),
            vec![false].into(),
            Variant::from_structures(&[variable(setup.count.id())]),
        ]
    };
    let old = ConfigurationVersionDataType { major_version: 1, minor_version: 1 };
    assert_eq!(setup.call(&data_set, add_variables, more(&old)).await, Err(StatusCode::BAD_INVALID_STATE));
    let outputs = setup.call(&data_set, add_variables, more(&version)).await.unwrap();
    let wider: ConfigurationVersionDataType = structure(&outputs[0]);
    assert_eq!(wider.major_version, version.major_version);
    assert!(wider.minor_version > version.minor_version);
    until("two fields", || heard.lock().unwrap().get(1).is_some_and(|(_, value)| *value == 7.into())).await;
    let remove_variables = method_ids::PUBLISHED_DATA_ITEMS_TYPE_REMOVE_VARIABLES;
    let inputs = vec![Variant::from_structure(&wider), vec![0u32, 9].into()];
    let outputs = setup.call(&data_set, remove_variables, inputs).await.unwrap();
    let narrower: ConfigurationVersionDataType = structure(&outputs[0]);
    assert!(narrower.major_version > wider.minor_version && narrower.major_version == narrower.minor_version);
    let results: Vec<StatusCode> = outputs[1].clone().try_into().unwrap();
    assert_eq!(results, [StatusCode::GOOD, StatusCode::BAD_INVALID_ARGUMENT]);
    until("one field", || {
        let heard = heard.lock().unwrap();
        heard.len() == 1 && heard[0].1 == 7.into()
    })
    .await;

    // A writer can be disabled separately.
    let switch = async |what: &str| {
        let method = format!("ns=1;s=PubSub/udp/fast/writer/Status/{what}");
        setup.client.call::<(), ()>("ns=1;s=PubSub/udp/fast/writer/Status", method.as_str(), ()).await
    };
    switch("Disable").await.unwrap();
    assert!(!setup.model.configuration().connections[0].writer_groups[0].writers[0].enabled);
    tokio::time::sleep(Duration::from_millis(100)).await;
    heard.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(heard.lock().unwrap().is_empty(), "nothing is sent for it");
    switch("Enable").await.unwrap();
    until("a message again", || !heard.lock().unwrap().is_empty()).await;
    let number = "ns=1;s=PubSub/udp/fast/writer/Diagnostics/LiveValues/MessageSequenceNumber";
    assert!(setup.client.read_value::<u16>(number).await.unwrap() > 0);
    let sent = "ns=1;s=PubSub/udp/fast/Diagnostics/Counters/SentNetworkMessages";
    assert!(setup.client.read_value::<u32>(sent).await.unwrap() > 0);
    for none in ["FailedTransmissions", "EncryptionErrors"] {
        let none = format!("ns=1;s=PubSub/udp/fast/Diagnostics/Counters/{none}");
        assert_eq!(setup.client.read_value::<u32>(none.as_str()).await.unwrap(), 0);
    }
    let disabled = "ns=1;s=PubSub/udp/fast/writer/Diagnostics/Counters/StateDisabledByMethod";
    assert_eq!(setup.client.read_value::<u32>(disabled).await.unwrap(), 1);
    let writers = "ns=1;s=PubSub/udp/fast/Diagnostics/LiveValues/OperationalDataSetWriters";
    assert_eq!(setup.client.read_value::<u16>(writers).await.unwrap(), 1);
    let object = "ns=1;s=PubSub/udp/fast/writer/Diagnostics";
    let method = "ns=1;s=PubSub/udp/fast/writer/Diagnostics/Reset";
    setup.client.call::<(), ()>(object, method, ()).await.unwrap();
    assert_eq!(setup.client.read_value::<u32>(disabled).await.unwrap(), 0);

    // Removing a data set removes its writers; then the rest.
    let remove = method_ids::DATA_SET_FOLDER_TYPE_REMOVE_PUBLISHED_DATA_SET;
    setup.call(&ns0(SETS), remove, vec![data_set.clone().into()]).await.unwrap();
    assert_eq!(
        setup.call(&ns0(SETS), remove, vec![data_set.into()]).await,
        Err(StatusCode::BAD_NODE_ID_UNKNOWN)
    );
    assert!(setup.model.configuration().connections[0].writer_groups[0].writers.is_empty());
    let remove = method_ids::PUB_SUB_CONNECTION_TYPE_REMOVE_GROUP;
    setup.call(&connection_id, remove, vec![group_id.into()]).await.unwrap();
    let remove = method_ids::PUBLISH_SUBSCRIBE_REMOVE_CONNECTION;
    setup.call(&root, remove, vec![connection_id.into()]).await.unwrap();
    let configuration = setup.model.configuration();
    assert!(configuration.connections.is_empty() && configuration.data_sets.is_empty());
    let gone = setup.client.read_value::<u16>("ns=1;s=PubSub/udp/fast/WriterGroupId").await;
    assert_eq!(gone.unwrap_err().status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    until("the engine's end", || setup.publisher.groups().is_empty()).await;
    // Impossible requests are rejected.
    let refused =
        setup.call(&root, add_connection, vec![Variant::from_structure(&variable(setup.level.id()))]).await;
    assert!(refused.is_err(), "{refused:?}");
    let broken = Connection::new("broken", None, "opc.udp://").to_schema();
    let refused = setup.call(&root, add_connection, vec![Variant::from_structure(&broken)]).await;
    assert!(refused.is_err());
    assert_eq!(*setup.model.configuration(), *configuration, "nothing has changed");
    setup.end().await;
}

#[tokio::test]
async fn received_values_are_mirrored_and_written_to_configured_targets() {
    let setup = setup(empty()).await;
    let url = free_url();
    // An external publisher.
    let mut group = WriterGroup::dynamic("g", 5, 10.0);
    group.writers.push(DataSetWriter::dynamic("w", 1, "d"));
    let mut connection = Connection::new("theirs", Some(PublisherId::UInt16(9)), &url);
    connection.writer_groups.push(group.clone());
    let data_set =
        PublishedDataSet::new("d", vec![field("x", BuiltInType::Double), field("n", BuiltInType::Int32)]);
    let configuration =
        Configuration { data_sets: vec![data_set.clone()], connections: vec![connection.clone()], ..empty() };
    let theirs = Publisher::of(configuration).values("d", |fields| {
        for (field, value) in fields.iter_mut().zip([Variant::from(0.25), 42.into()]) {
            field.value = Some(value);
        }
        true
    });
    let theirs = theirs.start().unwrap();

    let root = ns0(object_ids::PUBLISH_SUBSCRIBE);
    let here = Connection::new("in", None, &url).to_schema();
    let add_connection = method_ids::PUBLISH_SUBSCRIBE_ADD_CONNECTION;
    let connection_id = setup.add(&root, add_connection, vec![Variant::from_structure(&here)]).await.unwrap();
    let readers = ReaderGroup::new("readers", Vec::new()).to_schema();
    let add_group = method_ids::PUB_SUB_CONNECTION_TYPE_ADD_READER_GROUP;
    let group_id =
        setup.add(&connection_id, add_group, vec![Variant::from_structure(&readers)]).await.unwrap();
    let reader = DataSetReader::of(connection.publisher_id.clone(), &group, &group.writers[0], &data_set);
    let add_reader = method_ids::READER_GROUP_TYPE_ADD_DATA_SET_READER;
    let inputs = vec![Variant::from_structure(&reader.to_schema())];
    let reader_id = setup.add(&group_id, add_reader, inputs).await.unwrap();

    // A mirror: Variables created for the fields.
    let mirror = method_ids::DATA_SET_READER_TYPE_CREATE_DATA_SET_MIRROR;
    let inputs = vec![UaString::from("Mirror").into(), Vec::<ExtensionObject>::new().into()];
    let parent = setup.add(&reader_id, mirror, inputs).await.unwrap();
    assert_eq!(parent, NodeId::string(1, "PubSub/in/readers/w/SubscribedDataSet/Mirror"));
    let mirrored = "ns=1;s=PubSub/in/readers/w/SubscribedDataSet/Mirror/n";
    let mut value = None;
    for _ in 0..1_000 {
        value = setup.client.read_value::<i32>(mirrored).await.ok();
        if value == Some(42) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(value, Some(42));
    let state: i32 = setup.client.read_value("ns=1;s=PubSub/in/readers/w/Status/State").await.unwrap();
    assert_eq!(state, 2, "Operational");

    let counted = async |name: &str| {
        let node = format!("ns=1;s=PubSub/in/readers/Diagnostics/Counters/{name}");
        setup.client.read_value::<u32>(node.as_str()).await.unwrap()
    };
    assert!(counted("ReceivedNetworkMessages").await > 0);
    assert_eq!((counted("ReceivedInvalidNetworkMessages").await, counted("DecryptionErrors").await), (0, 0));

    // Target Variables instead: the mirror is removed.
    let create = method_ids::DATA_SET_READER_TYPE_CREATE_TARGET_VARIABLES;
    let target = |id: &NodeId| FieldTargetDataType {
        target_node_id: id.clone(),
        attribute_id: 13,
        ..FieldTargetDataType::default()
    };
    let version = &data_set.meta_data.configuration_version;
    let targets = [target(setup.level.id()), target(&NodeId::numeric(1, 4_711))];
    let inputs = vec![Variant::from_structure(version), Variant::from_structures(&targets)];
    let outputs = setup.call(&reader_id, create, inputs).await.unwrap();
    let results: Vec<StatusCode> = outputs[0].clone().try_into().unwrap();
    assert_eq!(results, [StatusCode::GOOD, StatusCode::BAD_NODE_ID_UNKNOWN]);
    until("the value in the target", || setup.level.data_value().value == Some(0.25.into())).await;
    assert!(setup.client.read_value::<i32>(mirrored).await.is_err(), "the mirror is gone");
    let nothing = vec![Variant::from_structure(version), Vec::<ExtensionObject>::new().into()];
    assert_eq!(setup.call(&reader_id, create, nothing).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    let other = ConfigurationVersionDataType { major_version: 9, minor_version: 9 };
    let inputs = vec![Variant::from_structure(&other), Variant::from_structures(&targets[..1])];
    assert_eq!(setup.call(&reader_id, create, inputs).await, Err(StatusCode::BAD_INVALID_STATE));

    // One more target, at the new object; then the first is removed.
    let object: NodeId = "ns=1;s=PubSub/in/readers/w/SubscribedDataSet".parse().unwrap();
    let add = method_ids::TARGET_VARIABLES_TYPE_ADD_TARGET_VARIABLES;
    let inputs = vec![
        Variant::from_structure(version),
        Variant::from_structures(&[target(&NodeId::numeric(1, 4_711)), target(setup.count.id())]),
    ];
    let outputs = setup.call(&object, add, inputs).await.unwrap();
    let results: Vec<StatusCode> = outputs[0].clone().try_into().unwrap();
    assert_eq!(results, [StatusCode::BAD_NODE_ID_UNKNOWN, StatusCode::GOOD]);
    until("the value in the second target", || setup.count.data_value().value == Some(42.into())).await;
    let shown = "ns=1;s=PubSub/in/readers/w/SubscribedDataSet/TargetVariables";
    let shown: Variant = setup.client.read_value(shown).await.unwrap();
    let shown: Vec<ExtensionObject> = shown.try_into().unwrap();
    let shown: Vec<FieldTargetDataType> = shown.iter().map(|one| one.decode().unwrap()).collect();
    assert_eq!(shown, [target(setup.level.id()), target(setup.count.id())]);
    let remove = method_ids::TARGET_VARIABLES_TYPE_REMOVE_TARGET_VARIABLES;
    let positions = |positions: &[u32]| vec![Variant::from_structure(version), positions.to_vec().into()];
    assert_eq!(setup.call(&object, remove, positions(&[])).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    let moves = setup.call(&object, remove, positions(&[0])).await;
    assert_eq!(moves, Err(StatusCode::BAD_NOT_SUPPORTED), "it says its field by its position");
    let outputs = setup.call(&object, remove, positions(&[1, 7])).await.unwrap();
    let results: Vec<StatusCode> = outputs[0].clone().try_into().unwrap();
    assert_eq!(results, [StatusCode::GOOD, StatusCode::BAD_INVALID_ARGUMENT]);
    let of_reader = &setup.model.configuration().connections[0].reader_groups[0].readers[0];
    let SubscribedDataSet::TargetVariables(left) = &of_reader.subscribed_data_set else {
        panic!("{of_reader:?}")
    };
    assert_eq!(left.target_variables, [target(setup.level.id())]);
    theirs.stop();
    setup.end().await;
}

struct TempFile(std::path::PathBuf);

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(self.0.with_extension("uabinary.lock"));
    }
}

#[tokio::test]
async fn a_written_file_is_applied_and_survives_a_restart() {
    let saved =
        TempFile(std::env::temp_dir().join(format!("taktwerk-pubsub-{}.uabinary", std::process::id())));
    let before = setup(empty()).await;
    let file = SavedConfiguration::open(&saved.0).unwrap();
    assert!(file.load().unwrap().is_none());
    before.model.save_to(file).unwrap();
    // A second server must not overwrite it.
    let refused = SavedConfiguration::open(&saved.0).unwrap_err().to_string();
    assert!(refused.contains("is used by this process already"), "{refused}");
    let file = ns0(object_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION);
    let reserve = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_RESERVE_IDS;
    let profile = UaString::from(taktwerk_pubsub::config::TRANSPORT_UDP_UADP);
    let inputs = vec![profile.into(), 1u16.into(), 2u16.into()];
    let outputs = before.call(&file, reserve, inputs).await.unwrap();
    let groups: Vec<u16> = outputs[1].clone().try_into().unwrap();
    let writers: Vec<u16> = outputs[2].clone().try_into().unwrap();
    assert_eq!((groups.as_slice(), writers.as_slice()), ([0x8000].as_slice(), [0x8000, 0x8001].as_slice()));
    assert!(matches!(outputs[0], Variant::UInt64(_)));
    let unknown = vec![UaString::from("urn:none").into(), 1u16.into(), 2u16.into()];
    assert_eq!(before.call(&file, reserve, unknown).await, Err(StatusCode::BAD_INVALID_ARGUMENT));

    // The target configuration: a data set of a Variable and its publisher. The server chooses the connection's name and id.
    let url = free_url();
    let (_listener, heard) = listen(&url);
    let mut group = WriterGroup::dynamic("fast", groups[0], 10.0);
    group.writers.push(DataSetWriter::dynamic("w", writers[1], "d"));
    let mut connection = Connection::new("", None, &url);
    connection.writer_groups.push(group);
    let mut data_set = PublishedDataSet::new("d", vec![field("level", BuiltInType::Double)]);
    data_set.source = taktwerk_pubsub::config::DataSetSource::Items(vec![variable(before.level.id())]);
    let written = Configuration { data_sets: vec![data_set], connections: vec![connection], ..empty() };
    let reference = |mask| PubSubConfigurationRefDataType {
        configuration_mask: Mask::ELEMENT_ADD | mask,
        ..PubSubConfigurationRefDataType::default()
    };
    let references = [
        reference(Mask::REFERENCE_PUB_DATASET),
        reference(Mask::REFERENCE_CONNECTION),
        reference(Mask::REFERENCE_WRITER_GROUP),
        reference(Mask::REFERENCE_WRITER),
    ];
    let open = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN;
    let write = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_WRITE;
    let update = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_CLOSE_AND_UPDATE;
    let read_only = before.call(&file, open, vec![1u8.into()]).await.unwrap()[0].clone();
    let with = |handle: &Variant, references: &[PubSubConfigurationRefDataType]| {
        vec![handle.clone(), true.into(), Variant::from_structures(references)]
    };
    let refused = before.call(&file, update, with(&read_only, &references)).await;
    assert_eq!(refused, Err(StatusCode::BAD_INVALID_STATE));
    let handle = before.call(&file, open, vec![6u8.into()]).await.unwrap()[0].clone();
    for piece in binary_file::write(&written).chunks(100) {
        let data = ByteString::from(piece.to_vec());
        before.call(&file, write, vec![handle.clone(), data.into()]).await.unwrap();
    }
    assert_eq!(before.call(&file, update, with(&handle, &[])).await, Err(StatusCode::BAD_NOTHING_TO_DO));
    let outputs = before.call(&file, update, with(&handle, &references)).await.unwrap();
    assert_eq!(outputs[0], true.into());
    let results: Vec<StatusCode> = outputs[1].clone().try_into().unwrap();
    assert_eq!(results, [StatusCode::GOOD; 4]);
    let values: Vec<ExtensionObject> = outputs[2].clone().try_into().unwrap();
    let value: PubSubConfigurationValueDataType = values[0].decode().unwrap();
    assert_eq!((values.len(), value.name.as_str()), (1, "Connection1"));
    assert!(matches!(value.identifier, Variant::UInt64(_)));
    let objects: Vec<NodeId> = outputs[3].clone().try_into().unwrap();
    assert_eq!(objects[3], NodeId::string(1, "PubSub/Connection1/fast/w"));
    until("a message", || heard.lock().unwrap().first().is_some_and(|(_, value)| *value == 1.5.into())).await;

    // It is what is read back, and what a restart loads.
    let now = before.model.configuration();
    assert!(now.configuration_version > 700_000_000);
    assert_eq!(load(&saved.0).unwrap().as_ref(), Some(&*now));
    before.end().await;
    heard.lock().unwrap().clear();
    let after = setup(load(&saved.0).unwrap().unwrap()).await;
    until("a message after the restart", || !heard.lock().unwrap().is_empty()).await;
    let open = after.call(&file, open, vec![1u8.into()]).await.unwrap()[0].clone();
    let read = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_READ;
    let bytes = after.call(&file, read, vec![open, i32::MAX.into()]).await.unwrap();
    let bytes: ByteString = bytes[0].clone().try_into().unwrap();
    assert_eq!(binary_file::read(bytes.as_bytes()).unwrap(), *now);
    after.end().await;
}
