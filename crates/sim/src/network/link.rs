//! Both directions of one connection and the state of its ends.

use super::path::{Path, Transport};
use super::soap::Carriage;
use super::stream::Stream;
use super::{LineId, Route, Service, Side};
use taktwerk_netem::emulator::Line;
use taktwerk_netem::tcp::{Endpoint, Segment};
use taktwerk_types::Instant;

/// Where a socket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndState {
    /// The client waits for the server's answer; the server has not seen the client.
    Opening,
    /// Bytes flow.
    Open,
    /// Its host has closed it; what was written may still be under way.
    Closing,
    /// Its connection has ended and its host is being told; it can be read until then.
    Broken,
    /// There is no socket any more.
    Gone,
}

/// What a connection's packets travel on.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// Nothing else does. By the [`Side`] that sends.
    Own(Box<[Line; 2]>),
    /// Other connections do, too.
    Shared(LineId),
}

#[derive(Debug)]
pub(crate) struct Link {
    /// By [`Side`].
    pub(crate) ends: [EndState; 2],
    /// By [`Side`]. The server's is there once it has accepted.
    pub(crate) tcp: [Option<Endpoint>; 2],
    /// By the [`Side`] that writes.
    pub(crate) streams: [Stream; 2],
    /// By the [`Side`] that sends.
    pub(crate) paths: [Path; 2],
    pub(crate) carrier: Carrier,
    pub(crate) partitioned: bool,
    /// The earliest timer event in the queue, by [`Side`].
    pub(crate) armed: [Option<Instant>; 2],
    /// The server's host has been told of the connection.
    pub(crate) is_announced: bool,
    /// What the client opened it with.
    pub(crate) syn: Segment,
    /// SOAP, if that is spoken instead of UA TCP.
    pub(crate) soap: Option<Box<Carriage>>,
    /// Numbers of client and server, for a tap.
    pub(crate) hosts: (u32, u32),
    pub(crate) service: Service,
    /// When each [`Side`] has sent its last segment, if there is a tap.
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

    /// The direction that `side` writes.
    pub(crate) fn stream(&mut self, side: Side) -> &mut Stream {
        &mut self.streams[side as usize]
    }

    /// The end of `side`.
    pub(crate) fn tcp(&mut self, side: Side) -> Option<&mut Endpoint> {
        self.tcp[side as usize].as_mut()
    }

    /// Whether nobody has a socket on this connection, or will.
    pub(crate) fn is_dead(&self) -> bool {
        let [client, server] = self.ends;
        client == EndState::Gone && matches!(server, EndState::Gone | EndState::Opening)
    }
}
