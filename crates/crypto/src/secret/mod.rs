//! Passwords and tokens on their way from a client to a server (Part 4 §7.40.2), over the provider's primitives.
//!
//! | policy | secret | format |
//! | --- | --- | --- |
//! | encrypts with RSA | up to 64 bytes | [`legacy`]: length, secret, ServerNonce in RSA blocks (§7.40.2.2) |
//! | encrypts with RSA | longer | [`rsa`]: RsaEncryptedSecret (§7.40.2.4) |
//! | agrees on ephemeral keys | any | [`ephemeral`]: EccEncryptedSecret (§7.40.2.5), RSA-DH policies too |
//!
//! A client runs [`SealSecret`], a server [`OpenSecret`]. Whatever is wrong with a secret, a server sees one error and
//! has done the same work: what an attacker sends must not be told apart by what comes back or when.

mod ephemeral;
mod header;
mod legacy;
mod payload;
mod rsa;

use crate::policy::{AsymmetricEncryption, KeyExchange};
use crate::{CryptoError, EphemeralKey, Provider, SecurityPolicy};
use core::fmt;
use std::sync::Arc;
use taktwerk_types::UtcTime;
use zeroize::Zeroizing;

/// Longest secret that goes in the format of §7.40.2.2, in bytes (Part 4 §7.40.2.1).
pub const LEGACY_LEN_MAX: usize = 64;

/// How far SigningTime may be from our clock, in seconds. The ServerNonce is what prevents a replay; this only bounds
/// how long a nonce that leaked would be of use, so it can be wide enough for clocks that nobody sets.
pub const SIGNING_TIME_WINDOW_S: u64 = 3600;

/// A password, a token or a key: overwritten when dropped, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes over; they are overwritten when the secret is dropped.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes. Do not keep a copy.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl From<Zeroizing<Vec<u8>>> for Secret {
    fn from(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// An encrypted secret as it goes into a user identity token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedSecret {
    /// The token's encryptionAlgorithm; empty where the bytes name the policy themselves.
    pub algorithm: &'static str,
    /// The token's password or tokenData.
    pub bytes: Vec<u8>,
}

/// A secret that a client has to encrypt for a server.
#[derive(Debug)]
pub struct SealSecret {
    /// The token policy's security policy, or the channel's if that names none.
    pub policy: SecurityPolicy,
    /// The server's certificate, already known to be trusted; a chain may stand behind it.
    pub receiver_certificate: Arc<[u8]>,
    /// The server's latest ServerNonce.
    pub server_nonce: Vec<u8>,
    /// The secret.
    pub secret: Secret,
    /// The time now.
    pub signing_time: UtcTime,
    /// The server's ephemeral public key, where the policy agrees on keys ([`uses_ephemeral_keys`]). Its signature has
    /// been verified.
    pub receiver_key: Option<Vec<u8>>,
}

impl SealSecret {
    /// Encrypts the secret in the format that policy and length ask for.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`] for a policy without encryption; [`CryptoError::KeyAgreement`] if there is no
    /// receiver key though the policy wants one, or it is unusable; what the provider reports.
    pub fn run(&self, provider: &dyn Provider) -> Result<EncryptedSecret, CryptoError> {
        if uses_ephemeral_keys(self.policy) {
            return ephemeral::seal(self, provider);
        }
        match self.policy.info().asymmetric_encryption {
            // PKCS #1 v1.5 is what Bleichenbacher's attack is about: never, not even for a server that asks for it.
            AsymmetricEncryption::None | AsymmetricEncryption::RsaPkcs15 => {
                Err(CryptoError::PolicyUnsupported)
            }
            _ if self.secret.expose().len() <= LEGACY_LEN_MAX => legacy::seal(self, provider),
            _ => rsa::seal(self, provider),
        }
    }
}

/// A secret that a client has encrypted for us.
#[derive(Debug)]
pub struct OpenSecret {
    /// The token policy's security policy, or the channel's if that names none.
    pub policy: SecurityPolicy,
    /// The token's encryptionAlgorithm as it came.
    pub algorithm: Box<str>,
    /// The token's password or tokenData.
    pub data: Vec<u8>,
    /// The ServerNonce that we sent last.
    pub server_nonce: Vec<u8>,
    /// The time now.
    pub now: UtcTime,
    /// The ephemeral key that we gave the client last, where the policy agrees on keys.
    pub key: Option<Arc<dyn EphemeralKey>>,
    /// The client's certificate as the channel knows it. Another one in the secret is validated first.
    pub sender_certificate: Option<Arc<[u8]>>,
    /// Longest secret that we take, in bytes.
    pub secret_len_max: usize,
}

impl OpenSecret {
    /// Decrypts the secret and checks that it was made for this nonce.
    ///
    /// An algorithm that is not the policy's is refused before anything is decrypted: a downgraded URI must not choose
    /// what our key is used for.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`], whatever is wrong; [`CryptoError::PolicyUnsupported`] and
    /// [`CryptoError::NoOwnCertificate`] only depend on our own configuration.
    pub fn run(&self, provider: &dyn Provider) -> Result<Secret, CryptoError> {
        if !provider.supports(self.policy) || self.policy == SecurityPolicy::None {
            return Err(CryptoError::PolicyUnsupported);
        }
        if uses_ephemeral_keys(self.policy) {
            if !self.algorithm.is_empty() {
                return Err(CryptoError::Decryption);
            }
            return ephemeral::open(self, provider);
        }
        let encryption = self.policy.info().asymmetric_encryption;
        if matches!(encryption, AsymmetricEncryption::None | AsymmetricEncryption::RsaPkcs15) {
            return Err(CryptoError::PolicyUnsupported);
        }
        // RsaEncryptedSecret names the policy itself, so a client may leave the algorithm out beside it.
        let structured = header::is_structured(&self.data);
        if *self.algorithm != *encryption.uri() && !(structured && self.algorithm.is_empty()) {
            return Err(CryptoError::Decryption);
        }
        if structured { rsa::open(self, provider) } else { legacy::open(self, provider) }
    }
}

/// Whether secrets are encrypted with ephemeral keys: the server has to offer one before the client can send any.
#[must_use]
pub fn uses_ephemeral_keys(policy: SecurityPolicy) -> bool {
    !matches!(policy.info().key_exchange, KeyExchange::None | KeyExchange::RsaNonces)
}
