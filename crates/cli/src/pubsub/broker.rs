//! A broker within this program, so that a first run needs none (feature `embedded-broker`).
//!
//! It asks nobody for a password and forgets everything when the program ends: for trying things out.

use crate::failure::Failure;

#[cfg(not(feature = "embedded-broker"))]
pub(super) fn start(_: &str, _: bool) -> Result<(), Failure> {
    Err(Failure::Environment(
        "this program was built without a broker: build it with its default features, or start one, such as mosquitto"
            .to_owned(),
    ))
}

/// Starts a broker at the address of a URL; it ends with this program.
#[cfg(feature = "embedded-broker")]
pub(super) use embedded::start;

#[cfg(feature = "embedded-broker")]
mod embedded {
    use super::Failure;
    use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};
    use std::collections::HashMap;
    use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
    use std::time::{Duration, Instant};

    const PORT: u16 = 1883;
    /// How long it may take to listen.
    const START: Duration = Duration::from_secs(5);
    /// The largest message.
    const PAYLOAD: usize = 16 << 20;

    /// Where a URL such as `mqtt+json://localhost:1883` says that the broker is.
    fn address(url: &str) -> Result<SocketAddr, Failure> {
        let wrong = |reason: &str| Failure::Usage(format!("{url}: {reason}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it is no URL"))?;
        if !matches!(scheme, "mqtt" | "mqtt+json") {
            return Err(wrong("the embedded broker is for mqtt:// and mqtt+json:// only"));
        }
        let host = rest.split('/').next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let target = if has_port { host.to_owned() } else { format!("{host}:{PORT}") };
        let mut found = target.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
        found.next().ok_or_else(|| wrong("the name has no address"))
    }

    fn config(listen: SocketAddr, is_v5: bool) -> Config {
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
            max_connections: 1_000,
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
        // It would only log that it cannot listen.
        drop(TcpListener::bind(listen).map_err(|error| {
            Failure::Connect(format!(
                "the embedded broker cannot listen at {listen} ({error}): if a broker runs there already, leave out \
                 --embedded-broker"
            ))
        })?);
        let fail = |error: String| Failure::Environment(format!("the embedded broker failed: {error}"));
        let run = move || {
            if let Err(error) = Broker::new(config(listen, is_v5)).start() {
                tracing::error!(%error, "the embedded broker has ended");
            }
        };
        std::thread::Builder::new()
            .name("embedded-broker".to_owned())
            .spawn(run)
            .map_err(|error| fail(error.to_string()))?;
        let end = Instant::now() + START;
        while TcpStream::connect_timeout(&listen, Duration::from_millis(100)).is_err() {
            if Instant::now() > end {
                return Err(fail(format!("it does not listen at {listen}")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let version = if is_v5 { "5" } else { "3.1.1" };
        tell!("broker for MQTT {version} at mqtt://{listen}, for as long as this program runs");
        if !listen.ip().is_loopback() {
            tell!("anybody who reaches that address can read and publish: it asks for no password");
        }
        Ok(())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn where_it_listens() {
            let text = |url| address(url).map(|address| address.to_string()).ok();
            assert_eq!(text("mqtt://127.0.0.1").as_deref(), Some("127.0.0.1:1883"));
            assert_eq!(text("mqtt+json://me:x@127.0.0.1:99/").as_deref(), Some("127.0.0.1:99"));
            assert_eq!(text("mqtt://[::1]:7").as_deref(), Some("[::1]:7"));
            assert_eq!(text("mqtts://127.0.0.1"), None);
            assert_eq!(text("opc.udp://127.0.0.1"), None);
        }
    }
}
