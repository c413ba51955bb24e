//! The provider on AWS-LC (crate `aws-lc-rs`), with our certificates and keys.
//!
//! | policies | supported |
//! | --- | --- |
//! | Basic256Sha256, Aes128_Sha256_RsaOaep, Aes256_Sha256_RsaPss | yes |
//! | ECC_nistP256, ECC_nistP384, ECC_curve25519, each with its AesGcm and ChaChaPoly variants | yes |
//! | RSA_DH_AesGcm, RSA_DH_ChaChaPoly | yes; the finite-field agreement is [`ffdhe`] |
//! | ECC_brainpool…, ECC_curve448 | no: the library has neither curve |
//! | Basic128Rsa15, Basic256 | never |
//!
//! Chunks are sealed and opened in place by contexts that are keyed once per security token ([`chunk`]). RSA is used
//! for decryption with OAEP only.

mod agreement;
mod certificate_key;
mod chunk;
mod ffdhe;
mod generations;
mod identity;
mod lanes;
mod payload;
mod peer;
#[cfg(test)]
mod tests;

pub use identity::{Identity, IdentityError};

use crate::policy::{AsymmetricSignature, KeyExchange, SymmetricAlgorithms};
use crate::{
    CertificatePurpose, CertificateValidator, CryptoError, EphemeralKey, KeyAgreement, MessageSecurityMode,
    PayloadKeys, PeerKey, Provider, Role, SecurityPolicy, SymmetricKeys, der,
};
use aws_lc_rs::{digest, hmac, rand};
use certificate_key::KeyKind;
use generations::Generations;
use std::sync::Arc;

/// AWS-LC with our identities and a validator for peers' certificates.
#[derive(Debug, Clone)]
pub struct AwsLcProvider {
    identities: Arc<Generations>,
    validator: Arc<dyn CertificateValidator>,
    discloses_keys: bool,
}

impl AwsLcProvider {
    /// A provider without identities: it can verify certificates, but cannot open a secured channel.
    ///
    /// The first one in a process takes about 40 ms, because the library collects its random seed.
    #[must_use]
    pub fn new(validator: Arc<dyn CertificateValidator>) -> Self {
        // Seed the library now, not while the first peer waits. Later calls report a failure.
        let _ = fill_random(&mut [0; 1]);
        Self { identities: Arc::default(), validator, discloses_keys: false }
    }

    /// Adds one of our certificates with its key. An RSA key is used for RSA policies, an elliptic-curve key for the
    /// policies of its curve. If several fit a policy, the first one is used.
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<Arc<Identity>>) -> Self {
        let mut identities = self.identities.newest().to_vec();
        identities.push(identity.into());
        self.identities = Arc::new(Generations::new(identities));
        self
    }

    /// Keeps the keys of channels for a [`KeyLog`](crate::KeyLog). Whoever has them can read all traffic, so this is
    /// only for debugging.
    #[must_use]
    pub fn disclosing_keys(mut self, on: bool) -> Self {
        self.discloses_keys = on;
        self
    }

    /// Our identities.
    #[must_use]
    pub fn identities(&self) -> &[Arc<Identity>] {
        self.identities.newest()
    }

    /// Replaces our identities while the provider and its clones are in use. Operations in progress with an old
    /// identity may fail. Old identities stay in memory, so at most 64 replacements are possible.
    ///
    /// # Errors
    /// [`CryptoError::NoOwnCertificate`] if a policy that is usable now would no longer be; [`CryptoError::Internal`]
    /// if the maximum is reached.
    pub fn renew(&self, identities: Vec<Arc<Identity>>) -> Result<(), CryptoError> {
        let serves = |policy| identities.iter().any(|identity: &Arc<Identity>| identity.kind().fits(policy));
        if !self.usable_policies().into_iter().all(serves) {
            return Err(CryptoError::NoOwnCertificate);
        }
        if self.identities.replace(identities) { Ok(()) } else { Err(CryptoError::Internal) }
    }

    /// How often [`Self::renew`] can still be called.
    #[must_use]
    pub fn renewals_left(&self) -> usize {
        self.identities.replacements_left()
    }

    /// The policies that can be used with our identities, by descending security level.
    #[must_use]
    pub fn usable_policies(&self) -> Vec<SecurityPolicy> {
        let secured = |policy: &SecurityPolicy| *policy != SecurityPolicy::None && self.supports(*policy);
        let mut usable: Vec<_> = SecurityPolicy::ALL.iter().copied().filter(secured).collect();
        usable.sort_by_key(|policy| core::cmp::Reverse(policy.info().security_level));
        usable
    }

    fn identity(&self, policy: SecurityPolicy) -> Result<&Identity, CryptoError> {
        if !carries(policy) {
            return Err(CryptoError::PolicyUnsupported);
        }
        let fits = |identity: &&Arc<Identity>| identity.kind().fits(policy);
        self.identities.newest().iter().find(fits).map(AsRef::as_ref).ok_or(CryptoError::NoOwnCertificate)
    }
}

/// Whether the library supports a policy and the policy is not broken.
#[must_use]
pub fn carries(policy: SecurityPolicy) -> bool {
    let info = policy.info();
    // Excludes Basic128Rsa15 and Basic256, which use SHA-1 in signatures or PKCS #1 v1.5 in encryption, before any RSA
    // operation.
    let signs = matches!(
        info.asymmetric_signature,
        AsymmetricSignature::RsaPkcs15Sha256
            | AsymmetricSignature::RsaPssSha256
            | AsymmetricSignature::EcdsaSha256
            | AsymmetricSignature::EcdsaSha384
            | AsymmetricSignature::Ed25519
    );
    let agrees = matches!(
        info.key_exchange,
        KeyExchange::RsaNonces
            | KeyExchange::NistP256
            | KeyExchange::NistP384
            | KeyExchange::Curve25519
            | KeyExchange::Ffdhe3072
    );
    signs && agrees
}

/// Length of a policy's key material per direction, in bytes (Part 6 §6.7.6, §6.8.1).
#[must_use]
pub fn material_len(policy: SecurityPolicy) -> usize {
    chunk::Material::len(policy.info())
}

/// The contexts of a token with known key material: for tools that read recorded traffic, and for tests.
///
/// # Errors
/// [`CryptoError::PolicyUnsupported`], or the length of the material is not [`material_len`].
pub fn symmetric_keys(
    policy: SecurityPolicy,
    mode: MessageSecurityMode,
    role: Role,
    client_material: &[u8],
    server_material: &[u8],
) -> Result<Box<dyn SymmetricKeys>, CryptoError> {
    if !carries(policy) {
        return Err(CryptoError::PolicyUnsupported);
    }
    let terms = agreement::Terms { info: policy.info(), mode, role, discloses: false };
    agreement::contexts(terms, client_material, server_material, None)
}

impl Provider for AwsLcProvider {
    fn supports(&self, policy: SecurityPolicy) -> bool {
        policy == SecurityPolicy::None || self.identity(policy).is_ok()
    }

    fn own_certificate(&self, policy: SecurityPolicy) -> Option<&[u8]> {
        self.identity(policy).ok().map(Identity::chain)
    }

    fn thumbprint(&self, certificate: &[u8]) -> [u8; 20] {
        let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, der::leaf(certificate));
        let mut thumbprint = [0; 20];
        thumbprint.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        thumbprint
    }

    fn application_uri(&self, certificate: &[u8]) -> Option<String> {
        der::application_uri(certificate).map(str::to_owned)
    }

    fn validate(&self, certificate: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError> {
        self.validator.validate(certificate, purpose)
    }

    fn peer_key(&self, policy: SecurityPolicy, certificate: &[u8]) -> Result<Box<dyn PeerKey>, CryptoError> {
        if !carries(policy) {
            return Err(CryptoError::PolicyUnsupported);
        }
        Ok(Box::new(peer::CertificateKey::new(policy, certificate)?))
    }

    fn signature_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError> {
        Ok(self.identity(policy)?.kind().signature_len())
    }

    fn sign(&self, policy: SecurityPolicy, data: &[&[u8]], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        self.identity(policy)?.sign(policy, data, out)
    }

    fn cipher_block_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError> {
        let kind = self.identity(policy)?.kind();
        Ok(kind.cipher_block_len(policy))
    }

    fn decrypt(&self, policy: SecurityPolicy, cipher: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        self.identity(policy)?.decrypt(policy, cipher, out)
    }

    fn agree(
        &self,
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
        role: Role,
    ) -> Result<Box<dyn KeyAgreement>, CryptoError> {
        if !carries(policy) {
            return Err(CryptoError::PolicyUnsupported);
        }
        agreement::start(policy, mode, role, self.discloses_keys)
    }

    fn digest(&self, policy: SecurityPolicy, data: &[&[u8]]) -> Result<Vec<u8>, CryptoError> {
        let algorithm = match policy.info().asymmetric_signature {
            AsymmetricSignature::EcdsaSha384 => &digest::SHA384,
            _ if carries(policy) => &digest::SHA256,
            _ => return Err(CryptoError::PolicyUnsupported),
        };
        Ok(digest_of(algorithm, data).as_ref().to_vec())
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), CryptoError> {
        fill_random(bytes)
    }

    fn ephemeral_key(&self, policy: SecurityPolicy) -> Result<Arc<dyn EphemeralKey>, CryptoError> {
        if !carries(policy) {
            return Err(CryptoError::PolicyUnsupported);
        }
        Ok(Arc::new(agreement::Ephemeral::generate(policy)?))
    }

    fn encrypt_payload(
        &self,
        policy: SecurityPolicy,
        keys: PayloadKeys<'_>,
        headers: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        payload::encrypt(policy.info(), keys, headers, payload)
    }

    fn decrypt_payload(
        &self,
        policy: SecurityPolicy,
        keys: PayloadKeys<'_>,
        headers: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        payload::decrypt(policy.info(), keys, headers, payload)
    }

    fn mac(
        &self,
        policy: SecurityPolicy,
        key: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        let algorithm = hmac_algorithm(policy.info().symmetric).ok_or(CryptoError::PolicyUnsupported)?;
        out.extend_from_slice(hmac::sign(&hmac::Key::new(algorithm, key), data).as_ref());
        Ok(())
    }
}

impl KeyKind {
    /// Whether a certificate with this kind of key can be used with a policy.
    fn fits(self, policy: SecurityPolicy) -> bool {
        let info = policy.info();
        match self {
            Self::Rsa { bits } => {
                let signs_with_rsa = matches!(
                    info.asymmetric_signature,
                    AsymmetricSignature::RsaPkcs15Sha256 | AsymmetricSignature::RsaPssSha256
                );
                signs_with_rsa && (info.key_bits_min..=info.key_bits_max).contains(&bits)
            }
            Self::NistP256 => info.key_exchange == KeyExchange::NistP256,
            Self::NistP384 => info.key_exchange == KeyExchange::NistP384,
            Self::Ed25519 => info.key_exchange == KeyExchange::Curve25519,
        }
    }

    /// Length of a signature in bytes: r and s, or the length of the modulus.
    const fn signature_len(self) -> usize {
        match self {
            Self::Rsa { bits } => (bits as usize).div_ceil(8),
            Self::NistP256 | Self::Ed25519 => 64,
            Self::NistP384 => 96,
        }
    }

    /// Length of an encrypted block for such a key, in bytes; 0 if the policy does not encrypt with it.
    fn cipher_block_len(self, policy: SecurityPolicy) -> usize {
        match self {
            Self::Rsa { bits } if identity::oaep(policy).is_some() => usize::from(bits).div_ceil(8),
            _ => 0,
        }
    }
}

fn hmac_algorithm(symmetric: SymmetricAlgorithms) -> Option<hmac::Algorithm> {
    match symmetric {
        SymmetricAlgorithms::AesCbcHmacSha256 => Some(hmac::HMAC_SHA256),
        SymmetricAlgorithms::AesCbcHmacSha384 => Some(hmac::HMAC_SHA384),
        _ => None,
    }
}

fn digest_of(algorithm: &'static digest::Algorithm, data: &[&[u8]]) -> digest::Digest {
    let mut context = digest::Context::new(algorithm);
    data.iter().for_each(|part| context.update(part));
    context.finish()
}

fn fill_random(bytes: &mut [u8]) -> Result<(), CryptoError> {
    rand::fill(bytes).map_err(|_| CryptoError::Internal)
}
