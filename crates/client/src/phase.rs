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

/// How the attempts to connect have gone.
#[derive(Debug)]
pub(crate) struct Tries {
    /// Since the last success.
    pub(crate) failed: u32,
    /// When the connection that is up came up.
    pub(crate) up_since: Instant,
    /// How many connections in a row did not last.
    pub(crate) short_lived: u32,
    /// Whether the target has been reached once.
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
