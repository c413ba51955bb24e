//! Objects of the application that clients delete with DeleteNodes: the application does it for them.

use super::error::NodeError;
use super::nodes::Nodes;
use super::{AddressSpace, NodeIx};
use crate::callback::DeleteHandler;
use std::sync::Arc;
use taktwerk_types::NodeId;

impl AddressSpace {
    /// Lets clients delete an Object of the application with DeleteNodes, also if they cannot delete other nodes. They need the
    /// permission DeleteNode on it.
    ///
    /// # Errors
    /// There is no such node, or it belongs to namespace 0.
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
    /// Who deletes the node for clients.
    pub(crate) fn delete_handler(&self, ix: NodeIx) -> Option<&Arc<dyn DeleteHandler>> {
        self.dynamic(ix)?.extra.as_ref()?.on_delete.as_ref()
    }

    /// Whether some node was ever one that the application deletes for clients.
    pub(crate) fn has_deletable(&self) -> bool {
        self.has_deletable
    }
}
