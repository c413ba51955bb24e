//! Run-time descriptions of namespace 0's data types: for printing values and for decoding structures that the program
//! does not know.

use crate::generated::{ENUMERATIONS, SIMPLE_TYPES, STRUCTURES};
use taktwerk_types::BuiltInType;

/// How a structure is encoded (Part 3 §8.49).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StructureKind {
    /// All fields, one after the other.
    Plain,
    /// A mask, then the present fields.
    WithOptionalFields,
    /// A switch, then one field.
    Union,
    /// Like [`Self::Plain`], but some fields may hold subtypes of their DataType.
    WithSubtypedValues,
    /// Like [`Self::Union`], but some fields may hold subtypes of their DataType.
    UnionWithSubtypedValues,
}

/// A structure of namespace 0.
#[derive(Debug, PartialEq, Eq)]
pub struct StructureDescription {
    /// The DataType node's id.
    pub data_type_id: u32,
    /// The id of its binary encoding; 0 if there is none.
    pub binary_encoding_id: u32,
    /// Its name.
    pub name: &'static str,
    /// How it is encoded.
    pub kind: StructureKind,
    /// Its fields, inherited ones first.
    pub fields: &'static [FieldDescription],
}

/// A field of a structure.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldDescription {
    /// Its name.
    pub name: &'static str,
    /// Its DataType.
    pub type_id: u32,
    /// −1 for a scalar, 1 for an array.
    pub value_rank: i32,
    /// The field is optional; in kinds with subtyped values, subtypes are allowed.
    pub is_optional: bool,
}

/// An enumeration or option set of namespace 0.
#[derive(Debug, PartialEq, Eq)]
pub struct EnumDescription {
    /// The DataType node's id.
    pub data_type_id: u32,
    /// Its name.
    pub name: &'static str,
    /// Whether the values are bit numbers.
    pub is_option_set: bool,
    /// Names and values.
    pub values: &'static [(&'static str, i64)],
}

impl EnumDescription {
    /// The name of a value or bit.
    #[must_use]
    pub fn name_of(&self, value: i64) -> Option<&'static str> {
        self.values.iter().find(|entry| entry.1 == value).map(|entry| entry.0)
    }
}

/// All structures, in the order of their DataType ids.
#[must_use]
pub fn structures() -> &'static [StructureDescription] {
    STRUCTURES
}

/// All enumerations and option sets, in the order of their DataType ids.
#[must_use]
pub fn enumerations() -> &'static [EnumDescription] {
    ENUMERATIONS
}

/// The structure with a DataType id.
#[must_use]
pub fn structure(data_type_id: u32) -> Option<&'static StructureDescription> {
    let at = STRUCTURES.binary_search_by_key(&data_type_id, |entry| entry.data_type_id).ok()?;
    STRUCTURES.get(at)
}

/// The structure with a binary encoding id.
#[must_use]
pub fn structure_by_encoding(binary_encoding_id: u32) -> Option<&'static StructureDescription> {
    // A linear search: the table is small and only tools need this.
    STRUCTURES.iter().find(|entry| entry.binary_encoding_id == binary_encoding_id && binary_encoding_id != 0)
}

/// The enumeration or option set with a DataType id.
#[must_use]
pub fn enumeration(data_type_id: u32) -> Option<&'static EnumDescription> {
    let at = ENUMERATIONS.binary_search_by_key(&data_type_id, |entry| entry.data_type_id).ok()?;
    ENUMERATIONS.get(at)
}

/// The built-in type that values of a DataType of namespace 0 have in a Variant: Double for Duration, Int32 for an
/// enumeration, ExtensionObject for a structure, Variant for BaseDataType and Number.
#[must_use]
pub fn built_in_type(data_type_id: u32) -> Option<BuiltInType> {
    if let Ok(at) = SIMPLE_TYPES.binary_search_by_key(&data_type_id, |entry| entry.0) {
        return SIMPLE_TYPES.get(at).map(|entry| entry.1);
    }
    if enumeration(data_type_id).is_some() {
        return Some(BuiltInType::Int32);
    }
    structure(data_type_id).map(|_| BuiltInType::ExtensionObject)
}
