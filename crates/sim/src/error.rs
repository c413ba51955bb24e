//! Why a simulation with a fixed question has no outcome.

use crate::violation::Violation;
use core::time::Duration;

/// The simulation gives no outcome.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The setup or the settings contradict themselves.
    #[error("{key} is {value}: {expected}")]
    Invalid {
        /// Which field.
        key: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// No session came about.
    #[error(
        "no session within {0:?} of virtual time over this link: {1}. Check the rate, the loss and the delay"
    )]
    NoSession(Duration, String),
    /// A request has no answer, or not the one that was asked for.
    #[error("no answer over this link: {0}. Check the rate, the loss and the delay")]
    NoAnswer(String),
    /// The stack broke a promise: an error of this software.
    #[error("{0}")]
    Broken(#[from] Violation),
}
