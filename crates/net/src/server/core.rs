//! What the event loop asks of the state machine it drives.
//!
//! The real one is [`taktwerk_server::Shard`]; tests drive the loop with a smaller one.

use core::fmt::Debug;
use core::net::SocketAddr;
use taktwerk_server::audit::AuditRecord;
use taktwerk_server::{Effect, JobResult, Now, Token};
use taktwerk_types::Instant;

/// A sans-IO server of many connections. The caller drains all outputs after every input.
pub(crate) trait Core: Send + 'static {
    /// Names a connection.
    type Id: Copy + Eq + Debug + Send;
    /// A connection on its way to another shard.
    type Moved: Send + 'static;
    /// What one shard tells another.
    type Message: Send + 'static;

    /// A small number that no other open connection has.
    fn index(id: Self::Id) -> usize;

    /// Whether a connection from there may be accepted. If so, [`Self::opened`] follows, perhaps on another shard.
    fn admit(&mut self, peer: SocketAddr, now: Now) -> bool {
        let _ = (peer, now);
        true
    }
    /// A connection was accepted.
    fn opened(&mut self, peer: SocketAddr, now: Now) -> Self::Id;
    /// Bytes have come; returns how many were used. What is left is given again, with more behind it.
    fn received(&mut self, id: Self::Id, bytes: &mut [u8], now: Now) -> usize;
    /// The connection is gone.
    fn closed(&mut self, id: Self::Id, now: Now);
    /// A deadline has passed.
    fn timer(&mut self, now: Now);
    /// An effect has ended.
    fn done(&mut self, token: Token, result: JobResult, now: Now);
    /// All of this shard's connections shall end soon.
    fn shut_down(&mut self, now: Now);

    /// Whether effects are under way that the end of the server had better wait for.
    fn is_ending(&self) -> bool {
        false
    }

    /// A connection with something to send.
    fn poll_transmit(&mut self) -> Option<Self::Id>;
    /// What a connection has to send.
    fn unsent(&self, id: Self::Id) -> &[u8];
    /// The first `count` unsent bytes were sent.
    fn sent(&mut self, id: Self::Id, count: usize);
    /// The kernel takes no more bytes until [`Self::writable`].
    fn blocked(&mut self, id: Self::Id, now: Now);
    /// The kernel takes bytes again.
    fn writable(&mut self, id: Self::Id);
    /// Whether bytes are wanted now.
    fn wants_read(&self, id: Self::Id) -> bool;
    /// Whether what the connection says next may wait a moment, because it will not be answered at once.
    fn may_wait(&self, id: Self::Id, now: Now) -> bool {
        let _ = (id, now);
        false
    }
    /// A connection that is to be closed: all it had to say was sent. The core has forgotten it already.
    fn poll_close(&mut self) -> Option<Self::Id>;
    /// Work for another thread.
    fn poll_effect(&mut self) -> Option<Effect>;
    /// What the audit is to be told.
    fn poll_audit(&mut self) -> Option<AuditRecord> {
        None
    }
    /// When [`Self::timer`] has something to do, and why.
    fn poll_timeout(&self) -> Option<(Instant, &'static str)>;

    /// What is to be told to a shard.
    fn poll_message(&mut self) -> Option<(usize, Self::Message)>;
    /// A shard has told this one something.
    fn message(&mut self, message: Self::Message, now: Now);

    /// A connection that belongs on another shard.
    fn poll_move(&mut self) -> Option<(Self::Id, usize)>;
    /// Takes a connection out.
    fn export(&mut self, id: Self::Id, now: Now) -> Option<Self::Moved>;
    /// Takes a connection in.
    fn import(&mut self, moved: Self::Moved, now: Now) -> Self::Id;
}
