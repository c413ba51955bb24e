//! The methods with which clients change alias categories (Part 17 §6.3.4, §6.3.5): the address space has no clock.

use crate::space::now;
use std::sync::{Arc, Weak};
use taktwerk_server::AddressSpace;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_types::{StatusCode, Variant};

/// What a method does with aliases.
enum Change {
    Add {
        /// The ApplicationUri of the server.
        own_uri: String,
    },
    Delete,
}

/// Runs on a worker thread, because a call may name many aliases.
struct Method(Weak<AddressSpace>, Arc<Change>);

impl MethodHandler for Method {
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        let (space, context, change) = (self.0.upgrade(), context.clone(), Arc::clone(&self.1));
        MethodCall::Blocking(Box::new(move || {
            let space = space.ok_or(StatusCode::BAD_SHUTDOWN)?;
            match &*change {
                Change::Add { own_uri } => space.add_aliases_for(&context, inputs, own_uri, now()),
                Change::Delete => space.delete_aliases_for(&context, inputs, now()),
            }
        }))
    }

    fn may_block(&self) -> bool {
        true
    }
}

/// Offers the methods on all categories.
pub(super) fn install(space: &Arc<AddressSpace>, own_uri: &str) {
    let method = |change| Arc::new(Method(Arc::downgrade(space), Arc::new(change)));
    space.set_alias_methods(method(Change::Add { own_uri: own_uri.to_owned() }), method(Change::Delete));
}
