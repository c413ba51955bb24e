//! The NodeManagement services (Part 4 §5.8): AddNodes, AddReferences, DeleteNodes, DeleteReferences.
//!
//! Each operation takes the write lock for itself, so that readers wait for one node and not for a batch. The server
//! offers the services only if [`ServerConfig::node_management`](crate::ServerConfig) is set.
//!
//! - `add_nodes`, `add_references`, `delete_nodes`, `delete_references`: the services;
//! - `attributes`: the attributes that a client gives a new node; `constraints`: which references the data model allows.
//!
//! # Who may
//! - AddNodes: AddNode on the namespace of the new node (Part 3 §8.55: only DefaultRolePermissions have it), and
//!   AddReference on the parent.
//! - AddReferences: AddReference on both ends.
//! - DeleteNodes: DeleteNode on the node. DeleteReferences: RemoveReference on both ends.
//!
//! Changes of nodes with a NodeVersion are told in one event per turn of a request (`space/versions.rs`).
//!
//! What the application has made is protected: it can be deleted only where RolePermissions grant it explicitly, or where the
//! application deletes it for clients (DeleteHandler), which works without `node_management` too. The nodes of the
//! specification cannot be deleted.

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
use crate::audit::AuditAction;
use crate::authorization::Decisions;
use crate::error::Fault;
use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use taktwerk_schema::PermissionType;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{ExpandedNodeId, Identifier, NodeId, StatusCode, Structure};

/// Starts a service, if the server has it; `has_some` if it has it for some nodes in any case.
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

/// Notes an operation, if updates are noted.
fn note(cx: &mut Context<'_>, caller: &Caller<'_>, request: &Request<'_>, status: StatusCode, node: NodeId) {
    if cx.audit.notes_updates() {
        // The id of a node that is not there is just a client's text.
        let is_text = !matches!(node.identifier, Identifier::Numeric(_) | Identifier::Guid(_));
        let node = if status.is_bad() && is_text { NodeId::NULL } else { node };
        let action = AuditAction::NodeManagement { request: request.type_id, node_id: node };
        let record = cx.audit_record(Some(caller.session), request, status, action);
        cx.audit.push_made(cx.now, record);
    }
}

/// An id with the namespace's index; `None` for another server's and for namespaces that are not registered.
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

/// A node that the session may know of.
fn known(nodes: &Nodes, decisions: &Decisions, id: &NodeId) -> Option<NodeIx> {
    nodes.resolve(id.as_ref()).filter(|ix| decisions.knows(nodes, *ix))
}

/// Whether something may be deleted: `is_added` if a client has added it, else the permission has to be granted by the
/// RolePermissions of the node or its namespace.
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
