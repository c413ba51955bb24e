//! Actions that the client requests from its driver.

use crate::config::EndpointUrl;
use std::sync::Arc;
use taktwerk_crypto::{Job, Provider};

/// Identifies a connection from [`Effect::Connect`] until its end. Reports about an older one are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId(pub u32);

/// Identifies an [`Effect::Crypto`] until its result is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobToken(pub u32);

/// An action for the driver.
#[derive(Debug)]
pub enum Effect {
    /// Open a TCP connection; report with `Client::handle_connected` or `Client::handle_closed`.
    Connect {
        /// Identifies the connection.
        connection: ConnectionId,
        /// The target.
        url: EndpointUrl,
    },
    /// Send the remaining bytes, then close the connection. Nothing is reported.
    Disconnect {
        /// The connection.
        connection: ConnectionId,
        /// Its remaining bytes.
        unsent: Vec<u8>,
    },
    /// Run the job with the provider, on any thread; report with `Client::complete`.
    Crypto {
        /// Identifies the job.
        token: JobToken,
        /// The job.
        job: Box<Job>,
        /// The provider that holds the keys.
        provider: Arc<dyn Provider>,
    },
}
