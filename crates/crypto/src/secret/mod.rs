//! Passwords and tokens sent from a client to a server (Part 4 §7.40.2), on the provider's primitives.
//!
//! | policy | secret | format |
//! | --- | --- | --- |
//! | encrypts with RSA | up to 64 bytes | [`legacy`]: length, secret, ServerNonce in RSA blocks (§7.40.2.2) |
//! | encrypts with RSA | longer | [`rsa`]: RsaEncryptedSecret (§7.40.2.4) |
//! | agrees on ephemeral keys | any | [`ephemeral`]: EccEncryptedSecret (§7.40.2.5), RSA-DH policies too |
//!
//! A client runs [`SealSecret`], a server [`OpenSecret`]. For every fault of a secret, a server returns the same error
//! after the same work, so that an attacker cannot distinguish faults by the response or its timing.

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

/// Maximum length of a secret in the format of §7.40.2.2, in bytes (Part 4 §7.40.2.1).
pub const LEGACY_LEN_MAX: usize = 64;

/// Maximum difference of SigningTime to our clock, in seconds. The ServerNonce prevents replays; this only limits how
/// long a leaked nonce is usable, so it can tolerate unsynchronized clocks.
pub const SIGNING_TIME_WINDOW_S: u64 = 3600;

/// A password, a token or a key. Overwritten when dropped, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the bytes.
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

/// An encrypted secret for a user identity token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedSecret {
    /// The token's encryptionAlgorithm; empty if the bytes contain the policy.
    pub algorithm: &'static str,
    /// The token's password or tokenData.
    pub bytes: Vec<u8>,
}

/// A secret that a client encrypts for a server.
#[derive(Debug)]
pub struct SealSecret {
    /// The token policy's security policy, or the channel's if it has none.
    pub policy: SecurityPolicy,
    /// The server's certificate, already trusted; a chain may follow it.
    pub receiver_certificate: Arc<[u8]>,
    /// The server's latest ServerNonce.
    pub server_nonce: Vec<u8>,
    /// The secret.
    pub secret: Secret,
    /// The current time.
    pub signing_time: UtcTime,
    /// The server's ephemeral public key, for policies with key agreement ([`uses_ephemeral_keys`]). Its signature was
    /// verified.
    pub receiver_key: Option<Vec<u8>>,
}

impl SealSecret {
    /// Encrypts the secret in the format for its policy and length.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`] for a policy without encryption; [`CryptoError::KeyAgreement`] if a required
    /// receiver key is missing or unusable; errors of the provider.
    pub fn run(&self, provider: &dyn Provider) -> Result<EncryptedSecret, CryptoError> {
        if uses_ephemeral_keys(self.policy) {
            return ephemeral::seal(self, provider);
        }
        match self.policy.info().asymmetric_encryption {
            // Never use PKCS #1 v1.5, which is vulnerable to Bleichenbacher's attack, even if a server requests it.
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
    /// The token policy's security policy, or the channel's if it has none.
    pub policy: SecurityPolicy,
    /// The token's encryptionAlgorithm as received.
    pub algorithm: Box<str>,
    /// The token's password or tokenData.
    pub data: Vec<u8>,
    /// The last ServerNonce that we sent.
    pub server_nonce: Vec<u8>,
    /// The current time.
    pub now: UtcTime,
    /// The last ephemeral key that we sent to the client, for policies with key agreement.
    pub key: Option<Arc<dyn EphemeralKey>>,
    /// The client's certificate from the channel. Another one in the secret is validated first.
    pub sender_certificate: Option<Arc<[u8]>>,
    /// Maximum length of the secret, in bytes.
    pub secret_len_max: usize,
}

impl OpenSecret {
    /// Decrypts the secret and checks that it was made for this nonce.
    ///
    /// An algorithm other than the policy's is refused before decryption: an attacker must not choose by a downgraded
    /// URI what our key is used for.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`] for every fault of the secret; [`CryptoError::PolicyUnsupported`] and
    /// [`CryptoError::NoOwnCertificate`] depend only on our configuration.
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
        // RsaEncryptedSecret contains the policy, so a client may omit the algorithm.
        let structured = header::is_structured(&self.data);
        if *self.algorithm != *encryption.uri() && !(structured && self.algorithm.is_empty()) {
            return Err(CryptoError::Decryption);
        }
        if structured { rsa::open(self, provider) } else { legacy::open(self, provider) }
    }
}

/// Whether secrets are encrypted with ephemeral keys: the server has to send one before the client can send a secret.
#[must_use]
pub fn uses_ephemeral_keys(policy: SecurityPolicy) -> bool {
    !matches!(policy.info().key_exchange, KeyExchange::None | KeyExchange::RsaNonces)
}
