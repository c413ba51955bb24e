//! Every access path to a node, for every role, permission, restriction and mode, against the model.

use super::model::{Caller, GOOD, Path, Rules, answer};
use super::*;
use schema::{
    BrowseDescription, BrowseNextRequest, BrowsePath, BrowseRequest, CallMethodRequest, CallRequest,
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataChangeNotification,
    DeleteSubscriptionsRequest, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters,
    NotificationMessage, PublishRequest, PublishResponse, ReadRequest, ReadValueId, RegisterNodesRequest,
    RelativePath, RelativePathElement, StatusChangeNotification, TimestampsToReturn,
    TransferSubscriptionsRequest, TranslateBrowsePathsToNodeIdsRequest, WriteRequest, WriteValue,
};
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::ids::{object_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_types::{BuiltInType, DataValue, QualifiedName};

/// Permissions of a role on the test's nodes.
const PATTERNS: [&[&str]; 9] = [
    &[],
    &["Browse"],
    &["Read"],
    &["Write"],
    &["Call"],
    &["ReadRolePermissions"],
    &["Browse", "Read"],
    &["Browse", "Write", "Call"],
    &["Browse", "Read", "Write", "Call", "ReadRolePermissions"],
];

/// SigningRequired, EncryptionRequired, ApplyRestrictionsToBrowse.
const RESTRICTIONS: [[bool; 3]; 6] = [
    [false, false, false],
    [true, false, false],
    [false, true, false],
    [true, false, true],
    [false, true, true],
    [true, true, true],
];

/// A node of each class with the same rules.
struct Case {
    rules: Rules,
    number: u32,
}

const FOLDER: NodeId = NodeId::numeric(1, 1);
const OPEN_METHOD: u32 = 2;
/// A role that no caller of the table has, with permission to read every node.
const READER: NodeId = NodeId::numeric(1, 3);

impl Case {
    fn variable(&self) -> NodeId {
        NodeId::numeric(1, 1_000 + self.number)
    }

    fn method(&self) -> NodeId {
        NodeId::numeric(1, 2_000 + self.number)
    }

    fn object(&self) -> NodeId {
        NodeId::numeric(1, 3_000 + self.number)
    }

    fn access(&self) -> Access {
        let own = self.rules.roles.iter().map(|(role, permissions)| {
            let bits =
                permissions.iter().map(|name| permission(name)).fold(PermissionType::EMPTY, |a, b| a | b);
            (role_id(role), bits)
        });
        let reader = (READER, PermissionType::BROWSE | PermissionType::READ);
        let permissions: Vec<_> = own.chain([reader]).collect();
        let bit = |on: bool, bit: AccessRestrictionType| if on { bit.0 } else { 0 };
        Access::roles(permissions).restricted(AccessRestrictionType(
            bit(self.rules.signing, AccessRestrictionType::SIGNING_REQUIRED)
                | bit(self.rules.encryption, AccessRestrictionType::ENCRYPTION_REQUIRED)
                | bit(self.rules.also_browse, AccessRestrictionType::APPLY_RESTRICTIONS_TO_BROWSE),
        ))
    }
}

fn permission(name: &str) -> PermissionType {
    match name {
        "Browse" => PermissionType::BROWSE,
        "Read" => PermissionType::READ,
        "Write" => PermissionType::WRITE,
        "Call" => PermissionType::CALL,
        "ReadRolePermissions" => PermissionType::READ_ROLE_PERMISSIONS,
        other => panic!("no permission {other}"),
    }
}

/// Two roles with different permissions on each node, so that their union is tested too.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for [signing, encryption, also_browse] in RESTRICTIONS {
        for (at, pattern) in PATTERNS.iter().enumerate() {
            let other = PATTERNS[(at + 3) % PATTERNS.len()];
            let roles = vec![("Observer", pattern.to_vec()), ("Operator", other.to_vec())];
            let rules = Rules { roles, signing, encryption, also_browse };
            cases.push(Case { rules, number: cases.len() as u32 });
        }
    }
    cases
}

fn server(cases: &[Case]) -> Server {
    let server = Server::new();
    let handler: Arc<dyn crate::callback::MethodHandler> =
        Arc::new(|_: &crate::callback::CallContext, _| -> crate::callback::MethodResult { Ok(Vec::new()) });
    let add = |spec: NodeSpec, parent: &NodeId, kind: Option<u32>| {
        let kind = kind.map(NodeId::from);
        let under = Under {
            parent,
            reference_type: &reference_type_ids::HAS_COMPONENT.into(),
            type_definition: kind.as_ref(),
        };
        server.space.add_node(spec, under, server.now.utc).unwrap();
    };
    let folder = object_type_ids::FOLDER_TYPE;
    add(
        NodeSpec::object(FOLDER, QualifiedName::new(1, "F")),
        &object_ids::OBJECTS_FOLDER.into(),
        Some(folder),
    );
    let open = NodeId::numeric(1, OPEN_METHOD);
    add(
        NodeSpec::method(open.clone(), QualifiedName::new(1, "open"), Some(Arc::clone(&handler))),
        &FOLDER,
        None,
    );
    for case in cases {
        let variable = variable(1_000 + case.number, BuiltInType::Double, 1.0).access(case.access());
        add(variable, &FOLDER, Some(variable_type_ids::BASE_DATA_VARIABLE_TYPE));
        let name = QualifiedName::new(1, format!("m{}", case.number));
        let method = NodeSpec::method(case.method(), name, Some(Arc::clone(&handler)));
        add(method.access(case.access()), &FOLDER, None);
        let name = QualifiedName::new(1, format!("o{}", case.number));
        add(NodeSpec::object(case.object(), name).access(case.access()), &FOLDER, Some(folder));
        let component = reference_type_ids::HAS_COMPONENT.into();
        server.space.add_reference(&case.object(), &component, &open).unwrap();
    }
    server
}

fn callers() -> Vec<Caller> {
    let mut sets: Vec<Vec<&'static str>> =
        role::well_known::ALL.iter().map(|(name, _)| vec![*name]).collect();
    sets.push(Vec::new());
    sets.push(vec!["Observer", "Operator"]);
    sets.push(vec!["Anonymous", "AuthenticatedUser", "Observer"]);
    let with_modes =
        |roles: Vec<&'static str>| (1..=3).map(move |mode| Caller { roles: roles.clone(), mode });
    sets.into_iter().flat_map(with_modes).collect()
}

/// The result for callers within the process, such as PubSub.
fn in_process(
    server: &Server,
    rights: &crate::space::Rights,
    cases: &[Case],
) -> [(Path, Vec<StatusCode>); 3] {
    let ask =
        |node: NodeId, permission| server.space.check_rights(rights, &node, permission).err().unwrap_or(GOOD);
    let all = |permission, node: fn(&Case) -> NodeId| -> Vec<StatusCode> {
        cases.iter().map(|case| ask(node(case), permission)).collect()
    };
    [
        (Path::Published, all(PermissionType::READ, Case::variable)),
        (Path::Target, all(PermissionType::WRITE, Case::variable)),
        (Path::Action, all(PermissionType::CALL, Case::method)),
    ]
}

/// The server's status for each path, in the order of the cases.
fn observe(server: &mut Server, client: &mut Client, cases: &[Case]) -> Vec<(Path, Vec<StatusCode>)> {
    let read = |server: &mut Server, client: &mut Client, attribute_id: u32| -> Vec<StatusCode> {
        let nodes_to_read = cases
            .iter()
            .map(|case| ReadValueId { node_id: case.variable(), attribute_id, ..Default::default() })
            .collect();
        let request = ReadRequest {
            request_header: client.header(),
            timestamps_to_return: TimestampsToReturn::BOTH,
            nodes_to_read,
            ..Default::default()
        };
        client.call(server, &request).unwrap().results.iter().map(DataValue::status).collect()
    };
    let mut all = vec![
        (Path::ReadValue, read(server, client, 13)),
        (Path::ReadName, read(server, client, 4)),
        (Path::ReadRolePermissions, read(server, client, 24)),
    ];
    let nodes_to_write = cases
        .iter()
        .map(|case| WriteValue {
            node_id: case.variable(),
            attribute_id: 13,
            value: DataValue::new(2.0),
            ..Default::default()
        })
        .collect();
    let request = WriteRequest { request_header: client.header(), nodes_to_write };
    all.push((Path::Write, client.call(server, &request).unwrap().results));
    all.extend(browse(server, client, cases));
    all.extend(translate(server, client, cases));
    let call = |server: &mut Server, client: &mut Client, what: Vec<(NodeId, NodeId)>| -> Vec<StatusCode> {
        let methods_to_call = what
            .into_iter()
            .map(|(object_id, method_id)| CallMethodRequest { object_id, method_id, ..Default::default() })
            .collect();
        let request = CallRequest { request_header: client.header(), methods_to_call };
        client.call(server, &request).unwrap().results.iter().map(|result| result.status_code).collect()
    };
    let methods = cases.iter().map(|case| (FOLDER, case.method())).collect();
    all.push((Path::CallMethod, call(server, client, methods)));
    let objects = cases.iter().map(|case| (case.object(), NodeId::numeric(1, OPEN_METHOD))).collect();
    all.push((Path::CallOnObject, call(server, client, objects)));
    all.extend(monitor(server, client, cases));
    let nodes_to_register: Vec<NodeId> = cases.iter().map(Case::variable).collect();
    let request = RegisterNodesRequest { request_header: client.header(), nodes_to_register };
    let registered = client.call(server, &request).unwrap().registered_node_ids;
    let echoed = cases.iter().zip(&registered).map(|(case, id)| match *id == case.variable() {
        true => GOOD,
        false => StatusCode::BAD_UNEXPECTED_ERROR,
    });
    all.push((Path::Register, echoed.collect()));
    all
}

fn browse(server: &mut Server, client: &mut Client, cases: &[Case]) -> Vec<(Path, Vec<StatusCode>)> {
    let description = |node_id: NodeId| BrowseDescription {
        node_id,
        include_subtypes: true,
        result_mask: 63,
        ..Default::default()
    };
    let mut request = BrowseRequest {
        request_header: client.header(),
        nodes_to_browse: cases.iter().map(|case| description(case.object())).collect(),
        ..Default::default()
    };
    let from =
        client.call(server, &request).unwrap().results.iter().map(|result| result.status_code).collect();
    request.request_header = client.header();
    request.nodes_to_browse = vec![description(FOLDER)];
    let whole = client.call(server, &request).unwrap().results.remove(0);
    let mut targets: BTreeSet<NodeId> = BTreeSet::new();
    targets.extend(whole.references.iter().map(|reference| reference.node_id.node_id.clone()));
    // The same in small steps.
    request.request_header = client.header();
    request.requested_max_references_per_node = 7;
    let mut part = client.call(server, &request).unwrap().results.remove(0);
    let mut stepwise: BTreeSet<NodeId> = BTreeSet::new();
    loop {
        stepwise.extend(part.references.iter().map(|reference| reference.node_id.node_id.clone()));
        if part.continuation_point.as_bytes().is_empty() {
            break;
        }
        let next = BrowseNextRequest {
            request_header: client.header(),
            release_continuation_points: false,
            continuation_points: vec![part.continuation_point],
        };
        part = client.call(server, &next).unwrap().results.remove(0);
    }
    let seen = |set: &BTreeSet<NodeId>| -> Vec<StatusCode> {
        let is_seen = |case: &Case| {
            // All three nodes of a case are visible, or none.
            let seen = [case.variable(), case.method(), case.object()].map(|id| set.contains(&id));
            assert!(seen == [true; 3] || seen == [false; 3], "{seen:?} {:?}", case.rules);
            if seen[0] { GOOD } else { StatusCode::BAD_NODE_ID_UNKNOWN }
        };
        cases.iter().map(is_seen).collect()
    };
    vec![(Path::BrowseFrom, from), (Path::BrowseTo, seen(&targets)), (Path::BrowseNext, seen(&stepwise))]
}

fn translate(server: &mut Server, client: &mut Client, cases: &[Case]) -> Vec<(Path, Vec<StatusCode>)> {
    let mut run = |paths: Vec<(NodeId, QualifiedName)>| -> Vec<StatusCode> {
        let path = |(starting_node, target_name)| BrowsePath {
            starting_node,
            relative_path: RelativePath {
                elements: vec![RelativePathElement {
                    include_subtypes: true,
                    target_name,
                    ..Default::default()
                }],
            },
        };
        let request = TranslateBrowsePathsToNodeIdsRequest {
            request_header: client.header(),
            browse_paths: paths.into_iter().map(path).collect(),
        };
        client.call(server, &request).unwrap().results.iter().map(|result| result.status_code).collect()
    };
    let nowhere = QualifiedName::new(1, "nowhere");
    let from = run(cases.iter().map(|case| (case.object(), nowhere.clone())).collect());
    let name = |case: &Case| QualifiedName::new(1, format!("o{}", case.number));
    let to = run(cases.iter().map(|case| (FOLDER, name(case))).collect());
    vec![(Path::TranslateFrom, from), (Path::TranslateTo, to)]
}

/// A subscription with an item for the variable of each case, and the statuses of the items.
fn subscribe(server: &mut Server, client: &mut Client, cases: &[Case]) -> (u32, Vec<StatusCode>) {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 10,
        publishing_enabled: true,
        ..Default::default()
    };
    let subscription_id = client.call(server, &request).unwrap().subscription_id;
    let item = |case: &Case| MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId { node_id: case.variable(), attribute_id: 13, ..Default::default() },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: case.number,
            sampling_interval: 100.0,
            // Both kinds: the newest value directly from its slot, and a queue.
            queue_size: 1 + case.number % 2,
            discard_oldest: true,
            ..Default::default()
        },
    };
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: cases.iter().map(item).collect(),
    };
    let created = client.call(server, &request).unwrap().results;
    (subscription_id, created.iter().map(|result| result.status_code).collect())
}

fn unsubscribe(server: &mut Server, client: &mut Client, subscription_id: u32) {
    let request = DeleteSubscriptionsRequest {
        request_header: client.header(),
        subscription_ids: vec![subscription_id],
    };
    assert_eq!(client.call(server, &request).unwrap().results, [GOOD]);
}

/// The next message, which must exist.
fn message(server: &mut Server, client: &mut Client) -> NotificationMessage {
    let request_header = client.header();
    let publish = PublishRequest { request_header, ..Default::default() };
    let publish = client.send(server, PublishRequest::BINARY_ENCODING_ID, &publish);
    server.pass(Duration::from_millis(200));
    client.drain(server);
    client.response::<PublishResponse>(publish).unwrap().unwrap().notification_message
}

/// The next message, by the numbers of the cases.
fn told(server: &mut Server, client: &mut Client) -> BTreeMap<u32, DataValue> {
    let mut values: BTreeMap<u32, DataValue> = BTreeMap::new();
    for data in &message(server, client).notification_data {
        for item in data.decode::<DataChangeNotification>().unwrap().monitored_items {
            let is_empty = item.value.value.as_ref().is_none_or(taktwerk_types::Variant::is_empty);
            let is_refusal = item.value.status().is_bad();
            assert_eq!(is_empty, is_refusal, "a refusal has no value, and a value is no refusal");
            assert!(values.insert(item.client_handle, item.value).is_none(), "told twice");
        }
    }
    values
}

fn monitor(server: &mut Server, client: &mut Client, cases: &[Case]) -> Vec<(Path, Vec<StatusCode>)> {
    let (subscription_id, created) = subscribe(server, client, cases);
    let first = if created.contains(&GOOD) { told(server, client) } else { BTreeMap::new() };
    let sample = |(case, created): (&Case, &StatusCode)| match first.get(&case.number) {
        Some(value) => value.status(),
        None => *created,
    };
    let samples = cases.iter().zip(&created).map(sample).collect();
    unsubscribe(server, client, subscription_id);
    vec![(Path::Monitor, created), (Path::FirstSample, samples)]
}

/// Creates a subscription while everything is readable, and receives the first values.
fn subscribe_to_all(server: &mut Server, client: &mut Client, cases: &[Case]) -> u32 {
    let encrypted = MessageSecurityMode::SignAndEncrypt;
    server.shard.grant(&client.token, vec![READER], encrypted, server.now);
    let (subscription_id, created) = subscribe(server, client, cases);
    assert!(created.iter().all(|status| *status == GOOD));
    let first = told(server, client);
    assert!(cases.iter().all(|case| first[&case.number].status() == GOOD));
    subscription_id
}

/// Gives every variable a new value. Returns it.
fn change(server: &Server, cases: &[Case], count: u32) -> DataValue {
    let value = DataValue::new(1000.0 + f64::from(count));
    for case in cases {
        let variable = server.space.variable(&case.variable()).unwrap();
        variable.set_at(1000.0 + f64::from(count), server.now.utc);
    }
    value
}

/// Each item must have reported the present value or a status.
fn statuses(told: &BTreeMap<u32, DataValue>, cases: &[Case], newest: &DataValue) -> Vec<StatusCode> {
    let status = |case: &Case| {
        let value = &told[&case.number];
        assert!(value.status() != GOOD || value.value == newest.value, "an old value: {value:?}");
        value.status()
    };
    cases.iter().map(status).collect()
}

/// Two paths after permissions were removed: the session's own, and a transfer from another session.
fn after_the_fact(
    server: &mut Server,
    [client, giver]: [&mut Client; 2],
    cases: &[Case],
    caller: &Caller,
    count: u32,
) -> Vec<(Path, Vec<StatusCode>)> {
    let mode = MessageSecurityMode::from_number(i32::from(caller.mode)).unwrap();
    let roles = || caller.roles.iter().map(|name| role_id(name)).collect();
    let own = subscribe_to_all(server, client, cases);
    server.shard.grant(&client.token, roles(), mode, server.now);
    let newest = change(server, cases, 2 * count);
    let later = statuses(&told(server, client), cases, &newest);
    unsubscribe(server, client, own);
    let other = subscribe_to_all(server, giver, cases);
    let newest = change(server, cases, 2 * count + 1);
    let request = TransferSubscriptionsRequest {
        request_header: client.header(),
        subscription_ids: vec![other],
        send_initial_values: true,
    };
    let result = client.call(server, &request).unwrap().results.remove(0);
    // Earlier messages could be republished, so none must be available.
    assert_eq!((result.status_code, result.available_sequence_numbers), (GOOD, Vec::new()));
    // The previous session receives only the notification of the transfer.
    let last = message(server, giver).notification_data;
    let heard: Vec<_> =
        last.iter().map(|data| data.decode::<StatusChangeNotification>().unwrap().status).collect();
    assert_eq!(heard, [StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED]);
    let taken = statuses(&told(server, client), cases, &newest);
    unsubscribe(server, client, other);
    vec![(Path::LaterSample, later), (Path::Transfer, taken)]
}

#[test]
fn every_access_path_agrees_with_the_model() {
    let cases = cases();
    let mut server = server(&cases);
    let mut client = server.session();
    let mut giver = server.session();
    let mut cells = 0;
    let mut answers: BTreeMap<StatusCode, u32> = BTreeMap::new();
    for (count, caller) in (0..).zip(callers()) {
        let mode = MessageSecurityMode::from_number(i32::from(caller.mode)).unwrap();
        let roles: Vec<NodeId> = caller.roles.iter().map(|name| role_id(name)).collect();
        let rights = server.space.rights(&roles, mode);
        server.shard.grant(&client.token, roles, mode, server.now);
        let mut all = observe(&mut server, &mut client, &cases);
        all.extend(in_process(&server, &rights, &cases));
        all.extend(after_the_fact(&mut server, [&mut client, &mut giver], &cases, &caller, count));
        for (path, observed) in all {
            for (case, observed) in cases.iter().zip(observed) {
                let expected = answer(&caller, &case.rules, path);
                assert_eq!(observed, expected, "{path:?} {caller:?} {:?}", case.rules);
                cells += 1;
                *answers.entry(observed).or_default() += 1;
            }
        }
    }
    assert!(cells >= 5_000, "{cells}");
    // A matrix with only refusals would prove nothing.
    for status in [
        GOOD,
        StatusCode::BAD_USER_ACCESS_DENIED,
        StatusCode::BAD_NODE_ID_UNKNOWN,
        StatusCode::BAD_SECURITY_MODE_INSUFFICIENT,
    ] {
        assert!(answers.get(&status).is_some_and(|count| *count > 300), "{status} {answers:?}");
    }
}
