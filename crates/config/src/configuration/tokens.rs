//! `[identities.jwt]`: the accepted tokens, and where clients get them.

use super::{ConfigError, ConfigFile, JwtSection};
use crate::tokens::{JwtSettings, TokenAlgorithm};
use core::time::Duration;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The profile of an OAuth 2 service (Part 6 §6.5.3).
const OAUTH2: &str = "http://opcfoundation.org/UA/Authorization#OAuth2";

/// The settings for access tokens.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TokensConfig {
    /// Requirements on tokens.
    pub settings: JwtSettings,
    /// Files with the service's keys.
    pub keys: Vec<PathBuf>,
    /// The issuerEndpointUrl (Part 6 §6.5.2.2): a JSON object.
    pub issuer_endpoint: String,
}

impl ConfigFile {
    /// The settings for access tokens; `None` if tokens are disabled.
    ///
    /// # Errors
    /// An unknown algorithm, or no keys, or no audience.
    pub fn tokens(&self) -> Result<Option<TokensConfig>, ConfigError> {
        let Some(section) = &self.config().identities.jwt else { return Ok(None) };
        let wrong = |problem: &str, hint: &str| self.section_error("identities.jwt", problem, hint);
        if section.keys.is_empty() {
            return Err(wrong(
                "there are no keys",
                "name the file with the key set of the authorization service",
            ));
        }
        let Some(audience) = section.audience.as_ref().or(self.config().server.application_uri.as_ref())
        else {
            return Err(wrong(
                "the audience of tokens is unknown",
                "set audience, or application_uri in [server], to the value of their claim aud",
            ));
        };
        let mut settings = JwtSettings::new(&section.issuer, audience);
        if let Some(names) = &section.algorithms {
            let all = names.iter().map(|name| self.named(name, "algorithm", &TokenAlgorithm::ALL));
            settings.algorithms = all.collect::<Result<_, _>>()?;
        }
        settings.leeway = Duration::from_secs(section.leeway.into());
        settings.roles_claim.clone_from(&section.roles_claim);
        settings.groups_claim.clone_from(&section.groups_claim);
        let keys = section.keys.iter().map(|path| self.resolve(path)).collect();
        Ok(Some(TokensConfig { issuer_endpoint: issuer_endpoint(section, audience), settings, keys }))
    }
}

fn issuer_endpoint(section: &JwtSection, audience: &str) -> String {
    let mut object = Map::new();
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    set("ua:resourceId", audience.into());
    set("ua:authorityUrl", section.authority_url.as_ref().unwrap_or(&section.issuer).as_str().into());
    let profile = section.authority_profile_uri.as_deref().unwrap_or(OAUTH2);
    set("ua:authorityProfileUri", profile.into());
    if let Some(endpoint) = &section.token_endpoint {
        set("ua:tokenEndpoint", endpoint.as_str().into());
    }
    if !section.scopes.is_empty() {
        set("ua:scopes", section.scopes.clone().into());
    }
    Value::Object(object).to_string()
}
