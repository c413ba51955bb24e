//! The content of a NodeSet2 file: models and nodes, in file order.

use crate::definition::Definition;
use crate::xml::Element;
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, UtcTime};

/// One NodeSet2 file.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSet {
    /// The file as named by the caller; messages start with it.
    pub file: String,
    /// The namespaces of the file: index 0 is always OPC UA.
    pub namespace_uris: Vec<String>,
    /// The models it defines, normally one.
    pub models: Vec<Model>,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// The server's index for each file-local namespace index, as given to [`NodeSet::remap`].
    pub(crate) namespace_map: Vec<u16>,
    /// The text, for values of type XmlElement.
    pub(crate) source: Box<str>,
}

/// `<Model>`: a model that a file defines.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its namespace.
    pub uri: String,
    /// Its version, for display.
    pub version: Option<String>,
    /// Its semantic version.
    pub model_version: Option<String>,
    /// Its publication date, by which versions are compared.
    pub publication_date: Option<UtcTime>,
    /// The models it requires.
    pub required: Vec<RequiredModel>,
    /// Default permissions of its nodes.
    pub role_permissions: Vec<RolePermission>,
    /// Default AccessRestrictions of its nodes.
    pub access_restrictions: u16,
    /// Its line.
    pub line: u32,
}

/// `<RequiredModel>`: a model that another one requires.
#[derive(Debug, Clone, PartialEq)]
pub struct RequiredModel {
    /// Its namespace.
    pub uri: String,
    /// The minimum version, for display.
    pub version: Option<String>,
    /// The minimum publication date.
    pub publication_date: Option<UtcTime>,
    /// The line.
    pub line: u32,
}

/// `<RolePermission>`: the permissions of a role (Part 3 §8.55).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolePermission {
    /// The role.
    pub role: NodeId,
    /// PermissionType bits.
    pub permissions: u32,
}

/// `<Reference>` of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The ReferenceType.
    pub reference_type: NodeId,
    /// Whether it points from the node to the target.
    pub is_forward: bool,
    /// The other end.
    pub target: NodeId,
}

/// A node of any class.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its id.
    pub node_id: NodeId,
    /// Its BrowseName.
    pub browse_name: QualifiedName,
    /// Its DisplayName in each locale of the file; empty means the BrowseName's text.
    pub display_names: Vec<LocalizedText>,
    /// Its Description in each locale of the file.
    pub descriptions: Vec<LocalizedText>,
    /// The name for generated code, if it differs from the BrowseName.
    pub symbolic_name: Option<String>,
    /// The parent of an instance, as a hint for tools.
    pub parent: Option<NodeId>,
    /// The WriteMask attribute.
    pub write_mask: u32,
    /// The UserWriteMask attribute.
    pub user_write_mask: u32,
    /// The AccessRestrictions attribute; `None` means the model's default.
    pub access_restrictions: Option<u16>,
    /// The RolePermissions attribute; empty means the model's default.
    pub role_permissions: Vec<RolePermission>,
    /// Its references; each is listed at one end or at both.
    pub references: Vec<Reference>,
    /// The class-specific attributes.
    pub class: NodeClass,
    /// Its line.
    pub line: u32,
}

/// The attributes that depend on the node's class.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeClass {
    /// UAObject.
    Object {
        /// EventNotifier bits.
        event_notifier: u8,
    },
    /// UAVariable.
    Variable {
        /// Type and dimensions of its values.
        shape: ValueShape,
        /// AccessLevelEx bits; the low byte is AccessLevel.
        access_level: u32,
        /// The fastest sampling interval in ms; negative is unknown.
        minimum_sampling_interval: f64,
        /// Whether the server collects history.
        historizing: bool,
        /// Its value.
        value: Option<Element>,
    },
    /// UAMethod.
    Method {
        /// Whether it can be called.
        executable: bool,
        /// The corresponding Method of the type.
        declaration: Option<NodeId>,
    },
    /// UAObjectType.
    ObjectType {
        /// Whether only subtypes can be instantiated.
        is_abstract: bool,
    },
    /// UAVariableType.
    VariableType {
        /// Type and dimensions of its instances' values.
        shape: ValueShape,
        /// Whether only subtypes can be instantiated.
        is_abstract: bool,
        /// Initial value of new instances.
        value: Option<Element>,
    },
    /// UAReferenceType.
    ReferenceType {
        /// Whether only subtypes are used.
        is_abstract: bool,
        /// Whether it reads the same in both directions.
        symmetric: bool,
        /// Its inverse name, in each locale of the file.
        inverse_names: Vec<LocalizedText>,
    },
    /// UADataType.
    DataType {
        /// Whether only subtypes have values.
        is_abstract: bool,
        /// Its fields.
        definition: Option<Definition>,
    },
    /// UAView.
    View {
        /// EventNotifier bits.
        event_notifier: u8,
        /// Whether its references contain no loops.
        contains_no_loops: bool,
    },
}

/// DataType, ValueRank and ArrayDimensions of a Variable or VariableType.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueShape {
    /// The DataType.
    pub data_type: NodeId,
    /// Part 3 §5.6.2: −3 scalar or vector, −2 any, −1 scalar, 0 one or more dimensions, n exactly n.
    pub value_rank: i32,
    /// The length of each dimension; 0 is variable.
    pub array_dimensions: Vec<u32>,
}

impl NodeClass {
    /// The value, of a Variable or VariableType that has one.
    #[must_use]
    pub fn value(&self) -> Option<&Element> {
        match self {
            Self::Variable { value, .. } | Self::VariableType { value, .. } => value.as_ref(),
            _ => None,
        }
    }

    /// The number of the NodeClass enumeration (Part 3 §8.29).
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::Object { .. } => 1,
            Self::Variable { .. } => 2,
            Self::Method { .. } => 4,
            Self::ObjectType { .. } => 8,
            Self::VariableType { .. } => 16,
            Self::ReferenceType { .. } => 32,
            Self::DataType { .. } => 64,
            Self::View { .. } => 128,
        }
    }
}
