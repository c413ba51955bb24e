//! The broker: an existing one, or one started for the measurement.

use crate::account;
use crate::error::GeneratorError;
use std::net::{SocketAddr, ToSocketAddrs};
use taktwerk_lab::links::address::first_address;
use taktwerk_lab::mqtt::Version;
use taktwerk_lab::peers::{self, PeerOptions, Role};
use taktwerk_lab::program::Running;
use taktwerk_load::pin::CpuList;
use taktwerk_load::process::Process;
use taktwerk_load::specification::Mqtt;

/// The IANA port of MQTT.
const PORT: u16 = 1883;

/// A broker.
pub(crate) struct Broker {
    name: String,
    address: SocketAddr,
    process: Option<Process>,
    /// Stops it when dropped.
    _running: Option<Running>,
}

impl Broker {
    /// The broker named in the arguments.
    pub(super) fn of(arguments: &Mqtt) -> Result<Self, GeneratorError> {
        if let Some(name) = &arguments.peer {
            return Self::start(name, arguments.mqtt, arguments.peer_cpu.clone());
        }
        let url = arguments.url.as_deref().unwrap_or_default();
        Ok(Self {
            name: url.to_owned(),
            address: resolve(url)?,
            process: account::server_process(arguments.server_pid)?,
            _running: None,
        })
    }

    /// Starts a broker by its name in `lab peers`.
    pub(crate) fn start(name: &str, version: Version, cpus: Option<CpuList>) -> Result<Self, GeneratorError> {
        let peer = peers::find(name).filter(|peer| peer.role == Role::Mqtt).ok_or_else(|| {
            GeneratorError::Usage(format!("{name:?} is not a broker: use mosquitto or rumqttd"))
        })?;
        taktwerk_lab::leftovers::clean_up();
        let options = PeerOptions { cpus, ..PeerOptions::default() };
        let running =
            peers::start(peer, &peers::directory(), &options).map_err(GeneratorError::environment)?;
        // Some brokers use another port for MQTT 5.
        let url = match version {
            Version::V5 => running.note("V5").unwrap_or(running.url()).to_owned(),
            Version::V311 => running.url().to_owned(),
        };
        Ok(Self {
            name: format!("{name} {url}"),
            address: resolve(&url)?,
            process: account::server_process(Some(running.pid()))?,
            _running: Some(running),
        })
    }

    /// Its name in the result.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process, if it is known and runs on this machine.
    pub(crate) fn process(&self) -> Option<Process> {
        self.process
    }
}

fn resolve(url: &str) -> Result<SocketAddr, GeneratorError> {
    let bare = url.strip_prefix("mqtt://").or_else(|| url.strip_prefix("tcp://")).unwrap_or(url);
    if bare.contains("://") {
        return Err(GeneratorError::Usage(format!("{url}: only mqtt:// is supported")));
    }
    if bare.contains('@') {
        // Do not show the URL, which may contain a password.
        let what = "user and password in the broker's URL: bench mqtt connects without a user; remove them";
        return Err(GeneratorError::Usage(what.to_owned()));
    }
    let bare = bare.trim_end_matches('/');
    let found = match bare.parse::<SocketAddr>() {
        Ok(address) => Ok(Some(address)),
        Err(_) if bare.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
            bare.to_socket_addrs().map(first_address)
        }
        Err(_) => (bare, PORT).to_socket_addrs().map(first_address),
    };
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(GeneratorError::Connect(format!("{url} has no address"))),
        Err(error) => Err(GeneratorError::Connect(format!("{url}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let text = |url| resolve(url).map(|address| address.to_string()).ok();
        assert_eq!(text("127.0.0.1").as_deref(), Some("127.0.0.1:1883"));
        assert_eq!(text("mqtt://127.0.0.1:1900/").as_deref(), Some("127.0.0.1:1900"));
        assert_eq!(text("tcp://[::1]:7").as_deref(), Some("[::1]:7"));
        assert_eq!(text("mqtts://127.0.0.1"), None);
        let refused = format!("{:?}", resolve("mqtt://me:secret@127.0.0.1"));
        assert!(refused.contains("remove them") && !refused.contains("secret"), "{refused}");
    }
}
