//! Combines the verifiers of all kinds of identity into one.

use super::{Credential, IdentityVerifier, Verification};
use std::sync::Arc;

/// Passes each credential to the verifier of its kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Identities {
    pub(super) passwords: Option<Arc<dyn IdentityVerifier>>,
    pub(super) certificates: Option<Arc<dyn IdentityVerifier>>,
    pub(super) tokens: Option<Arc<dyn IdentityVerifier>>,
}

impl Identities {
    pub(super) fn is_empty(&self) -> bool {
        self.passwords.is_none() && self.certificates.is_none() && self.tokens.is_none()
    }
}

impl IdentityVerifier for Identities {
    fn verify(&self, credential: Credential) -> Verification {
        let verifier = match &credential {
            Credential::Password { .. } => &self.passwords,
            Credential::Certificate { .. } => &self.certificates,
            Credential::IssuedToken { .. } => &self.tokens,
            _ => &None,
        };
        verifier.as_ref().map_or_else(Verification::refused, |verifier| verifier.verify(credential))
    }

    fn knows(&self, user_name: &str) -> bool {
        self.passwords.as_ref().is_some_and(|verifier| verifier.knows(user_name))
    }

    fn still_knows(&self, user_name: &str, credential: u64) -> bool {
        self.passwords.as_ref().is_some_and(|verifier| verifier.still_knows(user_name, credential))
    }
}
