//! Sessions whose users are looked at again after a trust list or the list of users has changed.

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
    /// Has the certificate of a session's user looked at, if it has shown one.
    pub(crate) fn check_user(&mut self, key: SessionKey) {
        let certificate = self.sessions.get(key).and_then(|session| session.user_certificate.clone());
        let Some(certificate) = certificate else { return };
        let kind = Kind::UserTrust(key, Arc::clone(&certificate));
        let purpose = CertificatePurpose::User { address: None };
        let job = validation(&self.shared.config().provider, certificate, purpose);
        self.deferrals.run_apart(kind, job);
    }

    /// Ends a session whose user has a name that nobody can log on with any more.
    pub(crate) fn end_if_unknown(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get(key) else { return };
        let (Some(User::Named(name)), credential) = (session.user.as_ref(), session.user_credential) else {
            return;
        };
        let verifier = self.shared.config().verifier.as_ref();
        if verifier.is_some_and(|verifier| !verifier.still_knows(name, credential)) {
            tracing::info!(user = %name, "the user of a session can no longer log on as then: it ends");
            self.close_session(key, true, None);
        }
    }
}
