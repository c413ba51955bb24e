//! A reading of a tag.

use taktwerk_types::{DataValue, StatusCode, UtcTime, Variant};

/// A reading of a tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The value.
    pub value: Variant,
    /// Its status.
    pub status: StatusCode,
    /// The source timestamp, if the source has one.
    pub time: Option<UtcTime>,
}

impl Reading {
    /// A good value.
    pub fn good(value: impl Into<Variant>) -> Self {
        Self { value: value.into(), status: StatusCode::GOOD, time: None }
    }

    /// A missing value with its reason.
    #[must_use]
    pub fn bad(status: StatusCode) -> Self {
        Self { value: Variant::Empty, status, time: None }
    }

    /// A value read from another server.
    #[must_use]
    pub fn of(data: DataValue) -> Self {
        let status = data.status();
        Self { value: data.value.unwrap_or_default(), status, time: data.source_timestamp }
    }

    /// The same with a source timestamp.
    #[must_use]
    pub fn at(mut self, time: Option<UtcTime>) -> Self {
        self.time = time.filter(|time| !time.is_null());
        self
    }
}
