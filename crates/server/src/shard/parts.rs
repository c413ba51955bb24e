//! State of a shard besides its connections, sessions and subscriptions.

use crate::connection::buffers::Buffers;
use crate::connection::outbox::Transmit;
use crate::ids::ConnectionId;
use crate::session::SessionKey;
use std::collections::{BTreeSet, VecDeque};
use taktwerk_types::Instant;

/// Output and its destinations.
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

/// Requests to the driver.
#[derive(Debug, Default)]
pub(super) struct ForDriver {
    /// Connections to close.
    pub(super) closes: VecDeque<ConnectionId>,
    /// Connections to move to another shard.
    pub(super) moves: VecDeque<(ConnectionId, usize)>,
}

/// Connections that need attention.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// Connections that are no longer congested.
    pub(super) resumed: Vec<ConnectionId>,
    /// When to check which connection.
    pub(super) deadlines: BTreeSet<(Instant, ConnectionId)>,
    /// Sessions attached to or detached from a connection, until the connections are updated.
    pub(super) attached: Vec<(ConnectionId, SessionKey, bool)>,
}

/// State exchanged with the rest of the server.
#[derive(Debug)]
pub(super) struct Synced {
    /// [`Live::looks`](crate::diagnostics::Live) when subscriptions were last published.
    pub(super) looks: u32,
    /// When the shard last published its subscriptions.
    pub(super) published: Instant,
    /// Subscriptions and items as last counted for the whole server.
    pub(super) counted: (usize, usize),
    /// The trust list change count for which the connections have been checked.
    pub(super) trust_list_changes: u64,
    /// The change count of the server's certificates that has been handled.
    pub(super) certificate_changes: u64,
}

impl Synced {
    pub(super) fn new(trust_list_changes: u64, certificate_changes: u64) -> Self {
        Self { looks: 0, published: Instant::ZERO, counted: (0, 0), trust_list_changes, certificate_changes }
    }
}
