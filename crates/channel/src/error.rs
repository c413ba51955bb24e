//! Failures of a channel by cause, and the one mapping to the status and text that the peer receives.

use taktwerk_crypto::CryptoError;
use taktwerk_types::{DecodeError, StatusCode};

/// Why a channel refused bytes or a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The peer violated the protocol or stopped responding. The channel is closed.
    #[error("peer: {0}")]
    Peer(#[from] PeerFault),
    /// A limit would be exceeded. The channel stays open where the variant says so.
    #[error("limit: {0}")]
    Limit(#[from] LimitHit),
    /// The call is not valid in the channel's current state. Never caused by received bytes; nothing was changed.
    #[error("misuse: {0}")]
    Local(#[from] ApiMisuse),
    /// Securing or checking a message failed. The channel is closed.
    #[error("security: {0}")]
    Crypto(#[from] CryptoError),
}

/// What the peer did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerFault {
    /// The message type or the chunk flag is not one of the protocol's, or the size is below that of the header
    /// (Part 6 §7.1.2.2, §6.7.2.2).
    #[error("the message header is invalid")]
    HeaderInvalid,
    /// A message that is not allowed in this state, such as a second Hello (Part 6 §7.1.3).
    #[error("{0} is not expected now")]
    Unexpected(&'static str),
    /// Bytes that do not decode.
    #[error("the message does not decode: {0}")]
    Undecodable(#[from] DecodeError),
    /// The endpoint URL is longer than 4096 bytes (Part 6 §7.1.2.3).
    #[error("the endpoint URL is too long")]
    EndpointUrlInvalid,
    /// A buffer size below the specification's minimum, or above what was asked for (Part 6 §7.1.2.3, §7.1.2.4).
    #[error("the buffer sizes are not acceptable")]
    BufferSizeInvalid,
    /// The SecureChannelId is not this channel's (Part 6 §6.7.7).
    #[error("the SecureChannelId is unknown")]
    ChannelUnknown,
    /// The TokenId is not one that was issued, or it expired (Part 6 §6.7.7, Part 4 §5.6.2.1).
    #[error("the TokenId is unknown or expired")]
    TokenUnknown,
    /// The channel's last token expired without a renewal (Part 4 §5.6.2.1).
    #[error("the security token expired")]
    TokenExpired,
    /// A token secured so many chunks that SequenceNumbers would repeat under its keys (Part 6 §6.7.2.4).
    #[error("the security token has secured as many chunks as it may")]
    TokenExhausted,
    /// A SequenceNumber that does not follow the one before it (Part 6 §6.7.2.4).
    #[error("the SequenceNumber does not follow the previous one")]
    SequenceInvalid,
    /// A chunk of another message before the previous message was complete (Part 6 §6.7.3).
    #[error("chunks of different messages are interleaved")]
    Interleaved,
    /// The security policy is unknown, not offered, or different from the channel's (Part 6 §6.7.7).
    #[error("the security policy is rejected")]
    PolicyRejected,
    /// The security mode is not offered with the policy, or different from the channel's (Part 4 §5.6.2.3).
    #[error("the security mode is rejected")]
    ModeRejected,
    /// A second Issue, or a Renew before the first Issue (Part 4 §5.6.2.3).
    #[error("the request type does not fit the state of the channel")]
    RequestTypeInvalid,
    /// The nonce has the wrong length or was used before (Part 4 §5.6.2.3).
    #[error("the nonce is not acceptable")]
    NonceInvalid,
    /// The certificate is not the one the channel was opened with, or not the expected server's (Part 6 §6.7.4).
    #[error("the certificate is not the channel's")]
    CertificateChanged,
    /// The response belongs to another request.
    #[error("the response does not answer the request")]
    ResponseMismatch,
    /// The server answered OpenSecureChannel with a fault.
    #[error("OpenSecureChannel was refused: {0}")]
    Refused(StatusCode),
    /// A deadline passed; the text names the deadline.
    #[error("timeout: {0}")]
    Timeout(&'static str),
}

/// A limit that would be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitHit {
    /// A chunk header announces more bytes than we receive (Part 6 §7.1.2.4). The channel is closed.
    #[error("a chunk of {size} bytes passes the limit of {limit}")]
    ChunkTooLarge {
        /// The size in its header, in bytes.
        size: u32,
        /// The limit, in bytes.
        limit: u32,
    },
    /// A received message has too many bytes or chunks (Part 6 §7.1.2.4). The channel is closed.
    #[error("a received message passes the size or chunk limit")]
    MessageTooLarge,
    /// The message to be sent has more bytes or chunks than the peer accepts. **The channel stays open** and nothing
    /// was written. Send a fault instead.
    #[error("the message passes the peer's size or chunk limit")]
    PeerLimit {
        /// Bad_ResponseTooLarge on a server, Bad_RequestTooLarge on a client.
        status: StatusCode,
    },
}

/// A call that does not fit the state of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApiMisuse {
    /// The channel is closed.
    #[error("the channel is closed")]
    Closed,
    /// The channel is not open yet.
    #[error("the channel is not open")]
    NotOpen,
    /// A result was delivered but no job was outstanding.
    #[error("no job is outstanding")]
    NoJob,
}

impl From<DecodeError> for ChannelError {
    fn from(error: DecodeError) -> Self {
        Self::Peer(PeerFault::Undecodable(error))
    }
}

impl ChannelError {
    /// The status for our own side: for logs, and for requests that fail together with the channel.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Peer(fault) => match fault {
                PeerFault::HeaderInvalid | PeerFault::Unexpected(_) => {
                    StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID
                }
                PeerFault::Undecodable(error) => error.status(),
                PeerFault::EndpointUrlInvalid => StatusCode::BAD_TCP_ENDPOINT_URL_INVALID,
                PeerFault::BufferSizeInvalid => StatusCode::BAD_CONNECTION_REJECTED,
                PeerFault::ChannelUnknown => StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
                PeerFault::TokenUnknown | PeerFault::TokenExpired | PeerFault::TokenExhausted => {
                    StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN
                }
                PeerFault::SequenceInvalid => StatusCode::BAD_SEQUENCE_NUMBER_INVALID,
                PeerFault::Interleaved | PeerFault::CertificateChanged => {
                    StatusCode::BAD_SECURITY_CHECKS_FAILED
                }
                PeerFault::PolicyRejected => StatusCode::BAD_SECURITY_POLICY_REJECTED,
                PeerFault::ModeRejected => StatusCode::BAD_SECURITY_MODE_REJECTED,
                PeerFault::RequestTypeInvalid => StatusCode::BAD_REQUEST_TYPE_INVALID,
                PeerFault::NonceInvalid => StatusCode::BAD_NONCE_INVALID,
                PeerFault::ResponseMismatch => StatusCode::BAD_UNKNOWN_RESPONSE,
                PeerFault::Refused(status) => *status,
                PeerFault::Timeout(_) => StatusCode::BAD_TIMEOUT,
            },
            Self::Limit(LimitHit::ChunkTooLarge { .. } | LimitHit::MessageTooLarge) => {
                StatusCode::BAD_TCP_MESSAGE_TOO_LARGE
            }
            Self::Limit(LimitHit::PeerLimit { status }) => *status,
            Self::Local(ApiMisuse::Closed) => StatusCode::BAD_SECURE_CHANNEL_CLOSED,
            Self::Local(ApiMisuse::NotOpen | ApiMisuse::NoJob) => StatusCode::BAD_INVALID_STATE,
            Self::Crypto(error) => match error {
                CryptoError::PolicyUnsupported | CryptoError::NoOwnCertificate => {
                    StatusCode::BAD_SECURITY_POLICY_REJECTED
                }
                CryptoError::Certificate(refusal) => refusal.status(),
                CryptoError::Nonce => StatusCode::BAD_NONCE_INVALID,
                _ => StatusCode::BAD_SECURITY_CHECKS_FAILED,
            },
        }
    }

    /// The status and text that the peer receives: the *only* mapping of channel failures to the wire.
    ///
    /// Failed security checks all look the same to the peer (Part 6 §6.7.3, §6.7.7). Only the certificate's validity
    /// period and key usage may be named (Part 4 §6.1.3). `None`: the peer receives nothing.
    #[must_use]
    pub fn wire(&self) -> Option<(StatusCode, &'static str)> {
        let told = match self {
            Self::Local(_) | Self::Limit(LimitHit::PeerLimit { .. }) => return None,
            Self::Peer(fault) => match fault {
                PeerFault::HeaderInvalid => (self.status(), "invalid message header"),
                PeerFault::Unexpected(_) => (self.status(), "unexpected message type"),
                PeerFault::Undecodable(_) => (self.status(), "malformed message"),
                PeerFault::EndpointUrlInvalid => (self.status(), "endpoint URL too long"),
                PeerFault::BufferSizeInvalid => (self.status(), "buffer sizes not acceptable"),
                PeerFault::ChannelUnknown => (self.status(), "SecureChannelId unknown"),
                PeerFault::TokenUnknown => (self.status(), "TokenId unknown"),
                PeerFault::TokenExpired | PeerFault::TokenExhausted => {
                    (self.status(), "security token expired")
                }
                PeerFault::SequenceInvalid | PeerFault::Interleaved | PeerFault::CertificateChanged => {
                    (StatusCode::BAD_SECURITY_CHECKS_FAILED, "")
                }
                PeerFault::PolicyRejected => (self.status(), "security policy rejected"),
                PeerFault::ModeRejected => (self.status(), "security mode rejected"),
                PeerFault::RequestTypeInvalid => (self.status(), "request type invalid"),
                PeerFault::NonceInvalid => (self.status(), "nonce invalid"),
                PeerFault::ResponseMismatch | PeerFault::Refused(_) => (self.status(), ""),
                PeerFault::Timeout(_) => (self.status(), "deadline passed"),
            },
            Self::Limit(LimitHit::ChunkTooLarge { .. }) => (self.status(), "chunk too large"),
            Self::Limit(LimitHit::MessageTooLarge) => (self.status(), "message too large"),
            Self::Crypto(error) => match error {
                CryptoError::PolicyUnsupported | CryptoError::NoOwnCertificate => {
                    (StatusCode::BAD_SECURITY_POLICY_REJECTED, "security policy rejected")
                }
                CryptoError::Nonce => (StatusCode::BAD_NONCE_INVALID, "nonce invalid"),
                CryptoError::Certificate(refusal) => match refusal.external() {
                    StatusCode::BAD_SECURITY_CHECKS_FAILED => (StatusCode::BAD_SECURITY_CHECKS_FAILED, ""),
                    status => (status, "certificate refused"),
                },
                _ => (StatusCode::BAD_SECURITY_CHECKS_FAILED, ""),
            },
        };
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_security_checks_look_alike_to_the_peer() {
        let bland = Some((StatusCode::BAD_SECURITY_CHECKS_FAILED, ""));
        for error in [
            ChannelError::from(CryptoError::Signature),
            CryptoError::Decryption.into(),
            CryptoError::Malformed.into(),
            CryptoError::ThumbprintMismatch.into(),
            CryptoError::certificate(StatusCode::BAD_CERTIFICATE_UNTRUSTED, "reason").into(),
            CryptoError::certificate(StatusCode::BAD_CERTIFICATE_INVALID, "reason").into(),
            CryptoError::certificate(StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE, "reason").into(),
            CryptoError::certificate(StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED, "reason").into(),
            PeerFault::SequenceInvalid.into(),
            PeerFault::CertificateChanged.into(),
        ] {
            assert_eq!(error.wire(), bland, "{error}");
        }
    }
}
