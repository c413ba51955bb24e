//! The seam between a cryptographic library and the trust lists: who decides whether a certificate is trusted.

use crate::{CertificatePurpose, CryptoError};

/// Decides whether a certificate is trusted for a purpose, by the steps of Part 4 §6.1.3 in their order.
///
/// A [`crate::Provider`] asks it from [`crate::Provider::validate`], on a worker thread, before it does anything
/// expensive with the certificate's key. An implementation brings its own trust lists, revocation lists and time.
pub trait CertificateValidator: Send + Sync + core::fmt::Debug {
    /// Checks a certificate: `chain_der` is what the peer sent, the certificate itself first and behind it, without
    /// anything in between, the issuers it chose to send along. All of it is hostile until the check is over.
    ///
    /// # Errors
    /// [`CryptoError::Certificate`] with the status of the step that failed and a sentence for the log. What of that
    /// the peer learns is decided by [`crate::CertificateRefusal::external`], not here.
    fn validate(&self, chain_der: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError>;
}
