//! Errors outside the protocol, with advice.

use crate::port_owner;
use core::net::SocketAddr;
use rustix::io::Errno;
use std::io;
use taktwerk_types::StatusCode;

/// A server could not listen on an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {reason}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    reason: String,
    /// The kernel's error.
    #[source]
    pub source: io::Error,
}

impl BindError {
    pub(crate) fn new(address: SocketAddr, source: io::Error) -> Self {
        let port = address.port();
        let reason = match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ADDRINUSE) => match port_owner::find(port) {
                Some(owner) => format!("port {port} is in use by {owner}; stop it or choose another port"),
                None => format!("port {port} is in use by another program; stop it or choose another port"),
            },
            Some(Errno::ACCESS | Errno::PERM) => {
                format!("this user may not use port {port}; choose one of 1024 or above (4840 is usual)")
            }
            Some(Errno::ADDRNOTAVAIL) => {
                "this machine has no such address; use 0.0.0.0 or [::] for all it has".to_owned()
            }
            Some(Errno::MFILE | Errno::NFILE) => {
                "no file descriptors are left; raise the limit (ulimit -n)".to_owned()
            }
            _ => source.to_string(),
        };
        Self { address, reason, source }
    }

    /// The corresponding StatusCode.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        StatusCode::BAD_COMMUNICATION_ERROR
    }
}

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server cannot listen on an address.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A thread could not be started, or its event loop could not be set up.
    #[error("cannot start shard {shard}: {source}")]
    Thread {
        /// Number of the shard.
        shard: usize,
        /// The kernel's error.
        source: io::Error,
    },
    /// The thread that records history could not be started.
    #[error("cannot start the recorder of history: {source}")]
    Recorder {
        /// The kernel's error.
        source: io::Error,
    },
    /// The durable subscriptions could not be read.
    #[error("cannot use the durable subscriptions: {reason}")]
    Durable {
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The file with the states of alarms could not be read.
    #[error("cannot use the file of alarm states: {source}")]
    Alarms {
        /// What is wrong.
        source: io::Error,
    },
    /// The trust lists cannot be watched, so changes would go unnoticed.
    #[error("cannot watch the trust lists: {source}")]
    TrustList {
        /// The kernel's error.
        source: io::Error,
    },
    /// The text is not an address.
    #[error("cannot listen on {address:?}: {reason}; write address:port, such as 127.0.0.1:4840")]
    Address {
        /// The configured text.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] taktwerk_server::ConfigProblem),
    /// No address to listen on is configured.
    #[error("no address to listen on: give at least one, such as 127.0.0.1:4840")]
    NoAddress,
}

impl StartError {
    /// The corresponding StatusCode.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Bind(error) => error.status(),
            Self::Thread { .. }
            | Self::TrustList { .. }
            | Self::Recorder { .. }
            | Self::Durable { .. }
            | Self::Alarms { .. } => StatusCode::BAD_RESOURCE_UNAVAILABLE,
            Self::Address { .. } | Self::Config(_) | Self::NoAddress => StatusCode::BAD_CONFIGURATION_ERROR,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::socket::Listener;

    #[test]
    fn a_port_in_use_names_its_owner() {
        let first = Listener::bind("127.0.0.1:0".parse().unwrap(), 16).unwrap();
        let error = Listener::bind(first.address(), 16).unwrap_err().to_string();
        let port = first.address().port();
        assert!(error.starts_with(&format!("cannot listen on 127.0.0.1:{port}: port {port} is in use by")));
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        let elsewhere = Listener::bind("192.0.2.1:0".parse().unwrap(), 16).unwrap_err().to_string();
        assert!(elsewhere.contains("no such address"), "{elsewhere}");
    }
}
