//! What the client asks its driver to do.

use crate::config::EndpointUrl;
use std::sync::Arc;
use taktwerk_crypto::{Job, Provider};

/// Names a connection from [`Effect::Connect`] until its end. What belongs to an older one is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId(pub u32);

/// Names a [`Effect::Crypto`] until its result is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobToken(pub u32);

/// Something that only the driver can do.
#[derive(Debug)]
pub enum Effect {
    /// Open a TCP connection; answer with `Client::handle_connected` or `Client::handle_closed`.
    Connect {
        /// Names the connection.
        connection: ConnectionId,
        /// Where to.
        url: EndpointUrl,
    },
    /// Send what is left, then close the connection. No answer is wanted.
    Disconnect {
        /// The connection.
        connection: ConnectionId,
        /// Its last bytes.
        unsent: Vec<u8>,
    },
    /// Run the job with the provider, anywhere; answer with `Client::complete`.
    Crypto {
        /// Names the job.
        token: JobToken,
        /// What to do.
        job: Box<Job>,
        /// With which keys.
        provider: Arc<dyn Provider>,
    },
}
