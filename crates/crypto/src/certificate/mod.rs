//! X.509 certificates: parsing and validation (Part 4 §6.1.3, Part 6 §6.2).
//!
//! - [`Certificate`], [`RevocationList`], [`CertificateRequest`]: parsed strictly and once, kept as their original
//!   bytes; [`Extensions`], [`KeyKind`], [`SignatureAlgorithm`]: their content;
//! - [`split_chain`]: the chain that a peer sends; [`TrustList`]: trusted certificates;
//! - [`Validation`]: the steps of the specification in order, with a [`ValidationReport`] of [`Finding`]s;
//! - [`SignatureVerifier`]: the interface to a cryptographic library; `AwsLcVerifier` (feature `aws-lc`) implements it.
//!
//! All functions are pure: the caller provides time, trust list and signature verification. For any input, the work is
//! bounded: [`CHAIN_BYTES_MAX`] bytes, [`CHAIN_LEN_MAX`] certificates, [`SIGNATURE_CHECKS_MAX`] signature checks.

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

/// Maximum length of a certificate with its chain, as sent by a peer, in bytes.
pub const CHAIN_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of certificates in a chain, including the peer's own and the root.
pub const CHAIN_LEN_MAX: usize = 10;
/// Maximum number of signature checks per validation.
pub const SIGNATURE_CHECKS_MAX: u32 = 10;
/// Maximum length of a certificate or request, in bytes.
pub const CERTIFICATE_LEN_MAX: usize = CHAIN_BYTES_MAX;
/// Maximum length of a revocation list, in bytes. These come from the administrator, not from peers.
pub const REVOCATION_LIST_LEN_MAX: usize = 16 * 1024 * 1024;
