//! Loads of gateways: their cost, and the delay of values through them.

use super::parts;
use crate::latency::Summary;
use crate::validity::Invalid;
use serde::{Deserialize, Serialize};

parts!(Compared, Hanging, Polled, Relayed, Aggregated, Reconfigured);

/// `bench gateway`: values of field devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Polled {
    /// Requested parameters.
    #[serde(default)]
    pub requested: PolledRequested,
    /// Received values.
    pub values: u64,
    /// The same per second.
    pub values_per_s: f64,
    /// Values that the gateway reads per second.
    pub read_per_s: f64,
    /// From the change of a register to the client.
    pub delay: Summary,
    /// Limit of the delay in microseconds: both intervals and an allowance.
    pub delay_limit_us: f64,
    /// Whether the 99th percentile of the delay is within the limit.
    pub p99_within_limit: bool,
}

/// Parameters of `bench gateway`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolledRequested {
    /// Devices.
    pub devices: u32,
    /// Registers of each.
    pub registers: u16,
    /// Polling interval in milliseconds.
    pub poll_ms: f64,
    /// Publishing interval of the client, milliseconds.
    pub publishing_ms: f64,
    /// Devices that stop answering in the second measurement.
    pub hang: u32,
}

/// `bench gateway --hang`: the answering devices, while others hang.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Hanging {
    /// From the change of a register to the client.
    pub delay_while_others_hang: Summary,
}

/// `bench gateway --against`: comparison of gateways.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Requested parameters.
    #[serde(default)]
    pub requested: ComparedRequested,
    /// Each gateway with each number of devices.
    pub comparison: Vec<Contest>,
    /// The largest load that each other gateway sustains.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
    /// Cost per value of this program with all devices, divided by that of the best alternative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ratio_to_best: Option<f64>,
    /// Whether the ratio is within its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ratio_within_limit: Option<bool>,
}

/// Parameters of `bench gateway --against`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparedRequested {
    /// Maximum number of devices.
    pub devices: u32,
    /// Registers of each.
    pub registers: u16,
    /// Polling interval in milliseconds.
    pub poll_ms: f64,
    /// Publishing interval of the client, milliseconds.
    pub publishing_ms: f64,
    /// The other gateways.
    pub against: Vec<String>,
    /// Limit of the delay for a value to be in time, in microseconds.
    pub delay_limit_us: f64,
    /// Minimum share of changes that must arrive in time.
    pub share_in_time: f64,
}

/// One gateway with one number of devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// Its name.
    pub gateway: String,
    /// Its version.
    pub version: String,
    /// Number of devices.
    pub devices: u32,
    /// Whether it sustained the load.
    pub holds: bool,
    /// The measurement.
    #[serde(flatten)]
    pub measured: Option<Load>,
    /// Why there is no measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Results of a gateway in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Received values per second.
    pub values_per_s: f64,
    /// Changed values per second.
    pub changes_per_s: f64,
    /// Share of changes that arrived in time.
    pub in_time: f64,
    /// From the change of a register to the client.
    pub delay: Summary,
    /// CPU use of the gateway in percent of one core.
    pub cpu_percent: Option<f64>,
    /// CPU time per received value.
    pub cpu_us_per_value: Option<f64>,
    /// Its memory at the end, bytes.
    pub rss_bytes: u64,
    /// Cost per value, divided by that of this program with the same number of devices.
    pub ratio: Option<f64>,
    /// Why the measurement is invalid, if it is.
    pub invalid: Option<Invalid>,
}

/// The largest load that a gateway sustains.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Its name.
    pub gateway: String,
    /// Number of devices; 0 if it sustains no load.
    pub devices: u32,
    /// Its cost with that load.
    #[serde(flatten)]
    pub cost: Option<Cost>,
}

/// Cost of a gateway at the largest load that it sustains.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Its version.
    pub version: String,
    /// CPU time per value.
    pub cpu_us_per_value: f64,
    /// Divided by that of this program with the same number of devices.
    pub ratio_same_load: Option<f64>,
    /// Divided by that of this program with all devices.
    pub ratio_all_devices: Option<f64>,
}

/// `bench gateway-mqtt`: messages of a broker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Relayed {
    /// Requested parameters.
    #[serde(default)]
    pub requested: RelayedRequested,
    /// Messages per second that the gateway received.
    pub messages_per_s: f64,
    /// Messages per second that were published.
    pub published_per_s: f64,
    /// Messages that the gateway did not receive.
    pub lost: u64,
    /// CPU use of the broker in percent of one core, if it is known.
    pub broker_cpu_percent: Option<f64>,
    /// The bottleneck.
    pub limit_of_messages: LimitedBy,
    /// From the publisher to a plain subscriber of the broker.
    pub plain: Summary,
    /// From the publisher to a client of the gateway.
    pub delay: Summary,
    /// Increase of the 99th percentile by the gateway, in microseconds.
    pub added_p99_us: f64,
    /// Whether the increase is within its limit.
    pub p99_within_limit: bool,
}

/// Parameters of `bench gateway-mqtt`.
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

/// The bottleneck for messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// Broker or publisher: the gateway received all messages, or enough.
    Broker,
    /// The gateway: messages are missing.
    #[default]
    Gateway,
}

/// `bench gateway-opcua`: values of other OPC UA servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Aggregated {
    /// Requested parameters.
    #[serde(default)]
    pub requested: AggregatedRequested,
    /// Values received by the clients.
    pub values: u64,
    /// The same per second.
    pub values_per_s: f64,
    /// Values that change per second.
    pub changes_per_s: f64,
    /// CPU use of a server with one client and without the gateway in percent of one core, while the gateway is measured.
    pub source_cpu_percent_one_client: f64,
    /// Mean of the servers behind the gateway.
    pub source_cpu_percent_gateway: f64,
    /// Ratio of the two, with gateway to without.
    pub source_cpu_ratio: Option<f64>,
    /// From the write to the client, without a gateway.
    pub direct: Summary,
    /// From the write to the clients of the gateway.
    pub delay: Summary,
    /// Increase of the 99th percentile by the gateway, in microseconds.
    pub added_p99_us: f64,
    /// Whether the increase is at most one publishing interval and an allowance.
    pub p99_within_limit: bool,
}

/// Parameters of `bench gateway-opcua`.
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

/// `bench gateway-apply`: configuration changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Reconfigured {
    /// Requested parameters.
    #[serde(default)]
    pub requested: ReconfiguredRequested,
    /// Time to apply a configuration.
    pub apply: Summary,
    /// Delay from the change of a register to the client, for unchanged tags, before a configuration is applied.
    pub calm: Summary,
    /// The same while configurations are applied.
    pub during: Summary,
    /// Received values per second before.
    pub calm_values_per_s: f64,
    /// The same while configurations are applied.
    pub during_values_per_s: f64,
    /// The 99th percentile of the delay while configurations are applied, divided by the one before.
    pub p99_ratio: f64,
    /// Whether the ratio is at most 2.
    pub p99_within_limit: bool,
}

/// Parameters of `bench gateway-apply`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReconfiguredRequested {
    /// Tags that each configuration changes.
    pub changed: u32,
    /// Number of applied configurations.
    pub applies: u32,
    /// Devices whose tags do not change.
    pub devices: u32,
    /// Registers of each.
    pub registers: u16,
    /// Polling interval in milliseconds.
    pub poll_ms: f64,
    /// Publishing interval of the client, milliseconds.
    pub publishing_ms: f64,
}
