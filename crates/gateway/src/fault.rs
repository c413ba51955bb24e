//! Error messages of sources.

use core::time::Duration;
use std::io;
use std::path::Path;

/// Why a source failed. It is retried with growing pauses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The connection attempt timed out.
    #[error("connection to {target} timed out after {after:?}")]
    ConnectTimeout {
        /// Host and port.
        target: String,
        /// The deadline.
        after: Duration,
    },
    /// The connection failed.
    #[error("cannot connect to {target}: {reason}")]
    Connect {
        /// Host and port, device, file or program.
        target: String,
        /// Why.
        reason: String,
    },
    /// The peer is connected but did not answer.
    #[error("{target} did not answer within {after:?}")]
    NoAnswer {
        /// What was requested.
        target: String,
        /// The deadline.
        after: Duration,
    },
    /// The peer closed the connection.
    #[error("{target} closed the connection")]
    Closed {
        /// Host and port.
        target: String,
    },
    /// Anything else.
    #[error("{target}: {reason}")]
    Other {
        /// The affected object.
        target: String,
        /// What happened.
        reason: String,
    },
    /// The source has ended; no more values will come.
    #[error("{0} has ended")]
    Ended(String),
}

impl Fault {
    /// A fault with a reason.
    pub fn other(target: impl Into<String>, reason: impl ToString) -> Self {
        Self::Other { target: target.into(), reason: reason.to_string() }
    }

    /// A file of a setting cannot be read.
    pub fn unreadable(key: &str, file: &Path, error: &io::Error) -> Self {
        Self::other(format!("cannot read {}, the {key}", file.display()), plain(error))
    }

    /// A failed connection.
    pub fn connect(target: impl Into<String>, error: &io::Error) -> Self {
        Self::Connect { target: target.into(), reason: plain(error) }
    }
}

/// The text of an operating system error, without its number.
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
    fn unreadable_files_are_named_with_their_setting() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let text = Fault::unreadable("password_file", Path::new("plc.password"), &missing).to_string();
        assert!(text.starts_with("cannot read plc.password, the password_file: "), "{text}");
    }

    #[test]
    fn numbers_of_the_operating_system_are_not_shown() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(
            Fault::connect("plc:502", &refused).to_string(),
            "cannot connect to plc:502: connection refused"
        );
    }
}
