//! Messages without a server: PubSub, multicast and MQTT.

use super::parts;
use crate::latency::Summary;
use crate::mqtt::{Qos, Version};
use crate::specification::{Content, Layout, MessageSecurity, MqttPattern, PubSubPattern};
use serde::{Deserialize, Serialize};

parts!(Brokered, Delivered, Drift, FanOut, Heard, Igmp, Published, Stations);

/// Messages of a publisher as a subscriber had them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Delivered {
    /// Change of a value to its arrival.
    pub delivery: Summary,
    /// Of it: until the cycle that carries the value.
    pub waiting: Summary,
    /// Of it: until the message was ready.
    pub making: Summary,
    /// Of it: until it arrived.
    pub transfer: Summary,
    /// From message to message.
    pub period_at_subscriber: Summary,
    /// Messages that came and did not come.
    pub received: Received,
    /// CPU use of the subscriber in percent of one core, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_cpu_percent: Option<f64>,
}

/// Messages that came and did not come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// That came.
    pub messages: u64,
    /// That are missing by their numbers.
    pub missing: u64,
    /// Of writers that were not listened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_other_writers: Option<u64>,
}

/// How far a publisher's period is from the configured one, at the subscriber.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Parts per million.
    pub drift_ppm: f64,
    /// Per cycle, nanoseconds.
    pub mean_period_error_ns: f64,
}

/// Cycles that were later than a millisecond, by what made them late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// The timer.
    pub timer: u64,
    /// Making the messages.
    pub encode: u64,
    /// Sending them.
    pub send: u64,
}

/// `bench pubsub`: our publisher, and a bare loop for comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// What was asked for.
    #[serde(default)]
    pub requested: PublishedRequested,
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Cycles run.
    pub cycles: u64,
    /// Cycles missed.
    pub cycles_missed: u64,
    /// Of them, because the publisher was busy.
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
    /// CPU use of the process without the subscriber's thread: what a server's process is measured by.
    pub process_cpu_percent: f64,
    /// CPU time per value, nanoseconds.
    pub publisher_cpu_ns_per_signal: f64,
    /// Due to sent.
    pub lateness: Summary,
    /// Making messages.
    pub encode: Summary,
    /// Sending them.
    pub send: Summary,
    /// Cycles that were late.
    #[serde(default)]
    pub late: Late,
    /// CPU use of the bare loop.
    #[serde(default)]
    pub bare_cpu_percent: f64,
    /// Cycles of the bare loop.
    #[serde(default)]
    pub bare_cycles: u64,
    /// Cycles that it missed.
    #[serde(default)]
    pub bare_cycles_missed: u64,
    /// Due to sent of the bare loop.
    #[serde(default)]
    pub bare_lateness: Summary,
    /// The publisher's lateness divided by the bare loop's, median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p50_ratio: Option<f64>,
    /// The same of the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p99_ratio: Option<f64>,
}

/// What `bench pubsub` was asked for.
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
    /// Interval at which the value changes, milliseconds; `None` if it is new when it is sampled.
    pub update_ms: Option<f64>,
    /// Network interface.
    pub interface: String,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// Turns of publisher and bare loop.
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
    /// It never sleeps.
    Busy,
    /// It sleeps until a message arrives.
    Asleep,
    /// It sleeps until shortly before a message is expected.
    #[default]
    Expecting,
}

/// `bench pubsub --pattern listen`: what another publisher sends is in [`Delivered`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// What was asked for.
    #[serde(default)]
    pub requested: HeardRequested,
    /// Length of the window, seconds.
    pub window_s: f64,
}

/// What `bench pubsub --pattern listen` was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeardRequested {
    /// Who publishes: somebody else.
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
    /// What was asked for.
    #[serde(default)]
    pub requested: StationsRequested,
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Messages or transactions begun.
    pub asked: u64,
    /// Messages that did not come.
    pub missing: u64,
    /// Bytes by the names that they have for TCP.
    pub wire: Datagrams,
    /// CPU time of all stations.
    pub generator: Crew,
}

/// What `bench pubsub --pattern round-trip` and `fan` were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StationsRequested {
    /// Who answers.
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

/// Bytes in datagrams, by the names of [`crate::wire::Wire`]. Nothing is measured here but the lengths of the datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Bytes of UADP.
    pub payload_out_bytes: u64,
    /// None: datagrams go one way.
    pub payload_in_bytes: u64,
    /// Datagrams.
    pub frames: u64,
    /// Bytes of UDP and IP headers.
    pub tcp_ip_bytes: u64,
    /// Bytes of Ethernet.
    pub ethernet_bytes: u64,
    /// All of them.
    pub total_bytes: u64,
}

/// What the threads of a load used together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Crew {
    /// CPU time, seconds.
    pub cpu_s: f64,
}

/// `bench igmp`: packets at a socket that has joined a group, and at one that has not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Igmp {
    /// What was asked for.
    #[serde(default)]
    pub requested: IgmpRequested,
    /// With IGMP snooping.
    pub snooping: Multicast,
    /// Without.
    pub flooding: Multicast,
}

/// What `bench igmp` was asked for.
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
    /// Messages that left.
    pub messages_sent: u64,
    /// Messages that the subscriber had.
    pub messages_heard: u64,
    /// Packets of any kind at the interface that has joined.
    pub packets_at_joined: u64,
    /// Packets of any kind at the other.
    pub packets_at_unjoined: u64,
    /// Those in percent of the messages.
    pub unjoined_percent: f64,
}

/// `bench mqtt`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Brokered {
    /// What was asked for.
    #[serde(default)]
    pub requested: BrokeredRequested,
    /// Messages sent.
    pub sent: u64,
    /// Messages that were due.
    pub due: u64,
    /// Messages or transactions that came back.
    pub messages: u64,
    /// Messages that did not.
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

/// What `bench mqtt` was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokeredRequested {
    /// Who answers.
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

/// With `--pattern fan` over MQTT: how long until the receivers had a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// Each.
    pub fan_out_each: Summary,
    /// The last.
    pub fan_out_last: Summary,
}
