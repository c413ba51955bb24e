//! The public key of a certificate, located without interpreting the rest.
//!
//! The validator decides whether the certificate is trusted; this module only extracts the key.

use crate::CryptoError;
use crate::der::{self, Reader};
use taktwerk_types::StatusCode;

/// The kind of a certificate's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// RSA.
    Rsa {
        /// Length of the modulus in bits.
        bits: u16,
    },
    /// ECDSA on NIST P-256.
    NistP256,
    /// ECDSA on NIST P-384.
    NistP384,
    /// EdDSA on Curve25519.
    Ed25519,
}

/// A certificate's SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
#[derive(Debug, Clone, Copy)]
pub(super) struct PublicKeyInfo<'a> {
    pub(super) kind: KeyKind,
    /// The whole DER structure.
    pub(super) der: &'a [u8],
    /// The content of its bit string: an RSAPublicKey, a point, or the 32 bytes of an Ed25519 key.
    pub(super) key: &'a [u8],
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const VERSION: u8 = 0xa0;

const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const SECP384R1: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

impl<'a> PublicKeyInfo<'a> {
    /// The key of the first certificate of a chain.
    pub(super) fn of_certificate(chain: &'a [u8]) -> Result<Self, CryptoError> {
        Self::find(der::leaf(chain)).ok_or_else(|| {
            CryptoError::certificate(
                StatusCode::BAD_CERTIFICATE_INVALID,
                "it has no valid RSA, P-256, P-384 or Ed25519 key",
            )
        })
    }

    fn find(certificate: &'a [u8]) -> Option<Self> {
        let certificate = Reader(certificate).content(SEQUENCE)?;
        let mut fields = Reader(Reader(certificate).content(SEQUENCE)?);
        // version, serialNumber, signature, issuer, validity, subject
        let (tag, ..) = fields.next()?;
        if tag == VERSION {
            fields.content(INTEGER)?;
        }
        for _ in 0..4 {
            fields.content(SEQUENCE)?;
        }
        let (tag, der, _) = fields.next()?;
        (tag == SEQUENCE).then_some(())?;
        Self::parse(der)
    }

    /// Parses a SubjectPublicKeyInfo.
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let mut info = Reader(Reader(der).content(SEQUENCE)?);
        let mut algorithm = Reader(info.content(SEQUENCE)?);
        let oid = algorithm.content(OBJECT_IDENTIFIER)?;
        let (&unused, key) = info.content(BIT_STRING)?.split_first()?;
        (unused == 0).then_some(())?;
        let kind = match oid {
            RSA_ENCRYPTION => KeyKind::Rsa { bits: modulus_bits(key)? },
            EC_PUBLIC_KEY => match algorithm.content(OBJECT_IDENTIFIER)? {
                PRIME256V1 => KeyKind::NistP256,
                SECP384R1 => KeyKind::NistP384,
                _ => return None,
            },
            ED25519 => KeyKind::Ed25519,
            _ => return None,
        };
        Some(Self { kind, der, key })
    }
}

/// Length of the modulus of an RSAPublicKey in bits.
fn modulus_bits(key: &[u8]) -> Option<u16> {
    let modulus = Reader(Reader(key).content(SEQUENCE)?).content(INTEGER)?;
    let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
    let zeros = modulus.first()?.leading_zeros() as usize;
    u16::try_from(modulus.len() * 8 - zeros).ok()
}
