//! Options that publishing, listening and calling share.

use super::broker;
use super::keys::{KeyFile, Keys, guarded, warn_if_exposed};
use crate::connection::SecurityArgs;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::text_file;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use taktwerk::pubsub::config::{Configuration, binary_file, toml, with_password};
use taktwerk::pubsub::{MqttOptions, MqttVersion, QualityOfService};
use taktwerk::pubsub::{PubSubError, PubSubStartError, SecurityMode};
use taktwerk_config::file;
pub(super) use taktwerk_generator::pubsub::publisher_id;
use taktwerk_pki::permissions::Protection;

/// Default address: administratively scoped multicast, which does not leave the site.
pub(super) const URL: &str = "opc.udp://239.192.0.1:4840";

/// Message security.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// No protection.
    None,
    /// Signed: protected against forging.
    Sign,
    /// Signed and encrypted.
    SignAndEncrypt,
}

impl Mode {
    pub(crate) fn mode(self) -> SecurityMode {
        match self {
            Self::None => SecurityMode::None,
            Self::Sign => SecurityMode::Sign,
            Self::SignAndEncrypt => SecurityMode::SignAndEncrypt,
        }
    }
}

/// Address, configuration and security.
#[derive(Debug, Clone, Args)]
pub(super) struct CommonArgs {
    /// Address: opc.udp://host[:4840] (multicast or unicast), opc.eth://mac[:vlan[.priority]], or a broker:
    /// mqtt://host[:1883] and mqtts://[user:password@]host (binary), mqtt+json:// and mqtts+json:// (JSON). A password
    /// needs mqtts://, a broker on this machine, or --allow-plaintext-password. It is visible in the list of processes,
    /// so prefer --broker-password-file.
    #[arg(value_name = "URL", default_value = URL)]
    pub(super) url: String,

    /// The whole configuration from a file: TOML, or the standard binary file (.uabinary). URL is not used then.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Network interface, by name or address.
    #[arg(long, value_name = "NAME")]
    pub(super) interface: Option<String>,

    /// MQTT version: 3.1.1 or 5.
    #[arg(long, value_name = "VERSION", default_value = "3.1.1", value_parser = ["3.1.1", "5"])]
    pub(super) mqtt: String,

    /// MQTT quality of service: 0, 1 or 2.
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(super) qos: u8,

    /// File whose first line is the password for the user in the URL (mqtts://user@host) or in --config.
    #[arg(long, value_name = "FILE")]
    broker_password_file: Option<PathBuf>,

    /// CA certificates for the broker, PEM. Default: those of the system.
    #[arg(long, value_name = "FILE")]
    pub(super) broker_ca: Option<PathBuf>,

    /// Client certificate for the broker, PEM.
    #[arg(long, value_name = "FILE", requires = "broker_key")]
    broker_certificate: Option<PathBuf>,

    /// Private key of --broker-certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "broker_certificate")]
    broker_key: Option<PathBuf>,

    /// Run a broker at the URL's address in this process, for trials.
    #[arg(long)]
    embedded_broker: bool,

    /// Message security; needs --keys or --key-service. With --config it is the minimum: stronger settings there stay.
    #[arg(long, value_name = "MODE", value_enum, default_value = "none")]
    pub(super) security: Mode,

    /// File with the keys of the security group (`taktwerk pubsub keys` writes one). Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(super) keys: Vec<PathBuf>,

    /// Security key server (SKS, GetSecurityKeys) for groups without one in the configuration.
    #[arg(long, value_name = "SERVER", conflicts_with = "keys")]
    key_service: Option<Endpoint>,

    /// Security group of the keys.
    #[arg(long, value_name = "GROUP", requires = "key_service")]
    security_group: Option<String>,

    /// Security of connections to servers, for values (--from) and keys (--key-service).
    #[command(flatten)]
    pub(super) server: SecurityArgs,
}

impl CommonArgs {
    /// The configuration of --config, if given.
    pub(super) fn configuration(&self) -> Result<Option<Configuration>, Failure> {
        let Some(path) = &self.config else { return Ok(None) };
        let mut configuration = read(path)?;
        if let Some(interface) = &self.interface {
            for connection in &mut configuration.connections {
                connection.network_interface.clone_from(interface);
            }
        }
        if let Some(path) = &self.broker_password_file {
            let password = password(path).map_err(Failure::Usage)?;
            let mut is_used = false;
            for connection in &mut configuration.connections {
                if let Ok(url) = with_password(&connection.url, &password) {
                    connection.url = url;
                    is_used = true;
                }
            }
            if !is_used {
                return Err(Failure::Usage(
                    "--broker-password-file: no broker in --config has a user without a password (mqtts://user@host)"
                        .to_owned(),
                ));
            }
        }
        Ok(Some(configuration))
    }

    /// The URL, with the password of the file.
    pub(super) fn address(&self) -> Result<String, Failure> {
        let Some(path) = &self.broker_password_file else { return Ok(self.url.clone()) };
        let password = password(path).map_err(Failure::Usage)?;
        with_password(&self.url, &password)
            .map_err(|reason| Failure::Usage(format!("--broker-password-file: {reason}")))
    }

    /// Starts the embedded broker, if requested.
    pub(super) fn start_broker(&self) -> Result<(), Failure> {
        if self.embedded_broker { broker::start(&self.url, self.mqtt == "5") } else { Ok(()) }
    }

    /// Connection options for a broker.
    pub(super) fn mqtt(&self) -> MqttOptions {
        let mut options = MqttOptions::default();
        options.version = if self.mqtt == "5" { MqttVersion::V5 } else { MqttVersion::V311 };
        options.quality_of_service = match self.qos {
            0 => QualityOfService::AtMostOnce,
            1 => QualityOfService::AtLeastOnce,
            _ => QualityOfService::ExactlyOnce,
        };
        options.allow_plaintext_password = self.server.allow_plaintext_password;
        options.ca_file.clone_from(&self.broker_ca);
        options.certificate = self.broker_certificate.clone().zip(self.broker_key.clone());
        options
    }

    /// The source of keys, for sending or for receiving only; `None` without keys.
    pub(super) fn key_source(&self, sends: bool) -> Result<Option<Keys>, Failure> {
        if let Some(endpoint) = &self.key_service {
            let group = match (&self.security_group, self.security) {
                (Some(group), _) => group.as_str(),
                // Groups of a configuration have their own names.
                (None, Mode::None) => "",
                (None, _) if self.config.is_some() => "",
                (None, _) => {
                    return Err(Failure::Usage("--key-service needs --security-group".to_owned()));
                }
            };
            return Keys::of_service(endpoint, &self.server, group).map(Some);
        }
        let files = self.keys.iter().map(|path| KeyFile::read(path)).collect::<Result<Vec<_>, _>>()?;
        if sends {
            files.iter().try_for_each(KeyFile::check_nonces)?;
        }
        if self.security != Mode::None && files.is_empty() {
            return Err(Failure::Usage(
                "--security needs --keys FILE (create one with: taktwerk pubsub keys plant > plant.keys) or \
                 --key-service SERVER"
                    .to_owned(),
            ));
        }
        Ok((!files.is_empty()).then(|| Keys::of_files(&files)))
    }
}

/// Reads a configuration: TOML, or the standard binary file.
pub(crate) fn read(path: &Path) -> Result<Configuration, Failure> {
    let name = path.display();
    guarded(path, Protection::Write)?;
    let bytes = file::read_bytes(path, text_file::LEN_MAX)
        .map_err(|error| Failure::Environment(format!("cannot read {name}: {error}")))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) if path.extension().is_some_and(|extension| extension == "toml") => {
            // Paths are relative to the configuration file.
            let folder = path.parent().unwrap_or(Path::new(""));
            let mut has_files = false;
            let configuration = toml::from_toml_with(text, |file| {
                has_files = true;
                password(&folder.join(file))
            });
            let configuration = configuration.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
            if !has_files && has_password(&configuration) {
                warn_if_exposed(path, "the password of a broker");
            }
            Ok(configuration)
        }
        _ => {
            let configuration =
                binary_file::read(&bytes).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
            if has_password(&configuration) {
                warn_if_exposed(path, "the password of a broker");
            }
            Ok(configuration)
        }
    }
}

/// Whether a URL contains a password.
fn has_password(configuration: &Configuration) -> bool {
    let mut urls = configuration.connections.iter().map(|connection| connection.url.as_str());
    urls.any(|url| {
        let user = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        user.is_some_and(|(user, _)| user.contains(':'))
    })
}

/// The password in the first line of a file.
fn password(path: &Path) -> Result<String, String> {
    let name = path.display();
    let text = file::read_text(path, file::SECRET_LEN_MAX)
        .map_err(|error| format!("cannot read {name}: {error}"))?;
    warn_if_exposed(path, "the password");
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Converts the error of a publisher or subscriber that does not start.
pub(super) fn failure(error: PubSubStartError) -> Failure {
    match &error {
        PubSubStartError::PubSub(PubSubError::Socket { .. }) => Failure::Connect(error.to_string()),
        PubSubStartError::PubSub(PubSubError::NotPermitted { .. } | PubSubError::Thread { .. }) => {
            Failure::Environment(error.to_string())
        }
        _ => Failure::Usage(error.to_string()),
    }
}
