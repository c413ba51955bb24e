//! The verifier for users of the users file.

use super::UserStore;
use std::sync::Arc;
use taktwerk_server::identity::{Accepted, Credential, IdentityVerifier, Verification};
use taktwerk_types::StatusCode;

/// Lets the users of a store log on with their passwords.
#[derive(Debug, Clone)]
pub struct PasswordVerifier(Arc<UserStore>);

impl PasswordVerifier {
    /// Uses the current users of the store for each attempt.
    #[must_use]
    pub fn new(store: Arc<UserStore>) -> Self {
        Self(store)
    }
}

impl IdentityVerifier for PasswordVerifier {
    fn verify(&self, credential: Credential) -> Verification {
        let Credential::Password { user_name, password } = credential else { return Verification::refused() };
        let users = self.0.users();
        let store = Arc::clone(&self.0);
        // A hash takes tens of milliseconds, so it runs on a worker thread.
        Verification::Blocking(Box::new(move || {
            if !users.verify(&user_name, password.expose()) {
                return Err(StatusCode::BAD_USER_ACCESS_DENIED);
            }
            // From the same snapshot as the check: the store may have changed.
            let user = users.get(&user_name).ok_or(StatusCode::BAD_USER_ACCESS_DENIED)?;
            let accepted = Accepted::default().by(store.credential(user));
            Ok(if user.must_change_password { accepted.changing_password() } else { accepted })
        }))
    }

    fn knows(&self, user_name: &str) -> bool {
        self.0.users().get(user_name).is_some()
    }

    fn still_knows(&self, user_name: &str, credential: u64) -> bool {
        self.0
            .users()
            .get(user_name)
            .is_some_and(|user| !user.disabled && self.0.credential(user) == credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::Users;
    use taktwerk_crypto::Secret;

    #[test]
    fn a_changed_password_invalidates_the_credential() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        let mut users = Users::default();
        users.add("olaf", b"the first one", vec!["Operator".into()]).unwrap();
        users.add("olga", b"another one", Vec::new()).unwrap();
        users.save(&path).unwrap();
        let store = UserStore::open(&path).unwrap();
        let verifier = PasswordVerifier::new(Arc::clone(&store));
        let log_on = |user_name: &str, password: &[u8]| {
            let password = Secret::new(password.to_vec());
            match verifier.verify(Credential::Password { user_name: user_name.into(), password }) {
                Verification::Blocking(run) => run(),
                _ => panic!("a hash takes a while"),
            }
        };
        let olaf = log_on("olaf", b"the first one").unwrap().credential;
        let olga = log_on("olga", b"another one").unwrap().credential;
        let reread = |users: &Users| {
            // A different modification time, however coarse the clock is.
            let before = std::fs::metadata(&path).unwrap().modified().unwrap();
            users.save(&path).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(before + core::time::Duration::from_secs(1)).unwrap();
            assert!(store.reload().unwrap());
        };
        users.set_roles("olaf", Vec::new()).unwrap();
        reread(&users);
        assert!(verifier.still_knows("olaf", olaf) && verifier.still_knows("olga", olga));
        users.set_password("olaf", b"the second one").unwrap();
        reread(&users);
        assert!(!verifier.still_knows("olaf", olaf) && verifier.still_knows("olga", olga));
        let now = log_on("olaf", b"the second one").unwrap().credential;
        assert!(verifier.still_knows("olaf", now));
        assert_eq!(log_on("olaf", b"the first one"), Err(StatusCode::BAD_USER_ACCESS_DENIED));
        // The same password with a new salt.
        users.set_password("olaf", b"the second one").unwrap();
        reread(&users);
        assert!(!verifier.still_knows("olaf", now));
    }
}
