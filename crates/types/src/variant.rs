//! Variant (Part 6 §5.2.2.16): a value of any built-in type, scalar, array or matrix.

use crate::StatusCode;
use crate::codec::{Decode, DecodeError, Decoder, Encode, encode_len};
use crate::diagnostic_info::DiagnosticInfo;
use crate::extension_object::{ExtensionObject, Structure};
use crate::guid::Guid;
use crate::node_id::{ExpandedNodeId, NodeId};
use crate::string::{ByteString, UaString, XmlElement};
use crate::text::{LocalizedText, QualifiedName};
use crate::time::UtcTime;
use core::fmt;

pub mod data_value;
mod display;
mod word;

pub use data_value::{DataValue, TimestampsToReturn};

/// The built-in types with their numbers in the encoding (Part 6 §5.1.2, Table 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names say it
pub enum BuiltInType {
    Boolean = 1,
    SByte = 2,
    Byte = 3,
    Int16 = 4,
    UInt16 = 5,
    Int32 = 6,
    UInt32 = 7,
    Int64 = 8,
    UInt64 = 9,
    Float = 10,
    Double = 11,
    String = 12,
    DateTime = 13,
    Guid = 14,
    ByteString = 15,
    XmlElement = 16,
    NodeId = 17,
    ExpandedNodeId = 18,
    StatusCode = 19,
    QualifiedName = 20,
    LocalizedText = 21,
    ExtensionObject = 22,
    DataValue = 23,
    Variant = 24,
    DiagnosticInfo = 25,
}

impl BuiltInType {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 25] = [
        Self::Boolean,
        Self::SByte,
        Self::Byte,
        Self::Int16,
        Self::UInt16,
        Self::Int32,
        Self::UInt32,
        Self::Int64,
        Self::UInt64,
        Self::Float,
        Self::Double,
        Self::String,
        Self::DateTime,
        Self::Guid,
        Self::ByteString,
        Self::XmlElement,
        Self::NodeId,
        Self::ExpandedNodeId,
        Self::StatusCode,
        Self::QualifiedName,
        Self::LocalizedText,
        Self::ExtensionObject,
        Self::DataValue,
        Self::Variant,
        Self::DiagnosticInfo,
    ];

    /// From the number in a Variant's encoding byte; also the numeric id of the type's DataType node.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The number in a Variant's encoding byte, which is also the DataType node's numeric id
    /// (24 is BaseDataType).
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for BuiltInType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A value of any built-in type. It takes three words; larger contents are boxed.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs)] // each variant is the built-in type of its name
pub enum Variant {
    /// Null: no value.
    #[default]
    Empty,
    Boolean(bool),
    SByte(i8),
    Byte(u8),
    Int16(i16),
    UInt16(u16),
    Int32(i32),
    UInt32(u32),
    Int64(i64),
    UInt64(u64),
    Float(f32),
    Double(f64),
    String(UaString),
    DateTime(UtcTime),
    Guid(Guid),
    ByteString(ByteString),
    XmlElement(XmlElement),
    NodeId(Box<NodeId>),
    ExpandedNodeId(Box<ExpandedNodeId>),
    StatusCode(StatusCode),
    QualifiedName(Box<QualifiedName>),
    LocalizedText(Box<LocalizedText>),
    ExtensionObject(Box<ExtensionObject>),
    DataValue(Box<DataValue>),
    DiagnosticInfo(Box<DiagnosticInfo>),
    /// An array or a matrix.
    Array(Box<Array>),
}

/// An array, or a matrix in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The elements; in a matrix, the last dimension varies fastest.
    pub values: ArrayValues,
    /// The lengths of the dimensions; empty for a one-dimensional array.
    pub dimensions: Vec<u32>,
}

/// Runs a macro with the list of (element variant, Rust type).
macro_rules! for_element_types {
    ($macro:ident) => {
        $macro! {
            Boolean(bool), SByte(i8), Byte(u8), Int16(i16), UInt16(u16), Int32(i32), UInt32(u32), Int64(i64),
            UInt64(u64), Float(f32), Double(f64), String(UaString), DateTime(UtcTime), Guid(Guid),
            ByteString(ByteString), XmlElement(XmlElement), NodeId(NodeId), ExpandedNodeId(ExpandedNodeId),
            StatusCode(StatusCode), QualifiedName(QualifiedName), LocalizedText(LocalizedText),
            ExtensionObject(ExtensionObject), DataValue(DataValue), Variant(Variant),
            DiagnosticInfo(DiagnosticInfo)
        }
    };
}

macro_rules! array_values {
    ($($name:ident($type:ty)),*) => {
        /// The elements of an [`Array`], all of one built-in type.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)] // each variant is the built-in type of its name
        pub enum ArrayValues { $($name(Vec<$type>)),* }

        impl ArrayValues {
            /// The type of the elements.
            #[must_use]
            pub const fn element_type(&self) -> BuiltInType {
                match self { $(Self::$name(_) => BuiltInType::$name),* }
            }

            /// Number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                match self { $(Self::$name(values) => values.len()),* }
            }

            /// An empty array of a type.
            #[must_use]
            pub fn empty(element_type: BuiltInType) -> Self {
                match element_type { $(BuiltInType::$name => Self::$name(Vec::new())),* }
            }

            /// A copy of the elements at `indexes`; indexes beyond the end are ignored.
            #[must_use]
            pub(crate) fn select(&self, indexes: impl Iterator<Item = usize>) -> Self {
                match self {
                    $(Self::$name(values) =>
                        Self::$name(indexes.filter_map(|index| values.get(index).cloned()).collect())),*
                }
            }

            /// Overwrites the elements at `indexes` with `source`, in order. False if the types or counts differ.
            pub(crate) fn assign(&mut self, indexes: impl Iterator<Item = usize>, source: &Self) -> bool {
                match (self, source) {
                    $((Self::$name(values), Self::$name(source)) => {
                        let mut source = source.iter();
                        for index in indexes {
                            match (values.get_mut(index), source.next()) {
                                (Some(to), Some(from)) => to.clone_from(from),
                                _ => return false,
                            }
                        }
                        source.next().is_none()
                    })*
                    _ => false,
                }
            }

            fn encode_elements(&self, out: &mut Vec<u8>) {
                match self { $(Self::$name(values) => values.iter().for_each(|value| value.encode(out))),* }
            }

            fn decode_array<'a>(
                element_type: BuiltInType,
                decoder: &mut Decoder<'a>,
            ) -> Result<Self, DecodeError> {
                Ok(match element_type { $(BuiltInType::$name => Self::$name(decoder.array()?)),* })
            }
        }

        $(impl From<Vec<$type>> for ArrayValues {
            fn from(values: Vec<$type>) -> Self {
                Self::$name(values)
            }
        }
        impl From<Vec<$type>> for Variant {
            /// A one-dimensional array.
            fn from(values: Vec<$type>) -> Self {
                Self::Array(Box::new(Array { values: values.into(), dimensions: Vec::new() }))
            }
        }
        impl TryFrom<Variant> for Vec<$type> {
            type Error = VariantTypeError;
            fn try_from(value: Variant) -> Result<Self, VariantTypeError> {
                match value {
                    Variant::Array(array) => match array.values {
                        ArrayValues::$name(values) => Ok(values),
                        other => Err(VariantTypeError {
                            wanted: concat!("array of ", stringify!($name)),
                            found: format!("array of {}", other.element_type()),
                        }),
                    },
                    other => Err(VariantTypeError {
                        wanted: concat!("array of ", stringify!($name)),
                        found: other.type_name(),
                    }),
                }
            }
        })*
    };
}
for_element_types!(array_values);
#[cfg(feature = "json")]
pub(crate) use for_element_types;

impl ArrayValues {
    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The Variant has another type than requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the value is {found}, not {wanted}")]
pub struct VariantTypeError {
    wanted: &'static str,
    found: String,
}

macro_rules! scalars {
    ($($name:ident($type:ty) $wrap:expr, $unwrap:expr;)*) => {$(
        impl From<$type> for Variant {
            fn from(value: $type) -> Self {
                Self::$name($wrap(value))
            }
        }
        impl TryFrom<Variant> for $type {
            type Error = VariantTypeError;
            fn try_from(value: Variant) -> Result<Self, VariantTypeError> {
                match value {
                    Variant::$name(value) => Ok($unwrap(value)),
                    other => Err(VariantTypeError { wanted: stringify!($name), found: other.type_name() }),
                }
            }
        }
    )*};
}

#[inline]
fn same<T>(value: T) -> T {
    value
}
#[inline]
#[allow(clippy::boxed_local)] // taking it out of its box is what this is for
fn unbox<T>(value: Box<T>) -> T {
    *value
}

scalars! {
    Boolean(bool) same, same;
    SByte(i8) same, same;
    Byte(u8) same, same;
    Int16(i16) same, same;
    UInt16(u16) same, same;
    Int32(i32) same, same;
    UInt32(u32) same, same;
    Int64(i64) same, same;
    UInt64(u64) same, same;
    Float(f32) same, same;
    Double(f64) same, same;
    String(UaString) same, same;
    DateTime(UtcTime) same, same;
    Guid(Guid) same, same;
    ByteString(ByteString) same, same;
    XmlElement(XmlElement) same, same;
    NodeId(NodeId) Box::new, unbox;
    ExpandedNodeId(ExpandedNodeId) Box::new, unbox;
    StatusCode(StatusCode) same, same;
    QualifiedName(QualifiedName) Box::new, unbox;
    LocalizedText(LocalizedText) Box::new, unbox;
    ExtensionObject(ExtensionObject) Box::new, unbox;
    DataValue(DataValue) Box::new, unbox;
    DiagnosticInfo(DiagnosticInfo) Box::new, unbox;
}

impl From<&str> for Variant {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Variant {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl TryFrom<Variant> for String {
    type Error = VariantTypeError;
    fn try_from(value: Variant) -> Result<Self, VariantTypeError> {
        UaString::try_from(value).map(|text| text.as_str().to_owned())
    }
}

impl Variant {
    /// A structure of the schema as a Variant.
    #[must_use]
    pub fn from_structure<T: Structure>(value: &T) -> Self {
        ExtensionObject::new(value).into()
    }

    /// An array of structures of the schema as a Variant.
    #[must_use]
    pub fn from_structures<'a, T: Structure + 'a>(values: impl IntoIterator<Item = &'a T>) -> Self {
        values.into_iter().map(ExtensionObject::new).collect::<Vec<_>>().into()
    }

    /// A matrix in row-major order.
    ///
    /// # Errors
    /// Bad_InvalidArgument if the product of `dimensions` is not the number of elements.
    pub fn matrix(values: impl Into<ArrayValues>, dimensions: Vec<u32>) -> Result<Self, StatusCode> {
        let values = values.into();
        if element_count(&dimensions) != Some(values.len()) {
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        }
        Ok(Self::Array(Box::new(Array { values, dimensions })))
    }

    /// Whether this is null.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// The built-in type of the scalar or of the elements; `None` for null.
    #[must_use]
    pub fn built_in_type(&self) -> Option<BuiltInType> {
        Some(match self {
            Self::Empty => return None,
            Self::Boolean(_) => BuiltInType::Boolean,
            Self::SByte(_) => BuiltInType::SByte,
            Self::Byte(_) => BuiltInType::Byte,
            Self::Int16(_) => BuiltInType::Int16,
            Self::UInt16(_) => BuiltInType::UInt16,
            Self::Int32(_) => BuiltInType::Int32,
            Self::UInt32(_) => BuiltInType::UInt32,
            Self::Int64(_) => BuiltInType::Int64,
            Self::UInt64(_) => BuiltInType::UInt64,
            Self::Float(_) => BuiltInType::Float,
            Self::Double(_) => BuiltInType::Double,
            Self::String(_) => BuiltInType::String,
            Self::DateTime(_) => BuiltInType::DateTime,
            Self::Guid(_) => BuiltInType::Guid,
            Self::ByteString(_) => BuiltInType::ByteString,
            Self::XmlElement(_) => BuiltInType::XmlElement,
            Self::NodeId(_) => BuiltInType::NodeId,
            Self::ExpandedNodeId(_) => BuiltInType::ExpandedNodeId,
            Self::StatusCode(_) => BuiltInType::StatusCode,
            Self::QualifiedName(_) => BuiltInType::QualifiedName,
            Self::LocalizedText(_) => BuiltInType::LocalizedText,
            Self::ExtensionObject(_) => BuiltInType::ExtensionObject,
            Self::DataValue(_) => BuiltInType::DataValue,
            Self::DiagnosticInfo(_) => BuiltInType::DiagnosticInfo,
            Self::Array(array) => array.values.element_type(),
        })
    }

    /// The array, if this is one.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The value as a number, for deadbands and plots; `None` if it is not a numeric scalar.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        Some(match self {
            Self::SByte(value) => f64::from(*value),
            Self::Byte(value) => f64::from(*value),
            Self::Int16(value) => f64::from(*value),
            Self::UInt16(value) => f64::from(*value),
            Self::Int32(value) => f64::from(*value),
            Self::UInt32(value) => f64::from(*value),
            Self::Int64(value) => *value as f64,
            Self::UInt64(value) => *value as f64,
            Self::Float(value) => f64::from(*value),
            Self::Double(value) => *value,
            _ => return None,
        })
    }

    /// The type of the value, for messages: `Double`, `array of Int32`, `null`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Self::Empty => "null".to_owned(),
            Self::Array(array) => format!("array of {}", array.values.element_type()),
            other => other.built_in_type().map_or_else(String::new, |kind| kind.to_string()),
        }
    }

    /// Equality for change detection: like `==`, but a NaN equals the same NaN.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(one), Self::Float(two)) => one.to_bits() == two.to_bits(),
            (Self::Double(one), Self::Double(two)) => one.to_bits() == two.to_bits(),
            (Self::Array(one), Self::Array(two)) if one.dimensions == two.dimensions => {
                match (&one.values, &two.values) {
                    (ArrayValues::Float(one), ArrayValues::Float(two)) => {
                        one.iter().map(|value| value.to_bits()).eq(two.iter().map(|value| value.to_bits()))
                    }
                    (ArrayValues::Double(one), ArrayValues::Double(two)) => {
                        one.iter().map(|value| value.to_bits()).eq(two.iter().map(|value| value.to_bits()))
                    }
                    (ArrayValues::Variant(one), ArrayValues::Variant(two)) => {
                        one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.same_as(two))
                    }
                    (ArrayValues::DataValue(one), ArrayValues::DataValue(two)) => {
                        one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.same_as(two))
                    }
                    (one, two) => one == two,
                }
            }
            (Self::DataValue(one), Self::DataValue(two)) => one.same_as(two),
            (one, two) => one == two,
        }
    }
}

/// The product of the dimensions; `None` if it overflows.
pub(crate) fn element_count(dimensions: &[u32]) -> Option<usize> {
    dimensions.iter().try_fold(1usize, |count, length| count.checked_mul(*length as usize))
}

/// Bit of the encoding byte: the value is an array.
pub const ARRAY_BIT: u8 = 0x80;
/// Bit of the encoding byte: array dimensions follow the elements.
pub const DIMENSIONS_BIT: u8 = 0x40;

impl Encode for Variant {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        let Some(kind) = self.built_in_type() else { return out.push(0) };
        if let Self::Array(array) = self {
            return array.encode_variant(out);
        }
        out.push(kind.number());
        match self {
            Self::Boolean(value) => value.encode(out),
            Self::SByte(value) => value.encode(out),
            Self::Byte(value) => value.encode(out),
            Self::Int16(value) => value.encode(out),
            Self::UInt16(value) => value.encode(out),
            Self::Int32(value) => value.encode(out),
            Self::UInt32(value) => value.encode(out),
            Self::Int64(value) => value.encode(out),
            Self::UInt64(value) => value.encode(out),
            Self::Float(value) => value.encode(out),
            Self::Double(value) => value.encode(out),
            Self::String(value) => value.encode(out),
            Self::DateTime(value) => value.encode(out),
            Self::Guid(value) => value.encode(out),
            Self::ByteString(value) => value.encode(out),
            Self::XmlElement(value) => value.encode(out),
            Self::NodeId(value) => value.encode(out),
            Self::ExpandedNodeId(value) => value.encode(out),
            Self::StatusCode(value) => value.encode(out),
            Self::QualifiedName(value) => value.encode(out),
            Self::LocalizedText(value) => value.encode(out),
            Self::ExtensionObject(value) => value.encode(out),
            Self::DataValue(value) => value.encode(out),
            Self::DiagnosticInfo(value) => value.encode(out),
            Self::Empty | Self::Array(_) => {}
        }
    }
}

impl Array {
    fn encode_variant(&self, out: &mut Vec<u8>) {
        let dimensions = if self.dimensions.len() > 1 { DIMENSIONS_BIT } else { 0 };
        out.push(self.values.element_type().number() | ARRAY_BIT | dimensions);
        encode_len(self.values.len(), out);
        self.values.encode_elements(out);
        if dimensions != 0 {
            encode_len(self.dimensions.len(), out);
            self.dimensions.iter().for_each(|length| length.encode(out));
        }
    }

    /// The lengths of the dimensions, also for a one-dimensional array.
    #[must_use]
    pub fn shape(&self) -> Vec<u32> {
        if self.dimensions.is_empty() {
            vec![u32::try_from(self.values.len()).unwrap_or(u32::MAX)]
        } else {
            self.dimensions.clone()
        }
    }
}

impl<'a> Decode<'a> for Variant {
    const MIN_LEN: usize = 1;
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let first = decoder.byte()?;
        if first == 0 {
            return Ok(Self::Empty);
        }
        // Part 6 §5.2.2.16: 26..31 are reserved and decode as ByteString; no encoder may write them.
        let kind = BuiltInType::from_number(first & 0x3f).ok_or(DecodeError::Invalid("Variant type"))?;
        if first & ARRAY_BIT != 0 {
            return decoder.nested(|decoder| decode_array(kind, first & DIMENSIONS_BIT != 0, decoder));
        }
        if first & DIMENSIONS_BIT != 0 {
            return Err(DecodeError::Invalid("Variant: dimensions without an array"));
        }
        // Recursive types have their own branch: without optimization, the general function takes ten kilobytes of
        // stack per level.
        match kind {
            BuiltInType::DataValue => decoder.nested(Box::decode).map(Self::DataValue),
            BuiltInType::DiagnosticInfo => decoder.nested(Box::decode).map(Self::DiagnosticInfo),
            BuiltInType::Variant => Err(DecodeError::Invalid("Variant: it directly contains a Variant")),
            _ => Self::decode_scalar(kind, decoder),
        }
    }
}

impl Variant {
    #[inline]
    fn decode_scalar(kind: BuiltInType, decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match kind {
            BuiltInType::Boolean => Self::Boolean(bool::decode(decoder)?),
            BuiltInType::SByte => Self::SByte(i8::decode(decoder)?),
            BuiltInType::Byte => Self::Byte(u8::decode(decoder)?),
            BuiltInType::Int16 => Self::Int16(i16::decode(decoder)?),
            BuiltInType::UInt16 => Self::UInt16(u16::decode(decoder)?),
            BuiltInType::Int32 => Self::Int32(i32::decode(decoder)?),
            BuiltInType::UInt32 => Self::UInt32(u32::decode(decoder)?),
            BuiltInType::Int64 => Self::Int64(i64::decode(decoder)?),
            BuiltInType::UInt64 => Self::UInt64(u64::decode(decoder)?),
            BuiltInType::Float => Self::Float(f32::decode(decoder)?),
            BuiltInType::Double => Self::Double(f64::decode(decoder)?),
            BuiltInType::String => Self::String(UaString::decode(decoder)?),
            BuiltInType::DateTime => Self::DateTime(UtcTime::decode(decoder)?),
            BuiltInType::Guid => Self::Guid(Guid::decode(decoder)?),
            BuiltInType::ByteString => Self::ByteString(ByteString::decode(decoder)?),
            BuiltInType::XmlElement => Self::XmlElement(XmlElement::decode(decoder)?),
            BuiltInType::NodeId => Self::NodeId(Box::decode(decoder)?),
            BuiltInType::ExpandedNodeId => Self::ExpandedNodeId(Box::decode(decoder)?),
            BuiltInType::StatusCode => Self::StatusCode(StatusCode::decode(decoder)?),
            BuiltInType::QualifiedName => Self::QualifiedName(Box::decode(decoder)?),
            BuiltInType::LocalizedText => Self::LocalizedText(Box::decode(decoder)?),
            BuiltInType::ExtensionObject => Self::ExtensionObject(Box::decode(decoder)?),
            BuiltInType::DataValue | BuiltInType::Variant | BuiltInType::DiagnosticInfo => {
                return Err(DecodeError::Invalid("Variant: its content is not a scalar"));
            }
        })
    }
}

fn decode_array<'a>(
    kind: BuiltInType,
    has_dimensions: bool,
    decoder: &mut Decoder<'a>,
) -> Result<Variant, DecodeError> {
    decoder.allocate(size_of::<Array>())?;
    let values = match kind {
        BuiltInType::Variant => ArrayValues::Variant(decoder.array()?),
        BuiltInType::DataValue => ArrayValues::DataValue(decoder.array()?),
        BuiltInType::DiagnosticInfo => ArrayValues::DiagnosticInfo(decoder.array()?),
        _ => ArrayValues::decode_array(kind, decoder)?,
    };
    let dimensions = if has_dimensions { decode_dimensions(&values, decoder)? } else { Vec::new() };
    Ok(Variant::Array(Box::new(Array { values, dimensions })))
}

fn decode_dimensions(values: &ArrayValues, decoder: &mut Decoder<'_>) -> Result<Vec<u32>, DecodeError> {
    let lengths: Vec<i32> = decoder.array()?;
    // Each dimension counts as a level of nesting.
    let limit = usize::from(decoder.limits().depth_max);
    if lengths.len() > limit {
        return Err(DecodeError::Limit { what: "array dimensions", actual: lengths.len(), limit });
    }
    let mut dimensions: Vec<u32> = lengths
        .into_iter()
        .map(|length| u32::try_from(length).map_err(|_| DecodeError::Invalid("array dimension")))
        .collect::<Result<_, _>>()?;
    if element_count(&dimensions) != Some(values.len()) && !dimensions.is_empty() {
        return Err(DecodeError::Invalid("array dimensions: their product is not the array's length"));
    }
    if dimensions.len() == 1 {
        dimensions.clear();
    }
    Ok(dimensions)
}

#[cfg(test)]
mod tests;
