//! Reads the bytes of a file: PEM or DER, what is wrong with them, and the private key in them.

use taktwerk_crypto::certificate::{ChainError, Malformed};
use zeroize::Zeroizing;

/// Why the content of a file is not what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The PEM text is broken.
    #[error("the PEM text is broken: {0}")]
    Pem(String),
    /// The file is something else. The text says what, and what to do.
    #[error("this file holds no certificate: {0}")]
    Foreign(&'static str),
    /// The PEM text has no block of the expected kind.
    #[error("the PEM text contains no {0}")]
    Absent(&'static str),
    /// The certificate chain is malformed.
    #[error("{0}")]
    Chain(#[from] ChainError),
    /// The content is malformed.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// The private key is encrypted.
    #[error("the private key is encrypted; decrypt it with: openssl pkey -in FILE -out PLAIN")]
    Encrypted,
    /// The file is a PKCS#12 archive.
    #[error(
        "this is a PKCS#12 file; unpack it with: openssl pkcs12 -in FILE -nodes -out PLAIN.pem, \
         and import PLAIN.pem"
    )]
    Pkcs12,
    /// The private key has an unsupported kind or size.
    #[error("the private key cannot be used: {0}")]
    Key(&'static str),
}

/// The start of PEM armour.
const ARMOUR: &[u8] = b"-----BEGIN ";

pub(crate) fn is_pem(bytes: &[u8]) -> bool {
    // Tools write text before the first block, so search the whole file.
    bytes.windows(ARMOUR.len()).any(|window| window == ARMOUR)
}

pub(crate) fn blocks(bytes: &[u8]) -> Result<Vec<pem::Pem>, ContentError> {
    pem::parse_many(bytes).map_err(|error| ContentError::Pem(error.to_string()))
}

/// The DER of the private key in a file (PKCS#8, PKCS#1 or SEC 1).
pub(crate) fn private_key(bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, ContentError> {
    if !is_pem(bytes) {
        return if is_pkcs12(bytes) { Err(ContentError::Pkcs12) } else { Ok(Zeroizing::new(bytes.to_vec())) };
    }
    let mut encrypted = false;
    for block in blocks(bytes)? {
        let is_encrypted =
            block.tag() == "ENCRYPTED PRIVATE KEY" || block.headers().get("DEK-Info").is_some();
        match block.tag() {
            _ if is_encrypted => encrypted = true,
            "PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY" => {
                return Ok(Zeroizing::new(block.into_contents()));
            }
            _ => {}
        }
    }
    Err(if encrypted { ContentError::Encrypted } else { ContentError::Absent("private key") })
}

/// Whether a file contains a private key, possibly among other blocks.
pub(crate) fn holds_private_key(bytes: &[u8]) -> bool {
    is_pem(bytes) && !matches!(private_key(bytes), Err(ContentError::Absent(_) | ContentError::Pem(_)))
}

/// PFX begins with version 3 (RFC 7292 §4), certificates and keys do not.
pub(crate) fn is_pkcs12(bytes: &[u8]) -> bool {
    let behind_header = match bytes {
        [0x30, 0x80..=0x84, rest @ ..] => rest.get(usize::from(bytes.get(1).map_or(0, |len| len & 0x7f))..),
        [0x30, _, rest @ ..] => Some(rest),
        _ => None,
    };
    behind_header.is_some_and(|rest| rest.starts_with(&[2, 1, 3, 0x30]))
}
