//! Errors of a client, by cause.

use taktwerk_channel::ChannelError;
use taktwerk_crypto::{CertificateRefusal, CryptoError, MessageSecurityMode, SecurityPolicy};
use taktwerk_types::{DecodeError, StatusCode};

/// Why a request or a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection could not be established or has failed; the text is the driver's.
    #[error("connection: {0}")]
    Connection(Box<str>),
    /// The server ended the connection with an Error message (Part 6 §7.1.2.5).
    #[error("the server ended the connection: {status}{}{reason}", if .reason.is_empty() { "" } else { " " })]
    ServerClosed {
        /// The error.
        status: StatusCode,
        /// The server's reason, possibly empty.
        reason: Box<str>,
    },
    /// The channel refused a received message or could not send one.
    #[error("channel: {0}")]
    Channel(#[from] ChannelError),
    /// The server answered with a fault (Part 4 §7.34).
    #[error("{service} failed: {status}")]
    Service {
        /// The service.
        service: &'static str,
        /// The fault's status.
        status: StatusCode,
    },
    /// The response cannot be decoded.
    #[error("the response cannot be decoded: {0}")]
    Decode(#[from] DecodeError),
    /// The response has another type than the request needs, or the wrong number of results.
    #[error("unexpected response to {0}")]
    UnexpectedResponse(&'static str),
    /// The request timed out.
    #[error("no answer to {0} in time")]
    Timeout(&'static str),
    /// The server is not trusted or does not offer the required security.
    #[error("security: {0}")]
    Security(#[from] SecurityProblem),
    /// The call is not possible now. Nothing was sent.
    #[error("{0}")]
    Local(#[from] Misuse),
}

/// Why the client refused a server before it sent a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityProblem {
    /// No endpoint matches the target.
    #[error("the server offers no endpoint with {wanted}; it offers {}", list(.offered))]
    NoEndpoint {
        /// The required security, as text.
        wanted: Box<str>,
        /// The security of the offered endpoints.
        offered: Vec<(Box<str>, i32)>,
    },
    /// The endpoint does not accept this kind of identity.
    #[error("the endpoint does not accept {0} identities")]
    NoTokenPolicy(&'static str),
    /// The password would be sent unencrypted (Part 4 §7.40.4).
    #[error("the password would be sent unencrypted; use a secured endpoint or allow it explicitly")]
    PlaintextPassword,
    /// The endpoint lists of CreateSession and GetEndpoints differ: an attacker may have edited the discovery response
    /// (Part 4 §5.7.2.1).
    #[error("the server's endpoints in CreateSession differ from those in GetEndpoints")]
    EndpointsChanged,
    /// The server's certificate in CreateSession differs from that of the channel.
    #[error("the server's certificate in CreateSession differs from that of the channel")]
    CertificateChanged,
    /// The ApplicationUri in the server's certificate is missing or differs from that of its endpoints (Part 4 §5.5.1).
    #[error(
        "the server's certificate belongs to {}, but its endpoints name another application",
        .certificate.as_deref().unwrap_or("no application")
    )]
    ApplicationUri {
        /// The certificate's ApplicationUri.
        certificate: Option<Box<str>>,
    },
    /// The server sent no ephemeral key for encrypting the user's secret (Part 6 §6.8.2).
    #[error("the server sent no ephemeral key for the user's secret, which {0} requires")]
    NoKey(SecurityPolicy),
    /// The server's nonce is too short, all zero or repeated (Part 4 §5.7.2.2).
    #[error("the server's nonce is not acceptable")]
    Nonce,
    /// The server issued an authentication token that is already in use (Part 4 §5.7.2.1).
    #[error("the server repeated an authentication token")]
    TokenRepeated,
    /// A cryptographic operation or the validation of a certificate failed.
    #[error("{0}")]
    Crypto(#[from] CryptoError),
    /// The key of the user's certificate does not fit the policy.
    #[error("the key of the user's certificate does not fit {0}")]
    UserCertificate(SecurityPolicy),
    /// This combination of identity, policy and mode is not supported.
    #[error("this kind of identity is not supported with {0} {1}")]
    Unsupported(SecurityPolicy, MessageSecurityMode),
}

fn list(offered: &[(Box<str>, i32)]) -> String {
    let modes = ["?", "None", "Sign", "SignAndEncrypt"];
    let name =
        |mode: i32| usize::try_from(mode).ok().and_then(|mode| modes.get(mode)).copied().unwrap_or("?");
    offered.iter().map(|(policy, mode)| format!("{policy}/{}", name(*mode))).collect::<Vec<_>>().join(", ")
}

/// A call that is not possible now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// There is no session.
    #[error("not connected")]
    NotConnected,
    /// The client is connected or connecting already.
    #[error("already connected")]
    AlreadyConnected,
    /// Too many requests are outstanding.
    #[error("too many outstanding requests")]
    TooManyRequests,
    /// The server's NamespaceArray has changed: look up NodeIds again.
    #[error("the server's NamespaceArray has changed; look the NodeIds up again")]
    NamespacesChanged,
    /// The subscription does not belong to this client.
    #[error("no such subscription")]
    NoSuchSubscription,
    /// The URL is not `opc.tcp://host[:port][/path]`.
    #[error("not an opc.tcp URL")]
    Url,
    /// The response was decoded as the wrong type.
    #[error("the response is of another type")]
    WrongType,
}

impl ClientError {
    /// Why the client refused the server's certificate, if it did. Log it locally only.
    #[must_use]
    pub fn refused_certificate(&self) -> Option<&CertificateRefusal> {
        match self {
            Self::Security(SecurityProblem::Crypto(CryptoError::Certificate(refusal)))
            | Self::Channel(ChannelError::Crypto(CryptoError::Certificate(refusal))) => Some(refusal),
            _ => None,
        }
    }

    /// The corresponding StatusCode.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Connection(_) => StatusCode::BAD_COMMUNICATION_ERROR,
            Self::ServerClosed { status, .. } | Self::Service { status, .. } => *status,
            Self::Channel(error) => error.status(),
            Self::Decode(error) => error.status(),
            Self::UnexpectedResponse(_) => StatusCode::BAD_UNKNOWN_RESPONSE,
            Self::Timeout(_) => StatusCode::BAD_TIMEOUT,
            Self::Security(problem) => match problem {
                SecurityProblem::NoEndpoint { .. } => StatusCode::BAD_SECURITY_POLICY_REJECTED,
                SecurityProblem::NoTokenPolicy(_) => StatusCode::BAD_IDENTITY_TOKEN_REJECTED,
                SecurityProblem::Nonce => StatusCode::BAD_NONCE_INVALID,
                SecurityProblem::ApplicationUri { .. } => StatusCode::BAD_CERTIFICATE_URI_INVALID,
                SecurityProblem::Crypto(CryptoError::Certificate(refusal)) => refusal.status(),
                SecurityProblem::Unsupported(..) => StatusCode::BAD_NOT_SUPPORTED,
                _ => StatusCode::BAD_SECURITY_CHECKS_FAILED,
            },
            Self::Local(misuse) => match misuse {
                Misuse::NotConnected => StatusCode::BAD_SERVER_NOT_CONNECTED,
                Misuse::NamespacesChanged => StatusCode::BAD_NODE_ID_INVALID,
                Misuse::AlreadyConnected => StatusCode::BAD_INVALID_STATE,
                Misuse::TooManyRequests => StatusCode::BAD_TOO_MANY_OPERATIONS,
                Misuse::NoSuchSubscription => StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
                Misuse::Url => StatusCode::BAD_TCP_ENDPOINT_URL_INVALID,
                Misuse::WrongType => StatusCode::BAD_UNEXPECTED_ERROR,
            },
        }
    }

    /// Whether the server reports that the session does not exist.
    pub(crate) fn is_session_gone(&self) -> bool {
        let Self::Service { status, .. } = self else { return false };
        matches!(
            *status,
            StatusCode::BAD_SESSION_ID_INVALID
                | StatusCode::BAD_SESSION_CLOSED
                | StatusCode::BAD_SESSION_NOT_ACTIVATED
        )
    }

    /// Whether the server has refused the user, for any reason (Part 4 §5.7.3.3).
    #[must_use]
    pub fn is_refused_user(&self) -> bool {
        let Self::Service { service: "ActivateSession", status } = self else { return false };
        matches!(
            *status,
            StatusCode::BAD_USER_ACCESS_DENIED
                | StatusCode::BAD_IDENTITY_TOKEN_REJECTED
                | StatusCode::BAD_IDENTITY_TOKEN_INVALID
                | StatusCode::BAD_USER_SIGNATURE_INVALID
        )
    }

    /// Whether the connection failed, so that the result of the request is unknown.
    #[must_use]
    pub fn is_connection(&self) -> bool {
        match self {
            Self::Connection(_) | Self::ServerClosed { .. } => true,
            Self::Channel(error) => {
                !matches!(error, ChannelError::Limit(taktwerk_channel::LimitHit::PeerLimit { .. }))
            }
            _ => false,
        }
    }
}

/// Whether a server reports that it is busy.
pub(crate) fn is_busy(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_TCP_SERVER_TOO_BUSY
            | StatusCode::BAD_SERVER_TOO_BUSY
            | StatusCode::BAD_TOO_MANY_SESSIONS
            | StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES
    )
}

/// Whether the server or our channel found a message or a list too large: worth retrying in smaller parts.
pub(crate) fn is_too_large(error: &ClientError) -> bool {
    use StatusCode as S;
    match error {
        ClientError::Service { status, .. } => matches!(
            *status,
            S::BAD_TOO_MANY_OPERATIONS
                | S::BAD_RESPONSE_TOO_LARGE
                | S::BAD_REQUEST_TOO_LARGE
                | S::BAD_ENCODING_LIMITS_EXCEEDED
        ),
        ClientError::Channel(ChannelError::Limit(taktwerk_channel::LimitHit::PeerLimit { .. })) => true,
        _ => false,
    }
}
