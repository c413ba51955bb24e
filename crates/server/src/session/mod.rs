//! Sessions (Part 4 §5.7): what a client keeps between requests.
//!
//! - [`table`]: the sessions of a shard, their tokens and timeouts;
//! - [`continuation`]: the continuation points of a session;
//! - [`proof`]: the slow part of CreateSession and ActivateSession; [`lockout`]: guessing gets slower; [`owner`]: whose
//!   subscriptions are whose.

pub(crate) mod continuation;
pub(crate) mod lockout;
pub(crate) mod owner;
pub(crate) mod proof;
pub(crate) mod table;

pub(crate) use table::Sessions;

use crate::account::{Account, Charge, HeapSize};
use crate::authorization::Decisions;
use crate::callback::{CallContext, SessionLife};
use crate::diagnostics::session::SessionEntry;
use crate::history::point::HistoryPoints;
use crate::identity::User;
use crate::ids::ConnectionId;
use crate::slab::Key;
use continuation::Points;
use std::sync::Arc;
use taktwerk_crypto::{EphemeralKey, MessageSecurityMode, SecurityPolicy};
use taktwerk_types::{Instant, NodeId};

/// A session's place in its shard.
pub(crate) type SessionKey = Key;

impl From<SessionKey> for crate::subscription::SessionKey {
    /// The engine is told when a session ends, so its keys need no generation.
    fn from(key: SessionKey) -> Self {
        Self(key.index)
    }
}

/// The random part of an authentication token.
pub(crate) const SECRET_LEN: usize = 16;
/// Bytes of a server nonce (Part 4 §5.7.2.2 asks for at least 32).
pub(crate) const NONCE_LEN: usize = 32;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    /// What is kept for it; below the account of the address that its client is connected from.
    pub(crate) account: Arc<Account>,
    /// For what stands here. The entry, the continuation points, subscriptions and requests have charges of their own.
    pub(crate) charge: Charge,
    /// When its shard looks at it next.
    pub(crate) looked_at: Instant,
    /// What diagnostics show of it.
    pub(crate) entry: Arc<SessionEntry>,
    /// What the token has to contain besides the session's place.
    pub(crate) secret: [u8; SECRET_LEN],
    /// What the next ActivateSession has to sign.
    pub(crate) server_nonce: [u8; NONCE_LEN],
    /// The connection that the session lives on; `None` after it was lost.
    pub(crate) connection: Option<ConnectionId>,
    /// The SecureChannelId that requests have to come through.
    pub(crate) channel_id: u32,
    pub(crate) policy: SecurityPolicy,
    pub(crate) mode: MessageSecurityMode,
    /// The certificate of the channel that created the session.
    pub(crate) client_certificate: Option<Arc<[u8]>>,
    /// Of CreateSession; empty without security.
    pub(crate) client_nonce: Box<[u8]>,
    /// The key that the client was given last for a secret, and its policy.
    pub(crate) ephemeral: Option<(SecurityPolicy, Arc<dyn EphemeralKey>)>,
    /// `None` until ActivateSession has succeeded.
    pub(crate) user: Option<User>,
    /// The certificate that the user has shown, with its chain: it is looked at again when a trust list changes.
    pub(crate) user_certificate: Option<Arc<[u8]>>,
    /// Which credential it was, by what its verifier says.
    pub(crate) user_credential: u64,
    /// The user has to change the password before the session gets the user's roles.
    pub(crate) must_change_password: bool,
    /// When what the user has shown ends to be good.
    pub(crate) user_until: Instant,
    /// What its user may do; nothing before it is activated.
    pub(crate) decisions: Arc<Decisions>,
    /// ns.
    pub(crate) timeout_ns: u64,
    pub(crate) last_contact: Instant,
    /// Longest response that the client accepts, in bytes; 0 is no limit.
    pub(crate) max_response_len: u32,
    pub(crate) points: Points,
    /// The continuation points of HistoryRead; none until there is a HistoryRead.
    pub(crate) history_points: Option<Arc<HistoryPoints>>,
}

/// What a session's entries in the tables of its shard take, in bytes.
const TABLES: usize = 256;

/// Bytes of a session whose client and user have shown these.
pub(crate) fn session_size(client_nonce: &[u8], user: Option<&User>, chain: Option<&Arc<[u8]>>) -> usize {
    size_of::<Session>()
        + TABLES
        + client_nonce.len()
        + user.map_or(0, User::heap_size)
        + chain.map_or(0, Arc::heap_size)
}

impl HeapSize for User {
    fn heap_size(&self) -> usize {
        match self {
            Self::Anonymous => 0,
            Self::Named(name) => name.heap_size(),
            Self::Certificate { user_id, thumbprint, subject, issuer } => {
                [user_id, thumbprint, subject, issuer].into_iter().map(HeapSize::heap_size).sum()
            }
            Self::Issued { user_id, roles, groups } => {
                user_id.heap_size() + roles.heap_size() + groups.heap_size()
            }
        }
    }
}

impl Session {
    pub(crate) fn is_activated(&self) -> bool {
        self.user.is_some()
    }

    /// What callbacks are told.
    pub(crate) fn call_context(&self, object_id: NodeId) -> CallContext {
        let user = self.user.as_ref().and_then(User::client_user_id).map(Into::into);
        // Methods that go by the name of the user do not know one that has to change the password.
        let (user, user_to_change) = if self.must_change_password { (None, user) } else { (user, None) };
        CallContext {
            session_id: self.entry.id(),
            user,
            user_to_change,
            object_id,
            roles: Arc::clone(&self.decisions.grant.roles),
            encrypted: self.mode == MessageSecurityMode::SignAndEncrypt,
            session_life: SessionLife::of(&self.entry),
            session_account: crate::callback::SessionAccount::of(&self.account),
        }
    }

    /// When the session ends if nothing is heard of it, or nothing new of its user.
    pub(crate) fn deadline(&self) -> Instant {
        self.silence_ends().min(self.user_until)
    }

    /// When the session ends if nothing is heard of it.
    pub(crate) fn silence_ends(&self) -> Instant {
        Instant::from_nanos(self.last_contact.as_nanos().saturating_add(self.timeout_ns))
    }
}
