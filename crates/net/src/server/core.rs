//! The interface between the event loop and the state machine it drives.
//!
//! Servers use [`taktwerk_server::Shard`]; tests drive the loop with a smaller state machine.

use core::fmt::Debug;
use core::net::SocketAddr;
use taktwerk_server::audit::AuditRecord;
use taktwerk_server::{Effect, JobResult, Now, Token};
use taktwerk_types::Instant;

/// A sans-IO server of many connections. The caller must drain all outputs after every input.
pub(crate) trait Core: Send + 'static {
    /// Identifies a connection.
    type Id: Copy + Eq + Debug + Send;
    /// A connection in transit to another shard.
    type Moved: Send + 'static;
    /// A message between shards.
    type Message: Send + 'static;

    /// A small number that is unique among the open connections.
    fn index(id: Self::Id) -> usize;

    /// Whether to accept a connection from this address. If so, [`Self::opened`] follows, perhaps on another shard.
    fn admit(&mut self, peer: SocketAddr, now: Now) -> bool {
        let _ = (peer, now);
        true
    }
    /// A connection was accepted.
    fn opened(&mut self, peer: SocketAddr, now: Now) -> Self::Id;
    /// Bytes have arrived; returns how many were used. The rest is passed again later, with more bytes appended.
    fn received(&mut self, id: Self::Id, bytes: &mut [u8], now: Now) -> usize;
    /// The connection is gone.
    fn closed(&mut self, id: Self::Id, now: Now);
    /// A deadline has passed.
    fn timer(&mut self, now: Now);
    /// An effect has finished.
    fn done(&mut self, token: Token, result: JobResult, now: Now);
    /// Start closing all connections of this shard.
    fn shut_down(&mut self, now: Now);

    /// Whether effects are running that the server should wait for before it ends.
    fn is_ending(&self) -> bool {
        false
    }

    /// A connection with something to send.
    fn poll_transmit(&mut self) -> Option<Self::Id>;
    /// What a connection has to send.
    fn unsent(&self, id: Self::Id) -> &[u8];
    /// The first `count` unsent bytes were sent.
    fn sent(&mut self, id: Self::Id, count: usize);
    /// The kernel accepts no more bytes until [`Self::writable`].
    fn blocked(&mut self, id: Self::Id, now: Now);
    /// The kernel accepts bytes again.
    fn writable(&mut self, id: Self::Id);
    /// Whether input is wanted now.
    fn wants_read(&self, id: Self::Id) -> bool;
    /// Whether the connection's next request may wait a moment, because it will not be answered at once.
    fn may_wait(&self, id: Self::Id, now: Now) -> bool {
        let _ = (id, now);
        false
    }
    /// A connection to close, after all its output was sent. The core has already forgotten it.
    fn poll_close(&mut self) -> Option<Self::Id>;
    /// Work for another thread.
    fn poll_effect(&mut self) -> Option<Effect>;
    /// An audit record to be passed on.
    fn poll_audit(&mut self) -> Option<AuditRecord> {
        None
    }
    /// The next deadline at which [`Self::timer`] must be called, and its reason.
    fn poll_timeout(&self) -> Option<(Instant, &'static str)>;

    /// A message for another shard.
    fn poll_message(&mut self) -> Option<(usize, Self::Message)>;
    /// A message from another shard has arrived.
    fn message(&mut self, message: Self::Message, now: Now);

    /// A connection that belongs to another shard.
    fn poll_move(&mut self) -> Option<(Self::Id, usize)>;
    /// Removes a connection from this shard, to be moved.
    fn export(&mut self, id: Self::Id, now: Now) -> Option<Self::Moved>;
    /// Adds a connection from another shard.
    fn import(&mut self, moved: Self::Moved, now: Now) -> Self::Id;
}
