//! Why a cryptographic operation failed: the *local* reason.
//!
//! The channel decides what the peer is told, which is deliberately less (Part 6 §6.7.3, §6.7.7).

use taktwerk_types::StatusCode;

/// Why a cryptographic operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// The provider does not support this policy, or this deployment does not allow it.
    #[error("the security policy is not supported")]
    PolicyUnsupported,
    /// The provider has no certificate and key for this policy.
    #[error("this application has no certificate for the security policy")]
    NoOwnCertificate,
    /// The message was encrypted for another receiver.
    #[error("the receiver certificate thumbprint is not ours")]
    ThumbprintMismatch,
    /// The peer's certificate was refused; the refusal says why (Part 4 §6.1.3).
    #[error("the certificate was refused: {0}")]
    Certificate(Box<CertificateRefusal>),
    /// Decryption failed, or its result is invalid.
    #[error("decryption failed")]
    Decryption,
    /// The signature or authentication tag does not match the bytes.
    #[error("the signature is wrong")]
    Signature,
    /// A nonce has the wrong length, is all zero, or is repeated.
    #[error("the nonce is not acceptable")]
    Nonce,
    /// The bytes are too short.
    #[error("the secured bytes are malformed")]
    Malformed,
    /// The key agreement gave no usable secret (a point off the curve, or a low-order point).
    #[error("the key agreement failed")]
    KeyAgreement,
    /// The library failed for another reason.
    #[error("the cryptographic library failed")]
    Internal,
}

impl CryptoError {
    /// A refused certificate: the status of the failed step of Part 4 §6.1.3, and a text for the log.
    #[must_use]
    pub fn certificate(status: StatusCode, reason: impl Into<Box<str>>) -> Self {
        Self::Certificate(Box::new(CertificateRefusal::new(status, reason)))
    }
}

/// Why a certificate was refused, for the local log, and the status that the peer may get (Part 4 §6.1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRefusal {
    status: StatusCode,
    reason: Box<str>,
}

impl CertificateRefusal {
    /// Creates a refusal from the status of the failed step and a sentence for the log: the certificate, what is wrong
    /// with it, and how to correct it. The sentence is never sent.
    #[must_use]
    pub fn new(status: StatusCode, reason: impl Into<Box<str>>) -> Self {
        Self { status, reason: reason.into() }
    }

    /// The status of the failed step. For the log, never for the peer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The sentence for the log; empty if the status says everything.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The status that the peer may get (Part 4 §6.1.3, Table 100).
    ///
    /// The peer must not learn whether a certificate is well formed, its chain complete, its signature valid, its key
    /// long enough or its issuer trusted: all five give Bad_SecurityChecksFailed, and so does revocation. The statuses
    /// of the steps in between may be sent. A missing revocation list is hidden, too, because it would tell an attacker
    /// that revocation is not detected here.
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
    fn the_first_five_steps_have_one_external_status() {
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
