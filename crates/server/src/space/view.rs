//! One node's attributes (Part 3 §5), whether the node stands in the static blob or on the heap.

use super::node::{Node, NodeIx, NodeKind};
use super::nodes::Nodes;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ns0::{Ns0, Ns0Node};
use taktwerk_types::{
    ExtensionObject, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, Variant,
};

/// The attributes with their numbers (Part 6 Annex A.1).
#[allow(missing_docs)] // the names say it
pub mod attribute {
    pub const NODE_ID: u32 = 1;
    pub const NODE_CLASS: u32 = 2;
    pub const BROWSE_NAME: u32 = 3;
    pub const DISPLAY_NAME: u32 = 4;
    pub const DESCRIPTION: u32 = 5;
    pub const WRITE_MASK: u32 = 6;
    pub const USER_WRITE_MASK: u32 = 7;
    pub const IS_ABSTRACT: u32 = 8;
    pub const SYMMETRIC: u32 = 9;
    pub const INVERSE_NAME: u32 = 10;
    pub const CONTAINS_NO_LOOPS: u32 = 11;
    pub const EVENT_NOTIFIER: u32 = 12;
    pub const VALUE: u32 = 13;
    pub const DATA_TYPE: u32 = 14;
    pub const VALUE_RANK: u32 = 15;
    pub const ARRAY_DIMENSIONS: u32 = 16;
    pub const ACCESS_LEVEL: u32 = 17;
    pub const USER_ACCESS_LEVEL: u32 = 18;
    pub const MINIMUM_SAMPLING_INTERVAL: u32 = 19;
    pub const HISTORIZING: u32 = 20;
    pub const EXECUTABLE: u32 = 21;
    pub const USER_EXECUTABLE: u32 = 22;
    pub const DATA_TYPE_DEFINITION: u32 = 23;
    pub const ROLE_PERMISSIONS: u32 = 24;
    pub const USER_ROLE_PERMISSIONS: u32 = 25;
    pub const ACCESS_RESTRICTIONS: u32 = 26;
    pub const ACCESS_LEVEL_EX: u32 = 27;
    /// The highest attribute number there is.
    pub const LAST: u32 = ACCESS_LEVEL_EX;
}

/// A borrowed node.
#[derive(Clone, Copy)]
pub(crate) struct NodeView<'a> {
    nodes: &'a Nodes,
    ix: NodeIx,
    inner: Inner<'a>,
}

#[derive(Clone, Copy)]
enum Inner<'a> {
    Static(Ns0Node<'static>),
    Heap(&'a Node),
}

impl<'a> NodeView<'a> {
    pub(crate) fn new(nodes: &'a Nodes, ix: NodeIx) -> Option<Self> {
        let inner = if ix.index < NodeIx::DYNAMIC {
            Inner::Static(Ns0::get().node(ix.index)?)
        } else {
            Inner::Heap(nodes.dynamic(ix)?)
        };
        Some(Self { nodes, ix, inner })
    }

    pub(crate) fn ix(&self) -> NodeIx {
        self.ix
    }

    pub(crate) fn id(&self) -> NodeId {
        match self.inner {
            Inner::Static(_) => NodeId::numeric(0, self.ix.index),
            Inner::Heap(node) => node.id.clone(),
        }
    }

    pub(crate) fn class(&self) -> NodeClass {
        match self.inner {
            Inner::Static(node) => node.class(),
            Inner::Heap(node) => node.kind.class(),
        }
    }

    /// The BrowseName without a copy.
    pub(crate) fn browse_name_parts(&self) -> (u16, &'a str) {
        match self.inner {
            Inner::Static(node) => (0, node.browse_name()),
            Inner::Heap(node) => (node.browse_namespace, &node.browse_name),
        }
    }

    pub(crate) fn browse_name(&self) -> QualifiedName {
        let (namespace, name) = self.browse_name_parts();
        QualifiedName::new(namespace, name)
    }

    pub(crate) fn has_browse_name(&self, name: &QualifiedName) -> bool {
        self.browse_name_parts() == (name.namespace_index, name.name.as_str())
    }

    pub(crate) fn display_name(&self) -> LocalizedText {
        match self.inner {
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

    /// Whether the Value attribute can be read; false for what is no Variable.
    pub(crate) fn is_readable(&self) -> bool {
        self.access_level().is_some_and(|level| level & 1 != 0)
    }

    /// Whether the Value attribute can be written.
    pub(crate) fn is_writable(&self) -> bool {
        self.access_level().is_some_and(|level| level & 2 != 0)
    }

    fn access_level(&self) -> Option<u8> {
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
            Inner::Static(node) => matches!(node.class(), NodeClass::VARIABLE | NodeClass::VARIABLE_TYPE)
                .then(|| NodeId::numeric(0, node.data_type())),
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
                NodeKind::Variable(variable) => Some(variable.value_rank),
                NodeKind::VariableType(kind) => Some(kind.value_rank),
                _ => None,
            },
        }
    }

    fn array_dimensions(&self) -> Option<Vec<u32>> {
        match self.inner {
            Inner::Static(node) => matches!(node.class(), NodeClass::VARIABLE | NodeClass::VARIABLE_TYPE)
                .then(|| node.array_dimensions()),
            Inner::Heap(node) => match &node.kind {
                NodeKind::Variable(variable) => Some(
                    variable.extra.as_ref().map_or_else(Vec::new, |extra| extra.array_dimensions.clone()),
                ),
                NodeKind::VariableType(kind) => Some(kind.array_dimensions.clone()),
                _ => None,
            },
        }
    }

    /// The shortest sampling interval of a Variable in ms; negative is indeterminate.
    pub(crate) fn minimum_sampling_interval(&self) -> f64 {
        match self.inner {
            Inner::Static(node) => node.minimum_sampling_interval(),
            Inner::Heap(node) => match &node.kind {
                NodeKind::Variable(variable) => f64::from(variable.minimum_sampling_interval),
                _ => 0.0,
            },
        }
    }

    /// The EventNotifier of an Object or View.
    pub(crate) fn event_notifier(&self) -> Option<u8> {
        match self.inner {
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
            // Methods of the static namespace can be called where the server implements them.
            Inner::Static(node) => (node.class() == NodeClass::METHOD)
                .then(|| self.nodes.ns0_method(self.ix.index).is_some()),
            Inner::Heap(node) => match &node.kind {
                NodeKind::Method { executable, handler } => Some(*executable && handler.is_some()),
                _ => None,
            },
        }
    }

    fn is_abstract(&self) -> Option<bool> {
        match self.inner {
            Inner::Static(node) => matches!(
                node.class(),
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
            Inner::Static(node) => node
                .data_type_definition()
                .map(|(encoding, body)| ExtensionObject::from_binary(encoding.into(), body.to_vec())),
            Inner::Heap(node) => match &node.kind {
                NodeKind::DataType(kind) => kind.definition.clone(),
                _ => None,
            },
        }
    }

    /// Any attribute but Value.
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
                    .map_or_else(LocalizedText::default, |text| {
                        LocalizedText { locale: UaString::NULL, text: text.into() }
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
                Inner::Heap(Node { kind: NodeKind::Variable(variable), .. }) => variable.historizing.into(),
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
