//! Settings of a client and its connection target.

use crate::error::Misuse;
use core::sync::atomic::AtomicU64;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_crypto::{MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_types::DecodeLimits;

/// Settings that many clients can share.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Limits, cryptography and wall time of the channels.
    pub channel: Arc<ChannelConfig>,
    /// Counts changes of the trust lists that the provider of `channel` uses. When it changes, the server's certificate
    /// is validated again, with the next message or timer. If it is refused, the connection ends (Part 12 §7.8.2.5).
    pub trust_list_changes: Arc<AtomicU64>,
    /// The client's ApplicationUri, if no certificate contains one.
    pub application_uri: Box<str>,
    /// The client's ProductUri.
    pub product_uri: Box<str>,
    /// The client's ApplicationName.
    pub application_name: Box<str>,
    /// Requested session timeout, in milliseconds: how long the server keeps a session without a connection. Default 60
    /// 000.
    pub session_timeout_ms: f64,
    /// Default timeout of requests. Default 10 s.
    pub request_timeout: Duration,
    /// Read the server's state if nothing was received for this long. Default 10 s.
    pub idle_probe: Duration,
    /// Limits for decoding responses.
    pub decode_limits: DecodeLimits,
    /// Requested lifetime of security tokens, in milliseconds. Default 3 600 000.
    pub token_lifetime_ms: u32,
    /// Maximum outstanding requests, without Publish requests. Default 1 024.
    pub outstanding_max: usize,
    /// Maximum outstanding parts of a split request. Default 4, which keeps the server busy without flooding it.
    pub parts_in_flight_max: usize,
    /// Maximum Publish requests in flight. Default 64.
    pub publish_max: usize,
    /// Maximum notification messages kept while a gap before them is being filled, per subscription. Default 256.
    pub gap_messages_max: usize,
    /// Read the server's OperationLimits and NamespaceArray after connecting. Default true. Load generators disable it
    /// to save the round trip.
    pub read_limits: bool,
    /// Call ResendData when notifications were lost (Part 5 §9.2). Default true.
    pub resend_data: bool,
    /// What to do when the connection breaks.
    pub reconnect: ReconnectPolicy,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            channel: Arc::default(),
            trust_list_changes: Arc::default(),
            application_uri: "urn:taktwerk:client".into(),
            product_uri: "urn:taktwerk".into(),
            application_name: "Taktwerk client".into(),
            session_timeout_ms: 60_000.0,
            request_timeout: Duration::from_secs(10),
            idle_probe: Duration::from_secs(10),
            decode_limits: DecodeLimits::DEFAULT,
            token_lifetime_ms: 3_600_000,
            outstanding_max: 1024,
            parts_in_flight_max: 4,
            publish_max: 64,
            gap_messages_max: 256,
            read_limits: true,
            resend_data: true,
            reconnect: ReconnectPolicy::default(),
        }
    }
}

/// How the client reconnects: exponential back-off with jitter, so that a thousand clients of a restarted server do not
/// reconnect at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// Whether to reconnect. Default true.
    pub enabled: bool,
    /// Whether to retry the first connection, too. Default false, so that a mistyped name is reported at once.
    pub retry_first: bool,
    /// Whether to retry after the server has refused the user. Default true: a server may not have its users for a
    /// while. Set it to false for interactive logins: after a password change, further attempts with the old password
    /// could lock the user out.
    pub retry_refused_user: bool,
    /// Delay before the first attempt. Default 100 ms.
    pub delay_min: Duration,
    /// Maximum delay. Default 30 s.
    pub delay_max: Duration,
    /// Maximum number of failed attempts in a row; `None` is unlimited. Default `None`.
    pub attempts_max: Option<u32>,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            retry_first: false,
            retry_refused_user: true,
            delay_min: Duration::from_millis(100),
            delay_max: Duration::from_secs(30),
            attempts_max: None,
        }
    }
}

/// The required security of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Security {
    /// [`Self::Best`] for a client with a certificate, otherwise no security. The choice does not depend on the
    /// endpoint list, which an attacker on the network could edit.
    #[default]
    Automatic,
    /// The strongest security that both sides support; never None.
    Best,
    /// The strongest security that both sides support, or None if the server offers nothing else. An attacker who can
    /// edit the endpoint list can force None. Passwords are not sent then.
    BestOrNone,
    /// Exactly this policy and mode.
    Exactly(SecurityPolicy, MessageSecurityMode),
}

/// The user identity (Part 4 §7.40).
#[derive(Debug, Clone, Default)]
pub enum Identity {
    /// Anonymous.
    #[default]
    Anonymous,
    /// A name and a password.
    UserName {
        /// The name.
        name: Box<str>,
        /// The password. Not printed by `Debug`.
        password: Secret,
    },
    /// A user certificate. The given provider holds its key.
    X509 {
        /// Provides the user's certificate and signs with its key.
        provider: Arc<dyn Provider>,
    },
    /// A token of an authorization service, for example a JSON Web Token (Part 6 §6.5).
    IssuedToken {
        /// The token. Not printed by `Debug`.
        token: Secret,
    },
}

/// Text that `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// The text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("***")
    }
}

/// The connection target.
#[derive(Debug, Clone)]
pub struct Target {
    /// The server's URL.
    pub url: EndpointUrl,
    /// The required security of the endpoint.
    pub security: Security,
    /// The user identity.
    pub identity: Identity,
    /// Allow sending a password unencrypted. Default false.
    pub allow_plaintext_password: bool,
    /// Call GetEndpoints first. Default true. Without it, the endpoint must be [`Security::Exactly`] with None, or use
    /// the certificate below.
    pub discover: bool,
    /// The server's certificate, for secured connections without discovery.
    pub server_certificate: Option<Arc<[u8]>>,
    /// Create a session. Default true. Without one, only the Discovery services can be used.
    pub session: bool,
    /// Name of the session in the server's diagnostics.
    pub session_name: Box<str>,
    /// Preferred locales of the user, best first.
    pub locale_ids: Vec<Box<str>>,
    /// Connect to this address, such as a relay, instead of the server's own host and port. Requests still carry the
    /// server's own URL, and its certificate must contain its own host. Default: none.
    pub via: Option<EndpointUrl>,
}

impl Target {
    /// An anonymous session with the best available security.
    ///
    /// # Errors
    /// [`Misuse::Url`].
    pub fn new(url: &str) -> Result<Self, Misuse> {
        Ok(Self {
            url: EndpointUrl::parse(url)?,
            security: Security::default(),
            identity: Identity::default(),
            allow_plaintext_password: false,
            discover: true,
            server_certificate: None,
            session: true,
            session_name: "Taktwerk".into(),
            locale_ids: Vec::new(),
            via: None,
        })
    }

    /// An anonymous session without security and without GetEndpoints: the fewest round trips.
    ///
    /// # Errors
    /// [`Misuse::Url`].
    pub fn direct(url: &str) -> Result<Self, Misuse> {
        let security = Security::Exactly(SecurityPolicy::None, MessageSecurityMode::None);
        Ok(Self { security, discover: false, ..Self::new(url)? })
    }
}

/// A parsed `opc.tcp` URL (Part 6 §7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    /// The host name or address, without brackets.
    pub host: Box<str>,
    /// The port; 4840 if the URL has none.
    pub port: u16,
    /// The path, with its slash; often empty.
    pub path: Box<str>,
}

/// The port registered for OPC UA.
pub const DEFAULT_PORT: u16 = 4840;

impl EndpointUrl {
    /// Parses `opc.tcp://host[:port][/path]`; the scheme is optional.
    ///
    /// # Errors
    /// [`Misuse::Url`] for another scheme, a missing host, or an invalid port.
    pub fn parse(url: &str) -> Result<Self, Misuse> {
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("opc.tcp") => rest,
            Some(_) => return Err(Misuse::Url),
            None => url,
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or(Misuse::Url)?)),
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = port.map_or(Ok(DEFAULT_PORT), str::parse).map_err(|_| Misuse::Url)?;
        if host.is_empty() || url.len() > 4096 {
            return Err(Misuse::Url);
        }
        Ok(Self { host: host.into(), port, path: path.into() })
    }
}

impl core::fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "opc.tcp://{open}{}{close}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        for (url, host, port, path) in [
            ("opc.tcp://plc:4841/a/b", "plc", 4841, "/a/b"),
            ("OPC.TCP://plc", "plc", 4840, ""),
            ("plc:1", "plc", 1, ""),
            ("[::1]:1", "::1", 1, ""),
            ("opc.tcp://[::1]", "::1", 4840, ""),
        ] {
            let parsed = EndpointUrl::parse(url).unwrap();
            assert_eq!((&*parsed.host, parsed.port, &*parsed.path), (host, port, path));
            assert_eq!(EndpointUrl::parse(&parsed.to_string()), Ok(parsed));
        }
        for bad in ["http://plc", "", "opc.tcp://", "plc:port", "plc:70000", "[::1]x", ":1"] {
            assert_eq!(EndpointUrl::parse(bad), Err(Misuse::Url), "{bad}");
        }
    }

    #[test]
    fn passwords_are_not_printed() {
        let identity = Identity::UserName { name: "joe".into(), password: "hunter2".into() };
        assert!(!format!("{identity:?}").contains("hunter2"));
    }
}
