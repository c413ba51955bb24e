//! Types of tags, and conversion of values from numbers, texts and JSON.

use serde_json::Value as Json;
use taktwerk_types::{BuiltInType, ByteString, UtcTime, Variant};

/// The type of a tag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The type of the value, or of its elements.
    pub element: BuiltInType,
    /// Whether it is an array.
    pub is_array: bool,
}

/// Names of types in files.
pub const TYPES: [(&str, BuiltInType); 14] = [
    ("Boolean", BuiltInType::Boolean),
    ("SByte", BuiltInType::SByte),
    ("Byte", BuiltInType::Byte),
    ("Int16", BuiltInType::Int16),
    ("UInt16", BuiltInType::UInt16),
    ("Int32", BuiltInType::Int32),
    ("UInt32", BuiltInType::UInt32),
    ("Int64", BuiltInType::Int64),
    ("UInt64", BuiltInType::UInt64),
    ("Float", BuiltInType::Float),
    ("Double", BuiltInType::Double),
    ("String", BuiltInType::String),
    ("DateTime", BuiltInType::DateTime),
    ("ByteString", BuiltInType::ByteString),
];

impl core::fmt::Display for Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}{}", self.element, if self.is_array { "[]" } else { "" })
    }
}

impl Kind {
    /// A single value.
    #[must_use]
    pub const fn scalar(element: BuiltInType) -> Self {
        Self { element, is_array: false }
    }

    /// Whether it is a number, or an array of numbers.
    #[must_use]
    pub fn is_number(self) -> bool {
        (BuiltInType::SByte..=BuiltInType::Double).contains(&self.element)
    }

    /// An initial value of this type.
    #[must_use]
    pub fn zero(self) -> Variant {
        match self.element {
            element if self.is_array => array(element, Vec::new()),
            BuiltInType::String => Variant::from(""),
            BuiltInType::ByteString => Variant::from(ByteString::default()),
            element => number(element, 0.0).unwrap_or_default(),
        }
    }

    /// Converts a value to this type; `None` if that is impossible.
    #[must_use]
    pub fn coerce(self, value: Variant) -> Option<Variant> {
        if self.is_array {
            let Variant::Array(found) = &value else { return None };
            return (found.values.element_type() == self.element).then_some(value);
        }
        if value.built_in_type() == Some(self.element) && value.as_array().is_none() {
            return Some(value);
        }
        match &value {
            Variant::String(text) => parse(self.element, text.as_str()),
            Variant::Boolean(flag) => number(self.element, f64::from(u8::from(*flag))),
            // Keep large integers exact where possible.
            Variant::Int64(whole) => integer(self.element, i128::from(*whole)),
            Variant::UInt64(whole) => integer(self.element, i128::from(*whole)),
            _ => number(self.element, value.as_f64()?),
        }
    }

    /// Converts a JSON value to this type.
    #[must_use]
    pub fn of_json(self, json: &Json) -> Option<Variant> {
        if self.is_array {
            let list = json.as_array()?;
            let values = list.iter().map(|element| Self::scalar(self.element).of_json(element));
            return Some(array(self.element, values.collect::<Option<Vec<_>>>()?));
        }
        match json {
            Json::Bool(flag) if self.element == BuiltInType::String => Some(flag.to_string().into()),
            Json::Bool(flag) => number(self.element, f64::from(u8::from(*flag))),
            Json::Number(whole) if self.element == BuiltInType::String => Some(whole.to_string().into()),
            Json::Number(found) => match (found.as_i64(), found.as_u64()) {
                (Some(whole), _) => integer(self.element, i128::from(whole)),
                (None, Some(whole)) => integer(self.element, i128::from(whole)),
                (None, None) => number(self.element, found.as_f64()?),
            },
            Json::String(text) => parse(self.element, text),
            // Arrays and objects are shown as JSON text.
            Json::Array(_) | Json::Object(_) if self.element == BuiltInType::String => {
                Some(json.to_string().into())
            }
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }
}

/// The natural type of a JSON value.
#[must_use]
pub fn kind_of_json(json: &Json) -> Kind {
    let scalar = |json: &Json| match json {
        Json::Bool(_) => BuiltInType::Boolean,
        Json::Number(_) => BuiltInType::Double,
        _ => BuiltInType::String,
    };
    match json {
        Json::Array(list) => {
            let first = list.first().map(scalar);
            match first.filter(|first| list.iter().all(|element| scalar(element) == *first)) {
                Some(element) => Kind { element, is_array: true },
                None => Kind::scalar(BuiltInType::String),
            }
        }
        other => Kind::scalar(scalar(other)),
    }
}

/// Converts a value to JSON.
#[must_use]
pub fn to_json(value: &Variant) -> Json {
    match value {
        Variant::Boolean(flag) => (*flag).into(),
        Variant::Int64(whole) => (*whole).into(),
        Variant::UInt64(whole) => (*whole).into(),
        Variant::Float(number) => (*number).into(),
        Variant::Double(number) => (*number).into(),
        Variant::String(text) => text.as_str().into(),
        Variant::DateTime(time) => time.to_string().into(),
        Variant::Array(array) => {
            let elements = (0..array.values.len()).filter_map(|index| element(value, index));
            elements.map(|element| to_json(&element)).collect::<Vec<_>>().into()
        }
        other => match other.as_f64() {
            Some(number) => (number as i64).into(),
            None => other.to_string().into(),
        },
    }
}

/// An element of an array.
#[must_use]
pub fn element(value: &Variant, index: usize) -> Option<Variant> {
    macro_rules! element {
        ($array:expr, $($name:ident),*) => {
            match &$array.values {
                $(taktwerk_types::ArrayValues::$name(values) => values.get(index).cloned().map(Variant::from),)*
                _ => None,
            }
        };
    }
    let array = value.as_array()?;
    element!(
        array, Boolean, SByte, Byte, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float, Double, String,
        DateTime, ByteString
    )
}

/// Converts a number to a type, rounding to integers; `None` if it does not fit.
#[must_use]
pub fn number(kind: BuiltInType, value: f64) -> Option<Variant> {
    Some(match kind {
        BuiltInType::Float if value.is_finite() && (value as f32).is_infinite() => return None,
        BuiltInType::Float => Variant::Float(value as f32),
        BuiltInType::Double => Variant::Double(value),
        BuiltInType::Boolean => Variant::Boolean(value != 0.0),
        BuiltInType::String => Variant::from(value.to_string()),
        BuiltInType::DateTime => {
            // Seconds since 1970, the usual form of devices and brokers.
            let since = core::time::Duration::try_from_secs_f64(value).ok()?;
            Variant::DateTime(UtcTime::from_unix(since))
        }
        // Larger doubles have no fraction, and all integer types end below.
        _ if (-1e20..=1e20).contains(&value) => whole(kind, value.round() as i128)?,
        _ => return None,
    })
}

/// Converts an integer to a type.
#[must_use]
pub fn integer(kind: BuiltInType, value: i128) -> Option<Variant> {
    match kind {
        BuiltInType::String => Some(Variant::from(value.to_string())),
        BuiltInType::Float | BuiltInType::Double | BuiltInType::Boolean | BuiltInType::DateTime => {
            number(kind, value as f64)
        }
        _ => whole(kind, value),
    }
}

fn whole(kind: BuiltInType, value: i128) -> Option<Variant> {
    Some(match kind {
        BuiltInType::SByte => Variant::SByte(value.try_into().ok()?),
        BuiltInType::Byte => Variant::Byte(value.try_into().ok()?),
        BuiltInType::Int16 => Variant::Int16(value.try_into().ok()?),
        BuiltInType::UInt16 => Variant::UInt16(value.try_into().ok()?),
        BuiltInType::Int32 => Variant::Int32(value.try_into().ok()?),
        BuiltInType::UInt32 => Variant::UInt32(value.try_into().ok()?),
        BuiltInType::Int64 => Variant::Int64(value.try_into().ok()?),
        BuiltInType::UInt64 => Variant::UInt64(value.try_into().ok()?),
        _ => return None,
    })
}

/// Parses a text as a type.
#[must_use]
pub fn parse(kind: BuiltInType, text: &str) -> Option<Variant> {
    let trimmed = text.trim();
    match kind {
        BuiltInType::String => Some(Variant::from(text)),
        BuiltInType::ByteString => Some(Variant::from(ByteString::from(text.as_bytes().to_vec()))),
        BuiltInType::Boolean => match &*trimmed.to_ascii_lowercase() {
            "true" | "on" | "yes" | "open" => Some(true.into()),
            "false" | "off" | "no" | "closed" => Some(false.into()),
            other => {
                let number: f64 = other.parse().ok()?;
                number.is_finite().then(|| (number != 0.0).into())
            }
        },
        BuiltInType::DateTime => UtcTime::parse(trimmed).map(Variant::DateTime),
        BuiltInType::Float | BuiltInType::Double => {
            let value: f64 = trimmed.parse().ok()?;
            // Overly long digits must not become infinity.
            let is_digits = trimmed.bytes().any(|byte| byte.is_ascii_digit());
            if value.is_infinite() && is_digits { None } else { number(kind, value) }
        }
        _ => match trimmed.parse::<i128>() {
            Ok(whole) => integer(kind, whole),
            Err(_) => number(kind, trimmed.parse().ok()?),
        },
    }
}

/// An array. Elements of another type are omitted.
#[must_use]
pub fn array(kind: BuiltInType, values: Vec<Variant>) -> Variant {
    macro_rules! collect {
        ($($name:ident),*) => {
            match kind {
                $(BuiltInType::$name => Variant::from(
                    values
                        .into_iter()
                        .filter_map(|value| match value { Variant::$name(value) => Some(value), _ => None })
                        .collect::<Vec<_>>(),
                ),)*
                _ => Variant::Empty,
            }
        };
    }
    collect!(
        Boolean, SByte, Byte, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float, Double, String, DateTime,
        ByteString
    )
}

/// Applies `map` to a number, or to each number of an array.
#[must_use]
pub fn map_numbers(value: &Variant, to: BuiltInType, map: impl Fn(f64) -> f64) -> Option<Variant> {
    match value.as_array() {
        None => number(to, map(value.as_f64()?)),
        Some(found) => {
            let numbers =
                (0..found.values.len()).map(|index| number(to, map(element(value, index)?.as_f64()?)));
            Some(array(to, numbers.collect::<Option<Vec<_>>>()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_converted_or_rejected() {
        let kind = |element| Kind::scalar(element);
        let some = |value: Variant| Some(value);
        assert_eq!(kind(BuiltInType::UInt16).of_json(&json!(65535)), some(65535u16.into()));
        assert_eq!(kind(BuiltInType::UInt16).of_json(&json!(65536)), None, "nothing wraps around");
        assert_eq!(kind(BuiltInType::UInt16).of_json(&json!(-1)), None);
        assert_eq!(kind(BuiltInType::Int32).of_json(&json!(2.5)), some(3.into()));
        assert_eq!(kind(BuiltInType::Double).of_json(&json!("21.5 ")), some(21.5.into()));
        assert_eq!(kind(BuiltInType::Double).of_json(&json!({"a": 1})), None);
        assert_eq!(kind(BuiltInType::Boolean).of_json(&json!("ON")), some(true.into()));
        assert_eq!(kind(BuiltInType::String).of_json(&json!([1, 2])), some("[1,2]".into()));
        assert_eq!(
            kind(BuiltInType::UInt64).of_json(&json!(u64::MAX)),
            some(u64::MAX.into()),
            "large integers stay exact"
        );
        assert_eq!(number(BuiltInType::Int64, 1e30), None);
        assert_eq!(number(BuiltInType::Int64, f64::NAN), None);
        assert_eq!(number(BuiltInType::DateTime, -1.0), None);
        let list = Kind { element: BuiltInType::Double, is_array: true };
        assert_eq!(list.of_json(&json!([1, 2.5])), some(vec![1.0, 2.5].into()));
        assert_eq!(list.of_json(&json!([1, "x"])), None);
        assert_eq!(list.coerce(Variant::from(1.0)), None);
        assert_eq!(kind(BuiltInType::Float).coerce(Variant::from(1u8)), some(1.0f32.into()));
    }

    #[test]
    fn json_shows_its_type() {
        assert_eq!(kind_of_json(&json!(1)), Kind::scalar(BuiltInType::Double));
        assert_eq!(kind_of_json(&json!([1, 2])), Kind { element: BuiltInType::Double, is_array: true });
        assert_eq!(kind_of_json(&json!([1, "a"])), Kind::scalar(BuiltInType::String));
        assert_eq!(to_json(&Variant::from(vec![1.5, 2.0])), json!([1.5, 2.0]));
        assert_eq!(to_json(&Variant::from(7u16)), json!(7));
    }

    #[test]
    fn numbers_of_arrays_are_scaled_one_by_one() {
        let values = Variant::from(vec![1u16, 2, 3]);
        let scaled = map_numbers(&values, BuiltInType::Double, |number| number / 2.0);
        assert_eq!(scaled, Some(vec![0.5, 1.0, 1.5].into()));
    }
}
