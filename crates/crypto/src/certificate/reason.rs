//! The reason of a failed step, as text for the log.

use super::chain::ChainError;
use super::key::{Hash, KeyKind, SignatureAlgorithm};
use taktwerk_types::UtcTime;

/// Why a step failed. The text is for the local log and `taktwerk pki doctor`; it is never sent to a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes are not certificates.
    #[error("{0}")]
    Chain(#[from] ChainError),
    /// The issuer is unknown, and the peer did not send it.
    #[error("its issuer {0} is not known and was not sent by the peer")]
    IssuerNotFound(String),
    /// The issuers certify each other without reaching a root.
    #[error("its issuers certify each other in a circle")]
    ChainLoops,
    /// The chain is longer than chains may be.
    #[error("the chain is longer than {max} certificates", max = super::CHAIN_LEN_MAX)]
    ChainTooLong,
    /// There are too many possible chains.
    #[error("there are too many possible chains to try all of them")]
    TooManyAttempts,
    /// The signature was not made by the named issuer.
    #[error("its signature was not made by {0}")]
    SignatureWrong(String),
    /// The signature algorithm is outdated or unknown and not supported.
    #[error("its signature algorithm ({0}) is not supported")]
    AlgorithmUnsupported(SignatureAlgorithm),
    /// The signature uses a broken hash.
    #[error("it is signed with {0}, which can be forged")]
    HashTooWeak(Hash),
    /// The key has a length that the policy does not allow.
    #[error("its key has {bits} bits; allowed are {min} to {max}")]
    KeyLength {
        /// Length of the key.
        bits: u16,
        /// MinAsymmetricKeyLength.
        min: u16,
        /// MaxAsymmetricKeyLength.
        max: u16,
    },
    /// The policy requires another kind of key.
    #[error("its key type ({0}) does not fit the security policy")]
    KeyKind(KeyKind),
    /// The key is longer than the issuer's (Part 6 §6.1).
    #[error("its key ({bits} bits) is longer than its issuer's ({issuer_bits} bits)")]
    IssuerKeyShorter {
        /// Length of the key.
        bits: u16,
        /// Length of the issuer's key.
        issuer_bits: u16,
    },
    /// Neither it nor any of its issuers is trusted.
    #[error("neither it nor any of its issuers is in the trusted certificates")]
    NotTrusted,
    /// The certificate is not valid yet.
    #[error("it is valid only from {0}")]
    NotYetValid(UtcTime),
    /// The certificate has expired.
    #[error("it expired at {0}")]
    Expired(UtcTime),
    /// The host name is not in the certificate.
    #[error("it is not valid for the host {host}, but for {}", list(names))]
    HostName {
        /// The host of the endpoint URL.
        host: String,
        /// The names in the certificate.
        names: Vec<String>,
    },
    /// The certificate contains no ApplicationUri.
    #[error("it contains no ApplicationUri (a URI in subjectAltName)")]
    UriMissing,
    /// The certificate contains several URIs, so the ApplicationUri is ambiguous.
    #[error("it contains {0} URIs in subjectAltName; only one is allowed")]
    UriAmbiguous(usize),
    /// The certificate contains another ApplicationUri.
    #[error("its ApplicationUri is {found}, but the application reports {expected}")]
    UriMismatch {
        /// The URI in the certificate.
        found: String,
        /// The URI in the ApplicationDescription.
        expected: String,
    },
    /// The keyUsage extension is missing.
    #[error("it has no keyUsage extension")]
    KeyUsageMissing,
    /// The keyUsage does not allow this use.
    #[error("its keyUsage lacks {0}")]
    KeyUsageLacks(String),
    /// The extendedKeyUsage extension is missing.
    #[error("it has no extendedKeyUsage extension")]
    ExtendedKeyUsageMissing,
    /// The extendedKeyUsage does not allow this role.
    #[error("its extendedKeyUsage lacks {0}")]
    ExtendedKeyUsageLacks(&'static str),
    /// The certificate belongs to an authority.
    #[error("it belongs to a certificate authority")]
    IsAuthority,
    /// The certificate issued another one but is no authority's.
    #[error("it is not a certificate authority's (basicConstraints), but issued a certificate")]
    NotAuthority,
    /// An application certificate, which must not issue others (Part 6 §6.2.2).
    #[error("it belongs to the application {0}, which may not issue certificates")]
    IsApplication(String),
    /// More authorities are below it than it allows.
    #[error("it allows {allowed} authorities below it, but there are {found}")]
    PathLength {
        /// The pathLenConstraint.
        allowed: u32,
        /// The number in the chain.
        found: usize,
    },
    /// A critical extension is not supported.
    #[error("it has a critical extension that is not supported ({0})")]
    CriticalExtension(String),
    /// nameConstraints, which are not evaluated.
    #[error("it limits the names of what it issues (nameConstraints), which is not supported")]
    NameConstraints,
    /// There is no revocation list of the issuer.
    #[error("there is no revocation list of its issuer {0}")]
    NoRevocationList(String),
    /// The revocation list has expired.
    #[error("the revocation list of its issuer {issuer} expired at {due}")]
    RevocationListOutdated {
        /// The issuer, as text.
        issuer: String,
        /// The list's nextUpdate.
        due: UtcTime,
    },
    /// The revocation list is invalid.
    #[error("the revocation list of its issuer {issuer} cannot be used: {why}")]
    RevocationListUnusable {
        /// The issuer, as text.
        issuer: String,
        /// A short reason.
        why: &'static str,
    },
    /// It was revoked.
    #[error("it was revoked by its issuer at {0}")]
    Revoked(UtcTime),
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}
