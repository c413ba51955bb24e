//! The context of a service call.

use super::Outcome;
use super::authorize::Authorizer;
use super::deferred::{Asked, Asker, Deferrals, Gap, Purpose, deadline};
use super::shard_message::Transfers;
use super::turns::Turns;
use crate::account::Account;
use crate::audit::AuditLog;
use crate::connection::outbox::Outbox;
use crate::effect::Task;
use crate::error::Fault;
use crate::eviction::Holder;
use crate::ids::{ConnectionId, ReplyTo};
use crate::now::Now;
use crate::service::reply::Reply;
use crate::service::request::Request;
use crate::session::{SessionKey, Sessions};
use crate::shared::ServerShared;
use crate::subscription::Engine;
use crate::work::Work;
use core::net::IpAddr;
use std::sync::Arc;
use taktwerk_crypto::{Entropy, MessageSecurityMode, SecurityPolicy};
use taktwerk_types::{Instant, StatusCode};

/// The connection of a request.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) connection: ConnectionId,
    pub(crate) channel_id: u32,
    pub(crate) policy: SecurityPolicy,
    pub(crate) mode: MessageSecurityMode,
    /// The client's certificate; `None` without security.
    pub(crate) certificate: Option<Arc<[u8]>>,
    /// Longest body of a response, in bytes.
    pub(crate) response_len_max: usize,
    /// Links the response to its request.
    pub(crate) request_id: u32,
}

/// Everything in a shard that services use, for one request.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a Arc<ServerShared>,
    pub(crate) now: Now,
    pub(crate) peer: Peer,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) authorizer: &'a mut Authorizer,
    pub(crate) audit: &'a mut AuditLog,
    pub(crate) engine: &'a mut Engine,
    pub(crate) deferrals: &'a mut Deferrals,
    pub(crate) transfers: &'a mut Transfers,
    pub(crate) entropy: &'a mut dyn Entropy,
    /// Sessions that were attached to or detached from the connection; the shard updates its list from this.
    pub(crate) attached: &'a mut Vec<(ConnectionId, SessionKey, bool)>,
    /// When the shard last published its subscription diagnostics.
    pub(crate) published: &'a mut Instant,
    /// Work counters of the shard.
    pub(crate) work: &'a mut Work,
    /// Work units that the request may spend before other connections get their turn.
    pub(crate) units: i64,
    /// The session to end after the response, which carries the reason.
    pub(crate) ends: Option<SessionKey>,
    /// Postponed requests.
    pub(crate) turns: &'a mut Turns,
    /// Responses to requests that waited.
    pub(crate) outbox: Outbox<'a>,
}

impl Context<'_> {
    /// The ChannelThumbprint (Part 6 §6.7.5) of the request's channel; empty without security.
    pub(crate) fn channel_thumbprint(&self) -> Arc<[u8]> {
        let connection = self.outbox.connections.get(self.peer.connection.0);
        connection.map_or_else(Arc::default, |connection| connection.channel.thumbprint().into())
    }

    /// The client's address, if the transport has addresses.
    pub(crate) fn peer_address(&self) -> Option<IpAddr> {
        self.address_of(self.peer.connection)
    }

    /// The peer address of a connection, if the transport has addresses.
    pub(crate) fn address_of(&self, connection: ConnectionId) -> Option<IpAddr> {
        self.outbox.connections.get(connection.0).and_then(|connection| connection.address)
    }

    /// The holder of a connection, for evictions.
    pub(crate) fn holder(&self, connection: ConnectionId) -> Holder {
        let connection = self.outbox.connections.get(connection.0);
        connection.map_or_else(|| Holder::new(None, false, None, 0), |connection| connection.holder)
    }

    /// The asker for effects of the request.
    pub(crate) fn asker(&self) -> Asker {
        let connection = self.peer.connection;
        Asker { connection, origin: self.address_of(connection).map(Into::into) }
    }

    /// Whether the request may have this many effects for its operations.
    pub(crate) fn has_capacity_for(&self, effects: usize) -> bool {
        self.deferrals.has_capacity_for(self.asker(), Purpose::Operation, effects)
    }

    /// The destination of the response.
    pub(crate) fn reply_to(&self, request: &Request<'_>) -> ReplyTo {
        ReplyTo {
            connection: self.peer.connection,
            request_id: self.peer.request_id,
            request_handle: request.header.handle,
        }
    }

    /// The account of a session, or of the connection if there is none yet.
    pub(crate) fn account(&self, session: Option<SessionKey>) -> &Arc<Account> {
        let session = session.and_then(|key| self.sessions.get(key)).map(|session| &session.account);
        let connection = || Some(&self.outbox.connections.get(self.peer.connection.0)?.account);
        session.or_else(connection).unwrap_or(self.shared.account())
    }

    /// Defers a request until the results for its gaps have arrived, within the limits of its client and the server.
    ///
    /// # Errors
    /// Bad_OutOfMemory if the session has too much waiting.
    pub(crate) fn gather(
        &mut self,
        request: &Request<'_>,
        session: SessionKey,
        encoding_id: u32,
        gaps: Vec<(Gap, Task)>,
        reply: &mut Reply<'_>,
    ) -> Result<Outcome, Fault> {
        let max = self.shared.config().limits.deferred_timeout;
        let deadline = deadline(self.now.instant, request.header.timeout_hint, max);
        let (reply_to, account) = (self.reply_to(request), Arc::clone(self.account(Some(session))));
        let origin = self.asker().origin;
        let asked = Asked { reply_to, origin, session: Some(session), deadline, account: &account };
        let (body, len_max) = (reply.take_body(), self.peer.response_len_max);
        Ok(match self.deferrals.gather(asked, encoding_id, body, gaps, len_max, self.now)? {
            None => Outcome::Deferred,
            Some(full) => {
                full.write(reply.begin_id(encoding_id, StatusCode::GOOD));
                Outcome::Answered
            }
        })
    }

    /// Whether a connection may have one more session.
    pub(crate) fn may_have_session(&self, connection: ConnectionId, max: usize) -> bool {
        let connection = self.outbox.connections.get(connection.0);
        connection.is_none_or(|connection| connection.sessions.len() < max)
    }
}
