//! Time as an argument.

use taktwerk_types::{Instant, UtcTime};

/// The time of a turn: read once by the driver, passed to everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Now {
    /// Monotonic time, for deadlines.
    pub instant: Instant,
    /// Wall time, for timestamps.
    pub utc: UtcTime,
}

/// Nanoseconds of a Duration in milliseconds; negative and not-a-number are zero.
pub(crate) fn nanos(milliseconds: f64) -> u64 {
    taktwerk_types::time::nanos_from_millis(milliseconds)
}
