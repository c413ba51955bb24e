//! What a simulation stops for.

use crate::ids::HostId;
use crate::network::LinkId;
use crate::network::Side;
use crate::wire_check::WireFault;
use taktwerk_types::Instant;

/// A promise that was broken, and when.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("after {:?} of virtual time: {what}", .at.since(Instant::ZERO))]
pub struct Violation {
    /// The virtual time.
    pub at: Instant,
    /// The promise.
    pub what: Broken,
}

/// The promises that are checked after every event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// What an end sent breaks the protocol.
    #[error("{side:?} of {link:?}: {fault}")]
    Wire {
        /// The connection.
        link: LinkId,
        /// Who sent it.
        side: Side,
        /// The rule.
        fault: WireFault,
    },
    /// A deadline stays due, however often it is served.
    #[error("{host:?} does not come to rest: {reason:?} stays due")]
    Restless {
        /// Who.
        host: HostId,
        /// The deadline's name.
        reason: &'static str,
    },
    /// A connection holds more unsent bytes than its budget and the largest response allow.
    #[error("{host:?} holds {len} unsent bytes for {link:?}, more than {limit}")]
    Unsent {
        /// Who.
        host: HostId,
        /// The connection.
        link: LinkId,
        /// What it holds.
        len: usize,
        /// What it may hold.
        limit: usize,
    },
    /// A core says that it is done with more bytes than it was given.
    #[error("{host:?} consumed {consumed} of {given} bytes")]
    Consumed {
        /// Who.
        host: HostId,
        /// What it says.
        consumed: usize,
        /// What it was given.
        given: usize,
    },
    /// The server counts other connections than the simulation.
    #[error("{host:?} counts {counted} connections; there are {real}")]
    Connections {
        /// Who.
        host: HostId,
        /// What it says.
        counted: usize,
        /// How many there are.
        real: usize,
    },
    /// A request of the application was answered twice.
    #[error("{host:?} delivered a second answer to request {handle}")]
    Answered {
        /// Who.
        host: HostId,
        /// The request.
        handle: u32,
    },
    /// A promise that the scenario adds.
    #[error("{0}")]
    Scenario(String),
}
