//! The error type.

/// Why an attack could not be run. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum AttackError {
    /// The server does not start, or something is missing on this machine.
    #[error("{0}")]
    Environment(String),
}

impl AttackError {
    pub(crate) fn environment(error: impl core::fmt::Display) -> Self {
        Self::Environment(error.to_string())
    }
}
