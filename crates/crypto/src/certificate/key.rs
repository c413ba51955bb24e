//! Public keys and signature algorithms of certificates.

use super::reader::{Item, Items, Malformed, context};
use core::fmt;
use der::Tag;
use der::asn1::ObjectIdentifier;

/// The kind of a public key, with its size if the kind does not determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // the names say it
pub enum KeyKind {
    Rsa {
        /// Bits of the modulus.
        bits: u16,
    },
    NistP256,
    NistP384,
    BrainpoolP256r1,
    BrainpoolP384r1,
    Ed25519,
    Ed448,
    /// A kind that no security policy uses.
    Unknown,
}

impl KeyKind {
    /// Key length as the policies define it (MinAsymmetricKeyLength); 0 if the kind is unknown.
    #[must_use]
    pub const fn bits(self) -> u16 {
        match self {
            Self::Rsa { bits } => bits,
            Self::NistP256 | Self::BrainpoolP256r1 | Self::Ed25519 => 256,
            Self::NistP384 | Self::BrainpoolP384r1 => 384,
            Self::Ed448 => 456,
            Self::Unknown => 0,
        }
    }

    /// Whether this is an RSA key.
    #[must_use]
    pub const fn is_rsa(self) -> bool {
        matches!(self, Self::Rsa { .. })
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa { bits } => write!(f, "RSA {bits}"),
            Self::NistP256 => f.write_str("NIST P-256"),
            Self::NistP384 => f.write_str("NIST P-384"),
            Self::BrainpoolP256r1 => f.write_str("brainpoolP256r1"),
            Self::BrainpoolP384r1 => f.write_str("brainpoolP384r1"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Ed448 => f.write_str("Ed448"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The hash of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the names say it
pub enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
        })
    }
}

/// The signature algorithm of a certificate, revocation list or request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // the names say it
pub enum SignatureAlgorithm {
    RsaPkcs15(Hash),
    RsaPss(Hash),
    Ecdsa(Hash),
    Ed25519,
    Ed448,
    /// MD5, DSA, or any other algorithm.
    Unknown,
}

impl SignatureAlgorithm {
    /// The hash; `None` if the algorithm implies it or is unknown.
    #[must_use]
    pub const fn hash(self) -> Option<Hash> {
        match self {
            Self::RsaPkcs15(hash) | Self::RsaPss(hash) | Self::Ecdsa(hash) => Some(hash),
            Self::Ed25519 | Self::Ed448 | Self::Unknown => None,
        }
    }
}

impl fmt::Display for SignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RsaPkcs15(hash) => write!(f, "RSA PKCS#1 v1.5 with {hash}"),
            Self::RsaPss(hash) => write!(f, "RSA PSS with {hash}"),
            Self::Ecdsa(hash) => write!(f, "ECDSA with {hash}"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Ed448 => f.write_str("Ed448"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

const RSA: ObjectIdentifier = oid("1.2.840.113549.1.1.1");
const RSA_SHA1: ObjectIdentifier = oid("1.2.840.113549.1.1.5");
const RSA_PSS: ObjectIdentifier = oid("1.2.840.113549.1.1.10");
const RSA_SHA256: ObjectIdentifier = oid("1.2.840.113549.1.1.11");
const RSA_SHA384: ObjectIdentifier = oid("1.2.840.113549.1.1.12");
const RSA_SHA512: ObjectIdentifier = oid("1.2.840.113549.1.1.13");
const MGF1: ObjectIdentifier = oid("1.2.840.113549.1.1.8");
const EC: ObjectIdentifier = oid("1.2.840.10045.2.1");
const P256: ObjectIdentifier = oid("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = oid("1.3.132.0.34");
const BRAINPOOL_P256: ObjectIdentifier = oid("1.3.36.3.3.2.8.1.1.7");
const BRAINPOOL_P384: ObjectIdentifier = oid("1.3.36.3.3.2.8.1.1.11");
const ECDSA_SHA256: ObjectIdentifier = oid("1.2.840.10045.4.3.2");
const ECDSA_SHA384: ObjectIdentifier = oid("1.2.840.10045.4.3.3");
const ECDSA_SHA512: ObjectIdentifier = oid("1.2.840.10045.4.3.4");
const ED25519: ObjectIdentifier = oid("1.3.101.112");
const ED448: ObjectIdentifier = oid("1.3.101.113");
const SHA1: ObjectIdentifier = oid("1.3.14.3.2.26");
const SHA256: ObjectIdentifier = oid("2.16.840.1.101.3.4.2.1");
const SHA384: ObjectIdentifier = oid("2.16.840.1.101.3.4.2.2");
const SHA512: ObjectIdentifier = oid("2.16.840.1.101.3.4.2.3");

/// Parses the AlgorithmIdentifier of a signature.
pub(super) fn signature_algorithm(item: &Item<'_>) -> Result<SignatureAlgorithm, Malformed> {
    const WHAT: &str = "signature algorithm";
    let mut items = item.items(WHAT)?;
    let name = items.tagged(Tag::ObjectIdentifier, WHAT)?.oid(WHAT)?;
    let parameters = if items.is_finished() { None } else { Some(items.next(WHAT)?) };
    items.finish(WHAT)?;
    Ok(match name {
        RSA_SHA1 => SignatureAlgorithm::RsaPkcs15(Hash::Sha1),
        RSA_SHA256 => SignatureAlgorithm::RsaPkcs15(Hash::Sha256),
        RSA_SHA384 => SignatureAlgorithm::RsaPkcs15(Hash::Sha384),
        RSA_SHA512 => SignatureAlgorithm::RsaPkcs15(Hash::Sha512),
        RSA_PSS => match parameters {
            Some(parameters) => pss(&parameters)?,
            None => SignatureAlgorithm::Unknown,
        },
        ECDSA_SHA256 => SignatureAlgorithm::Ecdsa(Hash::Sha256),
        ECDSA_SHA384 => SignatureAlgorithm::Ecdsa(Hash::Sha384),
        ECDSA_SHA512 => SignatureAlgorithm::Ecdsa(Hash::Sha512),
        ED25519 => SignatureAlgorithm::Ed25519,
        ED448 => SignatureAlgorithm::Ed448,
        _ => SignatureAlgorithm::Unknown,
    })
}

/// RSASSA-PSS parameters (RFC 4055 §3.1). Only the usual form is supported: MGF1 with the same hash.
fn pss(parameters: &Item<'_>) -> Result<SignatureAlgorithm, Malformed> {
    const WHAT: &str = "PSS parameters";
    let mut items = parameters.items(WHAT)?;
    let (mut hash, mut mask_hash) = (SHA1, SHA1);
    fn first_oid<'a>(item: &Item<'a>) -> Result<(ObjectIdentifier, Items<'a>), Malformed> {
        let mut items = item.items(WHAT)?;
        let name = items.tagged(Tag::ObjectIdentifier, WHAT)?.oid(WHAT)?;
        Ok((name, items))
    }
    if let Some(item) = items.optional(context(0, true), WHAT)? {
        hash = first_oid(&item.items(WHAT)?.tagged(Tag::Sequence, WHAT)?)?.0;
    }
    if let Some(item) = items.optional(context(1, true), WHAT)? {
        let (name, mut rest) = first_oid(&item.items(WHAT)?.tagged(Tag::Sequence, WHAT)?)?;
        if name != MGF1 {
            return Ok(SignatureAlgorithm::Unknown);
        }
        mask_hash = first_oid(&rest.tagged(Tag::Sequence, WHAT)?)?.0;
    }
    let known = match hash {
        _ if hash != mask_hash => return Ok(SignatureAlgorithm::Unknown),
        SHA1 => Hash::Sha1,
        SHA256 => Hash::Sha256,
        SHA384 => Hash::Sha384,
        SHA512 => Hash::Sha512,
        _ => return Ok(SignatureAlgorithm::Unknown),
    };
    Ok(SignatureAlgorithm::RsaPss(known))
}

/// Parses a SubjectPublicKeyInfo: the kind, and the position of the key (the content of the bit string).
pub(super) fn public_key(info: &Item<'_>) -> Result<(KeyKind, core::ops::Range<usize>), Malformed> {
    const WHAT: &str = "public key";
    let mut items = info.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
    let mut algorithm = items.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
    let name = algorithm.tagged(Tag::ObjectIdentifier, WHAT)?.oid(WHAT)?;
    let parameters = if algorithm.is_finished() { None } else { Some(algorithm.next(WHAT)?) };
    algorithm.finish(WHAT)?;
    let item = items.tagged(Tag::BitString, WHAT)?;
    items.finish(WHAT)?;
    let bytes = item.whole_bits(WHAT)?;
    let end = item.at + item.raw.len();
    let range = end - bytes.len()..end;
    let kind = match name {
        RSA => KeyKind::Rsa { bits: modulus_bits(bytes)? },
        EC => match parameters.filter(|item| item.tag == Tag::ObjectIdentifier) {
            Some(curve) => match curve.oid(WHAT)? {
                P256 => KeyKind::NistP256,
                P384 => KeyKind::NistP384,
                BRAINPOOL_P256 => KeyKind::BrainpoolP256r1,
                BRAINPOOL_P384 => KeyKind::BrainpoolP384r1,
                _ => KeyKind::Unknown,
            },
            // Explicit curve parameters are refused: they have been used for attacks (CVE-2020-0601).
            None => KeyKind::Unknown,
        },
        ED25519 => KeyKind::Ed25519,
        ED448 => KeyKind::Ed448,
        _ => KeyKind::Unknown,
    };
    Ok((kind, range))
}

/// Parses a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7), the content of a PEM `PUBLIC KEY`: its kind, and the key itself,
/// an RSAPublicKey or a point.
///
/// # Errors
/// [`Malformed`]
pub fn read_public_key(info: &[u8]) -> Result<(KeyKind, &[u8]), Malformed> {
    const WHAT: &str = "public key";
    let (kind, range) = public_key(&Item::only(info, WHAT)?)?;
    Ok((kind, info.get(range).unwrap_or_default()))
}

/// Longer keys are refused, because using them costs too much time.
const MODULUS_BITS_MAX: usize = 16_384;

fn modulus_bits(key: &[u8]) -> Result<u16, Malformed> {
    const WHAT: &str = "RSA key";
    let mut items = Item::only(key, WHAT)?.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
    let item = items.tagged(Tag::Integer, WHAT)?;
    let modulus = item.unsigned(WHAT)?;
    let exponent = items.tagged(Tag::Integer, WHAT)?.unsigned(WHAT)?;
    items.finish(WHAT)?;
    let fault = Malformed { what: WHAT, at: item.at };
    let first = modulus.first().copied().filter(|byte| *byte != 0).ok_or(fault)?;
    let bits = modulus.len() * 8 - first.leading_zeros() as usize;
    let is_odd = |bytes: &[u8]| bytes.last().is_some_and(|byte| byte & 1 == 1);
    if bits > MODULUS_BITS_MAX || !is_odd(modulus) || !is_odd(exponent) || exponent == [1] {
        return Err(fault);
    }
    u16::try_from(bits).map_err(|_| fault)
}
