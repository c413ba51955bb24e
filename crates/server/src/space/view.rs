//! The attributes of a node (Part 3 §5), static or on the heap.

use super::NodeIx;
use super::node::{Node, NodeKind};
use super::nodes::Nodes;
use crate::diagnostics::nodes::{OBJECT, SessionNode};
use std::borrow::Cow;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::method_ids;
use taktwerk_schema::ns0::{Ns0, Ns0Node};
use taktwerk_types::codec::encode_bytes;
use taktwerk_types::{
    Decode, DecodeLimits, Encode, ExtensionObject, LocalizedText, NodeId, QualifiedName, StatusCode,
    UaString, Variant,
};

/// The attributes with their numbers (Part 6 Annex A.1).
#[allow(dead_code)] // the list is the specification's
pub(crate) mod attribute {
    pub(crate) const NODE_ID: u32 = 1;
    pub(crate) const NODE_CLASS: u32 = 2;
    pub(crate) const BROWSE_NAME: u32 = 3;
    pub(crate) const DISPLAY_NAME: u32 = 4;
    pub(crate) const DESCRIPTION: u32 = 5;
    pub(crate) const WRITE_MASK: u32 = 6;
    pub(crate) const USER_WRITE_MASK: u32 = 7;
    pub(crate) const IS_ABSTRACT: u32 = 8;
    pub(crate) const SYMMETRIC: u32 = 9;
    pub(crate) const INVERSE_NAME: u32 = 10;
    pub(crate) const CONTAINS_NO_LOOPS: u32 = 11;
    pub(crate) const EVENT_NOTIFIER: u32 = 12;
    pub(crate) const VALUE: u32 = 13;
    pub(crate) const DATA_TYPE: u32 = 14;
    pub(crate) const VALUE_RANK: u32 = 15;
    pub(crate) const ARRAY_DIMENSIONS: u32 = 16;
    pub(crate) const ACCESS_LEVEL: u32 = 17;
    pub(crate) const USER_ACCESS_LEVEL: u32 = 18;
    pub(crate) const MINIMUM_SAMPLING_INTERVAL: u32 = 19;
    pub(crate) const HISTORIZING: u32 = 20;
    pub(crate) const EXECUTABLE: u32 = 21;
    pub(crate) const USER_EXECUTABLE: u32 = 22;
    pub(crate) const DATA_TYPE_DEFINITION: u32 = 23;
    pub(crate) const ROLE_PERMISSIONS: u32 = 24;
    pub(crate) const USER_ROLE_PERMISSIONS: u32 = 25;
    pub(crate) const ACCESS_RESTRICTIONS: u32 = 26;
    pub(crate) const ACCESS_LEVEL_EX: u32 = 27;
    /// The highest attribute number.
    pub(crate) const LAST: u32 = ACCESS_LEVEL_EX;
}

/// The methods implemented by the server's own subscription engine (Part 5 §9.1, §9.2; Part 9 §5.5.7, §5.5.8).
pub(crate) const fn is_builtin_method(id: u32) -> bool {
    matches!(
        id,
        method_ids::SERVER_GET_MONITORED_ITEMS
            | method_ids::SERVER_RESEND_DATA
            | method_ids::SERVER_SET_SUBSCRIPTION_DURABLE
            | method_ids::CONDITION_TYPE_CONDITION_REFRESH
            | method_ids::CONDITION_TYPE_CONDITION_REFRESH2
    )
}

/// A borrowed node.
#[derive(Clone, Copy)]
pub(crate) struct NodeView<'a> {
    nodes: &'a Nodes,
    ix: NodeIx,
    inner: Inner<'a>,
    /// Set for the diagnostics node of a session; `inner` is then the declaration that it mirrors.
    session: Option<SessionNode>,
}

#[derive(Clone, Copy)]
enum Inner<'a> {
    Static(Ns0Node),
    Heap(&'a Node),
}

impl<'a> NodeView<'a> {
    pub(crate) fn new(nodes: &'a Nodes, ix: NodeIx) -> Option<Self> {
        let session = SessionNode::from_ix(ix);
        let inner = match session {
            Some(node) => Inner::Static(Ns0::get().node(node.declaration)?),
            None if ix.index < NodeIx::DYNAMIC => Inner::Static(Ns0::get().node(ix.index)?),
            None => Inner::Heap(nodes.dynamic(ix)?),
        };
        Some(Self { nodes, ix, inner, session })
    }

    /// Whether this is the diagnostics object of a session, which mirrors a type instead of a declaration.
    fn is_session(&self) -> bool {
        self.session.is_some_and(|node| node.declaration == OBJECT)
    }

    /// Whether it is a type: ObjectType, VariableType, ReferenceType or DataType.
    pub(crate) fn is_type(self) -> bool {
        matches!(
            self.class(),
            NodeClass::OBJECT_TYPE
                | NodeClass::VARIABLE_TYPE
                | NodeClass::REFERENCE_TYPE
                | NodeClass::DATA_TYPE
        )
    }

    pub(crate) fn id(&self) -> NodeId {
        if let Some(node) = self.session {
            return node.id();
        }
        match self.inner {
            Inner::Static(_) => NodeId::numeric(0, self.ix.index),
            Inner::Heap(node) => node.id(),
        }
    }

    pub(crate) fn class(&self) -> NodeClass {
        match self.inner {
            Inner::Static(_) if self.is_session() => NodeClass::OBJECT,
            Inner::Static(node) => node.class(),
            Inner::Heap(node) => node.kind.class(),
        }
    }

    /// The BrowseName, borrowed where it is stored.
    pub(crate) fn browse_name_parts(&self) -> (u16, Cow<'a, str>) {
        match (self.inner, self.session) {
            (Inner::Static(_), Some(SessionNode { session, declaration: OBJECT })) => {
                (1, Cow::Owned(self.nodes.session_name(session).unwrap_or_default().into()))
            }
            (Inner::Static(node), _) => (0, Cow::Borrowed(node.browse_name())),
            (Inner::Heap(node), _) => (node.browse_namespace(), Cow::Borrowed(&*node.browse_name)),
        }
    }

    pub(crate) fn browse_name(&self) -> QualifiedName {
        let (namespace, name) = self.browse_name_parts();
        QualifiedName::new(namespace, &*name)
    }

    pub(crate) fn has_browse_name(&self, name: &QualifiedName) -> bool {
        let (namespace, text) = self.browse_name_parts();
        namespace == name.namespace_index && text == name.name.as_str()
    }

    /// Appends the encoding of the BrowseName.
    pub(crate) fn encode_browse_name(&self, out: &mut Vec<u8>) {
        let (namespace, name) = self.browse_name_parts();
        namespace.encode(out);
        encode_bytes(Some(name.as_bytes()), out);
    }

    /// Appends the encoding of the DisplayName.
    pub(crate) fn encode_display_name(&self, out: &mut Vec<u8>) {
        if let Inner::Heap(Node { extra: Some(extra), .. }) = self.inner
            && let Some(text) = &extra.display_name
        {
            return text.encode(out);
        }
        let text = match self.inner {
            Inner::Static(node) if !self.is_session() => Cow::Borrowed(node.display_name()),
            _ => self.browse_name_parts().1,
        };
        // LocalizedText with a text and no locale (Part 6 §5.2.2.14).
        out.push(2);
        encode_bytes(Some(text.as_bytes()), out);
    }

    /// Appends the encoding of the NodeId.
    pub(crate) fn encode_id(&self, out: &mut Vec<u8>) {
        match (self.inner, self.session) {
            (Inner::Heap(node), _) => node.encode_id(out),
            (_, Some(node)) => node.id().encode(out),
            (Inner::Static(_), None) => NodeId::numeric(0, self.ix.index).encode(out),
        }
    }

    pub(crate) fn display_name(&self) -> LocalizedText {
        match self.inner {
            Inner::Static(_) if self.is_session() => LocalizedText::from_text(&*self.browse_name_parts().1),
            Inner::Static(node) => LocalizedText::from_text(node.display_name()),
            Inner::Heap(node) => match node.extra.as_ref().and_then(|extra| extra.display_name.clone()) {
                Some(text) => text,
                None => LocalizedText::from_text(&*node.browse_name),
            },
        }
    }

    fn description(&self) -> LocalizedText {
        match self.inner {
            Inner::Static(node) => {
                node.description().map_or_else(LocalizedText::default, LocalizedText::from)
            }
            Inner::Heap(node) => {
                node.extra.as_ref().and_then(|extra| extra.description.clone()).unwrap_or_default()
            }
        }
    }

    /// Whether clients can read a Value attribute. The optional one of a VariableType is not stored.
    pub(crate) fn has_value(&self) -> bool {
        self.class() == NodeClass::VARIABLE
    }

    /// Whether the Value attribute can be read; false for nodes that are not Variables.
    pub(crate) fn is_readable(&self) -> bool {
        self.access_level().is_some_and(|level| level & 1 != 0)
    }

    /// Whether the Value attribute can be written.
    pub(crate) fn is_writable(&self) -> bool {
        self.access_level().is_some_and(|level| level & 2 != 0)
    }

    /// AccessLevel of a Variable.
    pub(crate) fn access_level(&self) -> Option<u8> {
        if self.class() != NodeClass::VARIABLE {
            return None;
        }
        Some(match self.inner {
            Inner::Static(node) => node.access_level(),
            Inner::Heap(node) => match &node.kind {
                NodeKind::Variable(variable) => variable.access_level,
                _ => return None,
            },
        })
    }

    /// The DataType of a Variable or VariableType.
    pub(crate) fn data_type(&self) -> Option<NodeId> {
        match self.inner {
            Inner::Static(node) => node.data_type().map(|id| NodeId::numeric(0, id)),
            Inner::Heap(node) => match &node.kind {
                NodeKind::Variable(variable) => Some(self.nodes.data_type(variable.data_type).clone()),
                NodeKind::VariableType(kind) => Some(self.nodes.data_type(kind.data_type).clone()),
                _ => None,
            },
        }
    }

    /// The ValueRank of a Variable or VariableType.
    pub(crate) fn value_rank(&self) -> Option<i32> {
        match self.inner {
            Inner::Static(node) => matches!(node.class(), NodeClass::VARIABLE | NodeClass::VARIABLE_TYPE)
                .then(|| node.value_rank()),
            Inner::Heap(node) => match &node.kind {
                NodeKind::Variable(variable) => Some(variable.value_rank()),
                NodeKind::VariableType(kind) => Some(kind.value_rank),
                _ => None,
            },
        }
    }

    /// ArrayDimensions of a Variable or VariableType; empty if it has none.
    pub(crate) fn array_dimensions(&self) -> Option<Vec<u32>> {
        match self.inner {
            Inner::Static(node) => matches!(node.class(), NodeClass::VARIABLE | NodeClass::VARIABLE_TYPE)
                .then(|| node.extras().array_dimensions().collect()),
            Inner::Heap(node) => match &node.kind {
                NodeKind::Variable(_) => {
                    Some(node.variable_extra().map_or_else(Vec::new, |extra| extra.array_dimensions.clone()))
                }
                NodeKind::VariableType(kind) => Some(kind.array_dimensions.clone()),
                _ => None,
            },
        }
    }

    /// The shortest sampling interval of a Variable in ms; negative is indeterminate.
    pub(crate) fn minimum_sampling_interval(&self) -> f64 {
        match self.inner {
            Inner::Static(node) => node.extras().minimum_sampling_interval,
            Inner::Heap(node) => {
                node.variable_extra().map_or(0.0, |extra| f64::from(extra.minimum_sampling_interval))
            }
        }
    }

    /// The EventNotifier of an Object or View: whether events can be subscribed to, and whether their history can be
    /// read or changed.
    pub(crate) fn event_notifier(&self) -> Option<u8> {
        self.declared_event_notifier().map(|bits| {
            let bits = bits & super::events::SUBSCRIBE_TO_EVENTS;
            // All events are recorded in one place, so every notifier has a history if the server records events.
            if bits == 0 { bits } else { bits | self.nodes.event_history_bits() }
        })
    }

    /// The EventNotifier specified by the node's model or creator.
    pub(crate) fn declared_event_notifier(&self) -> Option<u8> {
        match self.inner {
            Inner::Static(_) if self.is_session() => Some(0),
            Inner::Static(node) => {
                matches!(node.class(), NodeClass::OBJECT | NodeClass::VIEW).then(|| node.event_notifier())
            }
            Inner::Heap(node) => match &node.kind {
                NodeKind::Object { event_notifier } | NodeKind::View { event_notifier, .. } => {
                    Some(*event_notifier)
                }
                _ => None,
            },
        }
    }

    /// Whether a Method can be called.
    pub(crate) fn executable(&self) -> Option<bool> {
        match self.inner {
            // Methods of the static namespace 0 can be called if the server implements them.
            Inner::Static(node) => (node.class() == NodeClass::METHOD).then(|| {
                self.nodes.is_builtin_method(self.ix.index) || self.nodes.ns0_method(self.ix.index).is_some()
            }),
            Inner::Heap(node) => match &node.kind {
                NodeKind::Method { executable } => Some(*executable && node.handler().is_some()),
                _ => None,
            },
        }
    }

    pub(crate) fn is_abstract(&self) -> Option<bool> {
        match self.inner {
            Inner::Static(node) => matches!(
                self.class(),
                NodeClass::OBJECT_TYPE
                    | NodeClass::VARIABLE_TYPE
                    | NodeClass::REFERENCE_TYPE
                    | NodeClass::DATA_TYPE
            )
            .then(|| node.is_abstract()),
            Inner::Heap(node) => match &node.kind {
                NodeKind::ObjectType { is_abstract } => Some(*is_abstract),
                NodeKind::VariableType(kind) => Some(kind.is_abstract),
                NodeKind::ReferenceType(kind) => Some(kind.is_abstract),
                NodeKind::DataType(kind) => Some(kind.is_abstract),
                _ => None,
            },
        }
    }

    /// The DataTypeDefinition of a DataType, if it has one.
    pub(crate) fn data_type_definition(&self) -> Option<ExtensionObject> {
        match self.inner {
            Inner::Static(node) => {
                ExtensionObject::decode_from(node.extras().definition?, DecodeLimits::DEFAULT).ok()
            }
            Inner::Heap(node) => match &node.kind {
                NodeKind::DataType(kind) => kind.definition.clone(),
                _ => None,
            },
        }
    }

    /// Any attribute except Value.
    ///
    /// # Errors
    /// Bad_AttributeIdInvalid for attributes that this node does not have.
    pub(crate) fn attribute(&self, attribute_id: u32) -> Result<Variant, StatusCode> {
        use attribute as a;
        let missing = StatusCode::BAD_ATTRIBUTE_ID_INVALID;
        let reference_type = self.class() == NodeClass::REFERENCE_TYPE;
        Ok(match attribute_id {
            a::NODE_ID => self.id().into(),
            a::NODE_CLASS => self.class().0.into(),
            a::BROWSE_NAME => self.browse_name().into(),
            a::DISPLAY_NAME => self.display_name().into(),
            a::DESCRIPTION => self.description().into(),
            a::WRITE_MASK | a::USER_WRITE_MASK => 0u32.into(),
            a::IS_ABSTRACT => self.is_abstract().ok_or(missing)?.into(),
            a::SYMMETRIC if reference_type => match self.inner {
                Inner::Static(node) => node.symmetric().into(),
                Inner::Heap(Node { kind: NodeKind::ReferenceType(kind), .. }) => kind.symmetric.into(),
                Inner::Heap(_) => return Err(missing),
            },
            a::INVERSE_NAME if reference_type => match self.inner {
                Inner::Static(node) => node
                    .inverse_name()
                    .map_or_else(LocalizedText::default, |text| LocalizedText {
                        locale: UaString::NULL,
                        text: text.into(),
                    })
                    .into(),
                Inner::Heap(Node { kind: NodeKind::ReferenceType(kind), .. }) => {
                    kind.inverse_name.clone().into()
                }
                Inner::Heap(_) => return Err(missing),
            },
            a::CONTAINS_NO_LOOPS => match self.inner {
                Inner::Heap(Node { kind: NodeKind::View { contains_no_loops, .. }, .. }) => {
                    (*contains_no_loops).into()
                }
                _ => return Err(missing),
            },
            a::EVENT_NOTIFIER => self.event_notifier().ok_or(missing)?.into(),
            a::DATA_TYPE => self.data_type().ok_or(missing)?.into(),
            a::VALUE_RANK => self.value_rank().ok_or(missing)?.into(),
            a::ARRAY_DIMENSIONS => {
                let dimensions = self.array_dimensions().ok_or(missing)?;
                // Scalars have no dimensions; the attribute is optional (Part 3 §5.6.2).
                if dimensions.is_empty() && self.value_rank().is_some_and(|rank| rank < 0) {
                    return Err(missing);
                }
                dimensions.into()
            }
            a::ACCESS_LEVEL | a::USER_ACCESS_LEVEL => self.access_level().ok_or(missing)?.into(),
            a::ACCESS_LEVEL_EX => u32::from(self.access_level().ok_or(missing)?).into(),
            a::MINIMUM_SAMPLING_INTERVAL if self.class() == NodeClass::VARIABLE => {
                self.minimum_sampling_interval().into()
            }
            a::HISTORIZING if self.class() == NodeClass::VARIABLE => match self.inner {
                Inner::Heap(node) => node.variable_extra().is_some_and(|extra| extra.historizing).into(),
                _ => false.into(),
            },
            a::EXECUTABLE | a::USER_EXECUTABLE => self.executable().ok_or(missing)?.into(),
            a::DATA_TYPE_DEFINITION if self.class() == NodeClass::DATA_TYPE => {
                self.data_type_definition().ok_or(missing)?.into()
            }
            _ => return Err(missing),
        })
    }
}
