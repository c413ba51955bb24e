//! The public keys of an authorization service, read from files.

use super::TokenAlgorithm;
use crate::file;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use taktwerk_crypto::certificate::{Certificate, KeyKind, Malformed, read_public_key};
use taktwerk_pki::permissions::{self, Protection};

/// Largest file, in bytes.
const FILE_LEN_MAX: u64 = 1 << 20;
/// Maximum number of keys. A token without a key id is tried with every matching key.
const KEYS_MAX: usize = 16;
/// Shortest RSA modulus, in bits.
const RSA_BITS_MIN: u16 = 2048;
/// Longest RSA modulus, in bits. Longer ones would take too much time per token.
const RSA_BITS_MAX: u16 = 8192;

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The content of the file is invalid.
    #[error("{}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// No file contains a usable key.
    #[error("there is no public key to check tokens with: name the key set of the authorization service")]
    None,
    /// There are more than [`KEYS_MAX`] keys.
    #[error("there are more than {KEYS_MAX} keys")]
    TooMany,
}

/// Public keys for the signatures of tokens.
#[derive(Debug, Default)]
pub struct TokenKeys {
    keys: Vec<TokenKey>,
}

#[derive(Debug)]
struct TokenKey {
    id: Option<String>,
    algorithms: Vec<TokenAlgorithm>,
    key: DecodingKey,
}

/// A JSON Web Key Set (RFC 7517 §5).
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<JsonKey>,
}

/// A JSON Web Key (RFC 7517 §4). Unused fields are ignored, and a set may contain other kinds of keys.
#[derive(Deserialize)]
struct JsonKey {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl TokenKeys {
    /// Reads files: JSON Web Key Sets, or PEM with public keys or certificates.
    ///
    /// # Errors
    /// [`KeysError`]
    pub fn load(files: &[PathBuf]) -> Result<Self, KeysError> {
        let mut keys = Self::default();
        for path in files {
            let text = permissions::check(path, Protection::Write)
                .and_then(|()| file::read_text(path, FILE_LEN_MAX))
                .map_err(|source| KeysError::File { path: path.clone(), source })?;
            keys.add(path, &text)?;
        }
        keys.checked()
    }

    /// Parses the text of one file; `path` is for messages.
    ///
    /// # Errors
    /// [`KeysError`]
    pub fn parse(path: &Path, text: &str) -> Result<Self, KeysError> {
        let mut keys = Self::default();
        keys.add(path, text)?;
        keys.checked()
    }

    fn checked(self) -> Result<Self, KeysError> {
        match self.keys.len() {
            0 => Err(KeysError::None),
            1..=KEYS_MAX => Ok(self),
            _ => Err(KeysError::TooMany),
        }
    }

    fn add(&mut self, path: &Path, text: &str) -> Result<(), KeysError> {
        let wrong = |problem: String| KeysError::Content { path: path.to_owned(), problem };
        if text.trim_start().starts_with('{') {
            let set: KeySet = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
            for key in &set.keys {
                // Skips keys for encryption and unsupported kinds.
                self.keys.extend(json_key(key).map_err(wrong)?);
            }
            return Ok(());
        }
        let blocks = pem::parse_many(text).map_err(|error| wrong(error.to_string()))?;
        if blocks.is_empty() {
            return Err(wrong("this is neither a JSON Web Key Set nor PEM".to_owned()));
        }
        for block in &blocks {
            let malformed = |error: Malformed| wrong(error.to_string());
            let key = match block.tag() {
                "PUBLIC KEY" => {
                    let (kind, bytes) = read_public_key(block.contents()).map_err(malformed)?;
                    public_key(kind, bytes)
                }
                "CERTIFICATE" => {
                    let certificate = Certificate::from_der(block.contents()).map_err(malformed)?;
                    public_key(certificate.key(), certificate.public_key())
                }
                tag if tag.contains("PRIVATE") => {
                    return Err(wrong(
                        "this is a private key, which belongs to the authorization service alone; name a file with its public key"
                            .to_owned(),
                    ));
                }
                tag => return Err(wrong(format!("{tag} is not a public key"))),
            };
            self.keys.push(key.map_err(wrong)?);
        }
        Ok(())
    }

    /// The keys that may have signed a token with this algorithm and key id. A key without an id matches every id.
    pub(super) fn fitting<'a>(
        &'a self,
        algorithm: TokenAlgorithm,
        id: Option<&'a str>,
    ) -> impl Iterator<Item = &'a DecodingKey> {
        let named = move |key: &&TokenKey| match (&key.id, id) {
            (Some(known), Some(wanted)) => known == wanted,
            _ => true,
        };
        let fits = move |key: &&TokenKey| key.algorithms.contains(&algorithm);
        self.keys.iter().filter(fits).filter(named).map(|key| &key.key)
    }
}

use TokenAlgorithm as A;

const RSA: [A; 6] = [A::Ps256, A::Ps384, A::Ps512, A::Rs256, A::Rs384, A::Rs512];

fn public_key(kind: KeyKind, bytes: &[u8]) -> Result<TokenKey, String> {
    let (algorithms, key) = match kind {
        KeyKind::Rsa { bits: RSA_BITS_MIN..=RSA_BITS_MAX } => {
            (RSA.to_vec(), DecodingKey::from_rsa_der(bytes))
        }
        KeyKind::Rsa { bits } => {
            return Err(format!(
                "an RSA key has {bits} bits; supported are {RSA_BITS_MIN} to {RSA_BITS_MAX}"
            ));
        }
        KeyKind::NistP256 => (vec![A::Es256], DecodingKey::from_ec_der(bytes)),
        KeyKind::NistP384 => (vec![A::Es384], DecodingKey::from_ec_der(bytes)),
        KeyKind::Ed25519 => (vec![A::EdDsa], DecodingKey::from_ed_der(bytes)),
        other => return Err(format!("tokens cannot be checked with a key of this kind ({other})")),
    };
    Ok(TokenKey { id: None, algorithms, key })
}

/// Converts a key of a set; `None` if it is not for supported signatures.
fn json_key(key: &JsonKey) -> Result<Option<TokenKey>, String> {
    if key.usage.as_deref().is_some_and(|usage| usage != "sig") {
        return Ok(None);
    }
    let field = |name: &str, value: &Option<String>| {
        let bytes = value.as_deref().and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        bytes.filter(|bytes| !bytes.is_empty()).ok_or_else(|| {
            format!("the key {:?} has no usable {name:?}", key.kid.as_deref().unwrap_or_default())
        })
    };
    let (mut algorithms, decoding) = match (key.kty.as_str(), key.crv.as_deref()) {
        ("RSA", _) => {
            let (modulus, exponent) = (field("n", &key.n)?, field("e", &key.e)?);
            let bits = modulus.len() * 8;
            if !(usize::from(RSA_BITS_MIN)..=usize::from(RSA_BITS_MAX)).contains(&bits) {
                return Err(format!(
                    "an RSA key has {bits} bits; {RSA_BITS_MIN} to {RSA_BITS_MAX} are supported"
                ));
            }
            (RSA.to_vec(), DecodingKey::from_rsa_raw_components(&modulus, &exponent))
        }
        ("EC", Some(curve @ ("P-256" | "P-384"))) => {
            let (len, algorithm) = if curve == "P-256" { (32, A::Es256) } else { (48, A::Es384) };
            let (x, y) = (field("x", &key.x)?, field("y", &key.y)?);
            if x.len() != len || y.len() != len {
                return Err(format!("a key on {curve} has coordinates of {len} bytes"));
            }
            let point = [&[4][..], &x, &y].concat();
            (vec![algorithm], DecodingKey::from_ec_der(&point))
        }
        ("OKP", Some("Ed25519")) => {
            let x = field("x", &key.x)?;
            (vec![A::EdDsa], DecodingKey::from_ed_der(&x))
        }
        // Including shared secrets.
        _ => return Ok(None),
    };
    if let Some(only) = key.alg.as_deref() {
        algorithms.retain(|algorithm| A::ALL.contains(&(only, *algorithm)));
    }
    let id = key.kid.clone();
    Ok((!algorithms.is_empty()).then_some(TokenKey { id, algorithms, key: decoding }))
}
