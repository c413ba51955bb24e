//! The table of security policies (Part 7; fields as in Part 6 §6.1).

use core::fmt;
use core::str::FromStr;

/// A set of algorithms that are used together (Part 6 §6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[allow(missing_docs)] // the names are the specification's
#[allow(non_camel_case_types)] // … and two policies differ only in what stands behind the underscore
pub enum SecurityPolicy {
    /// No security.
    #[default]
    None,
    /// Broken (PKCS#1 v1.5 encryption, SHA-1): listed only so that a refusal can name it.
    Basic128Rsa15,
    /// Broken (SHA-1): listed only so that a refusal can name it.
    Basic256,
    Basic256Sha256,
    Aes128_Sha256_RsaOaep,
    Aes256_Sha256_RsaPss,
    /// Superseded by its AEAD variants.
    ECC_nistP256,
    ECC_nistP256_AesGcm,
    ECC_nistP256_ChaChaPoly,
    /// Superseded by its AEAD variants.
    ECC_nistP384,
    ECC_nistP384_AesGcm,
    ECC_nistP384_ChaChaPoly,
    /// Superseded by its AEAD variants.
    ECC_brainpoolP256r1,
    ECC_brainpoolP256r1_AesGcm,
    ECC_brainpoolP256r1_ChaChaPoly,
    /// Superseded by its AEAD variants.
    ECC_brainpoolP384r1,
    ECC_brainpoolP384r1_AesGcm,
    ECC_brainpoolP384r1_ChaChaPoly,
    /// Superseded by its variants with the channel enhancements.
    ECC_curve25519,
    ECC_curve25519_AesGcm,
    ECC_curve25519_ChaChaPoly,
    /// Superseded by its variants with the channel enhancements.
    ECC_curve448,
    ECC_curve448_AesGcm,
    ECC_curve448_ChaChaPoly,
    RSA_DH_AesGcm,
    RSA_DH_ChaChaPoly,
}

/// The signature algorithm for certificate keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum AsymmetricSignature {
    None,
    RsaPkcs15Sha1,
    RsaPkcs15Sha256,
    RsaPssSha256,
    EcdsaSha256,
    EcdsaSha384,
    Ed25519,
    Ed448,
}

impl AsymmetricSignature {
    /// The algorithm URI in SignatureData (Part 4 §7.37); empty if the policy determines it.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Self::RsaPkcs15Sha1 => "http://www.w3.org/2000/09/xmldsig#rsa-sha1",
            Self::RsaPkcs15Sha256 => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
            Self::RsaPssSha256 => "http://opcfoundation.org/UA/security/rsa-pss-sha2-256",
            Self::None | Self::EcdsaSha256 | Self::EcdsaSha384 | Self::Ed25519 | Self::Ed448 => "",
        }
    }
}

/// The encryption algorithm for certificate keys. Policies with ephemeral key agreement have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum AsymmetricEncryption {
    None,
    RsaPkcs15,
    RsaOaepSha1,
    RsaOaepSha256,
}

impl AsymmetricEncryption {
    /// The algorithm URI of an encrypted secret (Part 4 §7.40.2).
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Self::None => "",
            Self::RsaPkcs15 => "http://www.w3.org/2001/04/xmlenc#rsa-1_5",
            Self::RsaOaepSha1 => "http://www.w3.org/2001/04/xmlenc#rsa-oaep",
            Self::RsaOaepSha256 => "http://opcfoundation.org/UA/security/rsa-oaep-sha2-256",
        }
    }
}

/// How both sides agree on a secret (Part 6 §6.7.6, §6.8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum KeyExchange {
    None,
    /// Random nonces, encrypted with the certificates' keys.
    RsaNonces,
    NistP256,
    NistP384,
    BrainpoolP256r1,
    BrainpoolP384r1,
    Curve25519,
    Curve448,
    Ffdhe3072,
}

/// How chunks are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum SymmetricAlgorithms {
    None,
    AesCbcHmacSha1,
    AesCbcHmacSha256,
    AesCbcHmacSha384,
    AesGcm,
    ChaCha20Poly1305,
}

/// The table row of a [`SecurityPolicy`]. Lengths are in bytes, key sizes in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyInfo {
    /// The policy.
    pub policy: SecurityPolicy,
    /// The part of its URI after `#`.
    pub name: &'static str,
    /// Its URI.
    pub uri: &'static str,
    /// Withdrawn, or superseded by a variant: offered only if explicitly configured.
    pub deprecated: bool,
    /// AsymmetricSignatureAlgorithm.
    pub asymmetric_signature: AsymmetricSignature,
    /// AsymmetricEncryptionAlgorithm.
    pub asymmetric_encryption: AsymmetricEncryption,
    /// EphemeralKeyAlgorithm or its equivalent.
    pub key_exchange: KeyExchange,
    /// SymmetricEncryptionAlgorithm and SymmetricSignatureAlgorithm.
    pub symmetric: SymmetricAlgorithms,
    /// DerivedSignatureKeyLength.
    pub signing_key_len: usize,
    /// Length of the SymmetricEncryptionAlgorithm's key.
    pub encrypting_key_len: usize,
    /// InitializationVectorLength.
    pub iv_len: usize,
    /// Length of a chunk's signature or authentication tag.
    pub signature_len: usize,
    /// SecureChannelNonceLength.
    pub nonce_len: usize,
    /// MinAsymmetricKeyLength.
    pub key_bits_min: u16,
    /// MaxAsymmetricKeyLength.
    pub key_bits_max: u16,
    /// LegacySequenceNumbers (Part 6 §6.7.2.4).
    pub legacy_sequence_numbers: bool,
    /// SecureChannelEnhancements (Part 6 §6.7.5, Part 4 §6.1.8).
    pub enhancements: bool,
    /// EndpointDescription.securityLevel relative to the other policies; 0 means "do not use".
    pub security_level: u8,
}

impl PolicyInfo {
    /// Whether chunks are protected by an authenticated cipher (Part 6 §6.7.2.5.2): no padding.
    #[must_use]
    pub const fn is_aead(&self) -> bool {
        matches!(self.symmetric, SymmetricAlgorithms::AesGcm | SymmetricAlgorithms::ChaCha20Poly1305)
    }

    /// The block size of the chunk cipher in bytes; 1 if there is no padding.
    #[must_use]
    pub const fn block_len(&self) -> usize {
        match self.symmetric {
            SymmetricAlgorithms::AesCbcHmacSha1
            | SymmetricAlgorithms::AesCbcHmacSha256
            | SymmetricAlgorithms::AesCbcHmacSha384 => 16,
            SymmetricAlgorithms::None
            | SymmetricAlgorithms::AesGcm
            | SymmetricAlgorithms::ChaCha20Poly1305 => 1,
        }
    }

    /// Whether certificates of this policy have elliptic-curve keys, for which smaller buffers are allowed (Part 6
    /// §7.1.2.3).
    #[must_use]
    pub const fn is_ecc(&self) -> bool {
        matches!(
            self.asymmetric_signature,
            AsymmetricSignature::EcdsaSha256
                | AsymmetricSignature::EcdsaSha384
                | AsymmetricSignature::Ed25519
                | AsymmetricSignature::Ed448
        )
    }
}

/// Creates a row from the fields that differ between policies; the others follow from them.
macro_rules! policies {
    ($($name:ident $deprecated:literal $signature:ident $encryption:ident $exchange:ident $symmetric:ident
       keys($signing:literal $encrypting:literal $iv:literal) signature $signature_len:literal
       nonce $nonce:literal bits($min:literal $max:literal)
       legacy $legacy:literal enhanced $enhanced:literal level $level:literal;)*) => {
        static TABLE: &[PolicyInfo] = &[$(PolicyInfo {
            policy: SecurityPolicy::$name,
            name: stringify!($name),
            uri: concat!("http://opcfoundation.org/UA/SecurityPolicy#", stringify!($name)),
            deprecated: $deprecated,
            asymmetric_signature: AsymmetricSignature::$signature,
            asymmetric_encryption: AsymmetricEncryption::$encryption,
            key_exchange: KeyExchange::$exchange,
            symmetric: SymmetricAlgorithms::$symmetric,
            signing_key_len: $signing,
            encrypting_key_len: $encrypting,
            iv_len: $iv,
            signature_len: $signature_len,
            nonce_len: $nonce,
            key_bits_min: $min,
            key_bits_max: $max,
            legacy_sequence_numbers: $legacy,
            enhancements: $enhanced,
            security_level: $level,
        }),*];

        impl SecurityPolicy {
            /// All policies, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

policies! {
    None true None None None None
        keys(0 0 0) signature 0 nonce 0 bits(0 0) legacy true enhanced false level 0;
    Basic128Rsa15 true RsaPkcs15Sha1 RsaPkcs15 RsaNonces AesCbcHmacSha1
        keys(16 16 16) signature 20 nonce 16 bits(1024 2048) legacy true enhanced false level 0;
    Basic256 true RsaPkcs15Sha1 RsaOaepSha1 RsaNonces AesCbcHmacSha1
        keys(24 32 16) signature 20 nonce 32 bits(1024 2048) legacy true enhanced false level 0;
    Basic256Sha256 false RsaPkcs15Sha256 RsaOaepSha1 RsaNonces AesCbcHmacSha256
        keys(32 32 16) signature 32 nonce 32 bits(2048 4096) legacy true enhanced false level 3;
    Aes128_Sha256_RsaOaep false RsaPkcs15Sha256 RsaOaepSha1 RsaNonces AesCbcHmacSha256
        keys(32 16 16) signature 32 nonce 32 bits(2048 4096) legacy true enhanced false level 4;
    Aes256_Sha256_RsaPss false RsaPssSha256 RsaOaepSha256 RsaNonces AesCbcHmacSha256
        keys(32 32 16) signature 32 nonce 32 bits(2048 4096) legacy true enhanced false level 5;
    ECC_nistP256 true EcdsaSha256 None NistP256 AesCbcHmacSha256
        keys(32 16 16) signature 32 nonce 64 bits(256 256) legacy false enhanced false level 6;
    ECC_nistP256_AesGcm false EcdsaSha256 None NistP256 AesGcm
        keys(0 16 12) signature 16 nonce 64 bits(256 256) legacy false enhanced true level 8;
    ECC_nistP256_ChaChaPoly false EcdsaSha256 None NistP256 ChaCha20Poly1305
        keys(0 32 12) signature 16 nonce 64 bits(256 256) legacy false enhanced true level 8;
    ECC_nistP384 true EcdsaSha384 None NistP384 AesCbcHmacSha384
        keys(48 32 16) signature 48 nonce 96 bits(384 384) legacy false enhanced false level 7;
    ECC_nistP384_AesGcm false EcdsaSha384 None NistP384 AesGcm
        keys(0 32 12) signature 16 nonce 96 bits(384 384) legacy false enhanced true level 9;
    ECC_nistP384_ChaChaPoly false EcdsaSha384 None NistP384 ChaCha20Poly1305
        keys(0 32 12) signature 16 nonce 96 bits(384 384) legacy false enhanced true level 9;
    ECC_brainpoolP256r1 true EcdsaSha256 None BrainpoolP256r1 AesCbcHmacSha256
        keys(32 16 16) signature 32 nonce 64 bits(256 256) legacy false enhanced false level 6;
    ECC_brainpoolP256r1_AesGcm false EcdsaSha256 None BrainpoolP256r1 AesGcm
        keys(0 16 12) signature 16 nonce 64 bits(256 256) legacy false enhanced true level 8;
    ECC_brainpoolP256r1_ChaChaPoly false EcdsaSha256 None BrainpoolP256r1 ChaCha20Poly1305
        keys(0 32 12) signature 16 nonce 64 bits(256 256) legacy false enhanced true level 8;
    ECC_brainpoolP384r1 true EcdsaSha384 None BrainpoolP384r1 AesCbcHmacSha384
        keys(48 32 16) signature 48 nonce 96 bits(384 384) legacy false enhanced false level 7;
    ECC_brainpoolP384r1_AesGcm false EcdsaSha384 None BrainpoolP384r1 AesGcm
        keys(0 32 12) signature 16 nonce 96 bits(384 384) legacy false enhanced true level 9;
    ECC_brainpoolP384r1_ChaChaPoly false EcdsaSha384 None BrainpoolP384r1 ChaCha20Poly1305
        keys(0 32 12) signature 16 nonce 96 bits(384 384) legacy false enhanced true level 9;
    ECC_curve25519 true Ed25519 None Curve25519 ChaCha20Poly1305
        keys(32 32 12) signature 16 nonce 32 bits(256 256) legacy false enhanced false level 7;
    ECC_curve25519_AesGcm false Ed25519 None Curve25519 AesGcm
        keys(0 16 12) signature 16 nonce 32 bits(256 256) legacy false enhanced true level 8;
    ECC_curve25519_ChaChaPoly false Ed25519 None Curve25519 ChaCha20Poly1305
        keys(0 32 12) signature 16 nonce 32 bits(256 256) legacy false enhanced true level 8;
    ECC_curve448 true Ed448 None Curve448 ChaCha20Poly1305
        keys(32 32 12) signature 16 nonce 56 bits(456 456) legacy false enhanced false level 7;
    ECC_curve448_AesGcm false Ed448 None Curve448 AesGcm
        keys(0 32 12) signature 16 nonce 56 bits(456 456) legacy false enhanced true level 9;
    ECC_curve448_ChaChaPoly false Ed448 None Curve448 ChaCha20Poly1305
        keys(0 32 12) signature 16 nonce 56 bits(456 456) legacy false enhanced true level 9;
    RSA_DH_AesGcm false RsaPkcs15Sha256 None Ffdhe3072 AesGcm
        keys(0 16 12) signature 16 nonce 384 bits(2048 4096) legacy false enhanced true level 6;
    RSA_DH_ChaChaPoly false RsaPkcs15Sha256 None Ffdhe3072 ChaCha20Poly1305
        keys(0 32 12) signature 16 nonce 384 bits(2048 4096) legacy false enhanced true level 6;
}

impl SecurityPolicy {
    /// The policy's row of the table.
    #[must_use]
    pub fn info(self) -> &'static PolicyInfo {
        // The table has one row per policy in the order of the enumeration (ensured by a test); row 0 is None.
        TABLE.get(self as usize).unwrap_or(&TABLE[0])
    }

    /// The policy's URI.
    #[must_use]
    pub fn uri(self) -> &'static str {
        self.info().uri
    }

    /// The part of the URI after `#`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The policy with exactly this URI.
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        TABLE.iter().find(|info| info.uri == uri).map(|info| info.policy)
    }

    /// Whether the policy provides security: all except None.
    #[must_use]
    pub fn is_secure(self) -> bool {
        self != Self::None
    }

    /// Whether the policy is offered only if explicitly configured.
    #[must_use]
    pub fn is_deprecated(self) -> bool {
        self.info().deprecated
    }
}

impl fmt::Display for SecurityPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text is not a security policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a security policy (for example None, Basic256Sha256, Aes256_Sha256_RsaPss)")]
pub struct ParsePolicyError;

impl FromStr for SecurityPolicy {
    type Err = ParsePolicyError;

    /// Parses a URI or a short name; in short names, case, `_` and `-` are ignored.
    fn from_str(text: &str) -> Result<Self, ParsePolicyError> {
        if let Some(policy) = Self::from_uri(text) {
            return Ok(policy);
        }
        let plain = |text: &str| -> String {
            text.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect()
        };
        let wanted = plain(text);
        TABLE.iter().find(|info| plain(info.name) == wanted).map(|info| info.policy).ok_or(ParsePolicyError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_enumeration() {
        for (at, policy) in SecurityPolicy::ALL.iter().enumerate() {
            assert_eq!(*policy as usize, at);
            let info = policy.info();
            assert_eq!(info.policy, *policy);
            assert_eq!(SecurityPolicy::from_uri(info.uri), Some(*policy));
            assert_eq!(info.name.parse(), Ok(*policy));
            assert_eq!(info.name.to_lowercase().replace('_', "-").parse(), Ok(*policy));
            // The two first-generation policies with ChaCha20-Poly1305 have a separate key for mode Sign.
            let signs_apart = matches!(policy, SecurityPolicy::ECC_curve25519 | SecurityPolicy::ECC_curve448);
            let has_one_key = info.signing_key_len == 0 && *policy != SecurityPolicy::None;
            assert_eq!(info.is_aead(), has_one_key || signs_apart);
            assert!(!info.is_aead() || info.iv_len == 12);
            assert!(info.block_len() == 1 || info.iv_len == info.block_len());
        }
        assert!("Basic512".parse::<SecurityPolicy>().is_err());
        assert_eq!(SecurityPolicy::from_uri("http://opcfoundation.org/UA/SecurityPolicy#none"), None);
    }

    #[test]
    fn broken_policies_are_marked() {
        for policy in [SecurityPolicy::Basic128Rsa15, SecurityPolicy::Basic256, SecurityPolicy::None] {
            assert!(policy.is_deprecated());
            assert_eq!(policy.info().security_level, 0);
        }
        assert!(!SecurityPolicy::Basic256Sha256.is_deprecated());
    }
}
