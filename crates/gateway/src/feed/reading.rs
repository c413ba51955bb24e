//! What a source says of a tag.

use taktwerk_types::{DataValue, StatusCode, UtcTime, Variant};

/// What a source says of a tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The value.
    pub value: Variant,
    /// Its status.
    pub status: StatusCode,
    /// When it was made, if the source says so.
    pub time: Option<UtcTime>,
}

impl Reading {
    /// A good value.
    pub fn good(value: impl Into<Variant>) -> Self {
        Self { value: value.into(), status: StatusCode::GOOD, time: None }
    }

    /// There is no value, and why.
    #[must_use]
    pub fn bad(status: StatusCode) -> Self {
        Self { value: Variant::Empty, status, time: None }
    }

    /// A value of another server.
    #[must_use]
    pub fn of(data: DataValue) -> Self {
        let status = data.status();
        Self { value: data.value.unwrap_or_default(), status, time: data.source_timestamp }
    }

    /// The same with the time when it was made.
    #[must_use]
    pub fn at(mut self, time: Option<UtcTime>) -> Self {
        self.time = time.filter(|time| !time.is_null());
        self
    }
}
