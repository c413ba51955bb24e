//! Time as a parameter.

use taktwerk_types::{Instant, UtcTime};

/// The time of a turn: read once by the driver and passed to all functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Now {
    /// Monotonic time, for deadlines.
    pub instant: Instant,
    /// Wall time, for timestamps.
    pub utc: UtcTime,
}

/// Converts milliseconds to nanoseconds; negative values and NaN become zero.
pub(crate) fn nanos(milliseconds: f64) -> u64 {
    taktwerk_types::time::nanos_from_millis(milliseconds)
}
