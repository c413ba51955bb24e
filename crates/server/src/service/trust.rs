//! Validates the users of sessions again after a change of a trust list or of the list of users.

use super::context::Context;
use super::deferred::Kind;
use crate::effect::{JobResult, Task};
use crate::identity::User;
use crate::job_kind::JobKind;
use crate::session::SessionKey;
use std::sync::Arc;
use taktwerk_crypto::{CertificatePurpose, Provider};

/// Validates a certificate.
pub(crate) fn validation(
    provider: &Arc<dyn Provider>,
    certificate: Arc<[u8]>,
    purpose: CertificatePurpose,
) -> Task {
    let provider = Arc::clone(provider);
    let job = taktwerk_crypto::Job::Validate { certificate, purpose };
    Task::blocking(JobKind::ValidateCertificate, move || JobResult::Crypto(job.run(&*provider)))
}

impl Context<'_> {
    /// Starts validating the certificate of a session's user, if there is one.
    pub(crate) fn check_user(&mut self, key: SessionKey) {
        let certificate = self.sessions.get(key).and_then(|session| session.user_certificate.clone());
        let Some(certificate) = certificate else { return };
        let kind = Kind::UserTrust(key, Arc::clone(&certificate));
        let purpose = CertificatePurpose::User { address: None };
        let job = validation(&self.shared.config().provider, certificate, purpose);
        self.deferrals.run_apart(kind, job);
    }

    /// Ends a session whose user can no longer log on with that name and credential.
    pub(crate) fn end_if_unknown(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get(key) else { return };
        let (Some(User::Named(name)), credential) = (session.user.as_ref(), session.user_credential) else {
            return;
        };
        let verifier = self.shared.config().verifier.as_ref();
        if verifier.is_some_and(|verifier| !verifier.still_knows(name, credential)) {
            tracing::info!(user = %name, "the session ends: its user or password is no longer valid");
            self.close_session(key, true, None);
        }
    }
}
