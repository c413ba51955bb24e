//! Structures known only at run time, from the DataTypeDefinition attribute of their DataType nodes (Part 3 §8.48 to
//! §8.53, Part 6 §5.2.5 to §5.2.8).
//!
//! A [`TypeRegistry`] contains namespace 0; definitions read from a server are added to it. It converts
//! ExtensionObjects to [`DynamicStructure`]s and back, and prints values with names. Besides the limits of the codec,
//! decoding limits the number of values, because a dynamic value takes more memory than its encoding.

use std::sync::Arc;
use taktwerk_types::{DecodeError, NodeId, Variant};

mod decode;
mod encode;
mod print;
mod registry;

pub use print::Printed;
pub use registry::{EnumType, FieldType, StructureType, TypeRegistry};

/// A value of a type known only at run time.
#[derive(Debug, Clone, PartialEq)]
pub enum DynamicValue {
    /// A built-in type, or an array or matrix of one. Fields that allow any structure are ExtensionObjects;
    /// [`TypeRegistry::decode`] decodes them.
    Variant(Variant),
    /// A value of an enumeration.
    Enumeration {
        /// The number.
        value: i32,
        /// Its name, if the definition has one for it.
        name: Option<Arc<str>>,
    },
    /// A structure or union.
    Structure(DynamicStructure),
    /// An array or matrix of structures or enumeration values.
    Array {
        /// The elements; in a matrix, the last dimension varies fastest.
        values: Vec<DynamicValue>,
        /// The lengths of the dimensions; empty for a one-dimensional array.
        dimensions: Vec<u32>,
    },
}

/// A structure or union.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicStructure {
    /// Its DataType.
    pub data_type: NodeId,
    /// The DataType's name.
    pub type_name: Arc<str>,
    /// Its fields in the order of the definition. Optional fields without a value are omitted; a union has at most one.
    pub fields: Vec<(Arc<str>, DynamicValue)>,
}

impl DynamicStructure {
    /// A structure without fields: encoding it gives each field its default value.
    #[must_use]
    pub fn new(data_type: NodeId, type_name: &str) -> Self {
        Self { data_type, type_name: type_name.into(), fields: Vec::new() }
    }

    /// `self` with one more field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<DynamicValue>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// The value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&DynamicValue> {
        self.fields.iter().find(|field| &*field.0 == name).map(|field| &field.1)
    }
}

impl<T: Into<Variant>> From<T> for DynamicValue {
    fn from(value: T) -> Self {
        Self::Variant(value.into())
    }
}

impl From<DynamicStructure> for DynamicValue {
    fn from(value: DynamicStructure) -> Self {
        Self::Structure(value)
    }
}

impl DynamicValue {
    /// An array of structures.
    #[must_use]
    pub fn structures(values: Vec<DynamicStructure>) -> Self {
        Self::Array { values: values.into_iter().map(Self::Structure).collect(), dimensions: Vec::new() }
    }
}

/// Why a value and its definition do not match.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DynamicError {
    /// No definition for a type.
    #[error("no definition of data type {0} is known; read its DataTypeDefinition attribute first")]
    UnknownType(NodeId),
    /// The bytes do not decode as the type.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// An ExtensionObject without a binary body.
    #[error("the ExtensionObject of type {0} has no binary body")]
    NoBinaryBody(NodeId),
    /// An invalid definition.
    #[error("the definition of {data_type} is wrong: {reason}")]
    BadDefinition {
        /// The DataType.
        data_type: NodeId,
        /// Why.
        reason: &'static str,
    },
    /// A field that is not in the definition.
    #[error("{type_name} has no field {field}")]
    UnknownField {
        /// The structure.
        type_name: Arc<str>,
        /// The field.
        field: Arc<str>,
    },
    /// A value whose type differs from the definition.
    #[error("{type_name}.{field} is {wanted}, not {found}")]
    WrongType {
        /// The structure.
        type_name: Arc<str>,
        /// The field.
        field: Arc<str>,
        /// The type in the definition.
        wanted: String,
        /// The type of the value.
        found: String,
    },
    /// A union with more than one field.
    #[error("the union {0} has more than one field")]
    NotOneField(Arc<str>),
    /// The structure contains itself, so it has no default value.
    #[error("{0} contains itself, so it has no default value")]
    Endless(Arc<str>),
}
