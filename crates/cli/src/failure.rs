//! How a command can fail, and the exit code that scripts see.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use taktwerk_generator::GeneratorError;
use taktwerk_lab::validity::{Invalid, in_words};
use taktwerk_load::connection::SecretError;

/// Why a command did not do what it was asked to. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// There is no connection, or the server refused the session.
    #[error("{0}")]
    Connect(String),
    /// The server answered, but with a Bad status for something. What it was has been printed.
    #[error("{0}")]
    BadStatus(String),
    /// The measurement is worth nothing.
    #[error("the measurement is invalid: {}", in_words(.0))]
    Invalid(Vec<Invalid>),
    /// The measurement is worth nothing, as another program said.
    #[error("the measurement is invalid: {0}")]
    Worthless(String),
    /// A simulation gave no outcome.
    #[error("{0}")]
    Simulation(String),
    /// What was measured is not what was demanded; it has been printed.
    #[error("does not hold: {0}")]
    Threshold(String),
    /// Something is missing on this machine.
    #[error("{0}")]
    Environment(String),
    /// A program that was run for the user ended with a code of its own, which is passed on.
    #[error("{line} ended with {status}")]
    Ended {
        /// The command line.
        line: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// Nobody reads the output any more (`taktwerk … | head`), which is nothing to complain about.
    #[error("broken pipe: the reader of the output has gone")]
    Unread,
    /// Interrupted; what had been measured or read until then has been printed.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The exit code. The list is part of the interface: scripts depend on it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Connect(_) => 3,
            Self::BadStatus(_) => 4,
            Self::Invalid(_) | Self::Worthless(_) | Self::Simulation(_) => 5,
            Self::Environment(_) => 6,
            Self::Threshold(_) => 99,
            // As shells do it.
            Self::Ended { status, .. } => {
                let by_signal = status.signal().map_or(1, |signal| 128 + signal);
                u8::try_from(status.code().unwrap_or(by_signal)).unwrap_or(1)
            }
            Self::Interrupted => 130,
            // As those whom SIGPIPE ends.
            Self::Unread => 141,
        })
    }
}

/// A load, or a connection.
impl From<GeneratorError> for Failure {
    fn from(error: GeneratorError) -> Self {
        match error {
            GeneratorError::Usage(text) => Self::Usage(text),
            GeneratorError::Connect(text) => Self::Connect(text),
            GeneratorError::BadStatus(text) => Self::BadStatus(text),
            GeneratorError::Invalid(reasons) => Self::Invalid(reasons),
            GeneratorError::Environment(text) => Self::Environment(text),
            GeneratorError::Interrupted => Self::Interrupted,
        }
    }
}

/// A password or token that was to be read from a file.
impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Self {
        GeneratorError::from(error).into()
    }
}

/// The output cannot be written.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        Self::Environment(format!("cannot write the output: {error}"))
    }
}
