//! Loads of messages without an OPC UA server: PubSub, multicast and MQTT.

use super::parts;
use crate::latency::Summary;
use crate::mqtt::{Qos, Version};
use crate::specification::{Content, Layout, MessageSecurity, MqttPattern, PubSubPattern};
use serde::{Deserialize, Serialize};

parts!(Brokered, Delivered, Drift, FanOut, Heard, Igmp, Published, Stations);

/// A subscriber's statistics of a publisher's messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Delivered {
    /// Time from the change of a value to its arrival.
    pub delivery: Summary,
    /// Part of it until the cycle that carries the value.
    pub waiting: Summary,
    /// Part of it until the message was ready.
    pub making: Summary,
    /// Part of it until the message arrived.
    pub transfer: Summary,
    /// Time between messages.
    pub period_at_subscriber: Summary,
    /// Received and missing messages.
    pub received: Received,
    /// CPU use of the subscriber in percent of one core, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_cpu_percent: Option<f64>,
}

/// Received and missing messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Received.
    pub messages: u64,
    /// Missing, by their sequence numbers.
    pub missing: u64,
    /// Of other writers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_other_writers: Option<u64>,
}

/// Deviation of a publisher's period from the configured one, measured at the subscriber.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Parts per million.
    pub drift_ppm: f64,
    /// Per cycle, nanoseconds.
    pub mean_period_error_ns: f64,
}

/// Cycles that were more than a millisecond late, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// The timer.
    pub timer: u64,
    /// Encoding the messages.
    pub encode: u64,
    /// Sending them.
    pub send: u64,
}

/// `bench pubsub`: our publisher, and a bare loop for comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Requested parameters.
    #[serde(default)]
    pub requested: PublishedRequested,
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Cycles run.
    pub cycles: u64,
    /// Cycles missed.
    pub cycles_missed: u64,
    /// Part of them because the publisher was busy.
    #[serde(default)]
    pub cycles_missed_busy: u64,
    /// Messages sent.
    #[serde(default)]
    pub messages_sent: u64,
    /// Messages that could not be sent.
    #[serde(default)]
    pub messages_failed: u64,
    /// Bytes sent.
    #[serde(default)]
    pub bytes_sent: u64,
    /// Datagrams per cycle.
    #[serde(default)]
    pub datagrams_per_cycle: u64,
    /// Values per second.
    pub signals_per_s: f64,
    /// CPU use of the publisher's thread in percent of one core.
    pub publisher_cpu_percent: f64,
    /// CPU use of the process without the subscriber's thread, comparable with a server process.
    pub process_cpu_percent: f64,
    /// CPU time per value, nanoseconds.
    pub publisher_cpu_ns_per_signal: f64,
    /// Time from due to sent.
    pub lateness: Summary,
    /// Time for encoding messages.
    pub encode: Summary,
    /// Time for sending them.
    pub send: Summary,
    /// Late cycles.
    #[serde(default)]
    pub late: Late,
    /// CPU use of the bare loop.
    #[serde(default)]
    pub bare_cpu_percent: f64,
    /// Cycles of the bare loop.
    #[serde(default)]
    pub bare_cycles: u64,
    /// Cycles missed by the bare loop.
    #[serde(default)]
    pub bare_cycles_missed: u64,
    /// Time from due to sent for the bare loop.
    #[serde(default)]
    pub bare_lateness: Summary,
    /// The publisher's lateness divided by the bare loop's: median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p50_ratio: Option<f64>,
    /// The same for the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p99_ratio: Option<f64>,
}

/// Parameters of `bench pubsub`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishedRequested {
    /// Values per cycle.
    pub signals: u32,
    /// Publishing interval, milliseconds.
    pub interval_ms: f64,
    /// Layout of the messages.
    pub layout: Option<Layout>,
    /// Message security.
    pub security: Security,
    /// Interval at which the value changes in milliseconds; `None` if it is new in each cycle.
    pub update_ms: Option<f64>,
    /// Network interface.
    pub interface: String,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// Number of turns of publisher and bare loop.
    pub rounds: u32,
    /// Real-time priority.
    pub fifo: Option<u8>,
    /// How the subscriber waits.
    pub receiver: Receiver,
    /// CPU of the publisher's thread.
    pub publisher_cpu: Option<usize>,
    /// CPU of the subscriber's thread.
    pub subscriber_cpu: Option<usize>,
}

/// Message security by the names of the specification (Part 4 §7.20).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Security {
    /// No protection.
    #[default]
    None,
    /// Signed.
    Sign,
    /// Signed and encrypted.
    SignAndEncrypt,
}

impl From<MessageSecurity> for Security {
    fn from(security: MessageSecurity) -> Self {
        match security {
            MessageSecurity::None => Self::None,
            MessageSecurity::Sign => Self::Sign,
            MessageSecurity::SignAndEncrypt => Self::SignAndEncrypt,
        }
    }
}

/// How a subscriber waits for messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// Never sleeps.
    Busy,
    /// Sleeps until a message arrives.
    Asleep,
    /// Sleeps until shortly before a message is expected.
    #[default]
    Expecting,
}

/// `bench pubsub --pattern listen`; the statistics of the received messages are in [`Delivered`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// Requested parameters.
    #[serde(default)]
    pub requested: HeardRequested,
    /// Length of the window, seconds.
    pub window_s: f64,
}

/// Parameters of `bench pubsub --pattern listen`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeardRequested {
    /// The pattern: another program publishes.
    pub pattern: Option<PubSubPattern>,
    /// The publisher's interval, milliseconds.
    pub interval_ms: f64,
    /// Network interface.
    pub interface: String,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// How the subscriber waits.
    pub receiver: Receiver,
    /// CPU of its thread.
    pub subscriber_cpu: Option<usize>,
}

/// `bench pubsub --pattern round-trip` and `fan`: messages between stations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stations {
    /// Requested parameters.
    #[serde(default)]
    pub requested: StationsRequested,
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Messages or transactions started.
    pub asked: u64,
    /// Messages that did not arrive.
    pub missing: u64,
    /// Bytes on the wire, with the same names as for TCP.
    pub wire: Datagrams,
    /// CPU time of all stations.
    pub generator: Crew,
}

/// Parameters of `bench pubsub --pattern round-trip` and `fan`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StationsRequested {
    /// The communication pattern.
    pub pattern: Option<PubSubPattern>,
    /// Stations.
    pub clients: u32,
    /// Bytes of a message's value.
    pub payload_bytes: u32,
    /// Round trips or transactions, if their number ends the load.
    pub count: Option<u64>,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// Warm-up, seconds.
    pub warmup_s: f64,
}

/// Bytes in datagrams, with the names of [`crate::wire::Wire`]. Only the lengths of the datagrams are measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Bytes of UADP.
    pub payload_out_bytes: u64,
    /// Always 0: datagrams have one direction.
    pub payload_in_bytes: u64,
    /// Datagrams.
    pub frames: u64,
    /// Bytes of UDP and IP headers.
    pub tcp_ip_bytes: u64,
    /// Bytes of Ethernet.
    pub ethernet_bytes: u64,
    /// Sum of all bytes.
    pub total_bytes: u64,
}

/// Resources used by the threads of a load together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Crew {
    /// CPU time, seconds.
    pub cpu_s: f64,
}

/// `bench igmp`: packets at a host that joined a group, and at one that did not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Igmp {
    /// Requested parameters.
    #[serde(default)]
    pub requested: IgmpRequested,
    /// With IGMP snooping.
    pub snooping: Multicast,
    /// Without IGMP snooping.
    pub flooding: Multicast,
}

/// Parameters of `bench igmp`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IgmpRequested {
    /// Publishing interval, milliseconds.
    pub interval_ms: f64,
    /// How long to count, seconds.
    pub duration_s: f64,
}

/// Packets of a multicast group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Multicast {
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received by the subscriber.
    pub messages_heard: u64,
    /// Packets of any kind at the interface of the joined host.
    pub packets_at_joined: u64,
    /// Packets of any kind at the interface of the other host.
    pub packets_at_unjoined: u64,
    /// The latter in percent of the messages.
    pub unjoined_percent: f64,
}

/// `bench mqtt`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Brokered {
    /// Requested parameters.
    #[serde(default)]
    pub requested: BrokeredRequested,
    /// Messages sent.
    pub sent: u64,
    /// Messages that were due.
    pub due: u64,
    /// Messages or transactions that returned.
    pub messages: u64,
    /// Messages that did not return.
    pub missing: u64,
    /// Bytes of MQTT received.
    pub mqtt_bytes_received: u64,
    /// Bytes of MQTT sent.
    pub mqtt_bytes_sent: u64,
    /// Connections that were lost.
    #[serde(default)]
    pub connections_lost: usize,
    /// Messages or transactions per second; `None` if the window was not closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
}

/// Parameters of `bench mqtt`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokeredRequested {
    /// The communication pattern.
    pub pattern: Option<MqttPattern>,
    /// Clients.
    pub clients: u32,
    /// Quality of service.
    pub qos: Option<Qos>,
    /// Version of MQTT.
    pub mqtt: Option<Version>,
    /// Content of a message.
    pub message: Option<Content>,
    /// Bytes of a message, or of the value in it.
    pub payload_bytes: u32,
    /// Messages or transactions per second of a schedule.
    pub rate: Option<f64>,
    /// Messages or transactions, if their number ends the load.
    pub count: Option<u64>,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// Warm-up, seconds.
    pub warmup_s: f64,
}

/// `bench mqtt --pattern fan`: time until the receivers had a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// Each receiver.
    pub fan_out_each: Summary,
    /// The last receiver.
    pub fan_out_last: Summary,
}
