//! Events (Part 3 §4.7, Part 4 §7.22.3, Part 5 §6.4).
//!
//! An event is built once and shared. It is put on a bounded ring of each shard that has items on one of the event's
//! notifier nodes; the shard's engine filters it there. While no item monitors events, raising one costs a single
//! relaxed load.
//!
//! - [`model`]: the contents and notifiers of an event; [`field`]: names of fields;
//! - [`filter`]: EventFilters, checked and compiled; [`bus`]: delivery of events to the shards;
//! - [`queue`]: events that wait for their client; [`written`]: encodings shared by items with equal filters;
//!   [`ModelChangeEvents`]: the level of detail of model change events.
//!
//! `space/events.rs` finds the notifiers of an event; `subscription/events.rs` handles events for items.

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
