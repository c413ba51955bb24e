//! Why a cryptographic operation failed: the *local* reason.
//!
//! What the peer is told is decided by the channel and is deliberately less (Part 6 §6.7.3, §6.7.7).

use taktwerk_types::StatusCode;

/// Why a cryptographic operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    /// The peer's certificate was refused; the refusal says why (Part 4 §6.1.3).
    #[error("the certificate was refused: {0}")]
    Certificate(Box<CertificateRefusal>),
    /// Decryption failed, or what came out is not what it must be.
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

impl CryptoError {
    /// A refused certificate: the status of the step of Part 4 §6.1.3 that failed, and what the log shall say.
    #[must_use]
    pub fn certificate(status: StatusCode, reason: impl Into<Box<str>>) -> Self {
        Self::Certificate(Box::new(CertificateRefusal::new(status, reason)))
    }
}

/// Why a certificate was refused, for our own log, and what of it the peer may learn (Part 4 §6.1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRefusal {
    status: StatusCode,
    reason: Box<str>,
}

impl CertificateRefusal {
    /// The status of the step that failed, and a sentence for the log: which certificate of the chain, what is wrong
    /// with it, what mends it. The sentence never travels.
    #[must_use]
    pub fn new(status: StatusCode, reason: impl Into<Box<str>>) -> Self {
        Self { status, reason: reason.into() }
    }

    /// The status of the step that failed. For the log, never for the peer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The sentence for the log; empty if there is nothing to add to the status.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What the peer may be told (Part 4 §6.1.3, Table 100).
    ///
    /// Whether a certificate is well formed, its chain complete, its signature right, its key long enough and its
    /// issuer trusted is nobody else's business: all five are Bad_SecurityChecksFailed, and so is that it was revoked.
    /// The statuses of the steps between may be named. That a revocation list is missing tells an attacker that
    /// revocation is not noticed here, so it is kept as well.
    #[must_use]
    pub const fn external(&self) -> StatusCode {
        match self.status {
            StatusCode::BAD_CERTIFICATE_TIME_INVALID
            | StatusCode::BAD_CERTIFICATE_ISSUER_TIME_INVALID
            | StatusCode::BAD_CERTIFICATE_HOST_NAME_INVALID
            | StatusCode::BAD_CERTIFICATE_URI_INVALID
            | StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED
            | StatusCode::BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED => self.status,
            _ => StatusCode::BAD_SECURITY_CHECKS_FAILED,
        }
    }
}

impl core::fmt::Display for CertificateRefusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.reason() {
            "" => write!(f, "{}", self.status),
            reason => write!(f, "{}: {reason}", self.status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_five_steps_look_alike_to_the_peer() {
        for status in [
            StatusCode::BAD_CERTIFICATE_INVALID,
            StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE,
            StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED,
            StatusCode::BAD_CERTIFICATE_UNTRUSTED,
            StatusCode::BAD_CERTIFICATE_REVOCATION_UNKNOWN,
            StatusCode::BAD_CERTIFICATE_REVOKED,
        ] {
            let refusal = CertificateRefusal::new(status, "CN=Boiler is not in trusted/");
            assert_eq!(refusal.external(), StatusCode::BAD_SECURITY_CHECKS_FAILED);
            assert_eq!(refusal.status(), status);
            assert!(refusal.to_string().ends_with("CN=Boiler is not in trusted/"));
        }
        let expired = CertificateRefusal::new(StatusCode::BAD_CERTIFICATE_TIME_INVALID, "");
        assert_eq!(expired.external(), expired.status());
    }
}
