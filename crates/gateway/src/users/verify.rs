//! The users of a file as those who can log on.

use super::UserStore;
use std::sync::Arc;
use taktwerk_server::identity::{Accepted, Credential, IdentityVerifier, Verification};
use taktwerk_types::StatusCode;

/// Lets the users of a store log on with their passwords.
#[derive(Debug, Clone)]
pub struct PasswordVerifier(Arc<UserStore>);

impl PasswordVerifier {
    /// Uses the store's users as they are at each attempt.
    #[must_use]
    pub fn new(store: Arc<UserStore>) -> Self {
        Self(store)
    }
}

impl IdentityVerifier for PasswordVerifier {
    fn verify(&self, credential: Credential) -> Verification {
        let Credential::Password { user_name, password } = credential else { return Verification::refused() };
        let users = self.0.users();
        // A good hash takes tens of milliseconds: that is for a worker thread.
        Verification::Blocking(Box::new(move || {
            let is_right = users.verify(&user_name, password.expose());
            if is_right { Ok(Accepted::default()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
        }))
    }

    fn still_knows(&self, user_name: &str) -> bool {
        self.0.users().get(user_name).is_some()
    }
}
