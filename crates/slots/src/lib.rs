//! Values of variables, shared by their writers and the shards that watch them (design §4).
//!
//! Writers run on any thread. Readers take no lock. A shard that watches a slot gets a bit for each changed slot, or each
//! write in order. The server owns the nodes; this crate has their values only, so that the model checker compiles little
//! besides it (`cargo xtask loom`).
//!
//! - `slot`: one value; [`Page`]: 1 024 of them, with the bits of the shards;
//! - [`SlotStore`]: all pages, their free slots and the shards; [`SlotHandle`], [`SlotShare`]: ownership of a slot;
//! - `hub`: what the pages share; `dirty`: sets of changed slots and pages; `sync`: atomics, or those of the model checker.

#![forbid(unsafe_code)]

mod dirty;
mod hub;
mod page;
mod slot;
mod store;
mod sync;

pub use hub::{QueuedValue, Wake};
pub use page::{PAGE_SLOTS, Page};
pub use slot::{SHARDS_MAX, Scalar, Snapshot};
pub use store::{SlotHandle, SlotShare, SlotStore};
