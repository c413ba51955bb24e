//! Why a cryptographic operation failed: the *local* reason.
//!
//! What the peer is told is decided by the channel and is deliberately less (Part 6 §6.7.3, §6.7.7).

use taktwerk_types::StatusCode;

/// Why a cryptographic operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// The provider does not carry this policy, or this deployment does not allow it.
    #[error("the security policy is not supported")]
    PolicyUnsupported,
    /// The provider has no certificate or key of ours for this policy.
    #[error("there is no own certificate for the security policy")]
    NoOwnCertificate,
    /// The message was encrypted for somebody else.
    #[error("the receiver certificate thumbprint is not ours")]
    ThumbprintMismatch,
    /// The peer's certificate was refused; the status says why (Part 4 §6.1.3).
    #[error("the certificate was refused: {0}")]
    Certificate(StatusCode),
    /// Decryption failed, or what came out is not padded as it must be.
    #[error("decryption failed")]
    Decryption,
    /// The signature or authentication tag is not the one of these bytes.
    #[error("the signature is wrong")]
    Signature,
    /// A nonce has the wrong length, is all zero, or was seen before.
    #[error("the nonce is not acceptable")]
    Nonce,
    /// The bytes are too short to hold what they must hold.
    #[error("the secured bytes are malformed")]
    Malformed,
    /// The key agreement gave no usable secret (a point off the curve, a low-order point).
    #[error("the key agreement failed")]
    KeyAgreement,
    /// The library failed for a reason of its own.
    #[error("the cryptographic library failed")]
    Internal,
}
