//! Nodes that are not part of the static namespace 0: what the application, NodeSets and the server itself add.
//!
//! A node with one variable and its slot is to cost less than 200 bytes, so rare attributes stand behind boxes and
//! references are packed words.

use super::store::SlotShare;
use crate::callback::{MethodHandler, ValueSource, WriteHandler};
use crate::history::NodeHistory;
use compact_str::CompactString;
use smallvec::SmallVec;
use std::sync::Arc;
use taktwerk_schema::{AccessLevelType, NodeClass};
use taktwerk_types::{Encode, ExtensionObject, Identifier, LocalizedText, NodeId, NodeIdRef, Variant};

/// One end of a reference: the type, the direction and the other node, in eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedReference {
    /// Node index of the ReferenceType; the two top bits are INVERSE and CHARGED.
    kind: u32,
    /// Node index of the other end.
    pub(crate) target: u32,
}

const INVERSE: u32 = 1 << 31;
/// A client has added it, at the expense of its account.
const CHARGED: u32 = 1 << 30;

impl PackedReference {
    pub(crate) const fn new(reference_type: u32, is_forward: bool, target: u32) -> Self {
        Self { kind: if is_forward { reference_type } else { reference_type | INVERSE }, target }
    }

    pub(crate) const fn reference_type(self) -> u32 {
        self.kind & !(INVERSE | CHARGED)
    }

    /// The same as a client's.
    pub(crate) const fn charged(self) -> Self {
        Self { kind: self.kind | CHARGED, ..self }
    }

    pub(crate) const fn is_charged(self) -> bool {
        self.kind & CHARGED != 0
    }

    pub(crate) const fn is_forward(self) -> bool {
        self.kind & INVERSE == 0
    }
}

/// A node on the heap.
#[derive(Debug)]
pub(crate) struct Node {
    /// Namespace and identifier of its NodeId apart from each other: together they would take eight bytes more.
    pub(crate) identifier: Identifier,
    pub(crate) namespace_index: u16,
    /// Names of up to 24 bytes need no heap of their own.
    pub(crate) browse_name: CompactString,
    pub(crate) references: SmallVec<[PackedReference; 2]>,
    pub(crate) extra: Option<Box<NodeExtra>>,
    pub(crate) generation: u32,
    /// Its set of those who may do what with it.
    pub(crate) access: u16,
    pub(crate) kind: NodeKind,
}

impl Node {
    pub(crate) fn id(&self) -> NodeId {
        NodeId { namespace_index: self.namespace_index, identifier: self.identifier.clone() }
    }

    #[inline]
    pub(crate) fn id_ref(&self) -> NodeIdRef<'_> {
        NodeIdRef { namespace_index: self.namespace_index, identifier: self.identifier.as_ref() }
    }

    pub(crate) fn browse_namespace(&self) -> u16 {
        self.extra.as_ref().and_then(|extra| extra.browse_namespace).unwrap_or(self.namespace_index)
    }

    /// What only few Variables have.
    #[inline]
    pub(crate) fn variable_extra(&self) -> Option<&VariableExtra> {
        self.extra.as_ref()?.variable.as_deref()
    }

    /// Who makes the values of a Variable.
    #[inline]
    pub(crate) fn source(&self) -> Option<&Arc<dyn ValueSource>> {
        self.variable_extra()?.source.as_ref()
    }

    /// The implementation of a Method.
    pub(crate) fn handler(&self) -> Option<&Arc<dyn MethodHandler>> {
        self.extra.as_ref()?.handler.as_ref()
    }

    pub(crate) fn encode_id(&self, out: &mut Vec<u8>) {
        self.id_ref().encode(out);
    }
}

/// Attributes and callbacks that few nodes have.
#[derive(Debug, Default)]
pub(crate) struct NodeExtra {
    pub(crate) display_name: Option<LocalizedText>,
    pub(crate) description: Option<LocalizedText>,
    /// The namespace of the BrowseName where it is not the NodeId's.
    pub(crate) browse_namespace: Option<u16>,
    /// The implementation of a Method.
    pub(crate) handler: Option<Arc<dyn MethodHandler>>,
    pub(crate) variable: Option<Box<VariableExtra>>,
    /// The charge of a node that a client has added.
    pub(crate) added: Option<Box<super::added::AddedNode>>,
}

impl NodeExtra {
    pub(crate) fn is_empty(&self) -> bool {
        self.display_name.is_none()
            && self.description.is_none()
            && self.browse_namespace.is_none()
            && self.handler.is_none()
            && self.variable.is_none()
            && self.added.is_none()
    }
}

/// What depends on the NodeClass.
#[derive(Debug)]
pub(crate) enum NodeKind {
    Object { event_notifier: u8 },
    Variable(VariableNode),
    Method { executable: bool },
    ObjectType { is_abstract: bool },
    VariableType(Box<VariableTypeNode>),
    ReferenceType(Box<ReferenceTypeNode>),
    DataType(Box<DataTypeNode>),
    View { event_notifier: u8, contains_no_loops: bool },
}

impl NodeKind {
    pub(crate) const fn class(&self) -> NodeClass {
        match self {
            Self::Object { .. } => NodeClass::OBJECT,
            Self::Variable(_) => NodeClass::VARIABLE,
            Self::Method { .. } => NodeClass::METHOD,
            Self::ObjectType { .. } => NodeClass::OBJECT_TYPE,
            Self::VariableType(_) => NodeClass::VARIABLE_TYPE,
            Self::ReferenceType(_) => NodeClass::REFERENCE_TYPE,
            Self::DataType(_) => NodeClass::DATA_TYPE,
            Self::View { .. } => NodeClass::VIEW,
        }
    }
}

/// The attributes of a Variable but its value, which stands in a slot.
#[derive(Debug)]
pub(crate) struct VariableNode {
    /// Its share of the slot; none before it is added.
    pub(crate) slot: Option<SlotShare>,
    /// Index into the space's table of data types.
    pub(crate) data_type: u16,
    pub(crate) access_level: u8,
    /// No Variant has more dimensions than an Int8 can say: larger ranks are read as 127.
    pub(crate) value_rank: i8,
}

impl VariableNode {
    pub(crate) fn value_rank(&self) -> i32 {
        self.value_rank.into()
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.access_level & AccessLevelType::CURRENT_READ.0 != 0
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.access_level & AccessLevelType::CURRENT_WRITE.0 != 0
    }
}

/// Attributes and callbacks that few Variables have; the interval is in ms, and negative if indeterminate.
#[derive(Debug, Default)]
pub(crate) struct VariableExtra {
    pub(crate) array_dimensions: Vec<u32>,
    pub(crate) minimum_sampling_interval: f32,
    pub(crate) historizing: bool,
    /// Where its history is.
    pub(crate) history: Option<Arc<NodeHistory>>,
    pub(crate) source: Option<Arc<dyn ValueSource>>,
    pub(crate) on_write: Option<Arc<dyn WriteHandler>>,
}

#[derive(Debug)]
pub(crate) struct VariableTypeNode {
    pub(crate) data_type: u16,
    pub(crate) value_rank: i32,
    pub(crate) array_dimensions: Vec<u32>,
    pub(crate) is_abstract: bool,
    pub(crate) value: Option<Variant>,
}

#[derive(Debug)]
pub(crate) struct ReferenceTypeNode {
    pub(crate) is_abstract: bool,
    pub(crate) symmetric: bool,
    pub(crate) inverse_name: LocalizedText,
}

#[derive(Debug)]
pub(crate) struct DataTypeNode {
    pub(crate) is_abstract: bool,
    pub(crate) definition: Option<ExtensionObject>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stay_small() {
        assert!(size_of::<Node>() <= 104, "{}", size_of::<Node>());
        assert_eq!(size_of::<PackedReference>(), 8);
    }
}
