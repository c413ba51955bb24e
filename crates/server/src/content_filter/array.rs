//! Arrays in filters (Part 4 §7.7.3): an array of length 1 is also its element, and arrays are converted by element.

use std::borrow::Cow;
use taktwerk_types::{Array, ArrayValues, BuiltInType as T, Variant};

/// The element of an array of length 1; every other value is unchanged.
pub(super) fn single(value: &Variant) -> Cow<'_, Variant> {
    match value.as_array() {
        Some(array) if array.values.len() == 1 => element(array, 0).map_or(Cow::Borrowed(value), Cow::Owned),
        _ => Cow::Borrowed(value),
    }
}

/// An element as a value.
fn element(array: &Array, index: usize) -> Option<Variant> {
    macro_rules! of {
        ($($name:ident)*) => {
            match &array.values {
                $(ArrayValues::$name(values) => values.get(index).cloned().map(Variant::from),)*
            }
        };
    }
    of!(
        Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString
        XmlElement NodeId ExpandedNodeId StatusCode QualifiedName LocalizedText ExtensionObject DataValue Variant
        DiagnosticInfo
    )
}

/// Whether two arrays have the same shape, and their elements are equal in pairs.
pub(super) fn all(one: &Array, other: &Array, equal: impl Fn(&Variant, &Variant) -> bool) -> bool {
    let pair = |index| Some((element(one, index)?, element(other, index)?));
    one.shape() == other.shape()
        && (0..one.values.len()).all(|index| pair(index).is_some_and(|(one, other)| equal(&one, &other)))
}

/// Converts each element; `None` if one of them has no value of the type.
pub(super) fn convert(array: &Array, to: T, one: impl Fn(&Variant) -> Option<Variant>) -> Option<Variant> {
    let elements = (0..array.values.len()).map(|index| one(&element(array, index)?));
    macro_rules! of {
        ($($name:ident)*) => {
            match to {
                $(T::$name => ArrayValues::$name(
                    elements.map(|value| value?.try_into().ok()).collect::<Option<Vec<_>>>()?,
                ),)*
                _ => return None,
            }
        };
    }
    let values = of!(
        Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString NodeId
        ExpandedNodeId StatusCode QualifiedName LocalizedText
    );
    Some(Variant::Array(Box::new(Array { values, dimensions: array.dimensions.clone() })))
}
