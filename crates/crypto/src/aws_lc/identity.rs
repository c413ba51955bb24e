//! One of our certificates with its private key.

use super::certificate_key::PublicKeyInfo;
use super::{KeyKind, digest_of};
use crate::policy::{AsymmetricEncryption, AsymmetricSignature};
use crate::{CryptoError, SecurityPolicy};
use aws_lc_rs::digest::{SHA256, SHA384};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepAlgorithm, OaepPrivateDecryptingKey, PrivateDecryptingKey,
};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
};
use core::fmt;
use zeroize::Zeroizing;

/// Why a certificate and a key cannot form an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The certificate cannot be read, or the kind of its key is not supported.
    #[error("the certificate is not a DER certificate with an RSA, P-256, P-384 or Ed25519 key")]
    Certificate,
    /// The private key is not PKCS #8, or not of the certificate's kind.
    #[error("the private key is not an unencrypted PKCS #8 key of the certificate's key type")]
    PrivateKey,
    /// The private key belongs to another certificate.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
    /// The length of the RSA key is not supported.
    #[error("RSA keys need 2048 to 4096 bits; this one has {0}")]
    KeySize(u16),
}

enum Key {
    Rsa { signing: RsaKeyPair, decrypting: OaepPrivateDecryptingKey },
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// One of our certificates with its private key. The key cannot be extracted and is never printed.
pub struct Identity {
    chain: Vec<u8>,
    kind: KeyKind,
    key: Key,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Identity {
    /// Combines a certificate and its key. `chain` is DER: the certificate, followed by its issuers if peers need them.
    /// `pkcs8` is the unencrypted private key in DER.
    ///
    /// # Errors
    /// [`IdentityError`] if either cannot be used, or they do not belong together.
    pub fn new(chain: Vec<u8>, pkcs8: &[u8]) -> Result<Self, IdentityError> {
        let rejected = |_| IdentityError::PrivateKey;
        let info = PublicKeyInfo::of_certificate(&chain).map_err(|_| IdentityError::Certificate)?;
        let kind = info.kind;
        let (key, own_public) = match kind {
            KeyKind::Rsa { bits } if !(2048..=4096).contains(&bits) => {
                return Err(IdentityError::KeySize(bits));
            }
            KeyKind::Rsa { .. } => {
                let signing = RsaKeyPair::from_pkcs8(pkcs8).map_err(rejected)?;
                let decrypting = PrivateDecryptingKey::from_pkcs8(pkcs8).map_err(rejected)?;
                let decrypting =
                    OaepPrivateDecryptingKey::new(decrypting).map_err(|_| IdentityError::PrivateKey)?;
                let public = signing.public_key().as_ref().to_vec();
                (Key::Rsa { signing, decrypting }, public)
            }
            KeyKind::NistP256 | KeyKind::NistP384 => {
                let algorithm = match kind {
                    KeyKind::NistP256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
                    _ => &ECDSA_P384_SHA384_FIXED_SIGNING,
                };
                let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8).map_err(rejected)?;
                let public = key.public_key().as_ref().to_vec();
                (Key::Ecdsa(key), public)
            }
            KeyKind::Ed25519 => {
                let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map_err(rejected)?;
                let public = key.public_key().as_ref().to_vec();
                (Key::Ed25519(key), public)
            }
        };
        if own_public != info.key {
            return Err(IdentityError::Mismatch);
        }
        Ok(Self { chain, kind, key })
    }

    /// The certificate with its chain, in DER.
    #[must_use]
    pub fn chain(&self) -> &[u8] {
        &self.chain
    }

    pub(super) const fn kind(&self) -> KeyKind {
        self.kind
    }

    pub(super) fn sign(
        &self,
        policy: SecurityPolicy,
        data: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        let failed = |_| CryptoError::Internal;
        match (&self.key, policy.info().asymmetric_signature) {
            (Key::Rsa { signing, .. }, algorithm) => {
                let encoding: &'static dyn aws_lc_rs::signature::RsaEncoding = match algorithm {
                    AsymmetricSignature::RsaPkcs15Sha256 => &RSA_PKCS1_SHA256,
                    AsymmetricSignature::RsaPssSha256 => &RSA_PSS_SHA256,
                    _ => return Err(CryptoError::NoOwnCertificate),
                };
                let at = out.len();
                out.resize(at + signing.public_modulus_len(), 0);
                let gap = out.get_mut(at..).ok_or(CryptoError::Internal)?;
                signing.sign_digest(encoding, &digest_of(&SHA256, data), gap).map_err(failed)
            }
            (Key::Ecdsa(key), algorithm) => {
                let digest = match algorithm {
                    AsymmetricSignature::EcdsaSha256 => digest_of(&SHA256, data),
                    AsymmetricSignature::EcdsaSha384 => digest_of(&SHA384, data),
                    _ => return Err(CryptoError::NoOwnCertificate),
                };
                out.extend_from_slice(key.sign_digest(&digest).map_err(failed)?.as_ref());
                Ok(())
            }
            (Key::Ed25519(key), AsymmetricSignature::Ed25519) => {
                // EdDSA reads the message twice, so it has to be contiguous.
                out.extend_from_slice(key.try_sign(&data.concat()).map_err(failed)?.as_ref());
                Ok(())
            }
            (Key::Ed25519(_), _) => Err(CryptoError::NoOwnCertificate),
        }
    }

    /// Decrypts block by block with OAEP. Always decrypts every block, even after a failure.
    pub(super) fn decrypt(
        &self,
        policy: SecurityPolicy,
        cipher: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        let (Key::Rsa { decrypting, .. }, Some(algorithm)) = (&self.key, oaep(policy)) else {
            return Err(CryptoError::PolicyUnsupported);
        };
        let block_len = decrypting.key_size_bytes();
        if cipher.is_empty() || !cipher.len().is_multiple_of(block_len) {
            return Err(CryptoError::Decryption);
        }
        let mut plain = Zeroizing::new(vec![0; decrypting.min_output_size()]);
        let mut right = true;
        for block in cipher.chunks_exact(block_len) {
            match decrypting.decrypt(algorithm, block, &mut plain, None) {
                Ok(plain) => out.extend_from_slice(plain),
                Err(_) => right = false,
            }
        }
        if right { Ok(()) } else { Err(CryptoError::Decryption) }
    }

    /// The public key as a SubjectPublicKeyInfo; `None` if the library cannot encode it.
    #[must_use]
    pub fn public_key_info(&self) -> Option<Vec<u8>> {
        use aws_lc_rs::encoding::PublicKeyX509Der;
        let encoded: Result<PublicKeyX509Der<'_>, _> = match &self.key {
            Key::Rsa { signing, .. } => signing.public_key().as_der(),
            Key::Ecdsa(key) => key.public_key().as_der(),
            Key::Ed25519(key) => key.public_key().as_der(),
        };
        encoded.ok().map(|der| der.as_ref().to_vec())
    }
}

/// The OAEP algorithm of a policy; `None` if it does not encrypt with RSA, or uses the broken PKCS #1 v1.5 padding.
pub(super) fn oaep(policy: SecurityPolicy) -> Option<&'static OaepAlgorithm> {
    match policy.info().asymmetric_encryption {
        AsymmetricEncryption::RsaOaepSha1 => Some(&OAEP_SHA1_MGF1SHA1),
        AsymmetricEncryption::RsaOaepSha256 => Some(&OAEP_SHA256_MGF1SHA256),
        AsymmetricEncryption::None | AsymmetricEncryption::RsaPkcs15 => None,
    }
}
