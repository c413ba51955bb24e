//! Why a source does not work, as people read it.

use core::time::Duration;
use std::io;

/// Why a source has failed. It is tried again, later each time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The network did not answer.
    #[error("connection to {target} timed out after {after:?}")]
    ConnectTimeout {
        /// Host and port.
        target: String,
        /// The deadline.
        after: Duration,
    },
    /// There is no connection.
    #[error("cannot connect to {target}: {reason}")]
    Connect {
        /// Host and port, device, file, program.
        target: String,
        /// Why.
        reason: String,
    },
    /// There is a connection and no answer.
    #[error("{target} did not answer within {after:?}")]
    NoAnswer {
        /// What was asked.
        target: String,
        /// The deadline.
        after: Duration,
    },
    /// The connection is gone.
    #[error("{target} closed the connection")]
    Closed {
        /// Host and port.
        target: String,
    },
    /// Anything else.
    #[error("{target}: {reason}")]
    Other {
        /// What it is about.
        target: String,
        /// What happened.
        reason: String,
    },
    /// There is nothing more to come.
    #[error("{0} has ended")]
    Ended(String),
}

impl Fault {
    /// A fault with a reason.
    pub fn other(target: impl Into<String>, reason: impl ToString) -> Self {
        Self::Other { target: target.into(), reason: reason.to_string() }
    }

    /// A connection that was not made.
    pub fn connect(target: impl Into<String>, error: &io::Error) -> Self {
        Self::Connect { target: target.into(), reason: plain(error) }
    }
}

/// What an error of the operating system says, without its number.
#[must_use]
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text.get(..end).unwrap_or(&text).to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_operating_system_are_not_shown() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(
            Fault::connect("plc:502", &refused).to_string(),
            "cannot connect to plc:502: connection refused"
        );
    }
}
