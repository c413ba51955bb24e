//! Users with passwords, which servers verify as a slow job.

use super::Login;
use crate::ids::ClientId;
use taktwerk_client::{Identity, Secret};
use taktwerk_server::identity::{Accepted, Credential, IdentityVerifier, Verification};
use taktwerk_types::StatusCode;

const PASSWORD: &str = "a password of usual length";

/// Accepts one password for all users. The duration of the check is a cost of the host profile.
#[derive(Debug)]
pub(super) struct Verifier;

impl IdentityVerifier for Verifier {
    fn verify(&self, credential: Credential) -> Verification {
        Verification::Blocking(Box::new(move || match credential {
            Credential::Password { password, .. } if password.expose() == PASSWORD.as_bytes() => {
                Ok(Accepted::default())
            }
            _ => Err(StatusCode::BAD_USER_ACCESS_DENIED),
        }))
    }
}

/// The user of a client. Each one has its own: servers check only a few logins of one user and address at a time.
pub(super) fn identity(login: Login, client: ClientId) -> Identity {
    match login {
        Login::Anonymous => Identity::Anonymous,
        Login::Password => {
            let name = format!("operator-{}", client.0).into();
            Identity::UserName { name, password: Secret::from(PASSWORD) }
        }
    }
}
