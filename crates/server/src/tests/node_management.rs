//! AddNodes, AddReferences, DeleteNodes, DeleteReferences.

use super::attribute::{add, read, variable};
use super::*;
use crate::authorization::{Access, Authorization, IdentityRule, role::well_known};
use schema::{
    AddNodesItem, AddNodesRequest, AddNodesResult, AddReferencesItem, AddReferencesRequest,
    BrowseDescription, BrowseDirection, BrowseRequest, DeleteNodesItem, DeleteNodesRequest,
    DeleteReferencesItem, DeleteReferencesRequest, GenericAttributeValue, GenericAttributes,
    NodeAttributesMask, NodeClass, ObjectAttributes, PermissionType, ReferenceDescription,
    VariableAttributes, WriteRequest, WriteValue,
};
use taktwerk_schema::ids::{
    data_type_ids, object_ids, object_type_ids, reference_type_ids as r, variable_ids, variable_type_ids,
};
use taktwerk_types::{
    BuiltInType, DataValue, ExpandedNodeId, ExtensionObject, LocalizedText, QualifiedName, UaString, Variant,
};

pub(super) fn server() -> Server {
    Server::with(|config| config.node_management = true)
}

pub(super) fn expanded(id: impl Into<NodeId>) -> ExpandedNodeId {
    ExpandedNodeId::from(id.into())
}

pub(super) fn object(id: NodeId, name: &str) -> AddNodesItem {
    AddNodesItem {
        parent_node_id: expanded(object_ids::OBJECTS_FOLDER),
        reference_type_id: r::ORGANIZES.into(),
        requested_new_node_id: expanded(id),
        browse_name: QualifiedName::new(1, name),
        node_class: NodeClass::OBJECT,
        node_attributes: ExtensionObject::NULL,
        type_definition: expanded(object_type_ids::FOLDER_TYPE),
    }
}

pub(super) fn double(id: NodeId, parent: impl Into<NodeId>, name: &str, value: f64) -> AddNodesItem {
    let attributes = VariableAttributes {
        specified_attributes: (NodeAttributesMask::VALUE.0
            | NodeAttributesMask::DATA_TYPE.0
            | NodeAttributesMask::VALUE_RANK.0
            | NodeAttributesMask::ACCESS_LEVEL.0) as u32,
        value: value.into(),
        data_type: data_type_ids::DOUBLE.into(),
        value_rank: -1,
        access_level: 3,
        ..Default::default()
    };
    AddNodesItem {
        parent_node_id: expanded(parent.into()),
        reference_type_id: r::HAS_COMPONENT.into(),
        node_class: NodeClass::VARIABLE,
        node_attributes: ExtensionObject::new(&attributes),
        type_definition: expanded(variable_type_ids::BASE_DATA_VARIABLE_TYPE),
        ..object(id, name)
    }
}

pub(super) fn add_all(
    client: &mut Client,
    server: &mut Server,
    nodes: Vec<AddNodesItem>,
) -> Vec<AddNodesResult> {
    let request = AddNodesRequest { request_header: client.header(), nodes_to_add: nodes };
    client.call(server, &request).unwrap().results
}

pub(super) fn add_one(client: &mut Client, server: &mut Server, node: AddNodesItem) -> AddNodesResult {
    add_all(client, server, vec![node]).remove(0)
}

pub(super) fn delete(client: &mut Client, server: &mut Server, ids: &[NodeId]) -> Vec<StatusCode> {
    let nodes_to_delete =
        ids.iter().map(|id| DeleteNodesItem { node_id: id.clone(), delete_target_references: true });
    let request =
        DeleteNodesRequest { request_header: client.header(), nodes_to_delete: nodes_to_delete.collect() };
    client.call(server, &request).unwrap().results
}

pub(super) fn reference(source: NodeId, kind: u32, target: NodeId) -> AddReferencesItem {
    AddReferencesItem {
        source_node_id: source,
        reference_type_id: kind.into(),
        is_forward: true,
        target_server_uri: UaString::NULL,
        target_node_id: target.into(),
        target_node_class: NodeClass::UNSPECIFIED,
    }
}

pub(super) fn refer(client: &mut Client, server: &mut Server, item: AddReferencesItem) -> StatusCode {
    let request = AddReferencesRequest { request_header: client.header(), references_to_add: vec![item] };
    client.call(server, &request).unwrap().results.remove(0)
}

pub(super) fn unrefer(
    client: &mut Client,
    server: &mut Server,
    source: NodeId,
    kind: u32,
    target: NodeId,
) -> StatusCode {
    let item = DeleteReferencesItem {
        source_node_id: source,
        reference_type_id: kind.into(),
        is_forward: true,
        target_node_id: target.into(),
        delete_bidirectional: true,
    };
    let request =
        DeleteReferencesRequest { request_header: client.header(), references_to_delete: vec![item] };
    client.call(server, &request).unwrap().results.remove(0)
}

pub(super) fn browse(
    client: &mut Client,
    server: &mut Server,
    id: NodeId,
    direction: BrowseDirection,
) -> Vec<ReferenceDescription> {
    let what =
        BrowseDescription { node_id: id, browse_direction: direction, result_mask: 63, ..Default::default() };
    let request =
        BrowseRequest { request_header: client.header(), nodes_to_browse: vec![what], ..Default::default() };
    client.call(server, &request).unwrap().results.remove(0).references
}

pub(super) fn write(
    client: &mut Client,
    server: &mut Server,
    id: NodeId,
    value: impl Into<Variant>,
) -> StatusCode {
    let value = DataValue { value: Some(value.into()), ..Default::default() };
    let what = WriteValue { node_id: id, attribute_id: 13, value, ..Default::default() };
    let request = WriteRequest { request_header: client.header(), nodes_to_write: vec![what] };
    client.call(server, &request).unwrap().results.remove(0)
}

#[test]
fn without_the_option_the_services_do_not_exist() {
    let mut server = Server::new();
    let mut client = server.session();
    let request =
        AddNodesRequest { request_header: client.header(), nodes_to_add: vec![object(NodeId::NULL, "a")] };
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_SERVICE_UNSUPPORTED);
}

#[test]
fn a_variable_is_added_read_written_and_deleted() {
    let mut server = server();
    let mut client = server.session();
    let id = NodeId::string(1, "Level");
    let result =
        add_one(&mut client, &mut server, double(id.clone(), object_ids::OBJECTS_FOLDER, "Level", 1.5));
    assert_eq!((result.status_code, &result.added_node_id), (StatusCode::GOOD, &id));
    assert_eq!(read(&mut client, &mut server, id.clone(), 13).value, Some(1.5.into()));
    assert_eq!(write(&mut client, &mut server, id.clone(), 2.5), StatusCode::GOOD);
    assert_eq!(read(&mut client, &mut server, id.clone(), 13).value, Some(2.5.into()));
    assert_eq!(server.used(Category::AddedNodeCount), 1);
    let up = browse(&mut client, &mut server, id.clone(), BrowseDirection::INVERSE);
    assert_eq!(up.len(), 1);
    assert_eq!(up[0].reference_type_id, r::HAS_COMPONENT.into());
    assert_eq!(delete(&mut client, &mut server, std::slice::from_ref(&id)), [StatusCode::GOOD]);
    assert_eq!(read(&mut client, &mut server, id, 13).status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!((server.used(Category::AddedNodeCount), server.used(Category::AddedNodes)), (0, 0));
}

#[test]
fn the_server_chooses_ids_in_the_requested_namespace() {
    let mut server = server();
    let namespace = server.space.add_namespace("urn:plant");
    let mut client = server.session();
    let first = add_one(&mut client, &mut server, object(NodeId::NULL, "a")).added_node_id;
    let second = add_one(&mut client, &mut server, object(NodeId::numeric(namespace, 0), "b")).added_node_id;
    assert_eq!((first.namespace_index, second.namespace_index), (1, namespace));
    assert!(!first.is_null() && first != second);
    let by_uri =
        ExpandedNodeId { node_id: NodeId::numeric(0, 7), namespace_uri: "urn:plant".into(), server_index: 0 };
    let item = AddNodesItem { requested_new_node_id: by_uri, ..object(NodeId::NULL, "c") };
    assert_eq!(add_one(&mut client, &mut server, item).added_node_id, NodeId::numeric(namespace, 7));
}

#[test]
fn every_status_code_of_add_nodes() {
    let mut server = server();
    let mut client = server.session();
    let base = || object(NodeId::string(1, "new"), "new");
    assert_eq!(
        add_one(&mut client, &mut server, object(NodeId::string(1, "there"), "there")).status_code,
        StatusCode::GOOD
    );
    let remote = |server_index| ExpandedNodeId { server_index, ..expanded(object_ids::OBJECTS_FOLDER) };
    let wrong_value = VariableAttributes {
        specified_attributes: (NodeAttributesMask::VALUE.0 | NodeAttributesMask::DATA_TYPE.0) as u32,
        value: "text".into(),
        data_type: data_type_ids::DOUBLE.into(),
        ..Default::default()
    };
    let cases: Vec<(AddNodesItem, StatusCode)> = vec![
        (
            AddNodesItem { parent_node_id: expanded(NodeId::string(1, "x")), ..base() },
            StatusCode::BAD_PARENT_NODE_ID_INVALID,
        ),
        (AddNodesItem { parent_node_id: remote(1), ..base() }, StatusCode::BAD_PARENT_NODE_ID_INVALID),
        (
            AddNodesItem { reference_type_id: NodeId::NULL, ..base() },
            StatusCode::BAD_REFERENCE_TYPE_ID_INVALID,
        ),
        (
            AddNodesItem { reference_type_id: object_ids::SERVER.into(), ..base() },
            StatusCode::BAD_REFERENCE_TYPE_ID_INVALID,
        ),
        (
            AddNodesItem { reference_type_id: r::HIERARCHICAL_REFERENCES.into(), ..base() },
            StatusCode::BAD_REFERENCE_NOT_ALLOWED,
        ),
        (
            AddNodesItem { reference_type_id: r::HAS_TYPE_DEFINITION.into(), ..base() },
            StatusCode::BAD_REFERENCE_NOT_ALLOWED,
        ),
        (
            AddNodesItem { reference_type_id: r::HAS_PROPERTY.into(), ..base() },
            StatusCode::BAD_REFERENCE_NOT_ALLOWED,
        ),
        (
            AddNodesItem { reference_type_id: r::HAS_SUBTYPE.into(), ..base() },
            StatusCode::BAD_REFERENCE_NOT_ALLOWED,
        ),
        (
            AddNodesItem { requested_new_node_id: expanded(NodeId::numeric(0, 60_000)), ..base() },
            StatusCode::BAD_NODE_ID_REJECTED,
        ),
        (
            AddNodesItem { requested_new_node_id: expanded(NodeId::numeric(9, 1)), ..base() },
            StatusCode::BAD_NODE_ID_REJECTED,
        ),
        (
            AddNodesItem { requested_new_node_id: expanded(NodeId::string(1, "x".repeat(600))), ..base() },
            StatusCode::BAD_NODE_ID_REJECTED,
        ),
        (AddNodesItem { requested_new_node_id: remote(1), ..base() }, StatusCode::BAD_NODE_ID_REJECTED),
        (
            AddNodesItem { requested_new_node_id: expanded(NodeId::string(1, "there")), ..base() },
            StatusCode::BAD_NODE_ID_EXISTS,
        ),
        (AddNodesItem { node_class: NodeClass::UNSPECIFIED, ..base() }, StatusCode::BAD_NODE_CLASS_INVALID),
        (AddNodesItem { node_class: NodeClass(3), ..base() }, StatusCode::BAD_NODE_CLASS_INVALID),
        (
            AddNodesItem { browse_name: QualifiedName::default(), ..base() },
            StatusCode::BAD_BROWSE_NAME_INVALID,
        ),
        (
            AddNodesItem { browse_name: QualifiedName::new(77, "new"), ..base() },
            StatusCode::BAD_BROWSE_NAME_INVALID,
        ),
        (
            AddNodesItem { browse_name: QualifiedName::new(1, "n".repeat(600)), ..base() },
            StatusCode::BAD_BROWSE_NAME_INVALID,
        ),
        (
            AddNodesItem { browse_name: QualifiedName::new(1, "there"), ..base() },
            StatusCode::BAD_BROWSE_NAME_DUPLICATED,
        ),
        (
            AddNodesItem { type_definition: expanded(NodeId::NULL), ..base() },
            StatusCode::BAD_TYPE_DEFINITION_INVALID,
        ),
        (
            AddNodesItem { type_definition: expanded(variable_type_ids::BASE_DATA_VARIABLE_TYPE), ..base() },
            StatusCode::BAD_TYPE_DEFINITION_INVALID,
        ),
        (
            AddNodesItem {
                type_definition: expanded(object_type_ids::STATE_MACHINE_TYPE),
                node_class: NodeClass::VARIABLE,
                ..base()
            },
            StatusCode::BAD_TYPE_DEFINITION_INVALID,
        ),
        (
            AddNodesItem {
                type_definition: expanded(variable_type_ids::BASE_VARIABLE_TYPE),
                node_class: NodeClass::VARIABLE,
                ..base()
            },
            StatusCode::BAD_TYPE_DEFINITION_INVALID,
        ),
        (
            AddNodesItem { node_class: NodeClass::OBJECT_TYPE, ..base() },
            StatusCode::BAD_TYPE_DEFINITION_INVALID,
        ),
        (
            AddNodesItem { node_attributes: ExtensionObject::new(&VariableAttributes::default()), ..base() },
            StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
        ),
        (
            AddNodesItem {
                node_attributes: ExtensionObject::new(&wrong_value),
                ..double(NodeId::NULL, object_ids::OBJECTS_FOLDER, "new", 0.0)
            },
            StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
        ),
    ];
    let used = server.used(Category::AddedNodes);
    for (item, expected) in cases {
        let result = add_one(&mut client, &mut server, item.clone());
        assert_eq!(result.status_code, expected, "{item:?}");
        assert!(result.added_node_id.is_null());
    }
    // Refused nodes cost nothing.
    assert_eq!(server.used(Category::AddedNodes), used);
    let request = AddNodesRequest { request_header: client.header(), nodes_to_add: vec![] };
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
}

#[test]
fn generic_attributes_are_accepted() {
    let mut server = server();
    let mut client = server.session();
    let generic = GenericAttributes {
        specified_attributes: NodeAttributesMask::DISPLAY_NAME.0 as u32,
        display_name: LocalizedText::from_text("Shown"),
        attribute_values: vec![
            GenericAttributeValue { attribute_id: 13, value: 7i32.into() },
            GenericAttributeValue { attribute_id: 14, value: NodeId::from(data_type_ids::INT32).into() },
            GenericAttributeValue { attribute_id: 15, value: (-1i32).into() },
        ],
        ..Default::default()
    };
    let id = NodeId::numeric(1, 500);
    let item = AddNodesItem {
        node_attributes: ExtensionObject::new(&generic),
        ..double(id.clone(), object_ids::OBJECTS_FOLDER, "g", 0.0)
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
    assert_eq!(read(&mut client, &mut server, id.clone(), 13).value, Some(7i32.into()));
    assert_eq!(read(&mut client, &mut server, id, 4).value, Some(LocalizedText::from_text("Shown").into()));
}

#[test]
fn an_instance_is_added_and_deleted_with_its_mandatory_parts() {
    let mut server = server();
    let mut client = server.session();
    let id = NodeId::string(1, "Level");
    let item = AddNodesItem {
        type_definition: expanded(variable_type_ids::ANALOG_ITEM_TYPE),
        ..double(id.clone(), object_ids::OBJECTS_FOLDER, "Level", 1.0)
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
    let range = NodeId::string(1, "Level/EURange");
    assert_eq!(read(&mut client, &mut server, range.clone(), 1).value, Some(range.clone().into()));
    assert_eq!(server.used(Category::AddedNodeCount), 2);
    // A client may list the parts as well: each operation has a result before they are deleted.
    assert_eq!(delete(&mut client, &mut server, &[id.clone(), range.clone()]), [StatusCode::GOOD; 2]);
    let item = AddNodesItem {
        type_definition: expanded(variable_type_ids::ANALOG_ITEM_TYPE),
        ..double(id.clone(), object_ids::OBJECTS_FOLDER, "Level", 1.0)
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
    assert_eq!(delete(&mut client, &mut server, &[id]), [StatusCode::GOOD]);
    assert_eq!(read(&mut client, &mut server, range, 1).status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!((server.used(Category::AddedNodeCount), server.used(Category::AddedNodes)), (0, 0));
}

#[test]
fn a_part_with_another_parent_stays() {
    let mut server = server();
    let mut client = server.session();
    let (one, two, part) = (NodeId::string(1, "one"), NodeId::string(1, "two"), NodeId::string(1, "part"));
    let nodes = vec![
        object(one.clone(), "one"),
        object(two.clone(), "two"),
        double(part.clone(), one.clone(), "part", 1.0),
    ];
    add_all(&mut client, &mut server, nodes);
    assert_eq!(
        refer(&mut client, &mut server, reference(two.clone(), r::HAS_COMPONENT, part.clone())),
        StatusCode::GOOD
    );
    delete(&mut client, &mut server, &[one]);
    assert!(server.space.contains(&part));
    delete(&mut client, &mut server, &[two]);
    assert!(!server.space.contains(&part));
    assert_eq!(server.used(Category::AddedNodes), 0);
}

#[test]
fn nodes_of_the_application_are_protected() {
    let mut server = server();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let own = NodeId::numeric(1, 1);
    let mut client = server.session();
    let ids =
        [own.clone(), object_ids::SERVER.into(), NodeId::NULL, NodeId::string(1, "x"), NodeId::numeric(9, 9)];
    let results = delete(&mut client, &mut server, &ids);
    assert_eq!(results[..2], [StatusCode::BAD_NO_DELETE_RIGHTS; 2]);
    assert_eq!(results[2], StatusCode::BAD_NODE_ID_INVALID);
    assert_eq!(results[3], StatusCode::BAD_NODE_ID_UNKNOWN);
    let objects = || NodeId::from(object_ids::OBJECTS_FOLDER);
    assert_eq!(
        unrefer(&mut client, &mut server, objects(), r::HAS_COMPONENT, own.clone()),
        StatusCode::BAD_NO_DELETE_RIGHTS
    );
    assert_eq!(
        unrefer(&mut client, &mut server, objects(), r::ORGANIZES, object_ids::SERVER.into()),
        StatusCode::BAD_NO_DELETE_RIGHTS
    );
    // RolePermissions can allow it.
    let anonymous = NodeId::numeric(0, well_known::ANONYMOUS);
    server.space.set_access(&own, Access::roles([(anonymous, PermissionType::ALL_BITS)])).unwrap();
    assert_eq!(delete(&mut client, &mut server, &[own]), [StatusCode::GOOD]);
}

#[test]
fn permissions_are_checked() {
    let mut server = Server::with(|config| {
        config.node_management = true;
        config.authorization = Authorization::suggested();
    });
    let mut client = server.session();
    let status = |client: &mut Client, server: &mut Server, item| add_one(client, server, item).status_code;
    assert_eq!(
        status(&mut client, &mut server, object(NodeId::NULL, "a")),
        StatusCode::BAD_USER_ACCESS_DENIED
    );
    let mut authorization = Authorization::suggested();
    let admin = authorization.role_mut("ConfigureAdmin").unwrap();
    admin.identities.push(IdentityRule::Anonymous);
    let (shared, utc) = (Arc::clone(server.shard.shared()), server.now.utc);
    shared.set_authorization(authorization, utc);
    client.exchange(&mut server);
    assert_eq!(status(&mut client, &mut server, object(NodeId::string(1, "a"), "a")), StatusCode::GOOD);
    assert_eq!(delete(&mut client, &mut server, &[NodeId::string(1, "a")]), [StatusCode::GOOD]);
}

#[test]
fn nodes_and_their_values_are_limited_in_number_and_bytes() {
    let mut server = Server::with(|config| {
        config.node_management = true;
        config.limits.added_nodes_max = 3;
        config.limits.added_node_bytes_max = 8 << 10;
    });
    let mut client = server.session();
    let nodes = (0..5).map(|number| object(NodeId::NULL, &format!("n{number}"))).collect();
    let results = add_all(&mut client, &mut server, nodes);
    let good = results.iter().filter(|result| result.status_code == StatusCode::GOOD).count();
    assert_eq!(good, 3);
    assert_eq!(results[4].status_code, StatusCode::BAD_RESOURCE_UNAVAILABLE);
    let ids: Vec<NodeId> = results.into_iter().take(3).map(|result| result.added_node_id).collect();
    assert_eq!(delete(&mut client, &mut server, &ids), [StatusCode::GOOD; 3]);
    let text = VariableAttributes {
        specified_attributes: (NodeAttributesMask::VALUE.0
            | NodeAttributesMask::DATA_TYPE.0
            | NodeAttributesMask::VALUE_RANK.0
            | NodeAttributesMask::ACCESS_LEVEL.0) as u32,
        value: "short".into(),
        data_type: data_type_ids::STRING.into(),
        value_rank: -1,
        access_level: 3,
        ..Default::default()
    };
    let id = NodeId::string(1, "text");
    let item = AddNodesItem {
        node_attributes: ExtensionObject::new(&text),
        ..double(id.clone(), object_ids::OBJECTS_FOLDER, "text", 0.0)
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
    assert_eq!(write(&mut client, &mut server, id.clone(), "x".repeat(1000)), StatusCode::GOOD);
    assert_eq!(
        write(&mut client, &mut server, id.clone(), "x".repeat(10_000)),
        StatusCode::BAD_OUT_OF_MEMORY
    );
    let named = ObjectAttributes {
        specified_attributes: NodeAttributesMask::DESCRIPTION.0 as u32,
        description: LocalizedText::from_text("d".repeat(4000)),
        ..Default::default()
    };
    let item = |name: &str| AddNodesItem {
        node_attributes: ExtensionObject::new(&named),
        ..object(NodeId::NULL, name)
    };
    assert_eq!(add_one(&mut client, &mut server, item("a")).status_code, StatusCode::GOOD);
    assert_eq!(add_one(&mut client, &mut server, item("b")).status_code, StatusCode::BAD_OUT_OF_MEMORY);
}

#[test]
fn names_stay_unique_below_a_large_parent() {
    let mut server = server();
    let mut client = server.session();
    let folder = NodeId::string(1, "folder");
    add_one(&mut client, &mut server, object(folder.clone(), "folder"));
    let id = |number: u32| NodeId::numeric(1, 10_000 + number);
    let nodes = (0..500).map(|number| double(id(number), folder.clone(), &format!("n{number}"), 0.0));
    let results = add_all(&mut client, &mut server, nodes.collect());
    assert!(results.iter().all(|result| result.status_code == StatusCode::GOOD));
    let again = |number: u32| double(NodeId::NULL, folder.clone(), &format!("n{number}"), 0.0);
    let status =
        |client: &mut Client, server: &mut Server, number| add_one(client, server, again(number)).status_code;
    assert_eq!(status(&mut client, &mut server, 499), StatusCode::BAD_BROWSE_NAME_DUPLICATED);
    // Names become free when nodes and references are deleted.
    delete(&mut client, &mut server, &[id(499)]);
    assert_eq!(status(&mut client, &mut server, 499), StatusCode::GOOD);
    assert_eq!(unrefer(&mut client, &mut server, folder.clone(), r::HAS_COMPONENT, id(3)), StatusCode::GOOD);
    assert_eq!(status(&mut client, &mut server, 3), StatusCode::GOOD);
    assert_eq!(
        refer(&mut client, &mut server, reference(folder, r::HAS_COMPONENT, id(3))),
        StatusCode::BAD_REFERENCE_NOT_ALLOWED
    );
}

#[test]
fn the_limit_of_operations_is_published() {
    let mut server = Server::with(|config| {
        config.node_management = true;
        config.limits.nodes_per_node_management_max = 2;
    });
    let mut client = server.session();
    let limit = variable_ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_NODE_MANAGEMENT;
    assert_eq!(read(&mut client, &mut server, limit.into(), 13).value, Some(2u32.into()));
    let nodes_to_add = (0..3).map(|number| object(NodeId::NULL, &format!("n{number}"))).collect();
    let request = AddNodesRequest { request_header: client.header(), nodes_to_add };
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_TOO_MANY_OPERATIONS);
}

/// A type whose members are of its own type has instances without end.
#[test]
fn a_type_that_contains_itself_costs_what_it_adds_and_is_refused() {
    let mut server = server();
    let mut client = server.session();
    let kind = NodeId::string(1, "Tree");
    let item = AddNodesItem {
        parent_node_id: expanded(object_type_ids::BASE_OBJECT_TYPE),
        reference_type_id: r::HAS_SUBTYPE.into(),
        node_class: NodeClass::OBJECT_TYPE,
        type_definition: ExpandedNodeId::default(),
        ..object(kind.clone(), "Tree")
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
    for name in ["Left", "Right"] {
        let id = NodeId::string(1, name);
        let part = AddNodesItem {
            parent_node_id: expanded(kind.clone()),
            reference_type_id: r::HAS_COMPONENT.into(),
            type_definition: expanded(kind.clone()),
            ..object(id.clone(), name)
        };
        assert_eq!(add_one(&mut client, &mut server, part).status_code, StatusCode::GOOD);
        let rule = reference(id, r::HAS_MODELLING_RULE, object_ids::MODELLING_RULE_MANDATORY.into());
        assert_eq!(refer(&mut client, &mut server, rule), StatusCode::GOOD);
    }
    let nodes = server.space.node_count();
    server.shard.take_work();
    let item = AddNodesItem { type_definition: expanded(kind), ..object(NodeId::string(1, "Oak"), "Oak") };
    let refused = add_one(&mut client, &mut server, item);
    assert_eq!(refused.status_code, StatusCode::BAD_RESOURCE_UNAVAILABLE);
    assert_eq!(server.space.node_count(), nodes, "nothing remains");
    assert!(server.shard.take_work().units >= 2_000 * 64);
}
