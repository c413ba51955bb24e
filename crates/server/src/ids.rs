//! Connections of a shard, and where responses go.

use crate::slab::Key;

/// A connection's place in its shard. Places are reused, ids are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId(pub(crate) Key);

impl ConnectionId {
    /// The place as a small number, for the driver's own tables.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.index as usize
    }
}

/// Where the response to a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    pub(crate) connection: ConnectionId,
    pub(crate) request_id: u32,
    pub(crate) request_handle: u32,
}
