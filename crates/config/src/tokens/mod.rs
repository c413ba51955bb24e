//! Access tokens of an authorization service: JSON Web Tokens (Part 6 §6.5.2, RFC 7519).
//!
//! Only signatures with public keys count: whoever can check a token made with a shared secret can make one. Keys come
//! from files and never from the token, and a key is used only with algorithms of its own kind.
//!
//! - `keys`: files with keys; `claims`: what a signed token says; [`TokenAuthority`]: both together;
//!   [`JwtVerifier`]: who lets users in by them.

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

/// Longest token, in bytes. The server takes no longer ones either.
pub const TOKEN_LEN_MAX: usize = 16 << 10;

/// What tokens are signed with.
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
    /// All that are supported, with their names.
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

/// What a token has to be to be accepted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JwtSettings {
    /// The one issuer (`iss`).
    pub issuer: String,
    /// Who the token has to be for (`aud`); the server's ApplicationUri unless the service knows it by another name.
    pub audience: String,
    /// How tokens may be signed. Default: everything that is supported.
    pub algorithms: Vec<TokenAlgorithm>,
    /// By how much clocks may differ. Default: 30 s.
    pub leeway: Duration,
    /// The claim with the roles: its name, or names joined by dots where it lies within others. Default: `roles`.
    pub roles_claim: String,
    /// The claim with the groups. Default: `groups`.
    pub groups_claim: String,
}

impl JwtSettings {
    /// Tokens of an issuer for an audience.
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

/// Why a token is refused. For the log: a client hears the same in every case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// It is longer than tokens may be.
    #[error("it is longer than {TOKEN_LEN_MAX} bytes")]
    TooLong,
    /// It is no signed token.
    #[error("it is no signed JSON Web Token")]
    Malformed,
    /// Its algorithm is not allowed, or it is not signed at all.
    #[error("its algorithm is not allowed")]
    Algorithm,
    /// It demands something that is not understood here.
    #[error("it demands extensions (crit) that are not supported")]
    Critical,
    /// No key fits it.
    #[error("there is no key that fits its algorithm and its key id")]
    NoKey,
    /// Nobody whose key is known has signed it.
    #[error("its signature is wrong")]
    Signature,
    /// A claim is missing or makes no sense.
    #[error("its claim {0:?} is missing or makes no sense")]
    Claim(&'static str),
    /// It is by another issuer.
    #[error("it is by another issuer")]
    Issuer,
    /// It is for somebody else.
    #[error("it is for another audience")]
    Audience,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// Its time has not come.
    #[error("it is not valid yet")]
    NotYet,
}

/// An authorization service whose tokens are believed.
#[derive(Debug)]
pub struct TokenAuthority {
    settings: JwtSettings,
    files: Vec<PathBuf>,
    keys: ArcSwap<TokenKeys>,
    /// When the files were changed that were read last.
    read: Mutex<Vec<Option<SystemTime>>>,
}

impl TokenAuthority {
    /// Checks tokens with given keys.
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

    /// Reads the files again if they have changed. Returns whether they have: services change their keys at times.
    ///
    /// # Errors
    /// [`KeysError`]; the keys stay as they were.
    pub fn reload(&self) -> Result<bool, KeysError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = changed(&self.files);
        if *read == now {
            return Ok(false);
        }
        // Noted first: a mistake in a file is said once, and not until somebody mends it.
        *read = now;
        self.keys.store(Arc::new(TokenKeys::load(&self.files)?));
        Ok(true)
    }

    /// Looks at a token at a time.
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
        // RFC 7515 §4.1.11; and what is compressed or encrypted besides is no token of the kind that is meant.
        if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
            return Err(TokenRefusal::Critical);
        }
        let mut validation = Validation::new(header.alg);
        // Claims are looked at below, with a clock that is given.
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
    /// Looks at claims (a JSON object) of a token whose signature somebody else has checked.
    ///
    /// # Errors
    /// Why they do not do.
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
    /// Uses the service's keys as they are at each attempt.
    #[must_use]
    pub fn new(authority: Arc<TokenAuthority>) -> Self {
        Self(authority)
    }
}

impl IdentityVerifier for JwtVerifier {
    fn verify(&self, credential: Credential) -> Verification {
        let Credential::IssuedToken { token } = credential else { return Verification::refused() };
        let authority = Arc::clone(&self.0);
        // A signature takes a tenth of a millisecond, and clients send as many as they like.
        Verification::Blocking(Box::new(move || authority.verdict(token.expose())))
    }
}
