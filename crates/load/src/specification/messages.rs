//! Loads without an OPC UA server: brokers, publishers and switches.

use crate::mqtt::{Qos, Version};
use crate::pin::CpuList;
use crate::span;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Communication pattern through a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MqttPattern {
    /// Each client publishes to itself.
    RoundTrip,
    /// One client publishes, all others answer at once, the first waits for all answers.
    Fan,
}

/// What a message is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Plain bytes.
    Bytes,
    /// A PubSub NetworkMessage (UADP) with these bytes.
    Uadp,
}

impl Content {
    /// Name in specifications.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Uadp => "uadp",
        }
    }
}

/// `bench mqtt`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mqtt {
    /// The broker: mqtt://host[:1883] or host[:port].
    #[arg(value_name = "BROKER", required_unless_present = "peer", conflicts_with = "peer")]
    pub url: Option<String>,

    /// Start this broker for the measurement: mosquitto or rumqttd (see `lab peers`).
    #[arg(long, value_name = "NAME")]
    pub peer: Option<String>,

    /// CPU for the broker that is started.
    #[arg(long, value_name = "LIST", requires = "peer")]
    pub peer_cpu: Option<CpuList>,

    /// Communication pattern.
    #[arg(long, value_enum, default_value = "round-trip")]
    pub pattern: MqttPattern,

    /// Quality of service: 0, 1 or 2.
    #[arg(long, value_name = "LEVEL", default_value = "0")]
    pub qos: Qos,

    /// 3.1.1 or 5.
    #[arg(long, value_name = "VERSION", default_value = "3.1.1")]
    pub mqtt: Version,

    /// Content of a message.
    #[arg(long, value_enum, default_value = "bytes")]
    pub message: Content,

    /// Bytes of a message, or of the value in it.
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u32).range(8..=8 << 20))]
    pub payload: u32,

    /// Clients, each with its own connection.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub clients: u32,

    /// Messages (with fan: transactions) per second over all clients, sent on schedule. Default: each client publishes
    /// when its last message has come back.
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,

    /// Stop after this many messages or transactions, without the warm-up.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// How long to measure.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::seconds)]
    pub duration: Duration,

    /// Warm-up before the measurement, not counted.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span::seconds)]
    pub warmup: Duration,

    /// Process id of the broker, if it runs on this machine.
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,

    /// CPU to run on.
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,

    /// Never sleep while waiting for messages.
    #[arg(long)]
    pub busy_poll: bool,

    /// Exit when stdin closes (for supervisors).
    #[arg(long, hide = true)]
    pub exit_with_stdin: bool,
}

/// No broker: one must be named.
impl Default for Mqtt {
    fn default() -> Self {
        Self {
            url: None,
            peer: None,
            peer_cpu: None,
            pattern: MqttPattern::RoundTrip,
            qos: Qos::AtMostOnce,
            mqtt: Version::V311,
            message: Content::Bytes,
            payload: 16,
            clients: 1,
            rate: None,
            count: None,
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(1),
            server_pid: None,
            cpu: None,
            busy_poll: false,
            exit_with_stdin: false,
        }
    }
}

/// Layout of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Every field has a fixed position, without its type.
    PeriodicFixed,
    /// Messages describe their fields.
    Dynamic,
}

/// Message security.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageSecurity {
    /// No protection.
    None,
    /// Signed: protected against forging.
    Sign,
    /// Signed and encrypted.
    SignAndEncrypt,
}

/// Who publishes, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PubSubPattern {
    /// One publisher in cycles.
    Cycles,
    /// One station publishes to itself, each time the last message has arrived.
    RoundTrip,
    /// One client publishes, all others answer at once, the first waits for all answers.
    Fan,
    /// Only receive UADP without message security from another program. Times count from the SourceTimestamp and
    /// ServerTimestamp of a message's first field and the message's Timestamp.
    Listen,
}

/// `bench pubsub`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PubSub {
    /// Where to: opc.udp://host[:port].
    #[arg(value_name = "URL", default_value = PubSub::URL)]
    pub url: String,

    /// Network interface, by name or address.
    #[arg(long, value_name = "NAME", default_value = PubSub::INTERFACE)]
    pub interface: String,

    /// Number of floats, all of which change in every cycle.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub signals: u32,

    /// Publishing interval; a plain number is in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    pub interval: Duration,

    /// Layout of the messages.
    #[arg(long, value_enum, default_value = "periodic-fixed")]
    pub layout: Layout,

    /// Message security.
    #[arg(long, value_enum, default_value = "none")]
    pub security: MessageSecurity,

    /// Change the value at this interval in milliseconds, independent of the publisher, and measure delivery from the
    /// change. Default: a value is new when it is sampled.
    #[arg(long, value_name = "MS", value_parser = span::millis)]
    pub update: Option<Duration>,

    /// Who publishes, and when. The options --signals to --when-due but for --interface and --duration are for cycles,
    /// those from --clients on for the others; listen takes --interface, --interval (the publisher's), --duration,
    /// --subscriber-cpu, --busy-poll, --only-sleep and --publisher-id.
    #[arg(long, value_enum, default_value = "cycles")]
    pub pattern: PubSubPattern,

    /// Duration of the measurement, for publisher and bare loop each.
    #[arg(short, long, value_name = "SPAN", default_value = "10s", value_parser = span::seconds)]
    pub duration: Duration,

    /// Number of turns of publisher and bare loop within that time.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,

    /// Leave out the bare loop that sends the same datagrams.
    #[arg(long)]
    pub no_bare: bool,

    /// Leave out the subscriber.
    #[arg(long)]
    pub no_subscriber: bool,

    /// CPU of the publisher's thread and of the bare loop.
    #[arg(long, value_name = "N")]
    pub publisher_cpu: Option<usize>,

    /// CPU of the subscriber's thread.
    #[arg(long, value_name = "N")]
    pub subscriber_cpu: Option<usize>,

    /// The subscriber never sleeps.
    #[arg(long)]
    pub busy_poll: bool,

    /// The subscriber sleeps until a message arrives, instead of waking shortly before.
    #[arg(long, conflicts_with = "busy_poll")]
    pub only_sleep: bool,

    /// Real-time priority (SCHED_FIFO) of the publisher's thread and of the bare loop's, 1 to 99.
    #[arg(long, value_name = "PRIORITY")]
    pub fifo: Option<u8>,

    /// Sample when a cycle is due, instead of earlier by the time that preparing the messages takes.
    #[arg(long)]
    pub when_due: bool,

    /// Stations, each publisher and subscriber (fan).
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: u32,

    /// Bytes of a message's value (round-trip, fan).
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u32).range(8..=8 << 20))]
    pub payload: u32,

    /// Stop after this many round trips or transactions, without the warm-up.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Warm-up (round-trip, fan).
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span::seconds)]
    pub warmup: Duration,

    /// CPU to run on (round-trip, fan).
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,

    /// Publisher to listen to: 2234, byte:1, uint32:7, string:line-1 (listen). Default: the first one received.
    #[arg(long, value_name = "ID")]
    pub publisher_id: Option<String>,
}

impl PubSub {
    /// Default destination.
    pub const URL: &str = "opc.udp://239.192.0.2:14850";
    /// Default interface.
    pub const INTERFACE: &str = "lo";
}

impl Default for PubSub {
    fn default() -> Self {
        Self {
            url: Self::URL.to_owned(),
            interface: Self::INTERFACE.to_owned(),
            signals: 10_000,
            interval: Duration::from_millis(100),
            layout: Layout::PeriodicFixed,
            security: MessageSecurity::None,
            update: None,
            pattern: PubSubPattern::Cycles,
            duration: Duration::from_secs(10),
            rounds: 5,
            no_bare: false,
            no_subscriber: false,
            publisher_cpu: None,
            subscriber_cpu: None,
            busy_poll: false,
            only_sleep: false,
            fifo: None,
            when_due: false,
            clients: 1,
            payload: 16,
            count: None,
            warmup: Duration::from_secs(1),
            cpu: None,
            publisher_id: None,
        }
    }
}

/// `bench igmp`.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Igmp {
    /// The group.
    #[arg(value_name = "URL", default_value = "opc.udp://239.192.0.3:4840")]
    pub url: String,

    /// Publishing interval; a plain number is in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "10", value_parser = span::millis)]
    pub interval: Duration,

    /// Duration of each count, with and without snooping.
    #[arg(short, long, value_name = "SPAN", default_value = "2s", value_parser = span::seconds)]
    pub duration: Duration,
}

impl Default for Igmp {
    fn default() -> Self {
        Self {
            url: "opc.udp://239.192.0.3:4840".to_owned(),
            interval: Duration::from_millis(10),
            duration: Duration::from_secs(2),
        }
    }
}
