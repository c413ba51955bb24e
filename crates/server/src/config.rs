//! The configuration of a server.

use crate::audit::AuditConfig;
use crate::authorization::Authorization;
use crate::durable::DurableConfig;
use crate::event::ModelChangeEvents;
use crate::headroom::Headroom;
use crate::identity::IdentityVerifier;
use crate::limits::Limits;
use core::sync::atomic::AtomicU64;
use std::sync::Arc;
use taktwerk_channel::ChannelLimits;
use taktwerk_crypto::{KeyLog, MessageSecurityMode, NullProvider, Provider, SecurityPolicy};
use taktwerk_types::UtcTime;

/// A server's configuration. Start from [`ServerConfig::new`] and change fields.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// ApplicationName, shown to users of clients.
    pub application_name: String,
    /// ApplicationUri: globally unique for the instance, and the ServerUri. Also the name of namespace 1.
    pub application_uri: String,
    /// ProductUri: unique for the product.
    pub product_uri: String,
    /// The endpoints, the preferred one first. The first URL is the default for clients that do not say how they
    /// reached the server.
    pub endpoints: Vec<EndpointConfig>,
    /// Contents of the BuildInfo structure.
    pub build_info: BuildInfo,
    /// LocaleIdArray: the locales of the texts, the default first.
    pub locale_ids: Vec<String>,
    /// ServerProfileArray.
    pub profiles: Vec<String>,
    /// Roles, the rules for granting them, and their default permissions.
    pub authorization: Authorization,
    /// What is audited.
    pub audit: AuditConfig,
    /// Verifies user identities. Without it, only Anonymous can be offered.
    pub verifier: Option<Arc<dyn IdentityVerifier>>,
    /// Allows passwords and tokens to cross the network unencrypted, on endpoints that encrypt neither messages nor
    /// secrets. Default false; [`Self::check`] refuses such endpoints.
    pub allow_clear_passwords: bool,
    /// Certificates, keys and algorithms.
    pub provider: Arc<dyn Provider>,
    /// Counts the changes of the provider's trust lists. After each change, the certificates of all channels are
    /// validated again, and channels that are no longer trusted are closed (Part 12 §7.8.2.5).
    pub trust_list_changes: Arc<AtomicU64>,
    /// Counts the replacements of the provider's own certificates. After each, all secured channels are closed, because
    /// they use the old certificates (Part 12 §7.10.9).
    pub certificate_changes: Arc<AtomicU64>,
    /// Receives the keys of all channels, as far as the provider discloses them. These keys decrypt all traffic.
    /// Default: none.
    pub key_log: Option<Arc<dyn KeyLog>>,
    /// Whether clients may change the structure of the address space: AddNodes, DeleteNodes, AddReferences and
    /// DeleteReferences (Part 4 §5.8). The permissions AddNode, DeleteNode, AddReference and RemoveReference apply.
    /// Default false: the services return Bad_ServiceUnsupported.
    pub node_management: bool,
    /// Which events report model changes and semantic changes.
    pub model_changes: ModelChangeEvents,
    /// Durable subscriptions (Part 4 §6.8) and their store. Default: none.
    pub durable: Option<DurableConfig>,
    /// Limits of sessions, services and subscriptions.
    pub limits: Limits,
    /// Predicts the CPU load of what clients request. `None` costs nothing.
    pub headroom: Option<Arc<Headroom>>,
    /// Limits of connections and channels.
    pub channel: ChannelLimits,
    /// When the server started, for ServerStatus.
    pub start_time: UtcTime,
}

impl ServerConfig {
    /// A server with one unsecured endpoint for anonymous users at `url`.
    #[must_use]
    pub fn new(application_name: &str, application_uri: &str, url: &str, start_time: UtcTime) -> Self {
        Self {
            application_name: application_name.to_owned(),
            application_uri: application_uri.to_owned(),
            product_uri: application_uri.to_owned(),
            endpoints: vec![EndpointConfig::unsecured(url)],
            build_info: BuildInfo::default(),
            locale_ids: vec!["en".to_owned()],
            profiles: vec!["http://opcfoundation.org/UA-Profile/Server/StandardUA2017".to_owned()],
            authorization: Authorization::open(),
            audit: AuditConfig::default(),
            verifier: None,
            allow_clear_passwords: false,
            provider: Arc::new(NullProvider),
            trust_list_changes: Arc::default(),
            certificate_changes: Arc::default(),
            key_log: None,
            node_management: false,
            model_changes: ModelChangeEvents::default(),
            durable: None,
            limits: Limits::default(),
            headroom: None,
            channel: ChannelLimits::default(),
            start_time,
        }
    }

    /// Rejects invalid settings: see [`ConfigProblem`]. The server also checks these settings where it uses them, so an
    /// unchecked configuration is useless but not unsafe.
    ///
    /// # Errors
    /// The first problem.
    pub fn check(&self) -> Result<(), ConfigProblem> {
        for endpoint in &self.endpoints {
            let (policy, mode) = (endpoint.policy, endpoint.mode);
            if policy.is_secure() != (mode != MessageSecurityMode::None) {
                return Err(ConfigProblem::Mode { policy, mode });
            }
            if policy.is_secure() && !self.provider.supports(policy) {
                return Err(ConfigProblem::Unsupported(policy));
            }
            if policy.is_secure() && self.provider.own_certificate(policy).is_none() {
                return Err(ConfigProblem::NoCertificate(policy));
            }
            for token in &endpoint.user_tokens {
                self.check_token(endpoint, token)?;
            }
        }
        Ok(())
    }

    fn check_token(&self, endpoint: &EndpointConfig, token: &UserTokenConfig) -> Result<(), ConfigProblem> {
        let effective = token.policy.unwrap_or(endpoint.policy);
        match token.kind {
            UserTokenKind::Anonymous => return Ok(()),
            UserTokenKind::Certificate if !effective.is_secure() => {
                return Err(ConfigProblem::CertificateWithoutPolicy);
            }
            UserTokenKind::UserName | UserTokenKind::IssuedToken
                if !effective.is_secure()
                    && endpoint.mode != MessageSecurityMode::SignAndEncrypt
                    && !self.allow_clear_passwords =>
            {
                return Err(ConfigProblem::ClearPassword { mode: endpoint.mode });
            }
            _ => {}
        }
        // A key agreement works with anyone. Without a secure channel, the peer is not authenticated (Part 6 §6.8.2).
        if !endpoint.policy.is_secure() && effective.info().is_ecc() {
            return Err(ConfigProblem::EccWithoutChannel(effective));
        }
        if effective.is_secure() && !self.provider.supports(effective) {
            return Err(ConfigProblem::Unsupported(effective));
        }
        if self.verifier.is_none() {
            return Err(ConfigProblem::NoVerifier);
        }
        Ok(())
    }
}

/// Why a configuration is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// Policy None requires mode None, and every other policy requires another mode.
    #[error(
        "{policy} cannot be used with mode {mode}: policy None requires mode None, every other policy Sign or SignAndEncrypt"
    )]
    Mode {
        /// The policy.
        policy: SecurityPolicy,
        /// The mode.
        mode: MessageSecurityMode,
    },
    /// The provider does not support the policy.
    #[error("the cryptographic library does not support {0}; use a provider that does")]
    Unsupported(SecurityPolicy),
    /// The server has no certificate for the policy.
    #[error("the server has no certificate for {0}; create one, for example with `taktwerk pki init`")]
    NoCertificate(SecurityPolicy),
    /// Passwords would cross the network unencrypted.
    #[error(
        "with mode {mode}, passwords would be sent unencrypted: give the user tokens a policy, use SignAndEncrypt, \
         or allow clear passwords on a trusted network"
    )]
    ClearPassword {
        /// The endpoint's mode.
        mode: MessageSecurityMode,
    },
    /// Without a signature algorithm, a user certificate proves nothing (Part 4 §7.40.5).
    #[error(
        "user certificates need a SecurityPolicy: without one, users do not prove that they own the certificate"
    )]
    CertificateWithoutPolicy,
    /// A key agreement with elliptic curves does not authenticate the peer (Part 6 §6.8.2).
    #[error(
        "{0} cannot protect user secrets on a channel without security: choose an RSA policy for the user tokens or secure the channel"
    )]
    EccWithoutChannel(SecurityPolicy),
    /// No user identity is accepted.
    #[error("no client can log on: configure users, or allow anonymous clients")]
    NobodyCanLogOn,
    /// There are neither secured endpoints nor an explicit permission for None.
    #[error(
        "no endpoint is offered: give the server certificates, or allow SecurityPolicy None on a trusted network"
    )]
    NothingOffered,
    /// There is no identity verifier.
    #[error(
        "endpoints offer users other than Anonymous, but there is no verifier: set `verifier`, or offer only Anonymous"
    )]
    NoVerifier,
}

/// An endpoint of the server (EndpointDescription, Part 4 §7.14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// `opc.tcp://host:port/path`. Clients see the host that they used to reach the server instead.
    pub url: String,
    /// The security policy.
    pub policy: SecurityPolicy,
    /// The security mode.
    pub mode: MessageSecurityMode,
    /// Accepted kinds of user identity.
    pub user_tokens: Vec<UserTokenConfig>,
}

impl EndpointConfig {
    /// No security, anonymous users.
    #[must_use]
    pub fn unsecured(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            policy: SecurityPolicy::None,
            mode: MessageSecurityMode::None,
            user_tokens: vec![UserTokenConfig::anonymous()],
        }
    }
}

/// A UserTokenPolicy (Part 4 §7.41).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserTokenConfig {
    /// PolicyId, unique within the endpoint.
    pub policy_id: String,
    /// The kind of user identity.
    pub kind: UserTokenKind,
    /// The policy that protects the secret; `None` uses the channel's.
    pub policy: Option<SecurityPolicy>,
    /// For issued tokens: where clients get one, as the JSON object of Part 6 §6.5.3 (issuerEndpointUrl).
    pub issuer: Option<String>,
}

impl UserTokenConfig {
    fn new(policy_id: &str, kind: UserTokenKind) -> Self {
        Self { policy_id: policy_id.to_owned(), kind, policy: None, issuer: None }
    }

    /// Anyone.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("anonymous", UserTokenKind::Anonymous)
    }

    /// User name and password, protected like the channel. Without encryption the password crosses the network in clear
    /// text, which the configuration must allow.
    #[must_use]
    pub fn user_name() -> Self {
        Self::new("username", UserTokenKind::UserName)
    }

    /// Certificates. The client proves possession of the key with the channel's algorithm.
    #[must_use]
    pub fn certificate() -> Self {
        Self::new("certificate", UserTokenKind::Certificate)
    }

    /// JSON Web Tokens of an authorization service. `issuer` tells clients where to get one (Part 6 §6.5.3).
    #[must_use]
    pub fn issued_token(issuer: &str) -> Self {
        Self { issuer: Some(issuer.to_owned()), ..Self::new("jwt", UserTokenKind::IssuedToken) }
    }

    /// Protects the secret, or creates the signature, with its own policy.
    #[must_use]
    pub fn with_policy(mut self, policy: SecurityPolicy) -> Self {
        // PolicyIds are unique among all endpoints of a server.
        self.policy_id = format!("{}-{}", self.policy_id, policy.name());
        self.policy = Some(policy);
        self
    }
}

/// UserTokenType (Part 4 §7.42).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserTokenKind {
    /// No user identity.
    Anonymous,
    /// Name and password.
    UserName,
    /// An X.509 certificate.
    Certificate,
    /// A token of an authorization service.
    IssuedToken,
}

impl UserTokenKind {
    /// The value on the wire.
    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Anonymous => 0,
            Self::UserName => 1,
            Self::Certificate => 2,
            Self::IssuedToken => 3,
        }
    }

    /// The type of an issued token (Part 6 §6.5.3.2); `None` for the other kinds.
    pub(crate) const fn issued_token_type(self) -> Option<&'static str> {
        match self {
            Self::IssuedToken => Some("http://opcfoundation.org/UA/UserToken#JWT"),
            Self::Anonymous | Self::UserName | Self::Certificate => None,
        }
    }
}

/// The BuildInfo structure (Part 5 §12.4) without its ProductUri, which is part of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildInfo {
    /// The manufacturer.
    pub manufacturer_name: String,
    /// The software's name.
    pub product_name: String,
    /// The software's version.
    pub software_version: String,
    /// The build number.
    pub build_number: String,
    /// The build date. The null DateTime (year 1601) means that it is unknown.
    pub build_date: UtcTime,
}

impl BuildInfo {
    /// A product with its version, which is also the build number. The build date is unknown.
    #[must_use]
    pub fn new(manufacturer: &str, product: &str, version: &str) -> Self {
        Self {
            manufacturer_name: manufacturer.to_owned(),
            product_name: product.to_owned(),
            software_version: version.to_owned(),
            build_number: version.to_owned(),
            build_date: UtcTime::NULL,
        }
    }

    /// Sets the build date in seconds since 1970. Programs that are built reproducibly pass
    /// `option_env!("SOURCE_DATE_EPOCH")`. Without a number, the date is unknown.
    #[must_use]
    pub fn built_at(mut self, seconds: Option<&str>) -> Self {
        let seconds = seconds.and_then(|text| text.trim().parse().ok());
        self.build_date = seconds
            .map_or(UtcTime::NULL, |seconds| UtcTime::from_unix(core::time::Duration::from_secs(seconds)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_dates_are_seconds_since_1970_or_unknown() {
        let built_at = |seconds| BuildInfo::new("Example", "Boiler", "1.2").built_at(seconds).build_date;
        assert_eq!(built_at(Some("1764403200\n")).to_string(), "2025-11-29T08:00:00Z");
        for unknown in [None, Some(""), Some("-1"), Some("now")] {
            assert!(built_at(unknown).is_null(), "{unknown:?}");
        }
        // Beyond the last DateTime, it is the last one.
        assert!(!built_at(Some("18446744073709551615")).is_null());
        assert_eq!(BuildInfo::new("Example", "Boiler", "1.2").build_number, "1.2");
    }
}
