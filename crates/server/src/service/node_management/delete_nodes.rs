//! DeleteNodes (Part 4 §5.8.4).

use super::super::Outcome;
use super::super::context::Context;
use super::super::gate::Caller;
use super::super::list::{Cursor, List};
use super::super::read::unknown;
use super::super::reply::Reply;
use super::super::request::Request;
use super::{may_delete, note};
use crate::audit::AuditItem;
use crate::authorization::Decisions;
use crate::callback::DeleteHandler;
use crate::error::Fault;
use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use crate::work::unit;
use std::sync::Arc;
use taktwerk_schema::{DeleteNodesItem, DeleteNodesResponse, NodeClass, PermissionType};
use taktwerk_types::{Decode, Encode, NodeId, StatusCode};

/// A DeleteNodes in progress.
#[derive(Debug, Default)]
pub(crate) struct DeleteNodes {
    /// Parts of deleted nodes. Those without another parent are deleted at the end.
    parts: Vec<NodeIx>,
    /// All operations have results; only parts remain to be deleted.
    is_answered: bool,
}

pub(crate) fn delete_nodes(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let cursor = Cursor::DeleteNodes(DeleteNodes::default());
    let has_deletable = cx.shared.space().read().has_deletable();
    super::start::<DeleteNodesResponse>(cx, caller, request, (cursor, has_deletable), reply)
}

/// Work units for an Object with parts, such as a Program, that the application deletes.
const DELETED_FOR_CLIENT: i64 = 32 * unit::NODE;

/// The handler with which the application deletes this node for clients, if there is one.
///
/// # Errors
/// The client lacks the permission.
fn handler(
    nodes: &Nodes,
    decisions: &Decisions,
    id: &NodeId,
) -> Result<Option<Arc<dyn DeleteHandler>>, StatusCode> {
    let Some(ix) = nodes.resolve(id.as_ref()).filter(|ix| decisions.knows(nodes, *ix)) else {
        return Ok(None);
    };
    let Some(handler) = nodes.delete_handler(ix) else { return Ok(None) };
    decisions.check(nodes, ix, PermissionType::DELETE_NODE)?;
    Ok(Some(Arc::clone(handler)))
}

/// The status for a client that deletes a node on a server without `node_management`.
fn refusal(nodes: &Nodes, decisions: &Decisions, id: &NodeId) -> StatusCode {
    if id.is_null() {
        return StatusCode::BAD_NODE_ID_INVALID;
    }
    match nodes.resolve(id.as_ref()) {
        None => unknown(id.as_ref()),
        Some(ix) if !decisions.knows(nodes, ix) => StatusCode::BAD_NODE_ID_UNKNOWN,
        Some(_) => StatusCode::BAD_NO_DELETE_RIGHTS,
    }
}

impl DeleteNodes {
    pub(in super::super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        request: &Request<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        let space = cx.shared.space();
        while list.goes_on(reply)? {
            if self.is_answered {
                match self.parts.pop() {
                    Some(part) => list.units -= self.delete_part(&mut space.write(), part),
                    None => list.done(0, 0),
                }
                cx.shared.space().yield_to_readers();
                continue;
            }
            let before = list.body.remaining();
            let item = DeleteNodesItem::decode(&mut list.body)?;
            // Found first: the application deletes with the address space unlocked.
            let handler = handler(&space.read(), &caller.decisions, &item.node_id);
            let deleted = match handler {
                Ok(Some(handler)) => {
                    let session = cx.sessions.get(caller.session);
                    let who =
                        session.map(|session| session.call_context(item.node_id.clone())).unwrap_or_default();
                    handler.delete(&who).map(|()| DELETED_FOR_CLIENT)
                }
                Ok(None) if !cx.shared.config().node_management => {
                    Err(refusal(&space.read(), &caller.decisions, &item.node_id))
                }
                Ok(None) => self.delete(&mut space.write(), &caller.decisions, &item.node_id),
                Err(status) => Err(status),
            };
            let (status, units) = match deleted {
                Ok(units) => (StatusCode::GOOD, units),
                Err(status) => (status, unit::OPERATION),
            };
            status.encode(reply.out());
            note(cx, caller, request, status, item.node_id.clone(), || AuditItem::DeleteNode(item));
            if list.left == 1 && !self.parts.is_empty() {
                // The last operation is complete once the parts are deleted.
                self.is_answered = true;
                list.units -= units;
            } else {
                list.done(units, before - list.body.remaining());
            }
            cx.shared.space().yield_to_readers();
        }
        space.raise_model_changes(cx.now.utc);
        Ok(())
    }

    /// Deletes a node. References to it are always deleted too, even if the client did not request it, so that none is
    /// left without a target.
    fn delete(&mut self, nodes: &mut Nodes, decisions: &Decisions, id: &NodeId) -> Result<i64, StatusCode> {
        if id.is_null() {
            return Err(StatusCode::BAD_NODE_ID_INVALID);
        }
        let ix = nodes.resolve(id.as_ref()).ok_or_else(|| unknown(id.as_ref()))?;
        if !decisions.knows(nodes, ix) {
            return Err(StatusCode::BAD_NODE_ID_UNKNOWN);
        }
        if nodes.dynamic(ix).is_none() {
            return Err(StatusCode::BAD_NO_DELETE_RIGHTS);
        }
        may_delete(nodes, decisions, ix, PermissionType::DELETE_NODE, nodes.is_added(ix))?;
        Ok(self.remove(nodes, ix))
    }

    /// Deletes a part without any other parent.
    fn delete_part(&mut self, nodes: &mut Nodes, ix: NodeIx) -> i64 {
        if nodes.is_added(ix) && nodes.is_orphan(ix) { self.remove(nodes, ix) } else { unit::OPERATION }
    }

    fn remove(&mut self, nodes: &mut Nodes, ix: NodeIx) -> i64 {
        let is_type = nodes.view(ix).is_some_and(|view| {
            matches!(
                view.class(),
                NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE | NodeClass::REFERENCE_TYPE
            )
        });
        // References to a type are found only by examining all nodes.
        let everywhere = if is_type { nodes.len() } else { 0 };
        self.parts.extend(nodes.added_parts(ix));
        // It is not a static node, so this succeeds. A parent with many nodes is searched.
        let looked_at = nodes.delete(ix).unwrap_or(0) + everywhere;
        unit::NODE + looked_at as i64 / 8
    }
}
