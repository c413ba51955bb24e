//! Methods of a server as Actions (Part 14 §6.2.3.10.6).

use super::SecurityMode;
use std::sync::Arc;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::ActionMethodDataType;
use taktwerk_server::callback::{CallContext, MethodCall};
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{NodeId, StatusCode, Variant};

/// A Method that is called when its Action is asked for.
pub(super) struct MethodAction {
    space: Arc<AddressSpace>,
    object_id: NodeId,
    method_id: NodeId,
    roles: Vec<NodeId>,
    mode: MessageSecurityMode,
}

impl MethodAction {
    pub(super) fn new(space: &Arc<AddressSpace>, method: &ActionMethodDataType, roles: &[NodeId]) -> Self {
        Self {
            space: Arc::clone(space),
            object_id: method.object_id.clone(),
            method_id: method.method_id.clone(),
            roles: roles.to_vec(),
            mode: MessageSecurityMode::None,
        }
    }

    /// How requests come.
    pub(super) fn secured_like(&mut self, mode: SecurityMode) {
        self.mode = match mode {
            SecurityMode::None => MessageSecurityMode::None,
            SecurityMode::Sign => MessageSecurityMode::Sign,
            SecurityMode::SignAndEncrypt => MessageSecurityMode::SignAndEncrypt,
        };
    }

    /// Calls it and waits for its results.
    pub(super) fn call(&self, inputs: Vec<Variant>) -> Result<Vec<Variant>, StatusCode> {
        let encrypted = self.mode == MessageSecurityMode::SignAndEncrypt;
        let caller = CallContext::in_process(self.object_id.clone(), &self.roles, encrypted);
        match self.space.call_method(&caller, self.mode, &self.method_id, inputs)? {
            MethodCall::Now(result) => result,
            MethodCall::Blocking(run) => run(),
            MethodCall::Later(future) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.map_err(|_| StatusCode::BAD_RESOURCE_UNAVAILABLE)?.block_on(future)
            }
            // Kinds that came later.
            _ => Err(StatusCode::BAD_NOT_SUPPORTED),
        }
    }
}
