//! The address space: nodes, references and values (Part 3, design §4).
//!
//! - `slot`: where a value lives; `page`: writing it and telling shards; `dirty`: which slots have changed; `store`: who
//!   holds which slot; `sync`: the shared memory they are made of;
//! - `node`: nodes on the heap; namespace 0 itself is read from the schema's static blob;
//! - `spec`: what new nodes are to be; `error`: why they cannot be;
//! - `added`: what clients add; `aliases`: AliasNames; `alias_changes`: when they changed; `names`: children by name;
//! - `nodes`: the tables, lookups and changes; `view`: one node's attributes, wherever it lives; `views`: Views as scopes;
//! - `attributes`: the attributes that depend on the session; `decisions`: what a session may do with a node; `rights`: the
//!   same for the application's own code; `data_type`: which built-in type a DataType is encoded as;
//! - `metadata`, `role_set`: what the NamespaceMetadata objects and the RoleSet show;
//! - `instance`: members of new instances; `instances`: instances by their type, for Query;
//! - `history`: which Variables have a history; `versions`: NodeVersions and model changes;
//!   `semantics`: values with another meaning; `tree`: deleting a node with its parts; `deletable`: what the application deletes
//!   for clients;
//! - `events`: where in the address space events can be seen; `audit`: AuditEvents; `alarms`: conditions;
//! - [`build`]: builders for applications; [`import`]: NodeSets at run time.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

mod added;
mod alarms;
mod alias_changes;
mod aliases;
mod attributes;
mod audit;
pub mod build;
pub(crate) mod data_type;
mod decisions;
mod deletable;
pub(crate) mod dirty;
pub(crate) mod error;
mod event_places;
pub(crate) mod events;
pub(crate) mod history;
pub mod import;
pub(crate) mod instance;
mod instances;
mod metadata;
mod names;
pub(crate) mod node;
pub(crate) mod nodes;
pub(crate) mod page;
mod rights;
pub(crate) mod role_set;
mod segmented;
pub(crate) mod semantics;
pub(crate) mod slot;
pub(crate) mod spec;
mod spread;
pub(crate) mod store;
mod sync;
mod tree;
mod versions;
pub(crate) mod view;
pub(crate) mod views;

pub use crate::node_ix::{NodeIx, Reference};
pub use alarms::{AlarmError, Alarms, ConditionReport, NotSaved};
pub(crate) use attributes::{attribute, attribute_permission};
pub use error::NodeError;
pub use events::EventTypeError;
pub use rights::Rights;
pub use slot::SHARDS_MAX;
pub use spec::NodeSpec;
pub use store::Wake;

use crate::event::EventBus;
use crate::source::Sources;
use nodes::Nodes;
use store::{SlotHandle, SlotStore};
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
    /// Events on their way to items.
    events: Arc<EventBus>,
    /// At which nodes they can be seen.
    event_places: event_places::EventPlaces,
    /// How many threads wait to read the structure.
    waiting: AtomicUsize,
    /// Where history goes, and what is to be recorded.
    history: history::Registry,
    /// The conditions, if there are some.
    alarms: OnceLock<Arc<Alarms>>,
}

/// Looks at waiting readers before a change in many steps goes on all the same.
const GIVE_WAY_MAX: u32 = 32;

/// Usual length of the queue of values on their way to items that queue, per shard. If it is full, the Overflow bit tells that
/// values are missing.
pub const QUEUED_CHANGES_MAX: usize = 8192;

impl AddressSpace {
    /// The namespace 0 alone, for a server with `shards` shards. `queue_len` bounds the values on their way to items
    /// that queue, per shard.
    #[must_use]
    pub fn new(shards: usize, queue_len: usize, application_uri: &str) -> Self {
        Self::on(SlotStore::new(shards, queue_len), application_uri)
    }

    /// The same with room for a [`Recorder`](crate::recorder::Recorder), whose queue holds `recorder_queue_len` values.
    #[must_use]
    pub fn with_recorder(
        shards: usize,
        queue_len: usize,
        recorder_queue_len: usize,
        application_uri: &str,
    ) -> Self {
        Self::on(SlotStore::with_recorder(shards, queue_len, Some(recorder_queue_len)), application_uri)
    }

    fn on(slots: SlotStore, application_uri: &str) -> Self {
        let slots = Arc::new(slots);
        let nodes = Nodes::new(Arc::clone(&slots), application_uri);
        let access_generation = nodes.access().shared_generation();
        let (sources, waiting) = (Arc::default(), AtomicUsize::new(0));
        let events =
            Arc::new(EventBus::new(slots.recorder().map_or(slots.shards(), |recorder| recorder + 1)));
        let history = history::Registry::default();
        let alarms = OnceLock::new();
        Self {
            nodes: RwLock::new(nodes),
            slots,
            access_generation,
            sources,
            events,
            event_places: event_places::EventPlaces::default(),
            waiting,
            history,
            alarms,
        }
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

    /// Tells how to wake the recorder's driver when its queue is half full.
    pub fn set_recorder_waker(&self, waker: Box<dyn Wake>) {
        if let Some(shard) = self.slots.recorder() {
            self.slots.set_waker(shard, waker);
        }
    }

    /// Tells how a thread lets others run: somebody who waits for a value that is being written calls it again and
    /// again, with a number that goes up. Without it waiting threads spin. Only the first call counts.
    pub fn set_pause(&self, pause: fn(u32)) {
        self.slots.set_pause(pause);
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Nodes> {
        match self.nodes.try_read() {
            Ok(nodes) => nodes,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait_to_read(),
        }
    }

    #[cold]
    fn wait_to_read(&self) -> RwLockReadGuard<'_, Nodes> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let nodes = self.nodes.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        nodes
    }

    /// Lets threads read that wait to, between the steps of a long change. The lock alone does not: its next holder may
    /// well be who has just given it back.
    pub(crate) fn give_way(&self) {
        for count in 0..GIVE_WAY_MAX {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                return;
            }
            self.slots.pause(count);
        }
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Nodes> {
        let nodes = self.nodes.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.event_places.forget();
        nodes
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
