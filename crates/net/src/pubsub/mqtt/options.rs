//! The broker's URL and options.

use super::super::PubSubError;
use super::tls;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::rustls::ClientConfig;

/// MQTT version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MqttVersion {
    /// 3.1.1, which every broker supports.
    #[default]
    V311,
    /// 5: messages carry their content type.
    V5,
}

/// MQTT's quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum QualityOfService {
    /// 0.
    #[default]
    AtMostOnce,
    /// 1.
    AtLeastOnce,
    /// 2.
    ExactlyOnce,
}

/// How a publisher announces its status (Part 14 §7.3.4.7.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StatusMessages {
    /// No Status messages.
    None,
    /// When the status changes. The broker publishes the last will when it has lost the publisher.
    #[default]
    LastWill,
    /// In every interval, with the time of the next message. Needed if several connections share a PublisherId: a last
    /// will of one would speak for all.
    Cyclic(Duration),
}

/// User name and password of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name.
    pub user: String,
    /// The password. `Debug` does not print it.
    pub password: String,
}

impl core::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Options of broker connections.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MqttOptions {
    /// MQTT version.
    pub version: MqttVersion,
    /// Quality of service if the configuration asks for no delivery guarantee.
    pub quality_of_service: QualityOfService,
    /// The client id; if empty, made from the process and the connection.
    pub client_id: String,
    /// User and password; if `None`, those in the URL.
    pub credentials: Option<Credentials>,
    /// Send the password also to brokers that are neither on this machine (localhost, 127.0.0.1, \[::1\]) nor reached
    /// over TLS. Others on the network can read it then.
    pub allow_plaintext_password: bool,
    /// Certificates of the authorities that the broker's certificate is verified against, PEM. `None` uses the
    /// system's.
    pub ca_file: Option<PathBuf>,
    /// Client certificate and its key, PEM, for brokers that require one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// First level of the default topics.
    pub prefix: String,
    /// Maximum messages that wait while the broker is unavailable. Beyond, the oldest are dropped and counted.
    pub outbox: usize,
    /// Idle time after which the client sends a ping.
    pub keep_alive: Duration,
    /// How publishers announce their status.
    pub status: StatusMessages,
    /// Whether subscribers receive the Status messages of publishers, as announcements.
    pub receive_status: bool,
}

impl Default for MqttOptions {
    fn default() -> Self {
        Self {
            version: MqttVersion::V311,
            quality_of_service: QualityOfService::AtMostOnce,
            client_id: String::new(),
            credentials: None,
            allow_plaintext_password: false,
            ca_file: None,
            certificate: None,
            prefix: "opcua".to_owned(),
            outbox: 1000,
            keep_alive: Duration::from_secs(10),
            status: StatusMessages::LastWill,
            receive_status: false,
        }
    }
}

/// A broker, parsed from its URL.
#[derive(Clone)]
pub(super) struct Broker {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) credentials: Option<Credentials>,
    pub(super) tls: Option<Arc<ClientConfig>>,
}

impl Broker {
    /// Parses `mqtt[s]://[user:password@]host[:port]`.
    pub(super) fn parse(url: &str, options: &MqttOptions) -> Result<Self, PubSubError> {
        let wrong = |reason: &str| PubSubError::address(url, reason);
        let (rest, port, is_tls) = match (url.strip_prefix("mqtt://"), url.strip_prefix("mqtts://")) {
            (Some(rest), _) => (rest, 1883, false),
            (_, Some(rest)) => (rest, 8883, true),
            _ => return Err(wrong("write mqtt://host[:1883] or mqtts://host[:8883]")),
        };
        let rest = rest.split('/').next().unwrap_or_default();
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let in_url = user.map(|user| {
            let (user, password) = user.split_once(':').unwrap_or((user, ""));
            Credentials { user: user.to_owned(), password: password.to_owned() }
        });
        let (host, port) = match host.rsplit_once(':') {
            Some((name, number)) if !number.ends_with(']') => {
                (name, number.parse().map_err(|_| wrong("the port is not a number up to 65535"))?)
            }
            _ => (host, port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        let credentials = options.credentials.clone().or(in_url);
        let has_password = credentials.as_ref().is_some_and(|known| !known.password.is_empty());
        if has_password && !is_tls && !options.allow_plaintext_password && !is_loopback(&host) {
            return Err(PubSubError::PlaintextPassword {
                url: taktwerk_pubsub::config::without_credentials(url),
            });
        }
        let tls = if is_tls { Some(tls::config(options)?) } else { None };
        Ok(Self { host, port, credentials, tls })
    }
}

/// Whether the host is this machine. Names are not resolved, because the answer would come from the network.
fn is_loopback(host: &str) -> bool {
    let address: Result<core::net::IpAddr, _> = host.parse();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plaintext_passwords_are_refused() {
        let refused = |url: &str, options: &MqttOptions| match Broker::parse(url, options) {
            Err(PubSubError::PlaintextPassword { url }) => Some(url),
            _ => None,
        };
        let default = MqttOptions::default();
        for url in ["mqtt://me:secret@10.0.0.1", "mqtt://me:secret@broker:99/x", "mqtt://me:secret@[fe80::1]"]
        {
            let shown = refused(url, &default);
            assert!(shown.as_ref().is_some_and(|shown| !shown.contains("secret")), "{url}: {shown:?}");
        }
        // Names are not resolved.
        assert!(refused("mqtt://me:secret@localhost.example", &default).is_some());
        for url in [
            "mqtt://broker",
            "mqtt://me@broker",
            "mqtt://me:secret@localhost",
            "mqtt://me:secret@LOCALHOST:1883",
            "mqtt://me:secret@127.1.2.3",
            "mqtt://me:secret@[::1]:1883",
            "mqtts://me:secret@broker",
        ] {
            assert_eq!(refused(url, &default), None, "{url}");
        }
        let known = Credentials { user: "me".to_owned(), password: "secret".to_owned() };
        let mut options = MqttOptions { credentials: Some(known), ..MqttOptions::default() };
        assert!(refused("mqtt://broker", &options).is_some());
        options.allow_plaintext_password = true;
        assert!(Broker::parse("mqtt://broker", &options).is_ok());
        let error = PubSubError::PlaintextPassword { url: "mqtt://broker".to_owned() };
        assert_eq!(error.status(), taktwerk_types::StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
        let text = error.to_string();
        assert!(text.contains("mqtts://") && text.contains("--allow-plaintext-password"), "{text}");
    }

    #[test]
    fn urls() {
        let parse = |url: &str| {
            Broker::parse(url, &MqttOptions::default()).map(|broker| {
                let user = broker.credentials.map(|it| format!("{}/{}", it.user, it.password));
                (broker.host, broker.port, user, broker.tls.is_some())
            })
        };
        assert_eq!(parse("mqtt://host").unwrap(), ("host".to_owned(), 1883, None, false));
        assert_eq!(parse("mqtt://[::1]:7/").unwrap(), ("::1".to_owned(), 7, None, false));
        let user = Some("me/a:b".to_owned());
        assert_eq!(parse("mqtt://me:a:b@127.0.0.1:99").unwrap(), ("127.0.0.1".to_owned(), 99, user, false));
        for wrong in ["tcp://host", "mqtt://", "mqtt://host:x", "mqtt://host:70000"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let known = Credentials { user: "me".to_owned(), password: "secret".to_owned() };
        let printed = format!("{:?}", MqttOptions { credentials: Some(known), ..MqttOptions::default() });
        assert!(printed.contains("\"me\"") && !printed.contains("secret"), "{printed}");
        let missing = MqttOptions { ca_file: Some("/nowhere/ca.pem".into()), ..MqttOptions::default() };
        let error = Broker::parse("mqtts://host", &missing).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("/nowhere/ca.pem")));
        let endless = MqttOptions { ca_file: Some("/dev/zero".into()), ..MqttOptions::default() };
        let error = Broker::parse("mqtts://host", &endless).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("name a regular file")));
    }
}
