//! The permissions of a session for a node.

use super::NodeIx;
use super::nodes::Nodes;
use crate::authorization::Decisions;
use crate::diagnostics::nodes::SessionNode;
use taktwerk_schema::PermissionType;
use taktwerk_types::StatusCode;

impl Decisions {
    /// The permissions for a node.
    #[inline]
    pub(crate) fn of(&self, nodes: &Nodes, ix: NodeIx) -> PermissionType {
        self.of_set(nodes.access_set(ix))
    }

    /// Whether a permission is granted for a node.
    #[inline]
    pub(crate) fn allows(&self, nodes: &Nodes, ix: NodeIx, permission: PermissionType) -> bool {
        self.of(nodes, ix).contains(permission)
    }

    /// Checks a permission for a node and returns the status for the client.
    ///
    /// # Errors
    /// Bad_SecurityModeInsufficient, Bad_UserAccessDenied; Bad_NodeIdUnknown for nodes that the session must not know.
    #[inline]
    pub(crate) fn check(
        &self,
        nodes: &Nodes,
        ix: NodeIx,
        permission: PermissionType,
    ) -> Result<(), StatusCode> {
        let set = nodes.access_set(ix);
        if self.of_set(set).contains(permission) { Ok(()) } else { Err(self.refusal(set, ix, permission)) }
    }

    /// Whether the session may know that a node exists.
    pub(crate) fn knows(&self, nodes: &Nodes, ix: NodeIx) -> bool {
        is_public(ix) || !self.granted(nodes.access_set(ix)).is_empty()
    }

    /// Whether a node exists on every server: the specification's own, and the nodes of sessions that mirror them.
    pub(crate) fn is_public(ix: NodeIx) -> bool {
        is_public(ix)
    }

    #[cold]
    fn refusal(&self, set: u16, ix: NodeIx, permission: PermissionType) -> StatusCode {
        let granted = self.granted(set);
        if granted.contains(permission) {
            StatusCode::BAD_SECURITY_MODE_INSUFFICIENT
        } else if !granted.is_empty() || is_public(ix) {
            StatusCode::BAD_USER_ACCESS_DENIED
        } else {
            StatusCode::BAD_NODE_ID_UNKNOWN
        }
    }
}

/// Whether a node exists on every server: the specification's own, and the nodes of sessions that mirror them.
fn is_public(ix: NodeIx) -> bool {
    ix.index < NodeIx::DYNAMIC || SessionNode::from_ix(ix).is_some()
}
