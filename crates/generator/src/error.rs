//! Why a load gave no result, or one that does not count. Each message says what to do about it.

use taktwerk_load::connection::SecretError;
use taktwerk_load::validity::{Invalid, in_words};

/// Why a load gave no result, or one that does not count.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// The specification makes no sense.
    #[error("{0}")]
    Usage(String),
    /// There is no connection, or the server refused the session.
    #[error("{0}")]
    Connect(String),
    /// The server answered, but with a Bad status for something.
    #[error("{0}")]
    BadStatus(String),
    /// The measurement is invalid, for these reasons.
    #[error("the measurement is invalid: {}", in_words(.0))]
    Invalid(Vec<Invalid>),
    /// Something is missing on this machine.
    #[error("{0}")]
    Environment(String),
    /// The attendant asked for the end.
    #[error("interrupted")]
    Interrupted,
}

impl GeneratorError {
    /// Something is missing on this machine, or fails here.
    pub fn environment(error: impl core::fmt::Display) -> Self {
        Self::Environment(error.to_string())
    }
}

/// A password or token that was to be read from a file.
impl From<SecretError> for GeneratorError {
    fn from(error: SecretError) -> Self {
        match error {
            SecretError::NoToken(_) | SecretError::Read { .. } => Self::Usage(error.to_string()),
        }
    }
}
