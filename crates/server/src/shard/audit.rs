//! What a shard notes of its channels for the audit.

use super::Shard;
use crate::audit::record::{AuditAction, AuditClass, AuditRecord, hexadecimal};
use crate::connection::Tried;
use crate::ids::ConnectionId;
use crate::now::Now;
use std::sync::Arc;
use taktwerk_channel::Channel;
use taktwerk_crypto::Provider;
use taktwerk_types::{StatusCode, UtcTime};

impl Shard {
    /// The next audit record, which is also raised as an AuditEvent. To be taken after every batch of inputs, as everything
    /// else that comes out.
    #[inline]
    pub fn poll_audit(&mut self) -> Option<AuditRecord> {
        let record = self.audit.take()?;
        self.shared.space().raise_audit(&record, &self.shared.config().application_uri);
        Some(record)
    }

    /// Notes that a session was not created after its signatures had been looked at.
    pub(crate) fn audit_creation(&mut self, id: ConnectionId, refused: Option<StatusCode>, now: Now) {
        if let Some(status) = refused {
            self.audit_channel(id, now, status, |_| AuditAction::CreateSession {
                revised_session_timeout: 0.0,
            });
        }
    }

    /// Notes what became of calls that waited.
    pub(crate) fn audit_deferred(&mut self, now: Now) {
        for record in self.deferrals.take_noted() {
            self.audit.push_made(now, record);
        }
    }

    /// Notes that a channel was opened or got new keys.
    pub(crate) fn audit_open(&mut self, id: ConnectionId, status: StatusCode, is_renewal: bool, now: Now) {
        let shared = Arc::clone(&self.shared);
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
    pub(crate) fn audit_failure(&mut self, id: ConnectionId, status: StatusCode, now: Now) {
        let is_open = self.connections.get(id.0).is_some_and(|connection| !connection.sessions.is_empty());
        if is_open {
            self.audit_channel(id, now, status, |_| AuditAction::CloseSecureChannel);
        } else {
            self.audit_open(id, status, false, now);
        }
    }

    /// Notes that a client's certificate was refused, with the reason that the client is not told.
    pub(crate) fn audit_certificate(&mut self, id: ConnectionId, status: StatusCode, now: Now) {
        let shared = Arc::clone(&self.shared);
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

/// The action of a channel that was opened or got new keys, or should have been.
fn open_secure_channel(
    provider: &dyn Provider,
    channel: &Channel,
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

fn thumbprint(provider: &dyn Provider, channel: &Channel) -> Box<str> {
    let certificate = channel.peer_certificate();
    certificate.map(|certificate| hexadecimal(&provider.thumbprint(certificate))).unwrap_or_default()
}
