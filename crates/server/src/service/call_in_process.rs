//! Calling Methods from within the server's process, as PubSub Actions do (Part 14 §6.2.3.10.6).

use super::call::call_in_process;
use crate::authorization::Grant;
use crate::callback::{CallContext, MethodCall};
use crate::space::AddressSpace;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_types::{NodeId, StatusCode, Variant};

impl AddressSpace {
    /// Calls a Method on an Object with the rights of the caller's roles, as over a channel with this `mode`. Object,
    /// Method, permissions and arguments are checked as for a client.
    ///
    /// # Errors
    /// The status that a client would receive. A failure of the Method itself is in its result.
    pub fn call_method(
        &self,
        caller: &CallContext,
        mode: MessageSecurityMode,
        method_id: &NodeId,
        inputs: Vec<Variant>,
    ) -> Result<MethodCall, StatusCode> {
        let grant = Grant::of_caller(caller, mode);
        // The Method runs without the lock, because it may use the address space itself.
        let (handler, inputs) = call_in_process(&self.read(), grant, caller, method_id, inputs)?;
        Ok(handler.call(caller, inputs))
    }
}
