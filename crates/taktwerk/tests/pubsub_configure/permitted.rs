//! A client may configure only what it may read, write and call itself, by whatever means.

use super::*;
use taktwerk::pubsub::config::DataSetSource;
use taktwerk::pubsub_model::not_permitted;
use taktwerk::server::authorization::Access;
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_schema::{
    AccessRestrictionType, ActionMethodDataType, ActionTargetDataType, PermissionType,
    PublishedActionMethodDataType, TargetVariablesDataType,
};

const UNKNOWN: StatusCode = StatusCode::BAD_NODE_ID_UNKNOWN;
const DENIED: StatusCode = StatusCode::BAD_USER_ACCESS_DENIED;
const WEAK: StatusCode = StatusCode::BAD_SECURITY_MODE_INSUFFICIENT;

/// Nodes of the server by the client's permissions (ConfigureAdmin and Anonymous).
struct Doors {
    setup: Setup,
    /// Nothing: the client must not know of it.
    hidden: NodeId,
    /// Browse only.
    seen: NodeId,
    /// Everything over encrypted channels.
    encrypted: NodeId,
    /// A node that does not exist.
    missing: NodeId,
    /// Read-only, because the Variable is.
    constant: NodeId,
}

async fn doors(configuration: impl FnOnce(&Setup, &[NodeId]) -> Configuration) -> Doors {
    let setup = setup(empty()).await;
    let objects = setup.running.objects();
    let add = |name: &str, access: Access| {
        let id = objects.variable(name, 1.0).writable().add().unwrap().id().clone();
        setup.running.space().set_access(&id, access).unwrap();
        id
    };
    let configure = ns0(object_ids::WELL_KNOWN_ROLE_CONFIGURE_ADMIN);
    let engineer = ns0(object_ids::WELL_KNOWN_ROLE_ENGINEER);
    let all = PermissionType::BROWSE | PermissionType::READ | PermissionType::WRITE;
    let hidden = add("Hidden", Access::roles([(engineer.clone(), all)]));
    let seen = add("Seen", Access::roles([(configure, PermissionType::BROWSE)]));
    let restricted = Access::default().restricted(AccessRestrictionType::ENCRYPTION_REQUIRED);
    let encrypted = add("Encrypted", restricted);
    let constant = objects.variable("Constant", 1.0).add().unwrap().id().clone();
    let begun = configuration(&setup, &[hidden.clone(), seen.clone(), encrypted.clone()]);
    setup.model.change(|configuration| *configuration = begun).unwrap();
    Doors { setup, hidden, seen, encrypted, missing: NodeId::numeric(1, 4_711), constant }
}

fn items(name: &str, nodes: &[&NodeId]) -> PublishedDataSet {
    let fields =
        nodes.iter().enumerate().map(|(at, _)| field(&format!("f{at}"), BuiltInType::Double)).collect();
    let mut set = PublishedDataSet::new(name, fields);
    set.source = DataSetSource::Items(nodes.iter().map(|node| variable(node)).collect());
    set
}

fn publishing(url: &str, mode: SecurityMode, data_set: &str) -> Connection {
    let mut group = WriterGroup::dynamic("out", 1, 10.0);
    group.security.mode = mode;
    if mode != SecurityMode::None {
        group.security.security_group_id = "plant".to_owned();
    }
    group.writers.push(DataSetWriter::dynamic("writer", 1, data_set));
    let mut connection = Connection::new("udp", Some(PublisherId::UInt16(7)), url);
    connection.writer_groups.push(group);
    connection
}

fn receiving(url: &str, targets: &[&NodeId]) -> Connection {
    let fields =
        targets.iter().enumerate().map(|(at, _)| field(&format!("f{at}"), BuiltInType::Double)).collect();
    let mut reader = DataSetReader { name: "reader".to_owned(), enabled: true, ..DataSetReader::default() };
    reader.meta_data = PublishedDataSet::new("received", fields).meta_data;
    reader.meta_data.configuration_version.major_version = 1;
    let target_variables = targets.iter().map(|node| target(node)).collect();
    reader.subscribed_data_set =
        SubscribedDataSet::TargetVariables(TargetVariablesDataType { target_variables });
    let mut connection = Connection::new("in", None, url);
    connection.reader_groups.push(ReaderGroup::new("group", vec![reader]));
    connection
}

fn target(node: &NodeId) -> FieldTargetDataType {
    FieldTargetDataType { target_node_id: node.clone(), attribute_id: 13, ..FieldTargetDataType::default() }
}

impl Doors {
    async fn statuses(
        &self,
        object: &NodeId,
        method: u32,
        inputs: Vec<Variant>,
        at: usize,
    ) -> Vec<StatusCode> {
        let outputs = self.setup.call(object, method, inputs).await.unwrap();
        outputs[at].clone().try_into().unwrap()
    }

    /// Writes a configuration to the file, and adds all of it.
    async fn update(&self, wanted: &Configuration) -> Vec<StatusCode> {
        let file = ns0(object_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION);
        let open = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN;
        let write = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_WRITE;
        let close = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_CLOSE_AND_UPDATE;
        let opened = self.setup.call(&file, open, vec![6u8.into()]).await.unwrap();
        let handle: u32 = opened[0].clone().try_into().unwrap();
        let bytes = ByteString::from(binary_file::write(wanted));
        self.setup.call(&file, write, vec![handle.into(), bytes.into()]).await.unwrap();
        let mut references = Vec::new();
        let mut add = |kind: Mask, count: usize, groups: bool| {
            for index in 0..count {
                let mut reference = PubSubConfigurationRefDataType {
                    configuration_mask: Mask::ELEMENT_ADD | kind,
                    ..PubSubConfigurationRefDataType::default()
                };
                if groups {
                    reference.connection_index = index as u16;
                } else {
                    reference.element_index = index as u16;
                    reference.connection_index = index as u16;
                }
                references.push(reference);
            }
        };
        add(Mask::REFERENCE_PUB_DATASET, wanted.data_sets.len(), false);
        add(Mask::REFERENCE_CONNECTION, wanted.connections.len(), true);
        let writes = |connection: &Connection| !connection.writer_groups.is_empty();
        if wanted.connections.iter().any(writes) {
            add(Mask::REFERENCE_WRITER_GROUP, 1, true);
            add(Mask::REFERENCE_WRITER, 1, true);
        } else if !wanted.connections.is_empty() {
            add(Mask::REFERENCE_READER_GROUP, 1, true);
            add(Mask::REFERENCE_READER, 1, true);
        }
        self.statuses(
            &file,
            close,
            vec![handle.into(), true.into(), Variant::from_structures(&references)],
            1,
        )
        .await
    }

    /// Asserts that nothing has changed.
    fn is_unchanged(&self, before: &Configuration) {
        assert_eq!(*self.setup.model.configuration(), *before);
    }
}

#[tokio::test]
async fn a_data_set_is_limited_to_the_reading_rights_of_its_author() {
    let doors = doors(|_, _| empty()).await;
    let nodes = [&doors.hidden, &doors.missing, &doors.seen, &doors.encrypted];
    let names =
        |count: usize| -> Vec<UaString> { (0..count).map(|at| format!("f{at}").as_str().into()).collect() };
    let variables: Vec<_> = nodes.iter().map(|node| variable(node)).collect();
    let add = method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS;
    let inputs =
        vec!["a".into(), names(4).into(), vec![0u16; 4].into(), Variant::from_structures(&variables)];
    // Hidden nodes cannot be distinguished from missing ones.
    let results = doors.statuses(&ns0(SETS), add, inputs, 2).await;
    assert_eq!(results, [UNKNOWN, UNKNOWN, DENIED, StatusCode::GOOD]);
    let mut odd: Vec<_> = nodes[..2].iter().map(|node| variable(node)).collect();
    odd.iter_mut().for_each(|variable| variable.attribute_id = 4);
    let inputs = vec!["odd".into(), names(2).into(), vec![0u16; 2].into(), Variant::from_structures(&odd)];
    assert_eq!(doors.statuses(&ns0(SETS), add, inputs, 2).await, [UNKNOWN, UNKNOWN]);
    // With the metadata of the caller.
    let template = method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS_TEMPLATE;
    for (node, expected) in nodes[..3].iter().zip([UNKNOWN, UNKNOWN, DENIED]) {
        let set = items("t", &[node]);
        let inputs = vec![
            "t".into(),
            Variant::from_structure(&set.meta_data),
            Variant::from_structures(&[variable(node)]),
        ];
        assert_eq!(doors.statuses(&ns0(SETS), template, inputs, 1).await, [expected]);
    }
    // The file, as a whole.
    let before = doors.setup.model.configuration();
    for (node, expected) in nodes[..3].iter().zip([UNKNOWN, UNKNOWN, DENIED]) {
        let wanted = Configuration { data_sets: vec![items("file", &[node])], ..empty() };
        assert_eq!(doors.update(&wanted).await, [expected]);
        doors.is_unchanged(&before);
    }
    // Methods as Actions.
    let objects = doors.setup.running.objects();
    let method = objects.method("Secret").inputs(["a"]).outputs(["b"]);
    let method = method.handler(move |_, (a,): (f64,)| Ok((a,))).unwrap().id().clone();
    let engineer = ns0(object_ids::WELL_KNOWN_ROLE_ENGINEER);
    let access = Access::roles([(engineer, PermissionType::BROWSE | PermissionType::CALL)]);
    doors.setup.running.space().set_access(&method, access).unwrap();
    for method in [&method, &doors.missing] {
        let mut set = PublishedDataSet::new("actions", vec![field("b", BuiltInType::Double)]);
        let action_target =
            ActionTargetDataType { action_target_id: 1, name: "it".into(), ..Default::default() };
        set.source = DataSetSource::ActionMethods(Box::new(PublishedActionMethodDataType {
            request_data_set_meta_data: items("request", &[&doors.seen]).meta_data,
            action_targets: vec![action_target],
            action_methods: vec![ActionMethodDataType {
                object_id: ns0(object_ids::OBJECTS_FOLDER),
                method_id: method.clone(),
            }],
        }));
        let wanted = Configuration { data_sets: vec![set], ..empty() };
        assert_eq!(doors.update(&wanted).await, [UNKNOWN]);
    }
    doors.setup.end().await;
}

#[tokio::test]
async fn values_are_published_with_the_security_that_their_nodes_require() {
    let url = free_url();
    let doors = doors(|setup, nodes| Configuration {
        data_sets: vec![items("mine", &[setup.level.id(), &nodes[2]]), items("theirs", &[&nodes[0]])],
        connections: vec![publishing(&free_url(), SecurityMode::SignAndEncrypt, "theirs")],
        ..empty()
    })
    .await;
    let root = ns0(object_ids::PUBLISH_SUBSCRIBE);
    let before = doors.setup.model.configuration();
    let add = method_ids::PUBLISH_SUBSCRIBE_ADD_CONNECTION;
    for (mode, data_set, expected) in [
        (SecurityMode::None, "mine", Err(WEAK)),
        (SecurityMode::Sign, "mine", Err(WEAK)),
        // The data set of another client, which the caller must not publish.
        (SecurityMode::None, "theirs", Err(UNKNOWN)),
        (SecurityMode::SignAndEncrypt, "theirs", Err(UNKNOWN)),
    ] {
        let mut connection = publishing(&url, mode, data_set);
        connection.name = "other".to_owned();
        connection.writer_groups[0].writer_group_id = 2;
        let added = doors.setup.add(&root, add, vec![Variant::from_structure(&connection.to_schema())]).await;
        assert_eq!(added, expected, "{mode:?} {data_set}");
        doors.is_unchanged(&before);
    }
    // Step by step: the writer would send the values.
    let mut connection = publishing(&url, SecurityMode::None, "mine");
    connection.name = "other".to_owned();
    let mut group = connection.writer_groups.remove(0);
    let writer = group.writers.remove(0);
    let connection = Variant::from_structure(&connection.to_schema());
    let connection = doors.setup.add(&root, add, vec![connection]).await.unwrap();
    let add = method_ids::PUB_SUB_CONNECTION_TYPE_ADD_WRITER_GROUP;
    group.writer_group_id = 2;
    let group =
        doors.setup.add(&connection, add, vec![Variant::from_structure(&group.to_schema())]).await.unwrap();
    let add = method_ids::WRITER_GROUP_TYPE_ADD_DATA_SET_WRITER;
    let writer = |data_set: &str| {
        let mut writer = writer.clone();
        writer.data_set_name = data_set.to_owned();
        vec![Variant::from_structure(&writer.to_schema())]
    };
    assert_eq!(doors.setup.add(&group, add, writer("mine")).await, Err(WEAK));
    assert_eq!(doors.setup.add(&group, add, writer("theirs")).await, Err(UNKNOWN));
    // Published values may not be extended or redirected, but may be disabled and removed.
    let plain = method_ids::DATA_SET_FOLDER_TYPE_ADD_PUBLISHED_DATA_ITEMS;
    let inputs = vec![
        "plain".into(),
        vec![UaString::from("f")].into(),
        vec![0u16].into(),
        Variant::from_structures(&[variable(doors.setup.level.id())]),
    ];
    let outputs = doors.setup.call(&ns0(SETS), plain, inputs).await.unwrap();
    let (set, version): (NodeId, Variant) = (outputs[0].clone().try_into().unwrap(), outputs[1].clone());
    doors.setup.add(&group, add, writer("plain")).await.unwrap();
    let inputs = vec![
        version,
        vec![UaString::from("g")].into(),
        vec![false].into(),
        Variant::from_structures(&[variable(&doors.encrypted)]),
    ];
    let add_variables = method_ids::PUBLISHED_DATA_ITEMS_TYPE_ADD_VARIABLES;
    assert_eq!(doors.statuses(&set, add_variables, inputs, 1).await, [WEAK]);
    let status = NodeId::string(1, "PubSub/udp/out/writer/Status");
    doors.setup.call(&status, method_ids::PUB_SUB_STATUS_TYPE_DISABLE, Vec::new()).await.unwrap();
    let remove = method_ids::PUBLISH_SUBSCRIBE_REMOVE_CONNECTION;
    let connection = NodeId::string(1, "PubSub/udp");
    doors.setup.call(&root, remove, vec![connection.into()]).await.unwrap();
    doors.setup.end().await;
}

#[tokio::test]
async fn received_values_are_limited_to_the_writing_rights_of_the_author() {
    let url = free_url();
    let doors = doors(|setup, _| Configuration {
        connections: vec![receiving(&free_url(), &[setup.level.id()])],
        ..empty()
    })
    .await;
    let reader = NodeId::string(1, "PubSub/in/group/reader");
    let nodes = [
        (&doors.hidden, UNKNOWN),
        (&doors.missing, UNKNOWN),
        (&doors.seen, DENIED),
        // Values that anyone can send must not be written to it.
        (&doors.encrypted, WEAK),
        (&doors.constant, StatusCode::BAD_NOT_WRITABLE),
    ];
    let version = doors.setup.model.configuration().connections[0].reader_groups[0].readers[0]
        .meta_data
        .configuration_version
        .clone();
    let targets: Vec<_> = nodes.iter().map(|(node, _)| target(node)).collect();
    let expected: Vec<_> = nodes.iter().map(|(_, status)| *status).collect();
    let inputs = || vec![Variant::from_structure(&version), Variant::from_structures(&targets)];
    let create = method_ids::DATA_SET_READER_TYPE_CREATE_TARGET_VARIABLES;
    assert_eq!(doors.statuses(&reader, create, inputs(), 0).await, expected);
    let add = method_ids::TARGET_VARIABLES_TYPE_ADD_TARGET_VARIABLES;
    let of_reader = NodeId::string(1, "PubSub/in/group/reader/SubscribedDataSet");
    assert_eq!(doors.statuses(&of_reader, add, inputs(), 0).await, expected);
    let before = doors.setup.model.configuration();
    let root = ns0(object_ids::PUBLISH_SUBSCRIBE);
    let add = method_ids::PUBLISH_SUBSCRIBE_ADD_CONNECTION;
    for (node, expected) in nodes {
        let mut connection = receiving(&url, &[node]);
        connection.name = "other".to_owned();
        let inputs = vec![Variant::from_structure(&connection.to_schema())];
        assert_eq!(doors.setup.add(&root, add, inputs).await, Err(expected));
        let wanted = Configuration { connections: vec![connection], ..empty() };
        let results = doors.update(&wanted).await;
        assert!(results.iter().all(|status| *status == expected), "{results:?}");
        doors.is_unchanged(&before);
    }
    doors.setup.end().await;
}

#[tokio::test]
async fn hidden_nodes_are_not_shown() {
    let doors = doors(|setup, nodes| Configuration {
        data_sets: vec![items("mine", &[setup.level.id()]), items("theirs", &[setup.level.id(), &nodes[0]])],
        connections: vec![receiving(&free_url(), &[&nodes[0]])],
        ..empty()
    })
    .await;
    let client = &doors.setup.client;
    client.read("ns=1;s=PubSub/PublishedDataSets/mine/PublishedData").await.unwrap();
    for hidden in [
        "ns=1;s=PubSub/PublishedDataSets/theirs/PublishedData",
        "ns=1;s=PubSub/in/group/reader/SubscribedDataSet/TargetVariables",
    ] {
        let shown = client.read(hidden).await;
        assert!(
            shown.is_err() || shown.as_ref().is_ok_and(|value| value.value.is_none()),
            "{hidden}: {shown:?}"
        );
    }
    // The file contains only what the caller may see.
    let file = ns0(object_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION);
    let open = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_OPEN;
    let read = method_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CONFIGURATION_READ;
    let opened = doors.setup.call(&file, open, vec![1u8.into()]).await.unwrap();
    let inputs = vec![opened[0].clone(), (1 << 20).into()];
    let bytes: ByteString =
        doors.setup.call(&file, read, inputs).await.unwrap()[0].clone().try_into().unwrap();
    let shown = binary_file::read(bytes.as_bytes()).unwrap();
    let DataSetSource::Items(published) = &shown.data_sets[1].source else { panic!("{shown:?}") };
    let ids: Vec<_> = published.iter().map(|item| &item.published_variable).collect();
    assert_eq!(ids, [doors.setup.level.id(), &NodeId::NULL]);
    assert!(!format!("{shown:?}").contains("Hidden"), "{shown:?}");
    doors.setup.end().await;
}

/// Permissions that were revoked after configuring apply when the configuration is loaded again. The operator's own file needs
/// none.
#[tokio::test]
async fn a_saved_configuration_is_checked_when_loaded() {
    let doors = doors(|_, _| empty()).await;
    let space = doors.setup.running.space();
    let level = doors.setup.level.id().clone();
    let plain = |node: &NodeId, mode| Configuration {
        data_sets: vec![items("set", &[node])],
        connections: vec![publishing("opc.udp://127.0.0.1:4", mode, "set")],
        ..empty()
    };
    let refused = |configuration: &Configuration, trusted: Option<&Configuration>| {
        let found = not_permitted(configuration, trusted, space);
        found.data_sets.into_iter().map(|(name, _, status)| (name, status)).collect::<Vec<_>>()
    };
    assert_eq!(refused(&plain(&level, SecurityMode::None), None), []);
    assert_eq!(refused(&plain(&doors.missing, SecurityMode::None), None), [], "it is not there");
    let hidden = plain(&doors.hidden, SecurityMode::None);
    assert_eq!(refused(&hidden, None), [("set".to_owned(), UNKNOWN)]);
    assert_eq!(refused(&hidden, Some(&hidden)), []);
    assert_eq!(refused(&plain(&doors.encrypted, SecurityMode::None), None), [("set".to_owned(), WEAK)]);
    assert_eq!(refused(&plain(&doors.encrypted, SecurityMode::SignAndEncrypt), None), []);
    // Another destination than in the operator's file is not covered by it.
    let mut elsewhere = hidden.clone();
    elsewhere.connections[0].url = "opc.udp://127.0.0.1:5".to_owned();
    assert_eq!(refused(&elsewhere, Some(&hidden)), [("set".to_owned(), UNKNOWN)]);
    let written = |node: &NodeId| Configuration {
        connections: vec![receiving("opc.udp://127.0.0.1:4", &[node])],
        ..empty()
    };
    assert_eq!(not_permitted(&written(&level), None, space).readers, []);
    let found = not_permitted(&written(&doors.hidden), None, space).readers;
    assert_eq!(found.len(), 1);
    assert_eq!(not_permitted(&written(&doors.hidden), Some(&written(&doors.hidden)), space).readers, []);
    doors.setup.end().await;
}
