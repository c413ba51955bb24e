//! An independent implementation of the specification's operators and conversions (Part 4 §7.7.3).
//!
//! It works on the wire format, evaluates every operand, and takes the rules of conversion from a copy of the
//! specification's table. A missing field is null. Null values of types, such as a null String, are null for IsNull and
//! Like, and values for comparisons.

use super::{holds, number_of};
use crate::content_filter::like::Pattern;
use taktwerk_schema::{
    ContentFilter, ContentFilterElement, ElementOperand, FilterOperator as Op, LiteralOperand,
    SimpleAttributeOperand,
};
use taktwerk_types::{
    ArrayValues, BuiltInType as T, ByteString, ExpandedNodeId, ExtensionObject, Guid, LocalizedText, NodeId,
    QualifiedName, StatusCode, UaString, UtcTime, Variant,
};

/// The columns of [`RULES`].
const COLUMNS: [T; 21] = [
    T::Boolean,
    T::Byte,
    T::ByteString,
    T::DateTime,
    T::Double,
    T::ExpandedNodeId,
    T::Float,
    T::Guid,
    T::Int16,
    T::Int32,
    T::Int64,
    T::NodeId,
    T::SByte,
    T::StatusCode,
    T::String,
    T::LocalizedText,
    T::QualifiedName,
    T::UInt16,
    T::UInt32,
    T::UInt64,
    T::XmlElement,
];

/// The table of conversions: implicit (I), by Cast only (E), none (X). The text below the table describes the
/// conversion of a StatusCode to Int16, which the table does not have; it is by Cast, as for UInt16.
const RULES: [(T, &str); 21] = [
    (T::Boolean, "-IXXIXIXIIIXIXEXXIIIX"),
    (T::Byte, "E-XXIXIXIIIXIXEXXIIIX"),
    (T::ByteString, "XX-XXXXEXXXXXXXXXXXXX"),
    (T::DateTime, "XXX-XXXXXXXXXXEXXXXXX"),
    (T::Double, "EEXX-XEXEEEXEXEXXEEEX"),
    (T::ExpandedNodeId, "XXXXX-XXXXXEXXIXXXXXX"),
    (T::Float, "EEXXIX-XEEEXEXEXXEEEX"),
    (T::Guid, "XXEXXXX-XXXXXXEXXXXXX"),
    (T::Int16, "EEXXIXIX-IIXEXEXXEIIX"),
    (T::Int32, "EEXXIXIXE-IXEEEXXEEIX"),
    (T::Int64, "EEXXIXIXEE-XEEEXXEEEX"),
    (T::NodeId, "XXXXXIXXXXX-XXIXXXXXX"),
    (T::SByte, "EEXXIXIXIIIX-XEXXIIIX"),
    (T::StatusCode, "XXXXXXXXEIIXX-XXXEIIX"),
    (T::String, "IIXEIEIIIIIEIX-EEIIIX"),
    (T::LocalizedText, "XXXXXXXXXXXXXXI-XXXXX"),
    (T::QualifiedName, "XXXXXXXXXXXXXXII-XXXX"),
    (T::UInt16, "EEXXIXIXIIIXEIEXX-IIX"),
    (T::UInt32, "EEXXIXIXEIIXEEEXXE-IX"),
    (T::UInt64, "EEXXIXIXEEIXEEEXXEE-X"),
    (T::XmlElement, "XXXXXXXXXXXXXXXXXXXX-"),
];

/// The types by precedence, highest first.
const PRECEDENCE: [T; 18] = [
    T::Double,
    T::Float,
    T::Int64,
    T::UInt64,
    T::Int32,
    T::UInt32,
    T::StatusCode,
    T::Int16,
    T::UInt16,
    T::SByte,
    T::Byte,
    T::Boolean,
    T::Guid,
    T::String,
    T::ExpandedNodeId,
    T::NodeId,
    T::LocalizedText,
    T::QualifiedName,
];

/// The rule of the table for a conversion; a type that is not in it has none.
pub(super) fn rule(from: T, to: T) -> char {
    let row = RULES.iter().find(|(kind, _)| *kind == from).map(|(_, row)| *row);
    let column = COLUMNS.iter().position(|kind| *kind == to);
    row.zip(column).map_or('X', |(row, column)| char::from(row.as_bytes()[column]))
}

/// The elements of an array.
fn elements(value: &Variant) -> Option<Vec<Variant>> {
    macro_rules! of {
        ($values:expr; $($name:ident)*) => {
            match $values {
                $(ArrayValues::$name(values) => values.iter().cloned().map(Variant::from).collect(),)*
                _ => panic!("no such array is generated"),
            }
        };
    }
    let array = value.as_array()?;
    Some(of!(&array.values;
        Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString NodeId
        ExpandedNodeId StatusCode QualifiedName LocalizedText))
}

/// The kind of a scalar. An array of length 1 is converted to its element.
fn scalar(value: &Variant) -> Option<(T, Variant)> {
    let value = match elements(value) {
        Some(elements) if elements.len() == 1 => elements[0].clone(),
        Some(_) => return None,
        None => value.clone(),
    };
    Some((value.built_in_type()?, value))
}

fn integer(value: &Variant) -> Option<i128> {
    Some(match value {
        Variant::Boolean(value) => i128::from(*value),
        Variant::SByte(value) => i128::from(*value),
        Variant::Byte(value) => i128::from(*value),
        Variant::Int16(value) => i128::from(*value),
        Variant::UInt16(value) => i128::from(*value),
        Variant::Int32(value) => i128::from(*value),
        Variant::UInt32(value) => i128::from(*value),
        Variant::Int64(value) => i128::from(*value),
        Variant::UInt64(value) => i128::from(*value),
        _ => return None,
    })
}

fn to_integer(value: i128, to: T) -> Option<Variant> {
    Some(match to {
        T::SByte => i8::try_from(value).ok()?.into(),
        T::Byte => u8::try_from(value).ok()?.into(),
        T::Int16 => i16::try_from(value).ok()?.into(),
        T::UInt16 => u16::try_from(value).ok()?.into(),
        T::Int32 => i32::try_from(value).ok()?.into(),
        T::UInt32 => u32::try_from(value).ok()?.into(),
        T::Int64 => i64::try_from(value).ok()?.into(),
        T::UInt64 => u64::try_from(value).ok()?.into(),
        _ => return None,
    })
}

/// The conversion itself. [`rule`] has said that there is one.
fn converted(value: &Variant, to: T) -> Option<Variant> {
    let is_integer = to_integer(0, to).is_some();
    if let Some(value) = integer(value) {
        return match to {
            T::Boolean => Some((value != 0).into()),
            T::Float => Some((value as f32).into()),
            T::Double => Some((value as f64).into()),
            T::String => Some(value.to_string().into()),
            // The bits are copied; of 16 bits, to the upper half.
            T::StatusCode => {
                let bits = u32::try_from(value).or_else(|_| i32::try_from(value).map(|value| value as u32));
                Some(StatusCode(bits.ok()?).into())
            }
            _ => to_integer(value, to),
        };
    }
    let real = match value {
        Variant::Float(value) => Some((f64::from(*value), value.to_string())),
        Variant::Double(value) => Some((*value, value.to_string())),
        _ => None,
    };
    if let Some((real, text)) = real {
        return match to {
            T::Boolean => Some((real != 0.0).into()),
            T::Double => Some(real.into()),
            T::Float if real.is_finite() && real.abs() > f64::from(f32::MAX) => None,
            T::Float => Some((real as f32).into()),
            T::String => Some(text.into()),
            _ if real.is_nan() || real.abs() >= 1e25 => None,
            _ => to_integer((real.abs() + 0.5).floor().copysign(real) as i128, to),
        };
    }
    Some(match (value, to) {
        (Variant::StatusCode(code), T::Int16) => ((code.0 >> 16) as u16 as i16).into(),
        (Variant::StatusCode(code), T::UInt16) => ((code.0 >> 16) as u16).into(),
        (Variant::StatusCode(code), T::Int32) => (code.0 as i32).into(),
        (Variant::StatusCode(code), _) => return to_integer(code.0.into(), to),
        (Variant::String(text), to) => {
            let whole = text.as_deref()?;
            let text = whole.trim();
            match to {
                T::Boolean => match text.to_lowercase().as_str() {
                    "true" | "1" => true.into(),
                    "false" | "0" => false.into(),
                    _ => return None,
                },
                T::Double => text.parse::<f64>().ok()?.into(),
                T::Float => text.parse::<f32>().ok()?.into(),
                T::Guid => text.parse::<Guid>().ok()?.into(),
                T::NodeId => text.parse::<NodeId>().ok()?.into(),
                T::ExpandedNodeId => text.parse::<ExpandedNodeId>().ok()?.into(),
                T::DateTime => UtcTime::parse(text)?.into(),
                T::LocalizedText => LocalizedText::from_text(whole).into(),
                T::QualifiedName => QualifiedName::new(0, whole).into(),
                _ if is_integer => return to_integer(text.parse().ok()?, to),
                _ => panic!("{to}"),
            }
        }
        (Variant::DateTime(time), T::String) => time.to_string().into(),
        (Variant::Guid(guid), T::String) => guid.to_string().into(),
        (Variant::Guid(guid), T::ByteString) => ByteString::from(guid.as_bytes().as_slice()).into(),
        (Variant::ByteString(bytes), T::Guid) => {
            let bytes: [u8; 16] = bytes.as_bytes().try_into().ok()?;
            Guid::from_bytes(bytes).into()
        }
        (Variant::NodeId(id), T::String) => id.to_string().into(),
        (Variant::NodeId(id), T::ExpandedNodeId) => ExpandedNodeId::from((**id).clone()).into(),
        (Variant::ExpandedNodeId(id), T::String) => id.to_string().into(),
        (Variant::ExpandedNodeId(id), T::NodeId) => {
            let is_local = id.server_index == 0 && id.namespace_uri.is_null();
            return is_local.then(|| id.node_id.clone().into());
        }
        (Variant::LocalizedText(text), T::String) => text.text.clone().into(),
        (Variant::QualifiedName(name), T::String) => name.name.clone().into(),
        (Variant::QualifiedName(name), T::LocalizedText) => {
            LocalizedText { locale: UaString::NULL, text: name.name.clone() }.into()
        }
        other => panic!("{other:?}"),
    })
}

fn convert(value: &Variant, to: T, accepted: &str) -> Option<Variant> {
    let (from, value) = scalar(value)?;
    if from == to {
        return Some(value);
    }
    // Of 16 bits, the upper half of a StatusCode.
    if let (Variant::UInt16(code), T::StatusCode) = (&value, to) {
        return Some(StatusCode(u32::from(*code) << 16).into());
    }
    if accepted.contains(rule(from, to)) { converted(&value, to) } else { None }
}

/// Both values in the type with precedence; `None` without a common type.
fn common(one: &Variant, other: &Variant) -> Option<(Variant, Variant)> {
    let ((first, one), (second, other)) = (scalar(one)?, scalar(other)?);
    if first == second {
        return Some((one, other));
    }
    let rank = |kind| PRECEDENCE.iter().position(|it| *it == kind);
    let to = if rank(first)? < rank(second)? { first } else { second };
    Some((convert(&one, to, "I")?, convert(&other, to, "I")?))
}

fn equal(one: &Variant, other: &Variant) -> Option<bool> {
    if matches!(one, Variant::Empty) || matches!(other, Variant::Empty) {
        return None;
    }
    if let (Some(left), Some(right)) = (elements(one), elements(other)) {
        // Two arrays: each element is converted.
        let is_equal = |(one, other): (&Variant, &Variant)| equal(one, other) == Some(true);
        return Some(left.len() == right.len() && left.iter().zip(&right).all(is_equal));
    }
    Some(common(one, other).is_some_and(|(one, other)| one == other))
}

/// The order of two values of a common type that has an order.
fn order(one: &Variant, other: &Variant) -> Option<core::cmp::Ordering> {
    let (one, other) = common(one, other)?;
    match (&one, &other) {
        (Variant::Boolean(_), _) => None,
        (Variant::Float(one), Variant::Float(other)) => one.partial_cmp(other),
        (Variant::Double(one), Variant::Double(other)) => one.partial_cmp(other),
        (Variant::DateTime(one), Variant::DateTime(other)) => Some(one.ticks().cmp(&other.ticks())),
        (Variant::String(one), Variant::String(other)) => Some(one.as_deref().cmp(&other.as_deref())),
        _ => Some(integer(&one)?.cmp(&integer(&other)?)),
    }
}

fn truth(value: &Variant) -> Option<bool> {
    match scalar(value)? {
        (_, Variant::Boolean(value)) => Some(value),
        (T::String, value) => truth(&convert(&value, T::Boolean, "I")?),
        _ => None,
    }
}

/// A null, or a status in place of a value.
fn is_null(value: &Variant) -> bool {
    let null = [
        Variant::from(UaString::NULL),
        ByteString::NULL.into(),
        UtcTime::NULL.into(),
        NodeId::NULL.into(),
        ExpandedNodeId::from(NodeId::NULL).into(),
        QualifiedName::new(0, UaString::NULL).into(),
        QualifiedName::new(0, "").into(),
        LocalizedText::default().into(),
    ];
    matches!(value, Variant::Empty | Variant::StatusCode(_)) || null.contains(value)
}

/// Null if an operand is; false if it is not a text.
fn like(value: &Variant, pattern: &Variant) -> Option<bool> {
    if is_null(value) || is_null(pattern) {
        return None;
    }
    let text = |value: &Variant| match convert(value, T::String, "I") {
        Some(Variant::String(text)) => Some(text.as_deref().map(str::to_owned)),
        _ => None,
    };
    let (Some(text), Some(pattern)) = (text(value), text(pattern)) else { return Some(false) };
    // Patterns have their own tests against an exhaustive search.
    Pattern::new(&pattern?).matches(&text?, &mut 100_000)
}

fn bits(one: &Variant, other: &Variant, operation: fn(i128, i128) -> i128) -> Option<Variant> {
    let (one, other) = common(one, other)?;
    if matches!(one, Variant::Boolean(_)) {
        return None;
    }
    to_integer(operation(integer(&one)?, integer(&other)?), one.built_in_type()?)
}

fn operand(filter: &ContentFilter, operand: &ExtensionObject, fields: &[Variant], kind: u32) -> Variant {
    if let Ok(literal) = operand.decode::<LiteralOperand>() {
        return literal.value;
    }
    if let Ok(field) = operand.decode::<SimpleAttributeOperand>() {
        return fields.get(field.attribute_id as usize).cloned().unwrap_or_default();
    }
    let index = operand.decode::<ElementOperand>().unwrap().index;
    value(filter, index as usize, fields, kind)
}

/// The result of an element, for a subject of the type `kind` and all smaller ones.
fn value(filter: &ContentFilter, index: usize, fields: &[Variant], kind: u32) -> Variant {
    let element = &filter.elements[index];
    let at = |at: usize| operand(filter, &element.filter_operands[at], fields, kind);
    let result = match element.filter_operator {
        Op::CAST => {
            let to = T::from_number(number_of(&element.filter_operands[1]) as u8).unwrap();
            cast(&at(0), to)
        }
        Op::BITWISE_AND => bits(&at(0), &at(1), |one, other| one & other),
        Op::BITWISE_OR => bits(&at(0), &at(1), |one, other| one | other),
        _ => condition(element, &at, kind).map(Variant::from),
    };
    result.unwrap_or_default()
}

/// Arrays are converted by element.
fn cast(value: &Variant, to: T) -> Option<Variant> {
    let Some(elements) = elements(value) else { return convert(value, to, "IE") };
    let elements: Option<Vec<_>> = elements.iter().map(|value| convert(value, to, "IE")).collect();
    macro_rules! array {
        ($($name:ident($type:ty))*) => {
            match to {
                $(T::$name => elements?
                    .into_iter()
                    .map(<$type>::try_from)
                    .collect::<Result<Vec<$type>, _>>()
                    .ok()
                    .map(Variant::from),)*
                _ => None,
            }
        };
    }
    array!(
        Boolean(bool) SByte(i8) Byte(u8) Int16(i16) UInt16(u16) Int32(i32) UInt32(u32) Int64(i64) UInt64(u64) Float(f32)
        Double(f64) String(UaString) DateTime(UtcTime) Guid(Guid) ByteString(ByteString) NodeId(NodeId)
        ExpandedNodeId(ExpandedNodeId) StatusCode(StatusCode) QualifiedName(QualifiedName)
        LocalizedText(LocalizedText)
    )
}

fn condition(element: &ContentFilterElement, at: &dyn Fn(usize) -> Variant, kind: u32) -> Option<bool> {
    // The truth table for three values.
    let both = |one: Option<bool>, other: Option<bool>| match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    };
    let not = |value: Option<bool>| value.map(|value| !value);
    let ordered = |other: usize, accepted: &[i8]| {
        order(&at(0), &at(other)).map(|order| accepted.contains(&(order as i8)))
    };
    match element.filter_operator {
        Op::EQUALS => equal(&at(0), &at(1)),
        Op::IS_NULL => Some(is_null(&at(0))),
        Op::GREATER_THAN => ordered(1, &[1]),
        Op::LESS_THAN => ordered(1, &[-1]),
        Op::GREATER_THAN_OR_EQUAL => ordered(1, &[0, 1]),
        Op::LESS_THAN_OR_EQUAL => ordered(1, &[-1, 0]),
        Op::LIKE => like(&at(0), &at(1)),
        Op::NOT => not(truth(&at(0))),
        Op::AND => both(truth(&at(0)), truth(&at(1))),
        Op::OR => not(both(not(truth(&at(0))), not(truth(&at(1))))),
        Op::BETWEEN => both(ordered(1, &[0, 1]), ordered(2, &[-1, 0])),
        Op::IN_LIST => {
            let results: Vec<_> =
                (1..element.filter_operands.len()).map(|other| equal(&at(0), &at(other))).collect();
            if results.contains(&Some(true)) {
                Some(true)
            } else if results.contains(&None) {
                None
            } else {
                Some(false)
            }
        }
        Op::OF_TYPE => Some(number_of(&element.filter_operands[0]) <= kind),
        Op::RELATED_TO | Op::IN_VIEW => holds(number_of(&element.filter_operands[0])),
        other => panic!("no such operator here: {other:?}"),
    }
}

/// Whether a subject passes a filter.
pub(super) fn passes(filter: &ContentFilter, fields: &[Variant], kind: u32) -> bool {
    truth(&value(filter, 0, fields, kind)) == Some(true)
}
