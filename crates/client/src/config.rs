//! Settings of a client, and what it is told to connect to.

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
    /// Counts the changes of the trust lists that the provider of `channel` goes by. When it moves, the server's
    /// certificate is validated again, with the next message or timer; if it is refused the connection ends
    /// (Part 12 §7.8.2.5).
    pub trust_list_changes: Arc<AtomicU64>,
    /// Our ApplicationUri, where no certificate says it.
    pub application_uri: Box<str>,
    /// Our ProductUri.
    pub product_uri: Box<str>,
    /// Our name for people.
    pub application_name: Box<str>,
    /// How long the server shall keep a session that has lost its connection, in milliseconds. Default 60 000.
    pub session_timeout_ms: f64,
    /// How long to wait for an answer, unless a request says otherwise. Default 10 s.
    pub request_timeout: Duration,
    /// Ask the server for its state when nothing has come from it for so long. Default 10 s.
    pub idle_probe: Duration,
    /// What is accepted in responses.
    pub decode_limits: DecodeLimits,
    /// Lifetime to ask for security tokens, in milliseconds. Default 3 600 000.
    pub token_lifetime_ms: u32,
    /// Most requests outstanding at once, Publish requests not counted. Default 1 024.
    pub outstanding_max: usize,
    /// Most parts of a split request outstanding at once. Default 4: the server is kept busy, not flooded.
    pub parts_in_flight_max: usize,
    /// Most Publish requests in flight. Default 64.
    pub publish_max: usize,
    /// Most notification messages kept while a gap in front of them is being filled, per subscription. Default 256.
    pub gap_messages_max: usize,
    /// Read the server's OperationLimits and NamespaceArray after connecting. Default true; load generators save the
    /// round trip.
    pub read_limits: bool,
    /// Call ResendData when notifications were lost for good (Part 5 §9.2). Default true.
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

/// How a lost connection is sought again: exponential back-off with jitter, so that a thousand clients of a
/// restarted server do not come back in the same instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// Whether to reconnect at all. Default true.
    pub enabled: bool,
    /// Whether the first connection is retried as well. Default false: a mistyped name should be told at once.
    pub retry_first: bool,
    /// Whether to go on after the server has refused the user. Default true: a server may not know its users for a while. False
    /// for clients that log on for a person: the password has changed, and more attempts with the old one lock the user out.
    pub retry_refused_user: bool,
    /// Delay before the first attempt. Default 100 ms.
    pub delay_min: Duration,
    /// Longest delay. Default 30 s.
    pub delay_max: Duration,
    /// Give up after so many attempts in a row; `None` is never. Default `None`.
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

/// Which security the endpoint must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Security {
    /// For a client that has a certificate [`Self::Best`], for one that has none no security: what is chosen does not
    /// hang on a list of endpoints that anybody on the way can edit.
    #[default]
    Automatic,
    /// The strongest that both sides have; never none.
    Best,
    /// The strongest that both sides have, and none if the server offers nothing else. Whoever can change what the server
    /// says of its endpoints can choose none. Passwords are not sent then.
    BestOrNone,
    /// Exactly this.
    Exactly(SecurityPolicy, MessageSecurityMode),
}

/// Who the user is (Part 4 §7.40).
#[derive(Debug, Clone, Default)]
pub enum Identity {
    /// Nobody in particular.
    #[default]
    Anonymous,
    /// A name and a password.
    UserName {
        /// The name.
        name: Box<str>,
        /// The password. Not printed by `Debug`.
        password: Secret,
    },
    /// A certificate whose key the given provider holds as its own.
    X509 {
        /// Signs with the user's key and knows the user's certificate.
        provider: Arc<dyn Provider>,
    },
    /// A token of an authorization service, for example a JSON Web Token (Part 6 §6.5).
    IssuedToken {
        /// The token. Not printed by `Debug`.
        token: Secret,
    },
}

/// Text that does not show up in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// The text itself.
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

/// What to connect to.
#[derive(Debug, Clone)]
pub struct Target {
    /// The server's URL.
    pub url: EndpointUrl,
    /// Which security the endpoint must have.
    pub security: Security,
    /// Who the user is.
    pub identity: Identity,
    /// A password may travel in the clear. Default false.
    pub allow_plaintext_password: bool,
    /// Ask the server for its endpoints first. Default true. Without, [`Security::Exactly`] None is used, or the
    /// certificate below.
    pub discover: bool,
    /// The server's certificate, for secured connections without discovery.
    pub server_certificate: Option<Arc<[u8]>>,
    /// Create a session. Default true. Without, only the services that need none can be used: discovery.
    pub session: bool,
    /// What the session is called in the server's diagnostics.
    pub session_name: Box<str>,
    /// Languages the user prefers, best first.
    pub locale_ids: Vec<Box<str>>,
    /// Where to connect to instead of the server's own host and port: a relay on the way. The server is told its own URL,
    /// and its certificate has to name its own host. Default: nowhere.
    pub via: Option<EndpointUrl>,
}

impl Target {
    /// An anonymous session with the best security there is.
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

    /// An anonymous session without security and without asking for endpoints: the fewest round trips.
    ///
    /// # Errors
    /// [`Misuse::Url`].
    pub fn direct(url: &str) -> Result<Self, Misuse> {
        let security = Security::Exactly(SecurityPolicy::None, MessageSecurityMode::None);
        Ok(Self { security, discover: false, ..Self::new(url)? })
    }
}

/// An `opc.tcp` URL taken apart (Part 6 §7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    /// The host name or address, without brackets.
    pub host: Box<str>,
    /// The port; 4840 if the URL names none.
    pub port: u16,
    /// What follows, with its slash; often empty.
    pub path: Box<str>,
}

/// The port registered for OPC UA.
pub const DEFAULT_PORT: u16 = 4840;

impl EndpointUrl {
    /// Reads `opc.tcp://host[:port][/path]`; the scheme may be left out.
    ///
    /// # Errors
    /// [`Misuse::Url`] if there is another scheme, no host, or a port that is no number.
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
    fn urls_are_taken_apart() {
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
