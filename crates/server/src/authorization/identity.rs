//! What is known of a client when its session is activated: the facts that roles are granted for.

use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};

/// Who a client is, and how it came. Everything in here has been verified.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The user.
    pub user: UserIdentity,
    /// The ApplicationUri of the client's certificate; `None` on a channel that is not signed, where a client can say
    /// that it is anybody.
    pub application_uri: Option<String>,
    /// The URL of the endpoint that the session belongs to, as it is configured.
    pub endpoint_url: String,
    /// The algorithms of the channel.
    pub policy: SecurityPolicy,
    /// What the channel does to messages.
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
    /// A user who came through a channel. `application_uri` is that of the client's certificate; it is not believed on
    /// a channel that is not signed.
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

    /// Nobody on a channel without security.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new(UserIdentity::Anonymous, None, "", SecurityPolicy::None, MessageSecurityMode::None)
    }
}
