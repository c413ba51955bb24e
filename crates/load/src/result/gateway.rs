//! Gateways: what they cost, and how late the values are that go through them.

use super::parts;
use crate::latency::Summary;
use crate::validity::Invalid;
use serde::{Deserialize, Serialize};

parts!(Compared, Hanging, Polled, Relayed, Aggregated, Reconfigured);

/// `bench gateway`: values of field devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Polled {
    /// What was asked for.
    #[serde(default)]
    pub requested: PolledRequested,
    /// Values that came.
    pub values: u64,
    /// The same per second.
    pub values_per_s: f64,
    /// Values that the gateway reads per second.
    pub read_per_s: f64,
    /// From the change of a register to the client.
    pub delay: Summary,
    /// What the delay may be, microseconds: both intervals and an allowance.
    pub delay_limit_us: f64,
    /// Whether the 99th percentile of the delay is within it.
    pub p99_within_limit: bool,
}

/// What `bench gateway` was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolledRequested {
    /// Devices.
    pub devices: u32,
    /// Registers of each.
    pub registers: u16,
    /// How often they are read, milliseconds.
    pub poll_ms: f64,
    /// Publishing interval of the client, milliseconds.
    pub publishing_ms: f64,
    /// Devices that do not answer the second time.
    pub hang: u32,
}

/// `bench gateway --hang`: the devices that answer, beside others that do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Hanging {
    /// From the change of a register to the client.
    pub delay_while_others_hang: Summary,
}

/// `bench gateway --against`: gateways side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What was asked for.
    #[serde(default)]
    pub requested: ComparedRequested,
    /// Each gateway with each number of devices.
    pub comparison: Vec<Contest>,
    /// The largest load that each of the others holds.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
    /// What a value costs this program with all devices, divided by what it costs the best alternative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ratio_to_best: Option<f64>,
    /// Whether that is as little as was promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ratio_within_limit: Option<bool>,
}

/// What `bench gateway --against` was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparedRequested {
    /// Most devices.
    pub devices: u32,
    /// Registers of each.
    pub registers: u16,
    /// How often they are read, milliseconds.
    pub poll_ms: f64,
    /// Publishing interval of the client, milliseconds.
    pub publishing_ms: f64,
    /// The other gateways.
    pub against: Vec<String>,
    /// What a value may take to be in time, microseconds.
    pub delay_limit_us: f64,
    /// The share of all changes that has to come in time.
    pub share_in_time: f64,
}

/// One gateway with one number of devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// Its name.
    pub gateway: String,
    /// Its version.
    pub version: String,
    /// How many devices it read.
    pub devices: u32,
    /// Whether it held the load.
    pub holds: bool,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Option<Load>,
    /// Why nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a gateway did in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Values that came per second.
    pub values_per_s: f64,
    /// Values that changed per second.
    pub changes_per_s: f64,
    /// The share of the changes that came in time.
    pub in_time: f64,
    /// From the change of a register to the client.
    pub delay: Summary,
    /// CPU use of the gateway in percent of one core.
    pub cpu_percent: Option<f64>,
    /// Its CPU time for one value that came.
    pub cpu_us_per_value: Option<f64>,
    /// Its memory at the end, bytes.
    pub rss_bytes: u64,
    /// What a value costs it, divided by what one costs this program with as many devices.
    pub ratio: Option<f64>,
    /// Why the measurement is invalid, if it is.
    pub invalid: Option<Invalid>,
}

/// The largest load that a gateway holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Its name.
    pub gateway: String,
    /// How many devices; 0 if it holds no load.
    pub devices: u32,
    /// What it costs with these.
    #[serde(flatten)]
    pub cost: Option<Cost>,
}

/// What a gateway costs at the largest load that it holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Its version.
    pub version: String,
    /// CPU time for one value.
    pub cpu_us_per_value: f64,
    /// Divided by that of this program with as many devices.
    pub ratio_same_load: Option<f64>,
    /// Divided by that of this program with all devices.
    pub ratio_all_devices: Option<f64>,
}

/// `bench gateway-mqtt`: messages of a broker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Relayed {
    /// What was asked for.
    #[serde(default)]
    pub requested: RelayedRequested,
    /// Messages per second that the gateway took.
    pub messages_per_s: f64,
    /// Messages per second that were published.
    pub published_per_s: f64,
    /// Messages that the gateway did not take.
    pub lost: u64,
    /// CPU use of the broker in percent of one core, if it is known.
    pub broker_cpu_percent: Option<f64>,
    /// Who took no more.
    pub limit_of_messages: LimitedBy,
    /// From the publisher to a plain subscriber of the broker.
    pub plain: Summary,
    /// From the publisher to a client of the gateway.
    pub delay: Summary,
    /// By how much the 99th percentile of the second is longer, microseconds.
    pub added_p99_us: f64,
    /// Whether that is as little as was promised.
    pub p99_within_limit: bool,
}

/// What `bench gateway-mqtt` was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelayedRequested {
    /// Topics.
    pub topics: u32,
    /// Messages per second while delays are measured.
    pub rate_per_s: u32,
    /// The broker.
    pub broker: String,
    /// Publishing interval of the client, milliseconds.
    pub publishing_ms: f64,
}

/// Who sets the limit of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The broker and its publisher: the gateway took all, or enough.
    Broker,
    /// The gateway: messages are missing.
    #[default]
    Gateway,
}

/// `bench gateway-opcua`: values of other OPC UA servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Aggregated {
    /// What was asked for.
    #[serde(default)]
    pub requested: AggregatedRequested,
    /// Values that came to the clients.
    pub values: u64,
    /// The same per second.
    pub values_per_s: f64,
    /// Values that change per second.
    pub changes_per_s: f64,
    /// CPU use of one of the servers in percent of one core, with one client and no gateway.
    pub source_cpu_percent_one_client: f64,
    /// The same with the gateway.
    pub source_cpu_percent_gateway: f64,
    /// The second divided by the first.
    pub source_cpu_ratio: Option<f64>,
    /// From the write to the client, without a gateway.
    pub direct: Summary,
    /// From the write to the clients of the gateway.
    pub delay: Summary,
    /// By how much the 99th percentile of the second is longer, microseconds.
    pub added_p99_us: f64,
    /// Whether that is at most one publishing interval and an allowance.
    pub p99_within_limit: bool,
}

/// What `bench gateway-opcua` was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AggregatedRequested {
    /// Servers.
    pub servers: u32,
    /// Variables of each.
    pub items: u32,
    /// Clients of the gateway.
    pub clients: u32,
    /// Publishing interval, milliseconds.
    pub publishing_ms: f64,
}

/// `bench gateway-apply`: a configuration that changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Reconfigured {
    /// What was asked for.
    #[serde(default)]
    pub requested: ReconfiguredRequested,
    /// How long it took to apply a configuration.
    pub apply: Summary,
    /// From the change of a register to the client, of tags that do not change, before a configuration is applied.
    pub calm: Summary,
    /// The same while configurations are applied.
    pub during: Summary,
    /// Values that came per second, before.
    pub calm_values_per_s: f64,
    /// The same while configurations are applied.
    pub during_values_per_s: f64,
    /// The 99th percentile of the delay while configurations are applied, divided by the one before.
    pub p99_ratio: f64,
    /// Whether that is at most 2.
    pub p99_within_limit: bool,
}

/// What `bench gateway-apply` was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReconfiguredRequested {
    /// Tags that each configuration changes.
    pub changed: u32,
    /// How often one is applied.
    pub applies: u32,
    /// Devices whose tags do not change.
    pub devices: u32,
    /// Registers of each.
    pub registers: u16,
    /// How often they are read, milliseconds.
    pub poll_ms: f64,
    /// Publishing interval of the client, milliseconds.
    pub publishing_ms: f64,
}
