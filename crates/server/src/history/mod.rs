//! History of Variables and events (Part 11): the interface of stores, and the work of HistoryRead and HistoryUpdate.
//!
//! Everything here runs on worker threads as the job of an effect, never on a shard. The services in `service/history`
//! check requests on the shard and create the jobs.
//!
//! - [`store`]: the trait for stores, and their values; [`memory`]: a store in memory;
//! - `read`, `update`: the jobs; `point`: the continuation points of a session;
//! - [`event`]: events in their stored form; `merge`: joins them, and values, with what is not stored yet;
//! - [`rule`]: which writes are recorded;
//! - [`aggregate`]: the standard aggregates of Part 13.

pub mod aggregate;
pub(crate) mod event;
pub mod memory;
mod merge;
pub(crate) mod point;
pub(crate) mod read;
pub mod rule;
pub mod store;
pub(crate) mod update;

pub use event::StoredEvent;
pub use memory::MemoryStore;
pub use merge::{merge_unstored, sort_values};
pub use rule::Rule;
pub use store::{
    AnnotationKey, EventCursor, HistoryStore, HistoryValue, Modification, ModifiedValue, NodeKey, Order,
    Perform, ReadLimit, Span, StoreCapabilities, StoreError,
};
pub use store::{Sees, merge_event};

use crate::node_ix::NodeIx;
use aggregate::Configuration;
use std::sync::Arc;

/// The store of a Variable's history, and how to read it.
#[derive(Debug, Clone)]
pub struct NodeHistory {
    /// The store.
    pub store: Arc<dyn HistoryStore>,
    /// The Variable's name in the store: its NodeId with the namespace URI, because namespace indexes may change
    /// between runs.
    pub key: NodeKey,
    /// Stepped (Part 11 §5.2.2). True: values hold until the next one. False: values in between are on a line.
    pub stepped: bool,
    /// The defaults of the Variable's aggregates.
    pub aggregates: Configuration,
    /// Which writes are recorded, for the Variable's HistoricalDataConfiguration.
    pub rule: Rule,
    /// For an Annotations Property (Part 11 §5.1.2): the Variable whose annotations it has. The key is that Variable's.
    pub(crate) annotates: Option<NodeIx>,
}

impl NodeHistory {
    /// History of a stepped Variable, with the standard defaults for aggregates.
    #[must_use]
    pub fn new(store: Arc<dyn HistoryStore>, key: NodeKey) -> Self {
        let (aggregates, rule) = (Configuration::default(), Rule::default());
        Self { store, key, stepped: true, aggregates, rule, annotates: None }
    }

    /// The owner of continuation points. A Variable and its Annotations Property have different ones.
    pub(crate) fn points_key(&self) -> NodeKey {
        match self.annotates {
            None => NodeKey::clone(&self.key),
            Some(_) => format!("annotations of {}", self.key).into(),
        }
    }
}
