//! Ids of a shard's connections, and the destination of responses.

use crate::slab::Key;

/// The id of a connection: its slot in the shard and a generation. Slots are reused, ids are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId(pub(crate) Key);

impl ConnectionId {
    /// The slot as a small number, for the driver's own tables.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.index as usize
    }
}

/// The destination of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    pub(crate) connection: ConnectionId,
    pub(crate) request_id: u32,
    pub(crate) request_handle: u32,
}
