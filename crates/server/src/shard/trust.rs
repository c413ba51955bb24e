//! Validates certificates in use again when a trust list changes (Part 12 §7.8.2.5), and closes channels when the
//! server's own certificates are replaced (Part 12 §7.10.9).
//!
//! A change of a trust list must be reported with
//! [`ServerShared::trust_list_changed`](crate::ServerShared::trust_list_changed). At its next turn, each shard starts
//! validating all certificates in use on worker threads: those of peers and of users. A channel whose certificate is
//! refused is closed, together with its sessions: their client may not return. A session also ends if its user's
//! certificate is refused, or if the verifier no longer knows its user's name.
//!
//! A handshake, an activation, or a move between shards may have been in progress during the change. Therefore each
//! records the change count at which its certificate was accepted, and is checked again if that is not the latest.

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

/// The status for a certificate that is not accepted. A certificate that could not be validated is not accepted either.
fn refusal(result: Option<JobResult>) -> Option<StatusCode> {
    match result {
        Some(JobResult::Crypto(Ok(_))) => None,
        Some(JobResult::Crypto(Err(CryptoError::Certificate(refusal)))) => {
            tracing::info!(%refusal, "a certificate in use is no longer accepted");
            Some(refusal.status())
        }
        _ => {
            tracing::warn!("a certificate in use could not be validated, so it is no longer accepted");
            Some(StatusCode::BAD_INTERNAL_ERROR)
        }
    }
}

impl Shard {
    /// Starts validating all certificates if a trust list has changed.
    pub(super) fn refresh_trust(&mut self, now: Now) {
        let changes = self.shared.trust_list_changes();
        if changes != self.synced.trust_list_changes {
            self.synced.trust_list_changes = changes;
            self.check_certificates(now);
        }
        let changes = self.shared.certificate_changes();
        if changes != self.synced.certificate_changes {
            self.synced.certificate_changes = changes;
            self.close_secured(now);
        }
    }

    /// Closes the channels that use replaced certificates (Part 12 §7.10.9): they could not be renewed, and their
    /// sessions could not be activated again. Clients reconnect with the new certificate and take over their
    /// subscriptions.
    #[cold]
    fn close_secured(&mut self, now: Now) {
        let is_secured = |connection: &Connection| {
            connection.channel.is_open() && connection.channel.policy().is_secure() && !connection.is_closing
        };
        let all = self.connections.iter().filter(|(_, connection)| is_secured(connection));
        for id in all.map(|(key, _)| ConnectionId(key)).collect::<Vec<_>>() {
            self.fail(id, StatusCode::BAD_SECURE_CHANNEL_CLOSED, now);
            self.update_connection(id, now);
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

    /// Starts validating a peer's certificate if a trust list has changed since the last validation.
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

    /// A channel was opened or renewed. Its certificate counts as accepted at the time when that began.
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
        self.update_connection(id, now);
    }

    /// Ends a session whose user's certificate is no longer accepted, unless it has another user now.
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
