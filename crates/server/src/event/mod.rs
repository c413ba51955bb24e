//! Events (Part 3 §4.7, Part 4 §7.22.3, Part 5 §6.4).
//!
//! An event is built once and shared. It goes on a bounded ring of each shard that has items on one of the nodes at which
//! it can be seen; the shard's engine filters it there. As long as nobody watches, raising an event costs one relaxed
//! load.
//!
//! - [`model`]: what an event says, and where it can be seen; [`field`]: names of fields;
//! - [`filter`]: EventFilters, checked and compiled; [`bus`]: from those who raise events to the shards;
//! - [`queue`]: events that wait for their client, and [`written`]: what those with equal filters share; [`ModelChangeEvents`]: how much is told of changed nodes.
//!
//! Where in the address space an event can be seen is found in `space/events.rs`, what items do with it in
//! `subscription/events.rs`.

pub(crate) mod bus;
pub mod field;
pub(crate) mod filter;
pub mod model;
pub(crate) mod queue;
mod verbosity;
pub(crate) mod written;

pub use bus::EventBus;
pub use field::FieldName;
pub use model::{Event, NewEvent};
pub use verbosity::ModelChangeEvents;
