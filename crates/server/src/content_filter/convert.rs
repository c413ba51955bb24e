//! Conversions between built-in types (Part 4 §7.7.3, the tables of conversion and of data type precedence).

use super::array;
use taktwerk_types::{
    BuiltInType as T, ByteString, ExpandedNodeId, Guid, LocalizedText, NodeId, QualifiedName, StatusCode,
    UaString, UtcTime, Variant,
};

/// The precedence of a type; a smaller number wins. `None` for types without implicit conversion.
pub(crate) const fn precedence(kind: T) -> Option<u8> {
    Some(match kind {
        T::Double => 1,
        T::Float => 2,
        T::Int64 => 3,
        T::UInt64 => 4,
        T::Int32 => 5,
        T::UInt32 => 6,
        T::StatusCode => 7,
        T::Int16 => 8,
        T::UInt16 => 9,
        T::SByte => 10,
        T::Byte => 11,
        T::Boolean => 12,
        T::Guid => 13,
        T::String => 14,
        T::ExpandedNodeId => 15,
        T::NodeId => 16,
        T::LocalizedText => 17,
        T::QualifiedName => 18,
        _ => return None,
    })
}

/// Whether the specification allows the implicit conversion from one type to another.
pub(crate) const fn is_implicit(from: T, to: T) -> bool {
    match (from, to) {
        (T::Boolean | T::Byte | T::SByte | T::Int16 | T::UInt16 | T::Int32 | T::UInt32, to) => {
            (is_number(to) && precedes(to, from)) || matches!((from, to), (T::UInt16, T::StatusCode))
        }
        (T::Int64 | T::UInt64 | T::Float, to) => is_number(to) && precedes(to, from),
        (T::StatusCode, T::Int64 | T::UInt64 | T::Int32 | T::UInt32) => true,
        (T::String, to) => is_number(to) || matches!(to, T::Boolean | T::Guid),
        (T::NodeId, T::ExpandedNodeId | T::String) | (T::ExpandedNodeId, T::String) => true,
        (T::LocalizedText, T::String) | (T::QualifiedName, T::String | T::LocalizedText) => true,
        _ => false,
    }
}

/// Whether the specification allows the conversion from one type to another by Cast.
pub(crate) const fn is_explicit(from: T, to: T) -> bool {
    let both_numbers =
        (is_number(from) || matches!(from, T::Boolean)) && (is_number(to) || matches!(to, T::Boolean));
    both_numbers
        || is_implicit(from, to)
        || match (from, to) {
            (_, T::String) => is_number(from) || matches!(from, T::Boolean | T::DateTime | T::Guid),
            (
                T::String,
                T::DateTime | T::NodeId | T::ExpandedNodeId | T::LocalizedText | T::QualifiedName,
            ) => true,
            (T::ByteString, T::Guid) | (T::Guid, T::ByteString) => true,
            (T::ExpandedNodeId, T::NodeId) => true,
            (T::Int32 | T::UInt32 | T::Int64 | T::UInt64 | T::UInt16, T::StatusCode) => true,
            (T::StatusCode, T::Int16 | T::UInt16) => true,
            _ => false,
        }
}

const fn is_number(kind: T) -> bool {
    matches!(
        kind,
        T::SByte
            | T::Byte
            | T::Int16
            | T::UInt16
            | T::Int32
            | T::UInt32
            | T::Int64
            | T::UInt64
            | T::Float
            | T::Double
    )
}

const fn precedes(one: T, other: T) -> bool {
    match (precedence(one), precedence(other)) {
        (Some(one), Some(other)) => one < other,
        _ => false,
    }
}

/// Converts a scalar implicitly, if the rules allow it and the value fits. A value of the target type is unchanged.
pub(crate) fn implicit(value: &Variant, to: T) -> Option<Variant> {
    let from = scalar_type(value)?;
    if from == to {
        return Some(value.clone());
    }
    if is_implicit(from, to) { convert(value, to) } else { None }
}

/// Converts a value by Cast; an array by element.
pub(crate) fn explicit(value: &Variant, to: T) -> Option<Variant> {
    if let Some(values) = value.as_array() {
        return array::convert(values, to, |value| explicit(value, to));
    }
    let from = scalar_type(value)?;
    if from == to {
        return Some(value.clone());
    }
    if is_explicit(from, to) { convert(value, to) } else { None }
}

/// The type of a scalar.
pub(crate) fn scalar_type(value: &Variant) -> Option<T> {
    if value.as_array().is_some() { None } else { value.built_in_type() }
}

/// A number during conversion, without loss.
enum Number {
    Integer(i128),
    Real(f64),
}

fn number(value: &Variant) -> Option<Number> {
    Some(match value {
        Variant::Boolean(value) => Number::Integer(i128::from(*value)),
        Variant::SByte(value) => Number::Integer(i128::from(*value)),
        Variant::Byte(value) => Number::Integer(i128::from(*value)),
        Variant::Int16(value) => Number::Integer(i128::from(*value)),
        Variant::UInt16(value) => Number::Integer(i128::from(*value)),
        Variant::Int32(value) => Number::Integer(i128::from(*value)),
        Variant::UInt32(value) => Number::Integer(i128::from(*value)),
        Variant::Int64(value) => Number::Integer(i128::from(*value)),
        Variant::UInt64(value) => Number::Integer(i128::from(*value)),
        Variant::Float(value) => Number::Real(f64::from(*value)),
        Variant::Double(value) => Number::Real(*value),
        Variant::StatusCode(value) => Number::Integer(i128::from(value.0)),
        _ => return None,
    })
}

impl Number {
    /// The nearest integer; halves round away from zero.
    fn integer(&self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Real(value) if value.is_finite() && value.abs() < 1e30 => Some(value.round() as i128),
            Self::Real(_) => None,
        }
    }

    fn real(&self) -> f64 {
        match self {
            Self::Integer(value) => *value as f64,
            Self::Real(value) => *value,
        }
    }

    fn convert(&self, to: T) -> Option<Variant> {
        macro_rules! integer {
            ($kind:ty) => {
                <$kind>::try_from(self.integer()?).ok()?.into()
            };
        }
        Some(match to {
            T::Boolean => Variant::Boolean(match self {
                Self::Integer(value) => *value != 0,
                Self::Real(value) => *value != 0.0,
            }),
            T::SByte => integer!(i8),
            T::Byte => integer!(u8),
            T::Int16 => integer!(i16),
            T::UInt16 => integer!(u16),
            T::Int32 => integer!(i32),
            T::UInt32 => integer!(u32),
            T::Int64 => integer!(i64),
            T::UInt64 => integer!(u64),
            T::Float => {
                // An integer is rounded once.
                let value = match self {
                    Self::Integer(value) => *value as f32,
                    Self::Real(value) => *value as f32,
                };
                // A number too large for a Float does not become infinite.
                if value.is_infinite() && self.real().is_finite() {
                    return None;
                }
                value.into()
            }
            T::Double => self.real().into(),
            T::StatusCode => {
                let bits = self.integer()?;
                // The bits of a negative Int32 are copied.
                let code = u32::try_from(bits).or_else(|_| i32::try_from(bits).map(i32::cast_unsigned));
                StatusCode(code.ok()?).into()
            }
            _ => return None,
        })
    }
}

fn convert(value: &Variant, to: T) -> Option<Variant> {
    if let Some(number) = number(value) {
        if let (Variant::Boolean(value), T::String) = (value, to) {
            return Some(if *value { "1" } else { "0" }.into());
        }
        if to == T::String {
            return Some(UaString::from(value.to_string()).into());
        }
        // A UInt16 converted to a StatusCode becomes its upper half.
        if let (Variant::UInt16(code), T::StatusCode) = (value, to) {
            return Some(StatusCode(u32::from(*code) << 16).into());
        }
        // The bits of a StatusCode are copied; to 16 bits, its upper half.
        if let Variant::StatusCode(code) = value {
            let upper = (code.0 >> 16) as u16;
            match to {
                T::UInt16 => return Some(upper.into()),
                T::Int16 => return Some(upper.cast_signed().into()),
                T::Int32 => return Some(code.0.cast_signed().into()),
                _ => {}
            }
        }
        return number.convert(to);
    }
    match (value, to) {
        (Variant::String(text), _) => parse(text.as_deref()?, to),
        (Variant::DateTime(time), T::String) => Some(time.to_string().into()),
        (Variant::Guid(guid), T::String) => Some(guid.to_string().into()),
        (Variant::Guid(guid), T::ByteString) => Some(ByteString::from(guid.as_bytes().as_slice()).into()),
        (Variant::ByteString(bytes), T::Guid) => {
            Some(Guid::from_bytes(bytes.as_bytes().try_into().ok()?).into())
        }
        (Variant::NodeId(id), T::String) => Some(id.to_string().into()),
        (Variant::NodeId(id), T::ExpandedNodeId) => Some(ExpandedNodeId::from((**id).clone()).into()),
        (Variant::ExpandedNodeId(id), T::String) => Some(id.to_string().into()),
        (Variant::ExpandedNodeId(id), T::NodeId) => Some(id.local()?.clone().into()),
        (Variant::LocalizedText(text), T::String) => Some(text.text.clone().into()),
        (Variant::QualifiedName(name), T::String) => Some(name.name.clone().into()),
        (Variant::QualifiedName(name), T::LocalizedText) => {
            Some(LocalizedText::from_text(name.name.clone()).into())
        }
        _ => None,
    }
}

fn parse(text: &str, to: T) -> Option<Variant> {
    match to {
        T::LocalizedText => return Some(LocalizedText::from_text(text).into()),
        // In namespace 0, also if the text looks like one with an index.
        T::QualifiedName => return Some(QualifiedName::new(0, text).into()),
        _ => {}
    }
    let text = text.trim();
    macro_rules! parsed {
        ($kind:ty) => {
            text.parse::<$kind>().ok()?.into()
        };
    }
    Some(match to {
        T::Boolean if text == "1" || text.eq_ignore_ascii_case("true") => true.into(),
        T::Boolean if text == "0" || text.eq_ignore_ascii_case("false") => false.into(),
        T::SByte => parsed!(i8),
        T::Byte => parsed!(u8),
        T::Int16 => parsed!(i16),
        T::UInt16 => parsed!(u16),
        T::Int32 => parsed!(i32),
        T::UInt32 => parsed!(u32),
        T::Int64 => parsed!(i64),
        T::UInt64 => parsed!(u64),
        T::Float => parsed!(f32),
        T::Double => parsed!(f64),
        T::Guid => parsed!(Guid),
        T::NodeId => parsed!(NodeId),
        T::ExpandedNodeId => parsed!(ExpandedNodeId),
        T::DateTime => UtcTime::parse(text)?.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implicit_conversions_follow_the_precedence_order() {
        for from in T::ALL {
            for to in T::ALL {
                if is_implicit(from, to) {
                    let up = matches!(from, T::StatusCode) || precedes(to, from) || from == T::QualifiedName;
                    assert!(up || matches!((from, to), (T::String, _)), "{from} to {to}");
                }
            }
        }
        assert!(!is_implicit(T::Double, T::Float) && is_explicit(T::Double, T::Float));
        assert!(!is_implicit(T::Boolean, T::String) && is_explicit(T::Boolean, T::String));
        assert!(!is_explicit(T::DateTime, T::Double));
    }

    #[test]
    fn values_that_do_not_fit_are_not_converted() {
        assert_eq!(implicit(&Variant::from(300u16), T::Double), Some(300.0.into()));
        assert_eq!(explicit(&Variant::from(300u16), T::Byte), None);
        assert_eq!(implicit(&Variant::from(-1i8), T::UInt16), None);
        assert_eq!(explicit(&Variant::from(1.5f64), T::Int32), Some(2i32.into()));
        assert_eq!(explicit(&Variant::from(f64::NAN), T::Int32), None);
        assert_eq!(explicit(&Variant::from(1e300f64), T::Float), None);
        assert_eq!(implicit(&Variant::from("12"), T::Int32), Some(12i32.into()));
        assert_eq!(implicit(&Variant::from("pump"), T::Int32), None);
        assert_eq!(implicit(&Variant::from(LocalizedText::new("en", "on")), T::String), Some("on".into()));
        assert_eq!(explicit(&Variant::from(0x8001u16), T::StatusCode), Some(StatusCode(0x8001_0000).into()));
    }
}
