//! What a service can reach.

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

/// The connection that a request came through.
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
    /// What pairs request and response.
    pub(crate) request_id: u32,
}

/// Everything of a shard that services use, for one request.
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
    /// Sessions that came to the connection or left it; the shard keeps its list by this.
    pub(crate) attached: &'a mut Vec<(ConnectionId, SessionKey, bool)>,
    /// When the shard last said how its subscriptions are doing.
    pub(crate) published: &'a mut Instant,
    /// What the shard has done.
    pub(crate) work: &'a mut Work,
    /// Units that the request may spend before others have their turn.
    pub(crate) units: i64,
    /// The session that ends behind the response, which says why.
    pub(crate) ends: Option<SessionKey>,
    /// Requests that were left.
    pub(crate) turns: &'a mut Turns,
    /// Answers to requests that waited.
    pub(crate) outbox: Outbox<'a>,
}

impl Context<'_> {
    /// The ChannelThumbprint (Part 6 §6.7.5) of the request's channel; empty without security.
    pub(crate) fn channel_thumbprint(&self) -> Arc<[u8]> {
        let connection = self.outbox.connections.get(self.peer.connection.0);
        connection.map_or_else(Arc::default, |connection| connection.channel.thumbprint().into())
    }

    /// Where the request comes from, if there are addresses.
    pub(crate) fn peer_address(&self) -> Option<IpAddr> {
        self.address_of(self.peer.connection)
    }

    /// Where a connection comes from, if there are addresses.
    pub(crate) fn address_of(&self, connection: ConnectionId) -> Option<IpAddr> {
        self.outbox.connections.get(connection.0).and_then(|connection| connection.address)
    }

    /// Who holds a connection, for evictions.
    pub(crate) fn holder(&self, connection: ConnectionId) -> Holder {
        let connection = self.outbox.connections.get(connection.0);
        connection.map_or_else(|| Holder::new(None, false, None, 0), |connection| connection.holder)
    }

    /// Who asks for effects with the request.
    pub(crate) fn asker(&self) -> Asker {
        let connection = self.peer.connection;
        Asker { connection, origin: self.address_of(connection).map(Into::into) }
    }

    /// Whether the request may have so many effects that operations wait for.
    pub(crate) fn has_room_for(&self, effects: usize) -> bool {
        self.deferrals.has_room_for(self.asker(), Purpose::Operation, effects)
    }

    /// Where the response to the request goes.
    pub(crate) fn reply_to(&self, request: &Request<'_>) -> ReplyTo {
        ReplyTo {
            connection: self.peer.connection,
            request_id: self.peer.request_id,
            request_handle: request.header.handle,
        }
    }

    /// The account of a session, or of the connection before there is one.
    pub(crate) fn account(&self, session: Option<SessionKey>) -> &Arc<Account> {
        let session = session.and_then(|key| self.sessions.get(key)).map(|session| &session.account);
        let connection = || Some(&self.outbox.connections.get(self.peer.connection.0)?.account);
        session.or_else(connection).unwrap_or(self.shared.account())
    }

    /// Lets a request wait for the results that belong into its gaps, as long as its client and the server's limit allow.
    ///
    /// # Errors
    /// Bad_OutOfMemory if the session has too much that waits.
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
