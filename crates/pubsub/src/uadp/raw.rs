//! RawData field encoding (Part 14 §7.2.4.5.11): values without types, padded so that every field has a fixed offset.
//!
//! A raw field is the plain binary encoding with padding: Strings, ByteStrings and arrays are padded with zeros to
//! their maximum size, missing optional fields are zeros, and unions have the length of their longest field. A
//! [`RawType`] converts between both forms; values are created from the plain form.

use super::fields::ReceivedField;
use taktwerk_schema::DataSetMetaDataType;
use taktwerk_types::codec::{Decode, encode_len};
use taktwerk_types::{
    ArrayValues, BuiltInType, DataValue, DecodeError, DecodeLimits, Decoder, Encode, ExtensionObject, NodeId,
    StatusCode, Variant,
};

mod compile;
mod convert;

pub use compile::RawLayoutError;

/// The type of a raw field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawType {
    /// A built-in type of fixed length.
    Scalar(BuiltInType),
    /// A String or ByteString with its maximum length in bytes; 0: not padded.
    Text { kind: BuiltInType, max: usize },
    /// An array or matrix with the maximum lengths of its dimensions; not padded if one of them is 0.
    Array { element: Box<RawType>, dimensions: Vec<u32> },
    /// A structure or union.
    Structure(std::sync::Arc<RawStructure>),
}

/// A structure in raw data.
#[derive(Debug, PartialEq)]
pub(crate) struct RawStructure {
    encoding: NodeId,
    shape: RawShape,
    fields: Vec<RawField>,
    fixed_len: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RawShape {
    Plain,
    Optional,
    Union,
}

#[derive(Debug, PartialEq)]
struct RawField {
    kind: RawType,
    is_optional: bool,
}

/// The length of a built-in type, if it is fixed.
pub(crate) const fn scalar_len(kind: BuiltInType) -> Option<usize> {
    Some(match kind {
        BuiltInType::Boolean | BuiltInType::SByte | BuiltInType::Byte => 1,
        BuiltInType::Int16 | BuiltInType::UInt16 => 2,
        BuiltInType::Int32 | BuiltInType::UInt32 | BuiltInType::Float | BuiltInType::StatusCode => 4,
        BuiltInType::Int64 | BuiltInType::UInt64 | BuiltInType::Double | BuiltInType::DateTime => 8,
        BuiltInType::Guid => 16,
        _ => return None,
    })
}

impl RawType {
    /// The length, if it is fixed.
    fn fixed_len(&self) -> Option<usize> {
        match self {
            Self::Scalar(kind) => scalar_len(*kind),
            Self::Text { max, .. } => (*max > 0).then(|| 4usize.saturating_add(*max)),
            Self::Array { element, dimensions } => {
                let count = element_count(dimensions)?;
                let header = if dimensions.len() > 1 { 4 + 4 * dimensions.len() } else { 4 };
                element.fixed_len()?.checked_mul(count)?.checked_add(header)
            }
            Self::Structure(structure) => structure.fixed_len,
        }
    }

    fn built_in_type(&self) -> BuiltInType {
        match self {
            Self::Scalar(kind) | Self::Text { kind, .. } => *kind,
            Self::Array { element, .. } => element.built_in_type(),
            Self::Structure(_) => BuiltInType::ExtensionObject,
        }
    }
}

/// Maximum number of elements; `None` if a dimension is unlimited.
fn element_count(dimensions: &[u32]) -> Option<usize> {
    if dimensions.contains(&0) {
        return None;
    }
    dimensions.iter().try_fold(1usize, |count, length| count.checked_mul(*length as usize))
}

/// The raw layout of a DataSet.
#[derive(Debug, Clone, PartialEq)]
pub struct RawLayout {
    fields: Vec<RawType>,
    /// The built-in types of scalar fields, 0 for others. One byte each, because memory access dominates the cost of
    /// patching thousands of fields.
    scalars: Vec<u8>,
    /// The common type of all fields, if they are scalars of one type.
    alike: Option<BuiltInType>,
}

impl RawLayout {
    /// From the metadata of the DataSet.
    ///
    /// # Errors
    /// [`RawLayoutError`]: a field has a type that raw data does not allow.
    pub fn new(meta_data: &DataSetMetaDataType) -> Result<Self, RawLayoutError> {
        let fields = compile::compile(meta_data)?;
        let scalar = |field: &RawType| match field {
            RawType::Scalar(kind) => kind.number(),
            _ => 0,
        };
        let scalars = fields.iter().map(scalar).collect();
        let alike = match fields.first() {
            Some(RawType::Scalar(kind)) if fields.iter().all(|field| *field == RawType::Scalar(*kind)) => {
                Some(*kind)
            }
            _ => None,
        };
        Ok(Self { fields, scalars, alike })
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Length of all fields, if it is fixed.
    #[must_use]
    pub fn fixed_len(&self) -> Option<usize> {
        self.fields.iter().try_fold(0usize, |sum, field| sum.checked_add(field.fixed_len()?))
    }

    /// Length of one field, if it is fixed.
    #[must_use]
    pub fn field_len(&self, index: usize) -> Option<usize> {
        self.fields.get(index)?.fixed_len()
    }

    /// Appends a field. A value that does not fit (Bad, another type, too long) becomes zeros, which the result
    /// reports.
    ///
    /// `scratch` is a reused buffer.
    pub fn encode_field(
        &self,
        index: usize,
        field: &DataValue,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), StatusCode> {
        let Some(kind) = self.fields.get(index) else { return Err(StatusCode::BAD_INDEX_RANGE_NO_DATA) };
        let start = out.len();
        let result = match (&field.value, field.status()) {
            (_, status) if status.is_bad() => Err(status),
            (None | Some(Variant::Empty), _) => Err(StatusCode::BAD_NO_DATA),
            (Some(value), _) => encode_value(kind, value, scratch, out),
        };
        if result.is_err() {
            out.truncate(start);
            convert::zeros(kind, out);
        }
        result
    }

    /// Number of consecutive scalars of a type from `index` on.
    pub(crate) fn run(&self, index: usize, kind: BuiltInType) -> usize {
        let rest = self.scalars.get(index..).unwrap_or_default();
        if self.alike == Some(kind) {
            return rest.len();
        }
        rest.iter().take_while(|scalar| **scalar == kind.number()).count()
    }

    /// Overwrites a number, if the field is a good number of the right type.
    pub(crate) fn patch_scalar(&self, index: usize, field: &DataValue, slot: &mut [u8]) -> bool {
        let (Some(kind @ 1..), Some(value)) = (self.scalars.get(index), &field.value) else { return false };
        // A number of another type with the same length is overwritten by the caller after the mismatch is reported.
        !field.status().is_bad()
            && super::fields::patch_scalar(value, slot).is_some_and(|patched| patched.number() == *kind)
    }

    /// Reads all fields.
    pub(crate) fn decode(
        &self,
        decoder: &mut Decoder<'_>,
        fields: &mut Vec<ReceivedField>,
    ) -> Result<(), DecodeError> {
        for (index, kind) in self.fields.iter().enumerate() {
            let value = Some(decode_value(kind, decoder)?);
            let index = u16::try_from(index).map_err(|_| DecodeError::Invalid("DataSet: too many fields"))?;
            fields.push(ReceivedField { index, value: DataValue { value, ..DataValue::default() } });
        }
        Ok(())
    }
}

/// Appends the value in raw form.
fn encode_value(
    kind: &RawType,
    value: &Variant,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), StatusCode> {
    if value.built_in_type() != Some(kind.built_in_type()) {
        return Err(StatusCode::BAD_TYPE_MISMATCH);
    }
    let is_array = matches!(value, Variant::Array(_));
    if is_array != matches!(kind, RawType::Array { .. }) {
        return Err(StatusCode::BAD_TYPE_MISMATCH);
    }
    scratch.clear();
    if let RawType::Scalar(_) = kind {
        // The encoding of a scalar Variant is its type and the plain value.
        value.encode(scratch);
        out.extend_from_slice(scratch.get(1..).unwrap_or_default());
        return Ok(());
    }
    plain(value, scratch)?;
    let mut decoder = Decoder::new(scratch, DecodeLimits::DEFAULT);
    convert::pad(kind, &mut decoder, out).map_err(|error| error.status())?;
    Ok(())
}

/// Appends the encoding of a structure's field (Part 6 §5.2.5, §5.2.6).
fn plain(value: &Variant, out: &mut Vec<u8>) -> Result<(), StatusCode> {
    let body = |object: &ExtensionObject, out: &mut Vec<u8>| match object.binary() {
        Some(body) => {
            out.extend_from_slice(body);
            Ok(())
        }
        None => Err(StatusCode::BAD_ENCODING_ERROR),
    };
    match value {
        Variant::ExtensionObject(object) => body(object, out),
        Variant::Array(array) => {
            if array.dimensions.len() > 1 {
                array.dimensions.as_slice().encode(out);
            } else {
                encode_len(array.values.len(), out);
            }
            if let ArrayValues::ExtensionObject(objects) = &array.values {
                return objects.iter().try_for_each(|object| body(object, out));
            }
            // The elements are after type and length, before the dimensions.
            let start = out.len();
            value.encode(out);
            let tail = if array.dimensions.len() > 1 { 4 + 4 * array.dimensions.len() } else { 0 };
            out.truncate(out.len().saturating_sub(tail));
            out.drain(start..start + 5);
            Ok(())
        }
        scalar => {
            let start = out.len();
            scalar.encode(out);
            out.remove(start);
            Ok(())
        }
    }
}

fn decode_value(kind: &RawType, decoder: &mut Decoder<'_>) -> Result<Variant, DecodeError> {
    match kind {
        RawType::Scalar(kind) => decode_scalar(*kind, decoder),
        RawType::Structure(structure) => {
            let mut body = Vec::new();
            convert::unpad(&RawType::Structure(structure.clone()), decoder, &mut body)?;
            Ok(ExtensionObject::from_binary(structure.encoding.clone(), body).into())
        }
        RawType::Text { kind: text, .. } => {
            let mut bytes = vec![text.number()];
            convert::unpad(kind, decoder, &mut bytes)?;
            Variant::decode_from(&bytes, decoder.limits())
        }
        RawType::Array { element, dimensions } => convert::array(kind, element, dimensions, decoder),
    }
}

fn decode_scalar(kind: BuiltInType, decoder: &mut Decoder<'_>) -> Result<Variant, DecodeError> {
    let len = scalar_len(kind).ok_or(DecodeError::Invalid("raw scalar"))?;
    let mut bytes = [0; 17];
    bytes[0] = kind.number();
    let source = decoder.take(len)?;
    bytes[1..=len].copy_from_slice(source);
    Variant::decode_from(&bytes[..=len], DecodeLimits::DEFAULT)
}

#[cfg(test)]
mod tests;
