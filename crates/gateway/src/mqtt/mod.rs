//! Connections to MQTT brokers, for sources and destinations. [`client`]: a common interface for both protocol versions.

pub mod client;

use crate::connect::{host_and_port, is_local};
use crate::fields::{Fields, Mistake};
use crate::tls::ClientTls;
use core::time::Duration;
use std::path::PathBuf;

/// A broker with its connection settings.
#[derive(Debug, Clone)]
pub struct Broker {
    host: String,
    port: u16,
    is_tls: bool,
    tls: ClientTls,
    user: Option<(String, PathBuf)>,
    client_id: String,
    has_client_id: bool,
    is_v5: bool,
    /// Longest payload in bytes.
    pub payload_max: usize,
    keep_alive: Duration,
}

impl Broker {
    /// Takes the settings of a broker. `name` is that of the source or destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, name: &str) -> Result<Self, Mistake> {
        let (line, url) = fields.required("url", "\"mqtt://broker:1883\"")?;
        let (is_tls, rest) = match (url.strip_prefix("mqtt://"), url.strip_prefix("mqtts://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, ""),
        };
        let address = host_and_port(rest.trim_end_matches('/'), if is_tls { 8883 } else { 1883 });
        let Some((host, port)) = address else {
            let hint = "write \"mqtt://host:1883\", or \"mqtts://host:8883\" for TLS; the user has a setting of its own";
            return Err(fields.mistake_in(line, "url", "this is no URL of a broker", hint));
        };
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        let user = match (fields.text("user")?, fields.text("password_file")?) {
            (Some(user), Some(file)) => Some((user, folder.join(file))),
            (None, None) => None,
            _ => {
                return Err(
                    fields.mistake("a user needs a name and a password", "set user and password_file")
                );
            }
        };
        let is_open = fields.flag("allow_plaintext_password")?.unwrap_or(false);
        if user.is_some() && !is_tls && !is_local(&host) && !is_open {
            let hint = "use mqtts://, or set allow_plaintext_password = true on a trusted network";
            return Err(fields.mistake("the password would cross the network unencrypted", hint));
        }
        let client_id = fields.text("client_id")?;
        Ok(Self {
            host,
            port,
            is_tls,
            tls: ClientTls::take(fields, is_tls)?,
            user,
            has_client_id: client_id.is_some(),
            client_id: client_id.unwrap_or_else(|| format!("taktwerk-{name}-{}", std::process::id())),
            is_v5: fields.word("version", &[("3.1.1", false), ("5", true)])?.unwrap_or(false),
            payload_max: fields.integer("payload_max", 1, 64 << 20)?.unwrap_or(256 << 10) as usize,
            keep_alive: fields
                .span("keep_alive")?
                .unwrap_or(Duration::from_secs(10))
                .max(Duration::from_secs(1)),
        })
    }

    /// Sets the client id, unless it is configured.
    #[must_use]
    pub fn named(mut self, client_id: String) -> Self {
        if !self.has_client_id {
            self.client_id = client_id;
        }
        self
    }

    /// Host and port, for messages.
    #[must_use]
    pub fn target(&self) -> String {
        crate::connect::target(&self.host, self.port)
    }

    /// A short description.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("MQTT {} {}", if self.is_v5 { "5" } else { "3.1.1" }, self.target())
    }
}
