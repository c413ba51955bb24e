//! Errors of publishers and subscribers, with advice.

use std::io;
use taktwerk_pubsub::config::Problem;
use taktwerk_types::StatusCode;

/// A publisher or subscriber could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PubSubError {
    /// The configuration is invalid.
    #[error("the PubSub configuration cannot run: {}", list(.0))]
    Configuration(Vec<Problem>),
    /// An address is invalid or cannot be resolved.
    #[error("{url:?} is not an address to publish or subscribe at: {reason}")]
    Address {
        /// The configured URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A password would be sent over a network without encryption.
    #[error(
        "{url:?}: the password would cross the network unencrypted. Use mqtts:// (TLS), or allow it: \
         --allow-plaintext-password, in a program MqttOptions::allow_plaintext_password"
    )]
    PlaintextPassword {
        /// The broker's URL, without user and password.
        url: String,
    },
    /// The received sequence numbers cannot be read or saved.
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
        /// The configured name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A socket could not be opened or set up.
    #[error("cannot {doing}: {source}{advice}")]
    Socket {
        /// What was tried, as a verb phrase.
        doing: String,
        /// The kernel's error.
        source: io::Error,
        /// Advice that begins with a colon, or empty.
        advice: &'static str,
    },
    /// A thread could not be started or configured.
    #[error("cannot start the {thread} thread: {source}")]
    Thread {
        /// Name of the thread.
        thread: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// This process lacks a permission.
    #[error("{what} is not permitted ({source}): {advice}")]
    NotPermitted {
        /// The action that is not permitted.
        what: String,
        /// The kernel's error.
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
                ": another program uses this port exclusively; stop it or choose another port"
            }
            Some(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => {
                ": run as root or give the program the capability CAP_NET_RAW"
            }
            _ => "",
        };
        Self::Socket { doing: doing.into(), source, advice }
    }

    /// The corresponding StatusCode.
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
