//! Users that log on with a certificate.

use taktwerk::server::{Accepted, Credential, IdentityVerifier, Verification};
use taktwerk_crypto::certificate::Certificate;

/// Accepts every user whose certificate is in the trust list for users. Roles decide what the user may do.
///
/// Users are identified by thumbprint, so another certificate with the same name is another user. Roles are granted to
/// the thumbprint, the subject, or the issuer's subject.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct CertificateVerifier;

impl CertificateVerifier {
    /// A verifier.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl IdentityVerifier for CertificateVerifier {
    fn verify(&self, credential: Credential) -> Verification {
        let Credential::Certificate { certificate, .. } = credential else { return Verification::refused() };
        let Ok(certificate) = Certificate::from_der(&certificate) else { return Verification::refused() };
        let subject = certificate.subject_criteria().unwrap_or_default();
        let issuer = certificate.issuer_criteria().unwrap_or_default();
        Verification::Now(Ok(Accepted::default().with_subject(&subject, &issuer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk::server::Secret;

    #[test]
    fn invalid_certificates_and_other_credentials_are_refused() {
        let refused = |credential| match CertificateVerifier::new().verify(credential) {
            Verification::Now(verdict) => verdict.is_err(),
            _ => false,
        };
        assert!(refused(Credential::Certificate { certificate: [1, 2, 3].into(), thumbprint: "A".into() }));
        assert!(refused(Credential::Password {
            user_name: "olaf".into(),
            password: Secret::new(b"secret".to_vec())
        }));
    }
}
