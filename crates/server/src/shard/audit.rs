//! Audit records of a shard's channels.

use super::Shard;
use crate::audit::record::{
    AuditAction, AuditClass, AuditRecord, CERTIFICATE_LEN_MAX, hexadecimal, short_certificate,
};
use crate::connection::Tried;
use crate::ids::ConnectionId;
use crate::now::Now;
use crate::service::audit::session_creation;
use std::sync::Arc;
use taktwerk_channel::Channel;
use taktwerk_crypto::Provider;
use taktwerk_types::{StatusCode, UtcTime};

impl Shard {
    /// The next audit record, which is also raised as an AuditEvent. Take all of them after every batch of inputs, like
    /// all other outputs.
    #[inline]
    pub fn poll_audit(&mut self) -> Option<AuditRecord> {
        let record = self.audit.take()?;
        self.shared.space().raise_audit(&record, &self.shared.config().application_uri);
        Some(record)
    }

    /// Records that a session was not created after its signatures were checked.
    pub(crate) fn audit_creation(&mut self, id: ConnectionId, refused: Option<StatusCode>, now: Now) {
        if let Some(status) = refused {
            let shared = Arc::clone(&self.shared);
            self.audit_channel(id, now, status, |channel| {
                session_creation(&*shared.config().provider, channel.peer_certificate(), 0.0)
            });
        }
    }

    /// Records the results of deferred calls.
    pub(crate) fn audit_deferred(&mut self, now: Now) {
        for record in self.deferrals.take_noted() {
            self.audit.push_made(now, record);
        }
    }

    /// Records that a channel was opened or renewed.
    pub(crate) fn audit_open(&mut self, id: ConnectionId, status: StatusCode, is_renewal: bool, now: Now) {
        let shared = Arc::clone(&self.shared);
        let tried = self.tried(id).filter(|_| status.is_bad());
        self.audit_channel(id, now, status, |channel| {
            open_secure_channel(&*shared.config().provider, channel, tried, status, is_renewal)
        });
    }

    /// The unverified data of a handshake that is in progress or has just failed.
    fn tried(&self, id: ConnectionId) -> Option<Tried> {
        self.connections.get(id.0)?.tried.as_deref().cloned()
    }

    /// Records that a channel was not opened, or had to be closed.
    pub(crate) fn audit_failure(&mut self, id: ConnectionId, status: StatusCode, now: Now) {
        let is_open = self.connections.get(id.0).is_some_and(|connection| !connection.sessions.is_empty());
        if is_open {
            self.audit_channel(id, now, status, |_| AuditAction::CloseSecureChannel);
        } else {
            self.audit_open(id, status, false, now);
        }
    }

    /// Records that a client's certificate was refused, with the reason that the client does not learn.
    pub(crate) fn audit_certificate(&mut self, id: ConnectionId, status: StatusCode, now: Now) {
        let shared = Arc::clone(&self.shared);
        let tried = self.tried(id);
        self.audit_channel(id, now, status, |channel| {
            // The certificate of an open channel may differ from the one in a new handshake.
            let (thumbprint, certificate) = match tried {
                Some(tried) => (tried.thumbprint, tried.certificate),
                None => (
                    thumbprint(&*shared.config().provider, channel),
                    channel.peer_certificate().and_then(short_certificate),
                ),
            };
            AuditAction::Certificate { thumbprint, certificate, is_overlooked: false }
        });
    }

    /// Records an event of a channel.
    pub(crate) fn audit_channel(
        &mut self,
        id: ConnectionId,
        now: Now,
        status: StatusCode,
        action: impl FnOnce(&Channel) -> AuditAction,
    ) {
        if !self.audit.notes_sessions() {
            return;
        }
        let Some(connection) = self.connections.get(id.0) else { return };
        let (channel, address) = (&connection.channel, connection.address);
        let time: UtcTime = now.utc;
        // A verified certificate: the channel stores it only after verification.
        let is_known = channel.peer_certificate().is_some();
        let class = if is_known { AuditClass::Trusted } else { AuditClass::Stranger };
        self.audit.push(now, class, address, || {
            let mut record = AuditRecord::new(time, status, action(channel));
            record.secure_channel_id = channel.id();
            record.client_address = address;
            record
        });
    }

    /// Keeps the data of an OpenSecureChannel request for a possible refusal, after which the channel does not have it.
    pub(crate) fn note_handshake(&mut self, id: ConnectionId, job: &taktwerk_crypto::OpenChunk) {
        if !self.audit.notes_sessions() {
            return;
        }
        let certificate = job.chunk.get(job.sender_certificate.clone());
        let provider = &self.shared.config().provider;
        let thumbprint = certificate.map(|it| hexadecimal(&provider.thumbprint(it))).unwrap_or_default();
        let certificate = certificate.filter(|it| it.len() <= CERTIFICATE_LEN_MAX).map(Arc::from);
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.tried = Some(Box::new(Tried { policy: job.policy, thumbprint, certificate }));
        }
    }
}

/// The audit action for opening or renewing a channel, successful or not.
fn open_secure_channel(
    provider: &dyn Provider,
    channel: &Channel,
    tried: Option<Tried>,
    status: StatusCode,
    is_renewal: bool,
) -> AuditAction {
    // A channel that was never opened has no policy yet; None would be a guess.
    let is_known = status.is_good() || channel.policy().is_secure();
    match tried {
        Some(Tried { policy, thumbprint, certificate }) => AuditAction::OpenSecureChannel {
            client_certificate_thumbprint: thumbprint,
            client_certificate: certificate,
            requested_lifetime: channel.requested_lifetime_ms(),
            is_renewal,
            security_policy: Some(policy),
            security_mode: is_known.then(|| channel.mode()),
        },
        None => AuditAction::OpenSecureChannel {
            client_certificate_thumbprint: thumbprint(provider, channel),
            client_certificate: channel.peer_certificate().and_then(short_certificate),
            requested_lifetime: channel.requested_lifetime_ms(),
            is_renewal,
            security_policy: is_known.then(|| channel.policy()),
            security_mode: is_known.then(|| channel.mode()),
        },
    }
}

fn thumbprint(provider: &dyn Provider, channel: &Channel) -> Box<str> {
    let certificate = channel.peer_certificate();
    certificate.map(|certificate| hexadecimal(&provider.thumbprint(certificate))).unwrap_or_default()
}
