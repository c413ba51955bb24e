//! The NodeManagement services (Part 4 §5.8): AddNodes, AddReferences, DeleteNodes, DeleteReferences.
//!
//! Each operation takes the write lock separately, so that readers wait for one node and not for a whole batch. The
//! services are available only if [`ServerConfig::node_management`](crate::ServerConfig) is set.
//!
//! - `add_nodes`, `add_references`, `delete_nodes`, `delete_references`: the services;
//! - `attributes`: the attributes that a client gives a new node; `constraints`: which references the data model allows.
//!
//! # Permissions
//! - AddNodes: AddNode on the namespace of the new node (Part 3 §8.55: only DefaultRolePermissions have it), and
//!   AddReference on the parent.
//! - AddReferences: AddReference on both ends.
//! - DeleteNodes: DeleteNode on the node. DeleteReferences: RemoveReference on both ends.
//!
//! Changes of nodes with a NodeVersion are reported in one event per turn of a request (`space/versions.rs`).
//!
//! Nodes created by the application are protected. They can be deleted if RolePermissions grant it explicitly, or if
//! the application deletes them for clients (DeleteHandler), which works without `node_management` too. The nodes of
//! the specification cannot be deleted.

mod add_nodes;
mod add_references;
mod attributes;
mod constraints;
mod delete_nodes;
mod delete_references;

pub(super) use add_nodes::work as work_add_nodes;
pub(crate) use add_nodes::{ITEM_LEN_MIN, add_nodes};
pub(crate) use add_references::add_references;
pub(super) use add_references::work as work_add_references;
pub(crate) use delete_nodes::{DeleteNodes, delete_nodes};
pub(crate) use delete_references::delete_references;
pub(super) use delete_references::work as work_delete_references;

use super::Outcome;
use super::context::Context;
use super::gate::Caller;
use super::list::{self, Cursor};
use super::reply::Reply;
use super::request::Request;
use crate::audit::{AuditAction, AuditItem};
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use taktwerk_schema::PermissionType;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{ExpandedNodeId, Identifier, NodeId, StatusCode, Structure};

/// Starts a service, if it is enabled; `has_some` if it is available for some nodes in any case.
fn start<T: Structure>(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    (cursor, has_some): (Cursor, bool),
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    if !has_some && !cx.shared.config().node_management {
        return Err(Fault::local(
            StatusCode::BAD_SERVICE_UNSUPPORTED,
            "the configuration does not allow node management",
        ));
    }
    encode_len(caller.count, reply.begin_id(T::BINARY_ENCODING_ID, StatusCode::GOOD));
    list::start(cx, caller, request, cursor, reply)
}

/// Records an operation, if updates are audited; `item` is called only then.
fn note(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    status: StatusCode,
    node: NodeId,
    item: impl FnOnce() -> AuditItem,
) {
    if cx.audit.notes_updates() {
        // The id of a missing node is arbitrary text from a client.
        let is_text = !matches!(node.identifier, Identifier::Numeric(_) | Identifier::Guid(_));
        let node_id = if status.is_bad() && is_text { NodeId::NULL } else { node };
        let item = if status.is_bad() { item().without_texts() } else { item() };
        let action = AuditAction::NodeManagement { item, node_id };
        let record = cx.audit_record(Some(caller.session), request, status, action);
        cx.audit.push_made(cx.now, record);
    }
}

/// An id with its namespace index; `None` for ids of another server or an unregistered namespace.
fn local(nodes: &Nodes, id: &ExpandedNodeId) -> Option<NodeId> {
    if id.server_index != 0 {
        return None;
    }
    if id.namespace_uri.is_empty() {
        return Some(id.node_id.clone());
    }
    let uri = id.namespace_uri.as_str();
    let index = nodes.namespaces().iter().position(|known| known == uri)?;
    Some(NodeId { namespace_index: u16::try_from(index).ok()?, identifier: id.node_id.identifier.clone() })
}

/// A node that is visible to the session.
fn known(nodes: &Nodes, decisions: &Decisions, id: &NodeId) -> Option<NodeIx> {
    nodes.resolve(id.as_ref()).filter(|ix| decisions.knows(nodes, *ix))
}

/// Whether something may be deleted. `is_added` means that a client added it; otherwise the RolePermissions of the node
/// or its namespace must grant the permission explicitly.
fn may_delete(
    nodes: &Nodes,
    decisions: &Decisions,
    ix: NodeIx,
    permission: PermissionType,
    is_added: bool,
) -> Result<(), StatusCode> {
    decisions.check(nodes, ix, permission)?;
    if is_added || nodes.access().role_permissions(nodes.access_set(ix)).is_some() {
        Ok(())
    } else {
        Err(StatusCode::BAD_NO_DELETE_RIGHTS)
    }
}
