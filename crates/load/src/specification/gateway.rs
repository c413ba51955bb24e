//! Loads of a gateway. The generator starts the gateway and its sources.

use crate::pin::CpuList;
use crate::span;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `bench gateway`: field devices.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayDevices {
    /// Modbus TCP devices.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub devices: u32,

    /// Registers of each device; each one is a tag.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub registers: u16,

    /// How often the gateway reads each device, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    pub poll: Duration,

    /// Publishing interval of the client, in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    pub interval: Duration,

    /// Measure twice; the second time, this many devices do not answer. The others are compared.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "against")]
    pub hang: u32,

    /// Compare with these gateways, installed by `taktwerk lab peers install`: asyncua-pymodbus, node-red. Each one reads 1, 2,
    /// 5, 10 … devices, as many as it holds.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub against: Vec<String>,

    /// How long to measure.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::some)]
    pub duration: Duration,

    /// Warm-up before the measurement, not counted.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span::seconds)]
    pub warmup: Duration,

    /// CPU for the gateway.
    #[arg(long, value_name = "LIST")]
    pub gateway_cpu: Option<CpuList>,

    /// CPU for the devices and the client.
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
}

impl Default for GatewayDevices {
    fn default() -> Self {
        Self {
            devices: 50,
            registers: 200,
            poll: Duration::from_millis(100),
            interval: Duration::from_millis(100),
            hang: 0,
            against: Vec::new(),
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(2),
            gateway_cpu: None,
            cpu: None,
        }
    }
}

/// `bench gateway-mqtt`: the messages of a broker.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayMessages {
    /// Topics; each one is a tag.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub topics: u32,

    /// Messages per second while the delay is measured.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub rate: u32,

    /// Publishing interval of the client, in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1", value_parser = span::millis)]
    pub interval: Duration,

    /// The broker: mosquitto or rumqttd (see `lab peers`).
    #[arg(long, value_name = "NAME", default_value = "mosquitto")]
    pub peer: String,

    /// How long to measure each: how many messages the gateway takes, and how late they are.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::some)]
    pub duration: Duration,

    /// Load before a measurement begins, not counted.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span::seconds)]
    pub warmup: Duration,

    /// CPU for the gateway.
    #[arg(long, value_name = "LIST")]
    pub gateway_cpu: Option<CpuList>,

    /// CPU for the broker.
    #[arg(long, value_name = "LIST")]
    pub peer_cpu: Option<CpuList>,

    /// CPU for the publisher, the client and the plain subscriber.
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
}

impl Default for GatewayMessages {
    fn default() -> Self {
        Self {
            topics: 1_000,
            rate: 10_000,
            interval: Duration::from_millis(1),
            peer: "mosquitto".to_owned(),
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(2),
            gateway_cpu: None,
            peer_cpu: None,
            cpu: None,
        }
    }
}

/// `bench gateway-opcua`: other OPC UA servers.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayServers {
    /// Servers behind the gateway.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub servers: u32,

    /// Variables of each server; each one is a tag.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub items: u32,

    /// Clients of the gateway; each one subscribes to all tags.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub clients: u32,

    /// Publishing interval of the gateway at the servers and of its clients, in milliseconds. All variables change as often.
    #[arg(short = 'I', long, value_name = "MS", default_value = "500", value_parser = span::millis)]
    pub interval: Duration,

    /// How long to measure each: one client of one server, and the clients of the gateway.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::some)]
    pub duration: Duration,

    /// Load before a measurement begins, not counted.
    #[arg(long, value_name = "SPAN", default_value = "3s", value_parser = span::seconds)]
    pub warmup: Duration,

    /// CPU for the gateway.
    #[arg(long, value_name = "LIST")]
    pub gateway_cpu: Option<CpuList>,

    /// CPU for the servers and the clients.
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
}

impl Default for GatewayServers {
    fn default() -> Self {
        Self {
            servers: 20,
            items: 500,
            clients: 50,
            interval: Duration::from_millis(500),
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(3),
            gateway_cpu: None,
            cpu: None,
        }
    }
}

/// `bench gateway-apply`: a configuration that changes.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayApply {
    /// Tags that each new configuration changes: their EURange, so that their nodes are deleted and added again.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    pub changed: u32,

    /// How often a configuration is applied.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub applies: u32,

    /// Modbus TCP devices whose tags stay as they are; a client subscribes to all of these.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub devices: u32,

    /// Registers of each device, also of those whose tags change; each one is a tag.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub registers: u16,

    /// How often the gateway reads each device, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    pub poll: Duration,

    /// Publishing interval of the client, in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    pub interval: Duration,

    /// How long to measure before the first configuration is applied.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::some)]
    pub duration: Duration,

    /// Load before the measurement, and between two configurations; not counted.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span::seconds)]
    pub warmup: Duration,

    /// CPU for the gateway, and for the command that applies a configuration.
    #[arg(long, value_name = "LIST")]
    pub gateway_cpu: Option<CpuList>,

    /// CPU for the devices and the client.
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
}

impl Default for GatewayApply {
    fn default() -> Self {
        Self {
            changed: 10_000,
            applies: 10,
            devices: 50,
            registers: 200,
            poll: Duration::from_millis(100),
            interval: Duration::from_millis(100),
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(2),
            gateway_cpu: None,
            cpu: None,
        }
    }
}
