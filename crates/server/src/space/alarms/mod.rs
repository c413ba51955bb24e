//! The conditions of an address space (Part 9): the pure state machines of [`alarm`](crate::alarm) with their inputs,
//! nodes, events and deadlines.
//!
//! - `registry`: all conditions and the operations on them; `adding`, `error`: adding one; `condition`: one condition;
//!   `nodes`: its instance;
//! - `report`: states set by applications; `removing`: removing one; `redefining`: replacing the definition of one;
//!   `replaced`: Variables and instances that were deleted and added again;
//! - `watchers`: groups and metrics; `groups`, `metrics`: the nodes of these;
//! - `saved`: states that survive a restart.

mod adding;
mod condition;
mod error;
mod groups;
mod metrics;
mod nodes;
mod redefining;
mod registry;
mod removing;
mod replaced;
mod report;
mod saved;
mod watchers;

pub use error::AlarmError;
pub use registry::Alarms;
pub use report::ConditionReport;
pub use saved::NotSaved;
