//! A cache of the notifiers of events, by type and source.
//!
//! Finding them means searching the References of the source and of all nodes above it: for a folder with 10 000
//! alarms, 10 000 for each event. Entries are valid until the nodes change.

use super::NodeIx;
use super::nodes::Nodes;
use crate::diagnostics::nodes::SessionNode;
use crate::event::model::EventNodes;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_types::NodeId;

/// Maximum number of cached pairs of type and source; beyond it, the cache is cleared.
const KNOWN_MAX: usize = 4096;

/// The cache.
#[derive(Debug, Default)]
pub(super) struct NotifierCache {
    /// Incremented whenever the nodes may change.
    changes: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The value of `changes` that the entries are valid for.
    changes: u64,
    /// By source, then a short list by type.
    placed: BTreeMap<NodeId, Vec<(NodeId, Arc<EventNodes>)>>,
    /// Number of entries.
    len: usize,
}

impl Known {
    fn get(&self, event_type: &NodeId, source: &NodeId) -> Option<&Arc<EventNodes>> {
        let types = self.placed.get(source)?;
        types.iter().find(|(known, _)| known == event_type).map(|(_, placed)| placed)
    }
}

impl NotifierCache {
    /// The nodes may change from now on. Call it while holding the write lock.
    pub(super) fn forget(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// The notifiers of an event. The caller holds the lock of `nodes`, so they do not change in the meantime.
    pub(super) fn event_nodes(&self, nodes: &Nodes, event_type: &NodeId, source: &NodeId) -> Arc<EventNodes> {
        let changes = self.changes.load(Ordering::Relaxed);
        {
            let mut known = self.known();
            if known.changes != changes {
                *known = Known { changes, ..Known::default() };
            }
            if let Some(placed) = known.get(event_type, source) {
                return Arc::clone(placed);
            }
        }
        let placed = Arc::new(nodes.event_nodes(event_type, source));
        // Nodes of sessions appear and disappear without a change of the others.
        let is_lasting = |id: &NodeId| nodes.resolve(id.as_ref()).is_some_and(|ix| !is_made(ix));
        if is_lasting(event_type) && is_lasting(source) {
            let mut known = self.known();
            if known.len >= KNOWN_MAX {
                *known = Known { changes, ..Known::default() };
            }
            // Another thread may have added it in the meantime.
            if known.get(event_type, source).is_none() {
                let entry = (event_type.clone(), Arc::clone(&placed));
                known.placed.entry(source.clone()).or_default().push(entry);
                known.len += 1;
            }
        }
        placed
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a node is virtual, that is, created on access.
fn is_made(ix: NodeIx) -> bool {
    SessionNode::from_ix(ix).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::build::Under;
    use crate::space::{AddressSpace, NodeSpec};
    use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
    use taktwerk_types::{QualifiedName, UtcTime};

    const AREA: NodeId = NodeId::numeric(1, 1);
    const QUIET: NodeId = NodeId::numeric(1, 3);
    const PUMP: NodeId = NodeId::numeric(1, 2);

    fn add(space: &AddressSpace, id: &NodeId, parent: &NodeId, event_notifier: u8) {
        let name = QualifiedName::new(1, format!("n{id}"));
        let spec = NodeSpec::object(id.clone(), name).event_notifier(event_notifier);
        let under = Under {
            parent,
            reference_type: &NodeId::numeric(0, reference_type_ids::ORGANIZES),
            type_definition: Some(&NodeId::numeric(0, object_type_ids::FOLDER_TYPE)),
        };
        space.add_node(spec, under, UtcTime::NULL).unwrap();
    }

    fn placed(space: &AddressSpace) -> Arc<EventNodes> {
        let kind = NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE);
        let nodes = space.read();
        let kept = space.notifier_cache.event_nodes(&nodes, &kind, &PUMP);
        assert_eq!(*kept, nodes.event_nodes(&kind, &PUMP), "the cached result equals a new search");
        kept
    }

    #[test]
    fn entries_are_valid_until_the_nodes_change() {
        let space = AddressSpace::new(1, 16, "urn:test");
        // The source does not exist yet, so nothing is cached.
        assert!(!Arc::ptr_eq(&placed(&space), &placed(&space)));
        let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
        add(&space, &QUIET, &objects, 0);
        add(&space, &AREA, &objects, 1);
        add(&space, &PUMP, &QUIET, 0);
        let first = placed(&space);
        assert!(Arc::ptr_eq(&first, &placed(&space)));
        space.delete_node(&PUMP).unwrap();
        add(&space, &PUMP, &AREA, 0);
        let second = placed(&space);
        assert_eq!(second.notifiers.len(), first.notifiers.len() + 1);
        assert!(Arc::ptr_eq(&second, &placed(&space)));
        space.delete_node(&AREA).unwrap();
        assert!(placed(&space).notifiers.len() < second.notifiers.len());
    }

    #[test]
    fn the_cache_is_bounded() {
        let space = AddressSpace::new(1, 16, "urn:test");
        let kind = NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE);
        let nodes = space.read();
        for number in 0..20_000 {
            space.notifier_cache.event_nodes(&nodes, &kind, &NodeId::numeric(0, number));
            let known = space.notifier_cache.known();
            assert!(known.len <= KNOWN_MAX, "{}", known.len);
            assert_eq!(known.placed.values().map(Vec::len).sum::<usize>(), known.len);
        }
        assert!(space.notifier_cache.known().len > 0);
    }
}
