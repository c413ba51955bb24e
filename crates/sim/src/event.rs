//! Events of a world.

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

/// A datagram in flight: over the sender's line to the core of the network, then over one or several lines to the
/// receivers.
#[derive(Debug, Clone)]
pub(crate) struct Flight {
    pub(crate) from: NodeId,
    pub(crate) sent: Instant,
    pub(crate) bytes: Rc<[u8]>,
    /// The leg from the core of the network; `None` means all.
    pub(crate) leg: Option<usize>,
    /// Whether it has passed the core.
    pub(crate) is_down: bool,
}

/// A scheduled event.
pub(crate) enum Event {
    /// An event of the network.
    Wire(Wire),
    /// A datagram arrives at the core of the network, or at its receiver.
    Datagram(Flight),
    /// A deadline of a host or shard; ignored if the number is outdated.
    Timer { host: HostId, shard: u32, number: u64 },
    /// A processor has finished its work; ignored if the number is outdated.
    Core { machine: MachineId, core: u32, number: u64 },
    /// A competing program needs a processor again.
    Competitor { machine: MachineId, number: u32 },
    /// A server's effect is complete; ignored if the server has been restarted since.
    ServerEffect { server: ServerId, incarnation: u32, shard: u32, token: Token, job: taktwerk_server::Job },
    /// Work of a server's source is complete; ignored if the server has been restarted since.
    SourceWork { server: ServerId, incarnation: u32, work: Work },
    /// A client's effect is complete.
    ClientEffect {
        client: ClientId,
        token: JobToken,
        job: Box<taktwerk_crypto::Job>,
        provider: Arc<dyn Provider>,
    },
    /// An action of the scenario.
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
