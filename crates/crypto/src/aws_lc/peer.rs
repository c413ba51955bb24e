//! Operations with a peer's certificate: verify and encrypt.

use super::certificate_key::{KeyKind, PublicKeyInfo};
use super::{digest_of, identity::oaep};
use crate::policy::AsymmetricSignature;
use crate::{CryptoError, PeerKey, SecurityPolicy};
use aws_lc_rs::digest::{SHA256, SHA384};
use aws_lc_rs::rsa::{OaepAlgorithm, OaepPublicEncryptingKey, PublicEncryptingKey};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use taktwerk_types::StatusCode;

/// The key of a peer's certificate.
pub(super) struct CertificateKey {
    kind: KeyKind,
    signature: AsymmetricSignature,
    verifying: ParsedPublicKey,
    encrypting: Option<(OaepPublicEncryptingKey, &'static OaepAlgorithm)>,
}

impl CertificateKey {
    pub(super) fn new(policy: SecurityPolicy, certificate: &[u8]) -> Result<Self, CryptoError> {
        let info = PublicKeyInfo::of_certificate(certificate)?;
        if !info.kind.fits(policy) {
            let reason = format!("{policy} does not take its key ({:?})", info.kind);
            return Err(CryptoError::certificate(StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED, reason));
        }
        let signature = policy.info().asymmetric_signature;
        let algorithm: &'static dyn VerificationAlgorithm = match signature {
            AsymmetricSignature::RsaPkcs15Sha256 => &RSA_PKCS1_2048_8192_SHA256,
            AsymmetricSignature::RsaPssSha256 => &RSA_PSS_2048_8192_SHA256,
            AsymmetricSignature::EcdsaSha256 => &ECDSA_P256_SHA256_FIXED,
            AsymmetricSignature::EcdsaSha384 => &ECDSA_P384_SHA384_FIXED,
            AsymmetricSignature::Ed25519 => &ED25519,
            _ => return Err(CryptoError::PolicyUnsupported),
        };
        let verifying = UnparsedPublicKey::new(algorithm, info.key).parse().map_err(|_| unusable())?;
        let encrypting = match oaep(policy) {
            Some(algorithm) => {
                let key = PublicEncryptingKey::from_der(info.der).map_err(|_| unusable())?;
                Some((OaepPublicEncryptingKey::new(key).map_err(|_| unusable())?, algorithm))
            }
            None => None,
        };
        Ok(Self { kind: info.kind, signature, verifying, encrypting })
    }
}

fn unusable() -> CryptoError {
    CryptoError::certificate(StatusCode::BAD_CERTIFICATE_INVALID, "its public key is invalid")
}

impl PeerKey for CertificateKey {
    fn signature_len(&self) -> usize {
        self.kind.signature_len()
    }

    fn verify(&self, data: &[&[u8]], signature: &[u8]) -> Result<(), CryptoError> {
        if signature.len() != self.kind.signature_len() {
            return Err(CryptoError::Signature);
        }
        let verified = match self.signature {
            AsymmetricSignature::EcdsaSha384 => {
                self.verifying.verify_digest_sig(&digest_of(&SHA384, data), signature)
            }
            AsymmetricSignature::Ed25519 => self.verifying.verify_sig(&data.concat(), signature),
            _ => self.verifying.verify_digest_sig(&digest_of(&SHA256, data), signature),
        };
        verified.map_err(|_| CryptoError::Signature)
    }

    fn plain_block_len(&self) -> usize {
        self.encrypting.as_ref().map_or(0, |(key, algorithm)| key.max_plaintext_size(algorithm))
    }

    fn cipher_block_len(&self) -> usize {
        self.encrypting.as_ref().map_or(0, |(key, _)| key.ciphertext_size())
    }

    fn encrypt(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        let (key, algorithm) = self.encrypting.as_ref().ok_or(CryptoError::PolicyUnsupported)?;
        for block in plain.chunks(key.max_plaintext_size(algorithm)) {
            let at = out.len();
            out.resize(at + key.ciphertext_size(), 0);
            let gap = out.get_mut(at..).ok_or(CryptoError::Internal)?;
            key.encrypt(algorithm, block, gap, None).map_err(|_| CryptoError::Internal)?;
        }
        Ok(())
    }
}
