//! What a new node is to be.

use super::node::{NodeExtra, NodeKind, VariableNode};
use crate::authorization::Access;
use std::sync::Arc;
use taktwerk_schema::AccessLevelType;
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, Variant};

/// What a new node is to be; a builder for [`AddressSpace::add_node`](super::AddressSpace::add_node).
#[derive(Debug)]
pub struct NodeSpec {
    pub(crate) id: NodeId,
    pub(crate) browse_name: QualifiedName,
    pub(crate) kind: NodeKind,
    pub(crate) extra: NodeExtra,
    pub(crate) data_type: NodeId,
    pub(crate) value: Option<Variant>,
    pub(crate) access: Access,
}

impl NodeSpec {
    fn new(id: NodeId, browse_name: QualifiedName, kind: NodeKind) -> Self {
        Self {
            id,
            browse_name,
            kind,
            extra: NodeExtra::default(),
            data_type: NodeId::NULL,
            value: None,
            access: Access::default(),
        }
    }

    /// An Object.
    #[must_use]
    pub fn object(id: NodeId, browse_name: QualifiedName) -> Self {
        Self::new(id, browse_name, NodeKind::Object { event_notifier: 0 })
    }

    /// A readable scalar Variable of a DataType; `value` is its first value, made when the node is added.
    #[must_use]
    pub fn variable(
        id: NodeId,
        browse_name: QualifiedName,
        data_type: NodeId,
        value: Option<Variant>,
    ) -> Self {
        let kind = NodeKind::Variable(VariableNode {
            slot: None,
            data_type: 0,
            access_level: AccessLevelType::CURRENT_READ.0,
            value_rank: -1,
        });
        Self { data_type, value, ..Self::new(id, browse_name, kind) }
    }

    /// A Method.
    #[must_use]
    pub fn method(
        id: NodeId,
        browse_name: QualifiedName,
        handler: Option<Arc<dyn crate::callback::MethodHandler>>,
    ) -> Self {
        let mut spec = Self::new(id, browse_name, NodeKind::Method { executable: true });
        spec.extra.handler = handler;
        spec
    }

    /// A node of any class.
    pub(crate) fn with_kind(id: NodeId, browse_name: QualifiedName, kind: NodeKind) -> Self {
        Self::new(id, browse_name, kind)
    }

    /// Another DisplayName than the BrowseName's text.
    #[must_use]
    pub fn display_name(mut self, text: LocalizedText) -> Self {
        self.extra.display_name = Some(text);
        self
    }

    /// The Description.
    #[must_use]
    pub fn description(mut self, text: LocalizedText) -> Self {
        self.extra.description = Some(text);
        self
    }
}
