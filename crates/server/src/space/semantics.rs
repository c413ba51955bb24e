//! SemanticChangeEvents (Part 3 §9.33): the semantics of a variable have changed, for example its unit.

use super::nodes::Nodes;
use super::{AddressSpace, NodeIx};
use crate::event::{ModelChangeEvents, NewEvent};
use std::collections::BTreeMap;
use taktwerk_schema::SemanticChangeStructureDataType;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_types::{Array, ArrayValues, ExtensionObject, NodeId, UtcTime, Variant};

/// The unreported changes of one request. Each node is listed once (§9.33.4).
#[derive(Debug, Default)]
pub(crate) struct SemanticChanges(BTreeMap<NodeIx, SemanticChangeStructureDataType>);

impl SemanticChanges {
    /// Records the change of a Property of a node. Nodes with restricted visibility are not listed.
    pub(crate) fn add(&mut self, nodes: &Nodes, owner: NodeIx) {
        if nodes.is_public(owner) {
            let kind = nodes.forward_target(owner, reference_type_ids::HAS_TYPE_DEFINITION);
            let affected_type = kind.map(|kind| nodes.id_of(kind)).unwrap_or_default();
            let affected = nodes.id_of(owner);
            self.0.insert(owner, SemanticChangeStructureDataType { affected, affected_type });
        }
    }
}

/// Maximum number of nodes listed in one event: event queues are limited by number, not by size.
const CHANGES_PER_EVENT: usize = 64;

impl AddressSpace {
    /// Raises events of the Server Object for changes, if there are any.
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
