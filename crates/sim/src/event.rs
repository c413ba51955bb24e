//! What can happen in a world.

use crate::ids::{ClientId, HostId, MachineId, NodeId, ServerId};
use crate::network::Wire;
use core::fmt;
use std::rc::Rc;
use std::sync::Arc;
use taktwerk_client::JobToken;
use taktwerk_crypto::Provider;
use taktwerk_server::Token;
use taktwerk_server::source::Work;
use taktwerk_types::Instant;

/// A datagram on its way: up the sender's line to the core of the network, then down one or several lines.
#[derive(Debug, Clone)]
pub(crate) struct Flight {
    pub(crate) from: NodeId,
    pub(crate) sent: Instant,
    pub(crate) bytes: Rc<[u8]>,
    /// The way on from the core; all of them if none is said.
    pub(crate) leg: Option<usize>,
    /// It has left the core.
    pub(crate) is_down: bool,
}

/// Something that is going to happen.
pub(crate) enum Event {
    /// In the network.
    Wire(Wire),
    /// A datagram arrives at the core of the network or at who receives it.
    Datagram(Flight),
    /// A deadline of a host or its shard; outdated unless it still waits for this number.
    Timer { host: HostId, shard: u32, number: u64 },
    /// A processor is done with what it was given; outdated unless it still has this number.
    Core { machine: MachineId, core: u32, number: u64 },
    /// A competing program wants a processor again.
    Competitor { machine: MachineId, number: u32 },
    /// A server's effect is done; outdated if the server has been restarted since.
    ServerEffect { server: ServerId, incarnation: u32, shard: u32, token: Token, job: taktwerk_server::Job },
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
            Self::Datagram(flight) => flight.fmt(f),
            Self::Timer { host, shard, number } => write!(f, "Timer({host:?}, {shard}, {number})"),
            Self::Core { machine, core, number } => write!(f, "Core({machine:?}, {core}, {number})"),
            Self::Competitor { machine, number } => write!(f, "Competitor({machine:?}, {number})"),
            Self::ServerEffect { server, token, .. } => write!(f, "ServerEffect({server:?}, {token:?})"),
            Self::SourceWork { server, work, .. } => write!(f, "SourceWork({server:?}, {work:?})"),
            Self::ClientEffect { client, token, .. } => write!(f, "ClientEffect({client:?}, {token:?})"),
            Self::Action(number) => write!(f, "Action({number})"),
        }
    }
}
