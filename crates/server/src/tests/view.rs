//! Browse, BrowseNext, TranslateBrowsePathsToNodeIds, RegisterNodes.

use super::*;
use schema::{
    BrowseDescription, BrowseDirection, BrowseNextRequest, BrowsePath, BrowseRequest, BrowseResult,
    NodeClass, RegisterNodesRequest, RelativePath, RelativePathElement, TranslateBrowsePathsToNodeIdsRequest,
    UnregisterNodesRequest, ViewDescription,
};
use taktwerk_schema::ids::{object_ids, reference_type_ids, variable_ids};
use taktwerk_types::{ByteString, QualifiedName};

fn description(id: u32) -> BrowseDescription {
    BrowseDescription {
        node_id: id.into(),
        browse_direction: BrowseDirection::FORWARD,
        result_mask: 63,
        ..Default::default()
    }
}

fn browse(client: &mut Client, server: &mut Server, max: u32, what: BrowseDescription) -> BrowseResult {
    let request = BrowseRequest {
        request_header: client.header(),
        requested_max_references_per_node: max,
        nodes_to_browse: vec![what],
        ..Default::default()
    };
    client.call(server, &request).unwrap().results.remove(0)
}

fn next(client: &mut Client, server: &mut Server, point: &ByteString, release: bool) -> Vec<BrowseResult> {
    let request = BrowseNextRequest {
        request_header: client.header(),
        release_continuation_points: release,
        continuation_points: vec![point.clone()],
    };
    client.call(server, &request).unwrap().results
}

#[test]
fn the_root_has_its_folders() {
    let mut server = Server::new();
    let mut client = server.session();
    let result = browse(&mut client, &mut server, 0, description(object_ids::ROOT_FOLDER));
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert!(result.continuation_point.is_null());
    let names: Vec<&str> =
        result.references.iter().map(|reference| reference.browse_name.name.as_str()).collect();
    assert!(names.starts_with(&["FolderType"]) || names.contains(&"Objects"), "{names:?}");
    let objects = result.references.iter().find(|reference| reference.browse_name.name == "Objects").unwrap();
    assert!(objects.is_forward);
    assert_eq!(objects.node_id.node_id, object_ids::OBJECTS_FOLDER.into());
    assert_eq!(objects.node_class, NodeClass::OBJECT);
    assert_eq!(objects.display_name.text.as_str(), "Objects");
    assert_eq!(objects.reference_type_id, reference_type_ids::ORGANIZES.into());
    assert_eq!(objects.type_definition.node_id, 61.into());
}

#[test]
fn masks_and_filters_apply() {
    let mut server = Server::new();
    let mut client = server.session();
    let mut what = description(object_ids::SERVER);
    what.node_class_mask = NodeClass::METHOD.0 as u32;
    what.result_mask = 0;
    let result = browse(&mut client, &mut server, 0, what.clone());
    assert!(result.references.len() >= 2);
    for reference in &result.references {
        assert!(reference.reference_type_id.is_null() && !reference.is_forward);
        assert!(reference.browse_name.is_null() && reference.display_name.text.is_null());
        assert_eq!(reference.node_class.0, 0);
    }
    what.node_class_mask = 0;
    what.reference_type_id = reference_type_ids::HIERARCHICAL_REFERENCES.into();
    assert!(browse(&mut client, &mut server, 0, what.clone()).references.is_empty());
    what.include_subtypes = true;
    assert!(browse(&mut client, &mut server, 0, what.clone()).references.len() > 10);
    what.browse_direction = BrowseDirection::INVERSE;
    assert_eq!(browse(&mut client, &mut server, 0, what.clone()).references.len(), 1);
    what.browse_direction = BrowseDirection(3);
    let status = |result: BrowseResult| result.status_code;
    assert_eq!(
        status(browse(&mut client, &mut server, 0, what.clone())),
        StatusCode::BAD_BROWSE_DIRECTION_INVALID
    );
    what.browse_direction = BrowseDirection::BOTH;
    what.reference_type_id = object_ids::SERVER.into();
    assert_eq!(
        status(browse(&mut client, &mut server, 0, what.clone())),
        StatusCode::BAD_REFERENCE_TYPE_ID_INVALID
    );
    what.reference_type_id = NodeId::NULL;
    what.node_id = NodeId::string(7, "nothing");
    assert_eq!(status(browse(&mut client, &mut server, 0, what.clone())), StatusCode::BAD_NODE_ID_UNKNOWN);
    what.node_id = NodeId::NULL;
    assert_eq!(status(browse(&mut client, &mut server, 0, what)), StatusCode::BAD_NODE_ID_INVALID);
}

#[test]
fn continuation_points_give_every_reference_once() {
    let mut server = Server::new();
    let mut client = server.session();
    let all = browse(&mut client, &mut server, 0, description(object_ids::SERVER)).references;
    for max in [1, 2, 3, 7, all.len() as u32] {
        let mut result = browse(&mut client, &mut server, max, description(object_ids::SERVER));
        let mut collected = Vec::new();
        loop {
            assert!(result.references.len() <= max as usize);
            collected.append(&mut result.references);
            if result.continuation_point.is_null() {
                break;
            }
            let point = result.continuation_point.clone();
            result = next(&mut client, &mut server, &point, false).remove(0);
            assert_eq!(result.status_code, StatusCode::GOOD);
            // A point can be used only once.
            let again = next(&mut client, &mut server, &point, false).remove(0);
            assert_eq!(again.status_code, StatusCode::BAD_CONTINUATION_POINT_INVALID);
        }
        assert_eq!(collected, all);
    }
}

#[test]
fn continuation_points_are_limited_and_released() {
    let mut server = Server::with(|config| config.limits.browse_continuation_points_max = 2);
    let mut client = server.session();
    let request = BrowseRequest {
        request_header: client.header(),
        requested_max_references_per_node: 1,
        nodes_to_browse: vec![description(object_ids::SERVER); 3],
        ..Default::default()
    };
    let results = client.call(&mut server, &request).unwrap().results;
    assert!(!results[0].continuation_point.is_null() && !results[1].continuation_point.is_null());
    assert_eq!(results[2].status_code, StatusCode::BAD_NO_CONTINUATION_POINTS);
    assert!(results[2].references.is_empty());
    // A later request replaces the oldest point.
    let newer = browse(&mut client, &mut server, 1, description(object_ids::SERVER));
    assert_eq!(newer.status_code, StatusCode::GOOD);
    let gone = next(&mut client, &mut server, &results[0].continuation_point, false).remove(0);
    assert_eq!(gone.status_code, StatusCode::BAD_CONTINUATION_POINT_INVALID);
    assert!(next(&mut client, &mut server, &results[1].continuation_point, true).is_empty());
    let released = next(&mut client, &mut server, &results[1].continuation_point, false).remove(0);
    assert_eq!(released.status_code, StatusCode::BAD_CONTINUATION_POINT_INVALID);
}

#[test]
fn a_folder_is_not_a_view_and_empty_requests_are_refused() {
    let mut server = Server::with(|config| config.limits.nodes_per_browse_max = 2);
    let mut client = server.session();
    let mut request = BrowseRequest { request_header: client.header(), ..Default::default() };
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
    request.nodes_to_browse = vec![description(object_ids::SERVER); 3];
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_TOO_MANY_OPERATIONS);
    request.nodes_to_browse.truncate(1);
    request.view = ViewDescription { view_id: object_ids::VIEWS_FOLDER.into(), ..Default::default() };
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_VIEW_ID_UNKNOWN);
}

fn element(name: &str) -> RelativePathElement {
    RelativePathElement {
        reference_type_id: reference_type_ids::HIERARCHICAL_REFERENCES.into(),
        include_subtypes: true,
        target_name: QualifiedName::new(0, name),
        ..Default::default()
    }
}

fn translate(
    client: &mut Client,
    server: &mut Server,
    start: NodeId,
    elements: Vec<RelativePathElement>,
) -> (StatusCode, Vec<NodeId>) {
    let path = BrowsePath { starting_node: start, relative_path: RelativePath { elements } };
    let request =
        TranslateBrowsePathsToNodeIdsRequest { request_header: client.header(), browse_paths: vec![path] };
    let result = client.call(server, &request).unwrap().results.remove(0);
    assert!(result.targets.iter().all(|target| target.remaining_path_index == u32::MAX));
    (result.status_code, result.targets.into_iter().map(|target| target.target_id.node_id).collect())
}

#[test]
fn browse_paths_are_followed() {
    let mut server = Server::new();
    let mut client = server.session();
    let root: NodeId = object_ids::ROOT_FOLDER.into();
    let path = vec![element("Objects"), element("Server"), element("ServerStatus"), element("CurrentTime")];
    let found = translate(&mut client, &mut server, root.clone(), path);
    let current_time: NodeId = variable_ids::SERVER_SERVER_STATUS_CURRENT_TIME.into();
    assert_eq!(found, (StatusCode::GOOD, vec![current_time.clone()]));
    // Inverse.
    let up = RelativePathElement { is_inverse: true, ..element("ServerStatus") };
    let found = translate(&mut client, &mut server, current_time, vec![up]);
    assert_eq!(found, (StatusCode::GOOD, vec![variable_ids::SERVER_SERVER_STATUS.into()]));
    // Without subtypes: the abstract type itself is never used.
    let exact = RelativePathElement { include_subtypes: false, ..element("Objects") };
    assert_eq!(translate(&mut client, &mut server, root.clone(), vec![exact]).0, StatusCode::BAD_NO_MATCH);
    // Any reference type.
    let any = RelativePathElement { reference_type_id: NodeId::NULL, ..element("Objects") };
    assert_eq!(translate(&mut client, &mut server, root.clone(), vec![any]).0, StatusCode::GOOD);
    for (start, elements, status) in [
        (root.clone(), vec![], StatusCode::BAD_NOTHING_TO_DO),
        (root.clone(), vec![element("Objects"), element("")], StatusCode::BAD_BROWSE_NAME_INVALID),
        (root.clone(), vec![element(""), element("Server")], StatusCode::BAD_BROWSE_NAME_INVALID),
        (root.clone(), vec![element("Nothing")], StatusCode::BAD_NO_MATCH),
        (NodeId::string(3, "x"), vec![element("Objects")], StatusCode::BAD_NODE_ID_UNKNOWN),
        (NodeId::NULL, vec![element("Objects")], StatusCode::BAD_NODE_ID_INVALID),
        (root, vec![element("Objects"); 100], StatusCode::BAD_QUERY_TOO_COMPLEX),
    ] {
        assert_eq!(translate(&mut client, &mut server, start, elements), (status, vec![]));
    }
}

#[test]
fn ids_that_cannot_be_nodes_are_not_registered() {
    let mut server = Server::new();
    let mut client = server.session();
    for id in [NodeId::NULL, NodeId::numeric(2, 1), NodeId::string(u16::MAX, "x")] {
        let request = RegisterNodesRequest {
            request_header: client.header(),
            nodes_to_register: vec![NodeId::numeric(0, 84), id],
        };
        assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_NODE_ID_INVALID);
    }
}

#[test]
fn registered_nodes_keep_their_ids() {
    let mut server = Server::new();
    let mut client = server.session();
    let nodes = vec![NodeId::string(1, "x"), NodeId::numeric(0, 84)];
    let request = RegisterNodesRequest { request_header: client.header(), nodes_to_register: nodes.clone() };
    assert_eq!(client.call(&mut server, &request).unwrap().registered_node_ids, nodes);
    let request = UnregisterNodesRequest { request_header: client.header(), nodes_to_unregister: nodes };
    client.call(&mut server, &request).unwrap();
    let request = UnregisterNodesRequest { request_header: client.header(), ..Default::default() };
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
}

#[test]
fn responses_respect_the_clients_limit() {
    let mut server = Server::new();
    let mut client = server.connect();
    let create = schema::CreateSessionRequest {
        request_header: client.header(),
        max_response_message_size: 2_000,
        ..Default::default()
    };
    client.token = client.call(&mut server, &create).unwrap().authentication_token;
    client.activate(&mut server).unwrap();
    // Browse leaves the rest to a continuation point.
    let mut result = browse(&mut client, &mut server, 0, description(object_ids::SERVER));
    let mut count = 0;
    loop {
        count += result.references.len();
        if result.continuation_point.is_null() {
            break;
        }
        result = next(&mut client, &mut server, &result.continuation_point, false).remove(0);
        assert_eq!(result.status_code, StatusCode::GOOD);
    }
    assert!(count > 20);
    // Read has no such option.
    let item =
        schema::ReadValueId { node_id: object_ids::SERVER.into(), attribute_id: 3, ..Default::default() };
    let read = schema::ReadRequest {
        request_header: client.header(),
        nodes_to_read: vec![item; 200],
        ..Default::default()
    };
    assert_eq!(client.call(&mut server, &read).unwrap_err(), StatusCode::BAD_RESPONSE_TOO_LARGE);
}
