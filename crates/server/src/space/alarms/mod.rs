//! The conditions of an address space (Part 9): the pure state machines of [`alarm`](crate::alarm) with what they watch, their
//! nodes, their events and their deadlines.
//!
//! - `registry`: all of them, and what is done with them; `condition`: one; `nodes`: its instance;
//! - `saved`: states that survive a restart.

mod condition;
mod nodes;
mod registry;
mod saved;

pub use registry::{AlarmError, Alarms};
pub use saved::NotSaved;
