//! The attributes that a client gives a new node (Part 4 §7.24).

use crate::space::NodeSpec;
use crate::space::build::ValueShape;
use crate::space::data_type::{Expected, Fit};
use crate::space::node::{DataTypeNode, NodeKind, ReferenceTypeNode, VariableTypeNode};
use crate::space::nodes::Nodes;
use crate::space::view::attribute as a;
use taktwerk_schema::{
    AccessLevelType, DataTypeAttributes, GenericAttributes, MethodAttributes, NodeAttributesMask, NodeClass,
    ObjectAttributes, ObjectTypeAttributes, ReferenceTypeAttributes, VariableAttributes,
    VariableTypeAttributes, ViewAttributes,
};
use taktwerk_types::{ExtensionObject, LocalizedText, NodeId, QualifiedName, StatusCode, Variant};

/// Longest DisplayName, Description or InverseName, in bytes.
const TEXT_LEN_MAX: usize = 4096;
/// Maximum number of ArrayDimensions.
const DIMENSIONS_MAX: usize = 32;

/// The attributes specified by the client. The server chooses the others.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    display_name: Option<LocalizedText>,
    description: Option<LocalizedText>,
    event_notifier: Option<u8>,
    value: Option<Variant>,
    data_type: Option<NodeId>,
    value_rank: Option<i32>,
    array_dimensions: Option<Vec<u32>>,
    access_level: Option<u8>,
    minimum_sampling_interval: Option<f64>,
    historizing: Option<bool>,
    executable: Option<bool>,
    is_abstract: Option<bool>,
    symmetric: Option<bool>,
    inverse_name: Option<LocalizedText>,
    contains_no_loops: Option<bool>,
    data_type_definition: Option<ExtensionObject>,
}

/// Attributes inherited from a VariableType if the client does not specify them.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    pub(super) data_type: NodeId,
    pub(super) value_rank: i32,
}

impl Attributes {
    /// Parses the structure for a NodeClass, or GenericAttributes.
    ///
    /// # Errors
    /// Bad_NodeAttributesInvalid.
    pub(super) fn read(object: &ExtensionObject, class: NodeClass) -> Result<Self, StatusCode> {
        if object.is_null() {
            return Ok(Self::default());
        }
        let invalid = |_| StatusCode::BAD_NODE_ATTRIBUTES_INVALID;
        if object.is::<GenericAttributes>() {
            return Self::generic(object.decode().map_err(invalid)?);
        }
        let mut all = Self::default();
        macro_rules! take {
            ($type:ty { $($field:ident: $bit:ident),* }) => {{
                let given: $type = object.decode().map_err(invalid)?;
                let has = |bit: NodeAttributesMask| given.specified_attributes & bit.0 as u32 != 0;
                all.display_name = has(NodeAttributesMask::DISPLAY_NAME).then_some(given.display_name);
                all.description = has(NodeAttributesMask::DESCRIPTION).then_some(given.description);
                $(all.$field = has(NodeAttributesMask::$bit).then_some(given.$field);)*
            }};
        }
        match class {
            NodeClass::OBJECT => take!(ObjectAttributes { event_notifier: EVENT_NOTIFIER }),
            NodeClass::VARIABLE => take!(VariableAttributes {
                value: VALUE,
                data_type: DATA_TYPE,
                value_rank: VALUE_RANK,
                array_dimensions: ARRAY_DIMENSIONS,
                access_level: ACCESS_LEVEL,
                minimum_sampling_interval: MINIMUM_SAMPLING_INTERVAL,
                historizing: HISTORIZING
            }),
            NodeClass::METHOD => take!(MethodAttributes { executable: EXECUTABLE }),
            NodeClass::OBJECT_TYPE => take!(ObjectTypeAttributes { is_abstract: IS_ABSTRACT }),
            NodeClass::VARIABLE_TYPE => take!(VariableTypeAttributes {
                value: VALUE,
                data_type: DATA_TYPE,
                value_rank: VALUE_RANK,
                array_dimensions: ARRAY_DIMENSIONS,
                is_abstract: IS_ABSTRACT
            }),
            NodeClass::REFERENCE_TYPE => take!(ReferenceTypeAttributes {
                is_abstract: IS_ABSTRACT,
                symmetric: SYMMETRIC,
                inverse_name: INVERSE_NAME
            }),
            NodeClass::DATA_TYPE => take!(DataTypeAttributes { is_abstract: IS_ABSTRACT }),
            NodeClass::VIEW => {
                take!(ViewAttributes { contains_no_loops: CONTAINS_NO_LOOPS, event_notifier: EVENT_NOTIFIER })
            }
            _ => return Err(StatusCode::BAD_NODE_CLASS_INVALID),
        }
        all.check()
    }

    fn generic(given: GenericAttributes) -> Result<Self, StatusCode> {
        let has = |bit: NodeAttributesMask| given.specified_attributes & bit.0 as u32 != 0;
        let mut all = Self {
            display_name: has(NodeAttributesMask::DISPLAY_NAME).then_some(given.display_name),
            description: has(NodeAttributesMask::DESCRIPTION).then_some(given.description),
            ..Self::default()
        };
        for attribute in given.attribute_values {
            let value = attribute.value;
            macro_rules! put {
                ($field:ident) => {
                    all.$field = Some(value.try_into().map_err(|_| StatusCode::BAD_NODE_ATTRIBUTES_INVALID)?)
                };
            }
            match attribute.attribute_id {
                a::VALUE => all.value = Some(value),
                a::EVENT_NOTIFIER => put!(event_notifier),
                a::DATA_TYPE => put!(data_type),
                a::VALUE_RANK => put!(value_rank),
                a::ARRAY_DIMENSIONS => put!(array_dimensions),
                a::ACCESS_LEVEL => put!(access_level),
                a::MINIMUM_SAMPLING_INTERVAL => put!(minimum_sampling_interval),
                a::HISTORIZING => put!(historizing),
                a::EXECUTABLE => put!(executable),
                a::IS_ABSTRACT => put!(is_abstract),
                a::SYMMETRIC => put!(symmetric),
                a::INVERSE_NAME => put!(inverse_name),
                a::CONTAINS_NO_LOOPS => put!(contains_no_loops),
                a::DATA_TYPE_DEFINITION => put!(data_type_definition),
                _ => return Err(StatusCode::BAD_NODE_ATTRIBUTES_INVALID),
            }
        }
        all.check()
    }

    fn check(self) -> Result<Self, StatusCode> {
        let texts = [&self.display_name, &self.description, &self.inverse_name];
        let is_long = |text: &LocalizedText| {
            text.text.as_str().len() > TEXT_LEN_MAX || text.locale.as_str().len() > TEXT_LEN_MAX
        };
        let dimensions = self.array_dimensions.as_ref().map_or(0, Vec::len);
        if texts.into_iter().flatten().any(is_long) || dimensions > DIMENSIONS_MAX {
            return Err(StatusCode::BAD_NODE_ATTRIBUTES_INVALID);
        }
        Ok(self)
    }

    /// The definition of the node.
    ///
    /// # Errors
    /// Bad_NodeAttributesInvalid if a value does not match its DataType; Bad_NodeClassInvalid.
    pub(super) fn into_spec(
        self,
        nodes: &Nodes,
        id: NodeId,
        name: QualifiedName,
        class: NodeClass,
        inherited: Inherited,
    ) -> Result<NodeSpec, StatusCode> {
        let text = name.name.clone();
        let is_abstract = self.is_abstract.unwrap_or(false);
        let event_notifier = self.event_notifier.unwrap_or(0);
        let spec = match class {
            NodeClass::OBJECT => NodeSpec::object(id, name).event_notifier(event_notifier),
            NodeClass::VARIABLE | NodeClass::VARIABLE_TYPE => {
                let is_variable = class == NodeClass::VARIABLE;
                let data_type =
                    self.data_type.filter(|data_type| !data_type.is_null()).unwrap_or(inherited.data_type);
                let value_rank = self.value_rank.unwrap_or(inherited.value_rank);
                let array_dimensions = self.array_dimensions.unwrap_or_default();
                let invalid = StatusCode::BAD_NODE_ATTRIBUTES_INVALID;
                let known = nodes.resolve(data_type.as_ref()).and_then(|ix| nodes.view(ix));
                if known.is_none_or(|view| view.class() != NodeClass::DATA_TYPE) || value_rank < -3 {
                    return Err(invalid);
                }
                let expected =
                    Expected::new(nodes, data_type.as_ref(), value_rank, array_dimensions.clone())?;
                let value = match self.value.filter(|value| !value.is_empty()) {
                    None => None,
                    Some(value) => match expected.fit(nodes, value) {
                        Fit::Yes(value) => Some(value),
                        Fit::WrongType | Fit::TooLong => return Err(invalid),
                    },
                };
                if is_variable {
                    // The history of these Variables is not recorded.
                    let levels = AccessLevelType::CURRENT_READ
                        | AccessLevelType::CURRENT_WRITE
                        | AccessLevelType::STATUS_WRITE
                        | AccessLevelType::TIMESTAMP_WRITE;
                    let level = self.access_level.map_or(AccessLevelType::CURRENT_READ, AccessLevelType);
                    NodeSpec::variable(id, name, NodeId::NULL, value)
                        .shape(ValueShape { data_type, value_rank, array_dimensions })
                        .access_level(AccessLevelType(level.0 & levels.0))
                        .minimum_sampling_interval(self.minimum_sampling_interval.unwrap_or(0.0) as f32)
                } else {
                    let kind = NodeKind::VariableType(Box::new(VariableTypeNode {
                        data_type: 0,
                        value_rank,
                        array_dimensions,
                        is_abstract,
                        value: None,
                    }));
                    NodeSpec { data_type, value, ..NodeSpec::with_kind(id, name, kind) }
                }
            }
            NodeClass::METHOD => NodeSpec::with_kind(
                id,
                name,
                NodeKind::Method { executable: self.executable.unwrap_or(true) },
            ),
            NodeClass::OBJECT_TYPE => NodeSpec::with_kind(id, name, NodeKind::ObjectType { is_abstract }),
            NodeClass::REFERENCE_TYPE => {
                let kind = ReferenceTypeNode {
                    is_abstract,
                    symmetric: self.symmetric.unwrap_or(false),
                    inverse_name: self.inverse_name.unwrap_or_default(),
                };
                NodeSpec::with_kind(id, name, NodeKind::ReferenceType(Box::new(kind)))
            }
            NodeClass::DATA_TYPE => {
                let kind = DataTypeNode { is_abstract, definition: self.data_type_definition };
                NodeSpec::with_kind(id, name, NodeKind::DataType(Box::new(kind)))
            }
            NodeClass::VIEW => NodeSpec::with_kind(
                id,
                name,
                NodeKind::View { event_notifier, contains_no_loops: self.contains_no_loops.unwrap_or(false) },
            ),
            _ => return Err(StatusCode::BAD_NODE_CLASS_INVALID),
        };
        let differs = |shown: &LocalizedText| !shown.locale.is_null() || shown.text != text;
        let spec = match self.display_name.filter(|shown| !shown.text.is_null()) {
            Some(shown) if differs(&shown) => spec.display_name(shown),
            _ => spec,
        };
        Ok(match self.description.filter(|description| !description.text.is_null()) {
            Some(description) => spec.description(description),
            None => spec,
        })
    }
}
