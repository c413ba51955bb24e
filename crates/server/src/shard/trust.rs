//! Certificates in use are looked at again when a trust list changes (Part 12 §7.8.2.5).
//!
//! Channels of our own certificates are closed when these are replaced (Part 12 §7.10.9).
//!
//! Whoever changes a trust list tells [`ServerShared::trust_list_changed`](crate::ServerShared::trust_list_changed);
//! each shard notices at its next turn and has every certificate in use validated again, on worker threads: those of the
//! peers and those of the users. A channel whose certificate is refused is closed, and its sessions end with it: their
//! client may not come back. A session whose user's certificate is refused ends too, and so does that of a user whose name
//! the verifier no longer knows.
//!
//! A handshake or an activation may have been under way when the list changed, or a connection on its way from one shard
//! to another: each knows as of which change its certificate was accepted, and is looked at again if that is not the last.

use super::Shard;
use crate::connection::Connection;
use crate::effect::JobResult;
use crate::ids::ConnectionId;
use crate::now::Now;
use crate::service::deferred::Kind;
use crate::service::trust::validation;
use crate::session::SessionKey;
use std::sync::Arc;
use taktwerk_crypto::{CertificatePurpose, CryptoError};
use taktwerk_types::StatusCode;

/// The status of a certificate that is not accepted. Whoever could not be looked at is not accepted either.
fn refusal(result: Option<JobResult>) -> Option<StatusCode> {
    match result {
        Some(JobResult::Crypto(Ok(_))) => None,
        Some(JobResult::Crypto(Err(CryptoError::Certificate(refusal)))) => {
            tracing::info!(%refusal, "a certificate in use is no longer accepted");
            Some(refusal.status())
        }
        _ => {
            tracing::warn!("a certificate in use could not be looked at: it is no longer accepted");
            Some(StatusCode::BAD_INTERNAL_ERROR)
        }
    }
}

impl Shard {
    /// Starts over with all certificates if a trust list has changed.
    pub(super) fn refresh_trust(&mut self, now: Now) {
        let changes = self.shared.trust_list_changes();
        if changes != self.told.trust_list_changes {
            self.told.trust_list_changes = changes;
            self.check_certificates(now);
        }
        let changes = self.shared.certificate_changes();
        if changes != self.told.certificate_changes {
            self.told.certificate_changes = changes;
            self.close_secured(now);
        }
    }

    /// Closes the channels of certificates of ours that were replaced (Part 12 §7.10.9): they could not be renewed, and their
    /// sessions not be activated again. Clients come back with the new certificate and take their subscriptions over.
    #[cold]
    fn close_secured(&mut self, now: Now) {
        let is_secured = |connection: &Connection| {
            connection.channel.is_open() && connection.channel.policy().is_secure() && !connection.is_closing
        };
        let all = self.connections.iter().filter(|(_, connection)| is_secured(connection));
        for id in all.map(|(key, _)| ConnectionId(key)).collect::<Vec<_>>() {
            self.fail(id, StatusCode::BAD_SECURE_CHANNEL_CLOSED, now);
            self.settle(id, now);
        }
    }

    #[cold]
    fn check_certificates(&mut self, now: Now) {
        let connections: Vec<_> = self.connections.iter().map(|(key, _)| ConnectionId(key)).collect();
        for id in connections {
            self.check_certificate_if_due(id);
        }
        let sessions: Vec<_> = self.sessions.iter().map(|(key, _)| key).collect();
        let mut cx = self.context(None, now);
        for key in sessions {
            cx.check_user(key);
            cx.end_if_unknown(key);
        }
        self.apply_attached(now);
    }

    /// Has a peer's certificate looked at if a trust list has changed since that was done last.
    pub(super) fn check_certificate_if_due(&mut self, id: ConnectionId) {
        let change = self.shared.trust_list_changes();
        let Some(connection) = self.connections.get(id.0) else { return };
        let Some(certificate) = connection.channel.peer_certificate().cloned() else { return };
        if connection.trusted_at != change {
            let purpose = CertificatePurpose::Client { address: connection.address };
            let job = validation(&self.shared.config().provider, certificate, purpose);
            self.deferrals.run_apart(Kind::Trust(id, change), job);
        }
    }

    /// A channel's job is about to run.
    pub(super) fn handshake_begins(&mut self, id: ConnectionId, job: &mut taktwerk_crypto::Job) {
        let change = self.shared.trust_list_changes();
        let taktwerk_crypto::Job::OpenChunk(request) = job else { return };
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.checked_at = change;
            request.purpose = CertificatePurpose::Client { address: connection.address };
            self.note_handshake(id, request);
        }
    }

    /// A channel has been opened or renewed: its certificate was accepted when that began.
    pub(super) fn handshake_succeeded(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id.0) {
            connection.trusted_at = connection.trusted_at.max(connection.checked_at);
            connection.tried = None;
            self.check_certificate_if_due(id);
        }
    }

    /// Closes a channel whose certificate is no longer accepted.
    pub(super) fn certificate_checked(
        &mut self,
        id: ConnectionId,
        change: u64,
        result: Option<JobResult>,
        now: Now,
    ) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let Some(status) = refusal(result) else {
            connection.trusted_at = connection.trusted_at.max(change);
            return;
        };
        let sessions = connection.sessions.clone();
        self.audit_certificate(id, status, now);
        for key in sessions {
            self.context(None, now).close_session(key, true, None);
        }
        self.apply_attached(now);
        self.fail(id, StatusCode::BAD_SECURITY_CHECKS_FAILED, now);
        self.settle(id, now);
    }

    /// Ends a session whose user's certificate is no longer accepted, unless it has another user by now.
    pub(super) fn user_checked(
        &mut self,
        key: SessionKey,
        certificate: &Arc<[u8]>,
        result: Option<JobResult>,
        now: Now,
    ) {
        let Some(status) = refusal(result) else { return };
        let mut cx = self.context(None, now);
        let shown = cx.sessions.get(key).and_then(|session| session.user_certificate.as_ref());
        if shown != Some(certificate) {
            return;
        }
        cx.audit_user_certificate(key, status, certificate);
        cx.close_session(key, true, None);
        self.apply_attached(now);
    }
}
