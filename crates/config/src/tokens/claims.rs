//! Claims of access tokens (Part 6 §6.5.2.3, RFC 7519 §4.1).

use super::{JwtSettings, TokenRefusal};
use core::time::Duration;
use serde_json::{Map, Value};
use taktwerk_types::UtcTime;

/// Longest `sub`, role or group, in bytes.
const NAME_LEN_MAX: usize = 256;
/// Maximum number of roles, and of groups.
const NAMES_MAX: usize = 256;
/// Latest supported `exp`, in seconds since 1970: the year 9999. Later ones count as "never".
const SECONDS_MAX: f64 = 253_402_300_799.0;

/// The user that a token names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUser {
    /// The subject (`sub`).
    pub user_id: Box<str>,
    /// The names in the claim with roles.
    pub roles: Vec<Box<str>>,
    /// The names in the claim with groups.
    pub groups: Vec<Box<str>>,
    /// Expiry (`exp`).
    pub expires: UtcTime,
}

/// Validates the claims of a token whose signature is valid.
pub(super) fn read(
    settings: &JwtSettings,
    claims: &Map<String, Value>,
    now: UtcTime,
) -> Result<TokenUser, TokenRefusal> {
    if text(claims, "iss")? != settings.issuer {
        return Err(TokenRefusal::Issuer);
    }
    let is_for_us = match claims.get("aud") {
        Some(Value::String(audience)) => *audience == settings.audience,
        Some(Value::Array(all)) => all.iter().any(|audience| audience.as_str() == Some(&settings.audience)),
        _ => return Err(TokenRefusal::Claim("aud")),
    };
    if !is_for_us {
        return Err(TokenRefusal::Audience);
    }
    let expires = time(claims, "exp")?.ok_or(TokenRefusal::Claim("exp"))?;
    if expires.plus(settings.leeway) <= now {
        return Err(TokenRefusal::Expired);
    }
    for claim in ["nbf", "iat"] {
        if time(claims, claim)?.is_some_and(|from| from > now.plus(settings.leeway)) {
            return Err(TokenRefusal::NotYet);
        }
    }
    let user_id = text(claims, "sub")?;
    if user_id.is_empty() || user_id.len() > NAME_LEN_MAX || user_id.chars().any(char::is_control) {
        return Err(TokenRefusal::Claim("sub"));
    }
    Ok(TokenUser {
        user_id: user_id.into(),
        roles: names(claims, &settings.roles_claim).ok_or(TokenRefusal::Claim("roles"))?,
        groups: names(claims, &settings.groups_claim).ok_or(TokenRefusal::Claim("groups"))?,
        expires,
    })
}

fn text<'a>(claims: &'a Map<String, Value>, name: &'static str) -> Result<&'a str, TokenRefusal> {
    claims.get(name).and_then(Value::as_str).ok_or(TokenRefusal::Claim(name))
}

/// A time in seconds since 1970, possibly with a fraction (RFC 7519 §2).
fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<UtcTime>, TokenRefusal> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0).ok_or(TokenRefusal::Claim(name))?;
    Ok(Some(UtcTime::from_unix(Duration::from_secs_f64(seconds.min(SECONDS_MAX)))))
}

/// The names in a claim: empty if the claim is missing, `None` if it is neither a string nor a list of strings.
fn names(claims: &Map<String, Value>, claim: &str) -> Option<Vec<Box<str>>> {
    let found = claims.get(claim).or_else(|| {
        let mut steps = claim.split('.');
        let first = claims.get(steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(step))
    });
    let fits = |name: &str| !name.is_empty() && name.len() <= NAME_LEN_MAX;
    match found {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(one)) => fits(one).then(|| vec![one.as_str().into()]),
        Some(Value::Array(all)) if all.len() <= NAMES_MAX => {
            all.iter().map(|name| name.as_str().filter(|name| fits(name)).map(Into::into)).collect()
        }
        Some(_) => None,
    }
}
