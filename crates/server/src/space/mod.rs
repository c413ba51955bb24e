//! The address space: nodes, references and values (Part 3, design §4).
//!
//! - `slot`: storage of a value; `page`: writing it and notifying shards; `dirty`: which slots have changed; `store`:
//!   allocation of slots; `sync`: their shared-memory primitives;
//! - `node`: nodes on the heap; namespace 0 itself is read from the schema's static data;
//! - `spec`: definitions of new nodes; `error`: errors of adding them;
//! - `added`: nodes of clients; `aliases`: AliasNames; `alias_changes`: when they changed; `alias_methods`: clients that
//!   change them; `names`: children by name;
//! - `nodes`: the tables, lookups and changes; `view`: the attributes of a node, static or on the heap; `views`: Views
//!   as scopes;
//! - `attributes`: attributes that depend on the session; `decisions`: permissions of a session for a node; `rights`:
//!   the same for the application's own code; `data_type`: checks of values against DataTypes;
//! - `metadata`, `role_set`: contents of the NamespaceMetadata objects and the RoleSet;
//! - `instance`: members of new instances; `instances`: instances by type, for Query;
//! - `history`: Variables with history; `recording`: subtrees of which all Variables are recorded; `versions`:
//!   NodeVersions and model changes; `semantics`: semantic changes;
//!   `tree`: deleting a node with its parts; `deletable`: nodes that the application deletes for clients;
//! - `events`: notifiers of events; `audit`: AuditEvents; `alarms`: conditions;
//! - [`build`]: builders for applications; [`import`]: NodeSets at run time.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

mod added;
mod alarms;
mod alias_changes;
mod alias_methods;
mod aliases;
mod attributes;
mod audit;
pub mod build;
pub(crate) mod data_type;
mod decisions;
mod deletable;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod history;
pub mod import;
pub(crate) mod instance;
mod instances;
mod metadata;
mod names;
pub(crate) mod node;
pub(crate) mod nodes;
mod notifier_cache;
mod recording;
mod rights;
pub(crate) mod role_set;
mod segmented;
pub(crate) mod semantics;
pub(crate) mod spec;
mod tree;
mod versions;
pub(crate) mod view;
pub(crate) mod views;

pub use crate::node_ix::{NodeIx, Reference};
pub use alarms::{AlarmError, Alarms, ConditionReport, NotSaved};
pub(crate) use attributes::{attribute, attribute_permission};
pub use error::NodeError;
pub use events::EventTypeError;
pub use recording::{RecordedSubtree, RecordingChanges};
pub use rights::Rights;
pub use spec::NodeSpec;
pub use taktwerk_slots::{SHARDS_MAX, Wake};

use crate::event::EventBus;
use crate::source::Sources;
use nodes::Nodes;
use taktwerk_slots::{SlotHandle, SlotStore};
use taktwerk_types::{DataValue, StatusCode, UtcTime, Variant};

/// A server's address space, shared by its shards and the application's threads.
///
/// Structure changes take a write lock; services hold the read lock for one request; access to values needs no lock.
#[derive(Debug)]
pub struct AddressSpace {
    nodes: RwLock<Nodes>,
    slots: Arc<SlotStore>,
    /// Incremented by every change of access rights.
    access_generation: Arc<AtomicU64>,
    /// Slow value sources.
    sources: Arc<Sources>,
    /// Delivery of events to items.
    events: Arc<EventBus>,
    /// Cache of the notifiers of events.
    notifier_cache: notifier_cache::NotifierCache,
    /// Number of threads that wait to read the structure.
    waiting: AtomicUsize,
    /// The history store, and Variables to be recorded.
    history: history::Registry,
    /// The conditions, if there are any.
    alarms: OnceLock<Arc<Alarms>>,
}

/// How often a change in many steps checks for waiting readers before it continues anyway.
const YIELD_CHECKS_MAX: u32 = 32;

/// Default length, per shard, of the queue of values in transit to items with a queue. When it is full, values are lost
/// and the Overflow bit is set.
pub const QUEUED_CHANGES_MAX: usize = 8192;

impl AddressSpace {
    /// Creates an address space with namespace 0 only, for a server with `shards` shards. `queue_len` limits the values
    /// in transit to items with a queue, per shard.
    #[must_use]
    pub fn new(shards: usize, queue_len: usize, application_uri: &str) -> Self {
        Self::on(SlotStore::new(shards, queue_len), application_uri)
    }

    /// The same with a [`Recorder`](crate::recorder::Recorder), whose queue holds `recorder_queue_len` values.
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
            notifier_cache: notifier_cache::NotifierCache::default(),
            waiting,
            history,
            alarms,
        }
    }

    /// The slow sources of its values.
    #[must_use]
    pub fn sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// Sets how to wake a shard's driver.
    pub fn set_waker(&self, shard: usize, waker: Box<dyn Wake>) {
        self.slots.set_waker(shard, waker);
    }

    /// Sets how to wake the recorder's driver when its queue is half full.
    pub fn set_recorder_waker(&self, waker: Box<dyn Wake>) {
        if let Some(shard) = self.slots.recorder() {
            self.slots.set_waker(shard, waker);
        }
    }

    /// Sets how a thread yields to others. A thread that waits for a value being written calls it repeatedly with an
    /// increasing number. Without it, waiting threads spin. Only the first call counts.
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

    /// Lets waiting readers proceed between the steps of a long change. Releasing the lock is not enough, because the
    /// same thread may get it again at once.
    pub(crate) fn yield_to_readers(&self) {
        for count in 0..YIELD_CHECKS_MAX {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                return;
            }
            self.slots.pause(count);
        }
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Nodes> {
        let nodes = self.nodes.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.notifier_cache.forget();
        nodes
    }

    /// Incremented by every change of access rights.
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

    /// Stores a good value with the source time `time`.
    #[inline]
    pub fn set_at(&self, value: impl Into<Variant>, time: UtcTime) {
        self.slot.set(value.into(), StatusCode::GOOD, time, time);
    }

    /// Stores a value with its status, source time and server time.
    #[inline]
    pub fn set_with(&self, value: impl Into<Variant>, status: StatusCode, source: UtcTime, server: UtcTime) {
        self.slot.set(value.into(), status, source, server);
    }

    /// The current value.
    #[must_use]
    pub fn get(&self) -> DataValue {
        self.slot.read().to_data_value()
    }

    /// Whether the Variable was deleted. Its handles stay without effect, even if its id is used again: then
    /// [`AddressSpace::variable`] returns the handle of the new Variable.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.slot.is_closed()
    }
}
