//! The steps of a validation, in the order of Part 4 §6.1.3.

use core::fmt;
use taktwerk_types::StatusCode;

/// A step of Part 4 §6.1.3, Table 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Certificate structure.
    Structure,
    /// Build certificate chain.
    BuildChain,
    /// Signature.
    Signature,
    /// Security policy check: key length and hash.
    SecurityPolicy,
    /// Trust list check.
    TrustList,
    /// Validity period.
    ValidityPeriod,
    /// Host name.
    HostName,
    /// ApplicationUri.
    Uri,
    /// Certificate usage.
    Usage,
    /// Find revocation list.
    FindRevocationList,
    /// Revocation check.
    Revocation,
}

impl Step {
    /// All steps in their order.
    pub const ALL: [Self; 11] = [
        Self::Structure,
        Self::BuildChain,
        Self::Signature,
        Self::SecurityPolicy,
        Self::TrustList,
        Self::ValidityPeriod,
        Self::HostName,
        Self::Uri,
        Self::Usage,
        Self::FindRevocationList,
        Self::Revocation,
    ];

    /// The status if the step fails for the certificate itself (`depth` 0) or for one of its issuers.
    #[must_use]
    pub const fn status(self, depth: usize) -> StatusCode {
        match (self, depth) {
            (Self::Structure | Self::Signature, _) => StatusCode::BAD_CERTIFICATE_INVALID,
            (Self::BuildChain, _) => StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE,
            (Self::SecurityPolicy, _) => StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED,
            (Self::TrustList, _) => StatusCode::BAD_CERTIFICATE_UNTRUSTED,
            (Self::ValidityPeriod, 0) => StatusCode::BAD_CERTIFICATE_TIME_INVALID,
            (Self::ValidityPeriod, _) => StatusCode::BAD_CERTIFICATE_ISSUER_TIME_INVALID,
            (Self::HostName, _) => StatusCode::BAD_CERTIFICATE_HOST_NAME_INVALID,
            (Self::Uri, _) => StatusCode::BAD_CERTIFICATE_URI_INVALID,
            (Self::Usage, 0) => StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED,
            (Self::Usage, _) => StatusCode::BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED,
            (Self::FindRevocationList, 0) => StatusCode::BAD_CERTIFICATE_REVOCATION_UNKNOWN,
            (Self::FindRevocationList, _) => StatusCode::BAD_CERTIFICATE_ISSUER_REVOCATION_UNKNOWN,
            (Self::Revocation, 0) => StatusCode::BAD_CERTIFICATE_REVOKED,
            (Self::Revocation, _) => StatusCode::BAD_CERTIFICATE_ISSUER_REVOKED,
        }
    }

    /// The audit event that a failure of the step raises, suppressed or not (Part 5 §6.4.12 and following).
    #[must_use]
    pub const fn audit_event_type(self) -> &'static str {
        match self {
            Self::Structure | Self::BuildChain | Self::Signature | Self::SecurityPolicy => {
                "AuditCertificateInvalidEventType"
            }
            Self::TrustList => "AuditCertificateUntrustedEventType",
            Self::ValidityPeriod => "AuditCertificateExpiredEventType",
            Self::HostName | Self::Uri => "AuditCertificateDataMismatchEventType",
            Self::Usage => "AuditCertificateMismatchEventType",
            Self::FindRevocationList | Self::Revocation => "AuditCertificateRevokedEventType",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Structure => "certificate structure",
            Self::BuildChain => "certificate chain",
            Self::Signature => "signature",
            Self::SecurityPolicy => "security policy",
            Self::TrustList => "trust list",
            Self::ValidityPeriod => "validity period",
            Self::HostName => "host name",
            Self::Uri => "ApplicationUri",
            Self::Usage => "certificate usage",
            Self::FindRevocationList => "revocation list",
            Self::Revocation => "revocation",
        })
    }
}
