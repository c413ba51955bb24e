//! Encodes dynamic values.

use super::registry::{FieldType, Kind, StructureType, TypeRegistry};
use super::{DynamicError, DynamicStructure, DynamicValue};
use crate::description::StructureKind;
use std::sync::Arc;
use taktwerk_types::codec::encode_len;
use taktwerk_types::{
    ArrayValues, BuiltInType, DataValue, DiagnosticInfo, Encode, ExpandedNodeId, ExtensionObject, Guid,
    LocalizedText, NodeId, QualifiedName, UaString, Variant,
};

/// Maximum nesting when encoding; the decoder's limits bound decoded values.
const DEPTH_MAX: usize = 64;

impl TypeRegistry {
    /// Encodes a structure as an ExtensionObject. Fields without a value get their default.
    ///
    /// # Errors
    /// The type is unknown, or a field's type differs from the definition.
    pub fn encode(&self, value: &DynamicStructure) -> Result<ExtensionObject, DynamicError> {
        let structure = self.structure(&value.data_type);
        let structure = structure.ok_or_else(|| DynamicError::UnknownType(value.data_type.clone()))?;
        let mut out = Vec::new();
        Writing { types: self, out: &mut out }.structure(&structure, value, 0)?;
        Ok(ExtensionObject::from_binary(structure.encoding.clone(), out))
    }
}

struct Writing<'r> {
    types: &'r TypeRegistry,
    out: &'r mut Vec<u8>,
}

/// The field being encoded, for error messages.
#[derive(Clone, Copy)]
struct Place<'a> {
    structure: &'a StructureType,
    field: &'a FieldType,
}

impl Place<'_> {
    fn wrong(self, wanted: impl Into<String>, found: &DynamicValue) -> DynamicError {
        let found = match found {
            DynamicValue::Variant(value) => value.type_name(),
            DynamicValue::Enumeration { .. } => "an enumeration value".to_owned(),
            DynamicValue::Structure(value) => value.type_name.to_string(),
            DynamicValue::Array { .. } => "an array".to_owned(),
        };
        DynamicError::WrongType {
            type_name: self.structure.name.clone(),
            field: self.field.name.clone(),
            wanted: wanted.into(),
            found,
        }
    }
}

impl Writing<'_> {
    fn structure(
        &mut self,
        structure: &StructureType,
        value: &DynamicStructure,
        depth: usize,
    ) -> Result<(), DynamicError> {
        if depth > DEPTH_MAX {
            return Err(DynamicError::Endless(structure.name.clone()));
        }
        for (name, _) in &value.fields {
            if !structure.fields.iter().any(|field| field.name == *name) {
                let (type_name, field) = (structure.name.clone(), name.clone());
                return Err(DynamicError::UnknownField { type_name, field });
            }
        }
        match structure.kind {
            StructureKind::Union | StructureKind::UnionWithSubtypedValues => {
                return self.union(structure, value, depth);
            }
            StructureKind::WithOptionalFields => {
                let optional = structure.fields.iter().filter(|field| field.is_optional);
                let mask = optional.zip(0u32..32).fold(0u32, |mask, (field, bit)| {
                    mask | u32::from(value.field(&field.name).is_some()) << bit
                });
                mask.encode(self.out);
            }
            StructureKind::Plain | StructureKind::WithSubtypedValues => {}
        }
        let may_be_missing = structure.kind == StructureKind::WithOptionalFields;
        for field in &structure.fields {
            match value.field(&field.name) {
                Some(content) => self.field(Place { structure, field }, content, depth)?,
                None if may_be_missing && field.is_optional => {}
                None => self.default_field(structure, field, depth)?,
            }
        }
        Ok(())
    }

    fn union(
        &mut self,
        structure: &StructureType,
        value: &DynamicStructure,
        depth: usize,
    ) -> Result<(), DynamicError> {
        match value.fields.as_slice() {
            [] => 0u32.encode(self.out),
            [(name, content)] => {
                let chosen = structure.fields.iter().zip(1u32..).find(|(field, _)| field.name == *name);
                if let Some((field, switch)) = chosen {
                    switch.encode(self.out);
                    self.field(Place { structure, field }, content, depth)?;
                }
            }
            _ => return Err(DynamicError::NotOneField(structure.name.clone())),
        }
        Ok(())
    }

    fn field(&mut self, place: Place<'_>, value: &DynamicValue, depth: usize) -> Result<(), DynamicError> {
        let kind = self.types.field_kind(place.structure, place.field)?;
        if place.field.value_rank < 0 {
            return self.one(place, &kind, value, depth);
        }
        let is_matrix = place.field.value_rank > 1;
        match (value, &kind) {
            (DynamicValue::Array { values, dimensions }, Kind::Structure(_) | Kind::Enumeration(_)) => {
                self.shape(place, values.len(), dimensions, is_matrix, value)?;
                values.iter().try_for_each(|element| self.one(place, &kind, element, depth))
            }
            (DynamicValue::Variant(Variant::Array(array)), Kind::BuiltIn(kind))
                if array.values.element_type() == *kind =>
            {
                self.shape(place, array.values.len(), &array.dimensions, is_matrix, value)?;
                write_elements(&array.values, self.out);
                Ok(())
            }
            (DynamicValue::Variant(Variant::Array(array)), Kind::Enumeration(_))
                if array.values.element_type() == BuiltInType::Int32 =>
            {
                self.shape(place, array.values.len(), &array.dimensions, is_matrix, value)?;
                write_elements(&array.values, self.out);
                Ok(())
            }
            _ => Err(place.wrong(format!("an array of {}", kind_name(&kind)), value)),
        }
    }

    /// Writes the count of an array or the dimensions of a matrix.
    fn shape(
        &mut self,
        place: Place<'_>,
        len: usize,
        dimensions: &[u32],
        is_matrix: bool,
        value: &DynamicValue,
    ) -> Result<(), DynamicError> {
        if !is_matrix {
            encode_len(len, self.out);
            return Ok(());
        }
        let product = dimensions.iter().try_fold(1usize, |count, length| count.checked_mul(*length as usize));
        let matches = if dimensions.is_empty() { len == 0 } else { product == Some(len) };
        if !matches {
            return Err(place.wrong("a matrix whose dimensions match its length", value));
        }
        encode_len(dimensions.len(), self.out);
        dimensions.iter().for_each(|length| length.encode(self.out));
        Ok(())
    }

    fn one(
        &mut self,
        place: Place<'_>,
        kind: &Kind,
        value: &DynamicValue,
        depth: usize,
    ) -> Result<(), DynamicError> {
        match (kind, value) {
            (Kind::BuiltIn(BuiltInType::Variant), DynamicValue::Variant(value)) => value.encode(self.out),
            (Kind::BuiltIn(kind), DynamicValue::Variant(value))
                if value.built_in_type() == Some(*kind) && value.as_array().is_none() =>
            {
                write_scalar(value, self.out);
            }
            (Kind::BuiltIn(BuiltInType::ExtensionObject), DynamicValue::Structure(inner)) => {
                self.types.encode(inner)?.encode(self.out);
            }
            (Kind::Enumeration(_), DynamicValue::Enumeration { value, .. }) => value.encode(self.out),
            (Kind::Enumeration(_), DynamicValue::Variant(Variant::Int32(value))) => value.encode(self.out),
            (Kind::Structure(structure), DynamicValue::Structure(inner))
                if inner.data_type == structure.data_type =>
            {
                return self.structure(structure, inner, depth + 1);
            }
            _ => return Err(place.wrong(kind_name(kind), value)),
        }
        Ok(())
    }

    fn default_field(
        &mut self,
        structure: &StructureType,
        field: &FieldType,
        depth: usize,
    ) -> Result<(), DynamicError> {
        if field.value_rank >= 0 {
            encode_len(0, self.out);
            return Ok(());
        }
        match self.types.field_kind(structure, field)? {
            Kind::BuiltIn(kind) => default_built_in(kind, self.out),
            Kind::Enumeration(_) => 0i32.encode(self.out),
            Kind::Structure(inner) => {
                let empty = DynamicStructure {
                    data_type: inner.data_type.clone(),
                    type_name: Arc::clone(&inner.name),
                    fields: Vec::new(),
                };
                self.structure(&inner, &empty, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::BuiltIn(kind) => kind.to_string(),
        Kind::Enumeration(known) => format!("a value of {}", known.name),
        Kind::Structure(structure) => structure.name.to_string(),
    }
}

/// Writes the scalar of a Variant without its type byte.
fn write_scalar(value: &Variant, out: &mut Vec<u8>) {
    let at = out.len();
    value.encode(out);
    // The encoding of a scalar starts with the type byte.
    if at < out.len() {
        out.remove(at);
    }
}

/// Writes the elements of an array without their count.
fn write_elements(values: &ArrayValues, out: &mut Vec<u8>) {
    macro_rules! each {
        ($($name:ident)*) => {
            match values { $(ArrayValues::$name(values) => values.iter().for_each(|value| value.encode(out))),* }
        };
    }
    each!(Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString
        XmlElement NodeId ExpandedNodeId StatusCode QualifiedName LocalizedText ExtensionObject DataValue Variant
        DiagnosticInfo);
}

fn default_built_in(kind: BuiltInType, out: &mut Vec<u8>) {
    match kind {
        BuiltInType::Boolean | BuiltInType::SByte | BuiltInType::Byte => out.push(0),
        BuiltInType::Int16 | BuiltInType::UInt16 => 0u16.encode(out),
        BuiltInType::Int32 | BuiltInType::UInt32 | BuiltInType::Float | BuiltInType::StatusCode => {
            0u32.encode(out)
        }
        BuiltInType::Int64 | BuiltInType::UInt64 | BuiltInType::Double | BuiltInType::DateTime => {
            0u64.encode(out)
        }
        BuiltInType::String | BuiltInType::ByteString | BuiltInType::XmlElement => UaString::NULL.encode(out),
        BuiltInType::Guid => Guid::NULL.encode(out),
        BuiltInType::NodeId => NodeId::NULL.encode(out),
        BuiltInType::ExpandedNodeId => ExpandedNodeId::default().encode(out),
        BuiltInType::QualifiedName => QualifiedName::default().encode(out),
        BuiltInType::LocalizedText => LocalizedText::default().encode(out),
        BuiltInType::ExtensionObject => ExtensionObject::NULL.encode(out),
        BuiltInType::DataValue => DataValue::default().encode(out),
        BuiltInType::Variant => Variant::Empty.encode(out),
        BuiltInType::DiagnosticInfo => DiagnosticInfo::default().encode(out),
    }
}
