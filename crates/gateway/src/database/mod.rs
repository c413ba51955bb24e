//! PostgreSQL databases of destinations and leases: settings, connections, and TLS for connections made elsewhere.

mod tls;

pub use tls::Tls;

use crate::connect::is_local;
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::tls::ClientTls;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use tokio::sync::watch;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::Error;
use tokio_postgres::{Client, Config, NoTls};

/// Address and credentials of the database.
pub(crate) struct Database {
    config: Config,
    target: String,
    is_tls: bool,
    tls: ClientTls,
    password_file: Option<PathBuf>,
}

impl Database {
    /// Takes `tls`, `ca_file` and `password_file`; `url` is given with its line. `set` applies options that users cannot
    /// configure.
    pub(crate) fn take(
        fields: &mut Fields,
        (line, url): (usize, &str),
        set: impl FnOnce(&mut Config),
    ) -> Result<Self, Mistake> {
        let hint = "write \"postgresql://user@host:5432/database\"";
        let wrong = |problem: &str, hint: &str| fields.mistake_in(line, "url", problem.to_owned(), hint);
        let mut config: Config = url.parse().map_err(|error| wrong(&told(&error), hint))?;
        if config.get_password().is_some() {
            let hint = "write it into a file, and name it with password_file";
            return Err(wrong("the URL has a password", hint));
        }
        let Some(host) = config.get_hosts().first() else { return Err(wrong("there is no host", hint)) };
        if config.get_user().is_none() {
            return Err(wrong("there is no user", hint));
        }
        let (target, is_here) = match host {
            Host::Tcp(host) => {
                let port = config.get_ports().first().copied().unwrap_or(5432);
                (crate::connect::target(host, port), is_local(host))
            }
            Host::Unix(folder) => (folder.display().to_string(), true),
        };
        let is_tls = fields.flag("tls")?.unwrap_or(!is_here);
        set(&mut config);
        config.ssl_mode(if is_tls { SslMode::Require } else { SslMode::Disable });
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        Ok(Self {
            config,
            target: format!("PostgreSQL {target}"),
            is_tls,
            tls: ClientTls::take(fields, is_tls)?,
            password_file: fields.text("password_file")?.map(|file| folder.join(file)),
        })
    }

    /// The name in messages.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Whether connections require TLS.
    #[cfg(test)]
    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls && self.config.get_ssl_mode() == SslMode::Require
    }

    /// Converts an error into a fault of this database.
    pub(crate) fn failed(&self, error: &Error) -> Fault {
        Fault::other(self.target.as_str(), told(error))
    }

    /// Connects. The connection is closed when the client is dropped.
    pub(crate) async fn connect(&self) -> Result<Client, Fault> {
        self.connect_watched().await.map(|(client, _)| client)
    }

    /// As [`Self::connect`]. The receiver is closed when the connection has ended for any reason.
    pub(crate) async fn connect_watched(&self) -> Result<(Client, watch::Receiver<()>), Fault> {
        let mut config = self.config.clone();
        if let Some(file) = &self.password_file {
            // Read the file each time, because passwords change.
            let text = taktwerk_config::file::read_text(file, 4096);
            let text = text.map_err(|error| Fault::unreadable("password_file", file, &error))?;
            config.password(text.trim_end_matches(['\r', '\n']));
        }
        let driver: BoxFuture<'static, ()>;
        let client = if self.is_tls {
            let tls = Tls(self.tls.config()?);
            let (client, connection) = config.connect(tls).await.map_err(|error| self.failed(&error))?;
            driver = Box::pin(async move { drop(connection.await) });
            client
        } else {
            let (client, connection) = config.connect(NoTls).await.map_err(|error| self.failed(&error))?;
            driver = Box::pin(async move { drop(connection.await) });
            client
        };
        let (is_there, ended) = watch::channel(());
        tokio::spawn(async move {
            driver.await;
            drop(is_there);
        });
        Ok((client, ended))
    }
}

/// The text of an error with its cause.
pub(crate) fn told(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        return match error.hint() {
            Some(hint) => format!("{}; {hint}", error.message()),
            None => error.message().to_owned(),
        };
    }
    let told = match std::error::Error::source(error) {
        Some(cause) => match cause.downcast_ref::<std::io::Error>() {
            Some(io) => crate::fault::plain(io),
            None => format!("{error}: {cause}"),
        },
        None => error.to_string(),
    };
    if told.contains("server does not support TLS") {
        return "it does not offer TLS; enable it there, or set tls = false on a trusted network".to_owned();
    }
    crate::tls::advice(&told).map_or(told, str::to_owned)
}
