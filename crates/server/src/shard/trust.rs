//! Certificates in use are looked at again when a trust list changes (Part 12 §7.8.2.5).
//!
//! Whoever changes a trust list tells [`ServerShared::trust_list_changed`](crate::ServerShared::trust_list_changed);
//! each shard notices at its next turn and has every peer's certificate validated again, on worker threads. A channel
//! whose certificate is refused is closed, and its sessions end with it: their client may not come back.

use super::deferred::Kind;
use super::effect::{Job, JobResult};
use super::{ConnectionId, Shard};
use crate::now::Now;
use std::sync::Arc;
use taktwerk_crypto::{CertificatePurpose, CryptoError};
use taktwerk_types::{Instant, StatusCode};

impl Shard {
    /// Starts over with all certificates if a trust list has changed.
    pub(super) fn refresh_trust(&mut self) {
        let changes = self.shared.trust_list_changes();
        if changes != self.trust_list_changes {
            self.trust_list_changes = changes;
            self.check_certificates();
        }
    }

    #[cold]
    fn check_certificates(&mut self) {
        for (key, connection) in self.connections.iter() {
            let Some(certificate) = connection.channel.peer_certificate().cloned() else { continue };
            let provider = Arc::clone(&self.shared.config().provider);
            let job = taktwerk_crypto::Job::Validate { certificate, purpose: CertificatePurpose::Client };
            let job = Job::Blocking(Box::new(move || JobResult::Crypto(job.run(&*provider))));
            self.deferrals.wait(None, None, Instant::FAR, Kind::Trust(ConnectionId(key)), job);
        }
    }

    /// Closes a channel whose certificate is no longer accepted.
    pub(super) fn certificate_checked(&mut self, id: ConnectionId, result: Option<JobResult>, now: Now) {
        let Some(JobResult::Crypto(Err(CryptoError::Certificate(refusal)))) = result else { return };
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        tracing::info!(%refusal, "a certificate in use is no longer accepted");
        let sessions = connection.sessions.clone();
        self.audit_certificate(id, refusal.status(), now);
        for key in sessions {
            self.context(None, now).close_session(key, true, None);
        }
        self.apply_attached(now);
        self.fail(id, StatusCode::BAD_SECURITY_CHECKS_FAILED, now);
        self.settle(id, now);
    }
}
