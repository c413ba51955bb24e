//! Specifications of loads.
//!
//! A specification is both an option list of `taktwerk bench` and a JSON document, with the same defaults. Times are
//! [`Duration`]s.

mod gateway;
mod messages;
mod opc_ua;

pub use gateway::{GatewayApply, GatewayDevices, GatewayMessages, GatewayServers};
pub use messages::{Content, Igmp, Layout, MessageSecurity, Mqtt, MqttPattern, PubSub, PubSubPattern};
pub use opc_ua::{Connect, Fan, Probe, Request, Roundtrip, Subscribe, Update};

use crate::connection::ConnectionArgs;
use crate::endpoint::Endpoint;
use crate::pin::CpuList;
use crate::span;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum number of sessions per generator.
const CLIENTS_MAX: u32 = 10_000;

/// A load.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "load", rename_all = "snake_case")]
pub enum Specification {
    /// Open sessions.
    Connect(Connect),
    /// Read values.
    Read(Request),
    /// Write values.
    Write(Request),
    /// Browse nodes.
    Browse(Request),
    /// Subscribe to values that change.
    Subscribe(Subscribe),
    /// Round trips, fan-out and fan-in through an MQTT broker.
    Mqtt(Mqtt),
    /// Publish values; measure latency, CPU cost and throughput.
    #[command(name = "pubsub")]
    #[serde(rename = "pubsub")]
    PubSub(PubSub),
    /// Check whether a switch filters multicast or floods hosts that did not join.
    Igmp(Igmp),
    /// Write a value and wait until a subscription brings it back.
    Roundtrip(Roundtrip),
    /// One client writes, all others answer, the first waits for all of them.
    Fan(Fan),
    /// Read at fixed times and find the cause of each slow response.
    Probe(Probe),
    /// Set values of a server in this process from one or several threads.
    Update(Update),
    /// Read field devices through a gateway; measure latency and CPU cost of their values.
    Gateway(GatewayDevices),
    /// Feed a gateway from an MQTT broker; measure throughput and latency.
    GatewayMqtt(GatewayMessages),
    /// Aggregate OPC UA servers through a gateway; measure their CPU cost and the added delay.
    #[command(name = "gateway-opcua")]
    #[serde(rename = "gateway_opcua")]
    GatewayOpcUa(GatewayServers),
    /// Change a gateway's configuration while it runs; measure the latency of tags that do not change.
    GatewayApply(GatewayApply),
}

/// Options of every load of an OPC UA server.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Common {
    /// The server, as whom, with which security.
    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Sessions, each with its own connection.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(CLIENTS_MAX)))]
    pub clients: u32,

    /// How long to measure.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::some)]
    pub duration: Duration,

    /// Warm-up before the measurement, not counted.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span::seconds)]
    pub warmup: Duration,

    /// Process id of the server, if it runs on this machine: its CPU time, context switches and memory are reported.
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,

    /// CPU of the load generator. Give it one of its own.
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,

    /// Busy-poll for this long before sleeping.
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = span::micros)]
    pub busy_poll: Duration,

    /// Measure over an emulated link: a name from `lab links list`, NAME+vpn, or rate=…,delay=…,jitter=…,loss=….
    #[arg(long, value_name = "LINK")]
    pub link: Option<String>,

    /// Entry of the running link. Set by the generator, which creates the link.
    #[arg(skip)]
    #[serde(skip)]
    pub relay: Option<Relay>,

    /// Exit when stdin closes (for supervisors).
    #[arg(long, hide = true)]
    pub exit_with_stdin: bool,
}

/// A running link.
#[derive(Debug, Clone, PartialEq)]
pub struct Relay {
    /// Address at which clients enter it.
    pub entry: Endpoint,
    /// Requested and observed properties, for the document.
    pub probed: serde_json::Value,
    /// The same in one line.
    pub sentence: String,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            connection: ConnectionArgs::default(),
            clients: 1,
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(1),
            server_pid: None,
            cpu: None,
            busy_poll: Duration::ZERO,
            link: None,
            relay: None,
            exit_with_stdin: false,
        }
    }
}

impl Specification {
    /// The options of loads of OPC UA servers; `None` for others.
    pub fn common(&mut self) -> Option<&mut Common> {
        match self {
            Self::Connect(load) => Some(&mut load.common),
            Self::Read(load) | Self::Write(load) | Self::Browse(load) => Some(&mut load.common),
            Self::Subscribe(load) => Some(&mut load.common),
            Self::Roundtrip(load) => Some(&mut load.common),
            Self::Fan(load) => Some(&mut load.common),
            Self::Probe(load) => Some(&mut load.common),
            Self::Mqtt(_) | Self::PubSub(_) | Self::Igmp(_) | Self::Update(_) => None,
            Self::Gateway(_) | Self::GatewayMqtt(_) | Self::GatewayOpcUa(_) | Self::GatewayApply(_) => None,
        }
    }

    /// Whether the load ends when standard input closes.
    #[must_use]
    pub fn ends_with_stdin(&mut self) -> bool {
        match self {
            Self::Mqtt(load) => load.exit_with_stdin,
            load => load.common().is_some_and(|common| common.exit_with_stdin),
        }
    }

    /// The name of the sub-command of `taktwerk bench`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Browse(_) => "browse",
            Self::Subscribe(_) => "subscribe",
            Self::Mqtt(_) => "mqtt",
            Self::PubSub(_) => "pubsub",
            Self::Igmp(_) => "igmp",
            Self::Roundtrip(_) => "roundtrip",
            Self::Fan(_) => "fan",
            Self::Probe(_) => "probe",
            Self::Update(_) => "update",
            Self::Gateway(_) => "gateway",
            Self::GatewayMqtt(_) => "gateway-mqtt",
            Self::GatewayOpcUa(_) => "gateway-opcua",
            Self::GatewayApply(_) => "gateway-apply",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(subcommand)]
        load: Specification,
    }

    fn parse(line: &str) -> Specification {
        Command::try_parse_from(["bench"].into_iter().chain(line.split(' '))).unwrap().load
    }

    #[test]
    fn a_command_line_without_options_is_the_default() {
        let common = |mut load: Specification| {
            if let Some(common) = load.common() {
                // The environment of the tests may set a server and a user.
                common.connection = ConnectionArgs::default();
            }
            load
        };
        for (line, load) in [
            ("connect localhost", Specification::Connect(Connect::default())),
            ("read localhost", Specification::Read(Request::default())),
            ("write localhost", Specification::Write(Request::default())),
            ("browse localhost", Specification::Browse(Request::default())),
            ("subscribe localhost", Specification::Subscribe(Subscribe::default())),
            ("roundtrip localhost", Specification::Roundtrip(Roundtrip::default())),
            ("fan localhost", Specification::Fan(Fan::default())),
            ("probe localhost", Specification::Probe(Probe::default())),
            ("pubsub", Specification::PubSub(PubSub::default())),
            ("igmp", Specification::Igmp(Igmp::default())),
            ("update", Specification::Update(Update::default())),
            ("gateway", Specification::Gateway(GatewayDevices::default())),
            ("gateway-mqtt", Specification::GatewayMqtt(GatewayMessages::default())),
            ("gateway-opcua", Specification::GatewayOpcUa(GatewayServers::default())),
            ("gateway-apply", Specification::GatewayApply(GatewayApply::default())),
            (
                "mqtt localhost",
                Specification::Mqtt(Mqtt { url: Some("localhost".to_owned()), ..Mqtt::default() }),
            ),
        ] {
            assert_eq!(common(parse(line)), load);
            assert_eq!(load.name(), line.split(' ').next().unwrap());
            // Members missing in a document also have their defaults.
            let short = format!("{{\"load\":\"{}\"}}", load.name().replace('-', "_"));
            let mut read: Specification = serde_json::from_str(&short).unwrap();
            if let Specification::Mqtt(mqtt) = &mut read {
                mqtt.url = Some("localhost".to_owned());
            }
            assert_eq!(read, load);
        }
    }

    #[test]
    fn a_document_is_read_back_as_it_was() {
        for line in [
            "subscribe plc7 --items 7 -I 12.5 --nodes /Objects/2:a --nodes ns=2;s=x --cpu 0,2 --policy best --heavy 5 --stall",
            "read [::1]:1 -n 5 --rate 2.5 --batch 3 -u joe --password-file secret --timeout 3",
            "write plc7 --pause 1.5 -d 3 --warmup 0",
            "mqtt localhost --qos 2 --mqtt 5 --pattern fan --message uadp -c 10",
            "pubsub --security sign-and-encrypt --layout dynamic --publisher-id uint32:7 --pattern listen --fifo 3",
            "gateway --devices 3 --against node-red,asyncua-pymodbus --gateway-cpu 1",
            "gateway-mqtt --peer rumqttd --topics 7",
            "gateway-opcua --servers 2 -c 3 -I 250",
            "gateway-apply --changed 7 --applies 2 --warmup 1s",
            "probe localhost --server-cpu 0 --slow 3 --busy-poll 50us --link lan --server-pid 7",
        ] {
            let load = parse(line);
            let text = serde_json::to_string(&load).unwrap();
            assert!(!text.contains('\n'), "one line: {text}");
            assert_eq!(serde_json::from_str::<Specification>(&text).unwrap(), load, "{text}");
        }
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        for text in [
            r#"{"load":"read","bach":5}"#,
            r#"{"load":"subscribe","common":{"client":5}}"#,
            r#"{"load":"reed"}"#,
            r#"{"load":"fan","common":{"connection":{"endpoint":"http://x"}}}"#,
        ] {
            assert!(serde_json::from_str::<Specification>(text).is_err(), "{text}");
        }
    }
}
