//! Both directions of one connection and the state of its ends.

use super::path::{Path, Route};
use super::stream::Stream;
use super::{Kind, LinkId, Side, Wire};
use crate::queue::EventQueue;
use taktwerk_crypto::{Entropy, SeededEntropy};

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

#[derive(Debug)]
pub(crate) struct Link {
    /// By [`Side`].
    pub(crate) ends: [EndState; 2],
    /// By the [`Side`] that writes.
    pub(crate) streams: [Stream; 2],
    pub(crate) partitioned: bool,
}

impl Link {
    pub(crate) fn new(route: &Route) -> Self {
        let round_trip = route.round_trip();
        Self {
            ends: [EndState::Opening; 2],
            streams: [Stream::new(route.to_server, round_trip), Stream::new(route.to_client, round_trip)],
            partitioned: false,
        }
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut EndState {
        &mut self.ends[side as usize]
    }

    /// The direction that `side` writes.
    pub(crate) fn stream(&mut self, side: Side) -> &mut Stream {
        &mut self.streams[side as usize]
    }

    /// Whether something small that is sent along `path` gets lost.
    pub(crate) fn loses(&self, path: &Path, entropy: &mut SeededEntropy) -> bool {
        self.partitioned || (path.loss_ppm > 0 && entropy.below(1_000_000) < u64::from(path.loss_ppm))
    }

    /// Sends something small that `from` has to say.
    pub(crate) fn send<E: From<Wire>>(
        &mut self,
        link: LinkId,
        from: Side,
        kind: Kind,
        queue: &mut EventQueue<E>,
    ) {
        queue.schedule_in(self.stream(from).path().delay, Wire { link, kind });
    }

    /// The reader of what `writer` wrote says what has come.
    pub(crate) fn acknowledge<E: From<Wire>>(
        &mut self,
        link: LinkId,
        writer: Side,
        queue: &mut EventQueue<E>,
    ) {
        // While nothing gets through this is kept: healing says it again.
        if !self.partitioned {
            let (received, window_end) = self.stream(writer).acknowledgement();
            self.send(link, writer.other(), Kind::Acknowledge { writer, received, window_end }, queue);
        }
    }

    /// Whether nobody has a socket on this connection, or will.
    pub(crate) fn is_dead(&self) -> bool {
        let [client, server] = self.ends;
        client == EndState::Gone && matches!(server, EndState::Gone | EndState::Opening)
    }
}
