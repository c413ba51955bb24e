//! Failures of requests by cause, and the status that the peer receives.

use core::fmt;
use taktwerk_types::{DecodeError, StatusCode};

/// Why a whole request fails. Single operations of a request fail with a plain [`StatusCode`] instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The client broke a rule.
    Peer {
        /// The status for the client.
        status: StatusCode,
        /// The clause that the client violated.
        clause: &'static str,
    },
    /// A limit of this server was reached.
    Limit {
        /// The status for the client.
        status: StatusCode,
        /// The field of [`Limits`](crate::Limits).
        limit: &'static str,
    },
    /// The server cannot or may not do it.
    Local {
        /// The status for the client.
        status: StatusCode,
        /// The reason, for the log.
        why: &'static str,
    },
    /// A signature, certificate or secret is invalid.
    Crypto {
        /// The status for the client.
        status: StatusCode,
    },
}

/// The consequences of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The request is answered with a ServiceFault.
    Reply,
    /// The request is answered with a ServiceFault, and the session is closed.
    CloseSession,
}

impl Fault {
    pub(crate) const fn peer(status: StatusCode, clause: &'static str) -> Self {
        Self::Peer { status, clause }
    }

    pub(crate) const fn limit(status: StatusCode, limit: &'static str) -> Self {
        Self::Limit { status, limit }
    }

    pub(crate) const fn local(status: StatusCode, why: &'static str) -> Self {
        Self::Local { status, why }
    }

    /// The status of the ServiceFault.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Peer { status, .. }
            | Self::Limit { status, .. }
            | Self::Local { status, .. }
            | Self::Crypto { status } => status,
        }
    }

    /// The consequences of the fault. This is the only place that decides them.
    pub(crate) fn severity(self) -> Severity {
        // Part 4 §5.7.2.1: a request before activation ends the session.
        if self.status() == StatusCode::BAD_SESSION_NOT_ACTIVATED {
            Severity::CloseSession
        } else {
            Severity::Reply
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer { status, clause } => write!(f, "{status}: the client broke {clause}"),
            Self::Limit { status, limit } => write!(f, "{status}: {limit} is reached"),
            Self::Local { status, why } => write!(f, "{status}: {why}"),
            Self::Crypto { status } => write!(f, "{status}: a security check failed"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Limit { what, .. } => Self::limit(error.status(), what),
            _ => Self::peer(error.status(), "Part 6 §5.2"),
        }
    }
}
