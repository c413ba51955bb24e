//! History of Variables (Part 11): what a store has to do, and the work of HistoryRead and HistoryUpdate.
//!
//! Everything here runs on worker threads as the job of an effect, never on a shard. The services in `service/history`
//! check requests on the shard and make the jobs.
//!
//! - [`store`]: the trait of stores and their values; [`memory`]: a store in memory;
//! - `read`, `update`: the jobs; `point`: the continuation points of a session;
//! - [`event`]: events as they are kept;
//! - [`rule`]: which writes are recorded;
//! - [`aggregate`]: the standard aggregates of Part 13.

pub mod aggregate;
pub(crate) mod event;
pub mod memory;
pub(crate) mod point;
pub(crate) mod read;
pub mod rule;
pub mod store;
pub(crate) mod update;

pub use event::StoredEvent;
pub use memory::MemoryStore;
pub use rule::Rule;
pub use store::{
    EventCursor, HistoryStore, HistoryValue, Modification, ModifiedValue, NodeKey, Order, Perform, ReadLimit,
    Span, StoreError,
};
pub use store::{Sees, merge_event};

use aggregate::Configuration;
use std::sync::Arc;

/// Where the history of a Variable is and how it is to be read.
#[derive(Debug, Clone)]
pub struct NodeHistory {
    /// The store.
    pub store: Arc<dyn HistoryStore>,
    /// The Variable's name in the store: its NodeId with the namespace's URI. Namespace indexes may change between runs.
    pub key: NodeKey,
    /// Values hold until the next one (Stepped, Part 11 §5.2.2). False: values in between lie on a line.
    pub stepped: bool,
    /// The defaults of the Variable's aggregates.
    pub aggregates: Configuration,
}

impl NodeHistory {
    /// History of a Variable whose values hold until the next one, with the standard defaults for aggregates.
    #[must_use]
    pub fn new(store: Arc<dyn HistoryStore>, key: NodeKey) -> Self {
        Self { store, key, stepped: true, aggregates: Configuration::default() }
    }
}
