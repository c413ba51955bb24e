//! What a server is told before it starts.

use crate::audit::AuditConfig;
use crate::authorization::Authorization;
use crate::callback::BoxFuture;
use crate::limits::Limits;
use core::fmt;
use std::sync::Arc;
use taktwerk_channel::ChannelLimits;
use taktwerk_crypto::{MessageSecurityMode, NullProvider, Provider, SecurityPolicy};
use taktwerk_types::{StatusCode, UtcTime};

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
    /// Who decides on users; without it, only Anonymous can be offered.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// Roles, who has them, and what they may do where nodes do not say it themselves.
    pub authorization: Authorization,
    /// What is noted of what clients do.
    pub audit: AuditConfig,
    /// Certificates, keys and algorithms.
    pub provider: Arc<dyn Provider>,
    /// Limits of sessions, services and subscriptions.
    pub limits: Limits,
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
            authenticator: None,
            authorization: Authorization::open(),
            audit: AuditConfig::default(),
            provider: Arc::new(NullProvider),
            limits: Limits::default(),
            channel: ChannelLimits::default(),
            start_time,
        }
    }
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
}

impl UserTokenConfig {
    /// Anyone.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { policy_id: "anonymous".to_owned(), kind: UserTokenKind::Anonymous, policy: None }
    }

    /// User name and password, protected as the channel is. On a channel without encryption the password crosses the
    /// network readably: the configuration has to want that.
    #[must_use]
    pub fn user_name() -> Self {
        Self { policy_id: "username".to_owned(), kind: UserTokenKind::UserName, policy: None }
    }
}

/// UserTokenType (Part 4 §7.42), as far as it is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserTokenKind {
    /// No identity.
    Anonymous,
    /// Name and password.
    UserName,
}

impl UserTokenKind {
    /// The number on the wire.
    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Anonymous => 0,
            Self::UserName => 1,
        }
    }
}

/// Decides whether a user may open a session.
pub trait Authenticator: Send + Sync {
    /// Looks at a user's name and password. Answer with [`Authentication::Blocking`] when it takes a while, as a
    /// good password hash does.
    fn authenticate(&self, name: &str, password: &[u8]) -> Authentication;
}

/// What an [`Authenticator`] answers: usually Good or Bad_UserAccessDenied.
#[non_exhaustive]
pub enum Authentication {
    /// At once.
    Now(Result<(), StatusCode>),
    /// From a function that may block.
    Blocking(Box<dyn FnOnce() -> Result<(), StatusCode> + Send>),
    /// From somewhere else.
    Later(BoxFuture<Result<(), StatusCode>>),
}

impl fmt::Debug for dyn Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authenticator")
    }
}

impl<F: Fn(&str, &[u8]) -> Result<(), StatusCode> + Send + Sync> Authenticator for F {
    fn authenticate(&self, name: &str, password: &[u8]) -> Authentication {
        Authentication::Now(self(name, password))
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
