//! Building a server's address space: nodes with their children, values and callbacks.
//!
//! - [`node`]: namespaces and nodes, to which folders, objects, variables and methods are added;
//! - [`object`], [`variable`], [`method`]: builders for these;
//! - [`event`]: events of nodes; [`alarm`]: alarms of variables and objects; [`alarm_group`]: groups and metrics of alarms;
//! - [`source`]: reads the values of many variables together.

pub mod alarm;
pub mod alarm_group;
pub(crate) mod alarm_thread;
pub mod event;
pub mod method;
pub mod node;
pub mod object;
pub mod source;
mod states;
pub mod variable;

pub use alarm::{Alarm, AlarmBuilder};
pub use alarm_group::AlarmGroupBuilder;
pub use event::EventBuilder;
pub(crate) use method::arguments;
pub use method::{Arguments, MethodBuilder};
pub use node::{Namespace, Node};
pub use object::ObjectBuilder;
pub use source::{Readings, SourceBuilder, SourceHandle};
pub use variable::{Variable, VariableBuilder};

use std::sync::Arc;
use taktwerk_net::clock;
use taktwerk_server::space::AddressSpace;
use taktwerk_types::{NodeId, UtcTime};

/// The address space, as shared by all handles.
pub(crate) type Space = Arc<AddressSpace>;

pub(crate) fn now() -> UtcTime {
    clock::wall()
}

/// A node of namespace 0.
pub(crate) const fn ns0(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}
