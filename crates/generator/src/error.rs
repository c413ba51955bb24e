//! Errors of loads. Each message says what to do.

use taktwerk_load::connection::SecretError;
use taktwerk_load::validity::{Invalid, in_words};

/// Why a load has no result, or an invalid one.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// The specification is invalid.
    #[error("{0}")]
    Usage(String),
    /// Connecting failed, or the server refused the session.
    #[error("{0}")]
    Connect(String),
    /// The server returned a Bad status.
    #[error("{0}")]
    BadStatus(String),
    /// The measurement is invalid, for these reasons.
    #[error("the measurement is invalid: {}", in_words(.0))]
    Invalid(Vec<Invalid>),
    /// Something is missing on this machine.
    #[error("{0}")]
    Environment(String),
    /// The user stopped the load.
    #[error("interrupted")]
    Interrupted,
}

impl GeneratorError {
    /// Something is missing on this machine, or a system call failed.
    pub fn environment(error: impl core::fmt::Display) -> Self {
        Self::Environment(error.to_string())
    }
}

/// Reading a password or token from a file failed.
impl From<SecretError> for GeneratorError {
    fn from(error: SecretError) -> Self {
        match error {
            SecretError::NoToken(_) | SecretError::Read { .. } => Self::Usage(error.to_string()),
        }
    }
}
