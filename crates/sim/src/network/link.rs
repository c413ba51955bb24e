//! One connection: both directions, and the state of its ends.

use super::path::{Path, Transport};
use super::soap::Carriage;
use super::stream::Stream;
use super::{LineId, Route, Service, Side};
use taktwerk_netem::emulator::Line;
use taktwerk_netem::tcp::{Endpoint, Segment};
use taktwerk_types::Instant;

/// State of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndState {
    /// The client waits for the server's answer; the server does not know the client yet.
    Opening,
    /// Bytes flow.
    Open,
    /// Its host has closed it; written data may still be in flight.
    Closing,
    /// Its connection has ended; it can be read until its host has been notified.
    Broken,
    /// The socket does not exist.
    Gone,
}

/// The line of a connection's packets.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// A separate line, by the sending [`Side`].
    Own(Box<[Line; 2]>),
    /// A line shared with other connections.
    Shared(LineId),
}

#[derive(Debug)]
pub(crate) struct Link {
    /// By [`Side`].
    pub(crate) ends: [EndState; 2],
    /// By [`Side`]. The server's endpoint exists after accepting.
    pub(crate) tcp: [Option<Endpoint>; 2],
    /// By the writing [`Side`].
    pub(crate) streams: [Stream; 2],
    /// By the sending [`Side`].
    pub(crate) paths: [Path; 2],
    pub(crate) carrier: Carrier,
    pub(crate) partitioned: bool,
    /// Time of the earliest timer event in the queue, by [`Side`].
    pub(crate) armed: [Option<Instant>; 2],
    /// Whether the server's host has been notified of the connection.
    pub(crate) is_announced: bool,
    /// The client's SYN.
    pub(crate) syn: Segment,
    /// State of SOAP, if it is used instead of UA TCP.
    pub(crate) soap: Option<Box<Carriage>>,
    /// Numbers of client and server for a tap.
    pub(crate) hosts: (u32, u32),
    pub(crate) service: Service,
    /// When each [`Side`] sent its last segment, if there is a tap.
    pub(crate) last_sent: [Option<Instant>; 2],
}

impl Link {
    pub(crate) fn new(
        (service, hosts): (Service, (u32, u32)),
        route: &Route,
        carrier: Carrier,
        now: Instant,
    ) -> Self {
        let client = Endpoint::connect(route.config(Side::Client), now.as_nanos());
        Self {
            ends: [EndState::Opening; 2],
            tcp: [Some(client), None],
            streams: [Stream::default(), Stream::default()],
            paths: [route.to_server, route.to_client],
            carrier,
            partitioned: false,
            armed: [None; 2],
            is_announced: false,
            syn: Segment::default(),
            soap: match route.transport {
                Transport::UaTcp => None,
                Transport::Soap(soap) => Some(Box::new(Carriage::new(soap))),
            },
            hosts,
            service,
            last_sent: [None; 2],
        }
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut EndState {
        &mut self.ends[side as usize]
    }

    /// The stream that `side` writes.
    pub(crate) fn stream(&mut self, side: Side) -> &mut Stream {
        &mut self.streams[side as usize]
    }

    /// The end of `side`.
    pub(crate) fn tcp(&mut self, side: Side) -> Option<&mut Endpoint> {
        self.tcp[side as usize].as_mut()
    }

    /// Whether no host has a socket on this connection, or will get one.
    pub(crate) fn is_dead(&self) -> bool {
        let [client, server] = self.ends;
        client == EndState::Gone && matches!(server, EndState::Gone | EndState::Opening)
    }
}
