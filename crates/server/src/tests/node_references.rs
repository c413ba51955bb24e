//! AddReferences and DeleteReferences, and references of deleted nodes.

use super::node_management::{
    add_all, add_one, browse, delete, expanded, object, refer, reference, server, unrefer,
};
use super::*;
use schema::{
    AddNodesItem, AddReferencesItem, BrowseDirection, DeleteReferencesItem, DeleteReferencesRequest,
    NodeClass,
};
use taktwerk_schema::ids::{object_type_ids, reference_type_ids as r};
use taktwerk_types::ExpandedNodeId;

fn unrefer_one_end(
    client: &mut Client,
    server: &mut Server,
    source: NodeId,
    is_forward: bool,
    target: NodeId,
) -> StatusCode {
    let item = DeleteReferencesItem {
        source_node_id: source,
        reference_type_id: r::ORGANIZES.into(),
        is_forward,
        target_node_id: target.into(),
        delete_bidirectional: false,
    };
    let request =
        DeleteReferencesRequest { request_header: client.header(), references_to_delete: vec![item] };
    client.call(server, &request).unwrap().results.remove(0)
}

#[test]
fn references_are_added_once_and_deleted() {
    let mut server = server();
    let mut client = server.session();
    let (one, two) = (NodeId::string(1, "one"), NodeId::string(1, "two"));
    add_all(&mut client, &mut server, vec![object(one.clone(), "one"), object(two.clone(), "two")]);
    let used = server.used(Category::AddedNodes);
    let item = || reference(one.clone(), r::ORGANIZES, two.clone());
    assert_eq!(refer(&mut client, &mut server, item()), StatusCode::GOOD);
    assert!(server.used(Category::AddedNodes) > used);
    for (item, expected) in [
        (item(), StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED),
        (
            AddReferencesItem { source_node_id: NodeId::NULL, ..item() },
            StatusCode::BAD_SOURCE_NODE_ID_INVALID,
        ),
        (
            AddReferencesItem { target_node_id: expanded(NodeId::NULL), ..item() },
            StatusCode::BAD_TARGET_NODE_ID_INVALID,
        ),
        (
            AddReferencesItem { reference_type_id: NodeId::NULL, ..item() },
            StatusCode::BAD_REFERENCE_TYPE_ID_INVALID,
        ),
        (
            AddReferencesItem { target_node_class: NodeClass::VARIABLE, ..item() },
            StatusCode::BAD_NODE_CLASS_INVALID,
        ),
        (
            AddReferencesItem { target_server_uri: "urn:other".into(), ..item() },
            StatusCode::BAD_REFERENCE_LOCAL_ONLY,
        ),
        (reference(one.clone(), r::ORGANIZES, one.clone()), StatusCode::BAD_INVALID_SELF_REFERENCE),
        (
            reference(one.clone(), r::HAS_TYPE_DEFINITION, object_type_ids::BASE_OBJECT_TYPE.into()),
            StatusCode::BAD_REFERENCE_NOT_ALLOWED,
        ),
        (reference(one.clone(), r::HAS_SUBTYPE, two.clone()), StatusCode::BAD_REFERENCE_NOT_ALLOWED),
        (
            reference(
                object_type_ids::FOLDER_TYPE.into(),
                r::HAS_SUBTYPE,
                object_type_ids::BASE_OBJECT_TYPE.into(),
            ),
            StatusCode::BAD_REFERENCE_NOT_ALLOWED,
        ),
    ] {
        assert_eq!(refer(&mut client, &mut server, item.clone()), expected, "{item:?}");
    }
    let kind = r::ORGANIZES;
    assert_eq!(unrefer(&mut client, &mut server, one.clone(), kind, two.clone()), StatusCode::GOOD);
    assert_eq!(unrefer(&mut client, &mut server, one.clone(), kind, two.clone()), StatusCode::BAD_NOT_FOUND);
    assert_eq!(server.used(Category::AddedNodes), used);
    // A reference is deleted with either of its ends, together with its charge.
    assert_eq!(refer(&mut client, &mut server, item()), StatusCode::GOOD);
    delete(&mut client, &mut server, &[two, one]);
    assert_eq!(server.used(Category::AddedNodes), 0);
}

/// Part 3 §7.5, §7.17: HasChild and HasEventSource never lead back; Organizes may (§7.3).
#[test]
fn references_do_not_close_loops() {
    let mut server = server();
    let mut client = server.session();
    let node = |number: u32| NodeId::string(1, format!("node {number}"));
    let nodes = (0..4).map(|number| object(node(number), &format!("node {number}"))).collect();
    add_all(&mut client, &mut server, nodes);
    for (first, others) in [
        (
            r::HAS_COMPONENT,
            vec![(r::HAS_ORDERED_COMPONENT, false), (r::HAS_COMPONENT, false), (r::ORGANIZES, true)],
        ),
        (
            r::HAS_EVENT_SOURCE,
            vec![(r::HAS_NOTIFIER, false), (r::HAS_EVENT_SOURCE, false), (r::HAS_COMPONENT, true)],
        ),
    ] {
        // 0 to 1 to 2, and 0 to 3 to 2: two paths are allowed.
        for (from, to) in [(0, 1), (1, 2), (0, 3), (3, 2)] {
            assert_eq!(
                refer(&mut client, &mut server, reference(node(from), first, node(to))),
                StatusCode::GOOD
            );
        }
        for (kind, is_good) in others {
            let expected = if is_good { StatusCode::GOOD } else { StatusCode::BAD_REFERENCE_NOT_ALLOWED };
            for back in [
                reference(node(2), kind, node(0)),
                AddReferencesItem { is_forward: false, ..reference(node(0), kind, node(2)) },
            ] {
                assert_eq!(refer(&mut client, &mut server, back.clone()), expected, "{back:?}");
                if is_good {
                    assert_eq!(unrefer(&mut client, &mut server, node(2), kind, node(0)), StatusCode::GOOD);
                }
            }
        }
        for (from, to) in [(0, 1), (1, 2), (0, 3), (3, 2)] {
            assert_eq!(unrefer(&mut client, &mut server, node(from), first, node(to)), StatusCode::GOOD);
        }
    }
}

#[test]
fn a_reference_does_not_point_to_the_next_node_of_an_index() {
    for is_forward in [true, false] {
        let mut server = server();
        let mut client = server.session();
        let id = |text: &str| NodeId::string(1, text);
        for name in ["holder", "gone"] {
            assert_eq!(
                add_one(&mut client, &mut server, object(id(name), name)).status_code,
                StatusCode::GOOD
            );
        }
        let (from, to) = if is_forward { ("holder", "gone") } else { ("gone", "holder") };
        assert_eq!(
            refer(&mut client, &mut server, reference(id(from), r::ORGANIZES, id(to))),
            StatusCode::GOOD
        );
        // Only the end at the deleted node is removed.
        assert_eq!(
            unrefer_one_end(&mut client, &mut server, id("gone"), !is_forward, id("holder")),
            StatusCode::GOOD
        );
        assert_eq!(delete(&mut client, &mut server, &[id("gone")]), [StatusCode::GOOD]);
        // It gets the index of the deleted node.
        let next = add_one(&mut client, &mut server, object(id("next"), "next"));
        assert_eq!(next.status_code, StatusCode::GOOD);
        let seen = browse(&mut client, &mut server, id("holder"), BrowseDirection::BOTH);
        let seen: Vec<&str> = seen.iter().map(|found| found.browse_name.name.as_str()).collect();
        assert!(!seen.contains(&"next"), "{seen:?}");
        // The name below the holder is free again.
        let item = AddNodesItem { parent_node_id: expanded(id("holder")), ..object(id("child"), "next") };
        assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
    }
}

#[test]
fn remaining_ends_of_references_are_charged_and_removed() {
    const ROUNDS: usize = 300;
    let mut server = server();
    let account = server.space.read().added_account().unwrap();
    let mut client = server.session();
    let id = |text: &str| NodeId::string(1, text);
    let kept = || account.used(crate::account::Category::AddedNodes);
    let before = kept();
    for name in ["a", "b"] {
        assert_eq!(add_one(&mut client, &mut server, object(id(name), name)).status_code, StatusCode::GOOD);
    }
    assert_eq!(refer(&mut client, &mut server, reference(id("a"), r::ORGANIZES, id("b"))), StatusCode::GOOD);
    let with_one = kept();
    for _ in 0..ROUNDS {
        // Repeatedly deleting one end and adding the reference again accumulates nothing.
        assert_eq!(unrefer_one_end(&mut client, &mut server, id("a"), true, id("b")), StatusCode::GOOD);
        assert_eq!(kept(), with_one, "the other end is still there");
        assert_eq!(
            refer(&mut client, &mut server, reference(id("a"), r::ORGANIZES, id("b"))),
            StatusCode::GOOD
        );
        assert_eq!(kept(), with_one);
    }
    let inverse = browse(&mut client, &mut server, id("b"), BrowseDirection::INVERSE);
    assert_eq!(inverse.len(), 2, "from its folder and from a, once: {inverse:?}");
    for round in 0..ROUNDS {
        // The node of one end is deleted: the remaining end is removed before there are many.
        let name = format!("n{round}");
        assert_eq!(add_one(&mut client, &mut server, object(id(&name), &name)).status_code, StatusCode::GOOD);
        assert_eq!(
            refer(&mut client, &mut server, reference(id("a"), r::ORGANIZES, id(&name))),
            StatusCode::GOOD
        );
        assert_eq!(unrefer_one_end(&mut client, &mut server, id(&name), false, id("a")), StatusCode::GOOD);
        assert_eq!(delete(&mut client, &mut server, &[id(&name)]), [StatusCode::GOOD]);
    }
    assert!(kept() < with_one + 64 * 64, "{} bytes for references to nothing", kept() - with_one);
    assert_eq!(delete(&mut client, &mut server, &[id("a"), id("b")]), [StatusCode::GOOD; 2]);
    assert_eq!(kept(), before, "all charges were returned");
}

#[test]
fn charges_of_references_between_deleted_nodes_are_returned_once() {
    let mut server = server();
    let account = server.space.read().added_account().unwrap();
    let mut client = server.session();
    let id = |text: &str| NodeId::string(1, text);
    let kept = || account.used(crate::account::Category::AddedNodes);
    for name in ["stays", "also"] {
        assert_eq!(add_one(&mut client, &mut server, object(id(name), name)).status_code, StatusCode::GOOD);
    }
    let item = reference(id("stays"), r::ORGANIZES, id("also"));
    assert_eq!(refer(&mut client, &mut server, item), StatusCode::GOOD);
    let before = kept();
    for name in ["a", "b", "c"] {
        assert_eq!(add_one(&mut client, &mut server, object(id(name), name)).status_code, StatusCode::GOOD);
    }
    // Both ends, one end, and one whose forward end is already deleted.
    for (from, to) in [("a", "b"), ("b", "c"), ("stays", "a"), ("c", "a")] {
        let item = reference(id(from), r::ORGANIZES, id(to));
        assert_eq!(refer(&mut client, &mut server, item), StatusCode::GOOD, "{from} {to}");
    }
    assert_eq!(unrefer_one_end(&mut client, &mut server, id("c"), true, id("a")), StatusCode::GOOD);
    let mut nodes = server.space.write();
    let all: Vec<_> = ["a", "b", "c"].iter().map(|name| nodes.resolve(id(name).as_ref()).unwrap()).collect();
    nodes.delete_all(&all).unwrap();
    drop(nodes);
    assert_eq!(kept(), before);
}

#[test]
fn a_deleted_type_leaves_no_reference_behind() {
    let mut server = server();
    let mut client = server.session();
    let kind = NodeId::string(1, "PumpType");
    let item = AddNodesItem {
        parent_node_id: expanded(object_type_ids::BASE_OBJECT_TYPE),
        reference_type_id: r::HAS_SUBTYPE.into(),
        node_class: NodeClass::OBJECT_TYPE,
        type_definition: ExpandedNodeId::default(),
        ..object(kind.clone(), "PumpType")
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
    let pump = NodeId::string(1, "Pump");
    let item = AddNodesItem { type_definition: expanded(kind.clone()), ..object(pump.clone(), "Pump") };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, StatusCode::GOOD);
    assert_eq!(delete(&mut client, &mut server, &[kind]), [StatusCode::GOOD]);
    // The next node gets the index of the type.
    add_one(&mut client, &mut server, object(NodeId::string(1, "Other"), "Other"));
    let forward = browse(&mut client, &mut server, pump, BrowseDirection::FORWARD);
    assert_eq!(forward, []);
}
