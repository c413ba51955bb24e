//! Calling Methods from within the server's process: as Actions of PubSub do (Part 14 §6.2.3.10.6).

use super::call::call_in_process;
use crate::authorization::Grant;
use crate::callback::{CallContext, MethodCall};
use crate::space::AddressSpace;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_types::{NodeId, StatusCode, Variant};

impl AddressSpace {
    /// Calls a Method on an Object with the rights of the caller's roles, over a way that is secured like `mode`: Object,
    /// Method, permissions and arguments are checked as for a client.
    ///
    /// # Errors
    /// What a client would be told that may not, or not so, call it; what the Method itself says is in its result.
    pub fn call_method(
        &self,
        caller: &CallContext,
        mode: MessageSecurityMode,
        method_id: &NodeId,
        inputs: Vec<Variant>,
    ) -> Result<MethodCall, StatusCode> {
        let grant = Grant::of_caller(caller, mode);
        // The Method runs without the lock: it may want the address space itself.
        let (handler, inputs) = call_in_process(&self.read(), grant, caller, method_id, inputs)?;
        Ok(handler.call(caller, inputs))
    }
}
