//! Access tokens of an authorization service: JSON Web Tokens (Part 6 §6.5.2, RFC 7519).
//!
//! Only public-key signatures are accepted: anyone who can check a token with a shared secret can also create one. Keys
//! come from files, never from the token. A key is used only with algorithms of its own kind.
//!
//! - `keys`: key files; `claims`: the content of a signed token; [`TokenAuthority`]: checks tokens; [`JwtVerifier`]:
//!   lets users log on with them.

mod claims;
mod keys;
#[cfg(test)]
mod tests;

pub use claims::TokenUser;
pub use keys::{KeysError, TokenKeys};

use arc_swap::ArcSwap;
use core::time::Duration;
use jsonwebtoken::{Algorithm, Validation};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use taktwerk_server::identity::{Accepted, Credential, IdentityVerifier, Verdict, Verification};
use taktwerk_types::{StatusCode, UtcTime};

/// Longest token, in bytes. The server accepts no longer ones either.
pub const TOKEN_LEN_MAX: usize = 16 << 10;

/// A signature algorithm of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // RFC 7518 §3.1 and RFC 8037 name them
pub enum TokenAlgorithm {
    Es256,
    Es384,
    EdDsa,
    Ps256,
    Ps384,
    Ps512,
    Rs256,
    Rs384,
    Rs512,
}

impl TokenAlgorithm {
    /// All supported algorithms with their names.
    pub const ALL: [(&'static str, Self); 9] = [
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
    ];

    const fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::ES256 => Self::Es256,
            Algorithm::ES384 => Self::Es384,
            Algorithm::EdDSA => Self::EdDsa,
            Algorithm::PS256 => Self::Ps256,
            Algorithm::PS384 => Self::Ps384,
            Algorithm::PS512 => Self::Ps512,
            Algorithm::RS256 => Self::Rs256,
            Algorithm::RS384 => Self::Rs384,
            Algorithm::RS512 => Self::Rs512,
            _ => return None,
        })
    }
}

/// Requirements on tokens.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JwtSettings {
    /// The issuer (`iss`).
    pub issuer: String,
    /// The audience (`aud`). Default: the server's ApplicationUri.
    pub audience: String,
    /// The allowed algorithms. Default: all supported ones.
    pub algorithms: Vec<TokenAlgorithm>,
    /// Allowed difference of the clocks. Default: 30 s.
    pub leeway: Duration,
    /// The claim with the roles: its name, or a path with dots if it is inside other objects. Default: `roles`.
    pub roles_claim: String,
    /// The claim with the groups. Default: `groups`.
    pub groups_claim: String,
}

impl JwtSettings {
    /// Settings for an issuer and an audience.
    #[must_use]
    pub fn new(issuer: &str, audience: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            algorithms: TokenAlgorithm::ALL.iter().map(|(_, algorithm)| *algorithm).collect(),
            leeway: Duration::from_secs(30),
            roles_claim: "roles".to_owned(),
            groups_claim: "groups".to_owned(),
        }
    }
}

/// Why a token is refused. For the log only: clients get the same status in every case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// The token is too long.
    #[error("it is longer than {TOKEN_LEN_MAX} bytes")]
    TooLong,
    /// The token is not a signed JSON Web Token.
    #[error("it is not a signed JSON Web Token")]
    Malformed,
    /// The algorithm is not allowed, or the token is not signed.
    #[error("its algorithm is not allowed")]
    Algorithm,
    /// The token requires an unsupported extension (`crit`).
    #[error("it requires unsupported extensions (crit)")]
    Critical,
    /// No key matches the token.
    #[error("no key matches its algorithm and key id")]
    NoKey,
    /// No known key has made the signature.
    #[error("its signature is invalid")]
    Signature,
    /// A claim is missing or invalid.
    #[error("its claim {0:?} is missing or invalid")]
    Claim(&'static str),
    /// The token has another issuer.
    #[error("it has another issuer")]
    Issuer,
    /// The token has another audience.
    #[error("it has another audience")]
    Audience,
    /// The token has expired.
    #[error("it has expired")]
    Expired,
    /// The token is not valid yet (`nbf`).
    #[error("it is not valid yet")]
    NotYet,
}

/// A trusted authorization service.
#[derive(Debug)]
pub struct TokenAuthority {
    settings: JwtSettings,
    files: Vec<PathBuf>,
    keys: ArcSwap<TokenKeys>,
    /// Modification times of the files when they were last read.
    read: Mutex<Vec<Option<SystemTime>>>,
}

impl TokenAuthority {
    /// Checks tokens with the given keys.
    #[must_use]
    pub fn new(settings: JwtSettings, keys: TokenKeys) -> Self {
        Self { settings, files: Vec::new(), keys: ArcSwap::from_pointee(keys), read: Mutex::default() }
    }

    /// Checks tokens with the keys in files: JSON Web Key Sets, or PEM with public keys or certificates.
    ///
    /// # Errors
    /// [`KeysError`]
    pub fn open(settings: JwtSettings, files: Vec<PathBuf>) -> Result<Self, KeysError> {
        let read = Mutex::new(changed(&files));
        let keys = ArcSwap::from_pointee(TokenKeys::load(&files)?);
        Ok(Self { settings, files, keys, read })
    }

    /// Reads the files again if they have changed, because services rotate their keys. Returns whether they have
    /// changed.
    ///
    /// # Errors
    /// [`KeysError`]; the keys stay unchanged.
    pub fn reload(&self) -> Result<bool, KeysError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = changed(&self.files);
        if *read == now {
            return Ok(false);
        }
        // Set before loading, so that an invalid file is reported only once.
        *read = now;
        self.keys.store(Arc::new(TokenKeys::load(&self.files)?));
        Ok(true)
    }

    /// Checks a token at the time `now`.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check(&self, token: &[u8], now: UtcTime) -> Result<TokenUser, TokenRefusal> {
        if token.len() > TOKEN_LEN_MAX {
            return Err(TokenRefusal::TooLong);
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| TokenRefusal::Malformed)?;
        let algorithm = TokenAlgorithm::of(header.alg).ok_or(TokenRefusal::Algorithm)?;
        if !self.settings.algorithms.contains(&algorithm) {
            return Err(TokenRefusal::Algorithm);
        }
        // RFC 7515 §4.1.11. Encrypted and compressed tokens are not supported either.
        if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
            return Err(TokenRefusal::Critical);
        }
        let mut validation = Validation::new(header.alg);
        // Claims are validated below, at the time `now`.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        let mut refusal = TokenRefusal::NoKey;
        for key in self.keys.load().fitting(algorithm, header.kid.as_deref()) {
            match jsonwebtoken::decode::<Map<String, Value>>(token, key, &validation) {
                Ok(token) => return claims::read(&self.settings, &token.claims, now),
                Err(error) => {
                    refusal = match error.kind() {
                        jsonwebtoken::errors::ErrorKind::Json(_) => TokenRefusal::Malformed,
                        _ => TokenRefusal::Signature,
                    };
                }
            }
        }
        Err(refusal)
    }
}

impl TokenAuthority {
    /// Validates the claims (a JSON object) of a token whose signature was checked elsewhere.
    ///
    /// # Errors
    /// Why the claims are refused.
    pub fn read_claims(&self, claims: &[u8], now: UtcTime) -> Result<TokenUser, TokenRefusal> {
        let claims = serde_json::from_slice(claims).map_err(|_| TokenRefusal::Malformed)?;
        claims::read(&self.settings, &claims, now)
    }
}

fn changed(files: &[PathBuf]) -> Vec<Option<SystemTime>> {
    files.iter().map(|file| std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok()).collect()
}

impl TokenAuthority {
    fn verdict(&self, token: &[u8]) -> Verdict {
        match self.check(token, taktwerk_net::clock::wall()) {
            Ok(TokenUser { user_id, roles, groups, expires }) => Ok(Accepted::named(&user_id)
                .with_claims(roles, groups)
                .until(expires.plus(self.settings.leeway))),
            Err(refusal) => {
                tracing::info!(reason = %refusal, "an access token was refused");
                Err(StatusCode::BAD_IDENTITY_TOKEN_REJECTED)
            }
        }
    }
}

/// Lets users log on with tokens of an authorization service.
#[derive(Debug, Clone)]
pub struct JwtVerifier(Arc<TokenAuthority>);

impl JwtVerifier {
    /// Uses the current keys of the service for each attempt.
    #[must_use]
    pub fn new(authority: Arc<TokenAuthority>) -> Self {
        Self(authority)
    }
}

impl IdentityVerifier for JwtVerifier {
    fn verify(&self, credential: Credential) -> Verification {
        let Credential::IssuedToken { token } = credential else { return Verification::refused() };
        let authority = Arc::clone(&self.0);
        // Verifying takes about 0.1 ms and clients can send many tokens, so it runs on a worker thread.
        Verification::Blocking(Box::new(move || authority.verdict(token.expose())))
    }
}
