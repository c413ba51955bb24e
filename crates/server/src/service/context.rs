//! What a service can reach.

use crate::audit::AuditLog;
use crate::authorization::{Authorizer, Decisions};
use crate::error::Fault;
use crate::now::Now;
use crate::service::request::Request;
use crate::session::table::TokenOwner;
use crate::session::{Session, SessionKey, Sessions};
use crate::shard::deferred::Deferrals;
use crate::shard::outbox::Outbox;
use crate::shard::transfer::Transfers;
use crate::shard::{ConnectionId, ReplyTo};
use crate::shared::ServerShared;
use crate::subscription::Engine;
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
        self.outbox.connections.get(self.peer.connection.0).and_then(|connection| connection.address)
    }

    /// Where the response to the request goes.
    pub(crate) fn reply_to(&self, request: &Request<'_>) -> ReplyTo {
        ReplyTo {
            connection: self.peer.connection,
            request_id: self.peer.request_id,
            request_handle: request.header.handle,
        }
    }

    /// Whether a connection may have one more session.
    pub(crate) fn may_have_session(&self, connection: ConnectionId, max: usize) -> bool {
        let connection = self.outbox.connections.get(connection.0);
        connection.is_none_or(|connection| connection.sessions.len() < max)
    }

    /// The session that a token names, activated or not, if the request came through its channel.
    ///
    /// # Errors
    /// Bad_SessionIdInvalid, Bad_SecureChannelIdInvalid.
    #[inline]
    pub(crate) fn any_session(&mut self, request: &Request<'_>) -> Result<(SessionKey, &mut Session), Fault> {
        let TokenOwner::Here(key) = self.sessions.owner(request.header.token) else {
            return Err(Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, "Part 4 §7.32"));
        };
        let Some(session) = self.sessions.get_mut(key) else {
            return Err(Fault::peer(StatusCode::BAD_SESSION_ID_INVALID, "Part 4 §7.32"));
        };
        if session.connection != Some(self.peer.connection) || session.channel_id != self.peer.channel_id {
            return Err(Fault::peer(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID, "Part 4 §5.7.2.1"));
        }
        Ok((key, session))
    }

    /// The activated session of a request; notes that the client is alive.
    ///
    /// # Errors
    /// As [`Self::any_session`], and Bad_SessionNotActivated.
    #[inline]
    pub(crate) fn session(&mut self, request: &Request<'_>) -> Result<(SessionKey, &mut Session), Fault> {
        let now = self.now.instant;
        let (key, session) = self.any_session(request)?;
        if !session.is_activated() {
            return Err(Fault::peer(StatusCode::BAD_SESSION_NOT_ACTIVATED, "Part 4 §5.7.2.1"));
        }
        session.last_contact = now;
        Ok((key, session))
    }
}

/// The activated session of a request with what it may do; notes that the client is alive.
///
/// # Errors
/// As [`Context::session`].
#[inline]
pub(crate) fn authorized(
    cx: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<(SessionKey, Arc<Decisions>), Fault> {
    let (key, session) = cx.session(request)?;
    Ok((key, Arc::clone(&session.decisions)))
}

/// Checks the number of operations of a request.
///
/// # Errors
/// Bad_NothingToDo, Bad_TooManyOperations.
#[inline]
pub(crate) fn operations(count: Option<usize>, max: u32, limit: &'static str) -> Result<usize, Fault> {
    match count {
        None | Some(0) => Err(Fault::peer(StatusCode::BAD_NOTHING_TO_DO, "Part 4 §7.38")),
        Some(count) if count > max as usize => Err(Fault::limit(StatusCode::BAD_TOO_MANY_OPERATIONS, limit)),
        Some(count) => Ok(count),
    }
}
