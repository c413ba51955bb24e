//! DataChangeFilters (Part 4 §7.22.2), checked against the node.

use super::item::{Deadband, Trigger, moved};
use taktwerk_schema::{DataChangeFilter, DeadbandType, Range};
use taktwerk_types::{ArrayValues, ExtensionObject, StatusCode, Variant};

/// A checked filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Filter {
    pub(crate) trigger: Trigger,
    pub(crate) deadband: Deadband,
}

impl Filter {
    /// The filter that applies if a client requests none.
    pub(crate) const DEFAULT: Self = Self { trigger: Trigger::StatusValue, deadband: None };

    /// Checks a filter for an item. `is_value`: it monitors a Value attribute; `numeric`: the value is a number;
    /// `range` finds the node's EURange for percent deadbands.
    ///
    /// # Errors
    /// The status of the item's result: Bad_FilterNotAllowed, Bad_MonitoredItemFilterUnsupported,
    /// Bad_MonitoredItemFilterInvalid or Bad_DeadbandFilterInvalid.
    pub(crate) fn check(
        filter: &ExtensionObject,
        is_value: bool,
        numeric: bool,
        range: impl FnOnce() -> Option<Range>,
    ) -> Result<Self, StatusCode> {
        if filter.is_null() {
            return Ok(Self::DEFAULT);
        }
        if !is_value {
            return Err(StatusCode::BAD_FILTER_NOT_ALLOWED);
        }
        if !filter.is::<DataChangeFilter>() {
            return Err(StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED);
        }
        let filter: DataChangeFilter =
            filter.decode().map_err(|_| StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID)?;
        let trigger = match filter.trigger.0 {
            0 => Trigger::Status,
            1 => Trigger::StatusValue,
            2 => Trigger::StatusValueTimestamp,
            _ => return Err(StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID),
        };
        let invalid = StatusCode::BAD_DEADBAND_FILTER_INVALID;
        let kind = i32::try_from(filter.deadband_type).map_err(|_| invalid)?;
        let deadband = match DeadbandType(kind) {
            DeadbandType::NONE => None,
            _ if !numeric => return Err(StatusCode::BAD_FILTER_NOT_ALLOWED),
            _ if !filter.deadband_value.is_finite() || filter.deadband_value < 0.0 => return Err(invalid),
            DeadbandType::ABSOLUTE => Some(filter.deadband_value),
            DeadbandType::PERCENT => {
                if filter.deadband_value > 100.0 {
                    return Err(invalid);
                }
                let range = range().ok_or(StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED)?;
                Some(filter.deadband_value / 100.0 * (range.high - range.low).abs())
            }
            _ => return Err(invalid),
        };
        Ok(Self { trigger, deadband })
    }
}

/// Whether any element of an array left the deadband, or its shape or type changed.
pub(crate) fn array_moved(old: &Variant, new: &Variant, deadband: f64) -> bool {
    let (Variant::Array(old), Variant::Array(new)) = (old, new) else { return old != new };
    if old.dimensions != new.dimensions || old.values.len() != new.values.len() {
        return true;
    }
    macro_rules! any_moved {
        ($($name:ident)*) => {
            match (&old.values, &new.values) {
                $((ArrayValues::$name(old), ArrayValues::$name(new)) => {
                    old.iter().zip(new).any(|(old, new)| moved(*old as f64, *new as f64, deadband))
                })*
                (old, new) => old != new,
            }
        };
    }
    any_moved!(SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::DataChangeTrigger;

    fn filter(kind: u32, value: f64) -> ExtensionObject {
        ExtensionObject::new(&DataChangeFilter {
            trigger: DataChangeTrigger(1),
            deadband_type: kind,
            deadband_value: value,
        })
    }

    #[test]
    fn deadbands_are_checked() {
        let range = || Some(Range { low: -50.0, high: 150.0 });
        let check = |kind, value, numeric| Filter::check(&filter(kind, value), true, numeric, range);
        assert_eq!(check(1, 0.5, true).unwrap().deadband, Some(0.5));
        assert_eq!(check(2, 10.0, true).unwrap().deadband, Some(20.0));
        assert_eq!(check(2, 101.0, true), Err(StatusCode::BAD_DEADBAND_FILTER_INVALID));
        assert_eq!(check(1, -1.0, true), Err(StatusCode::BAD_DEADBAND_FILTER_INVALID));
        assert_eq!(check(3, 1.0, true), Err(StatusCode::BAD_DEADBAND_FILTER_INVALID));
        assert_eq!(check(1, 1.0, false), Err(StatusCode::BAD_FILTER_NOT_ALLOWED));
        assert_eq!(
            Filter::check(&filter(2, 1.0), true, true, || None),
            Err(StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED)
        );
        assert_eq!(
            Filter::check(&filter(0, 0.0), false, true, range),
            Err(StatusCode::BAD_FILTER_NOT_ALLOWED)
        );
        assert_eq!(Filter::check(&ExtensionObject::NULL, false, false, || None), Ok(Filter::DEFAULT));
    }

    #[test]
    fn arrays_compare_by_element() {
        let old = Variant::from(vec![1.0f64, 2.0]);
        assert!(!array_moved(&old, &vec![1.4f64, 1.6].into(), 0.5));
        assert!(array_moved(&old, &vec![1.0f64, 2.6].into(), 0.5));
        assert!(array_moved(&old, &vec![1.0f64].into(), 0.5));
        assert!(array_moved(&old, &vec![1i32, 2].into(), 0.5));
    }
}
