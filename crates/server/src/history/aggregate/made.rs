//! The result of an aggregate, before its time is set.

use super::bits;
use super::bound::number;
use taktwerk_types::{StatusCode, UtcTime, Variant};

pub(super) const SUB_NORMAL: StatusCode = StatusCode::UNCERTAIN_DATA_SUB_NORMAL;

/// A result.
pub(super) struct Made {
    pub(super) value: Variant,
    pub(super) status: StatusCode,
    pub(super) bits: u32,
    /// The time, if it is not the start of the interval.
    pub(super) time: Option<UtcTime>,
    /// Whether missing data at one end make the result partial.
    pub(super) may_be_partial: bool,
}

impl Made {
    pub(super) fn new(value: Variant, status: StatusCode, bits: u32) -> Self {
        Self { value, status, bits, time: None, may_be_partial: true }
    }

    /// The result with a changed number.
    pub(super) fn with(mut self, change: impl FnOnce(f64) -> f64) -> Self {
        if let Some(value) = number(&self.value) {
            self.value = change(value).into();
        }
        self
    }
}

pub(super) fn calculated(value: Variant, status: StatusCode) -> Made {
    Made::new(value, status, bits::CALCULATED)
}
