//! `<Definition>` of a DataType: the fields of structures, unions, enumerations and option sets.

use taktwerk_types::{LocalizedText, NodeId};

/// The fields of a DataType, without those of its supertype.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Definition {
    /// The DataType's name.
    pub name: String,
    /// The name for generated code, if it differs.
    pub symbolic_name: Option<String>,
    /// Whether at most one field has a value.
    pub is_union: bool,
    /// Whether the fields name bits.
    pub is_option_set: bool,
    /// The fields.
    pub fields: Vec<Field>,
    /// The line in the file.
    pub line: u32,
}

/// `<Field>` of a [`Definition`].
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The name for generated code, if it differs.
    pub symbolic_name: Option<String>,
    /// Its display name (enumerations).
    pub display_name: Option<LocalizedText>,
    /// Its description.
    pub description: Option<LocalizedText>,
    /// Its DataType (structures).
    pub data_type: NodeId,
    /// Its ValueRank (structures).
    pub value_rank: i32,
    /// Its ArrayDimensions (structures).
    pub array_dimensions: Vec<u32>,
    /// The longest string, 0 if unlimited (structures).
    pub max_string_length: u32,
    /// The number of an enumeration value or of a bit.
    pub value: i64,
    /// Whether it is optional (structures).
    pub is_optional: bool,
    /// Whether it may hold a subtype of its DataType (structures).
    pub allow_sub_types: bool,
    /// The line in the file.
    pub line: u32,
}
