//! A Variable of a data set or of a target, which may be replaced while PubSub runs.

use std::sync::Arc;
use taktwerk_server::space::{AddressSpace, NodeError, VariableHandle};
use taktwerk_types::NodeId;

/// A Variable that is looked up again when it was deleted: a NodeSet that is applied anew replaces its Variables, and the old
/// handles have no effect any more.
pub(super) struct Followed {
    space: Arc<AddressSpace>,
    id: NodeId,
    handle: VariableHandle,
}

impl Followed {
    /// # Errors
    /// The Variable does not exist.
    pub(super) fn of(space: &Arc<AddressSpace>, id: &NodeId) -> Result<Self, NodeError> {
        Ok(Self { space: Arc::clone(space), id: id.clone(), handle: space.variable(id)? })
    }

    /// With a handle that is known already.
    pub(super) fn by(space: &Arc<AddressSpace>, id: &NodeId, handle: &VariableHandle) -> Self {
        Self { space: Arc::clone(space), id: id.clone(), handle: handle.clone() }
    }

    /// The handle of the present Variable. While there is none, the one of the last: its value is Bad_NodeIdUnknown.
    pub(super) fn handle(&mut self) -> &VariableHandle {
        if self.handle.is_deleted()
            && let Ok(handle) = self.space.variable(&self.id)
        {
            self.handle = handle;
        }
        &self.handle
    }
}
