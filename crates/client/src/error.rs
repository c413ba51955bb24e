//! What goes wrong for a client, by blame.

use taktwerk_channel::ChannelError;
use taktwerk_crypto::{CertificateRefusal, CryptoError, MessageSecurityMode, SecurityPolicy};
use taktwerk_types::{DecodeError, StatusCode};

/// Why a request or a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection could not be made, or broke; the driver's words.
    #[error("connection: {0}")]
    Connection(Box<str>),
    /// The server ended the connection with an Error message (Part 6 §7.1.2.5).
    #[error("the server ended the connection: {status}{}{reason}", if .reason.is_empty() { "" } else { " " })]
    ServerClosed {
        /// The error.
        status: StatusCode,
        /// The server's words, possibly none.
        reason: Box<str>,
    },
    /// The channel refused what came, or could not send.
    #[error("channel: {0}")]
    Channel(#[from] ChannelError),
    /// The server answered with a fault (Part 4 §7.34).
    #[error("{service} failed: {status}")]
    Service {
        /// What was asked for.
        service: &'static str,
        /// The fault.
        status: StatusCode,
    },
    /// The server's bytes do not decode.
    #[error("the response does not decode: {0}")]
    Decode(#[from] DecodeError),
    /// The server answered with another message than was asked for, or with too many or too few results.
    #[error("the server answered {0} with something else")]
    UnexpectedResponse(&'static str),
    /// No answer in time.
    #[error("no answer to {0} in time")]
    Timeout(&'static str),
    /// The server cannot be trusted, or does not offer what was asked for.
    #[error("security: {0}")]
    Security(#[from] SecurityProblem),
    /// A call that cannot be done now. Nothing was sent.
    #[error("{0}")]
    Local(#[from] Misuse),
}

/// Why a server was refused before anything secret was sent to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityProblem {
    /// No endpoint fits what was asked for.
    #[error("the server offers no endpoint with {wanted}; it offers {}", list(.offered))]
    NoEndpoint {
        /// In words.
        wanted: Box<str>,
        /// What it does offer.
        offered: Vec<(Box<str>, i32)>,
    },
    /// The endpoint does not take the kind of identity that was given.
    #[error("the endpoint does not accept {0} identities")]
    NoTokenPolicy(&'static str),
    /// The password would travel in the clear (Part 4 §7.40.4).
    #[error("the password would be sent in the clear; this has to be allowed explicitly")]
    PlaintextPassword,
    /// The endpoint list of the session differs from that of discovery: somebody edited it (Part 4 §5.7.2.1).
    #[error("the server's endpoints in CreateSession differ from those in GetEndpoints")]
    EndpointsChanged,
    /// The server's certificate is not the one of the channel.
    #[error("the session's certificate is not the channel's")]
    CertificateChanged,
    /// The server's certificate names another application than its endpoints, or none (Part 4 §5.5.1).
    #[error(
        "the server's certificate is of {}, its endpoints are of another application",
        .certificate.as_deref().unwrap_or("no application")
    )]
    ApplicationUri {
        /// The certificate's ApplicationUri.
        certificate: Option<Box<str>>,
    },
    /// The server gave no key that the user's secret could be encrypted for (Part 6 §6.8.2).
    #[error("the server gave no key for the secret of the user, which {0} needs")]
    NoKey(SecurityPolicy),
    /// The server's nonce is too short, all zero or repeated (Part 4 §5.7.2.2).
    #[error("the server's nonce is not acceptable")]
    Nonce,
    /// The server handed out an authentication token that is in use (Part 4 §5.7.2.1).
    #[error("the server repeated an authentication token")]
    TokenRepeated,
    /// Signing, verifying, encrypting or a certificate failed.
    #[error("{0}")]
    Crypto(#[from] CryptoError),
    /// The user's certificate has a key of another kind than the policy's signatures are made with.
    #[error("the user's certificate has a key of another kind than {0} takes")]
    UserCertificate(SecurityPolicy),
    /// What the identity needs is not there yet for this policy.
    #[error("identities of this kind are not supported with {0} {1}")]
    Unsupported(SecurityPolicy, MessageSecurityMode),
}

fn list(offered: &[(Box<str>, i32)]) -> String {
    let modes = ["?", "None", "Sign", "SignAndEncrypt"];
    let name =
        |mode: i32| usize::try_from(mode).ok().and_then(|mode| modes.get(mode)).copied().unwrap_or("?");
    offered.iter().map(|(policy, mode)| format!("{policy}/{}", name(*mode))).collect::<Vec<_>>().join(", ")
}

/// A call that cannot be done now.
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
    /// The server came back with another NamespaceArray: NodeIds have to be looked up again.
    #[error("the server's NamespaceArray has changed; look the NodeIds up again")]
    NamespacesChanged,
    /// The subscription is not one of this client's.
    #[error("no such subscription")]
    NoSuchSubscription,
    /// The URL is not `opc.tcp://host[:port][/path]`.
    #[error("not an opc.tcp URL")]
    Url,
    /// A response was read as another type than it is.
    #[error("the response is of another type")]
    WrongType,
}

impl ClientError {
    /// Why this client refused the server's certificate, if it did. The reason is for the log of this end.
    #[must_use]
    pub fn refused_certificate(&self) -> Option<&CertificateRefusal> {
        match self {
            Self::Security(SecurityProblem::Crypto(CryptoError::Certificate(refusal)))
            | Self::Channel(ChannelError::Crypto(CryptoError::Certificate(refusal))) => Some(refusal),
            _ => None,
        }
    }

    /// The one status that stands for this failure.
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

    /// Whether the server says that our session is no more.
    pub(crate) fn is_session_gone(&self) -> bool {
        let Self::Service { status, .. } = self else { return false };
        matches!(
            *status,
            StatusCode::BAD_SESSION_ID_INVALID
                | StatusCode::BAD_SESSION_CLOSED
                | StatusCode::BAD_SESSION_NOT_ACTIVATED
        )
    }

    /// Whether the server has refused the user, whatever the reason (Part 4 §5.7.3.3).
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

    /// Whether the connection itself failed, so that nothing is known about what became of the request.
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

/// Whether a server says that it has too much to do.
pub(crate) fn is_busy(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_TCP_SERVER_TOO_BUSY
            | StatusCode::BAD_SERVER_TOO_BUSY
            | StatusCode::BAD_TOO_MANY_SESSIONS
            | StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES
    )
}

/// Whether the server, or our own side of the channel, found a message too large or too long a list: worth trying again
/// in smaller parts.
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
