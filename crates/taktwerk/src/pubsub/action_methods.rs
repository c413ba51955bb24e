//! Methods of a server as Actions (Part 14 §6.2.3.10.6).

use super::SecurityMode;
use std::sync::Arc;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{Configuration, DataSetSource};
use taktwerk_schema::{ActionMethodDataType, Argument, FieldMetaData};
use taktwerk_server::callback::{CallContext, MethodCall};
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{ArrayValues, BuiltInType, ExtensionObject, NodeId, QualifiedName, StatusCode, Variant};

/// Completes a configuration with the fields of requests and responses. Data sets of PublishedActionMethods without fields get
/// those of the InputArguments and OutputArguments of their first Method. Arguments without a built-in type are left to the
/// configuration.
pub fn describe_methods(configuration: &mut Configuration, space: &AddressSpace) {
    for set in &mut configuration.data_sets {
        let DataSetSource::ActionMethods(actions) = &mut set.source else { continue };
        for (target, method) in actions.action_targets.iter().zip(&actions.action_methods) {
            if let Some(absent) = absent(space, method) {
                let (data_set, action) = (&set.name, target.action_target_id);
                tracing::warn!(data_set, action, %absent, "the Object or Method does not exist: the Action answers with a Bad status");
            }
        }
        let request = &mut actions.request_data_set_meta_data;
        let Some(method) = actions.action_methods.first() else { continue };
        if !set.meta_data.fields.is_empty() || !request.fields.is_empty() {
            continue;
        }
        let of = |name: &str| arguments(space, &method.method_id, name);
        match (of("InputArguments"), of("OutputArguments")) {
            (Some(inputs), Some(outputs)) => (request.fields, set.meta_data.fields) = (inputs, outputs),
            _ => {
                let (data_set, method) = (&set.name, &method.method_id);
                tracing::warn!(data_set, %method, "the Method does not describe its arguments: configure the fields of the Action's requests and responses");
            }
        }
    }
}

/// The Object or Method of an Action that does not exist (yet).
fn absent(space: &AddressSpace, method: &ActionMethodDataType) -> Option<NodeId> {
    let is_there = |id: &NodeId| space.node_class(id).is_some();
    [&method.object_id, &method.method_id].into_iter().find(|id| !is_there(id)).cloned()
}

/// The fields described by a Property of a Method; `None` if there is no such Property.
fn arguments(space: &AddressSpace, method: &NodeId, name: &str) -> Option<Vec<FieldMetaData>> {
    let Some(property) = space.child(method, &QualifiedName::new(0, name)) else { return Some(Vec::new()) };
    let value = space.variable(&property).ok()?.get().value?;
    let Variant::Array(array) = value else { return None };
    let ArrayValues::ExtensionObject(objects) = &array.values else { return None };
    let read = |object: &ExtensionObject| {
        let argument: Argument = object.decode().ok()?;
        let number = argument.data_type.ns0().and_then(|number| u8::try_from(number).ok())?;
        let kind = BuiltInType::from_number(number)?;
        Some(FieldMetaData {
            description: argument.description,
            value_rank: argument.value_rank,
            array_dimensions: argument.array_dimensions,
            ..field(argument.name.as_str(), kind)
        })
    };
    objects.iter().map(read).collect()
}

/// The channel security mode that corresponds to message security.
pub(crate) fn channel_mode(mode: SecurityMode) -> MessageSecurityMode {
    match mode {
        SecurityMode::None => MessageSecurityMode::None,
        SecurityMode::Sign => MessageSecurityMode::Sign,
        SecurityMode::SignAndEncrypt => MessageSecurityMode::SignAndEncrypt,
    }
}

/// A Method that is called when its Action is invoked.
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

    /// Sets how requests are secured.
    pub(super) fn secured_like(&mut self, mode: SecurityMode) {
        self.mode = channel_mode(mode);
    }

    /// Calls the Method and waits for its results.
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
            // Future variants.
            _ => Err(StatusCode::BAD_NOT_SUPPORTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_objects_and_methods_are_found() {
        let server = crate::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let method = |object: &str, method: &str| ActionMethodDataType {
            object_id: object.parse().unwrap(),
            method_id: method.parse().unwrap(),
        };
        // Server and its GetMonitoredItems.
        assert_eq!(absent(server.space(), &method("i=2253", "i=11492")), None);
        assert_eq!(
            absent(server.space(), &method("i=2253", "ns=1;s=Nope")).map(|id| id.to_string()).as_deref(),
            Some("ns=1;s=Nope")
        );
        assert!(absent(server.space(), &method("ns=1;s=Nope", "i=11492")).is_some());
    }
}
