//! The options that every client command shares.

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::span;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Which server, as whom, with which security.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectionArgs {
    /// The server: opc.tcp://host[:4840][/path], or host[:port].
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
    /// User name; anonymous without one.
    #[arg(short, long, value_name = "NAME", help_heading = HEADING, env = "TAKTWERK_USER")]
    pub(crate) user: Option<String>,

    /// Password. It is visible to other users of this machine: --password-file is better.
    #[arg(short, long, value_name = "TEXT", help_heading = HEADING, requires = "user", conflicts_with = "password_file")]
    pub(crate) password: Option<String>,

    /// File whose first line is the password.
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "user", env = "TAKTWERK_PASSWORD_FILE")]
    pub(crate) password_file: Option<PathBuf>,

    /// Send the password although nothing protects it on its way. On loopback nothing has to.
    #[arg(long, help_heading = HEADING, requires = "user")]
    pub(crate) allow_plaintext_password: bool,

    /// SecurityPolicy: None is the only one yet.
    #[arg(long, value_name = "POLICY", help_heading = HEADING, default_value = "None")]
    policy: String,

    /// MessageSecurityMode: None is the only one yet.
    #[arg(long, value_name = "MODE", help_heading = HEADING, default_value = "None")]
    mode: String,

    /// How long to wait for each answer.
    #[arg(long, value_name = "SPAN", help_heading = HEADING, default_value = "10s", value_parser = span::seconds)]
    pub(crate) timeout: Duration,
}

impl SecurityArgs {
    /// Refuses what cannot be done yet, before anything is sent.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let name = self.policy.rsplit('#').next().unwrap_or_default();
        if !name.eq_ignore_ascii_case("none") || !self.mode.eq_ignore_ascii_case("none") {
            return Err(Failure::Connect(format!(
                "SecurityPolicy {} with mode {} is not supported yet: only None is; leave out --policy and --mode if \
                 the server offers an endpoint without security",
                self.policy, self.mode
            )));
        }
        Ok(())
    }

    /// The password, wherever it stands; empty if none was given.
    pub(crate) fn read_password(&self) -> Result<String, Failure> {
        let Some(path) = &self.password_file else { return Ok(self.password.clone().unwrap_or_default()) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Environment(format!("cannot read {}: {error}", path.display())))?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
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
    fn policies_other_than_none_are_refused_clearly() {
        let parse = |arguments: &[&str]| {
            Command::try_parse_from([&["x"], arguments].concat()).unwrap().connection.security
        };
        assert!(parse(&["host"]).check().is_ok());
        assert!(
            parse(&["host", "--policy", "http://opcfoundation.org/UA/SecurityPolicy#None"]).check().is_ok()
        );
        let error = parse(&["host", "--policy", "Basic256Sha256"]).check().unwrap_err();
        assert!(error.to_string().contains("Basic256Sha256"), "{error}");
        assert!(Command::try_parse_from(["x", "host", "-p", "secret"]).is_err());
        assert!(Command::try_parse_from(["x", "http://host"]).is_err());
    }
}
