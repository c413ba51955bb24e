//! Where a client stands.

use taktwerk_types::Instant;

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is wanted.
    Idle,
    /// Until the next attempt.
    Waiting { until: Instant },
    /// The driver makes a connection.
    Connecting { deadline: Instant },
    /// Hello, channel, endpoints, session: each step has its own deadline.
    Opening,
    /// Messages flow.
    Up,
    /// The session is being closed.
    Closing { deadline: Instant },
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
