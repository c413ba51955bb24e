//! Sessions (Part 4 §5.7): the state of a client between requests.
//!
//! - [`table`]: the sessions of a shard, their tokens and timeouts;
//! - [`continuation`]: the continuation points of a session;
//! - [`proof`]: the slow part of CreateSession and ActivateSession; [`lockout`]: lock-out after failed logins;
//!   [`owner`]: owners of subscriptions.

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

/// A session's slot in its shard.
pub(crate) type SessionKey = Key;

impl From<SessionKey> for crate::subscription::SessionKey {
    /// The engine is informed when a session ends, so its keys need no generation.
    fn from(key: SessionKey) -> Self {
        Self(key.index)
    }
}

/// The random part of an authentication token.
pub(crate) const SECRET_LEN: usize = 16;
/// Length of a server nonce, in bytes (Part 4 §5.7.2.2 requires at least 32).
pub(crate) const NONCE_LEN: usize = 32;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its account, below that of its client's address.
    pub(crate) account: Arc<Account>,
    /// Charge for this structure. The diagnostics entry, continuation points, subscriptions and requests have their own
    /// charges.
    pub(crate) charge: Charge,
    /// When its shard checks it next.
    pub(crate) looked_at: Instant,
    /// Its data for diagnostics.
    pub(crate) entry: Arc<SessionEntry>,
    /// The secret part of the authentication token.
    pub(crate) secret: [u8; SECRET_LEN],
    /// The nonce that the next ActivateSession must sign.
    pub(crate) server_nonce: [u8; NONCE_LEN],
    /// The session's connection; `None` after it was lost.
    pub(crate) connection: Option<ConnectionId>,
    /// The SecureChannelId on which requests must arrive.
    pub(crate) channel_id: u32,
    pub(crate) policy: SecurityPolicy,
    pub(crate) mode: MessageSecurityMode,
    /// The certificate of the channel that created the session.
    pub(crate) client_certificate: Option<Arc<[u8]>>,
    /// The nonce from CreateSession; empty without security.
    pub(crate) client_nonce: Box<[u8]>,
    /// The key last given to the client for a secret, with its policy.
    pub(crate) ephemeral: Option<(SecurityPolicy, Arc<dyn EphemeralKey>)>,
    /// `None` before the first successful ActivateSession.
    pub(crate) user: Option<User>,
    /// The user's certificate with its chain. It is validated again when a trust list changes.
    pub(crate) user_certificate: Option<Arc<[u8]>>,
    /// Identifies the user's credential, as set by the verifier.
    pub(crate) user_credential: u64,
    /// The user must change the password before the session gets the user's roles.
    pub(crate) must_change_password: bool,
    /// When the user's credential expires.
    pub(crate) user_until: Instant,
    /// The permissions of its user; none before activation.
    pub(crate) decisions: Arc<Decisions>,
    /// In ns.
    pub(crate) timeout_ns: u64,
    pub(crate) last_contact: Instant,
    /// Longest response that the client accepts, in bytes; 0 is no limit.
    pub(crate) max_response_len: u32,
    pub(crate) points: Points,
    /// The continuation points of HistoryRead; created by the first HistoryRead.
    pub(crate) history_points: Option<Arc<HistoryPoints>>,
}

/// Size of a session's entries in the tables of its shard, in bytes.
const TABLES: usize = 256;

/// Size in bytes of a session with this nonce, user and certificate chain.
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

    /// The context for callbacks.
    pub(crate) fn call_context(&self, object_id: NodeId) -> CallContext {
        let user = self.user.as_ref().and_then(User::client_user_id).map(Into::into);
        // Methods that use the user's name must not see a user who has to change the password first.
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
            noted: crate::callback::NotedCall::default(),
        }
    }

    /// When the session ends without further requests, or without a new user credential.
    pub(crate) fn deadline(&self) -> Instant {
        self.silence_ends().min(self.user_until)
    }

    /// When the session ends without further requests.
    pub(crate) fn silence_ends(&self) -> Instant {
        Instant::from_nanos(self.last_contact.as_nanos().saturating_add(self.timeout_ns))
    }
}
