//! What all loads share: options, the fleet of clients, and time.

use super::account;
use super::link::Over;
use super::report::Report;
use crate::connection::ConnectionArgs;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::{session, span};
use clap::Args;
use std::sync::Arc;
use std::time::Duration;
use taktwerk_channel::{ChannelConfig, ChannelLimits};
use taktwerk_client::config::EndpointUrl;
use taktwerk_client::{ClientConfig, Target};
use taktwerk_lab::pin::CpuList;
use taktwerk_lab::process::Process;
use taktwerk_net::client::{Fleet, FleetOptions};

/// Most sessions of one generator.
const CLIENTS_MAX: u32 = 10_000;

/// Options of every load.
#[derive(Debug, Clone, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Sessions, each with its own connection.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(CLIENTS_MAX)))]
    pub(crate) clients: u32,

    /// How long to measure.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::some)]
    pub(crate) duration: Duration,

    /// Warm-up before the measurement, not counted.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span::seconds)]
    pub(crate) warmup: Duration,

    /// Process id of the server, if it runs on this machine: its CPU time, context switches and memory are reported.
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,

    /// CPU of the load generator. Give it one of its own.
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,

    /// Busy-poll for this long before sleeping.
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = span::micros)]
    pub(crate) busy_poll: Duration,

    /// Measure over an emulated link: a name from `lab links list`, NAME+vpn, or rate=…,delay=…,jitter=…,loss=….
    #[arg(long, value_name = "LINK")]
    link: Option<String>,

    /// The link that stands, and where it is entered.
    #[arg(skip)]
    over: Option<(Arc<Over>, Endpoint)>,

    /// Exit when stdin closes (for supervisors).
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

impl CommonArgs {
    /// Makes the link that was asked for; from now on the server is behind it.
    pub(super) fn go_over_link(&mut self) -> Result<(), Failure> {
        let Some(name) = &self.link else { return Ok(()) };
        let server = self.connection.endpoint.clone();
        self.connection.security.settle_for(&server);
        let security = &self.connection.security;
        let is_readable =
            security.policy.as_deref().is_some_and(|policy| policy.eq_ignore_ascii_case("none"));
        if security.has_secret()
            && is_readable
            && !server.is_loopback()
            && !security.allow_plaintext_password
            && security.cert.is_none()
        {
            // The relay is on loopback, where secrets may be sent as they are; behind it is a network.
            return Err(Failure::Usage(
                "a password would go readable over the network behind the link: name a --policy, or say \
                 --allow-plaintext-password"
                    .to_owned(),
            ));
        }
        let over = Over::start(name, &server)?;
        let relay = server.at(over.address());
        self.over = Some((Arc::new(over), relay));
        Ok(())
    }

    /// A report of a load: on which server, over which link.
    pub(super) fn report(&self, command: &str) -> Report {
        let mut report = Report::new(command, &self.connection.endpoint.to_string());
        let Some((over, _)) = &self.over else { return report };
        report.set("link", over.probed());
        report.fact("link", over.sentence());
        report
    }

    /// Takes the CPUs and looks at the server before anything is connected.
    pub(crate) fn begin(&self) -> Result<Option<Process>, Failure> {
        if self.exit_with_stdin {
            crate::supervised::end_with_stdin()?;
        }
        if let Some(cpus) = &self.cpu {
            cpus.pin().map_err(|error| Failure::Environment(error.to_string()))?;
        }
        account::server_process(self.server_pid)
    }

    /// Settings of the clients: the fewest round trips, no second attempts, and messages as large as the load.
    pub(crate) fn client_config(&self) -> Result<Arc<ClientConfig>, Failure> {
        let config = session::config(&self.connection.endpoint, &self.connection.security)?;
        let limits = ChannelLimits {
            message_size_max: 512 << 20,
            chunk_count_max: 1 << 20,
            ..ChannelLimits::default()
        };
        let channel = ChannelConfig { limits, ..ChannelConfig::clone(&config.channel) };
        Ok(Arc::new(ClientConfig { channel: Arc::new(channel), read_limits: false, ..config }))
    }

    /// The port that is connected to: the server's, or that of the link to it.
    pub(crate) fn port(&self) -> u16 {
        self.over.as_ref().map_or(&self.connection.endpoint, |(_, relay)| relay).port()
    }

    /// What each client connects to.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        let mut target = session::target(&self.connection.endpoint, &self.connection.security)?;
        if let Some((_, relay)) = &self.over {
            target.via = Some(
                EndpointUrl::parse(&relay.to_string())
                    .map_err(|error| Failure::Environment(error.to_string()))?,
            );
        }
        if target.discover {
            // Once for all clients: what is measured is the connection, not the question where to connect to.
            session::discover(&self.connection, &mut target)?;
        }
        Ok(target)
    }

    /// The clients, on this thread.
    pub(crate) fn fleet(&self, connecting_max: usize) -> Result<Fleet, Failure> {
        let mut options = FleetOptions::default();
        options.busy_poll = self.busy_poll;
        options.connecting_max = connecting_max.max(1);
        Fleet::new(self.client_config()?, options).map_err(environment)
    }
}

/// Refuses a rate at which nothing would ever be sent.
pub(super) fn check_rate(rate: Option<f64>, of: &str) -> Result<(), Failure> {
    match rate {
        Some(rate) if !(rate > 0.0 && rate.is_finite()) => {
            Err(Failure::Usage(format!("--rate {rate}: give a number of {of} per second")))
        }
        _ => Ok(()),
    }
}

/// A failure of this machine.
pub(crate) fn environment(error: std::io::Error) -> Failure {
    Failure::Environment(format!("the load generator failed: {error}"))
}

/// Whole nanoseconds.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_at_which_nothing_is_sent_is_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = check_rate(Some(rate), "sessions").unwrap_err().to_string();
            assert!(refused.contains("--rate") && refused.contains("sessions per second"), "{refused}");
        }
        assert!(check_rate(Some(0.5), "sessions").is_ok() && check_rate(None, "sessions").is_ok());
    }
}
