//! Evaluating a compiled filter (Part 4 §7.7.3).
//!
//! A condition is true, false or null. Null propagates: a comparison with a field that an event does not have is null,
//! and so is its negation. Only true passes the filter.

use super::array;
use super::compare::{common, equals, order};
use super::convert::{explicit, implicit};
use super::like::{PATTERN_LEN_MAX, Pattern};
use super::{Element, Filter, Operand};
use crate::account::HeapSize;
use core::cmp::Ordering;
use std::borrow::Cow;
use taktwerk_schema::FilterOperator as Op;
use taktwerk_types::{BuiltInType, Variant};

/// The subject of a filter: an event or a node.
pub(crate) trait Evaluate<T> {
    /// The value of a field; [`Variant::Empty`] if there is none.
    fn field(&self, number: u32) -> Cow<'_, Variant>;

    /// Whether it has a type or one of its subtypes.
    fn is_of_type(&self, kind: &T) -> bool;

    /// Whether a relation holds. Only nodes have relations.
    fn is_related(&self, _number: u32) -> Option<bool> {
        None
    }

    /// Whether it is in a View. Only nodes can be.
    fn is_in_view(&self, _number: u32) -> Option<bool> {
        None
    }

    /// Counts compared characters, or as much work: clients choose filters and sometimes values, so comparing could take
    /// arbitrarily long. `false`: the limit for this subject is exceeded, and the result is unknown.
    fn spend(&self, steps: usize) -> bool;

    /// How much may still be spent.
    fn left(&self) -> usize;
}

/// Bytes of an operand that are compared or converted in the time of one character of a pattern.
const BYTES_PER_STEP: usize = 64;
/// Maximum number of characters compared with one pattern.
const PATTERN_STEPS_MAX: usize = 50_000;

/// An element of an array is converted in the time of this many characters of a pattern.
const STEPS_PER_ELEMENT: usize = 16;

impl<T> Filter<T> {
    /// Whether the subject passes the filter.
    pub(crate) fn passes(&self, subject: &impl Evaluate<T>) -> bool {
        self.is_empty() || self.truth(0, subject) == Some(true)
    }

    /// The result of an element as a truth value.
    fn truth<S: Evaluate<T>>(&self, index: u32, subject: &S) -> Option<bool> {
        let element = self.elements.get(index as usize)?;
        if subject.left() == 0 {
            return None;
        }
        let value = |at: usize| self.operand(element, at, subject);
        let condition = |at: usize| match element.operands.get(at)? {
            Operand::Element(index) => self.truth(*index, subject),
            _ => as_bool(&value(at)),
        };
        let compared = |accepted: fn(Ordering) -> bool| order(&value(0), &value(1)).map(accepted);
        match element.operator {
            Op::EQUALS => self.equal(&value(0), &value(1), subject),
            Op::IS_NULL => {
                let value = value(0);
                // Beyond the limit, the value is not known.
                (subject.left() > 0).then(|| is_null(&value))
            }
            Op::GREATER_THAN => compared(Ordering::is_gt),
            Op::LESS_THAN => compared(Ordering::is_lt),
            Op::GREATER_THAN_OR_EQUAL => compared(Ordering::is_ge),
            Op::LESS_THAN_OR_EQUAL => compared(Ordering::is_le),
            Op::LIKE => self.like(element, subject),
            Op::NOT => condition(0).map(|is_true| !is_true),
            Op::BETWEEN => {
                let middle = value(0);
                and(order(&middle, &value(1)).map(Ordering::is_ge), || {
                    order(&middle, &value(2)).map(Ordering::is_le)
                })
            }
            Op::IN_LIST => {
                let wanted = value(0);
                let mut result = Some(false);
                for at in 1..element.operands.len() {
                    match self.equal(&wanted, &value(at), subject) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => result = None,
                    }
                }
                result
            }
            Op::AND => and(condition(0), || condition(1)),
            Op::OR => or(condition(0), || condition(1)),
            Op::OF_TYPE => match element.operands.first() {
                Some(Operand::Type(kind)) => Some(subject.is_of_type(kind)),
                _ => None,
            },
            Op::RELATED_TO => match element.operands.first() {
                Some(Operand::Field(number)) => subject.is_related(*number),
                _ => None,
            },
            Op::IN_VIEW => match element.operands.first() {
                Some(Operand::Field(number)) => subject.is_in_view(*number),
                _ => None,
            },
            Op::CAST | Op::BITWISE_AND | Op::BITWISE_OR => as_bool(&self.result(index, subject)),
            _ => None,
        }
    }

    /// The result of an element as a value.
    fn result<'a, S: Evaluate<T>>(&'a self, index: u32, subject: &'a S) -> Cow<'a, Variant> {
        let Some(element) = self.elements.get(index as usize) else { return Cow::Owned(Variant::Empty) };
        let value = |at: usize| self.operand(element, at, subject);
        let result = match element.operator {
            Op::CAST => match element.operands.get(1) {
                Some(Operand::Cast(to)) => {
                    let value = value(0);
                    if spend_elements(&value, subject) { explicit(&value, *to) } else { None }
                }
                _ => None,
            },
            Op::BITWISE_AND => bitwise(&value(0), &value(1), |one, other| one & other),
            Op::BITWISE_OR => bitwise(&value(0), &value(1), |one, other| one | other),
            _ => self.truth(index, subject).map(Variant::Boolean),
        };
        Cow::Owned(result.unwrap_or_default())
    }

    fn operand<'a, S: Evaluate<T>>(
        &'a self,
        element: &'a Element<T>,
        at: usize,
        subject: &'a S,
    ) -> Cow<'a, Variant> {
        if subject.left() == 0 {
            // Reading a field can take long, too.
            return Cow::Owned(Variant::Empty);
        }
        let value = match element.operands.get(at) {
            Some(Operand::Literal(value)) => Cow::Borrowed(value),
            Some(Operand::Field(number)) => subject.field(*number),
            Some(Operand::Element(index)) => self.result(*index, subject),
            Some(Operand::Pattern(_) | Operand::Type(_) | Operand::Cast(_)) | None => {
                Cow::Owned(Variant::Empty)
            }
        };
        let steps = value.heap_size() / BYTES_PER_STEP;
        if steps == 0 || subject.spend(steps) { value } else { Cow::Owned(Variant::Empty) }
    }

    /// Whether two values are equal; null if comparing them is too much work.
    fn equal<S: Evaluate<T>>(&self, one: &Variant, other: &Variant, subject: &S) -> Option<bool> {
        // Arrays of one type are compared as they are.
        let types = [one, other].map(|value| value.as_array().map(|array| array.values.element_type()));
        if types[0] != types[1] && !spend_elements(one, subject) {
            return None;
        }
        equals(one, other)
    }

    /// Null if an operand is null, false if one is not a text.
    fn like<S: Evaluate<T>>(&self, element: &Element<T>, subject: &S) -> Option<bool> {
        let value = self.operand(element, 0, subject);
        if is_null(&value) {
            return None;
        }
        let matches = |pattern: &Pattern, text: &str| {
            let steps_max = PATTERN_STEPS_MAX.min(subject.left());
            let mut steps = steps_max;
            let is_matched = pattern.matches(text, &mut steps);
            // What did not suffice is spent.
            let spent = if is_matched.is_some() { steps_max - steps } else { steps_max };
            let is_within_limit = subject.spend(spent);
            is_matched.filter(|_| is_within_limit)
        };
        if let Operand::Pattern(pattern) = element.operands.get(1)? {
            return with_text(&value, |text| matches(pattern, text));
        }
        let pattern = self.operand(element, 1, subject);
        if is_null(&pattern) {
            return None;
        }
        with_text(&pattern, |pattern| {
            with_text(&value, |text| {
                if pattern.len() > PATTERN_LEN_MAX {
                    return Some(false);
                }
                if !subject.spend(pattern.len()) {
                    return None;
                }
                matches(&Pattern::new(pattern), text)
            })
        })
    }
}

/// Counts the conversion of an array's elements. `false`: the limit is exceeded.
fn spend_elements<T>(value: &Variant, subject: &impl Evaluate<T>) -> bool {
    let elements = value.as_array().map_or(0, |array| array.values.len());
    elements == 0 || subject.spend(elements.saturating_mul(STEPS_PER_ELEMENT))
}

/// Matches a value's text; false if it is not a text and has no implicit conversion to one.
fn with_text(value: &Variant, matches: impl Fn(&str) -> Option<bool>) -> Option<bool> {
    let value = array::single(value);
    match &*value {
        Variant::String(text) => matches(text.as_deref()?),
        Variant::LocalizedText(text) => matches(text.text.as_deref()?),
        Variant::QualifiedName(name) => matches(name.name.as_deref()?),
        Variant::XmlElement(text) => matches(text.as_deref()?),
        Variant::NodeId(_) | Variant::ExpandedNodeId(_) => match implicit(&value, BuiltInType::String) {
            Some(Variant::String(text)) => matches(text.as_deref()?),
            _ => Some(false),
        },
        _ => Some(false),
    }
}

/// A null, or a status in place of a value (Part 4 §7.7.3, IsNull).
fn is_null(value: &Variant) -> bool {
    match value {
        Variant::Empty | Variant::StatusCode(_) => true,
        Variant::String(text) => text.is_null(),
        Variant::ByteString(bytes) => bytes.is_null(),
        Variant::DateTime(time) => time.is_null(),
        Variant::NodeId(id) => id.is_null(),
        Variant::ExpandedNodeId(id) => id.is_null(),
        Variant::QualifiedName(name) => name.is_null(),
        Variant::LocalizedText(text) => text.locale.is_null() && text.text.is_null(),
        Variant::ExtensionObject(value) => value.is_null(),
        _ => false,
    }
}

/// A value as a truth value. A value that is not Boolean and has no implicit conversion to Boolean is null.
fn as_bool(value: &Variant) -> Option<bool> {
    let value = array::single(value);
    match &*value {
        Variant::Boolean(value) => Some(*value),
        Variant::String(_) => match implicit(&value, BuiltInType::Boolean)? {
            Variant::Boolean(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// True if both are, false if one is false, null otherwise.
fn and(one: Option<bool>, other: impl FnOnce() -> Option<bool>) -> Option<bool> {
    match one {
        Some(false) => Some(false),
        Some(true) => other(),
        None => other().filter(|is_true| !is_true),
    }
}

/// True if one is, false if both are false, null otherwise.
fn or(one: Option<bool>, other: impl FnOnce() -> Option<bool>) -> Option<bool> {
    match one {
        Some(true) => Some(true),
        Some(false) => other(),
        None => other().filter(|is_true| *is_true),
    }
}

/// A bitwise operation on two integers of a common type.
fn bitwise(one: &Variant, other: &Variant, operation: impl Fn(u64, u64) -> u64) -> Option<Variant> {
    let (one, other) = common(one, other)?;
    macro_rules! by {
        ($($name:ident($type:ty))*) => {
            match (&*one, &*other) {
                // Sign extension does not affect the remaining bits.
                $((Variant::$name(one), Variant::$name(other)) =>
                    Some(Variant::$name(operation(*one as u64, *other as u64) as $type)),)*
                _ => None,
            }
        };
    }
    by!(SByte(i8) Byte(u8) Int16(i16) UInt16(u16) Int32(i32) UInt32(u32) Int64(i64) UInt64(u64))
}
