//! NATS servers of destinations and leases: settings and connections.

use crate::connect::{host_and_port, is_local};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::tls::ClientTls;
use async_nats::{Client, ConnectOptions};
use core::time::Duration;
use std::path::PathBuf;

/// Address and credentials of the server.
pub(crate) struct NatsServer {
    address: String,
    target: String,
    is_tls: bool,
    tls: ClientTls,
    user: Option<(String, PathBuf)>,
    credentials_file: Option<PathBuf>,
}

impl NatsServer {
    /// Takes `user`, `password_file`, `allow_plaintext_password`, `credentials_file`, `ca_file`,
    /// `certificate_file` and `key_file`; `url` is given with its line.
    pub(crate) fn take(fields: &mut Fields, (line, url): (usize, &str)) -> Result<Self, Mistake> {
        let (is_tls, rest) = match (url.strip_prefix("nats://"), url.strip_prefix("tls://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, ""),
        };
        let Some((host, port)) = host_and_port(rest.trim_end_matches('/'), 4222) else {
            let hint =
                "write \"nats://host:4222\", or \"tls://host:4222\"; the user has a setting of its own";
            return Err(fields.mistake_in(line, "url", "this is no URL of a NATS server", hint));
        };
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        let user = match (fields.text("user")?, fields.text("password_file")?) {
            (Some(user), Some(file)) => Some((user, folder.join(file))),
            (None, None) => None,
            _ => {
                let hint = "set user and password_file";
                return Err(fields.mistake("a user needs a name and a password", hint));
            }
        };
        let is_open = fields.flag("allow_plaintext_password")?.unwrap_or(false);
        if user.is_some() && !is_tls && !is_local(&host) && !is_open {
            let hint = "use tls://, or set allow_plaintext_password = true on a trusted network";
            return Err(fields.mistake("the password would cross the network unencrypted", hint));
        }
        let target = crate::connect::target(&host, port);
        Ok(Self {
            address: format!("{}://{target}", if is_tls { "tls" } else { "nats" }),
            target,
            is_tls,
            tls: ClientTls::take(fields, is_tls)?,
            user,
            credentials_file: fields.text("credentials_file")?.map(|file| folder.join(file)),
        })
    }

    /// Host and port.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Converts an error into a fault of this server.
    pub(crate) fn failed(&self, error: &dyn core::fmt::Display) -> Fault {
        let told = error.to_string();
        Fault::other(self.target.as_str(), crate::tls::advice(&told).unwrap_or(&told))
    }

    /// Connects. `set` applies options that users cannot configure.
    pub(crate) async fn connect(
        &self,
        deadline: Duration,
        set: impl FnOnce(ConnectOptions) -> ConnectOptions,
    ) -> Result<Client, Fault> {
        let mut options = set(ConnectOptions::new().connection_timeout(deadline));
        if self.is_tls {
            let config = self.tls.config()?;
            options = options.require_tls(true).tls_client_config((*config).clone());
        }
        if let Some((user, file)) = &self.user {
            let password = taktwerk_config::file::read_text(file, 4096);
            let password = password.map_err(|error| Fault::unreadable("password_file", file, &error))?;
            options =
                options.user_and_password(user.clone(), password.trim_end_matches(['\r', '\n']).to_owned());
        }
        if let Some(file) = &self.credentials_file {
            let text = taktwerk_config::file::read_text(file, 64 << 10);
            let text = text.map_err(|error| Fault::unreadable("credentials_file", file, &error))?;
            options = options
                .credentials(&text)
                .map_err(|error| Fault::connect(file.display().to_string(), &error))?;
        }
        options.connect(&self.address).await.map_err(|error| self.failed(&error))
    }
}
