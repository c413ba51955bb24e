// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Structures by service area.

mod attribute;
mod base;
mod configuration;
mod diagnostics;
mod discovery;
mod method;
mod monitored_item;
mod node_management;
mod pubsub;
mod query;
mod session;
mod subscription;
mod view;
pub use attribute::*;
pub use base::*;
pub use configuration::*;
pub use diagnostics::*;
pub use discovery::*;
pub use method::*;
pub use monitored_item::*;
pub use node_management::*;
pub use pubsub::*;
pub use query::*;
pub use session::*;
pub use subscription::*;
pub use view::*;
