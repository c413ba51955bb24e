//! DeleteReferences (Part 4 §5.8.5).

use super::super::Outcome;
use super::super::context::Context;
use super::super::gate::Caller;
use super::super::list::{Cursor, List};
use super::super::reply::Reply;
use super::super::request::Request;
use super::{known, local, may_delete, note};
use crate::audit::AuditItem;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::space::nodes::Nodes;
use crate::work::unit;
use taktwerk_schema::{DeleteReferencesItem, DeleteReferencesResponse, NodeClass, PermissionType};
use taktwerk_types::{Decode, Encode, StatusCode};

pub(crate) fn delete_references(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    super::start::<DeleteReferencesResponse>(cx, caller, request, (Cursor::DeleteReferences, false), reply)
}

pub(in super::super) fn work(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    list: &mut List<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Fault> {
    let space = cx.shared.space();
    while list.goes_on(reply)? {
        let before = list.body.remaining();
        let item = DeleteReferencesItem::decode(&mut list.body)?;
        let status = delete(&mut space.write(), &caller.decisions, &item).err().unwrap_or(StatusCode::GOOD);
        status.encode(reply.out());
        let source = item.source_node_id.clone();
        note(cx, caller, request, status, source, || AuditItem::DeleteReference(Box::new(item)));
        list.done(unit::NODE, before - list.body.remaining());
        cx.shared.space().yield_to_readers();
    }
    space.raise_model_changes(cx.now.utc);
    Ok(())
}

fn delete(nodes: &mut Nodes, decisions: &Decisions, item: &DeleteReferencesItem) -> Result<(), StatusCode> {
    let source =
        known(nodes, decisions, &item.source_node_id).ok_or(StatusCode::BAD_SOURCE_NODE_ID_INVALID)?;
    let invalid = StatusCode::BAD_REFERENCE_TYPE_ID_INVALID;
    let kind = nodes.resolve(item.reference_type_id.as_ref()).ok_or(invalid)?;
    if nodes.view(kind).is_none_or(|view| view.class() != NodeClass::REFERENCE_TYPE) {
        return Err(invalid);
    }
    if item.target_node_id.server_index != 0 {
        return Err(StatusCode::BAD_SERVER_INDEX_INVALID);
    }
    let target_id = local(nodes, &item.target_node_id).ok_or(StatusCode::BAD_TARGET_NODE_ID_INVALID)?;
    let target = known(nodes, decisions, &target_id).ok_or(StatusCode::BAD_TARGET_NODE_ID_INVALID)?;
    let is_added = nodes.is_added_reference(source, kind, item.is_forward, target);
    for ix in [source, target] {
        may_delete(nodes, decisions, ix, PermissionType::REMOVE_REFERENCE, is_added)?;
    }
    if nodes.delete_reference(source, kind, item.is_forward, target, item.delete_bidirectional) {
        return Ok(());
    }
    // The remaining cases are missing references and those of the specification.
    let mut exists = false;
    nodes.references(source, |reference| {
        exists = reference.reference_type == kind
            && reference.is_forward == item.is_forward
            && reference.target == target;
        !exists
    });
    Err(if exists { StatusCode::BAD_NO_DELETE_RIGHTS } else { StatusCode::BAD_NOT_FOUND })
}
