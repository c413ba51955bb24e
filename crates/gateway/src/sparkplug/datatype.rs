//! The data types of Sparkplug B and their OPC UA counterparts.

use super::payload::Value;
use crate::value::Kind;
use taktwerk_types::{ArrayValues, BuiltInType, ByteString, UtcTime, Variant};

/// Boolean
pub const BOOLEAN: u32 = 11;
/// An instance of a template.
pub const TEMPLATE: u32 = 19;

/// The type of a variable; `None` for unsupported types: data sets, files, templates.
#[must_use]
pub fn kind(datatype: u32) -> Option<Kind> {
    use BuiltInType as B;
    let element = match datatype {
        1 | 22 => B::SByte,
        2 | 23 => B::Int16,
        3 | 24 => B::Int32,
        4 | 25 => B::Int64,
        5 | 26 => B::Byte,
        6 | 27 => B::UInt16,
        7 | 28 => B::UInt32,
        8 | 29 => B::UInt64,
        9 | 30 => B::Float,
        10 | 31 => B::Double,
        BOOLEAN => B::Boolean,
        12 | 14 | 15 => B::String,
        13 => B::DateTime,
        17 => B::ByteString,
        _ => return None,
    };
    Some(Kind { element, is_array: datatype >= 22 })
}

/// Decodes a value; `None` if it is encoded as another type.
#[must_use]
pub fn decode(datatype: u32, value: &Value) -> Option<Variant> {
    Some(match (datatype, value) {
        (1, Value::Int(bits)) => Variant::from(*bits as i8),
        (2, Value::Int(bits)) => Variant::from(*bits as i16),
        (3, Value::Int(bits)) => Variant::from(*bits as i32),
        (4, Value::Long(bits)) => Variant::from(*bits as i64),
        (5, Value::Int(number)) => Variant::from(u8::try_from(*number).ok()?),
        (6, Value::Int(number)) => Variant::from(u16::try_from(*number).ok()?),
        (7, Value::Int(number)) => Variant::from(*number),
        // Some implementations encode UInt32 as a long.
        (7, Value::Long(number)) => Variant::from(u32::try_from(*number).ok()?),
        (8, Value::Long(number)) => Variant::from(*number),
        (9, Value::Float(number)) => Variant::from(*number),
        (10, Value::Double(number)) => Variant::from(*number),
        (BOOLEAN, Value::Boolean(flag)) => Variant::from(*flag),
        (12 | 14 | 15, Value::Text(text)) => Variant::from(text.as_str()),
        (13, Value::Long(millis)) => Variant::from(time(*millis)?),
        (17, Value::Bytes(bytes)) => Variant::from(ByteString::from(bytes.as_slice())),
        (22..=31, Value::Bytes(bytes)) => array(datatype, bytes)?,
        _ => return None,
    })
}

/// Arrays are packed, in little-endian order.
fn array(datatype: u32, bytes: &[u8]) -> Option<Variant> {
    macro_rules! packed {
        ($type:ty) => {{
            let (elements, rest) = bytes.as_chunks::<{ size_of::<$type>() }>();
            if !rest.is_empty() {
                return None;
            }
            Variant::from(elements.iter().map(|bytes| <$type>::from_le_bytes(*bytes)).collect::<Vec<_>>())
        }};
    }
    Some(match datatype {
        22 => packed!(i8),
        23 => packed!(i16),
        24 => packed!(i32),
        25 => packed!(i64),
        26 => packed!(u8),
        27 => packed!(u16),
        28 => packed!(u32),
        29 => packed!(u64),
        30 => packed!(f32),
        31 => packed!(f64),
        _ => return None,
    })
}

/// Encodes a written value as a type.
#[must_use]
pub fn encode(datatype: u32, value: &Variant) -> Option<Value> {
    Some(match (datatype, value) {
        (1, Variant::SByte(number)) => Value::Int(*number as u32),
        (2, Variant::Int16(number)) => Value::Int(*number as u32),
        (3, Variant::Int32(number)) => Value::Int(*number as u32),
        (4, Variant::Int64(number)) => Value::Long(*number as u64),
        (5, Variant::Byte(number)) => Value::Int(u32::from(*number)),
        (6, Variant::UInt16(number)) => Value::Int(u32::from(*number)),
        (7, Variant::UInt32(number)) => Value::Int(*number),
        (8, Variant::UInt64(number)) => Value::Long(*number),
        (9, Variant::Float(number)) => Value::Float(*number),
        (10, Variant::Double(number)) => Value::Double(*number),
        (BOOLEAN, Variant::Boolean(flag)) => Value::Boolean(*flag),
        (12 | 14 | 15, Variant::String(text)) => Value::Text(text.as_str().to_owned()),
        (13, Variant::DateTime(time)) => Value::Long(u64::try_from(time.unix_nanos() / 1_000_000).ok()?),
        (17, Variant::ByteString(bytes)) => Value::Bytes(bytes.as_bytes().to_vec()),
        (22..=31, Variant::Array(array)) => Value::Bytes(packed(datatype, &array.values)?),
        _ => return None,
    })
}

/// The reverse of [`array`].
fn packed(datatype: u32, values: &ArrayValues) -> Option<Vec<u8>> {
    macro_rules! packed {
        ($values:expr) => {
            $values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
    }
    Some(match (datatype, values) {
        (22, ArrayValues::SByte(values)) => packed!(values),
        (23, ArrayValues::Int16(values)) => packed!(values),
        (24, ArrayValues::Int32(values)) => packed!(values),
        (25, ArrayValues::Int64(values)) => packed!(values),
        (26, ArrayValues::Byte(values)) => values.clone(),
        (27, ArrayValues::UInt16(values)) => packed!(values),
        (28, ArrayValues::UInt32(values)) => packed!(values),
        (29, ArrayValues::UInt64(values)) => packed!(values),
        (30, ArrayValues::Float(values)) => packed!(values),
        (31, ArrayValues::Double(values)) => packed!(values),
        _ => return None,
    })
}

/// The type in which a value is sent; `None` if there is none.
#[must_use]
pub fn of(value: &Variant) -> Option<u32> {
    let element = match value.as_array() {
        Some(array) => array.values.element_type(),
        None => value.built_in_type()?,
    };
    let wanted = Kind { element, is_array: value.as_array().is_some() };
    (1..=31).find(|datatype| kind(*datatype) == Some(wanted))
}

/// A time in milliseconds since 1970; `None` if it is invalid.
#[must_use]
pub fn time(millis: u64) -> Option<UtcTime> {
    // Times after the year 9999 are invalid (Part 6 §5.2.2.5).
    (millis > 0 && millis < 253_402_300_800_000)
        .then(|| UtcTime::from_unix(core::time::Duration::from_millis(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_sign_and_width() {
        assert_eq!(decode(1, &Value::Int(u32::MAX)), Some(Variant::from(-1i8)));
        assert_eq!(decode(2, &Value::Int(0xFFFF_FFFE)), Some(Variant::from(-2i16)));
        assert_eq!(decode(4, &Value::Long(u64::MAX)), Some(Variant::from(-1i64)));
        assert_eq!(decode(5, &Value::Int(256)), None);
        assert_eq!(decode(9, &Value::Double(1.0)), None);
        assert_eq!(decode(23, &Value::Bytes(vec![1, 0, 0xFF, 0xFF])), Some(Variant::from(vec![1i16, -1])));
        assert_eq!(decode(23, &Value::Bytes(vec![1])), None);
        for (datatype, value) in
            [(1, Variant::from(-5i8)), (3, Variant::from(-5i32)), (12, Variant::from("x"))]
        {
            let encoded = encode(datatype, &value).unwrap();
            assert_eq!(decode(datatype, &encoded), Some(value));
        }
        assert_eq!(encode(3, &Variant::from(1.0)), None);
        for value in [
            Variant::from(vec![1i16, -2]),
            Variant::from(vec![1u8, 2]),
            Variant::from(vec![1.5f64]),
            Variant::from(UtcTime::from_unix(core::time::Duration::from_millis(1_700_000_000_123))),
            Variant::from(ByteString::from(&b"x"[..])),
            Variant::from(true),
            Variant::from(7u64),
        ] {
            let datatype = of(&value).unwrap();
            assert_eq!(decode(datatype, &encode(datatype, &value).unwrap()), Some(value));
        }
        assert_eq!((of(&Variant::from(vec![true])), of(&Variant::Empty)), (None, None));
        assert!(time(0).is_none() && time(u64::MAX).is_none() && time(1).is_some());
    }
}
