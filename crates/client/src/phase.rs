//! The phases of a connection.

use taktwerk_types::Instant;

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not connected and not connecting.
    Idle,
    /// Waiting for the next attempt.
    Waiting { until: Instant },
    /// The driver is connecting.
    Connecting { deadline: Instant },
    /// Hello, channel, endpoints, session: each step has its own deadline.
    Opening,
    /// Connected.
    Up,
    /// The session is being closed.
    Closing { deadline: Instant },
}

/// Statistics of connection attempts.
#[derive(Debug)]
pub(crate) struct Tries {
    /// Failures since the last success.
    pub(crate) failed: u32,
    /// When the current connection was established.
    pub(crate) up_since: Instant,
    /// Number of short-lived connections in a row.
    pub(crate) short_lived: u32,
    /// Whether a connection was ever established.
    pub(crate) was_up: bool,
}

impl Default for Tries {
    fn default() -> Self {
        Self { failed: 0, up_since: Instant::ZERO, short_lived: 0, was_up: false }
    }
}

impl Phase {
    pub(crate) fn deadline(self) -> Option<(Instant, &'static str)> {
        match self {
            Self::Waiting { until } => Some((until, "try to connect again")),
            Self::Connecting { deadline } => Some((deadline, "connect")),
            Self::Closing { deadline } => Some((deadline, "close the session")),
            Self::Idle | Self::Opening | Self::Up => None,
        }
    }
}
