//! Comparing values of different types (Part 4 §7.7.3).

use super::array;
use super::convert::{implicit, precedence, scalar_type};
use core::cmp::Ordering;
use std::borrow::Cow;
use taktwerk_types::{BuiltInType as T, Variant};

/// Whether two values are equal; `None` if one of them is null. Values without a common type are not equal.
pub(super) fn equals(one: &Variant, other: &Variant) -> Option<bool> {
    if one.is_empty() || other.is_empty() {
        return None;
    }
    match (one.as_array(), other.as_array()) {
        (Some(left), Some(right)) if left.values.element_type() != right.values.element_type() => {
            return Some(array::all(left, right, |one, other| equals(one, other) == Some(true)));
        }
        (Some(_), Some(_)) => return Some(one == other),
        (None, None) if one.built_in_type() == other.built_in_type() => return Some(one == other),
        _ => {}
    }
    Some(common(one, other).is_some_and(|(one, other)| one == other))
}

/// The order of two values; `None` if one of them is null or they have no order.
pub(super) fn order(one: &Variant, other: &Variant) -> Option<Ordering> {
    let (one, other) = common(one, other)?;
    macro_rules! by {
        ($($name:ident)*) => {
            match (&*one, &*other) {
                $((Variant::$name(one), Variant::$name(other)) => one.partial_cmp(other),)*
                _ => None,
            }
        };
    }
    by!(SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double DateTime String)
}

/// Converts two scalars to the type with precedence. An array of length 1 is a scalar here.
pub(super) fn common<'a>(
    one: &'a Variant,
    other: &'a Variant,
) -> Option<(Cow<'a, Variant>, Cow<'a, Variant>)> {
    let (one, other) = (array::single(one), array::single(other));
    let (left, right) = (scalar_type(&one)?, scalar_type(&other)?);
    if left == right {
        return Some((one, other));
    }
    let to: T = if precedence(left)? < precedence(right)? { left } else { right };
    if to == left {
        let other = implicit(&other, to)?;
        Some((one, Cow::Owned(other)))
    } else {
        let one = implicit(&one, to)?;
        Some((Cow::Owned(one), other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{LocalizedText, UtcTime};

    #[test]
    fn values_are_converted_to_the_type_with_precedence() {
        let equal = |one: Variant, other: Variant| equals(&one, &other);
        assert_eq!(equal(500u16.into(), 500i32.into()), Some(true));
        assert_eq!(equal(500u16.into(), 500.5f64.into()), Some(false));
        assert_eq!(equal(LocalizedText::new("en", "on").into(), "on".into()), Some(true));
        assert_eq!(equal("5".into(), 5i64.into()), Some(true));
        assert_eq!(equal("five".into(), 5i64.into()), Some(false));
        assert_eq!(equal(UtcTime::from_ticks(5).into(), 5i64.into()), Some(false));
        assert_eq!(equal(Variant::Empty, 5i64.into()), None);
        assert_eq!(equal(f64::NAN.into(), f64::NAN.into()), Some(false));
        assert_eq!(equal(vec![1i32].into(), vec![1i32].into()), Some(true));
        assert_eq!(equal(vec![1i32].into(), 1i64.into()), Some(true));
        assert_eq!(equal(vec![1i32, 1].into(), 1i32.into()), Some(false));
        assert_eq!(equal(vec![1i32, 2].into(), vec![1.0, 2.0].into()), Some(true));
        assert_eq!(equal(vec![1i32, 2].into(), vec![1.0, 2.5].into()), Some(false));
        assert_eq!(equal(vec![1i32, 2].into(), vec![1.0].into()), Some(false));
    }

    #[test]
    fn only_ordered_types_are_ordered() {
        let order = |one: Variant, other: Variant| order(&one, &other);
        assert_eq!(order(1u8.into(), 2.5f32.into()), Some(Ordering::Less));
        assert_eq!(order("b".into(), "a".into()), Some(Ordering::Greater));
        assert_eq!(order(true.into(), false.into()), None);
        assert_eq!(order(true.into(), 0i32.into()), Some(Ordering::Greater));
        assert_eq!(order(f64::NAN.into(), 0i32.into()), None);
        assert_eq!(order(Variant::Empty, 0i32.into()), None);
        assert_eq!(order((-1i32).into(), u32::MAX.into()), None);
        assert_eq!(order((-1i64).into(), u32::MAX.into()), Some(Ordering::Less));
    }
}
