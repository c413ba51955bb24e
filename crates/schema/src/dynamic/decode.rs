//! Decodes dynamic values.

use super::registry::{FieldType, Kind, StructureType, TypeRegistry};
use super::{DynamicError, DynamicStructure, DynamicValue};
use crate::description::StructureKind;
use taktwerk_types::variant::Array;
use taktwerk_types::{
    ArrayValues, BuiltInType, ByteString, DataValue, Decode, DecodeError, DecodeLimits, Decoder,
    DiagnosticInfo, ExpandedNodeId, ExtensionObject, Guid, LocalizedText, NodeId, QualifiedName, StatusCode,
    UaString, UtcTime, Variant, XmlElement,
};

/// Maximum number of values per decoding. A structure takes about a hundred bytes of memory, even if its encoding takes
/// none.
const VALUES_MAX: usize = 1_000_000;

impl TypeRegistry {
    /// Decodes a structure from an ExtensionObject.
    ///
    /// # Errors
    /// The type is unknown, or the body does not decode as the type.
    pub fn decode(
        &self,
        object: &ExtensionObject,
        limits: DecodeLimits,
    ) -> Result<DynamicStructure, DynamicError> {
        let structure = self.structure_by_encoding(&object.type_id);
        let structure = structure.ok_or_else(|| DynamicError::UnknownType(object.type_id.clone()))?;
        let body = object.binary().ok_or_else(|| DynamicError::NoBinaryBody(object.type_id.clone()))?;
        Reading { types: self, left: VALUES_MAX }.structure(&structure, &mut Decoder::new(body, limits))
    }
}

struct Reading<'r> {
    types: &'r TypeRegistry,
    /// Number of values still allowed.
    left: usize,
}

impl Reading<'_> {
    fn count(&mut self) -> Result<(), DecodeError> {
        self.left = self.left.checked_sub(1).ok_or(DecodeError::Limit {
            what: "number of values",
            actual: VALUES_MAX + 1,
            limit: VALUES_MAX,
        })?;
        Ok(())
    }

    fn structure(
        &mut self,
        structure: &StructureType,
        decoder: &mut Decoder<'_>,
    ) -> Result<DynamicStructure, DynamicError> {
        let mut fields = Vec::new();
        match structure.kind {
            StructureKind::Union | StructureKind::UnionWithSubtypedValues => {
                // Part 6 §5.2.8: 0 is the null union.
                let switch = u32::decode(decoder)?;
                if let Some(at) = (switch as usize).checked_sub(1) {
                    let field = structure
                        .fields
                        .get(at)
                        .ok_or(DecodeError::Invalid("union: unknown switch value"))?;
                    fields.push((field.name.clone(), self.field(structure, field, decoder)?));
                }
            }
            StructureKind::WithOptionalFields => {
                let mut mask = u32::decode(decoder)?;
                for field in &structure.fields {
                    if field.is_optional {
                        let present = mask & 1 != 0;
                        mask >>= 1;
                        if !present {
                            continue;
                        }
                    }
                    fields.push((field.name.clone(), self.field(structure, field, decoder)?));
                }
                if mask != 0 {
                    // Bits beyond the fields announce data that cannot be skipped (Part 6 §5.2.7).
                    return Err(DecodeError::Invalid("encoding mask: unknown bits").into());
                }
            }
            StructureKind::Plain | StructureKind::WithSubtypedValues => {
                for field in &structure.fields {
                    fields.push((field.name.clone(), self.field(structure, field, decoder)?));
                }
            }
        }
        Ok(DynamicStructure {
            data_type: structure.data_type.clone(),
            type_name: structure.name.clone(),
            fields,
        })
    }

    fn field(
        &mut self,
        structure: &StructureType,
        field: &FieldType,
        decoder: &mut Decoder<'_>,
    ) -> Result<DynamicValue, DynamicError> {
        self.count()?;
        let kind = self.types.field_kind(structure, field)?;
        if field.value_rank < 0 {
            return self.one(&kind, decoder);
        }
        let dimensions = if field.value_rank > 1 { matrix_dimensions(decoder)? } else { Vec::new() };
        if let Kind::BuiltIn(kind) = kind {
            let values = if field.value_rank > 1 {
                built_in_elements(kind, element_count(&dimensions)?, decoder)?
            } else {
                built_in_array(kind, decoder)?
            };
            return Ok(DynamicValue::Variant(Variant::Array(Box::new(Array { values, dimensions }))));
        }
        // Enumerations take four bytes each; structures may take none, which the `count` limit covers.
        let element_len = if matches!(kind, Kind::Enumeration(_)) { 4 } else { 0 };
        let count = if field.value_rank > 1 {
            element_count(&dimensions)?
        } else {
            decoder.array_len(element_len)?.unwrap_or(0)
        };
        let mut values = Vec::new();
        for _ in 0..count {
            self.count()?;
            values.push(self.one(&kind, decoder)?);
        }
        Ok(DynamicValue::Array { values, dimensions })
    }

    fn one(&mut self, kind: &Kind, decoder: &mut Decoder<'_>) -> Result<DynamicValue, DynamicError> {
        Ok(match kind {
            Kind::BuiltIn(kind) => DynamicValue::Variant(built_in(*kind, decoder)?),
            Kind::Enumeration(known) => {
                let value = i32::decode(decoder)?;
                DynamicValue::Enumeration { value, name: known.name_of(i64::from(value)).cloned() }
            }
            Kind::Structure(structure) => {
                // The decoder's nesting function only returns codec errors, so ours is passed separately.
                let mut failure = None;
                let value = decoder.nested(|decoder| match self.structure(structure, decoder) {
                    Ok(value) => Ok(Some(value)),
                    Err(DynamicError::Decode(error)) => Err(error),
                    Err(error) => {
                        failure = Some(error);
                        Ok(None)
                    }
                })?;
                match (value, failure) {
                    (Some(value), _) => DynamicValue::Structure(value),
                    (None, Some(error)) => return Err(error),
                    (None, None) => return Err(DynamicError::UnknownType(structure.data_type.clone())),
                }
            }
        })
    }
}

/// Part 6 §5.2.5: a matrix in a structure is an Int32 array of lengths, then the elements without a count.
fn matrix_dimensions(decoder: &mut Decoder<'_>) -> Result<Vec<u32>, DecodeError> {
    let lengths: Vec<i32> = decoder.array()?;
    // Lengths that are not positive mean that there are no elements.
    Ok(lengths.into_iter().map(|length| u32::try_from(length).unwrap_or(0)).collect())
}

fn element_count(dimensions: &[u32]) -> Result<usize, DecodeError> {
    if dimensions.is_empty() {
        return Ok(0);
    }
    let product = dimensions.iter().try_fold(1usize, |count, length| count.checked_mul(*length as usize));
    product.ok_or(DecodeError::Invalid("matrix dimensions"))
}

fn elements<'a, T: Decode<'a>>(count: usize, decoder: &mut Decoder<'a>) -> Result<Vec<T>, DecodeError> {
    let limit = decoder.limits().array_len_max as usize;
    if count > limit {
        return Err(DecodeError::Limit { what: "array length", actual: count, limit });
    }
    let needed = count.saturating_mul(T::MIN_LEN);
    if needed > decoder.remaining() {
        return Err(DecodeError::Truncated { needed: needed - decoder.remaining() });
    }
    // Not `with_capacity(count)`: an element in memory can be much larger than its shortest encoding.
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(T::decode(decoder)?);
    }
    Ok(values)
}

macro_rules! built_in_readers {
    ($($name:ident $type:ty),* $(,)?) => {
        #[allow(clippy::useless_conversion)] // of the Variant among the types
        fn built_in(kind: BuiltInType, decoder: &mut Decoder<'_>) -> Result<Variant, DecodeError> {
            decoder.nested(|decoder| {
                Ok(match kind { $(BuiltInType::$name => Variant::from(<$type as Decode<'_>>::decode(decoder)?)),* })
            })
        }

        fn built_in_array(kind: BuiltInType, decoder: &mut Decoder<'_>) -> Result<ArrayValues, DecodeError> {
            decoder.nested(|decoder| {
                Ok(match kind { $(BuiltInType::$name => decoder.array::<$type>()?.into()),* })
            })
        }

        fn built_in_elements(
            kind: BuiltInType,
            count: usize,
            decoder: &mut Decoder<'_>,
        ) -> Result<ArrayValues, DecodeError> {
            decoder.nested(|decoder| {
                Ok(match kind { $(BuiltInType::$name => elements::<$type>(count, decoder)?.into()),* })
            })
        }
    };
}

built_in_readers! {
    Boolean bool, SByte i8, Byte u8, Int16 i16, UInt16 u16, Int32 i32, UInt32 u32, Int64 i64, UInt64 u64, Float f32,
    Double f64, String UaString, DateTime UtcTime, Guid Guid, ByteString ByteString, XmlElement XmlElement,
    NodeId NodeId, ExpandedNodeId ExpandedNodeId, StatusCode StatusCode, QualifiedName QualifiedName,
    LocalizedText LocalizedText, ExtensionObject ExtensionObject, DataValue DataValue, Variant Variant,
    DiagnosticInfo DiagnosticInfo,
}
