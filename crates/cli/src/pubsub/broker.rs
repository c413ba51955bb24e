//! A broker within this program, for trials without an installed broker (feature `embedded-broker`).
//!
//! It requires no password and stores nothing.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use clap::Args;
use std::net::SocketAddr;
use std::time::Duration;

/// Interval at which the end of the program is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Arguments of `taktwerk pubsub broker`.
#[derive(Debug, Args)]
pub(crate) struct BrokerArgs {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1883")]
    listen: SocketAddr,

    /// Exit when stdin closes (for supervisors).
    #[arg(long)]
    exit_with_stdin: bool,
}

/// Runs only the broker until interrupted. MQTT 3.1.1.
pub(super) fn run(arguments: &BrokerArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    if arguments.exit_with_stdin {
        crate::supervised::end_with_stdin()?;
    }
    // Each client needs a file descriptor.
    taktwerk_lab::files::raise_limit();
    let listening = listen(arguments.listen)?;
    // Supervisors wait for exactly this line.
    output.text(&format!("READY mqtt://{listening}"))?;
    while !interrupt.asked() {
        std::thread::sleep(CHECK_INTERVAL);
    }
    Ok(())
}

#[cfg(not(feature = "embedded-broker"))]
mod embedded {
    use super::{Failure, SocketAddr};

    fn none<T>() -> Result<T, Failure> {
        Err(Failure::Environment(
            "this program was built without a broker: build it with its default features, or start one, such as mosquitto"
                .to_owned(),
        ))
    }

    pub(in super::super) fn start(_: &str, _: bool) -> Result<(), Failure> {
        none()
    }

    pub(super) fn listen(_: SocketAddr) -> Result<SocketAddr, Failure> {
        none()
    }
}

use embedded::listen;
/// Starts a broker at the address of a URL. It ends with the program.
pub(super) use embedded::start;

#[cfg(feature = "embedded-broker")]
mod embedded {
    use super::{Duration, Failure, SocketAddr};
    use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};
    use std::collections::HashMap;
    use std::net::{TcpListener, TcpStream, ToSocketAddrs};
    use std::time::Instant;
    use taktwerk_lab::links::address::first_address;

    const PORT: u16 = 1883;
    /// Timeout for the start of listening.
    const START: Duration = Duration::from_secs(5);
    /// Maximum size of a message, in bytes.
    const PAYLOAD: usize = 16 << 20;
    /// Maximum number of clients in trials.
    const FEW: usize = 1_000;
    /// Maximum number of clients under load.
    const MANY: usize = 20_010;

    /// The address in a URL such as `mqtt+json://localhost:1883`.
    fn address(url: &str) -> Result<SocketAddr, Failure> {
        let wrong = |reason: &str| Failure::Usage(format!("{url}: {reason}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it is not a URL"))?;
        if !matches!(scheme, "mqtt" | "mqtt+json") {
            return Err(wrong("the embedded broker is for mqtt:// and mqtt+json:// only"));
        }
        let host = rest.split('/').next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let target = if has_port { host.to_owned() } else { format!("{host}:{PORT}") };
        let found = target.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
        // The first resolved address, which clients use too.
        first_address(found).ok_or_else(|| wrong("the name has no address"))
    }

    fn config(listen: SocketAddr, is_v5: bool, clients: usize) -> Config {
        let connections = ConnectionSettings {
            connection_timeout_ms: 60_000,
            max_payload_size: PAYLOAD,
            max_inflight_count: 1_000,
            auth: None,
            external_auth: None,
            dynamic_filters: true,
        };
        let settings = ServerSettings {
            name: "embedded".to_owned(),
            listen,
            tls: None,
            next_connection_delay_ms: 0,
            connections,
        };
        let settings = Some(HashMap::from([("embedded".to_owned(), settings)]));
        let router = RouterConfig {
            max_connections: clients,
            max_outgoing_packet_count: 200,
            max_segment_size: 16 << 20,
            max_segment_count: 10,
            ..RouterConfig::default()
        };
        let config = Config { router, ..Config::default() };
        if is_v5 { Config { v5: settings, ..config } } else { Config { v4: settings, ..config } }
    }

    pub(in super::super) fn start(url: &str, is_v5: bool) -> Result<(), Failure> {
        let listen = address(url)?;
        free(listen).map_err(|error| {
            Failure::Connect(format!(
                "the embedded broker cannot listen at {listen} ({error}): if a broker runs there already, leave out \
                 --embedded-broker"
            ))
        })?;
        run(listen, is_v5, FEW)?;
        let version = if is_v5 { "5" } else { "3.1.1" };
        tell!("broker for MQTT {version} at mqtt://{listen}, for as long as this program runs");
        if !listen.ip().is_loopback() {
            tell!("anyone who can reach that address can read and publish: the broker has no password");
        }
        Ok(())
    }

    /// Starts a broker for a load, and returns its address.
    pub(super) fn listen(asked: SocketAddr) -> Result<SocketAddr, Failure> {
        let listening = free(asked).map_err(|error| {
            Failure::Connect(format!("the broker cannot listen at {asked} ({error}): give another --listen"))
        })?;
        run(listening, false, MANY)?;
        Ok(listening)
    }

    /// A free address. The broker itself would only log that it cannot listen.
    fn free(asked: SocketAddr) -> std::io::Result<SocketAddr> {
        TcpListener::bind(asked)?.local_addr()
    }

    /// Starts the broker and waits until it listens.
    fn run(listen: SocketAddr, is_v5: bool, clients: usize) -> Result<(), Failure> {
        let fail = |error: String| Failure::Environment(format!("the embedded broker failed: {error}"));
        let serve = move || {
            if let Err(error) = Broker::new(config(listen, is_v5, clients)).start() {
                tracing::error!(%error, "the embedded broker has stopped");
            }
        };
        std::thread::Builder::new()
            .name("embedded-broker".to_owned())
            .spawn(serve)
            .map_err(|error| fail(error.to_string()))?;
        let end = Instant::now() + START;
        while TcpStream::connect_timeout(&listen, Duration::from_millis(100)).is_err() {
            if Instant::now() > end {
                return Err(fail(format!("it is not listening at {listen}")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn addresses_of_urls_are_resolved() {
            let text = |url| address(url).map(|address| address.to_string()).ok();
            assert_eq!(text("mqtt://127.0.0.1").as_deref(), Some("127.0.0.1:1883"));
            assert_eq!(text("mqtt+json://me:x@127.0.0.1:99/").as_deref(), Some("127.0.0.1:99"));
            assert_eq!(text("mqtt://[::1]:7").as_deref(), Some("[::1]:7"));
            assert_eq!(text("mqtts://127.0.0.1"), None);
            assert_eq!(text("opc.udp://127.0.0.1"), None);
        }

        #[test]
        fn a_load_broker_takes_a_free_port_and_reports_a_used_one() {
            let listening = listen("127.0.0.1:0".parse().unwrap()).unwrap();
            assert_ne!(listening.port(), 0);
            assert!(TcpStream::connect(listening).is_ok());
            let refused = listen(listening).unwrap_err().to_string();
            assert!(refused.contains("--listen"), "{refused}");
        }
    }
}
