//! Private keys: creates them, reads the usual encodings, stores PKCS#8.

use crate::content::{self, ContentError};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair,
};
use core::fmt;
use core::str::FromStr;
use taktwerk_crypto::SecurityPolicy;
use taktwerk_crypto::certificate::{Certificate, KeyKind};
use taktwerk_crypto::policy::KeyExchange;
use zeroize::Zeroizing;

/// A private key.
pub struct PrivateKey {
    pkcs8: Zeroizing<Vec<u8>>,
    public: Vec<u8>,
    kind: KeyKind,
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The kinds of key that can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
#[allow(missing_docs)] // the names say it
pub enum NewKey {
    #[default]
    Rsa2048,
    Rsa3072,
    Rsa4096,
    NistP256,
    NistP384,
    Ed25519,
}

impl NewKey {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Rsa2048, Self::Rsa3072, Self::Rsa4096, Self::NistP256, Self::NistP384, Self::Ed25519];

    /// The smallest key whose certificate serves a policy; `None` if no such key can be created.
    #[must_use]
    pub fn for_policy(policy: SecurityPolicy) -> Option<Self> {
        match policy.info().key_exchange {
            KeyExchange::RsaNonces | KeyExchange::Ffdhe3072 => Some(Self::Rsa2048),
            KeyExchange::NistP256 => Some(Self::NistP256),
            KeyExchange::NistP384 => Some(Self::NistP384),
            KeyExchange::Curve25519 => Some(Self::Ed25519),
            _ => None,
        }
    }

    /// The kind of key that replaces a key: the same kind, for RSA the next longer one if needed; `None` if no such key can be
    /// created.
    #[must_use]
    pub const fn like(found: KeyKind) -> Option<Self> {
        match found {
            KeyKind::Rsa { bits: ..=2048 } => Some(Self::Rsa2048),
            KeyKind::Rsa { bits: ..=3072 } => Some(Self::Rsa3072),
            KeyKind::Rsa { .. } => Some(Self::Rsa4096),
            KeyKind::NistP256 => Some(Self::NistP256),
            KeyKind::NistP384 => Some(Self::NistP384),
            KeyKind::Ed25519 => Some(Self::Ed25519),
            _ => None,
        }
    }

    /// Whether a key serves the same policies as a new one of this kind: RSA of any length, or the same curve.
    #[must_use]
    pub const fn serves_as(self, found: KeyKind) -> bool {
        match self {
            Self::NistP256 => matches!(found, KeyKind::NistP256),
            Self::NistP384 => matches!(found, KeyKind::NistP384),
            Self::Ed25519 => matches!(found, KeyKind::Ed25519),
            Self::Rsa2048 | Self::Rsa3072 | Self::Rsa4096 => matches!(found, KeyKind::Rsa { .. }),
        }
    }

    /// The name as [`FromStr`] reads it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rsa2048 => "rsa2048",
            Self::Rsa3072 => "rsa3072",
            Self::Rsa4096 => "rsa4096",
            Self::NistP256 => "p256",
            Self::NistP384 => "p384",
            Self::Ed25519 => "ed25519",
        }
    }
}

impl fmt::Display for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for NewKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|key| key.name().eq_ignore_ascii_case(text)).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|key| key.name()).collect();
            format!("not a kind of key; there are {}", names.join(", "))
        })
    }
}

const FAILED: ContentError = ContentError::Key("the cryptographic library could not make it");

impl PrivateKey {
    /// Creates a key.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn generate(kind: NewKey) -> Result<Self, ContentError> {
        let rsa = |size| {
            let pair = rsa::KeyPair::generate(size).map_err(|_| FAILED)?;
            Self::of_rsa(&pair)
        };
        let ecdsa = |algorithm, kind| {
            let pair = EcdsaKeyPair::generate(algorithm).map_err(|_| FAILED)?;
            Self::of_ecdsa(&pair, kind)
        };
        match kind {
            NewKey::Rsa2048 => rsa(rsa::KeySize::Rsa2048),
            NewKey::Rsa3072 => rsa(rsa::KeySize::Rsa3072),
            NewKey::Rsa4096 => rsa(rsa::KeySize::Rsa4096),
            NewKey::NistP256 => ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING, KeyKind::NistP256),
            NewKey::NistP384 => ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING, KeyKind::NistP384),
            NewKey::Ed25519 => Self::of_ed25519(&Ed25519KeyPair::generate().map_err(|_| FAILED)?),
        }
    }

    /// Reads a key from the bytes of a file: PEM or DER; PKCS#8, PKCS#1 or SEC 1.
    ///
    /// # Errors
    /// [`ContentError`] if there is no key, or an unsupported one.
    pub fn read(bytes: &[u8]) -> Result<Self, ContentError> {
        let der = content::private_key(bytes)?;
        if let Ok(pair) = rsa::KeyPair::from_pkcs8(&der).or_else(|_| rsa::KeyPair::from_der(&der)) {
            return Self::of_rsa(&pair);
        }
        let curves: [(&'static EcdsaSigningAlgorithm, KeyKind); 2] = [
            (&ECDSA_P256_SHA256_ASN1_SIGNING, KeyKind::NistP256),
            (&ECDSA_P384_SHA384_ASN1_SIGNING, KeyKind::NistP384),
        ];
        for (algorithm, kind) in curves {
            if let Ok(pair) = EcdsaKeyPair::from_private_key_der(algorithm, &der) {
                return Self::of_ecdsa(&pair, kind);
            }
        }
        match Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der) {
            Ok(pair) => Self::of_ed25519(&pair),
            Err(_) => Err(ContentError::Key("RSA from 2048 bits, P-256, P-384 and Ed25519 can")),
        }
    }

    fn of_rsa(pair: &rsa::KeyPair) -> Result<Self, ContentError> {
        let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().map_err(|_| FAILED)?;
        let bits = u16::try_from(pair.public_modulus_len() * 8).map_err(|_| FAILED)?;
        let public = pair.public_key().as_ref().to_vec();
        Ok(Self { pkcs8: Zeroizing::new(der.as_ref().to_vec()), public, kind: KeyKind::Rsa { bits } })
    }

    fn of_ecdsa(pair: &EcdsaKeyPair, kind: KeyKind) -> Result<Self, ContentError> {
        let der = pair.to_pkcs8v1().map_err(|_| FAILED)?;
        let public = pair.public_key().as_ref().to_vec();
        Ok(Self { pkcs8: Zeroizing::new(der.as_ref().to_vec()), public, kind })
    }

    fn of_ed25519(pair: &Ed25519KeyPair) -> Result<Self, ContentError> {
        let der = pair.to_pkcs8v1().map_err(|_| FAILED)?;
        let public = pair.public_key().as_ref().to_vec();
        Ok(Self { pkcs8: Zeroizing::new(der.as_ref().to_vec()), public, kind: KeyKind::Ed25519 })
    }

    /// The kind of key.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The key in PKCS#8 DER. Keep it secret: with it others can impersonate this application.
    #[must_use]
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The key in PKCS#8 PEM.
    #[must_use]
    pub fn pem(&self) -> Zeroizing<String> {
        Zeroizing::new(pem::encode(&pem::Pem::new("PRIVATE KEY", self.pkcs8.as_slice())))
    }

    /// Whether this is the key of a certificate.
    #[must_use]
    pub fn belongs_to(&self, certificate: &Certificate) -> bool {
        self.kind == certificate.key() && self.public == certificate.public_key()
    }

    /// The key for `rcgen`, which signs certificates and requests with it.
    pub(crate) fn signer(&self) -> Result<rcgen::KeyPair, rcgen::Error> {
        let algorithm = match self.kind {
            KeyKind::NistP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            KeyKind::NistP384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            KeyKind::Ed25519 => &rcgen::PKCS_ED25519,
            _ => &rcgen::PKCS_RSA_SHA256,
        };
        let der = self.pkcs8.as_slice().into();
        rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&der, algorithm)
    }
}
