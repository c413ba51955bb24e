//! Who uses a session, and who decides on it (Part 4 §7.40).
//!
//! The core takes identity tokens apart: it decrypts secrets, checks their nonces, and has users prove that a
//! certificate is theirs. What is left is a [`Credential`], which the application's [`IdentityVerifier`] looks at.

use crate::callback::BoxFuture;
use core::fmt;
use std::sync::Arc;
use taktwerk_crypto::Secret;
use taktwerk_types::{StatusCode, UtcTime};

/// Who uses a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum User {
    /// Nobody in particular.
    Anonymous,
    /// Somebody with a name and a password.
    Named(Box<str>),
    /// The owner of a certificate.
    Certificate {
        /// What the verifier calls the user, or the certificate's thumbprint.
        user_id: Box<str>,
        /// SHA-1 of the certificate in upper-case hexadecimal digits.
        thumbprint: Box<str>,
        /// The certificate's subject as the verifier writes it (Part 18 §4.4.3); empty if it does not say.
        subject: Box<str>,
        /// The subject of the certificate's issuer, written likewise.
        issuer: Box<str>,
    },
    /// Somebody for whom an authorization service vouches.
    Issued {
        /// Whom the token names.
        user_id: Box<str>,
        /// The names in the token's `roles`.
        roles: Arc<[Box<str>]>,
        /// The names in the token's `groups`.
        groups: Arc<[Box<str>]>,
    },
}

impl User {
    /// The ClientUserId (Part 4 §3.1): what names the user in audits and decides whether two are the same; `None` for
    /// Anonymous.
    #[must_use]
    pub fn client_user_id(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Named(user_id) | Self::Certificate { user_id, .. } | Self::Issued { user_id, .. } => {
                Some(user_id)
            }
        }
    }

    /// Whether two are the same user: of the same kind and with the same ClientUserId. A new token for somebody does
    /// not make somebody else of them.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
            && self.client_user_id() == other.client_user_id()
    }
}

/// What a client has shown of a user. Whatever could be checked without knowing the user has been checked.
#[non_exhaustive]
pub enum Credential {
    /// A name and a password.
    Password {
        /// The name as the client wrote it.
        user_name: Box<str>,
        /// The password; any bytes.
        password: Secret,
    },
    /// A certificate that the user list of trusted certificates has accepted, and whose key the user holds.
    Certificate {
        /// The certificate alone.
        certificate: Arc<[u8]>,
        /// The digits of its SHA-1 thumbprint.
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

/// What a verifier says of somebody it accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Accepted {
    /// Whom the credential stands for, if it does not say that by itself.
    pub user_id: Option<Box<str>>,
    /// The certificate's subject as Part 18 §4.4.3 writes it, `CN="…"/O="…"`: roles can be granted to it.
    pub subject: Box<str>,
    /// The subject of the certificate's issuer, written likewise.
    pub issuer: Box<str>,
    /// The names in a token's `roles`.
    pub roles: Vec<Box<str>>,
    /// The names in a token's `groups`.
    pub groups: Vec<Box<str>>,
    /// When the credential ends to be good: the session ends then, unless its client has shown another one (Part 6
    /// §6.5.2.3). `None` if it is good for ever.
    pub valid_until: Option<UtcTime>,
    /// Tells this credential from the one that may take its place, such as a changed password: it comes back in
    /// [`IdentityVerifier::still_knows`]. Not secret.
    pub credential: u64,
    /// The user has to change the password: until then the session has the role Anonymous only (Part 18 §5.2.8).
    pub must_change_password: bool,
}

impl Accepted {
    /// Accepts a user under another name than the credential's.
    #[must_use]
    pub fn named(user_id: &str) -> Self {
        Self { user_id: Some(user_id.into()), ..Self::default() }
    }

    /// Adds the names of a certificate.
    #[must_use]
    pub fn with_subject(mut self, subject: &str, issuer: &str) -> Self {
        self.subject = subject.into();
        self.issuer = issuer.into();
        self
    }

    /// Adds what a token says about roles and groups.
    #[must_use]
    pub fn with_claims(mut self, roles: Vec<Box<str>>, groups: Vec<Box<str>>) -> Self {
        self.roles = roles;
        self.groups = groups;
        self
    }

    /// Says when the credential ends to be good.
    #[must_use]
    pub fn until(mut self, end: UtcTime) -> Self {
        self.valid_until = Some(end);
        self
    }

    /// Lets the user do nothing but change the password and what everybody may do.
    #[must_use]
    pub fn changing_password(mut self) -> Self {
        self.must_change_password = true;
        self
    }

    /// Says which credential it was.
    #[must_use]
    pub fn by(mut self, credential: u64) -> Self {
        self.credential = credential;
        self
    }
}

/// Decides whether a user may open a session.
///
/// A verifier takes the same time and gives the same answer for a user that does not exist as for a wrong secret.
/// Clients hear the same in any case; lock-out after failures is the server's business.
pub trait IdentityVerifier: Send + Sync {
    /// Looks at a credential. Answer with [`Verification::Blocking`] when it takes a while, as a good password hash
    /// does.
    fn verify(&self, credential: Credential) -> Verification;

    /// Whether there is a user of this name: the audit keeps failed logins with such names apart from those with names that
    /// somebody made up. Asked on the shard, so it must not block. Default: no.
    fn knows(&self, user_name: &str) -> bool {
        let _ = user_name;
        false
    }

    /// Whether somebody who has logged on with this name and a password still could, with the [`Accepted::credential`] of
    /// then: asked for each such session after
    /// [`ServerShared::trust_list_changed`](crate::ServerShared::trust_list_changed), on the shard, so it must not block. A
    /// session whose user is not known any more ends. Default: yes.
    fn still_knows(&self, user_name: &str, credential: u64) -> bool {
        let _ = (user_name, credential);
        true
    }
}

/// What a verifier says: the user, or why not, for the log.
pub type Verdict = Result<Accepted, StatusCode>;

/// What an [`IdentityVerifier`] answers.
#[non_exhaustive]
pub enum Verification {
    /// At once.
    Now(Verdict),
    /// From a function that may block.
    Blocking(Box<dyn FnOnce() -> Verdict + Send>),
    /// From somewhere else.
    Later(BoxFuture<Verdict>),
}

impl Verification {
    /// Refuses.
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

/// A function that looks at names and passwords; it is called on the shard and must not block.
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
