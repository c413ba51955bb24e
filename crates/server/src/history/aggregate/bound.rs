//! Bounding values: the value of a Variable at a time (Part 13 §3.1.8, §3.1.9).

use super::{Configuration, bits, with_bits};
use crate::history::store::{HistoryStore, HistoryValue, NodeKey, Order, ReadLimit, Span, StoreError};
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// How values between raw values are determined.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Values hold until the next one.
    pub stepped: bool,
    /// Which values are usable.
    pub configuration: Configuration,
}

impl Rules {
    /// The rules for a Variable.
    #[must_use]
    pub const fn new(stepped: bool, configuration: Configuration) -> Self {
        Self { stepped, configuration }
    }

    fn is_usable(&self, value: &HistoryValue) -> bool {
        self.configuration.is_usable(value.status)
    }
}

/// A value as a number for calculations. Booleans are 0 and 1.
pub(crate) fn number(value: &Variant) -> Option<f64> {
    match value {
        Variant::Boolean(value) => Some(f64::from(u8::from(*value))),
        value => value.as_f64(),
    }
}

/// A number in the data type of another value, rounded for integers.
pub(crate) fn like(other: &Variant, number: f64) -> Variant {
    let whole = number.round();
    match other {
        Variant::Boolean(_) => Variant::Boolean(whole != 0.0),
        Variant::SByte(_) => Variant::SByte(whole as i8),
        Variant::Byte(_) => Variant::Byte(whole as u8),
        Variant::Int16(_) => Variant::Int16(whole as i16),
        Variant::UInt16(_) => Variant::UInt16(whole as u16),
        Variant::Int32(_) => Variant::Int32(whole as i32),
        Variant::UInt32(_) => Variant::UInt32(whole as u32),
        Variant::Int64(_) => Variant::Int64(whole as i64),
        Variant::UInt64(_) => Variant::UInt64(whole as u64),
        Variant::Float(_) => Variant::Float(number as f32),
        _ => Variant::Double(number),
    }
}

/// A value made for a time.
fn made(time: UtcTime, value: Variant, status: StatusCode) -> HistoryValue {
    HistoryValue { source: time, server: time, status: with_bits(status, bits::INTERPOLATED), value }
}

/// The result for a time without data.
pub(crate) fn no_data(time: UtcTime) -> HistoryValue {
    HistoryValue { source: time, server: time, status: StatusCode::BAD_NO_DATA, value: Variant::Empty }
}

/// The value at a time on the line through two others. `None` if they are not numbers of the same type.
fn on_line(one: &HistoryValue, other: &HistoryValue, time: UtcTime) -> Option<Variant> {
    if one.value.built_in_type() != other.value.built_in_type() || matches!(one.value, Variant::Boolean(_)) {
        return None;
    }
    let (from, to) = (number(&one.value)?, number(&other.value)?);
    let span = (other.source.ticks() - one.source.ticks()) as f64;
    let part = (time.ticks() - one.source.ticks()) as f64 / span;
    Some(like(&one.value, from + (to - from) * part))
}

/// The interpolated bounding value at a time (Part 13 §3.1.8). Values must be sorted by time; unusable ones are
/// ignored.
#[must_use]
pub fn interpolated(values: &[HistoryValue], time: UtcTime, rules: Rules) -> HistoryValue {
    let at = values.partition_point(|value| value.source < time);
    let exact = values.get(at).filter(|value| value.source == time);
    if let Some(value) = exact.filter(|value| rules.is_usable(value)) {
        return value.clone();
    }
    let (earlier, later) = values.split_at(at);
    let mut before = earlier.iter().rev().enumerate().filter(|(_, value)| rules.is_usable(value));
    let Some((skipped, early)) = before.next() else { return no_data(time) };
    let after = later.iter().enumerate().find(|(_, value)| rules.is_usable(value));
    let sub_normal = StatusCode::UNCERTAIN_DATA_SUB_NORMAL;
    let is_clean = skipped == 0 && exact.is_none() && early.status.is_good();
    if rules.stepped {
        let status = if is_clean && !later.is_empty() { StatusCode::GOOD } else { sub_normal };
        return made(time, early.value.clone(), status);
    }
    match after {
        Some((skipped, late)) => {
            let status =
                if is_clean && skipped == 0 && late.status.is_good() { StatusCode::GOOD } else { sub_normal };
            let value = on_line(early, late, time).unwrap_or_else(|| early.value.clone());
            made(time, value, status)
        }
        None => {
            let slope = rules.configuration.use_sloped_extrapolation;
            let line = before.next().filter(|_| slope).and_then(|(_, first)| on_line(first, early, time));
            made(time, line.unwrap_or_else(|| early.value.clone()), sub_normal)
        }
    }
}

/// The simple bounding value at a time (Part 13 §3.1.9): only the adjacent raw values count, whatever their quality.
#[must_use]
pub fn simple(values: &[HistoryValue], time: UtcTime, rules: Rules) -> HistoryValue {
    let at = values.partition_point(|value| value.source < time);
    if let Some(value) = values.get(at).filter(|value| value.source == time) {
        return value.clone();
    }
    let early = at.checked_sub(1).and_then(|before| values.get(before));
    let Some(early) = early.filter(|value| rules.is_usable(value)) else { return no_data(time) };
    let quality =
        if early.status.is_good() { StatusCode::GOOD } else { StatusCode::UNCERTAIN_DATA_SUB_NORMAL };
    if rules.stepped {
        return made(time, early.value.clone(), quality);
    }
    let sub_normal = StatusCode::UNCERTAIN_DATA_SUB_NORMAL;
    match values.get(at).filter(|value| rules.is_usable(value)) {
        Some(late) => {
            let status = if late.status.is_good() { quality } else { sub_normal };
            let value = on_line(early, late, time).unwrap_or_else(|| early.value.clone());
            made(time, value, status)
        }
        None => made(time, early.value.clone(), sub_normal),
    }
}

/// Maximum number of values on one side that are searched for usable ones.
const NEIGHBOURS_MAX: usize = 4_096;

/// Maximum size of those values, in bytes.
const NEIGHBOUR_BYTES_MAX: usize = 4 << 20;

/// Reads the values needed for a bounding value, sorted by time: up to `usable` usable values on one side of `time`,
/// with all unusable ones in between.
pub(crate) fn neighbours(
    store: &dyn HistoryStore,
    node: &NodeKey,
    time: UtcTime,
    order: Order,
    usable: usize,
    rules: Rules,
) -> Result<Vec<HistoryValue>, StoreError> {
    let mut found: Vec<HistoryValue> = Vec::new();
    let mut from = time;
    let mut limit = ReadLimit { count: usable + 1, bytes: NEIGHBOUR_BYTES_MAX };
    loop {
        let span = match order {
            Order::Forward => Span { first: from, ..Span::ALL },
            Order::Backward => Span { last: from, ..Span::ALL },
        };
        let before = found.len();
        store.read(node, span, order, limit, &mut found)?;
        let left = limit.behind(found.iter().skip(before));
        let count = found.iter().filter(|value| rules.is_usable(value)).count();
        let is_much = found.len() >= NEIGHBOURS_MAX || left.bytes == 0;
        if !left.is_reached() || count >= usable || is_much {
            break;
        }
        let step = if order == Order::Forward { 1 } else { -1 };
        from =
            found.last().map_or(from, |last| UtcTime::from_ticks(last.source.ticks().saturating_add(step)));
        limit = ReadLimit { count: (limit.count * 4).min(1_024), ..left };
    }
    if order == Order::Backward {
        found.reverse();
    }
    Ok(found)
}

/// The value at a time, read from a store (Part 11 §6.5.5).
pub(crate) fn at_time(
    store: &dyn HistoryStore,
    node: &NodeKey,
    time: UtcTime,
    rules: Rules,
    simple_bounds: bool,
) -> Result<HistoryValue, StoreError> {
    let mut values = neighbours(store, node, time, Order::Backward, 2, rules)?;
    if values.last().is_none_or(|last| last.source != time || !rules.is_usable(last)) {
        let behind = UtcTime::from_ticks(time.ticks().saturating_add(1));
        values.extend(neighbours(store, node, behind, Order::Forward, 1, rules)?);
    }
    // Bad_NoData means that neither method gives a value.
    Ok(if simple_bounds { simple(&values, time, rules) } else { interpolated(&values, time, rules) })
}
