//! Objects that the application deletes when clients request it with DeleteNodes.

use super::error::NodeError;
use super::nodes::Nodes;
use super::{AddressSpace, NodeIx};
use crate::callback::DeleteHandler;
use std::sync::Arc;
use taktwerk_types::NodeId;

impl AddressSpace {
    /// Allows clients to delete an Object of the application with DeleteNodes, even if they cannot delete other nodes.
    /// They need the permission DeleteNode on it.
    ///
    /// # Errors
    /// The node does not exist or belongs to namespace 0.
    pub fn set_delete_handler(&self, id: &NodeId, handler: Arc<dyn DeleteHandler>) -> Result<(), NodeError> {
        let mut nodes = self.write();
        let ix = nodes.find(id)?;
        let node = nodes.dynamic_mut(ix).ok_or_else(|| NodeError::Unknown(id.clone()))?;
        node.extra.get_or_insert_default().on_delete = Some(handler);
        nodes.has_deletable = true;
        Ok(())
    }
}

impl Nodes {
    /// The handler that deletes the node for clients.
    pub(crate) fn delete_handler(&self, ix: NodeIx) -> Option<&Arc<dyn DeleteHandler>> {
        self.dynamic(ix)?.extra.as_ref()?.on_delete.as_ref()
    }

    /// Whether any node has ever had such a handler.
    pub(crate) fn has_deletable(&self) -> bool {
        self.has_deletable
    }
}
