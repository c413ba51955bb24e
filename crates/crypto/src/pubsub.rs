//! The interface of a cryptographic library for PubSub: message security of UADP NetworkMessages (Part 14 §7.2.4.4.3).
//!
//! PubSub has its own policies, because its keys are shared by a group and come from a key service instead of a
//! handshake. A [`PubSubKeys`] context is created once per security token and used for all its messages.

use crate::CryptoError;
use core::fmt;
use core::str::FromStr;

/// A security policy for PubSub (Part 7, `PubSub-Aes128-CTR` and `PubSub-Aes256-CTR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PubSubSecurityPolicy {
    /// HMAC-SHA256 and AES-128 in counter mode.
    Aes128Ctr,
    /// HMAC-SHA256 and AES-256 in counter mode.
    Aes256Ctr,
}

/// Bytes of the MessageNonce in the SecurityHeader: 4 random bytes and the nonce's sequence number.
pub const MESSAGE_NONCE_LEN: usize = 8;

/// The parts of the key data from a key service (Part 14 Table 155).
#[derive(Clone, Copy)]
pub struct KeyData<'a> {
    /// The signing key.
    pub signing: &'a [u8],
    /// The encrypting key.
    pub encrypting: &'a [u8],
    /// The KeyNonce, a part of the counter block.
    pub key_nonce: [u8; 4],
}

impl PubSubSecurityPolicy {
    /// All policies.
    pub const ALL: [Self; 2] = [Self::Aes128Ctr, Self::Aes256Ctr];

    /// The URI that names the policy.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Self::Aes128Ctr => "http://opcfoundation.org/UA/SecurityPolicy#PubSub-Aes128-CTR",
            Self::Aes256Ctr => "http://opcfoundation.org/UA/SecurityPolicy#PubSub-Aes256-CTR",
        }
    }

    /// From the URI; `None` if it is not a PubSub policy.
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.uri() == uri)
    }

    /// Bytes of the signing key.
    #[must_use]
    pub const fn signing_key_len(self) -> usize {
        32
    }

    /// Bytes of the encrypting key.
    #[must_use]
    pub const fn encrypting_key_len(self) -> usize {
        match self {
            Self::Aes128Ctr => 16,
            Self::Aes256Ctr => 32,
        }
    }

    /// Length of the KeyNonce, a part of the counter block.
    #[must_use]
    pub const fn key_nonce_len(self) -> usize {
        4
    }

    /// Length of the key data from a key service, in bytes (Part 14 Table 155).
    #[must_use]
    pub const fn key_data_len(self) -> usize {
        self.signing_key_len() + self.encrypting_key_len() + self.key_nonce_len()
    }

    /// Bytes of a signature.
    #[must_use]
    pub const fn signature_len(self) -> usize {
        32
    }

    /// Splits key data into its parts.
    ///
    /// # Errors
    /// [`CryptoError::Malformed`] if the length is not [`Self::key_data_len`].
    pub fn split_key_data(self, key_data: &[u8]) -> Result<KeyData<'_>, CryptoError> {
        let (signing, rest) =
            key_data.split_at_checked(self.signing_key_len()).ok_or(CryptoError::Malformed)?;
        let (encrypting, nonce) =
            rest.split_at_checked(self.encrypting_key_len()).ok_or(CryptoError::Malformed)?;
        let key_nonce = nonce.try_into().map_err(|_| CryptoError::Malformed)?;
        Ok(KeyData { signing, encrypting, key_nonce })
    }
}

impl fmt::Display for PubSubSecurityPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Aes128Ctr => "PubSub-Aes128-CTR",
            Self::Aes256Ctr => "PubSub-Aes256-CTR",
        })
    }
}

impl FromStr for PubSubSecurityPolicy {
    type Err = CryptoError;
    /// From the URI or the part after its `#`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|policy| policy.uri() == text || policy.to_string() == text);
        found.ok_or(CryptoError::PolicyUnsupported)
    }
}

/// The keys of one security token, ready for use.
///
/// The caller must use each nonce only once per key; nonces are not checked here.
pub trait PubSubKeys: Send + fmt::Debug {
    /// Bytes of a signature.
    fn signature_len(&self) -> usize;

    /// Writes the signature over `message`; `signature` has [`Self::signature_len`] bytes.
    ///
    /// # Errors
    /// [`CryptoError::Malformed`] if the length is wrong, or the library fails.
    fn sign(&self, message: &[u8], signature: &mut [u8]) -> Result<(), CryptoError>;

    /// Checks a signature in constant time.
    ///
    /// # Errors
    /// [`CryptoError::Signature`].
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), CryptoError>;

    /// Encrypts or decrypts in place: in counter mode both are the same (Part 14 §7.2.4.4.3.2).
    ///
    /// # Errors
    /// Only if the library fails.
    fn apply(&self, nonce: &[u8; MESSAGE_NONCE_LEN], data: &mut [u8]) -> Result<(), CryptoError>;
}

/// A cryptographic library that can secure NetworkMessages.
pub trait PubSubProvider: Send + Sync + fmt::Debug {
    /// Whether the policy is usable.
    fn supports(&self, policy: PubSubSecurityPolicy) -> bool;

    /// Creates the context of a security token from the key data of a key service.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`], or [`CryptoError::Malformed`] if the key data has the wrong length.
    fn keys(&self, policy: PubSubSecurityPolicy, key_data: &[u8])
    -> Result<Box<dyn PubSubKeys>, CryptoError>;
}

/// The first counter block of a message: KeyNonce, MessageNonce, and a big-endian block counter that starts at 1 (Part
/// 14 Table 157).
#[must_use]
pub fn counter_block(key_nonce: [u8; 4], nonce: &[u8; MESSAGE_NONCE_LEN]) -> [u8; 16] {
    let mut block = [0; 16];
    block[..4].copy_from_slice(&key_nonce);
    block[4..12].copy_from_slice(nonce);
    block[15] = 1;
    block
}

/// A provider without message security: it supports no policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPubSubSecurity;

impl PubSubProvider for NoPubSubSecurity {
    fn supports(&self, _: PubSubSecurityPolicy) -> bool {
        false
    }

    fn keys(&self, _: PubSubSecurityPolicy, _: &[u8]) -> Result<Box<dyn PubSubKeys>, CryptoError> {
        Err(CryptoError::PolicyUnsupported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_data_is_split_by_the_policys_lengths() {
        let data: Vec<u8> = (0..52).collect();
        let parts = PubSubSecurityPolicy::Aes128Ctr.split_key_data(&data).unwrap();
        assert_eq!((parts.signing.len(), parts.encrypting[0], parts.key_nonce), (32, 32, [48, 49, 50, 51]));
        assert_eq!(PubSubSecurityPolicy::Aes256Ctr.key_data_len(), 68);
        assert!(PubSubSecurityPolicy::Aes256Ctr.split_key_data(&data).is_err());
        assert!(PubSubSecurityPolicy::Aes128Ctr.split_key_data(&data[..51]).is_err());
    }

    #[test]
    fn names_and_uris() {
        for policy in PubSubSecurityPolicy::ALL {
            assert_eq!(PubSubSecurityPolicy::from_uri(policy.uri()), Some(policy));
            assert_eq!(policy.to_string().parse(), Ok(policy));
            assert!(policy.uri().ends_with(&policy.to_string()));
        }
    }

    #[test]
    fn counter_block_starts_with_one() {
        let block = counter_block([1, 2, 3, 4], &[5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(block, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1]);
    }
}
