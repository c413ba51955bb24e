//! The address space: nodes, references and values (Part 3, design §4).
//!
//! - `slot`: where values live; `dirty`: how writes tell shards what changed;
//! - `node`: nodes on the heap; namespace 0 itself is read from the schema's static blob;
//! - `spec`: what new nodes are to be; `error`: why they cannot be;
//! - `nodes`: the tables, lookups and changes; `view`: one node's attributes, wherever it lives;
//! - `call`, `rights`: calling Methods and asking for permissions from within the process;
//! - [`build`]: builders for applications; [`import`]: NodeSets at run time.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub mod build;
mod call;
pub(crate) mod dirty;
pub(crate) mod error;
pub mod import;
pub(crate) mod node;
pub(crate) mod nodes;
mod rights;
pub(crate) mod slot;
pub(crate) mod spec;
pub(crate) mod view;

pub use error::NodeError;
pub use node::NodeIx;
pub use nodes::Reference;
pub use rights::Rights;
pub use slot::{SHARDS_MAX, Wake};
pub use spec::NodeSpec;

use crate::source::Sources;
use nodes::Nodes;
use slot::{SlotHandle, SlotStore};
use taktwerk_types::{DataValue, StatusCode, UtcTime, Variant};

/// A server's address space, shared by its shards and the application's threads.
///
/// Structure changes take a write lock; services hold the read lock for one request; values never need it.
#[derive(Debug)]
pub struct AddressSpace {
    nodes: RwLock<Nodes>,
    slots: Arc<SlotStore>,
    /// Goes up with everything that changes what somebody may do.
    access_generation: Arc<AtomicU64>,
    /// What fetches values and may take its time.
    sources: Arc<Sources>,
}

impl AddressSpace {
    /// The namespace 0 alone, for a server with `shards` shards. `queue_len` bounds the values on their way to items
    /// that queue, per shard.
    #[must_use]
    pub fn new(shards: usize, queue_len: usize, application_uri: &str) -> Self {
        let slots = Arc::new(SlotStore::new(shards, queue_len));
        let nodes = Nodes::new(Arc::clone(&slots), application_uri);
        let access_generation = nodes.access().shared_generation();
        Self { nodes: RwLock::new(nodes), slots, access_generation, sources: Arc::default() }
    }

    /// The sources of its values that take their time.
    #[must_use]
    pub fn sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// Tells how to wake a shard's driver.
    pub fn set_waker(&self, shard: usize, waker: Box<dyn Wake>) {
        self.slots.set_waker(shard, waker);
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Nodes> {
        self.nodes.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Nodes> {
        self.nodes.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Goes up with everything that changes what somebody may do.
    #[inline]
    pub(crate) fn access_generation(&self) -> u64 {
        self.access_generation.load(Ordering::Acquire)
    }

    pub(crate) fn slots(&self) -> &Arc<SlotStore> {
        &self.slots
    }
}

/// An application's handle to a Variable's value: cheap to clone, usable from any thread, never blocks.
#[derive(Debug, Clone)]
pub struct VariableHandle {
    slot: SlotHandle,
}

impl crate::source::Target for VariableHandle {
    fn get(&self) -> DataValue {
        Self::get(self)
    }

    fn set(&self, value: Variant, status: StatusCode, source: UtcTime, server: UtcTime) {
        self.set_with(value, status, source, server);
    }
}

impl VariableHandle {
    pub(crate) fn new(slot: SlotHandle) -> Self {
        Self { slot }
    }

    /// Stores a good value made at `time`.
    #[inline]
    pub fn set_at(&self, value: impl Into<Variant>, time: UtcTime) {
        self.slot.set(value.into(), StatusCode::GOOD, time, time);
    }

    /// Stores a value with its status, source time and server time.
    #[inline]
    pub fn set_with(&self, value: impl Into<Variant>, status: StatusCode, source: UtcTime, server: UtcTime) {
        self.slot.set(value.into(), status, source, server);
    }

    /// The value as it is now.
    #[must_use]
    pub fn get(&self) -> DataValue {
        self.slot.read().to_data_value()
    }
}
