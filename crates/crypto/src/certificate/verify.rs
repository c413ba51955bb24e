//! The interface to the cryptographic library for verifying signatures.

use super::crl::RevocationList;
use super::key::{KeyKind, SignatureAlgorithm};
use super::request::CertificateRequest;
use super::x509::Certificate;
use core::fmt;

/// The public key of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey<'a> {
    /// Its kind.
    pub kind: KeyKind,
    /// An RSAPublicKey in DER, an uncompressed point, or the bytes of an Edwards-curve key.
    pub bytes: &'a [u8],
}

/// Why a signature was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The signature was not made for this message with this key.
    #[error("the signature is wrong")]
    Wrong,
    /// The library does not support the algorithm or the key size.
    #[error("the signature algorithm is not supported")]
    Unsupported,
}

/// Verifies signatures. Implemented with a cryptographic library.
pub trait SignatureVerifier: Send + Sync + fmt::Debug {
    /// Verifies a signature over `message`.
    ///
    /// # Errors
    /// [`VerifyError`].
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        key: PublicKey<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), VerifyError>;
}

impl Certificate {
    /// The public key, for a [`SignatureVerifier`].
    #[must_use]
    pub fn verifying_key(&self) -> PublicKey<'_> {
        PublicKey { kind: self.key(), bytes: self.public_key() }
    }
}

impl CertificateRequest {
    /// Verifies that the requester has the private key (RFC 2986 §4.2).
    ///
    /// # Errors
    /// [`VerifyError`].
    pub fn verify(&self, verifier: &dyn SignatureVerifier) -> Result<(), VerifyError> {
        let key = PublicKey { kind: self.key(), bytes: self.public_key() };
        verifier.verify(self.signature_algorithm(), key, self.signed_bytes(), self.signature())
    }
}

/// Counts signature checks, up to [`super::SIGNATURE_CHECKS_MAX`]. Repeated checks are cached and not counted.
#[derive(Debug)]
pub(super) struct Checks<'a> {
    verifier: &'a dyn SignatureVerifier,
    done: u32,
}

/// A signature check that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckFailure {
    Wrong,
    Unsupported,
    /// The maximum number of checks was reached.
    Spent,
}

impl From<VerifyError> for CheckFailure {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Wrong => Self::Wrong,
            VerifyError::Unsupported => Self::Unsupported,
        }
    }
}

impl<'a> Checks<'a> {
    pub(super) fn new(verifier: &'a dyn SignatureVerifier) -> Self {
        Self { verifier, done: 0 }
    }

    pub(super) fn done(&self) -> u32 {
        self.done
    }

    fn check(
        &mut self,
        issuer: &Certificate,
        algorithm: SignatureAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CheckFailure> {
        if self.done == super::SIGNATURE_CHECKS_MAX {
            return Err(CheckFailure::Spent);
        }
        self.done += 1;
        Ok(self.verifier.verify(algorithm, issuer.verifying_key(), message, signature)?)
    }

    /// Whether `issuer` signed `certificate`.
    pub(super) fn certificate(
        &mut self,
        certificate: &Certificate,
        issuer: &Certificate,
    ) -> Result<(), CheckFailure> {
        if certificate.is_verified_by(issuer) {
            return Ok(());
        }
        let (message, signature) = (certificate.signed_bytes(), certificate.signature());
        self.check(issuer, certificate.signature_algorithm(), message, signature)?;
        certificate.set_verified_by(issuer);
        Ok(())
    }

    /// Whether `issuer` signed `list`.
    pub(super) fn list(&mut self, list: &RevocationList, issuer: &Certificate) -> Result<(), CheckFailure> {
        if list.is_verified_by(issuer) {
            return Ok(());
        }
        self.check(issuer, list.signature_algorithm(), list.signed_bytes(), list.signature())?;
        list.set_verified_by(issuer);
        Ok(())
    }
}
