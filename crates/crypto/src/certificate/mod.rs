//! X.509 certificates: reading them, and deciding whether they are trusted (Part 4 §6.1.3, Part 6 §6.2).
//!
//! - [`Certificate`], [`RevocationList`], [`CertificateRequest`]: read strictly and once, kept as the bytes they came
//!   in; [`Extensions`], [`KeyKind`], [`SignatureAlgorithm`]: what they say;
//! - [`split_chain`]: what a peer sends; [`TrustList`]: whom we trust;
//! - [`Validation`]: the steps of the specification in their order, with a [`ValidationReport`] of [`Finding`]s;
//! - [`SignatureVerifier`]: the seam to a cryptographic library; `AwsLcVerifier` (feature `aws-lc`) is one.
//!
//! Everything here is pure: the time, the trust list and the signature checks are given. Whatever comes in, the work
//! is bounded: [`CHAIN_BYTES_MAX`] bytes, [`CHAIN_LEN_MAX`] certificates, [`SIGNATURE_CHECKS_MAX`] signature checks.

#[cfg(feature = "aws-lc")]
mod aws_lc;
mod chain;
mod crl;
mod extensions;
mod frame;
mod key;
mod name;
mod options;
mod reader;
mod reason;
mod request;
mod step;
mod trust;
mod usage;
mod validation;
mod verify;
mod x509;

#[cfg(test)]
mod tests;

#[cfg(feature = "aws-lc")]
pub use aws_lc::{AwsLcVerifier, thumbprint};
pub use chain::{ChainError, split_chain};
pub use crl::RevocationList;
pub use extensions::{BasicConstraints, ExtendedKeyUsage, Extensions, KeyUsage};
pub use key::{Hash, KeyKind, SignatureAlgorithm, read_public_key};
pub use options::ValidationOptions;
pub use reader::Malformed;
pub use reason::Reason;
pub use request::CertificateRequest;
pub use step::Step;
pub use trust::TrustList;
pub use validation::{
    Finding, Validation, ValidationReport, ValidationRequest, check_application_uri, external_status,
    names_host,
};
pub use verify::{PublicKey, SignatureVerifier, VerifyError};
pub use x509::Certificate;

/// Bytes of a certificate together with the chain behind it, as a peer may send them.
pub const CHAIN_BYTES_MAX: usize = 64 * 1024;
/// Certificates in a chain, the peer's own and the root included.
pub const CHAIN_LEN_MAX: usize = 10;
/// Signatures that are checked for one validation.
pub const SIGNATURE_CHECKS_MAX: u32 = 10;
/// Bytes of one certificate or request.
pub const CERTIFICATE_LEN_MAX: usize = CHAIN_BYTES_MAX;
/// Bytes of a revocation list. Those come from the administrator, not from peers.
pub const REVOCATION_LIST_LEN_MAX: usize = 16 * 1024 * 1024;
