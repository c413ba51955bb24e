//! Views as a scope of Browse (Part 3 §5.4, Part 4 §7.45).

use super::node_management::{add_all, add_one, delete, double, expanded, object, refer, reference, server};
use super::*;
use schema::ids::{object_ids, object_type_ids, reference_type_ids as r, variable_type_ids};
use schema::{
    AddNodesItem, BrowseDescription, BrowseDirection, BrowseNextRequest, BrowseRequest, BrowseResult,
    NodeClass, VariableAttributes, ViewDescription,
};
use taktwerk_types::{ExtensionObject, QualifiedName};

const VIEW: NodeId = NodeId::numeric(1, 1);
const LINE: NodeId = NodeId::numeric(1, 10);
const SPEED: NodeId = NodeId::numeric(1, 11);
const OTHER: NodeId = NodeId::numeric(1, 20);
const OBJECTS: NodeId = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);

/// A View with a line that has a speed. The line refers to another object outside the View.
fn plant() -> (Server, Client) {
    let mut server = server();
    let mut client = server.session();
    let view = AddNodesItem {
        parent_node_id: expanded(object_ids::VIEWS_FOLDER),
        node_class: NodeClass::VIEW,
        type_definition: expanded(NodeId::NULL),
        ..object(VIEW, "Maintenance")
    };
    let nodes = vec![view, object(LINE, "Line"), double(SPEED, LINE, "Speed", 1.0), object(OTHER, "Other")];
    for result in add_all(&mut client, &mut server, nodes) {
        assert_eq!(result.status_code, StatusCode::GOOD);
    }
    for (source, kind, target) in [(VIEW, r::ORGANIZES, LINE), (LINE, r::ASSOCIATED_WITH, OTHER)] {
        assert_eq!(refer(&mut client, &mut server, reference(source, kind, target)), StatusCode::GOOD);
    }
    (server, client)
}

fn view(id: NodeId) -> ViewDescription {
    ViewDescription { view_id: id, ..Default::default() }
}

fn browse_in(
    client: &mut Client,
    server: &mut Server,
    view: ViewDescription,
    node: NodeId,
    max: u32,
) -> Result<BrowseResult, StatusCode> {
    let request = BrowseRequest {
        request_header: client.header(),
        view,
        requested_max_references_per_node: max,
        nodes_to_browse: vec![BrowseDescription {
            node_id: node,
            browse_direction: BrowseDirection::BOTH,
            result_mask: 63,
            ..Default::default()
        }],
    };
    Ok(client.call(server, &request)?.results.remove(0))
}

fn targets(result: &BrowseResult) -> Vec<NodeId> {
    result.references.iter().map(|reference| reference.node_id.node_id.clone()).collect()
}

#[test]
fn only_nodes_of_the_view_and_types_are_visible() {
    let (mut server, mut client) = plant();
    let mut seen = |node| targets(&browse_in(&mut client, &mut server, view(VIEW), node, 0).unwrap());
    assert_eq!(seen(VIEW), [LINE]);
    // Neither the Objects folder above it nor the referenced object.
    let folder = NodeId::numeric(0, object_type_ids::FOLDER_TYPE);
    assert_eq!(seen(LINE), [folder, SPEED, VIEW]);
    assert_eq!(seen(SPEED), [LINE, NodeId::numeric(0, variable_type_ids::BASE_DATA_VARIABLE_TYPE)]);
    for node in [OTHER, OBJECTS] {
        let outside = browse_in(&mut client, &mut server, view(VIEW), node.clone(), 0).unwrap();
        assert_eq!(outside.status_code, StatusCode::BAD_NODE_NOT_IN_VIEW);
        let everywhere = browse_in(&mut client, &mut server, view(NodeId::NULL), node, 0).unwrap();
        assert!(!everywhere.references.is_empty());
    }
}

#[test]
fn a_continuation_point_belongs_to_its_view() {
    let (mut server, mut client) = plant();
    let next = |client: &mut Client, server: &mut Server, result: &BrowseResult| {
        let request = BrowseNextRequest {
            request_header: client.header(),
            release_continuation_points: false,
            continuation_points: vec![result.continuation_point.clone()],
        };
        client.call(server, &request).unwrap().results.remove(0)
    };
    let mut result = browse_in(&mut client, &mut server, view(VIEW), LINE, 1).unwrap();
    let mut seen = targets(&result);
    while !result.continuation_point.is_null() {
        result = next(&mut client, &mut server, &result);
        seen.extend(targets(&result));
    }
    assert_eq!(seen, [NodeId::numeric(0, object_type_ids::FOLDER_TYPE), SPEED, VIEW]);
    let result = browse_in(&mut client, &mut server, view(VIEW), LINE, 1).unwrap();
    assert_eq!(delete(&mut client, &mut server, &[VIEW]), [StatusCode::GOOD]);
    let gone = next(&mut client, &mut server, &result);
    assert_eq!(gone.status_code, StatusCode::BAD_VIEW_ID_UNKNOWN);
}

#[test]
fn a_description_must_name_the_current_view() {
    let (mut server, mut client) = plant();
    let attributes = VariableAttributes {
        specified_attributes: (schema::NodeAttributesMask::VALUE.0
            | schema::NodeAttributesMask::DATA_TYPE.0
            | schema::NodeAttributesMask::VALUE_RANK.0) as u32,
        value: 3u32.into(),
        data_type: NodeId::numeric(0, 7),
        value_rank: -1,
        ..Default::default()
    };
    let version = AddNodesItem {
        reference_type_id: r::HAS_PROPERTY.into(),
        browse_name: QualifiedName::new(0, "ViewVersion"),
        node_attributes: ExtensionObject::new(&attributes),
        type_definition: expanded(variable_type_ids::PROPERTY_TYPE),
        ..double(NodeId::numeric(1, 2), VIEW, "", 0.0)
    };
    assert_eq!(add_one(&mut client, &mut server, version).status_code, StatusCode::GOOD);
    let now = server.now.utc;
    let mut status = |view_id: NodeId, timestamp: UtcTime, view_version: u32| {
        let view = ViewDescription { view_id, timestamp, view_version };
        browse_in(&mut client, &mut server, view, VIEW, 0).map(|result| result.status_code)
    };
    assert_eq!(status(VIEW, UtcTime::NULL, 3), Ok(StatusCode::GOOD));
    assert_eq!(status(VIEW, UtcTime::NULL, 2), Err(StatusCode::BAD_VIEW_VERSION_INVALID));
    assert_eq!(status(VIEW, now, 0), Err(StatusCode::BAD_VIEW_TIMESTAMP_INVALID));
    assert_eq!(status(VIEW, now, 3), Err(StatusCode::BAD_VIEW_PARAMETER_MISMATCH));
    for no_view in [LINE, NodeId::numeric(1, 999)] {
        assert_eq!(status(no_view, UtcTime::NULL, 0), Err(StatusCode::BAD_VIEW_ID_UNKNOWN));
    }
}
