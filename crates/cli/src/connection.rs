//! The options that every client command shares.

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::span;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which server, as whom, with which security.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectionArgs {
    /// The server: opc.tcp://host[:4840][/path], or host[:port]
    #[arg(value_name = "URL", env = "TAKTWERK_ENDPOINT")]
    pub(crate) endpoint: Endpoint,

    #[command(flatten)]
    pub(crate) security: SecurityArgs,
}

/// Stands at each option, because a heading of the group would pass on to the options that a command adds behind it.
const HEADING: &str = "Connection";

/// As whom, with which security.
#[derive(Debug, Clone, Args)]
pub(crate) struct SecurityArgs {
    /// User name. Without it, the session is anonymous.
    #[arg(short, long, value_name = "NAME", help_heading = HEADING, env = "TAKTWERK_USER")]
    pub(crate) user: Option<String>,

    /// Password. Other users of this machine can see it: prefer --password-file.
    #[arg(short, long, value_name = "TEXT", help_heading = HEADING, hide_short_help = true, requires = "user", conflicts_with = "password_file")]
    pub(crate) password: Option<String>,

    /// File whose first line is the password.
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "user", env = "TAKTWERK_PASSWORD_FILE")]
    pub(crate) password_file: Option<PathBuf>,

    /// File with an access token (JWT).
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, conflicts_with = "user", env = "TAKTWERK_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Send the password or token unencrypted. Not needed on loopback. Also applies to brokers.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    pub(crate) allow_plaintext_password: bool,

    /// SecurityPolicy: None, a name such as Basic256Sha256, or best (the strongest of both sides, never None).
    /// Default: None for servers on this machine, best for others and with --cert.
    #[arg(long, value_name = "POLICY", help_heading = HEADING, env = "TAKTWERK_POLICY")]
    pub(crate) policy: Option<String>,

    /// MessageSecurityMode: Sign or SignAndEncrypt. Default: SignAndEncrypt.
    #[arg(long, value_name = "MODE", help_heading = HEADING, hide_short_help = true, env = "TAKTWERK_MODE")]
    pub(crate) mode: Option<String>,

    /// Client certificate, DER or PEM. Default: the one in --pki, which is created if it is missing.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of --cert: PKCS #8 or PKCS #1, DER or PEM.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// User certificate to log in with, DER or PEM.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, requires = "user_key", conflicts_with = "user", env = "TAKTWERK_USER_CERT")]
    pub(crate) user_cert: Option<PathBuf>,

    /// Private key of --user-cert: PKCS #8 or PKCS #1, DER or PEM.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true, requires = "user_cert", env = "TAKTWERK_USER_KEY")]
    pub(crate) user_key: Option<PathBuf>,

    /// Directory with the client certificate and the trust list. Default: ~/.local/share/taktwerk/pki.
    #[arg(long, value_name = "DIR", help_heading = HEADING, env = "TAKTWERK_PKI")]
    pub(crate) pki: Option<PathBuf>,

    /// Trust the server permanently at the first connection. Use it only on a network that you trust.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    pub(crate) trust_on_first_use: bool,

    /// Write keys to the file in OPCUA_KEYLOGFILE and messages to the file in OPCUA_PCAP_FILE, for Wireshark. Together
    /// they reveal everything, including the password.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    pub(crate) allow_key_log: bool,

    /// Requested lifetime of the channel's keys. The server may shorten it.
    #[arg(long, value_name = "SPAN", help_heading = HEADING, hide_short_help = true, default_value = "3600s", value_parser = span::seconds)]
    pub(crate) token_lifetime: Duration,

    /// Timeout of each request.
    #[arg(long, value_name = "SPAN", help_heading = HEADING, default_value = "10s", value_parser = span::seconds)]
    pub(crate) timeout: Duration,
}

impl SecurityArgs {
    /// The password, wherever it stands; empty if none was given.
    pub(crate) fn read_password(&self) -> Result<String, Failure> {
        let Some(path) = &self.password_file else { return Ok(self.password.clone().unwrap_or_default()) };
        Ok(read(path)?.lines().next().unwrap_or_default().to_owned())
    }

    /// The access token, if there is one.
    pub(crate) fn read_token(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let token = read(path)?.trim().to_owned();
        if token.is_empty() {
            return Err(Failure::Usage(format!("{} holds no token", path.display())));
        }
        Ok(Some(token))
    }

    /// Says which security a server is talked to with, if nothing was said: before its address is replaced by that of
    /// something in between.
    pub(crate) fn settle_for(&mut self, server: &Endpoint) {
        if self.policy.is_none() && self.mode.is_none() && self.cert.is_none() {
            self.policy = Some(if server.is_loopback() { "None" } else { "best" }.to_owned());
        }
    }

    /// The options that another program of ours needs to be let in as this one would be.
    pub(crate) fn to_options(&self) -> Vec<String> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let values = [
            ("--user", self.user.clone()),
            ("--password", self.password.clone()),
            ("--password-file", path(&self.password_file)),
            ("--token-file", path(&self.token_file)),
            ("--policy", self.policy.clone()),
            ("--mode", self.mode.clone()),
            ("--cert", path(&self.cert)),
            ("--key", path(&self.key)),
            ("--user-cert", path(&self.user_cert)),
            ("--user-key", path(&self.user_key)),
            ("--pki", path(&self.pki)),
        ];
        let switches = [
            ("--allow-plaintext-password", self.allow_plaintext_password),
            ("--trust-on-first-use", self.trust_on_first_use),
        ];
        let values = values.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten();
        let switches = switches.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name.to_owned());
        values.chain(switches).collect()
    }

    /// Whether there is a secret to be sent.
    pub(crate) fn has_secret(&self) -> bool {
        self.user.is_some() || self.token_file.is_some()
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::Environment(format!("cannot read {}: {error}", path.display())))
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

    fn parse(arguments: &[&str]) -> ConnectionArgs {
        Command::try_parse_from([&["x"], arguments].concat()).unwrap().connection
    }

    #[test]
    fn policy_and_mode_complete_each_other() {
        use crate::security::wanted;
        use taktwerk_client::config::Security;
        use taktwerk_crypto::{MessageSecurityMode as Mode, SecurityPolicy as Policy};
        let exactly = |policy, mode| Some(Security::Exactly(policy, mode));
        for (arguments, expected) in [
            (&["host"][..], Some(Security::Best)),
            (&["10.0.0.7:4841"], Some(Security::Best)),
            (&["localhost"], exactly(Policy::None, Mode::None)),
            (&["opc.tcp://127.0.0.1:4840"], exactly(Policy::None, Mode::None)),
            (&["[::1]"], exactly(Policy::None, Mode::None)),
            (&["localhost", "--cert", "a", "--key", "b"], Some(Security::Best)),
            (&["host", "--policy", "None"], exactly(Policy::None, Mode::None)),
            (
                &["host", "--policy", "http://opcfoundation.org/UA/SecurityPolicy#None"],
                exactly(Policy::None, Mode::None),
            ),
            (&["host", "--policy", "basic256sha256"], exactly(Policy::Basic256Sha256, Mode::SignAndEncrypt)),
            (
                &["host", "--policy", "ECC_nistP256_AesGcm", "--mode", "sign"],
                exactly(Policy::ECC_nistP256_AesGcm, Mode::Sign),
            ),
            (&["host", "--policy", "best"], Some(Security::Best)),
            (&["host", "--cert", "a", "--key", "b"], Some(Security::Best)),
            (&["host", "--mode", "Sign"], None),
            (&["host", "--policy", "best", "--mode", "Sign"], None),
            (&["host", "--policy", "None", "--mode", "Sign"], None),
            (&["host", "--policy", "Basic256Sha256", "--mode", "None"], None),
            (&["host", "--policy", "Basic512"], None),
        ] {
            let mut connection = parse(arguments);
            let found = wanted(&connection.endpoint, &connection.security).ok();
            assert_eq!(found, expected, "{arguments:?}");
            connection.security.settle_for(&connection.endpoint);
            let elsewhere: Endpoint = "localhost:1".parse().unwrap();
            assert_eq!(wanted(&elsewhere, &connection.security).ok(), expected, "{arguments:?}");
        }
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
