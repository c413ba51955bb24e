//! Operations of the NodeManagement services in audit records (Part 5 §6.4.19 to §6.4.23).

use crate::event::NewEvent;
use taktwerk_schema::ids::object_type_ids as t;
use taktwerk_schema::{AddNodesItem, AddReferencesItem, DeleteNodesItem, DeleteReferencesItem};
use taktwerk_types::{ExpandedNodeId, ExtensionObject, Identifier, NodeId, QualifiedName, UaString, Variant};

/// An operation of the request. The attributes of a new node are left out: its value may be a secret.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AuditItem {
    /// AddNodes.
    AddNode(Box<AddNodesItem>),
    /// AddReferences.
    AddReference(Box<AddReferencesItem>),
    /// DeleteNodes.
    DeleteNode(DeleteNodesItem),
    /// DeleteReferences.
    DeleteReference(Box<DeleteReferencesItem>),
}

impl AuditItem {
    /// Of an operation of AddNodes.
    pub(crate) fn of_node(item: &AddNodesItem) -> Self {
        Self::AddNode(Box::new(AddNodesItem {
            parent_node_id: item.parent_node_id.clone(),
            reference_type_id: item.reference_type_id.clone(),
            requested_new_node_id: item.requested_new_node_id.clone(),
            browse_name: item.browse_name.clone(),
            node_class: item.node_class,
            node_attributes: ExtensionObject::NULL,
            type_definition: item.type_definition.clone(),
        }))
    }

    /// Leaves out texts. In a refused operation they are arbitrary texts from a client.
    pub(crate) fn without_texts(mut self) -> Self {
        match &mut self {
            Self::AddNode(item) => {
                expanded(&mut item.parent_node_id);
                plain(&mut item.reference_type_id);
                expanded(&mut item.requested_new_node_id);
                item.browse_name = QualifiedName::default();
                expanded(&mut item.type_definition);
            }
            Self::AddReference(item) => {
                plain(&mut item.source_node_id);
                plain(&mut item.reference_type_id);
                item.target_server_uri = UaString::default();
                expanded(&mut item.target_node_id);
            }
            Self::DeleteNode(item) => plain(&mut item.node_id),
            Self::DeleteReference(item) => {
                plain(&mut item.source_node_id);
                plain(&mut item.reference_type_id);
                expanded(&mut item.target_node_id);
            }
        }
        self
    }

    pub(super) fn event_type(&self) -> u32 {
        match self {
            Self::AddNode(_) => t::AUDIT_ADD_NODES_EVENT_TYPE,
            Self::AddReference(_) => t::AUDIT_ADD_REFERENCES_EVENT_TYPE,
            Self::DeleteNode(_) => t::AUDIT_DELETE_NODES_EVENT_TYPE,
            Self::DeleteReference(_) => t::AUDIT_DELETE_REFERENCES_EVENT_TYPE,
        }
    }

    pub(super) fn source_name(&self) -> &'static str {
        match self {
            Self::AddNode(_) => "NodeManagement/AddNodes",
            Self::AddReference(_) => "NodeManagement/AddReferences",
            Self::DeleteNode(_) => "NodeManagement/DeleteNodes",
            Self::DeleteReference(_) => "NodeManagement/DeleteReferences",
        }
    }

    /// The list of the EventType. There is one record per operation.
    pub(super) fn add_fields(&self, event: NewEvent) -> NewEvent {
        match self {
            Self::AddNode(item) => event.field("NodesToAdd", Variant::from_structures([&**item])),
            Self::AddReference(item) => event.field("ReferencesToAdd", Variant::from_structures([&**item])),
            Self::DeleteNode(item) => event.field("NodesToDelete", Variant::from_structures([item])),
            Self::DeleteReference(item) => {
                event.field("ReferencesToDelete", Variant::from_structures([&**item]))
            }
        }
    }
}

fn plain(id: &mut NodeId) {
    if !matches!(id.identifier, Identifier::Numeric(_) | Identifier::Guid(_)) {
        *id = NodeId::NULL;
    }
}

fn expanded(id: &mut ExpandedNodeId) {
    plain(&mut id.node_id);
    id.namespace_uri = UaString::default();
}
