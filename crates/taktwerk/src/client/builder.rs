//! Configures and opens a connection.

use super::{Client, Error};
use crate::pki::Pki;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_client::{ClientConfig, ClientError, Identity, ReconnectPolicy, Secret, Security, Target};
use taktwerk_crypto::{MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_net::client::AsyncClient;

/// Settings of a client. Each has a default.
#[derive(Debug)]
#[must_use = "nothing happens before connect()"]
pub struct ClientBuilder {
    url: String,
    config: ClientConfig,
    provider: Option<Arc<dyn Provider>>,
    security: Security,
    identity: Identity,
    allow_plaintext_password: bool,
    session_name: Option<String>,
    locale_ids: Vec<Box<str>>,
    is_direct: bool,
}

impl ClientBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            config: ClientConfig::default(),
            provider: None,
            security: Security::default(),
            identity: Identity::default(),
            allow_plaintext_password: false,
            session_name: None,
            locale_ids: Vec::new(),
            is_direct: false,
        }
    }

    /// The client's name for display. Default: `Taktwerk client`.
    pub fn application_name(mut self, name: &str) -> Self {
        self.config.application_name = name.into();
        self
    }

    /// The client's globally unique URI; it must equal the one in its certificate. Default: `urn:taktwerk:client`.
    pub fn application_uri(mut self, uri: &str) -> Self {
        self.config.application_uri = uri.into();
        self
    }

    /// The cryptographic library with the client's certificate and trust lists: needed for every policy but None.
    pub fn provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Takes certificate, ApplicationUri and trust lists from a directory: needed for every policy but None. If a changed trust
    /// list no longer trusts the server, the connection is closed.
    pub fn pki(mut self, pki: &Pki) -> Self {
        if let Some(uri) = pki.application_uri() {
            self.config.application_uri = uri.into();
        }
        match pki.watch() {
            Ok(changes) => self.config.trust_list_changes = changes,
            Err(error) => {
                tracing::warn!(%error, "cannot watch the trust list: changes take effect only when keys are renewed");
            }
        }
        self.provider(pki.provider())
    }

    /// The required security of the endpoint. Default: with a [`provider`](Self::provider) or [`pki`](Self::pki) the best that
    /// both sides support, never None; without them None.
    pub fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// Connects without security and without GetEndpoints, which saves round trips.
    pub fn unsecured(mut self) -> Self {
        self.security = Security::Exactly(SecurityPolicy::None, MessageSecurityMode::None);
        self.is_direct = true;
        self
    }

    /// Logs on with name and password. Default: anonymous.
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.identity = Identity::UserName { name: name.into(), password: Secret::from(password) };
        self
    }

    /// Logs on with a certificate whose private key is in `provider`.
    pub fn user_certificate(mut self, provider: Arc<dyn Provider>) -> Self {
        self.identity = Identity::X509 { provider };
        self
    }

    /// Logs on with a token of an authorization service, such as a JSON Web Token.
    pub fn issued_token(mut self, token: &str) -> Self {
        self.identity = Identity::IssuedToken { token: Secret::from(token) };
        self
    }

    /// Logs on with another identity.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// Allows sending the password unencrypted over a connection without security. Default: not allowed.
    pub fn allow_plaintext_password(mut self) -> Self {
        self.allow_plaintext_password = true;
        self
    }

    /// The session's name in the server's diagnostics.
    pub fn session_name(mut self, name: &str) -> Self {
        self.session_name = Some(name.to_owned());
        self
    }

    /// Preferred languages for texts, the best first.
    pub fn locales<const N: usize>(mut self, ids: [&str; N]) -> Self {
        self.locale_ids = ids.map(Into::into).into();
        self
    }

    /// How long the server keeps the session after the connection is lost. Default: 60 s.
    pub fn session_timeout(mut self, span: Duration) -> Self {
        self.config.session_timeout_ms = span.as_secs_f64() * 1000.0;
        self
    }

    /// How long to wait for an answer. Default: 10 s.
    pub fn request_timeout(mut self, span: Duration) -> Self {
        self.config.request_timeout = span;
        self
    }

    /// What to do when the connection is lost. Default: retry forever with growing delays.
    pub fn reconnect(mut self, policy: ReconnectPolicy) -> Self {
        self.config.reconnect = policy;
        self
    }

    /// Changes any other setting.
    pub fn config(mut self, change: impl FnOnce(&mut ClientConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Connects. Returns when the session is active.
    ///
    /// # Errors
    /// Why the connection failed.
    pub async fn connect(self) -> Result<Client, Error> {
        let Self { url, mut config, provider, .. } = self;
        if let Some(provider) = provider {
            let channel = ChannelConfig { provider, ..ChannelConfig::clone(&config.channel) };
            config.channel = Arc::new(channel);
        }
        let target = if self.is_direct { Target::direct(&url) } else { Target::new(&url) };
        let mut target = target.map_err(ClientError::from)?;
        target.security = self.security;
        target.identity = self.identity;
        target.allow_plaintext_password = self.allow_plaintext_password;
        target.locale_ids = self.locale_ids;
        if let Some(name) = self.session_name {
            target.session_name = name.into();
        }
        let (inner, _, events) = AsyncClient::connect(Arc::new(config), target).await?;
        Ok(Client::new(inner, events))
    }
}
