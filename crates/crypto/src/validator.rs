//! The interface between a cryptographic library and the trust lists.

use crate::{CertificatePurpose, CryptoError};

/// Decides whether a certificate is trusted for a purpose, with the steps of Part 4 §6.1.3 in order.
///
/// A [`crate::Provider`] calls it from [`crate::Provider::validate`] on a worker thread, before any expensive operation
/// with the certificate's key. An implementation has its own trust lists, revocation lists and clock.
pub trait CertificateValidator: Send + Sync + core::fmt::Debug {
    /// Validates a certificate. `chain_der` is what the peer sent: its certificate, directly followed by any number of
    /// issuers. All of it is untrusted until the validation has succeeded.
    ///
    /// # Errors
    /// [`CryptoError::Certificate`] with the status of the failed step and a sentence for the log.
    /// [`crate::CertificateRefusal::external`] decides what the peer is told.
    fn validate(&self, chain_der: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError>;
}
