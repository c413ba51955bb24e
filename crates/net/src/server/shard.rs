//! Implements the core with a [`Shard`] of a server.

use super::core::Core;
use core::net::SocketAddr;
use taktwerk_server::audit::AuditRecord;
use taktwerk_server::{
    Command, ConnectionId, ConnectionState, Effect, JobResult, Now, Shard, ShardMessage, Token,
};
use taktwerk_types::Instant;

impl Core for Shard {
    type Id = ConnectionId;
    type Moved = ConnectionState;
    type Message = ShardMessage;

    #[inline]
    fn index(id: ConnectionId) -> usize {
        id.index()
    }
    fn admit(&mut self, peer: SocketAddr, now: Now) -> bool {
        match self.shared().admit(peer.ip(), now.instant) {
            Ok(()) => true,
            Err(refusal) => {
                tracing::debug!(%peer, %refusal, "connection refused");
                false
            }
        }
    }
    fn opened(&mut self, peer: SocketAddr, now: Now) -> ConnectionId {
        Self::opened_from(self, peer.ip(), now)
    }
    #[inline]
    fn received(&mut self, id: ConnectionId, bytes: &mut [u8], now: Now) -> usize {
        Self::received(self, id, bytes, now)
    }
    fn closed(&mut self, id: ConnectionId, now: Now) {
        Self::closed(self, id, now);
    }
    #[inline]
    fn timer(&mut self, now: Now) {
        Self::timer(self, now);
    }
    fn done(&mut self, token: Token, result: JobResult, now: Now) {
        Self::done(self, token, result, now);
    }
    fn shut_down(&mut self, now: Now) {
        Self::command(self, Command::Shutdown, now);
    }
    fn is_ending(&self) -> bool {
        Self::is_ending(self)
    }
    #[inline]
    fn poll_transmit(&mut self) -> Option<ConnectionId> {
        Self::poll_transmit(self)
    }
    #[inline]
    fn unsent(&self, id: ConnectionId) -> &[u8] {
        Self::unsent(self, id)
    }
    #[inline]
    fn sent(&mut self, id: ConnectionId, count: usize) {
        Self::sent(self, id, count);
    }
    fn blocked(&mut self, id: ConnectionId, now: Now) {
        Self::blocked(self, id, now);
    }
    fn writable(&mut self, id: ConnectionId) {
        Self::writable(self, id);
    }
    #[inline]
    fn wants_read(&self, id: ConnectionId) -> bool {
        Self::wants_read(self, id)
    }
    #[inline]
    fn may_wait(&self, id: ConnectionId, now: Now) -> bool {
        Self::may_wait(self, id, now.instant)
    }
    #[inline]
    fn poll_close(&mut self) -> Option<ConnectionId> {
        Self::poll_close(self)
    }
    #[inline]
    fn poll_effect(&mut self) -> Option<Effect> {
        Self::poll_effect(self)
    }
    #[inline]
    fn poll_audit(&mut self) -> Option<AuditRecord> {
        Self::poll_audit(self)
    }
    #[inline]
    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        Self::poll_timeout(self)
    }
    #[inline]
    fn poll_message(&mut self) -> Option<(usize, ShardMessage)> {
        Self::poll_message(self)
    }
    fn message(&mut self, message: ShardMessage, now: Now) {
        Self::message(self, message, now);
    }
    #[inline]
    fn poll_move(&mut self) -> Option<(ConnectionId, usize)> {
        Self::poll_move(self)
    }
    fn export(&mut self, id: ConnectionId, now: Now) -> Option<ConnectionState> {
        Self::export(self, id, now)
    }
    fn import(&mut self, moved: ConnectionState, now: Now) -> ConnectionId {
        Self::import(self, moved, now)
    }
}
