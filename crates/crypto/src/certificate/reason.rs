//! Why a step failed, in words for the log.

use super::chain::ChainError;
use super::key::{Hash, KeyKind, SignatureAlgorithm};
use taktwerk_types::UtcTime;

/// Why a step failed. The text is for our own log and for `taktwerk pki doctor`; a peer never sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes are not certificates.
    #[error("{0}")]
    Chain(#[from] ChainError),
    /// Nobody with the issuer's name is known, and the peer did not send it either.
    #[error("its issuer {0} is neither known here nor was it sent along")]
    IssuerNotFound(String),
    /// The issuers certify each other and never reach a root.
    #[error("its issuers certify each other in a circle")]
    ChainLoops,
    /// The chain is longer than chains may be.
    #[error("the chain is longer than {max} certificates", max = super::CHAIN_LEN_MAX)]
    ChainTooLong,
    /// There are too many possible chains.
    #[error("there are too many possible chains to try them all")]
    TooManyAttempts,
    /// The signature is not by the issuer that is named.
    #[error("its signature is not by {0}")]
    SignatureWrong(String),
    /// The signature uses something outdated or unknown that is not even tried.
    #[error("its signature algorithm ({0}) is not supported")]
    AlgorithmUnsupported(SignatureAlgorithm),
    /// The signature uses a broken hash.
    #[error("it is signed with {0}, which can be forged")]
    HashTooWeak(Hash),
    /// The key has a length that the policy does not allow.
    #[error("its key has {bits} bits; allowed are {min} to {max}")]
    KeyLength {
        /// Of the key.
        bits: u16,
        /// MinAsymmetricKeyLength.
        min: u16,
        /// MaxAsymmetricKeyLength.
        max: u16,
    },
    /// The policy wants a key of another kind.
    #[error("its key ({0}) is not of the kind that the security policy uses")]
    KeyKind(KeyKind),
    /// A key vouches for a longer one (Part 6 §6.1).
    #[error("its key ({bits} bits) is longer than its issuer's ({issuer_bits} bits)")]
    IssuerKeyShorter {
        /// Of the key.
        bits: u16,
        /// Of the issuer's.
        issuer_bits: u16,
    },
    /// Neither it nor any of its issuers is trusted.
    #[error("neither it nor any of its issuers is in the trusted certificates")]
    NotTrusted,
    /// Its time has not come.
    #[error("it is valid only from {0}")]
    NotYetValid(UtcTime),
    /// Its time is over.
    #[error("it expired at {0}")]
    Expired(UtcTime),
    /// It does not name the host that was dialled.
    #[error("it is not for the host {host}, but for {}", list(names))]
    HostName {
        /// As in the endpoint URL.
        host: String,
        /// As in the certificate.
        names: Vec<String>,
    },
    /// It holds no ApplicationUri.
    #[error("it holds no ApplicationUri (a URI in subjectAltName)")]
    UriMissing,
    /// It holds several URIs, and nobody can say which one is meant.
    #[error("it holds {0} URIs in subjectAltName; one is allowed")]
    UriAmbiguous(usize),
    /// It holds another ApplicationUri.
    #[error("its ApplicationUri is {found}, but the application says that it is {expected}")]
    UriMismatch {
        /// In the certificate.
        found: String,
        /// In the ApplicationDescription.
        expected: String,
    },
    /// It says nothing about the use of its key.
    #[error("it has no keyUsage extension")]
    KeyUsageMissing,
    /// Its key may not be used for what it is used for.
    #[error("its keyUsage lacks {0}")]
    KeyUsageLacks(String),
    /// It says nothing about the role of its owner.
    #[error("it has no extendedKeyUsage extension")]
    ExtendedKeyUsageMissing,
    /// Its owner may not play this role.
    #[error("its extendedKeyUsage lacks {0}")]
    ExtendedKeyUsageLacks(&'static str),
    /// It belongs to an authority.
    #[error("it belongs to a certificate authority")]
    IsAuthority,
    /// It issued a certificate but may not.
    #[error("it is not a certificate authority's (basicConstraints), but issued a certificate")]
    NotAuthority,
    /// It belongs to an application, which is trusted for itself and not for others (Part 6 §6.2.2).
    #[error("it belongs to the application {0}, which may not issue certificates")]
    IsApplication(String),
    /// There are more authorities below it than it allows.
    #[error("it allows {allowed} authorities below it, but there are {found}")]
    PathLength {
        /// pathLenConstraint.
        allowed: u32,
        /// In the chain.
        found: usize,
    },
    /// It demands something that is not understood here.
    #[error("it has a critical extension that is not supported ({0})")]
    CriticalExtension(String),
    /// It limits names, which is not evaluated here.
    #[error("it limits the names of what it issues (nameConstraints), which is not supported")]
    NameConstraints,
    /// There is no revocation list of its issuer.
    #[error("there is no revocation list of its issuer {0}")]
    NoRevocationList(String),
    /// The revocation list is out of date.
    #[error("the revocation list of its issuer {issuer} was due to be renewed at {due}")]
    RevocationListOutdated {
        /// For people.
        issuer: String,
        /// nextUpdate.
        due: UtcTime,
    },
    /// The revocation list cannot be relied on.
    #[error("the revocation list of its issuer {issuer} cannot be used: {why}")]
    RevocationListUnusable {
        /// For people.
        issuer: String,
        /// A few words.
        why: &'static str,
    },
    /// It was revoked.
    #[error("it was revoked by its issuer at {0}")]
    Revoked(UtcTime),
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}
