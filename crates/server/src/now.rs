//! The time of one turn.

use taktwerk_types::{Instant, UtcTime};

/// What the clocks showed when a turn began. The driver reads them once per turn; the core never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// For deadlines; never goes back.
    pub instant: Instant,
    /// For timestamps on the wire.
    pub utc: UtcTime,
}
