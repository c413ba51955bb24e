//! What keeps a publisher or a subscriber from running, and what to do about it.

use std::io;
use taktwerk_pubsub::config::Problem;
use taktwerk_types::StatusCode;

/// A publisher or subscriber could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PubSubError {
    /// The configuration cannot run.
    #[error("the PubSub configuration cannot run: {}", list(.0))]
    Configuration(Vec<Problem>),
    /// An address is none, or cannot be found.
    #[error("{url:?} is no address to publish or subscribe at: {reason}")]
    Address {
        /// What was configured.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A password would cross a network where anybody can read it.
    #[error(
        "{url:?}: the password would cross the network readably. Write mqtts:// (TLS), or allow it: \
         --allow-plaintext-password, in a program MqttOptions::allow_plaintext_password"
    )]
    PlaintextPassword {
        /// The broker, without user and password.
        url: String,
    },
    /// What was received before cannot be read, or not be kept.
    #[error(
        "{}: {reason}; without the saved sequence numbers, replayed messages could be accepted: repair the file, \
         or remove it to start again", path.display()
    )]
    ReplayFloor {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such network interface.
    #[error("there is no network interface {name:?}: {reason}")]
    Interface {
        /// What was configured.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A socket could not be opened or set up.
    #[error("cannot {doing}: {source}{advice}")]
    Socket {
        /// What was tried.
        doing: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do, beginning with a colon; or nothing.
        advice: &'static str,
    },
    /// The thread could not be started or given what was asked for it.
    #[error("cannot start the {thread} thread: {source}")]
    Thread {
        /// Which one.
        thread: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// What was asked for needs a right that this process does not have.
    #[error("{what} is not permitted ({source}): {advice}")]
    NotPermitted {
        /// What was asked for.
        what: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        advice: &'static str,
    },
}

impl PubSubError {
    pub(crate) fn address(url: &str, reason: impl Into<String>) -> Self {
        Self::Address { url: taktwerk_pubsub::config::without_credentials(url), reason: reason.into() }
    }

    pub(crate) fn socket(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let advice = match source.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::NODEV | rustix::io::Errno::NETUNREACH) => {
                ": no route leads there; name the network interface, for example lo"
            }
            Some(rustix::io::Errno::ADDRINUSE) => {
                ": another program uses this port for itself alone; stop it or choose another port"
            }
            Some(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => {
                ": run as root or give the program the capability CAP_NET_RAW"
            }
            _ => "",
        };
        Self::Socket { doing: doing.into(), source, advice }
    }

    /// The matching status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Configuration(_) | Self::Address { .. } | Self::Interface { .. } => {
                StatusCode::BAD_CONFIGURATION_ERROR
            }
            Self::PlaintextPassword { .. } => StatusCode::BAD_SECURITY_MODE_INSUFFICIENT,
            Self::ReplayFloor { .. } => StatusCode::BAD_CONFIGURATION_ERROR,
            Self::Socket { .. } => StatusCode::BAD_COMMUNICATION_ERROR,
            Self::Thread { .. } => StatusCode::BAD_RESOURCE_UNAVAILABLE,
            Self::NotPermitted { .. } => StatusCode::BAD_USER_ACCESS_DENIED,
        }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
