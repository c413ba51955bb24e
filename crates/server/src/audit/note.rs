//! What services note.

use super::record::{AuditAction, AuditClass, AuditRecord, cut};
use crate::service::context::Context;
use crate::service::request::Request;
use crate::session::table::TokenOwner;
use crate::session::{Session, SessionKey};
use crate::shard::ConnectionId;
use crate::space::nodes::Nodes;
use taktwerk_crypto::SecurityPolicy;
use taktwerk_schema as schema;
use taktwerk_types::{IdentifierRef, NodeId, NodeIdRef, StatusCode, Structure, UtcTime};

/// A node's id; of one that does not exist only a number, because any other id is just a client's text.
pub(crate) fn known_id(nodes: &Nodes, id: NodeIdRef<'_>) -> NodeId {
    match (nodes.resolve(id), id.identifier) {
        (Some(ix), _) => nodes.id_of(ix),
        (None, IdentifierRef::Numeric(number)) => NodeId::numeric(id.namespace_index, number),
        (None, _) => NodeId::NULL,
    }
}

impl Session {
    /// The ClientUserId.
    fn client_user_id(&self) -> Box<str> {
        self.entry.security().user
    }
}

impl Context<'_> {
    /// A record of what a request did, with who it was.
    pub(crate) fn audit_record(
        &self,
        key: Option<SessionKey>,
        request: &Request<'_>,
        status: StatusCode,
        action: AuditAction,
    ) -> AuditRecord {
        let session = key.and_then(|key| self.sessions.get(key));
        let mut record = AuditRecord::new(self.now.utc, status, action);
        record.client_address = self.peer_address();
        record.client_audit_entry_id = cut(request.header.audit_entry_id);
        record.secure_channel_id = self.peer.channel_id;
        record.session_id = session.map_or(NodeId::NULL, |session| session.entry.id());
        record.client_user_id = session.map(Session::client_user_id).unwrap_or_default();
        let is_known = self.peer.policy.is_secure() || !record.client_user_id.is_empty();
        record.class = AuditClass::of(&record.action, is_known);
        record
    }

    /// The class of a failed login: one with the name of a user is not that of a stranger.
    fn class_of_failure(&self, record: &AuditRecord) -> AuditClass {
        let AuditAction::ActivateSession { user, .. } = &record.action else { return record.class };
        let verifier = self.shared.config().verifier.as_ref();
        let is_user = || verifier.is_some_and(|verifier| verifier.knows(&user.name));
        match record.class {
            AuditClass::Stranger if !user.name.is_empty() && is_user() => AuditClass::KnownUser,
            class => class,
        }
    }

    /// Notes that a session was activated, and for whom.
    pub(crate) fn audit_activated(&mut self, key: SessionKey, note: Option<Box<AuditRecord>>) {
        let (Some(mut record), Some(session)) = (note, self.sessions.get(key)) else { return };
        if let AuditAction::ActivateSession { user, roles } = &mut record.action {
            user.name = session.client_user_id();
            *roles = session.decisions.grant.roles.to_vec();
        }
        record.client_user_id = session.client_user_id();
        record.time = self.now.utc;
        let is_known = self.peer.policy.is_secure() || !record.client_user_id.is_empty();
        record.class = AuditClass::of(&record.action, is_known);
        self.audit.push_made(self.now, *record);
    }

    /// Notes that something that was to be noted at its end was refused.
    pub(crate) fn audit_refused(&mut self, note: Option<Box<AuditRecord>>, status: StatusCode) {
        if let Some(note) = note {
            let (time, class) = (self.now.utc, self.class_of_failure(&note));
            self.audit.push(self.now, class, note.client_address, || AuditRecord { status, time, ..*note });
        }
    }

    /// Notes the services around sessions that do not note themselves: those that were refused, and Cancel.
    pub(crate) fn audit_service(&mut self, request: &Request<'_>, status: StatusCode) {
        let action = match request.type_id {
            schema::CreateSessionRequest::BINARY_ENCODING_ID if status.is_bad() => {
                AuditAction::CreateSession { revised_session_timeout: 0.0 }
            }
            schema::ActivateSessionRequest::BINARY_ENCODING_ID if status.is_bad() => {
                let wanted = request.decode::<schema::ActivateSessionRequest>();
                AuditAction::activation(&wanted.map(|wanted| wanted.user_identity_token).unwrap_or_default())
            }
            schema::CloseSessionRequest::BINARY_ENCODING_ID if status.is_bad() => AuditAction::CloseSession,
            schema::CancelRequest::BINARY_ENCODING_ID => {
                let wanted = request.decode::<schema::CancelRequest>();
                AuditAction::Cancel { request_handle: wanted.map_or(0, |wanted| wanted.request_handle) }
            }
            _ => return,
        };
        let key = match self.sessions.owner(request.header.token) {
            TokenOwner::Here(key) => Some(key),
            TokenOwner::Shard(_) | TokenOwner::Nobody => None,
        };
        let mut record = self.audit_record(key, request, status, action);
        record.class = self.class_of_failure(&record);
        self.audit.push_made(self.now, record);
    }

    /// Notes that the certificate of a session's user is no longer accepted.
    pub(crate) fn audit_user_certificate(&mut self, key: SessionKey, status: StatusCode, certificate: &[u8]) {
        let thumbprint = hexadecimal(&self.shared.config().provider.thumbprint(certificate));
        let action = AuditAction::Certificate { thumbprint, is_overlooked: false };
        self.audit_session_as(key, status, action, Some(AuditClass::Security));
    }

    /// Notes what became of a session without a request at hand.
    pub(crate) fn audit_session(&mut self, key: SessionKey, status: StatusCode, action: AuditAction) {
        self.audit_session_as(key, status, action, None);
    }

    fn audit_session_as(
        &mut self,
        key: SessionKey,
        status: StatusCode,
        action: AuditAction,
        class: Option<AuditClass>,
    ) {
        if !self.audit.notes_sessions() {
            return;
        }
        let Some(session) = self.sessions.get(key) else { return };
        let (channel, session_id, user) = (session.channel_id, session.entry.id(), session.client_user_id());
        let time = self.now.utc;
        let is_known = session.client_certificate.is_some() || !user.is_empty();
        let class = class.unwrap_or(AuditClass::of(&action, is_known));
        let address = self.peer_address();
        self.audit.push(self.now, class, address, || {
            let mut record = AuditRecord::new(time, status, action);
            record.client_address = address;
            record.secure_channel_id = channel;
            record.session_id = session_id;
            record.client_user_id = user;
            record
        });
    }
}

impl crate::Shard {
    /// The next audit record. To be taken after every batch of inputs, as everything else that comes out.
    #[inline]
    pub fn poll_audit(&mut self) -> Option<AuditRecord> {
        self.audit.take()
    }

    /// Notes that a session was not created after its signatures had been looked at.
    pub(crate) fn audit_creation(&mut self, id: ConnectionId, refused: Option<StatusCode>, now: crate::Now) {
        if let Some(status) = refused {
            self.audit_channel(id, now, status, |_| AuditAction::CreateSession {
                revised_session_timeout: 0.0,
            });
        }
    }

    /// Notes what became of calls that waited.
    pub(crate) fn audit_deferred(&mut self, now: crate::Now) {
        for record in self.deferrals.take_noted() {
            self.audit.push_made(now, record);
        }
    }

    /// Notes that a channel was opened or got new keys.
    pub(crate) fn audit_open(
        &mut self,
        id: ConnectionId,
        status: StatusCode,
        is_renewal: bool,
        now: crate::Now,
    ) {
        let shared = std::sync::Arc::clone(&self.shared);
        let tried = self.tried(id).filter(|_| status.is_bad());
        self.audit_channel(id, now, status, |channel| {
            open_secure_channel(&*shared.config().provider, channel, tried, status, is_renewal)
        });
    }

    /// What a handshake that is under way, or has just failed, said of itself before anything of it was verified.
    fn tried(&self, id: ConnectionId) -> Option<Tried> {
        self.connections.get(id.0)?.tried.as_deref().cloned()
    }

    /// Notes that a channel was not opened, or had to be closed.
    pub(crate) fn audit_failure(&mut self, id: ConnectionId, status: StatusCode, now: crate::Now) {
        let is_open = self.connections.get(id.0).is_some_and(|connection| !connection.sessions.is_empty());
        if is_open {
            self.audit_channel(id, now, status, |_| AuditAction::CloseSecureChannel);
        } else {
            self.audit_open(id, status, false, now);
        }
    }

    /// Notes that a client's certificate was refused, with the reason that the client is not told.
    pub(crate) fn audit_certificate(&mut self, id: ConnectionId, status: StatusCode, now: crate::Now) {
        let shared = std::sync::Arc::clone(&self.shared);
        let tried = self.tried(id);
        self.audit_channel(id, now, status, |channel| AuditAction::Certificate {
            // That of a channel which is open already is not the one that a new handshake shows.
            thumbprint: match tried {
                Some(tried) => tried.thumbprint,
                None => thumbprint(&*shared.config().provider, channel),
            },
            is_overlooked: false,
        });
    }

    /// Notes what became of a channel.
    pub(crate) fn audit_channel(
        &mut self,
        id: ConnectionId,
        now: crate::Now,
        status: StatusCode,
        action: impl FnOnce(&taktwerk_channel::Channel) -> AuditAction,
    ) {
        if !self.audit.notes_sessions() {
            return;
        }
        let Some(connection) = self.connections.get(id.0) else { return };
        let (channel, address) = (&connection.channel, connection.address);
        let time: UtcTime = now.utc;
        // A certificate that was verified: the channel takes none over before.
        let is_known = channel.peer_certificate().is_some();
        let class = if is_known { AuditClass::Trusted } else { AuditClass::Stranger };
        self.audit.push(now, class, address, || {
            let mut record = AuditRecord::new(time, status, action(channel));
            record.secure_channel_id = channel.id();
            record.client_address = address;
            record
        });
    }

    /// Remembers what an OpenSecureChannel request says of itself, for the case that it is refused: the channel takes over
    /// none of it then.
    pub(crate) fn note_handshake(&mut self, id: ConnectionId, job: &taktwerk_crypto::OpenChunk) {
        if !self.audit.notes_sessions() {
            return;
        }
        let certificate = job.chunk.get(job.sender_certificate.clone());
        let provider = &self.shared.config().provider;
        let thumbprint = certificate.map(|it| hexadecimal(&provider.thumbprint(it))).unwrap_or_default();
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.tried = Some(Box::new(Tried { policy: job.policy, thumbprint }));
        }
    }
}

/// What an OpenSecureChannel request says of itself in the part that is not encrypted.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    policy: SecurityPolicy,
    /// Of the certificate that was shown, in hexadecimal digits.
    thumbprint: Box<str>,
}

/// The action of a channel that was opened or got new keys, or should have been.
fn open_secure_channel(
    provider: &dyn taktwerk_crypto::Provider,
    channel: &taktwerk_channel::Channel,
    tried: Option<Tried>,
    status: StatusCode,
    is_renewal: bool,
) -> AuditAction {
    // A channel that was never opened has no policy yet, and SecurityPolicy None would be a guess.
    let is_known = status.is_good() || channel.policy().is_secure();
    match tried {
        Some(Tried { policy, thumbprint }) => AuditAction::OpenSecureChannel {
            client_certificate_thumbprint: thumbprint,
            is_renewal,
            security_policy: Some(policy),
            security_mode: is_known.then(|| channel.mode()),
        },
        None => AuditAction::OpenSecureChannel {
            client_certificate_thumbprint: thumbprint(provider, channel),
            is_renewal,
            security_policy: is_known.then(|| channel.policy()),
            security_mode: is_known.then(|| channel.mode()),
        },
    }
}

fn thumbprint(provider: &dyn taktwerk_crypto::Provider, channel: &taktwerk_channel::Channel) -> Box<str> {
    let certificate = channel.peer_certificate();
    certificate.map(|certificate| hexadecimal(&provider.thumbprint(certificate))).unwrap_or_default()
}

fn hexadecimal(bytes: &[u8]) -> Box<str> {
    use core::fmt::Write;
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02X}");
    }
    digits.into()
}
