// SPDX-License-Identifier: MIT OR Apache-2.0

//! An rumqttd broker: MQTT 3.1.1 on the given port, MQTT 5 on the port that is printed second.
//!
//!     rumqttd-broker --port P [--bind ADDR] [--exit-with-stdin]

use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};
use std::collections::HashMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|it| it != name);
    arguments.next().and_then(|_| arguments.next())
}

fn settings(name: &str, listen: SocketAddr) -> (String, ServerSettings) {
    let connections = ConnectionSettings {
        connection_timeout_ms: 60_000,
        max_payload_size: 16 << 20,
        max_inflight_count: 1_000,
        auth: None,
        external_auth: None,
        dynamic_filters: true,
    };
    let settings =
        ServerSettings { name: name.into(), listen, tls: None, next_connection_delay_ms: 0, connections };
    (name.to_owned(), settings)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bind = option("--bind").unwrap_or_else(|| "127.0.0.1".into());
    let port: u16 = option("--port").map_or(Ok(1883), |it| it.parse())?;
    let address = |port: u16| -> Result<SocketAddr, Box<dyn std::error::Error>> {
        Ok(TcpListener::bind((bind.as_str(), port))?.local_addr()?)
    };
    let (older, newer) = (address(port)?, address(0)?);
    let router = RouterConfig {
        max_connections: 20_010,
        max_outgoing_packet_count: 200,
        max_segment_size: 100 << 20,
        max_segment_count: 10,
        ..RouterConfig::default()
    };
    let config = Config {
        id: 0,
        router,
        v4: Some(HashMap::from([settings("v4", older)])),
        v5: Some(HashMap::from([settings("v5", newer)])),
        ..Config::default()
    };
    if std::env::args().any(|it| it == "--exit-with-stdin") {
        std::thread::spawn(|| {
            let mut buffer = [0; 256];
            while std::io::stdin().read(&mut buffer).is_ok_and(|count| count > 0) {}
            std::process::exit(0);
        });
    }
    std::thread::spawn(move || {
        for address in [older, newer] {
            while TcpStream::connect(address).is_err() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        println!("V5 mqtt://{newer}");
        println!("READY mqtt://{older}");
    });
    Broker::new(config).start()?;
    Ok(())
}
