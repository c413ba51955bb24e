//! SemanticChangeEvents (Part 3 §9.33): the values of a variable have another meaning than before, such as another unit.

use super::nodes::Nodes;
use super::{AddressSpace, NodeIx};
use crate::event::{ModelChangeEvents, NewEvent};
use std::collections::BTreeMap;
use taktwerk_schema::SemanticChangeStructureDataType;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_types::{Array, ArrayValues, ExtensionObject, NodeId, UtcTime, Variant};

/// Changes of one request that no event has told of yet. Each node is named once (§9.33.4).
#[derive(Debug, Default)]
pub(crate) struct SemanticChanges(BTreeMap<NodeIx, SemanticChangeStructureDataType>);

impl SemanticChanges {
    /// Notes that a Property of a node was changed. Nodes that not everybody may see are not named.
    pub(crate) fn add(&mut self, nodes: &Nodes, owner: NodeIx) {
        if nodes.is_public(owner) {
            let kind = nodes.forward_target(owner, reference_type_ids::HAS_TYPE_DEFINITION);
            let affected_type = kind.map(|kind| nodes.id_of(kind)).unwrap_or_default();
            let affected = nodes.id_of(owner);
            self.0.insert(owner, SemanticChangeStructureDataType { affected, affected_type });
        }
    }
}

/// Nodes that one event names at most: events wait in queues that count them, not their bytes.
const CHANGES_PER_EVENT: usize = 64;

impl AddressSpace {
    /// Tells of changes, if there are some: events of the Server Object.
    pub(crate) fn raise_semantic_changes(&self, changes: SemanticChanges, now: UtcTime) {
        let changes: Vec<_> = changes.0.into_values().collect();
        let told = self.events().model_changes();
        if changes.is_empty() || told == ModelChangeEvents::Off {
            return;
        }
        if !told.names(changes.len(), CHANGES_PER_EVENT) {
            let kind = NodeId::numeric(0, object_type_ids::BASE_MODEL_CHANGE_EVENT_TYPE);
            let event = NewEvent::new(kind, NodeId::numeric(0, object_ids::SERVER))
                .source_name("Server")
                .message("The values of variables have another meaning");
            self.raise(event, now);
            return;
        }
        for part in changes.chunks(CHANGES_PER_EVENT) {
            self.raise_with(now, || {
                let kind = NodeId::numeric(0, object_type_ids::SEMANTIC_CHANGE_EVENT_TYPE);
                let count = part.len();
                let values = ArrayValues::ExtensionObject(part.iter().map(ExtensionObject::new).collect());
                NewEvent::new(kind, NodeId::numeric(0, object_ids::SERVER))
                    .source_name("Server")
                    .message(&*format!("The values of {count} variable(s) have another meaning"))
                    .field("Changes", Variant::Array(Box::new(Array { values, dimensions: Vec::new() })))
            });
        }
    }
}
