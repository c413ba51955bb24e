//! Errors that stop a simulation.

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
    /// An end sent something that violates the protocol.
    #[error("{side:?} end of {link:?}: {fault}")]
    Wire {
        /// The connection.
        link: LinkId,
        /// The end that sent it.
        side: Side,
        /// The violated rule.
        fault: WireFault,
    },
    /// A deadline stays due although it is handled repeatedly.
    #[error("{host:?} never becomes idle: {reason:?} stays due")]
    Restless {
        /// The host.
        host: HostId,
        /// The deadline's name.
        reason: &'static str,
    },
    /// A connection holds more unsent bytes than its budget and the largest response allow.
    #[error("{host:?} holds {len} unsent bytes for {link:?}, more than its limit of {limit}")]
    Unsent {
        /// The host.
        host: HostId,
        /// The connection.
        link: LinkId,
        /// The number of bytes it holds.
        len: usize,
        /// The number of bytes it may hold.
        limit: usize,
    },
    /// A core reports having consumed more bytes than it was given.
    #[error("{host:?} reports {consumed} bytes as consumed, but was given only {given}")]
    Consumed {
        /// The host.
        host: HostId,
        /// The reported number.
        consumed: usize,
        /// The number of bytes it was given.
        given: usize,
    },
    /// The server counts a different number of connections than the simulation.
    #[error("{host:?} counts {counted} connections, but there are {real}")]
    Connections {
        /// The host.
        host: HostId,
        /// The number it counts.
        counted: usize,
        /// The actual number.
        real: usize,
    },
    /// A request of the application was answered twice.
    #[error("{host:?} delivered a second answer to request {handle}")]
    Answered {
        /// The host.
        host: HostId,
        /// The request.
        handle: u32,
    },
    /// A promise added by the scenario.
    #[error("{0}")]
    Scenario(String),
}
