//! What can happen in a world.

use crate::network::Wire;
use crate::world::{ClientId, HostId, ServerId};
use core::fmt;
use std::sync::Arc;
use taktwerk_client::JobToken;
use taktwerk_crypto::Provider;
use taktwerk_server::Token;
use taktwerk_server::source::Work;

/// Something that is going to happen.
pub(crate) enum Event {
    /// In the network.
    Wire(Wire),
    /// A deadline of a host; outdated unless the host still waits for this number.
    Timer { host: HostId, number: u64 },
    /// A server's effect is done; outdated if the server has been restarted since.
    ServerEffect { server: ServerId, incarnation: u32, token: Token, job: taktwerk_server::Job },
    /// A server's source has worked long enough; outdated if the server has been restarted since.
    SourceWork { server: ServerId, incarnation: u32, work: Work },
    /// A client's effect is done.
    ClientEffect {
        client: ClientId,
        token: JobToken,
        job: Box<taktwerk_crypto::Job>,
        provider: Arc<dyn Provider>,
    },
    /// Something that the scenario does.
    Action(u64),
}

impl From<Wire> for Event {
    fn from(wire: Wire) -> Self {
        Self::Wire(wire)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire(wire) => wire.fmt(f),
            Self::Timer { host, number } => write!(f, "Timer({host:?}, {number})"),
            Self::ServerEffect { server, token, .. } => write!(f, "ServerEffect({server:?}, {token:?})"),
            Self::SourceWork { server, work, .. } => write!(f, "SourceWork({server:?}, {work:?})"),
            Self::ClientEffect { client, token, .. } => write!(f, "ClientEffect({client:?}, {token:?})"),
            Self::Action(number) => write!(f, "Action({number})"),
        }
    }
}
