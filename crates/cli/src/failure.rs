//! The error type of commands, and exit codes.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use taktwerk_generator::GeneratorError;
use taktwerk_lab::validity::{Invalid, in_words};
use taktwerk_load::connection::SecretError;

/// Why a command failed. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line or a file is invalid.
    #[error("{0}")]
    Usage(String),
    /// The connection failed, or the server refused the session.
    #[error("{0}")]
    Connect(String),
    /// The server returned a Bad status, which has been printed.
    #[error("{0}")]
    BadStatus(String),
    /// The measurement is invalid.
    #[error("the measurement is invalid: {}", in_words(.0))]
    Invalid(Vec<Invalid>),
    /// The measurement is invalid, according to another program.
    #[error("the measurement is invalid: {0}")]
    InvalidReported(String),
    /// A simulation failed.
    #[error("{0}")]
    Simulation(String),
    /// A measured value does not meet its threshold. The value has been printed.
    #[error("does not hold: {0}")]
    Threshold(String),
    /// Something is missing on this machine.
    #[error("{0}")]
    Environment(String),
    /// A program that was started for the user failed. Its exit code is passed on.
    #[error("{line} ended with {status}")]
    Ended {
        /// The command line.
        line: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// The reader of the output has closed the pipe (`taktwerk … | head`). Not reported.
    #[error("broken pipe: the reader of the output has gone")]
    BrokenPipe,
    /// Interrupted. Partial results have been printed.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The exit code. The codes are part of the interface, because scripts depend on them.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Connect(_) => 3,
            Self::BadStatus(_) => 4,
            Self::Invalid(_) | Self::InvalidReported(_) | Self::Simulation(_) => 5,
            Self::Environment(_) => 6,
            Self::Threshold(_) => 99,
            // The convention of shells.
            Self::Ended { status, .. } => {
                let by_signal = status.signal().map_or(1, |signal| 128 + signal);
                u8::try_from(status.code().unwrap_or(by_signal)).unwrap_or(1)
            }
            Self::Interrupted => 130,
            // 128 + SIGPIPE.
            Self::BrokenPipe => 141,
        })
    }
}

/// An error of a load generator or a connection.
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

/// A password or token could not be read from its file.
impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Self {
        GeneratorError::from(error).into()
    }
}

/// The output could not be written.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Self::Environment(format!("cannot write the output: {error}"))
    }
}
