//! Nodes outside the static namespace 0: those of the application, of NodeSets and of the server itself.
//!
//! A node with one variable and its slot should cost less than 200 bytes. So rare attributes are boxed, and references
//! are packed into words.

use super::NodeIx;
use crate::callback::{DeleteHandler, MethodHandler, ValueSource, WriteHandler};
use crate::history::NodeHistory;
use compact_str::CompactString;
use smallvec::SmallVec;
use std::sync::Arc;
use taktwerk_schema::{AccessLevelType, NodeClass};
use taktwerk_slots::SlotShare;
use taktwerk_types::{Encode, ExtensionObject, Identifier, LocalizedText, NodeId, NodeIdRef, Variant};

/// One end of a reference in eight bytes: the type, the direction and the other node with its generation. The other end
/// may be missing: references to types have one end only, and clients may delete one end alone. Then the index of the
/// other node may be reused.
///
/// From the lowest bit: 24 bits index of the other node, 14 bits its generation, 24 bits index of the ReferenceType,
/// CHARGED, INVERSE. Both are small enough, see [`INDEX_MAX`] and [`GENERATION_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackedReference(u64);

/// Largest index of a node.
pub(crate) const INDEX_MAX: u32 = (1 << INDEX_BITS) - 1;
/// Largest generation of a node. Then its index is not used again.
pub(crate) const GENERATION_MAX: u32 = (1 << GENERATION_BITS) - 1;

const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 14;
const TYPE_AT: u32 = INDEX_BITS + GENERATION_BITS;
/// Added by a client and charged to its account.
const CHARGED: u64 = 1 << 62;
const INVERSE: u64 = 1 << 63;

impl PackedReference {
    /// Both nodes are static or on the heap.
    pub(crate) const fn new(reference_type: u32, is_forward: bool, target: NodeIx) -> Self {
        let ends = ((reference_type & INDEX_MAX) as u64) << TYPE_AT
            | ((target.generation & GENERATION_MAX) as u64) << INDEX_BITS
            | (target.index & INDEX_MAX) as u64;
        Self(if is_forward { ends } else { ends | INVERSE })
    }

    /// The other node, which may be deleted.
    #[inline]
    pub(crate) const fn target(self) -> NodeIx {
        let generation = (self.0 >> INDEX_BITS) as u32 & GENERATION_MAX;
        NodeIx { index: self.0 as u32 & INDEX_MAX, generation }
    }

    #[inline]
    pub(crate) const fn reference_type(self) -> u32 {
        (self.0 >> TYPE_AT) as u32 & INDEX_MAX
    }

    /// The same, marked as added by a client.
    pub(crate) const fn charged(self) -> Self {
        Self(self.0 | CHARGED)
    }

    /// The same without the mark of a client.
    pub(crate) const fn uncharged(self) -> Self {
        Self(self.0 & !CHARGED)
    }

    pub(crate) const fn is_charged(self) -> bool {
        self.0 & CHARGED != 0
    }

    pub(crate) const fn is_forward(self) -> bool {
        self.0 & INVERSE == 0
    }
}

/// A node on the heap.
#[derive(Debug)]
pub(crate) struct Node {
    /// Namespace and identifier of its NodeId, stored separately: together they would take eight bytes more.
    pub(crate) identifier: Identifier,
    pub(crate) namespace_index: u16,
    /// Names of up to 24 bytes need no heap.
    pub(crate) browse_name: CompactString,
    pub(crate) references: SmallVec<[PackedReference; 2]>,
    pub(crate) extra: Option<Box<NodeExtra>>,
    pub(crate) generation: u32,
    /// The number of its permission set.
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

    /// Attributes that few Variables have.
    #[inline]
    pub(crate) fn variable_extra(&self) -> Option<&VariableExtra> {
        self.extra.as_ref()?.variable.as_deref()
    }

    /// The source of a Variable's values.
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
    /// The namespace of the BrowseName if it differs from the NodeId's.
    pub(crate) browse_namespace: Option<u16>,
    /// The implementation of a Method.
    pub(crate) handler: Option<Arc<dyn MethodHandler>>,
    pub(crate) variable: Option<Box<VariableExtra>>,
    /// The handler that deletes it for clients.
    pub(crate) on_delete: Option<Arc<dyn DeleteHandler>>,
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
            && self.on_delete.is_none()
            && self.added.is_none()
    }
}

/// Data that depends on the NodeClass.
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

/// The attributes of a Variable except its value, which is in a slot.
#[derive(Debug)]
pub(crate) struct VariableNode {
    /// Its share of the slot; `None` before it is added.
    pub(crate) slot: Option<SlotShare>,
    /// Index into the space's table of data types.
    pub(crate) data_type: u16,
    pub(crate) access_level: u8,
    /// Larger ranks are reported as 127; no Variant has more dimensions.
    pub(crate) value_rank: i8,
}

impl NodeKind {
    /// The EventNotifier of an Object or View; 0 for others.
    pub(crate) fn event_notifier(&self) -> u8 {
        match self {
            Self::Object { event_notifier } | Self::View { event_notifier, .. } => *event_notifier,
            _ => 0,
        }
    }
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
    /// Its history.
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

#[derive(Debug, Default)]
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

    #[test]
    fn index_and_generation_are_never_reused_together() {
        let space = crate::space::AddressSpace::new(1, 1, "urn:test");
        let mut nodes = space.write();
        let mut seen = std::collections::BTreeSet::new();
        let before = nodes.len();
        for number in 0..2 * (GENERATION_MAX + 1) + 10 {
            let name = taktwerk_types::QualifiedName::new(1, "node");
            let spec = crate::space::NodeSpec::object(NodeId::numeric(1, number), name);
            let ix = nodes.add(spec, taktwerk_types::UtcTime::NULL).unwrap();
            assert!(seen.insert(ix), "{ix:?} comes again");
            nodes.delete(ix).unwrap();
        }
        assert_eq!(nodes.len(), before);
        let indexes: std::collections::BTreeSet<u32> = seen.iter().map(|ix| ix.index).collect();
        assert_eq!(indexes.len(), 3, "an index is reused until its generations are used up");
    }

    #[test]
    fn a_packed_reference_keeps_its_parts() {
        let numbers = [0, 1, 0xffff, 0x1_0000, INDEX_MAX - 1, INDEX_MAX];
        for reference_type in numbers {
            for index in numbers {
                for generation in [0, 1, GENERATION_MAX] {
                    let target = NodeIx { index, generation };
                    for is_forward in [true, false] {
                        let plain = PackedReference::new(reference_type, is_forward, target);
                        assert!(!plain.is_charged());
                        for reference in [plain, plain.charged()] {
                            assert_eq!(reference.target(), target);
                            assert_eq!(reference.reference_type(), reference_type);
                            assert_eq!(reference.is_forward(), is_forward);
                        }
                        assert!(plain.charged().is_charged());
                    }
                }
            }
        }
    }
}
