//! The time of one turn.

use taktwerk_types::{Instant, UtcTime};

/// The clock readings at the start of a turn. The driver reads the clocks once per turn; the core never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// For deadlines; monotonic.
    pub instant: Instant,
    /// For timestamps on the wire.
    pub utc: UtcTime,
}
