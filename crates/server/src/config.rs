//! What a server is told before it starts.

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
    /// ApplicationName that clients show to people.
    pub application_name: String,
    /// ApplicationUri: globally unique for the instance, and the ServerUri. Also the name of namespace 1.
    pub application_uri: String,
    /// ProductUri: unique for the product.
    pub product_uri: String,
    /// What is offered, the preferred one first. The first URL is the default for clients that do not say how they
    /// reached the server.
    pub endpoints: Vec<EndpointConfig>,
    /// What the BuildInfo structure says.
    pub build_info: BuildInfo,
    /// LocaleIdArray: the locales of the texts, the default first.
    pub locale_ids: Vec<String>,
    /// ServerProfileArray.
    pub profiles: Vec<String>,
    /// Roles, who has them, and what they may do where nodes do not say it themselves.
    pub authorization: Authorization,
    /// What is noted of what clients do.
    pub audit: AuditConfig,
    /// Who decides on users; without it, only Anonymous can be offered.
    pub verifier: Option<Arc<dyn IdentityVerifier>>,
    /// Passwords and tokens may cross the network readably: where an endpoint neither encrypts messages nor asks for
    /// encrypted secrets. Default false; [`Self::check`] refuses such endpoints.
    pub allow_clear_passwords: bool,
    /// Certificates, keys and algorithms.
    pub provider: Arc<dyn Provider>,
    /// Counts the changes of the provider's trust lists, by whoever notices them: when it moves, the certificates of
    /// all channels are looked at again, and channels that are no longer trusted are closed (Part 12 §7.8.2.5).
    pub trust_list_changes: Arc<AtomicU64>,
    /// Counts how often the provider's own certificates were replaced: when it moves, all secured channels are closed, because
    /// they belong to the old ones (Part 12 §7.10.9).
    pub certificate_changes: Arc<AtomicU64>,
    /// Is told the keys of all channels, as far as the provider discloses them: whoever reads it reads everything.
    /// Default: nobody is.
    pub key_log: Option<Arc<dyn KeyLog>>,
    /// Whether clients may change the structure of the address space: AddNodes, DeleteNodes, AddReferences and
    /// DeleteReferences (Part 4 §5.8). The permissions AddNode, DeleteNode, AddReference and RemoveReference apply. Default
    /// false: the services answer Bad_ServiceUnsupported.
    pub node_management: bool,
    /// What clients that monitor events hear of changed nodes, and of values with another meaning.
    pub model_changes: ModelChangeEvents,
    /// Whether clients may have durable subscriptions (Part 4 §6.8), and where they are kept. Default: they may not.
    pub durable: Option<DurableConfig>,
    /// Limits of sessions, services and subscriptions.
    pub limits: Limits,
    /// Predicts the CPU of what clients ask for; `None` costs nothing.
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

    /// Refuses what cannot be meant: see [`ConfigProblem`]. What passes here is checked again where it matters, so a
    /// configuration that nobody has checked is merely useless.
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
        // Anybody may take part in a key agreement; without a channel nobody knows with whom (Part 6 §6.8.2).
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

/// Why a configuration is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// Policy None goes with mode None, and every other policy with another mode.
    #[error("{policy} does not go with mode {mode}: None goes with None only")]
    Mode {
        /// The policy.
        policy: SecurityPolicy,
        /// The mode.
        mode: MessageSecurityMode,
    },
    /// The provider does not carry the policy.
    #[error("the cryptographic library does not carry {0}; give the server a provider that does")]
    Unsupported(SecurityPolicy),
    /// There is no own certificate.
    #[error("there is no certificate of the server for {0}; make one, for example with `taktwerk pki init`")]
    NoCertificate(SecurityPolicy),
    /// Passwords would cross the network readably.
    #[error(
        "with mode {mode}, passwords would be sent unencrypted: give the user tokens a policy, use SignAndEncrypt, \
         or allow clear passwords on a trusted network"
    )]
    ClearPassword {
        /// The endpoint's mode.
        mode: MessageSecurityMode,
    },
    /// A certificate proves nothing without a signature algorithm (Part 4 §7.40.5).
    #[error(
        "user certificates need a SecurityPolicy: without one, users do not prove that they own the certificate"
    )]
    CertificateWithoutPolicy,
    /// Elliptic curves agree on keys with whoever answers (Part 6 §6.8.2).
    #[error("{0} cannot protect the secrets of users on a channel without security")]
    EccWithoutChannel(SecurityPolicy),
    /// No kind of user is let in.
    #[error("no client can log on: configure users, or allow anonymous clients")]
    NobodyCanLogOn,
    /// Neither a policy nor None was asked for on a network.
    #[error(
        "no endpoint is offered: give the server certificates, or allow SecurityPolicy None on a trusted network"
    )]
    NothingOffered,
    /// Nobody decides on users.
    #[error("users other than Anonymous are offered, but there is no verifier that knows them")]
    NoVerifier,
}

/// One way to reach the server (an EndpointDescription, Part 4 §7.14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// `opc.tcp://host:port/path`. The host is replaced by the one that a client used to reach the server.
    pub url: String,
    /// The algorithms.
    pub policy: SecurityPolicy,
    /// What is done to messages.
    pub mode: MessageSecurityMode,
    /// How users may identify themselves.
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
    /// Names the policy; unique within the endpoint.
    pub policy_id: String,
    /// What identifies the user.
    pub kind: UserTokenKind,
    /// The algorithms that protect the secret; `None` takes the channel's.
    pub policy: Option<SecurityPolicy>,
    /// For issued tokens, where clients get one: the JSON object of Part 6 §6.5.3 (issuerEndpointUrl).
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

    /// User name and password, protected as the channel is. On a channel without encryption the password crosses the
    /// network readably: the configuration has to want that.
    #[must_use]
    pub fn user_name() -> Self {
        Self::new("username", UserTokenKind::UserName)
    }

    /// Certificates whose key the client proves to hold with the channel's algorithm.
    #[must_use]
    pub fn certificate() -> Self {
        Self::new("certificate", UserTokenKind::Certificate)
    }

    /// JSON Web Tokens of an authorization service; `issuer` tells clients where to get one (Part 6 §6.5.3).
    #[must_use]
    pub fn issued_token(issuer: &str) -> Self {
        Self { issuer: Some(issuer.to_owned()), ..Self::new("jwt", UserTokenKind::IssuedToken) }
    }

    /// Protects the secret, or makes the signature, with a policy of its own.
    #[must_use]
    pub fn with_policy(mut self, policy: SecurityPolicy) -> Self {
        // Names of policies are unique among all endpoints of a server.
        self.policy_id = format!("{}-{}", self.policy_id, policy.name());
        self.policy = Some(policy);
        self
    }
}

/// UserTokenType (Part 4 §7.42).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserTokenKind {
    /// No identity.
    Anonymous,
    /// Name and password.
    UserName,
    /// An X.509 certificate.
    Certificate,
    /// A token of an authorization service.
    IssuedToken,
}

impl UserTokenKind {
    /// The number on the wire.
    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Anonymous => 0,
            Self::UserName => 1,
            Self::Certificate => 2,
            Self::IssuedToken => 3,
        }
    }

    /// What an issued token is (Part 6 §6.5.3.2); nothing for the other kinds.
    pub(crate) const fn issued_token_type(self) -> Option<&'static str> {
        match self {
            Self::IssuedToken => Some("http://opcfoundation.org/UA/UserToken#JWT"),
            Self::Anonymous | Self::UserName | Self::Certificate => None,
        }
    }
}

/// The BuildInfo structure (Part 5 §12.4) but its ProductUri, which the configuration has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildInfo {
    /// Who made the software.
    pub manufacturer_name: String,
    /// The software's name.
    pub product_name: String,
    /// The software's version.
    pub software_version: String,
    /// The build's number.
    pub build_number: String,
    /// When it was built.
    pub build_date: UtcTime,
}
