//! User identities and the interface for verifying them (Part 4 §7.40).
//!
//! The core processes identity tokens: it decrypts secrets, checks nonces, and verifies that users possess the key of
//! their certificate. The result is a [`Credential`], which the application's [`IdentityVerifier`] checks.

use crate::callback::BoxFuture;
use core::fmt;
use std::sync::Arc;
use taktwerk_crypto::Secret;
use taktwerk_types::{StatusCode, UtcTime};

/// The user of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum User {
    /// No user identity.
    Anonymous,
    /// A user with name and password.
    Named(Box<str>),
    /// A user with a certificate.
    Certificate {
        /// The verifier's name for the user, or the certificate's thumbprint.
        user_id: Box<str>,
        /// SHA-1 of the certificate in upper-case hexadecimal digits.
        thumbprint: Box<str>,
        /// The certificate's subject from the verifier (Part 18 §4.4.3); empty if not provided.
        subject: Box<str>,
        /// The issuer's subject, in the same format.
        issuer: Box<str>,
    },
    /// A user with a token of an authorization service.
    Issued {
        /// The user named by the token.
        user_id: Box<str>,
        /// The names in the token's `roles`.
        roles: Arc<[Box<str>]>,
        /// The names in the token's `groups`.
        groups: Arc<[Box<str>]>,
    },
}

impl User {
    /// The ClientUserId (Part 4 §3.1). It names the user in audits and identifies users; `None` for Anonymous.
    #[must_use]
    pub fn client_user_id(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Named(user_id) | Self::Certificate { user_id, .. } | Self::Issued { user_id, .. } => {
                Some(user_id)
            }
        }
    }

    /// Whether two users are the same: same kind and same ClientUserId. A new token for a user does not change the
    /// user.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
            && self.client_user_id() == other.client_user_id()
    }
}

/// A user credential from a client. All checks that do not need to know the user have been made.
#[non_exhaustive]
pub enum Credential {
    /// A name and a password.
    Password {
        /// The name as the client wrote it.
        user_name: Box<str>,
        /// The password; any bytes.
        password: Secret,
    },
    /// A certificate that the user trust list accepts, and whose key the user possesses.
    Certificate {
        /// The certificate without its chain.
        certificate: Arc<[u8]>,
        /// Its SHA-1 thumbprint in hexadecimal digits.
        thumbprint: Box<str>,
    },
    /// A token of an authorization service, for example a JSON Web Token (Part 6 §6.5).
    IssuedToken {
        /// The token; any bytes.
        token: Secret,
    },
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user_name, .. } => {
                f.debug_struct("Password").field("user_name", user_name).finish_non_exhaustive()
            }
            Self::Certificate { thumbprint, .. } => {
                f.debug_struct("Certificate").field("thumbprint", thumbprint).finish_non_exhaustive()
            }
            Self::IssuedToken { .. } => f.debug_struct("IssuedToken").finish_non_exhaustive(),
        }
    }
}

/// The verifier's result for an accepted user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Accepted {
    /// The user, if the credential does not name one.
    pub user_id: Option<Box<str>>,
    /// The certificate's subject as in Part 18 §4.4.3, `CN="…"/O="…"`. Roles can be granted to it.
    pub subject: Box<str>,
    /// The issuer's subject, in the same format.
    pub issuer: Box<str>,
    /// The names in a token's `roles`.
    pub roles: Vec<Box<str>>,
    /// The names in a token's `groups`.
    pub groups: Vec<Box<str>>,
    /// When the credential expires. The session then ends, unless its client has provided another one (Part 6
    /// §6.5.2.3). `None` if it does not expire.
    pub valid_until: Option<UtcTime>,
    /// Identifies this credential, as opposed to a later one such as a changed password. Passed to
    /// [`IdentityVerifier::still_knows`]. Not secret.
    pub credential: u64,
    /// The user must change the password: until then the session only has the role Anonymous (Part 18 §5.2.8).
    pub must_change_password: bool,
}

impl Accepted {
    /// Accepts a user under another name than the credential's.
    #[must_use]
    pub fn named(user_id: &str) -> Self {
        Self { user_id: Some(user_id.into()), ..Self::default() }
    }

    /// Adds the subject and issuer of a certificate.
    #[must_use]
    pub fn with_subject(mut self, subject: &str, issuer: &str) -> Self {
        self.subject = subject.into();
        self.issuer = issuer.into();
        self
    }

    /// Adds the roles and groups of a token.
    #[must_use]
    pub fn with_claims(mut self, roles: Vec<Box<str>>, groups: Vec<Box<str>>) -> Self {
        self.roles = roles;
        self.groups = groups;
        self
    }

    /// Sets when the credential expires.
    #[must_use]
    pub fn until(mut self, end: UtcTime) -> Self {
        self.valid_until = Some(end);
        self
    }

    /// Restricts the user to changing the password and to the rights of Anonymous.
    #[must_use]
    pub fn changing_password(mut self) -> Self {
        self.must_change_password = true;
        self
    }

    /// Identifies the credential.
    #[must_use]
    pub fn by(mut self, credential: u64) -> Self {
        self.credential = credential;
        self
    }
}

/// Decides whether a user may open a session.
///
/// A verifier must take the same time and give the same answer for an unknown user and a wrong secret. Clients get the
/// same status in any case; the server locks out after failures.
pub trait IdentityVerifier: Send + Sync {
    /// Verifies a credential. Return [`Verification::Blocking`] if it takes long, as a good password hash does.
    fn verify(&self, credential: Credential) -> Verification;

    /// Whether a user with this name exists. The audit keeps failed logins of existing users apart from those with
    /// invented names. Called on the shard, so it must not block. Default: no.
    fn knows(&self, user_name: &str) -> bool {
        let _ = user_name;
        false
    }

    /// Whether a user who logged in with a name and password still could, with the [`Accepted::credential`] of that
    /// login. Called for each such session after
    /// [`ServerShared::trust_list_changed`](crate::ServerShared::trust_list_changed), on the shard, so it must not
    /// block. If false, the session ends. Default: yes.
    fn still_knows(&self, user_name: &str, credential: u64) -> bool {
        let _ = (user_name, credential);
        true
    }
}

/// The verifier's verdict: the user, or the reason for refusal for the log.
pub type Verdict = Result<Accepted, StatusCode>;

/// How an [`IdentityVerifier`] returns its verdict.
#[non_exhaustive]
pub enum Verification {
    /// The verdict, available at once.
    Now(Verdict),
    /// A function that may block.
    Blocking(Box<dyn FnOnce() -> Verdict + Send>),
    /// A future.
    Later(BoxFuture<Verdict>),
}

impl Verification {
    /// Refuses the credential.
    #[must_use]
    pub fn refused() -> Self {
        Self::Now(Err(StatusCode::BAD_USER_ACCESS_DENIED))
    }
}

impl fmt::Debug for dyn IdentityVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityVerifier")
    }
}

/// A function that checks names and passwords. It is called on the shard and must not block.
impl<F: Fn(&str, &[u8]) -> Result<(), StatusCode> + Send + Sync> IdentityVerifier for F {
    fn verify(&self, credential: Credential) -> Verification {
        match credential {
            Credential::Password { user_name, password } => {
                Verification::Now(self(&user_name, password.expose()).map(|()| Accepted::default()))
            }
            _ => Verification::refused(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let credential =
            Credential::Password { user_name: "joe".into(), password: Secret::new(b"hunter2".to_vec()) };
        let printed = format!("{credential:?}");
        assert!(printed.contains("joe") && !printed.contains("hunter") && !printed.contains("104"));
        let token = Credential::IssuedToken { token: Secret::new(b"eyJ".to_vec()) };
        assert_eq!(format!("{token:?}"), "IssuedToken { .. }");
    }

    #[test]
    fn users_are_the_same_by_kind_and_id() {
        let issued = |groups: &[&str]| User::Issued {
            user_id: "joe".into(),
            roles: Arc::default(),
            groups: groups.iter().map(|group| Box::from(*group)).collect(),
        };
        assert!(issued(&["a"]).is_same_as(&issued(&["b"])));
        assert!(!issued(&[]).is_same_as(&User::Named("joe".into())));
        assert!(!User::Named("joe".into()).is_same_as(&User::Named("Joe".into())));
        assert!(User::Anonymous.is_same_as(&User::Anonymous));
    }
}
