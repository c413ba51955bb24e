//! Audit records of services.

use super::context::Context;
use super::request::Request;
use crate::audit::record::{
    AuditAction, AuditClass, AuditRecord, CERTIFICATE_LEN_MAX, cut, hexadecimal, short_certificate,
};
use crate::session::table::TokenOwner;
use crate::session::{Session, SessionKey};
use crate::space::nodes::Nodes;
use std::sync::Arc;
use taktwerk_crypto::Provider;
use taktwerk_schema as schema;
use taktwerk_types::{IdentifierRef, NodeId, NodeIdRef, StatusCode, Structure};

/// A node's id. For a missing node only a numeric id is recorded; any other is arbitrary text from a client.
pub(crate) fn known_id(nodes: &Nodes, id: NodeIdRef<'_>) -> NodeId {
    match (nodes.resolve(id), id.identifier) {
        (Some(ix), _) => nodes.id_of(ix),
        (None, IdentifierRef::Numeric(number)) => NodeId::numeric(id.namespace_index, number),
        (None, _) => NodeId::NULL,
    }
}

/// The creation of a session by a client with this certificate.
pub(crate) fn session_creation(
    provider: &dyn Provider,
    certificate: Option<&Arc<[u8]>>,
    revised_session_timeout: f64,
) -> AuditAction {
    let thumbprint = |it: &Arc<[u8]>| hexadecimal(&provider.thumbprint(it));
    AuditAction::CreateSession {
        revised_session_timeout,
        client_certificate_thumbprint: certificate.map(thumbprint).unwrap_or_default(),
        client_certificate: certificate.and_then(short_certificate),
    }
}

impl Session {
    /// The ClientUserId.
    fn client_user_id(&self) -> Box<str> {
        self.entry.security().user
    }
}

impl Context<'_> {
    /// A record of a request's action, with the identity of the client.
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

    /// The class of a failed login: an existing user name is in another class than an unknown one.
    fn class_of_failure(&self, record: &AuditRecord) -> AuditClass {
        let AuditAction::ActivateSession { user, .. } = &record.action else { return record.class };
        let verifier = self.shared.config().verifier.as_ref();
        let is_user = || verifier.is_some_and(|verifier| verifier.knows(&user.name));
        match record.class {
            AuditClass::Stranger if !user.name.is_empty() && is_user() => AuditClass::KnownUser,
            class => class,
        }
    }

    /// Records that a session was activated, and for which user.
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

    /// Records a failure for a prepared record.
    pub(crate) fn audit_refused(&mut self, note: Option<Box<AuditRecord>>, status: StatusCode) {
        if let Some(note) = note {
            let (time, class) = (self.now.utc, self.class_of_failure(&note));
            self.audit.push(self.now, class, note.client_address, || AuditRecord { status, time, ..*note });
        }
    }

    /// Records session services that have no record of their own: refused requests, and Cancel.
    pub(crate) fn audit_service(&mut self, request: &Request<'_>, status: StatusCode) {
        let action = match request.type_id {
            schema::CreateSessionRequest::BINARY_ENCODING_ID if status.is_bad() => {
                let provider = &*self.shared.config().provider;
                session_creation(provider, self.peer.certificate.as_ref(), 0.0)
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

    /// Records that the certificate of a session's user is no longer accepted.
    pub(crate) fn audit_user_certificate(&mut self, key: SessionKey, status: StatusCode, certificate: &[u8]) {
        let thumbprint = hexadecimal(&self.shared.config().provider.thumbprint(certificate));
        let certificate = (certificate.len() <= CERTIFICATE_LEN_MAX).then(|| certificate.into());
        let action = AuditAction::Certificate { thumbprint, certificate, is_overlooked: false };
        self.audit_session_as(key, status, action, Some(AuditClass::Security));
    }

    /// Records an action on a session without a current request.
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
