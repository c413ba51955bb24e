//! Definitions of new nodes.

use super::build::ValueShape;
use super::node::{NodeExtra, NodeKind, VariableExtra, VariableNode};
use crate::authorization::Access;
use crate::callback::{ValueSource, WriteHandler};
use std::sync::Arc;
use taktwerk_schema::AccessLevelType;
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, StatusCode, Variant};

/// The definition of a new node; a builder for [`AddressSpace::add_node`](super::AddressSpace::add_node).
#[derive(Debug)]
pub struct NodeSpec {
    pub(crate) id: NodeId,
    pub(crate) browse_name: QualifiedName,
    pub(crate) kind: NodeKind,
    pub(crate) extra: NodeExtra,
    pub(crate) data_type: NodeId,
    pub(crate) value: Option<Variant>,
    pub(crate) status: StatusCode,
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
            status: StatusCode::GOOD,
            access: Access::default(),
        }
    }

    /// An Object.
    #[must_use]
    pub fn object(id: NodeId, browse_name: QualifiedName) -> Self {
        Self::new(id, browse_name, NodeKind::Object { event_notifier: 0 })
    }

    /// A readable scalar Variable of a DataType; `value` is its initial value, timestamped when the node is added.
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

    /// A concrete ObjectType; add it with HasSubtype below its supertype.
    #[must_use]
    pub fn object_type(id: NodeId, browse_name: QualifiedName) -> Self {
        Self::new(id, browse_name, NodeKind::ObjectType { is_abstract: false })
    }

    /// A node of any class.
    pub(crate) fn with_kind(id: NodeId, browse_name: QualifiedName, kind: NodeKind) -> Self {
        Self::new(id, browse_name, kind)
    }

    /// Sets a DisplayName that differs from the BrowseName's text.
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

impl NodeSpec {
    fn is_variable(&self) -> bool {
        matches!(self.kind, NodeKind::Variable(_))
    }

    fn variable_extra(&mut self) -> &mut VariableExtra {
        self.extra.variable.get_or_insert_default()
    }

    /// The status of a Variable until its first value is written. With a bad status it has no value. Default: Good.
    #[must_use]
    pub fn initial_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// DataType, ValueRank and ArrayDimensions of a Variable.
    #[must_use]
    pub fn shape(mut self, shape: ValueShape) -> Self {
        self.data_type = shape.data_type;
        if let NodeKind::Variable(variable) = &mut self.kind {
            let rank = shape.value_rank;
            variable.value_rank = i8::try_from(rank).unwrap_or(if rank < 0 { i8::MIN } else { i8::MAX });
            // The rank already implies arrays of any length, so no memory is needed.
            if shape.array_dimensions.iter().any(|length| *length != 0) {
                self.variable_extra().array_dimensions = shape.array_dimensions;
            }
        }
        self
    }

    /// The AccessLevel bits of a Variable.
    #[must_use]
    pub fn access_level(mut self, access_level: AccessLevelType) -> Self {
        if let NodeKind::Variable(variable) = &mut self.kind {
            variable.access_level = access_level.0;
        }
        self
    }

    /// The MinimumSamplingInterval of a Variable in ms; 0 means that every change is seen.
    #[must_use]
    pub fn minimum_sampling_interval(mut self, interval: f32) -> Self {
        if self.is_variable() && interval != 0.0 {
            self.variable_extra().minimum_sampling_interval = interval;
        }
        self
    }

    /// Whether a Variable's history is recorded.
    #[must_use]
    pub fn historizing(mut self, collected: bool) -> Self {
        if self.is_variable() && collected {
            self.variable_extra().historizing = true;
        }
        self
    }

    /// The source that provides a Variable's value on each read or sampling.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn ValueSource>) -> Self {
        if self.is_variable() {
            self.variable_extra().source = Some(source);
        }
        self
    }

    /// The write handler for clients' writes to a Variable.
    #[must_use]
    pub fn write_handler(mut self, handler: Arc<dyn WriteHandler>) -> Self {
        if self.is_variable() {
            self.variable_extra().on_write = Some(handler);
        }
        self
    }

    /// The access rights of the node; without them, those of its namespace apply.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// The EventNotifier bits of an Object.
    #[must_use]
    pub fn event_notifier(mut self, bits: u8) -> Self {
        if let NodeKind::Object { event_notifier } = &mut self.kind {
            *event_notifier = bits;
        }
        self
    }
}
