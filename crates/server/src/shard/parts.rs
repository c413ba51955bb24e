//! What a shard keeps beside its connections, sessions and subscriptions.

use crate::connection::buffers::Buffers;
use crate::connection::outbox::Transmit;
use crate::ids::ConnectionId;
use crate::session::SessionKey;
use std::collections::{BTreeSet, VecDeque};
use taktwerk_types::Instant;

/// What is written and where it is written to.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) buffers: Buffers,
    pub(super) transmit: Transmit,
    /// For responses that cannot be written in place.
    pub(super) scratch: Vec<u8>,
}

impl Output {
    pub(super) fn new(spare_buffers_max: usize) -> Self {
        Self { buffers: Buffers::new(spare_buffers_max), transmit: Transmit::default(), scratch: Vec::new() }
    }
}

/// What the driver has to do.
#[derive(Debug, Default)]
pub(super) struct ForDriver {
    /// Connections that it has to close.
    pub(super) closes: VecDeque<ConnectionId>,
    /// Connections that go to another shard.
    pub(super) moves: VecDeque<(ConnectionId, usize)>,
}

/// Connections that have to be looked at.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// Those whose congestion is over.
    pub(super) resumed: Vec<ConnectionId>,
    /// When to look at which.
    pub(super) deadlines: BTreeSet<(Instant, ConnectionId)>,
    /// Sessions that came to a connection or left it, until the connections know.
    pub(super) attached: Vec<(ConnectionId, SessionKey, bool)>,
}

/// What the rest of the server and the shard know of each other.
#[derive(Debug)]
pub(super) struct Told {
    /// What [`Live::looks`](crate::diagnostics::Live) was when subscriptions were published last.
    pub(super) looks: u32,
    /// When the shard last said how its subscriptions are doing.
    pub(super) published: Instant,
    /// Subscriptions and items as last counted for the whole server.
    pub(super) counted: (usize, usize),
    /// The changes of trust lists that the connections have been checked for.
    pub(super) trust_list_changes: u64,
    /// The changes of our own certificates that it has followed.
    pub(super) certificate_changes: u64,
}

impl Told {
    pub(super) fn new(trust_list_changes: u64, certificate_changes: u64) -> Self {
        Self { looks: 0, published: Instant::ZERO, counted: (0, 0), trust_list_changes, certificate_changes }
    }
}
