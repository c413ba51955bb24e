//! The conditions of an address space (Part 9): the pure state machines of [`alarm`](crate::alarm) with what they watch, their
//! nodes, their events and their deadlines.
//!
//! - `registry`: all of them, and what is done with them; `adding`, `error`: adding one; `condition`: one; `nodes`: its instance;
//! - `report`: what applications say of one; `removing`: taking one away;
//! - `watchers`: their groups and metrics; `groups`, `metrics`: the nodes of these;
//! - `saved`: states that survive a restart.

mod adding;
mod condition;
mod error;
mod groups;
mod metrics;
mod nodes;
mod registry;
mod removing;
mod report;
mod saved;
mod watchers;

pub use error::AlarmError;
pub use registry::Alarms;
pub use report::ConditionReport;
pub use saved::NotSaved;
