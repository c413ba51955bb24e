//! Shared parts of all generators: link, fleet of clients, and time.

use crate::account;
use crate::client::session;
use crate::context::Context;
use crate::error::GeneratorError;
use crate::link::Over;
use crate::report::Report;
use std::sync::Arc;
use taktwerk_channel::{ChannelConfig, ChannelLimits};
use taktwerk_client::config::EndpointUrl;
use taktwerk_client::{ClientConfig, Target};
use taktwerk_load::pin::CpuList;
use taktwerk_load::process::Process;
use taktwerk_load::specification::{Common, Relay};
use taktwerk_net::client::{Fleet, FleetOptions};

/// Starts the emulated link, if any; it exists until the returned value is dropped.
pub(crate) fn go_over_link(
    common: &mut Common,
    context: &Context<'_>,
) -> Result<Option<Over>, GeneratorError> {
    let Some(name) = &common.link else { return Ok(None) };
    let server = common.connection.endpoint.clone();
    common.connection.security.settle_for(&server);
    let security = &common.connection.security;
    let is_readable = security.policy.as_deref().is_some_and(|policy| policy.eq_ignore_ascii_case("none"));
    if security.has_secret()
        && is_readable
        && !server.is_loopback()
        && !security.allow_plaintext_password
        && security.cert.is_none()
    {
        // The relay is on loopback, where secrets may be sent unencrypted, but the server behind it is not.
        return Err(GeneratorError::Usage(
            "a password would go readable over the network behind the link: name a --policy, or say \
             --allow-plaintext-password"
                .to_owned(),
        ));
    }
    let over = Over::start(name, &server, context)?;
    common.relay =
        Some(Relay { entry: server.at(over.address()), probed: over.probed(), sentence: over.sentence() });
    Ok(Some(over))
}

/// Operations that generators need from the common options.
pub(crate) trait Generator {
    /// A report for a load on this server and link.
    fn report(&self, command: &str) -> Report;
    /// Pins the CPUs and checks the server process, before connecting.
    fn begin(&self) -> Result<Option<Process>, GeneratorError>;
    /// Client settings: the fewest round trips, no retries, and message limits that fit the load.
    fn client_config(&self, context: &Context<'_>) -> Result<Arc<ClientConfig>, GeneratorError>;
    /// The port of the server, or of the link to it.
    fn port(&self) -> u16;
    /// The connection target of each client.
    fn target(&self, context: &Context<'_>) -> Result<Target, GeneratorError>;
    /// The clients, on this thread.
    fn fleet(&self, connecting_max: usize, context: &Context<'_>) -> Result<Fleet, GeneratorError> {
        self.fleet_with(connecting_max, |_| {}, context)
    }

    /// The clients, with a changed configuration.
    fn fleet_with(
        &self,
        connecting_max: usize,
        change: impl FnOnce(&mut ClientConfig),
        context: &Context<'_>,
    ) -> Result<Fleet, GeneratorError>;
}

impl Generator for Common {
    fn report(&self, command: &str) -> Report {
        let mut report = Report::new(command, &self.connection.endpoint.to_string());
        let Some(relay) = &self.relay else { return report };
        report.set("link", relay.probed.clone());
        report.fact("link", relay.sentence.as_str());
        report
    }

    fn begin(&self) -> Result<Option<Process>, GeneratorError> {
        pin(self.cpu.as_ref())?;
        account::server_process(self.server_pid)
    }

    fn client_config(&self, context: &Context<'_>) -> Result<Arc<ClientConfig>, GeneratorError> {
        let config = session::config(&self.connection.endpoint, &self.connection.security, context)?;
        let limits = ChannelLimits {
            message_size_max: 512 << 20,
            chunk_count_max: 1 << 20,
            ..ChannelLimits::default()
        };
        let channel = ChannelConfig { limits, ..ChannelConfig::clone(&config.channel) };
        Ok(Arc::new(ClientConfig { channel: Arc::new(channel), read_limits: false, ..config }))
    }

    fn port(&self) -> u16 {
        self.relay.as_ref().map_or(&self.connection.endpoint, |relay| &relay.entry).port()
    }

    fn target(&self, context: &Context<'_>) -> Result<Target, GeneratorError> {
        let mut target = session::target(&self.connection.endpoint, &self.connection.security)?;
        if let Some(relay) = &self.relay {
            target.via =
                Some(EndpointUrl::parse(&relay.entry.to_string()).map_err(GeneratorError::environment)?);
        }
        if target.discover {
            // Once for all clients: the connection is measured, not discovery.
            session::discover(&self.connection, &mut target, context)?;
        }
        Ok(target)
    }

    fn fleet_with(
        &self,
        connecting_max: usize,
        change: impl FnOnce(&mut ClientConfig),
        context: &Context<'_>,
    ) -> Result<Fleet, GeneratorError> {
        let mut options = FleetOptions::default();
        options.busy_poll = self.busy_poll;
        options.connecting_max = connecting_max.max(1);
        let mut config = ClientConfig::clone(&*self.client_config(context)?);
        change(&mut config);
        Fleet::new(Arc::new(config), options).map_err(environment)
    }
}

/// Pins this process to these CPUs, if any are given.
pub(crate) fn pin(cpus: Option<&CpuList>) -> Result<(), GeneratorError> {
    cpus.map_or(Ok(()), CpuList::pin).map_err(GeneratorError::environment)
}

/// Refuses rates at which nothing would ever be sent.
pub(crate) fn check_rate(rate: Option<f64>, of: &str) -> Result<(), GeneratorError> {
    match rate {
        Some(rate) if !(rate > 0.0 && rate.is_finite()) => {
            Err(GeneratorError::Usage(format!("--rate {rate}: give a number of {of} per second")))
        }
        _ => Ok(()),
    }
}

/// An error of this machine.
pub(crate) fn environment(error: std::io::Error) -> GeneratorError {
    GeneratorError::Environment(format!("the load generator failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_that_send_nothing_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = check_rate(Some(rate), "sessions").unwrap_err().to_string();
            assert!(refused.contains("--rate") && refused.contains("sessions per second"), "{refused}");
        }
        assert!(check_rate(Some(0.5), "sessions").is_ok() && check_rate(None, "sessions").is_ok());
    }
}
