//! Signature verification with AWS-LC.

use super::key::{Hash, KeyKind, SignatureAlgorithm};
use super::verify::{PublicKey, SignatureVerifier, VerifyError};
use aws_lc_rs::digest;
use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

/// Verifies signatures with AWS-LC. It also supports SHA-1 and short RSA keys, so that such certificates are refused
/// for that reason and not as forgeries.
#[derive(Debug, Clone, Copy, Default)]
pub struct AwsLcVerifier;

/// The SHA-1 digest of a certificate: an identifier, not a protection (Part 6 §6.7.2.3).
#[must_use]
pub fn thumbprint(certificate: &[u8]) -> [u8; 20] {
    let mut thumbprint = [0; 20];
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, certificate);
    thumbprint.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    thumbprint
}

/// The library's algorithm. Keys shorter than 2048 bits are supported with the hashes commonly used with them.
fn algorithm(algorithm: SignatureAlgorithm, key: KeyKind) -> Option<&'static dyn VerificationAlgorithm> {
    use {Hash::*, KeyKind as Key, SignatureAlgorithm as Algorithm};
    Some(match (algorithm, key) {
        (Algorithm::RsaPkcs15(Sha1), Key::Rsa { .. }) => {
            &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY
        }
        (Algorithm::RsaPkcs15(Sha256), Key::Rsa { .. }) => {
            &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY
        }
        (Algorithm::RsaPkcs15(Sha384), Key::Rsa { .. }) => &signature::RSA_PKCS1_2048_8192_SHA384,
        (Algorithm::RsaPkcs15(Sha512), Key::Rsa { .. }) => {
            &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY
        }
        (Algorithm::RsaPss(Sha256), Key::Rsa { .. }) => &signature::RSA_PSS_2048_8192_SHA256,
        (Algorithm::RsaPss(Sha384), Key::Rsa { .. }) => &signature::RSA_PSS_2048_8192_SHA384,
        (Algorithm::RsaPss(Sha512), Key::Rsa { .. }) => &signature::RSA_PSS_2048_8192_SHA512,
        (Algorithm::Ecdsa(Sha256), Key::NistP256) => &signature::ECDSA_P256_SHA256_ASN1,
        (Algorithm::Ecdsa(Sha384), Key::NistP256) => &signature::ECDSA_P256_SHA384_ASN1,
        (Algorithm::Ecdsa(Sha512), Key::NistP256) => &signature::ECDSA_P256_SHA512_ASN1,
        (Algorithm::Ecdsa(Sha256), Key::NistP384) => &signature::ECDSA_P384_SHA256_ASN1,
        (Algorithm::Ecdsa(Sha384), Key::NistP384) => &signature::ECDSA_P384_SHA384_ASN1,
        (Algorithm::Ecdsa(Sha512), Key::NistP384) => &signature::ECDSA_P384_SHA512_ASN1,
        (Algorithm::Ed25519, Key::Ed25519) => &signature::ED25519,
        _ => return None,
    })
}

/// Whether a key can make signatures with an algorithm. If not, the signature is wrong and not merely unsupported.
fn fits(algorithm: SignatureAlgorithm, key: KeyKind) -> bool {
    use {KeyKind as Key, SignatureAlgorithm as Algorithm};
    match algorithm {
        Algorithm::RsaPkcs15(_) | Algorithm::RsaPss(_) => key.is_rsa() || key == Key::Unknown,
        Algorithm::Ecdsa(_) => !key.is_rsa() && !matches!(key, Key::Ed25519 | Key::Ed448),
        Algorithm::Ed25519 => matches!(key, Key::Ed25519 | Key::Unknown),
        Algorithm::Ed448 => matches!(key, Key::Ed448 | Key::Unknown),
        Algorithm::Unknown => true,
    }
}

impl SignatureVerifier for AwsLcVerifier {
    fn verify(
        &self,
        signed_with: SignatureAlgorithm,
        key: PublicKey<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), VerifyError> {
        if !fits(signed_with, key.kind) {
            return Err(VerifyError::Wrong);
        }
        // The library refuses keys outside this range.
        if key.kind.is_rsa() && !(1024..=8192).contains(&key.kind.bits()) {
            return Err(VerifyError::Unsupported);
        }
        let algorithm = algorithm(signed_with, key.kind).ok_or(VerifyError::Unsupported)?;
        UnparsedPublicKey::new(algorithm, key.bytes)
            .verify(message, signature)
            .map_err(|_| VerifyError::Wrong)
    }
}
