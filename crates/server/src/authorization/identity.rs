//! The verified identity of a client at activation, the basis for granting roles.

use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};

/// The identity of a client and the security of its connection. All of it is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The user.
    pub user: UserIdentity,
    /// The ApplicationUri of the client's certificate. `None` on an unsigned channel, where any client could claim it.
    pub application_uri: Option<String>,
    /// The configured URL of the session's endpoint.
    pub endpoint_url: String,
    /// The algorithms of the channel.
    pub policy: SecurityPolicy,
    /// The security mode of the channel.
    pub mode: MessageSecurityMode,
}

/// A verified user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserIdentity {
    /// No user.
    Anonymous,
    /// Name and password.
    UserName(String),
    /// A certificate.
    Certificate {
        /// SHA-1 of the DER encoding, in upper case hexadecimal digits.
        thumbprint: String,
        /// The subject as Part 18 §4.4.3 writes it: `CN="…"/O="…"`.
        subject: String,
        /// The subject of the certificate's issuer, written likewise.
        issuer: String,
    },
    /// An access token.
    Issued {
        /// The token's subject.
        subject: String,
        /// The names in the token's `roles`.
        roles: Vec<String>,
        /// The names in the token's `groups`.
        groups: Vec<String>,
    },
}

impl Identity {
    /// A user on a channel. `application_uri` is that of the client's certificate; it is ignored on an unsigned
    /// channel.
    #[must_use]
    pub fn new(
        user: UserIdentity,
        application_uri: Option<&str>,
        endpoint_url: &str,
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
    ) -> Self {
        let is_authenticated = mode != MessageSecurityMode::None;
        Self {
            user,
            application_uri: application_uri.filter(|_| is_authenticated).map(str::to_owned),
            endpoint_url: endpoint_url.to_owned(),
            policy,
            mode,
        }
    }

    /// Anonymous on a channel without security.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new(UserIdentity::Anonymous, None, "", SecurityPolicy::None, MessageSecurityMode::None)
    }
}
