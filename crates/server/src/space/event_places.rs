//! At which nodes events can be seen, kept for the next event of the same type and source.
//!
//! To find it, the References of the source and of all nodes above it are looked through: those of a folder with 10 000
//! alarms are 10 000 for each event. What was found holds until the nodes change.

use super::NodeIx;
use super::nodes::Nodes;
use crate::diagnostics::nodes::SessionNode;
use crate::event::model::Placed;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_types::NodeId;

/// Pairs of type and source that are known at most; when they are more, all are forgotten.
const KNOWN_MAX: usize = 4096;

/// What is known.
#[derive(Debug, Default)]
pub(super) struct EventPlaces {
    /// Goes up whenever the nodes may change.
    changes: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of which state of the nodes.
    changes: u64,
    /// By source, and of each source by type: few, so they are looked through.
    placed: BTreeMap<NodeId, Vec<(NodeId, Arc<Placed>)>>,
    /// How many they are.
    len: usize,
}

impl Known {
    fn get(&self, event_type: &NodeId, source: &NodeId) -> Option<&Arc<Placed>> {
        let types = self.placed.get(source)?;
        types.iter().find(|(known, _)| known == event_type).map(|(_, placed)| placed)
    }
}

impl EventPlaces {
    /// The nodes may change from now on: to be called by who has the lock that keeps readers out.
    pub(super) fn forget(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Where an event can be seen. The caller holds the lock of `nodes`, so they do not change meanwhile.
    pub(super) fn place(&self, nodes: &Nodes, event_type: &NodeId, source: &NodeId) -> Arc<Placed> {
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
        let placed = Arc::new(nodes.place(event_type, source));
        // Nodes of sessions come and go without a change of the others.
        let is_lasting = |id: &NodeId| nodes.resolve(id.as_ref()).is_some_and(|ix| !is_made(ix));
        if is_lasting(event_type) && is_lasting(source) {
            let mut known = self.known();
            if known.len >= KNOWN_MAX {
                *known = Known { changes, ..Known::default() };
            }
            // Another thread may have found it meanwhile.
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

/// Whether a node is made when somebody asks for it.
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

    fn placed(space: &AddressSpace) -> Arc<Placed> {
        let kind = NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE);
        let nodes = space.read();
        let kept = space.event_places.place(&nodes, &kind, &PUMP);
        assert_eq!(*kept, nodes.place(&kind, &PUMP), "what is kept is what would be found");
        kept
    }

    #[test]
    fn what_is_kept_holds_until_the_nodes_change() {
        let space = AddressSpace::new(1, 16, "urn:test");
        // Not there yet: it is looked for each time.
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
    fn no_more_are_kept_than_the_limit() {
        let space = AddressSpace::new(1, 16, "urn:test");
        let kind = NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE);
        let nodes = space.read();
        for number in 0..20_000 {
            space.event_places.place(&nodes, &kind, &NodeId::numeric(0, number));
            let known = space.event_places.known();
            assert!(known.len <= KNOWN_MAX, "{}", known.len);
            assert_eq!(known.placed.values().map(Vec::len).sum::<usize>(), known.len);
        }
        assert!(space.event_places.known().len > 0);
    }
}
