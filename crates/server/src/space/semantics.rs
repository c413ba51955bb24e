//! SemanticChangeEvents (Part 3 §9.33): the values of a variable have another meaning than before, such as another unit.

use super::nodes::Nodes;
use super::{AddressSpace, NodeIx};
use crate::event::NewEvent;
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

impl AddressSpace {
    /// Tells of changes, if there are some: one event of the Server Object.
    pub(crate) fn raise_semantic_changes(&self, changes: SemanticChanges, now: UtcTime) {
        if changes.0.is_empty() {
            return;
        }
        self.raise_with(now, || {
            let kind = NodeId::numeric(0, object_type_ids::SEMANTIC_CHANGE_EVENT_TYPE);
            let count = changes.0.len();
            let values = ArrayValues::ExtensionObject(changes.0.values().map(ExtensionObject::new).collect());
            NewEvent::new(kind, NodeId::numeric(0, object_ids::SERVER))
                .source_name("Server")
                .message(&*format!("The values of {count} variable(s) have another meaning"))
                .field("Changes", Variant::Array(Box::new(Array { values, dimensions: Vec::new() })))
        });
    }
}
