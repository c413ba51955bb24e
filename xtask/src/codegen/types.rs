//! The data types of namespace 0, in the form that the code generators need.

use super::names;
use crate::Failure;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_nodeset::dictionary::DataType;
use taktwerk_nodeset::{DataTypeKind, Field, TypeDictionary};
use taktwerk_types::{BuiltInType, NodeId};

/// All data types, each list in the order of the ids.
pub(crate) struct Model {
    pub(crate) structures: Vec<Structure>,
    pub(crate) enumerations: Vec<Enumeration>,
    pub(crate) option_sets: Vec<OptionSet>,
    /// DataType id to built-in type, for types that are neither of the above.
    pub(crate) simple: BTreeMap<u32, BuiltInType>,
}

/// A concrete structure.
pub(crate) struct Structure {
    pub(crate) id: u32,
    pub(crate) binary_encoding: Option<u32>,
    pub(crate) name: String,
    pub(crate) fields: Vec<StructureField>,
}

/// A field, inherited or own.
pub(crate) struct StructureField {
    pub(crate) name: String,
    pub(crate) rust_name: String,
    /// The Rust type of one element.
    pub(crate) rust_type: String,
    /// Id of the DataType.
    pub(crate) type_id: u32,
    pub(crate) is_array: bool,
    pub(crate) is_optional: bool,
    pub(crate) allow_sub_types: bool,
    /// The structure that it contains in place, if any.
    structure: Option<u32>,
}

/// An enumeration.
pub(crate) struct Enumeration {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) values: Vec<(String, i32)>,
}

/// An option set on an unsigned integer.
pub(crate) struct OptionSet {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) bits_type: BuiltInType,
    /// Name and number of each bit.
    pub(crate) bits: Vec<(String, u32)>,
}

impl Structure {
    /// Whether an encoding mask precedes the fields.
    pub(crate) fn has_optional_fields(&self) -> bool {
        self.fields.iter().any(|field| field.is_optional)
    }
}

impl StructureField {
    /// The Rust type of the field.
    pub(crate) fn full_type(&self) -> String {
        if self.is_array { format!("Vec<{}>", self.rust_type) } else { self.rust_type.clone() }
    }
}

impl Model {
    /// Builds the model from a dictionary of namespace 0.
    pub(crate) fn new(dictionary: &TypeDictionary) -> Result<Self, Failure> {
        let mut model = Self {
            structures: Vec::new(),
            enumerations: Vec::new(),
            option_sets: Vec::new(),
            simple: BTreeMap::new(),
        };
        for (node_id, data_type) in dictionary.iter() {
            let id = number(node_id)?;
            let at = |reason: &str| format!("data type {} (i={id}): {reason}", data_type.name);
            match dictionary.kind(node_id).map_err(|problem| at(&problem.to_string()))? {
                DataTypeKind::Structure(layout) => {
                    if layout.is_union {
                        return Err(at("unions are not generated yet; namespace 0 had none so far"));
                    }
                    model.structures.push(Structure {
                        id,
                        binary_encoding: data_type.binary_encoding.as_ref().map(number).transpose()?,
                        name: data_type.name.clone(),
                        fields: layout
                            .fields
                            .iter()
                            .map(|field| structure_field(field, dictionary).map_err(|reason| at(&reason)))
                            .collect::<Result<_, _>>()?,
                    });
                }
                DataTypeKind::Enumeration if data_type.definition.is_some() => {
                    model.enumerations.push(enumeration(id, data_type).map_err(|reason| at(&reason))?);
                }
                DataTypeKind::Enumeration => {
                    model.simple.insert(id, BuiltInType::Int32);
                }
                DataTypeKind::BuiltIn(bits_type) if is_option_set(data_type, bits_type) => {
                    model
                        .option_sets
                        .push(option_set(id, data_type, bits_type).map_err(|reason| at(&reason))?);
                }
                DataTypeKind::BuiltIn(kind) => {
                    model.simple.insert(id, kind);
                }
            }
        }
        model.refuse_recursion()?;
        Ok(model)
    }

    /// Recursive structures would need boxes and a nesting count. There are none, so they are not supported.
    fn refuse_recursion(&self) -> Result<(), Failure> {
        let held: BTreeMap<u32, BTreeSet<u32>> = self
            .structures
            .iter()
            .map(|structure| {
                (structure.id, structure.fields.iter().filter_map(|field| field.structure).collect())
            })
            .collect();
        for structure in &self.structures {
            let mut reached = BTreeSet::new();
            let mut open = vec![structure.id];
            while let Some(id) = open.pop() {
                for inner in held.get(&id).into_iter().flatten() {
                    if *inner == structure.id {
                        return Err(format!(
                            "structure {} contains itself; extend the generator to box it",
                            structure.name
                        ));
                    }
                    if reached.insert(*inner) {
                        open.push(*inner);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The numeric id in namespace 0.
pub(crate) fn number(id: &NodeId) -> Result<u32, Failure> {
    id.ns0().ok_or_else(|| format!("{id} is not a numeric id of namespace 0"))
}

fn is_option_set(data_type: &DataType, kind: BuiltInType) -> bool {
    matches!(kind, BuiltInType::Byte | BuiltInType::UInt16 | BuiltInType::UInt32 | BuiltInType::UInt64)
        && data_type.definition.as_ref().is_some_and(|definition| definition.is_option_set)
}

fn structure_field(field: &Field, dictionary: &TypeDictionary) -> Result<StructureField, Failure> {
    if field.value_rank > 1 {
        return Err(format!("field {} is a matrix, which the generator does not support", field.name));
    }
    let kind = dictionary.field_kind(field).map_err(|problem| problem.to_string())?;
    let type_id = number(&field.data_type)?;
    let data_type = dictionary.get(&field.data_type);
    let (rust_type, structure) = match kind {
        DataTypeKind::Structure(layout) => (layout.name, Some(type_id)),
        DataTypeKind::Enumeration => match data_type {
            Some(entry) if entry.definition.is_some() => (entry.name.clone(), None),
            _ => ("i32".to_owned(), None),
        },
        DataTypeKind::BuiltIn(kind) => match data_type {
            Some(entry) if is_option_set(entry, kind) => (entry.name.clone(), None),
            _ => (rust_type(kind).to_owned(), None),
        },
    };
    Ok(StructureField {
        name: field.name.clone(),
        rust_name: names::field(&field.name),
        rust_type,
        type_id,
        is_array: field.value_rank >= 0,
        is_optional: field.is_optional,
        allow_sub_types: field.allow_sub_types,
        structure,
    })
}

/// The Rust type of a built-in type.
pub(crate) fn rust_type(kind: BuiltInType) -> &'static str {
    match kind {
        BuiltInType::Boolean => "bool",
        BuiltInType::SByte => "i8",
        BuiltInType::Byte => "u8",
        BuiltInType::Int16 => "i16",
        BuiltInType::UInt16 => "u16",
        BuiltInType::Int32 => "i32",
        BuiltInType::UInt32 => "u32",
        BuiltInType::Int64 => "i64",
        BuiltInType::UInt64 => "u64",
        BuiltInType::Float => "f32",
        BuiltInType::Double => "f64",
        BuiltInType::String => "UaString",
        BuiltInType::DateTime => "UtcTime",
        BuiltInType::Guid => "Guid",
        BuiltInType::ByteString => "ByteString",
        BuiltInType::XmlElement => "XmlElement",
        BuiltInType::NodeId => "NodeId",
        BuiltInType::ExpandedNodeId => "ExpandedNodeId",
        BuiltInType::StatusCode => "StatusCode",
        BuiltInType::QualifiedName => "QualifiedName",
        BuiltInType::LocalizedText => "LocalizedText",
        BuiltInType::ExtensionObject => "ExtensionObject",
        BuiltInType::DataValue => "DataValue",
        BuiltInType::Variant => "Variant",
        BuiltInType::DiagnosticInfo => "DiagnosticInfo",
    }
}

fn enumeration(id: u32, data_type: &DataType) -> Result<Enumeration, Failure> {
    let fields = data_type.definition.iter().flat_map(|definition| &definition.fields);
    let values = fields
        .map(|field| {
            let value = i32::try_from(field.value).map_err(|_| format!("{} is not an Int32", field.name))?;
            Ok((field.symbolic_name.clone().unwrap_or_else(|| field.name.clone()), value))
        })
        .collect::<Result<_, Failure>>()?;
    Ok(Enumeration { id, name: data_type.name.clone(), values })
}

fn option_set(id: u32, data_type: &DataType, bits_type: BuiltInType) -> Result<OptionSet, Failure> {
    let fields = data_type.definition.iter().flat_map(|definition| &definition.fields);
    let bits = fields
        .map(|field| {
            let bit =
                u32::try_from(field.value).map_err(|_| format!("{} is not a bit number", field.name))?;
            Ok((field.symbolic_name.clone().unwrap_or_else(|| field.name.clone()), bit))
        })
        .collect::<Result<_, Failure>>()?;
    Ok(OptionSet { id, name: data_type.name.clone(), bits_type, bits })
}
