//! PubSub in a server's address space: what is shown, who may control it, and keys from the key service.

use std::sync::Arc;
use std::time::Duration;
use taktwerk::pki::Pki;
use taktwerk::pubsub::PubSubStartError;
use taktwerk::pubsub::action::FailedResponder;
use taktwerk::pubsub_model::{KeyServiceClient, PubSubModel, RunsResponders};
use taktwerk::server::authorization::{Authorization, IdentityRule};
use taktwerk::types::{ByteString, NodeId, UaString, Variant};
use taktwerk::{Client, MessageSecurityMode, RunningServer, SecurityPolicy, Server, StatusCode};
use taktwerk_crypto::PubSubSecurityPolicy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::pubsub::publisher::PublisherDriverOptions;
use taktwerk_net::pubsub::{KeySource, RunningPublisher};
use taktwerk_pki::{CertificateSettings, NewKey};
use taktwerk_pubsub::component::Component;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{Configuration, Connection, DataSetWriter, PublishedDataSet, WriterGroup};
use taktwerk_pubsub::security::{KeyRequest, SecurityKeys};
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::{GroupIndex, PublisherId};
use taktwerk_schema::SecurityGroupDataType;
use taktwerk_schema::ids::{method_ids, object_ids, variable_ids};
use taktwerk_types::{BuiltInType, DataValue};

const GROUP: Component = Component::WriterGroup(GroupIndex { connection: 0, group: 0 });

fn ns0(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

/// A publisher with one writer, and a subscriber to it.
fn configuration(mode: SecurityMode) -> Configuration {
    let mut group = WriterGroup::dynamic("fast", 1, 10.0);
    group.security.mode = mode;
    if mode != SecurityMode::None {
        group.security.security_group_id = "plant".into();
    }
    group.writers.push(DataSetWriter::dynamic("writer", 1, "set"));
    // The discard port: no receiver, and no disturbance.
    let mut connection = Connection::new("udp", Some(PublisherId::UInt16(7)), "opc.udp://127.0.0.1:9");
    connection.writer_groups.push(group);
    let mut configuration = Configuration {
        enabled: true,
        data_sets: vec![PublishedDataSet::new("set", vec![field("x", BuiltInType::Float)])],
        connections: vec![connection],
        ..Configuration::default()
    };
    let mut readers = Configuration::subscriber_of(&configuration).connections.remove(0).reader_groups;
    readers[0].name = "in".into();
    configuration.connections[0].reader_groups = readers;
    configuration.security_groups.push(SecurityGroupDataType {
        name: "plant".into(),
        security_group_id: "plant".into(),
        security_policy_uri: PubSubSecurityPolicy::Aes256Ctr.uri().into(),
        key_lifetime: 3.6e6,
        max_future_key_count: 3,
        ..SecurityGroupDataType::default()
    });
    configuration
}

/// Gives every user these roles.
fn with_roles(names: &[&str]) -> Authorization {
    let mut authorization = Authorization::open();
    for name in names {
        authorization.role_mut(name).unwrap().identities.push(IdentityRule::Anonymous);
    }
    authorization
}

async fn status<T: std::fmt::Debug>(
    call: impl Future<Output = Result<T, taktwerk::client::Error>>,
) -> StatusCode {
    call.await.unwrap_err().status()
}

#[tokio::test]
async fn a_configuration_is_shown_and_switched() {
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .authorization(with_roles(&["ConfigureAdmin"]))
        .build()
        .unwrap();
    let configuration = configuration(SecurityMode::None);
    let model = PubSubModel::add_to(&server, &configuration).unwrap();
    assert!(PubSubModel::add_to(&server, &configuration).is_err(), "its names are taken");
    let mut options = PublisherDriverOptions::default();
    options.events = Some(model.publisher_events());
    let values = |_: usize, fields: &mut [DataValue]| fields[0] = DataValue::new(1.5f32);
    let publisher =
        RunningPublisher::start(configuration.clone(), values, Arc::new(AwsPubSubProvider), options).unwrap();
    let publisher = Arc::new(publisher);
    model.attach_publisher(&publisher);
    let running = server.spawn().unwrap();
    let client = Client::connect(&running.url()).await.unwrap();
    for (node, expected) in [
        ("ns=1;s=PubSub/udp/PublisherId", Variant::from(7u16)),
        ("ns=1;s=PubSub/udp/Address/Url", "opc.udp://127.0.0.1:9".into()),
        ("ns=1;s=PubSub/udp/fast/PublishingInterval", 10.0.into()),
        ("ns=1;s=PubSub/udp/fast/writer/DataSetWriterId", 1u16.into()),
        ("ns=1;s=PubSub/udp/in/writer/MessageReceiveTimeout", 300.0.into()),
    ] {
        let value: Variant = client.read_value(node).await.unwrap();
        assert_eq!(value, expected, "{node}");
    }
    let readers = ns0(variable_ids::PUBLISH_SUBSCRIBE_DIAGNOSTICS_LIVE_VALUES_CONFIGURED_DATA_SET_READERS);
    assert_eq!(client.read_value::<u16>(readers).await.unwrap(), 1);

    // The publisher reports when it runs; then it is stopped and started.
    while model.state(GROUP) != PubSubState::OPERATIONAL {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let state = |name: &str| format!("ns=1;s=PubSub/{name}/Status/State");
    let read = async |name: &str| PubSubState(client.read_value::<i32>(state(name).as_str()).await.unwrap());
    assert_eq!(read("udp/fast/writer").await, PubSubState::OPERATIONAL);
    let switch = async |name: &str, what: &str| {
        let object = format!("ns=1;s=PubSub/{name}/Status");
        let method = format!("{object}/{what}");
        client.call::<(), ()>(object.as_str(), method.as_str(), ()).await
    };
    switch("udp", "Disable").await.unwrap();
    assert_eq!(read("udp").await, PubSubState::DISABLED);
    assert_eq!(read("udp/fast").await, PubSubState::PAUSED);
    let engine = || publisher.ask(|engine, _| engine.state(GroupIndex { connection: 0, group: 0 }));
    assert_eq!(engine(), Some(PubSubState::DISABLED));
    assert_eq!(status(switch("udp", "Disable")).await, StatusCode::BAD_INVALID_STATE);
    switch("udp", "Enable").await.unwrap();
    while model.state(GROUP) != PubSubState::OPERATIONAL {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(engine(), Some(PubSubState::OPERATIONAL));
    assert_eq!(model.counters(Component::Connection { connection: 0 }).operational_by_method, 1);
    // A writer is disabled without stopping its group.
    switch("udp/fast/writer", "Disable").await.unwrap();
    assert_eq!(read("udp/fast/writer").await, PubSubState::DISABLED);
    assert_eq!(engine(), Some(PubSubState::OPERATIONAL));
    assert!(!model.configuration().connections[0].writer_groups[0].writers[0].enabled);
    switch("udp/fast/writer", "Enable").await.unwrap();

    // The configuration as a file.
    let file = ns0(object_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION);
    let open = ns0(method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN);
    let (handle,): (u32,) = client.call(file.clone(), open, (1u8,)).await.unwrap();
    let mut bytes = Vec::new();
    loop {
        let method = ns0(method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_READ);
        let (piece,): (ByteString,) = client.call(file.clone(), method, (handle, 1000i32)).await.unwrap();
        if piece.as_bytes().is_empty() {
            break;
        }
        bytes.extend_from_slice(piece.as_bytes());
    }
    assert_eq!(taktwerk_pubsub::config::binary_file::read(&bytes).unwrap(), configuration);
    drop(client);
    running.stop(Duration::from_secs(1));
}

#[tokio::test]
async fn anonymous_clients_may_only_browse_and_read() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let model = PubSubModel::add_to(&server, &configuration(SecurityMode::None)).unwrap();
    model.serve_security_keys().unwrap();
    let running = server.spawn().unwrap();
    let client = Client::connect(&running.url()).await.unwrap();
    assert_eq!(client.read_value::<u16>("ns=1;s=PubSub/udp/PublisherId").await.unwrap(), 7);
    let status_object = "ns=1;s=PubSub/udp/Status";
    let disable = client.call::<(), ()>(status_object, "ns=1;s=PubSub/udp/Status/Disable", ());
    assert_eq!(status(disable).await, StatusCode::BAD_USER_ACCESS_DENIED);
    let connection = Connection::new("new", None, "opc.udp://127.0.0.1:9").to_schema();
    let add = client.call_variants(
        ns0(object_ids::PUBLISH_SUBSCRIBE),
        ns0(method_ids::PUBLISH_SUBSCRIBE_ADD_CONNECTION),
        vec![Variant::from_structure(&connection)],
    );
    assert_eq!(status(add).await, StatusCode::BAD_USER_ACCESS_DENIED);
    let open = client.call_variants(
        ns0(object_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION),
        ns0(method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN),
        vec![6u8.into()],
    );
    assert_eq!(status(open).await, StatusCode::BAD_USER_ACCESS_DENIED);
    let refused = get_keys(&client, "plant").await.unwrap_err();
    let expected = [StatusCode::BAD_USER_ACCESS_DENIED, StatusCode::BAD_SECURITY_MODE_INSUFFICIENT];
    assert!(expected.contains(&refused), "{refused}");
    drop(client);
    running.stop(Duration::from_secs(1));
}

async fn get_keys(
    client: &Client,
    group: &str,
) -> Result<taktwerk_pubsub::security::SecurityKeys, StatusCode> {
    taktwerk::pubsub_model::pull::get_security_keys(client, &request(group)).await
}

fn request(group: &str) -> KeyRequest {
    KeyRequest {
        security_group_id: group.to_owned(),
        starting_token_id: 0,
        requested_key_count: 2,
        services: Vec::new(),
    }
}

struct Folder(std::path::PathBuf);

impl Folder {
    fn pki(&self, name: &str) -> Pki {
        let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
        let pki = Pki::in_folder(self.0.join(name)).settings(settings);
        pki.create_missing([NewKey::NistP256]).open().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A key service on an encrypted channel, and the certificates of a client that it trusts.
fn key_service(folder: &Folder, roles: &[&str]) -> (RunningServer, PubSubModel, Pki) {
    let (ours, theirs) = (folder.pki("server"), folder.pki("client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .pki(&ours)
        .security(SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt)
        .authorization(with_roles(roles))
        .build()
        .unwrap();
    let model = PubSubModel::add_to(&server, &configuration(SecurityMode::SignAndEncrypt)).unwrap();
    model.serve_security_keys().unwrap();
    model.accept_security_keys().unwrap();
    (server.spawn().unwrap(), model, theirs)
}

/// Responders that record their keys.
#[derive(Default)]
struct Pushed(std::sync::Mutex<Vec<(String, SecurityKeys)>>);

impl RunsResponders for Pushed {
    fn reconfigure(&self, _: &Configuration) -> Result<(), PubSubStartError> {
        Ok(())
    }

    fn switch(&self, _: &Configuration) -> Vec<FailedResponder> {
        Vec::new()
    }

    fn set_keys(&self, security_group_id: &str, keys: &SecurityKeys) {
        self.0.lock().unwrap().push((security_group_id.to_owned(), keys.clone()));
    }
}

#[tokio::test]
async fn keys_are_distributed_added_and_replaced() {
    let folder = Folder(std::env::temp_dir().join(format!("taktwerk-sks-{}-a", std::process::id())));
    let roles = ["SecurityKeyServerAccess", "SecurityKeyServerAdmin", "SecurityKeyServerPush"];
    let (running, model, theirs) = key_service(&folder, &roles);
    let client = Client::builder(&running.url()).pki(&theirs).connect().await.unwrap();
    let keys = get_keys(&client, "plant").await.unwrap();
    assert_eq!((keys.first_token_id, keys.keys.len()), (1, 3));
    assert!(keys.keys.iter().all(|key| key.len() == 68));
    assert_eq!(get_keys(&client, "other").await, Err(StatusCode::BAD_NOT_FOUND));

    // A group of an administrator, its key rotation, and its removal.
    let groups = ns0(object_ids::PUBLISH_SUBSCRIBE_SECURITY_GROUPS);
    let policy = PubSubSecurityPolicy::Aes128Ctr.uri();
    let inputs = (UaString::from("new"), 60_000.0, UaString::from(policy), 2u32, 1u32);
    let add = ns0(method_ids::PUBLISH_SUBSCRIBE_SECURITY_GROUPS_ADD_SECURITY_GROUP);
    let (id, node): (UaString, NodeId) =
        client.call(groups.clone(), add.clone(), inputs.clone()).await.unwrap();
    assert_eq!(id.as_str(), "new");
    let again = client.call::<_, (UaString, NodeId)>(groups.clone(), add, inputs);
    assert_eq!(status(again).await, StatusCode::BAD_BROWSE_NAME_DUPLICATED);
    let get = ns0(method_ids::PUBLISH_SUBSCRIBE_GET_SECURITY_GROUP);
    let (found,): (NodeId,) =
        client.call(ns0(object_ids::PUBLISH_SUBSCRIBE), get, (id.clone(),)).await.unwrap();
    assert_eq!(found, node);
    assert_eq!(get_keys(&client, "new").await.unwrap().first_token_id, 1);
    let rotate = "ns=1;s=PubSub/SecurityGroups/new/ForceKeyRotation";
    client.call::<(), ()>(node.clone(), rotate, ()).await.unwrap();
    assert_eq!(get_keys(&client, "new").await.unwrap().first_token_id, 2);
    let remove = ns0(method_ids::PUBLISH_SUBSCRIBE_SECURITY_GROUPS_REMOVE_SECURITY_GROUP);
    client.call::<_, ()>(groups, remove, (node,)).await.unwrap();
    assert_eq!(get_keys(&client, "new").await, Err(StatusCode::BAD_NOT_FOUND));

    // No engine here could use pushed keys.
    let push = || {
        client.call_variants(
            ns0(object_ids::PUBLISH_SUBSCRIBE),
            ns0(method_ids::PUBLISH_SUBSCRIBE_SET_SECURITY_KEYS),
            vec![
                UaString::from("plant").into(),
                UaString::from(policy).into(),
                1u32.into(),
                ByteString::from(vec![1; 52]).into(),
                Vec::<ByteString>::new().into(),
                1000.0.into(),
                1000.0.into(),
            ],
        )
    };
    assert_eq!(status(push()).await, StatusCode::BAD_NOT_FOUND);
    // Responders of Actions receive them like publishers and subscribers.
    let responders = Arc::new(Pushed::default());
    model.attach_responders(&responders);
    push().await.unwrap();
    let pushed = std::mem::take(&mut *responders.0.lock().unwrap());
    let [(group, keys)] = &pushed[..] else { panic!("{pushed:?}") };
    assert_eq!((group.as_str(), keys.first_token_id, keys.keys.len()), ("plant", 1, 1));
    assert_eq!(keys.keys[0], [1; 52]);
    drop(client);
    running.stop(Duration::from_secs(1));
}

/// Engines in the key service's own process do not wait: they use new keys as soon as a client requests a rotation.
#[tokio::test]
async fn engines_of_the_key_service_change_keys_immediately() {
    struct Local(PubSubModel);
    impl KeySource for Local {
        fn fetch(&mut self, request: &KeyRequest) -> Result<SecurityKeys, StatusCode> {
            self.0.local_keys(&request.security_group_id, request.requested_key_count)
        }
    }
    let folder = Folder(std::env::temp_dir().join(format!("taktwerk-sks-{}-d", std::process::id())));
    let (ours, theirs) = (folder.pki("server"), folder.pki("client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .pki(&ours)
        .security(SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt)
        .authorization(with_roles(&["SecurityKeyServerAdmin"]))
        .build()
        .unwrap();
    let heard = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut configuration = configuration(SecurityMode::SignAndEncrypt);
    configuration.connections[0].url = format!("opc.udp://{}", heard.local_addr().unwrap());
    configuration.connections[0].reader_groups.clear();
    let model = PubSubModel::add_to(&server, &configuration).unwrap();
    model.serve_security_keys().unwrap();
    let mut options = PublisherDriverOptions::default();
    options.keys = Some(Box::new(Local(model.clone())));
    let values = |_: usize, fields: &mut [DataValue]| fields[0] = DataValue::new(1.5f32);
    let publisher =
        RunningPublisher::start(configuration, values, Arc::new(AwsPubSubProvider), options).unwrap();
    let publisher = Arc::new(publisher);
    model.attach_publisher(&publisher);
    let running = server.spawn().unwrap();
    let client = Client::builder(&running.url()).pki(&theirs).connect().await.unwrap();
    // The key id of the first message with another key; none has ForceKeyReset, which was not requested.
    let next_token = |old: u32| {
        let mut datagram = [0; 2048];
        for _ in 0..2_000 {
            let len = heard.recv(&mut datagram).unwrap();
            let mut decoder = taktwerk_types::Decoder::new(&datagram[..len], Default::default());
            let header = taktwerk_pubsub::uadp::header::NetworkMessageHeader::decode(&mut decoder).unwrap();
            let security = header.security.unwrap();
            assert!(!security.force_key_reset);
            if security.token_id != old {
                return security.token_id;
            }
        }
        panic!("still {old}");
    };
    assert_eq!(next_token(0), 1);
    let group = "ns=1;s=PubSub/SecurityGroups/plant";
    let call = async |method: &str| {
        client.call::<(), ()>(group, format!("{group}/{method}").as_str(), ()).await.unwrap();
    };
    call("ForceKeyRotation").await;
    assert_eq!(next_token(1), 2);
    call("InvalidateKeys").await;
    // After all promised keys: 2 and three more.
    assert_eq!(next_token(2), 6);
    drop(client);
    running.stop(Duration::from_secs(1));
}

#[tokio::test]
async fn without_the_role_there_are_no_keys() {
    let folder = Folder(std::env::temp_dir().join(format!("taktwerk-sks-{}-b", std::process::id())));
    let (running, _model, theirs) = key_service(&folder, &[]);
    let client = Client::builder(&running.url()).pki(&theirs).connect().await.unwrap();
    assert_eq!(get_keys(&client, "plant").await, Err(StatusCode::BAD_USER_ACCESS_DENIED));
    drop(client);
    running.stop(Duration::from_secs(1));
}

/// A publisher whose keys come from the key service runs as soon as it has them.
#[test]
fn a_publisher_pulls_its_keys() {
    let folder = Folder(std::env::temp_dir().join(format!("taktwerk-sks-{}-c", std::process::id())));
    let (running, _model, theirs) = key_service(&folder, &["SecurityKeyServerAccess"]);
    let url = running.url();
    let connect = move |url: &str| Client::builder(url).pki(&theirs);
    let mut source = KeyServiceClient::new(connect).unwrap().default_service(&url);
    assert_eq!(source.fetch(&request("plant")).unwrap().keys.len(), 3);
    let mut options = PublisherDriverOptions::default();
    options.keys = Some(Box::new(source));
    let mut configuration = configuration(SecurityMode::SignAndEncrypt);
    configuration.connections[0].reader_groups.clear();
    let values = |_: usize, fields: &mut [DataValue]| fields[0] = DataValue::new(1.5f32);
    let publisher =
        RunningPublisher::start(configuration, values, Arc::new(AwsPubSubProvider), options).unwrap();
    while publisher.sent().messages == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    publisher.stop();
    running.stop(Duration::from_secs(1));
}
