//! AddReferences (Part 4 §5.8.3).

use super::super::Outcome;
use super::super::context::Context;
use super::super::gate::Caller;
use super::super::list::{Cursor, List};
use super::super::reply::Reply;
use super::super::request::Request;
use super::{constraints, known, local, note};
use crate::audit::AuditItem;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::space::NodeIx;
use crate::space::instance::{Coverage, Walk, apply_interface, coverage, is_interface};
use crate::space::nodes::Nodes;
use crate::work::unit;
use taktwerk_schema::ids::reference_type_ids as r;
use taktwerk_schema::{AddReferencesItem, AddReferencesResponse, NodeClass, PermissionType};
use taktwerk_types::{Decode, Encode, StatusCode, UtcTime};

pub(crate) fn add_references(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    super::start::<AddReferencesResponse>(cx, caller, request, (Cursor::AddReferences, false), reply)
}

pub(in super::super) fn work(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    list: &mut List<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Fault> {
    let own_uri = &cx.shared.config().application_uri;
    let space = cx.shared.space();
    while list.goes_on(reply)? {
        let before = list.body.remaining();
        let item = AddReferencesItem::decode(&mut list.body)?;
        let mut walk = Walk::of_client();
        let (status, count) = {
            let mut nodes = space.write();
            let before = nodes.additions();
            let added = add(&mut nodes, &caller.decisions, &item, own_uri, (&mut walk, cx.now.utc));
            (added.err().unwrap_or(StatusCode::GOOD), nodes.additions() - before)
        };
        status.encode(reply.out());
        let source = item.source_node_id.clone();
        note(cx, caller, request, status, source, || AuditItem::AddReference(Box::new(item)));
        list.done(
            unit::NODE * (1 + count as i64) + unit::skimmed(walk.looked_at()),
            before - list.body.remaining(),
        );
        cx.shared.space().yield_to_readers();
    }
    space.raise_model_changes(cx.now.utc);
    Ok(())
}

/// Adds a reference, and the members of an interface that its source lacks.
fn add(
    nodes: &mut Nodes,
    decisions: &Decisions,
    item: &AddReferencesItem,
    own_uri: &str,
    (walk, now): (&mut Walk, UtcTime),
) -> Result<(), StatusCode> {
    let source =
        known(nodes, decisions, &item.source_node_id).ok_or(StatusCode::BAD_SOURCE_NODE_ID_INVALID)?;
    let kind = constraints::reference_type(nodes, &item.reference_type_id)?;
    let uri = item.target_server_uri.as_str();
    if item.target_node_id.server_index != 0 || !(uri.is_empty() || uri == own_uri) {
        // The server stores no references to nodes of other servers.
        return Err(StatusCode::BAD_REFERENCE_LOCAL_ONLY);
    }
    let target_id = local(nodes, &item.target_node_id).ok_or(StatusCode::BAD_TARGET_NODE_ID_INVALID)?;
    let target = known(nodes, decisions, &target_id).ok_or(StatusCode::BAD_TARGET_NODE_ID_INVALID)?;
    let class = |ix| nodes.view(ix).map(|view| view.class()).unwrap_or_default();
    let (source_class, target_class) = (class(source), class(target));
    if item.target_node_class != NodeClass::UNSPECIFIED && item.target_node_class != target_class {
        return Err(StatusCode::BAD_NODE_CLASS_INVALID);
    }
    for ix in [source, target] {
        decisions.check(nodes, ix, PermissionType::ADD_REFERENCE)?;
    }
    if source == target {
        return Err(StatusCode::BAD_INVALID_SELF_REFERENCE);
    }
    let (from, to, from_class, to_class) = if item.is_forward {
        (source, target, source_class, target_class)
    } else {
        (target, source, target_class, source_class)
    };
    constraints::allows(nodes, kind, from_class, to_class)?;
    if nodes.has_reference(from, kind, to) {
        return Err(StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED);
    }
    let has_one = |kind: u32| nodes.forward_target(from, kind).is_some();
    let is = |wanted: u32| kind == NodeIx::ns0(wanted);
    let is_second = (is(r::HAS_TYPE_DEFINITION) && has_one(r::HAS_TYPE_DEFINITION))
        || (is(r::HAS_MODELLING_RULE) && has_one(r::HAS_MODELLING_RULE));
    // A type has one supertype, which is not the type itself.
    let is_wrong_subtype =
        is(r::HAS_SUBTYPE) && (nodes.supertype(to).is_some() || nodes.is_subtype(from, to));
    // The children of a parent have different names.
    let is_hierarchical = nodes.is_subtype(kind, NodeIx::ns0(r::HIERARCHICAL_REFERENCES));
    if is_second || is_wrong_subtype {
        return Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED);
    }
    constraints::closes_no_loop(nodes, kind, from, to)?;
    if is_hierarchical {
        let name = nodes.view(to).map(|view| view.browse_name()).unwrap_or_default();
        if nodes.child_indexed(from, &name).is_some_and(|child| child != to) {
            return Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED);
        }
    }
    if nodes.is_subtype(kind, NodeIx::ns0(r::HAS_INTERFACE)) {
        // Interfaces have no interfaces (Part 3 §4.10.2).
        if !is_interface(nodes, to) || is_interface(nodes, from) {
            return Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED);
        }
        if from_class == NodeClass::OBJECT {
            apply(nodes, decisions, (from, to), walk, now)?;
        }
    }
    nodes.add_client_reference(from, kind, to).map_err(|error| error.status())
}

/// Gives an Object the mandatory members of an interface.
fn apply(
    nodes: &mut Nodes,
    decisions: &Decisions,
    (object, interface): (NodeIx, NodeIx),
    walk: &mut Walk,
    now: UtcTime,
) -> Result<(), StatusCode> {
    match coverage(nodes, object, interface, walk).map_err(|error| error.status())? {
        Coverage::Complete => return Ok(()),
        Coverage::Collision => return Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED),
        Coverage::Incomplete => {}
    }
    // Members of nodes of namespace 0 are in the server's own namespace.
    let namespace = nodes.id_of(object).namespace_index.max(1);
    if !decisions.of_set(nodes.access().silent(namespace)).contains(PermissionType::ADD_NODE) {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    apply_interface(nodes, object, interface, walk, now).map_err(|error| error.status())
}
