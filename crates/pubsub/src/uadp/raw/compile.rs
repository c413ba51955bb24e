//! Compiles DataSetMetaData to the fields of a [`super::RawLayout`].

use super::{RawField, RawShape, RawStructure, RawType, scalar_len};
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_schema::{DataSetMetaDataType, StructureField, StructureType, description};
use taktwerk_types::{BuiltInType, NodeId};

/// The DataSet cannot be sent as raw data (Part 14 §7.2.4.5.11).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field {field} cannot be RawData: {reason}")]
pub struct RawLayoutError {
    /// The field, with the path to a structure's member.
    pub field: String,
    /// The reason.
    pub reason: &'static str,
}

/// Maximum nesting of structures.
const DEPTH_MAX: usize = 32;

pub(super) fn compile(meta_data: &DataSetMetaDataType) -> Result<Vec<RawType>, RawLayoutError> {
    let mut compiler = Compiler { meta_data, done: BTreeMap::new() };
    let mut fields = Vec::with_capacity(meta_data.fields.len());
    for field in &meta_data.fields {
        let declared = BuiltInType::from_number(field.built_in_type);
        fields.push(compiler.field(
            field.name.as_str(),
            declared,
            &field.data_type,
            field.value_rank,
            &field.array_dimensions,
            field.max_string_length,
            0,
        )?);
    }
    Ok(fields)
}

struct Compiler<'a> {
    meta_data: &'a DataSetMetaDataType,
    /// Compiled once and shared, so that the size of the metadata bounds the work.
    done: BTreeMap<NodeId, Arc<RawStructure>>,
}

impl Compiler<'_> {
    #[allow(clippy::too_many_arguments)] // the parts of FieldMetaData and StructureField that matter
    fn field(
        &mut self,
        path: &str,
        declared: Option<BuiltInType>,
        data_type: &NodeId,
        value_rank: i32,
        array_dimensions: &[u32],
        max_string_length: u32,
        depth: usize,
    ) -> Result<RawType, RawLayoutError> {
        let error = |reason| RawLayoutError { field: path.to_owned(), reason };
        let kind = match declared {
            Some(kind) => kind,
            None => self.built_in_type(data_type).ok_or_else(|| error("its data type is not described"))?,
        };
        let element = match kind {
            BuiltInType::String | BuiltInType::ByteString => {
                RawType::Text { kind, max: max_string_length as usize }
            }
            BuiltInType::ExtensionObject => self.structure(path, data_type, depth)?,
            kind if scalar_len(kind).is_some() => RawType::Scalar(kind),
            _ => return Err(error("its type has no fixed size")),
        };
        match value_rank {
            -1 => Ok(element),
            rank @ 1.. => {
                let rank = usize::try_from(rank).ok().filter(|rank| *rank <= 8);
                let rank = rank.ok_or_else(|| error("it has more than 8 dimensions"))?;
                let mut dimensions = array_dimensions.to_vec();
                dimensions.resize(rank, 0);
                Ok(RawType::Array { element: Box::new(element), dimensions })
            }
            _ => Err(error("its ValueRank is not fixed")),
        }
    }

    fn built_in_type(&self, data_type: &NodeId) -> Option<BuiltInType> {
        if let Some(id) = data_type.ns0() {
            return description::built_in_type(id);
        }
        let meta_data = self.meta_data;
        if meta_data.structure_data_types.iter().any(|known| known.data_type_id == *data_type) {
            return Some(BuiltInType::ExtensionObject);
        }
        if let Some(known) = meta_data.enum_data_types.iter().find(|known| known.data_type_id == *data_type) {
            return BuiltInType::from_number(known.built_in_type);
        }
        let known = meta_data.simple_data_types.iter().find(|known| known.data_type_id == *data_type)?;
        BuiltInType::from_number(known.built_in_type)
    }

    fn structure(&mut self, path: &str, data_type: &NodeId, depth: usize) -> Result<RawType, RawLayoutError> {
        let error = |reason| RawLayoutError { field: path.to_owned(), reason };
        if let Some(known) = self.done.get(data_type) {
            return Ok(RawType::Structure(known.clone()));
        }
        if depth >= DEPTH_MAX {
            return Err(error("its structure is nested too deeply"));
        }
        let meta_data = self.meta_data;
        let described = meta_data.structure_data_types.iter().find(|known| known.data_type_id == *data_type);
        let (encoding, kind, fields) = match described {
            Some(known) => {
                let definition = &known.structure_definition;
                (definition.default_encoding_id.clone(), definition.structure_type, definition.fields.clone())
            }
            None => standard(data_type).ok_or_else(|| error("its structure is not described"))?,
        };
        let shape = match kind {
            StructureType::STRUCTURE => RawShape::Plain,
            StructureType::STRUCTURE_WITH_OPTIONAL_FIELDS => RawShape::Optional,
            StructureType::UNION => RawShape::Union,
            _ => return Err(error("its structure allows subtypes")),
        };
        if fields.is_empty() {
            return Err(error("its structure has no fields"));
        }
        let mut compiled = Vec::with_capacity(fields.len());
        for field in &fields {
            let path = format!("{path}.{}", field.name);
            let kind = self.field(
                &path,
                None,
                &field.data_type,
                field.value_rank,
                &field.array_dimensions,
                field.max_string_length,
                depth + 1,
            )?;
            let is_optional = shape == RawShape::Optional && field.is_optional;
            if (is_optional || shape == RawShape::Union) && kind.fixed_len().is_none() {
                return Err(RawLayoutError {
                    field: path,
                    reason: "it may be missing, so it needs a largest size (MaxStringLength, ArrayDimensions)",
                });
            }
            compiled.push(RawField { kind, is_optional });
        }
        let lengths = compiled.iter().map(|field| field.kind.fixed_len());
        let fixed_len = match shape {
            RawShape::Plain => lengths.sum::<Option<usize>>(),
            RawShape::Optional => lengths.sum::<Option<usize>>().and_then(|len| len.checked_add(4)),
            RawShape::Union => lengths.flatten().max().and_then(|len| len.checked_add(4)),
        };
        let structure = Arc::new(RawStructure { encoding, shape, fields: compiled, fixed_len });
        self.done.insert(data_type.clone(), structure.clone());
        Ok(RawType::Structure(structure))
    }
}

/// A structure of namespace 0.
fn standard(data_type: &NodeId) -> Option<(NodeId, StructureType, Vec<StructureField>)> {
    let known = description::structure(data_type.ns0()?)?;
    let kind = match known.kind {
        description::StructureKind::Plain => StructureType::STRUCTURE,
        description::StructureKind::WithOptionalFields => StructureType::STRUCTURE_WITH_OPTIONAL_FIELDS,
        description::StructureKind::Union => StructureType::UNION,
        _ => StructureType::STRUCTURE_WITH_SUBTYPED_VALUES,
    };
    let fields = known.fields.iter().map(|field| StructureField {
        name: field.name.into(),
        data_type: NodeId::numeric(0, field.type_id),
        value_rank: field.value_rank,
        is_optional: field.is_optional,
        ..StructureField::default()
    });
    Some((NodeId::numeric(0, known.binary_encoding_id), kind, fields.collect()))
}
