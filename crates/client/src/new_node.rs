//! Nodes to add with the AddNodes service (AddNodesItem, Part 4 §5.8.2).

use taktwerk_schema::ids::{object_type_ids, reference_type_ids, variable_type_ids};
use taktwerk_schema::{AddNodesItem, NodeAttributesMask, NodeClass, ObjectAttributes, VariableAttributes};
use taktwerk_types::{BuiltInType, ExtensionObject, LocalizedText, NodeId, QualifiedName, Variant};

/// A node to be added: a builder for [`AddNodesItem`].
#[derive(Debug, Clone, PartialEq)]
pub struct NewNode {
    item: AddNodesItem,
    display_name: Option<LocalizedText>,
    description: Option<LocalizedText>,
    variable: Option<VariableAttributes>,
}

impl NewNode {
    /// An Object of BaseObjectType, as a component of its parent.
    #[must_use]
    pub fn object(parent: NodeId, name: QualifiedName) -> Self {
        let kind = NodeId::numeric(0, object_type_ids::BASE_OBJECT_TYPE);
        Self::new(parent, name, NodeClass::OBJECT, kind, None)
    }

    /// A readable Variable of a built-in type, as a component of its parent. An array value makes it an array.
    #[must_use]
    pub fn variable(
        parent: NodeId,
        name: QualifiedName,
        data_type: BuiltInType,
        value: Option<Variant>,
    ) -> Self {
        let dimensions = value.as_ref().and_then(Variant::as_array).map(|array| array.shape().len());
        let value_rank = dimensions.map_or(-1, |count| i32::try_from(count).unwrap_or(1));
        let mask = NodeAttributesMask::DATA_TYPE.0
            | NodeAttributesMask::VALUE_RANK.0
            | NodeAttributesMask::ACCESS_LEVEL.0
            | if value.is_some() { NodeAttributesMask::VALUE.0 } else { 0 };
        let attributes = VariableAttributes {
            specified_attributes: mask as u32,
            value: value.unwrap_or_default(),
            data_type: NodeId::numeric(0, u32::from(data_type.number())),
            value_rank,
            access_level: 1,
            ..VariableAttributes::default()
        };
        let kind = NodeId::numeric(0, variable_type_ids::BASE_DATA_VARIABLE_TYPE);
        Self::new(parent, name, NodeClass::VARIABLE, kind, Some(attributes))
    }

    fn new(
        parent: NodeId,
        browse_name: QualifiedName,
        node_class: NodeClass,
        type_definition: NodeId,
        variable: Option<VariableAttributes>,
    ) -> Self {
        let item = AddNodesItem {
            parent_node_id: parent.into(),
            reference_type_id: NodeId::numeric(0, reference_type_ids::HAS_COMPONENT),
            browse_name,
            node_class,
            type_definition: type_definition.into(),
            ..AddNodesItem::default()
        };
        Self { item, display_name: None, description: None, variable }
    }

    /// The requested NodeId. Without it the server assigns one; numeric id 0 requests one in its namespace.
    #[must_use]
    pub fn id(mut self, id: NodeId) -> Self {
        self.item.requested_new_node_id = id.into();
        self
    }

    /// The ObjectType or VariableType. The server adds its mandatory children.
    #[must_use]
    pub fn type_definition(mut self, id: NodeId) -> Self {
        self.item.type_definition = id.into();
        self
    }

    /// The ReferenceType from the parent.
    #[must_use]
    pub fn reference_type(mut self, id: NodeId) -> Self {
        self.item.reference_type_id = id;
        self
    }

    /// A DisplayName other than the BrowseName's text.
    #[must_use]
    pub fn display_name(mut self, text: LocalizedText) -> Self {
        self.display_name = Some(text);
        self
    }

    /// The Description.
    #[must_use]
    pub fn description(mut self, text: LocalizedText) -> Self {
        self.description = Some(text);
        self
    }

    /// Makes a Variable writable.
    #[must_use]
    pub fn writable(mut self) -> Self {
        if let Some(variable) = &mut self.variable {
            variable.access_level |= 2;
        }
        self
    }
}

impl From<NewNode> for AddNodesItem {
    fn from(node: NewNode) -> Self {
        let NewNode { item, display_name, description, variable } = node;
        let mask = |given: bool, bit: NodeAttributesMask| if given { bit.0 as u32 } else { 0 };
        let texts = mask(display_name.is_some(), NodeAttributesMask::DISPLAY_NAME)
            | mask(description.is_some(), NodeAttributesMask::DESCRIPTION);
        let (display_name, description) = (display_name.unwrap_or_default(), description.unwrap_or_default());
        let node_attributes = match variable {
            Some(variable) => ExtensionObject::new(&VariableAttributes {
                specified_attributes: variable.specified_attributes | texts,
                display_name,
                description,
                ..variable
            }),
            None => ExtensionObject::new(&ObjectAttributes {
                specified_attributes: texts,
                display_name,
                description,
                ..ObjectAttributes::default()
            }),
        };
        Self { node_attributes, ..item }
    }
}
