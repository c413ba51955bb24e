//! Errors of simulations.

use crate::violation::Violation;
use core::time::Duration;

/// Why a simulation has no outcome.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The setup or the settings are invalid.
    #[error("{key} is {value}: {expected}")]
    Invalid {
        /// The field.
        key: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
    /// There was no session.
    #[error("no session within {0:?} of virtual time over this link: {1}. Check its rate, loss and delay")]
    NoSession(Duration, String),
    /// A request has no answer, or an unexpected one.
    #[error("no answer over this link: {0}. Check its rate, loss and delay")]
    NoAnswer(String),
    /// The stack broke a promise: a bug.
    #[error("{0}")]
    Broken(#[from] Violation),
}
