//! The connection options of all client commands.

use crate::endpoint::Endpoint;
use crate::span;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use taktwerk_files::SECRET_LEN_MAX;

/// Server, user and security.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionArgs {
    /// The server: opc.tcp://host[:4840][/path], or host[:port]
    #[arg(value_name = "URL", env = "TAKTWERK_ENDPOINT")]
    pub endpoint: Endpoint,

    /// User and security.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// Repeated for each option, because a group heading would also apply to options that a command adds after it.
const HEADING: &str = "Connection";

/// User and security.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecurityArgs {
    /// User name. Without it, the session is anonymous.
    #[arg(short, long, value_name = "NAME", help_heading = HEADING, env = "TAKTWERK_USER")]
    pub user: Option<String>,

    /// Password. Other users of this machine can see it: prefer --password-file.
    #[arg(short, long, value_name = "TEXT", help_heading = HEADING, hide_short_help = true, requires = "user", conflicts_with = "password_file")]
    pub password: Option<String>,

    /// File whose first line is the password.
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "user", env = "TAKTWERK_PASSWORD_FILE")]
    pub password_file: Option<PathBuf>,

    /// File with an access token (JWT).
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, conflicts_with = "user", env = "TAKTWERK_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,

    /// Send the password or token unencrypted. Not needed on loopback. Also applies to brokers.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    pub allow_plaintext_password: bool,

    /// SecurityPolicy: None, a name such as Basic256Sha256, or best (the strongest of both sides, never None).
    /// Default: None for servers on this machine, best for others and with --cert.
    #[arg(long, value_name = "POLICY", help_heading = HEADING, env = "TAKTWERK_POLICY")]
    pub policy: Option<String>,

    /// MessageSecurityMode: Sign or SignAndEncrypt. Default: SignAndEncrypt.
    #[arg(long, value_name = "MODE", help_heading = HEADING, hide_short_help = true, env = "TAKTWERK_MODE")]
    pub mode: Option<String>,

    /// Client certificate, DER or PEM. Default: the one in --pki, which is created if it is missing.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, requires = "key")]
    pub cert: Option<PathBuf>,

    /// Private key of --cert: PKCS #8 or PKCS #1, DER or PEM.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, requires = "cert")]
    pub key: Option<PathBuf>,

    /// User certificate to log in with, DER or PEM.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, requires = "user_key", conflicts_with = "user", env = "TAKTWERK_USER_CERT")]
    pub user_cert: Option<PathBuf>,

    /// Private key of --user-cert: PKCS #8 or PKCS #1, DER or PEM.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, requires = "user_cert", env = "TAKTWERK_USER_KEY")]
    pub user_key: Option<PathBuf>,

    /// Directory with the client certificate and the trust list. Default: ~/.local/share/taktwerk/pki.
    #[arg(long, value_name = "DIR", help_heading = HEADING, env = "TAKTWERK_PKI")]
    pub pki: Option<PathBuf>,

    /// Trust the server permanently at the first connection. Use it only on a network that you trust.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    pub trust_on_first_use: bool,

    /// Write keys to the file in OPCUA_KEYLOGFILE and messages to the file in OPCUA_PCAP_FILE, for Wireshark. Together
    /// they reveal everything, including the password.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    pub allow_key_log: bool,

    /// Requested lifetime of the channel's keys. The server may shorten it.
    #[arg(long, value_name = "SPAN", help_heading = HEADING, hide_short_help = true, default_value = "3600s", value_parser = span::seconds)]
    pub token_lifetime: Duration,

    /// Timeout of each request.
    #[arg(long, value_name = "SPAN", help_heading = HEADING, default_value = "10s", value_parser = span::seconds)]
    pub timeout: Duration,
}

impl SecurityArgs {
    /// The password from the option or the file; empty if there is none.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn read_password(&self) -> Result<String, SecretError> {
        let Some(path) = &self.password_file else { return Ok(self.password.clone().unwrap_or_default()) };
        Ok(read(path)?.lines().next().unwrap_or_default().to_owned())
    }

    /// The access token, if there is one.
    ///
    /// # Errors
    /// If its file cannot be read or is empty.
    pub fn read_token(&self) -> Result<Option<String>, SecretError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let token = read(path)?.trim().to_owned();
        if token.is_empty() {
            return Err(SecretError::NoToken(path.clone()));
        }
        Ok(Some(token))
    }

    /// Sets the default policy for a server. Call it before the server's address is replaced by that of a relay.
    pub fn settle_for(&mut self, server: &Endpoint) {
        if self.policy.is_none() && self.mode.is_none() && self.cert.is_none() {
            self.policy = Some(if server.is_loopback() { "None" } else { "best" }.to_owned());
        }
    }

    /// Whether there is a secret to send.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.user.is_some() || self.token_file.is_some()
    }
}

/// Reading a secret from a file failed.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The token file is empty.
    #[error("{0} contains no token")]
    NoToken(PathBuf),
}

fn read(path: &Path) -> Result<String, SecretError> {
    taktwerk_files::read_text(path, SECRET_LEN_MAX)
        .map_err(|source| SecretError::Read { path: path.to_owned(), source })
}

/// The values without any option.
impl Default for SecurityArgs {
    fn default() -> Self {
        Self {
            user: None,
            password: None,
            password_file: None,
            token_file: None,
            allow_plaintext_password: false,
            policy: None,
            mode: None,
            cert: None,
            key: None,
            user_cert: None,
            user_key: None,
            pki: None,
            trust_on_first_use: false,
            allow_key_log: false,
            token_lifetime: Duration::from_secs(3_600),
            timeout: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        connection: ConnectionArgs,
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Command::try_parse_from(["x", "host", "-p", "secret"]).is_err());
        assert!(Command::try_parse_from(["x", "host", "-u", "joe", "--token-file", "token"]).is_err());
        assert!(Command::try_parse_from(["x", "http://host"]).is_err());
        assert!(Command::try_parse_from(["x", "host", "--cert", "certificate.pem"]).is_err());
        assert!(Command::try_parse_from(["x", "host", "--user-cert", "olaf.pem"]).is_err());
        let two_users = ["x", "host", "-u", "olaf", "--user-cert", "olaf.pem", "--user-key", "olaf.key"];
        assert!(Command::try_parse_from(two_users).is_err());
    }
}
