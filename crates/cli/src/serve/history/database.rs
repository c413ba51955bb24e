//! History in PostgreSQL: connection settings and the store.

use crate::failure::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use taktwerk::history::{HistoryOpener, HistoryStore};
use taktwerk_config::{ConfigFile, line_of};
use taktwerk_gateway::connect::is_local;
use taktwerk_gateway::database::Tls;
use taktwerk_history::PostgresStore;
use taktwerk_history::postgres::{Config, Host, SslMode, explained};
use taktwerk_server::history::StoreError;

/// The environment variable with the password, if no file is set.
const PASSWORD: &str = "TAKTWERK_HISTORY_PASSWORD";
/// Maximum length of a password in a file. A longer content is probably the wrong file.
const PASSWORD_MAX: u64 = 4096;

/// Address and credentials of the database.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    config: Config,
    is_tls: bool,
    password_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    /// The configuration file and line of the address, for errors.
    place: String,
}

impl Settings {
    /// Reads the settings of a configuration, which must name a database.
    pub(super) fn of(file: &ConfigFile) -> Result<Self, Failure> {
        let section = &file.config().history;
        let at = section.postgresql.as_ref().map_or(0, |url| url.span().start);
        let url = section.postgresql.as_ref().map_or("", |url| url.get_ref());
        let place = format!("{}:{}: history.postgresql", file.path().display(), line_of(file.text(), at));
        let wrong = |problem: &str, hint: &str| Failure::Usage(format!("{place}: {problem}; {hint}"));
        let hint = "write \"postgresql://user@host:5432/database\"";
        let mut config: Config = url.parse().map_err(|error| wrong(&explained(&error), hint))?;
        if config.get_password().is_some() {
            let hint = format!(
                "write it into a file that only the server can read, and name that with password_file; or set the environment \
                 variable {PASSWORD}"
            );
            return Err(wrong("the address contains a password", &hint));
        }
        if config.get_user().is_none() {
            return Err(wrong("the address names no user", hint));
        }
        let is_here = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => is_local(host),
            Some(Host::Unix(_)) => true,
            None => return Err(wrong("the address names no host", hint)),
        };
        let is_tls = section.tls.unwrap_or(!is_here);
        config.ssl_mode(if is_tls { SslMode::Require } else { SslMode::Disable });
        let settings = Self {
            config,
            is_tls,
            password_file: section.password_file.as_deref().map(|path| file.resolve(path)),
            ca_file: section.ca_file.as_deref().map(|path| file.resolve(path)),
            place,
        };
        let mistake = |error| Failure::Usage(file.mistake_of("history.password_file", error, "").to_string());
        settings.password().map_err(mistake)?;
        Ok(settings)
    }

    /// Reads the password; `None` if there is none.
    fn password(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.password_file else { return Ok(std::env::var(PASSWORD).ok()) };
        let text = taktwerk_config::file::read_text(path, PASSWORD_MAX);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// The store of the server with this ApplicationUri. Values are deleted after `keep`; zero keeps them for ever.
    pub(super) fn open(self, uri: &str, keep: Duration) -> Result<HistoryOpener, Failure> {
        let tls = if self.is_tls {
            let tls = taktwerk_gateway::tls::ClientTls::trusting(self.ca_file.clone()).config();
            Some(tls.map_err(|error| Failure::Usage(format!("history.ca_file: {error}")))?)
        } else {
            // TLS needs a host name, and a Unix socket has none.
            None
        };
        let (place, uri) = (self.place.clone(), uri.to_owned());
        let open = move || {
            let settings = self.clone();
            let config = move || {
                let mut config = settings.config.clone();
                if let Some(password) = settings.password().map_err(StoreError::unavailable)? {
                    config.password(password);
                }
                Ok(config)
            };
            let opened = match &tls {
                Some(tls) => PostgresStore::open_with(config, Tls(tls.clone()), &uri, keep),
                None => PostgresStore::open_with(config, taktwerk_history::postgres::NoTls, &uri, keep),
            };
            let opened = opened.map_err(|error| {
                let message = format!("{place}: {}; {}", error.message, advice(&error.message));
                StoreError { message, ..error }
            });
            Ok(Arc::new(opened?) as Arc<dyn HistoryStore>)
        };
        let capabilities = PostgresStore::capabilities_of(keep);
        let opened = HistoryOpener::open(PostgresStore::KIND, capabilities, open);
        opened.map_err(|error| Failure::Environment(error.message))
    }
}

/// Advice for an error when opening the store.
fn advice(error: &str) -> &'static str {
    let known = [
        ("dropped", "the database must have all tables of the history, or none"),
        ("does not exist", "create it with `createdb` and `createuser`, or correct the address"),
        ("password", "set password_file, or correct the password and the user in the address"),
        ("no pg_hba.conf entry", "allow this host and user in the pg_hba.conf of the database"),
        ("permission denied", "grant the user CREATE in the schema, for the tables of the history"),
        ("server does not support TLS", "enable TLS there, or set tls = false on a trusted network"),
        ("failed to lookup address", "correct the host in the address"),
    ];
    let is_known = |(part, _): &&(&str, &str)| error.contains(part);
    let tls = || taktwerk_gateway::tls::advice(error);
    let found = known.iter().find(is_known).map(|(_, advice)| *advice).or_else(tls);
    found.unwrap_or("check that the database runs and that the address is correct")
}
