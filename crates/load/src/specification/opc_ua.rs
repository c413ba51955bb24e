//! Loads of OPC UA servers.

use super::Common;
use crate::node::NodeSpec;
use crate::pin::CpuList;
use crate::span;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Monitored items per request; some servers refuse larger messages.
const ITEMS_PER_REQUEST: u32 = 2_000;
/// The interop test node.
const BYTE_STRING: &str = "nsu=urn:taktwerk:interop;s=scalar/ByteString";

/// `bench read`, `write` and `browse`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// Server and clients.
    #[command(flatten)]
    pub common: Common,

    /// Stop after this many requests in all, without the warm-up.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Requests per second over all clients, sent on schedule (open loop).
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "closed")]
    pub rate: Option<f64>,

    /// Each client sends its next request when it has the last response (closed loop). Default without --rate.
    #[arg(long)]
    pub closed: bool,

    /// Pause of each client before its next request; not part of the round trip.
    #[arg(long, value_name = "SPAN", conflicts_with = "rate", value_parser = span::millis)]
    pub pause: Option<Duration>,

    /// Nodes per request.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub batch: u32,

    /// NodeId or browse path (with * and ?). Can be repeated.
    #[arg(long, value_name = "NODE")]
    pub nodes: Vec<NodeSpec>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            common: Common::default(),
            count: None,
            rate: None,
            closed: false,
            pause: None,
            batch: 1,
            nodes: Vec::new(),
        }
    }
}

/// `bench connect`. Here `clients` is how many sessions are being opened at a time.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Connect {
    /// Server and clients.
    #[command(flatten)]
    pub common: Common,

    /// Stop after this many sessions.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Sessions per second, opened on schedule (open loop).
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,

    /// Keep the sessions open until the end (at most 10 000).
    #[arg(long)]
    pub hold: bool,
}

/// `bench subscribe`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Subscribe {
    /// Server and clients.
    #[command(flatten)]
    pub common: Common,

    /// Monitored items over all clients; 0 for subscriptions without items. Default: one per node found.
    #[arg(long, value_name = "N")]
    pub items: Option<u32>,

    /// Publishing interval in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1000", value_parser = span::millis)]
    pub interval: Duration,

    /// Sampling interval in milliseconds; 0 for every change. Default: the publishing interval.
    #[arg(long, value_name = "MS", value_parser = span::millis)]
    pub sampling: Option<Duration>,

    /// Queue size per item.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub queue: u32,

    /// Interval at which the server changes each value, in milliseconds: the expected number of notifications per item.
    /// Default: that of the median item.
    #[arg(long, value_name = "MS", value_parser = span::millis)]
    pub update: Option<Duration>,

    /// Monitored items per CreateMonitoredItems request, at most what the server allows. Many block a slow server for
    /// other clients.
    #[arg(long, value_name = "N", default_value_t = ITEMS_PER_REQUEST, value_parser = clap::value_parser!(u32).range(1..))]
    pub per_request: u32,

    /// NodeId or browse path (with * and ?); items are spread over the nodes. Can be repeated.
    #[arg(long, value_name = "NODE")]
    pub nodes: Vec<NodeSpec>,

    /// Values contain the time of their write (a Double in seconds since 1970, or a DateTime): measure their age.
    /// `serve --signal-values time` writes such values.
    #[arg(long)]
    pub time_in_value: bool,

    /// Also measure the age of every value by its source timestamp. Without it, only the first value of a message counts
    /// (delivery).
    #[arg(long)]
    pub each_value: bool,

    /// Send a Publish request each time this share of the publishing interval has passed, such as 0.8. By default, the
    /// client keeps a number of requests pending.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "publish_requests")]
    pub publish_every: Option<f64>,

    /// Maximum number of Publish requests that each client keeps pending. By default, as many as its subscription needs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub publish_requests: Option<u32>,

    /// Maximum number of notifications in a message. By default, there is no limit.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub notifications_max: Option<u32>,

    /// Number of publishing intervals without changes until the server sends a keep-alive message. By default 10.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_alive_count: Option<u32>,

    /// Start the measurement when messages have arrived in time and with equally many values for ten intervals.
    #[arg(long)]
    pub steady: bool,

    /// Add one client with this many items, which the figures leave out.
    #[arg(long, value_name = "ITEMS")]
    pub heavy: Option<u32>,

    /// Measure twice: while the heavy client reads, and after it has stopped reading its socket.
    #[arg(long, requires = "heavy")]
    pub stall: bool,
}

/// Parses a share of an interval.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.01..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is not a share from 0.01 to 1"))
}

impl Default for Subscribe {
    fn default() -> Self {
        Self {
            common: Common::default(),
            items: None,
            interval: Duration::from_secs(1),
            sampling: None,
            queue: 1,
            update: None,
            per_request: ITEMS_PER_REQUEST,
            nodes: Vec::new(),
            time_in_value: false,
            each_value: false,
            publish_every: None,
            publish_requests: None,
            notifications_max: None,
            keep_alive_count: None,
            steady: false,
            heavy: None,
            stall: false,
        }
    }
}

/// `bench roundtrip`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Roundtrip {
    /// Server and clients.
    #[command(flatten)]
    pub common: Common,

    /// Stop after this many round trips, without the warm-up.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Bytes of each value, at least 8 (they hold its number).
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u32).range(8..=16_000_000))]
    pub payload: u32,

    /// Publishing interval to ask for, in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1", value_parser = span::millis)]
    pub interval: Duration,

    /// A ByteString variable that may be written; the interop test node by default.
    #[arg(long, value_name = "NODE", default_value = BYTE_STRING)]
    pub node: NodeSpec,
}

impl Default for Roundtrip {
    fn default() -> Self {
        Self {
            common: Common::default(),
            count: None,
            payload: 16,
            interval: Duration::from_millis(1),
            // The text is a constant, which a test parses.
            node: BYTE_STRING.parse().unwrap_or(NodeSpec::Path(Vec::new())),
        }
    }
}

/// `bench fan`. The server needs as many signals as there are clients (`serve --signals N --update 0`).
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fan {
    /// Server and clients.
    #[command(flatten)]
    pub common: Common,

    /// Stop after this many transactions, without the warm-up.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Publishing interval to ask for, in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "1", value_parser = span::millis)]
    pub interval: Duration,
}

impl Default for Fan {
    fn default() -> Self {
        Self { common: Common::default(), count: None, interval: Duration::from_millis(1) }
    }
}

/// `bench probe`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Probe {
    /// Server and clients.
    #[command(flatten)]
    pub common: Common,

    /// Stop after this many requests. Default: when the duration is over.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Requests per second.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 100.0)]
    pub rate: f64,

    /// Nodes per request.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub batch: u32,

    /// NodeId or browse path (with * and ?). Can be repeated.
    #[arg(long, value_name = "NODE")]
    pub nodes: Vec<NodeSpec>,

    /// CPU of the server, whose load is recorded beside each answer.
    #[arg(long, value_name = "CPU")]
    pub server_cpu: Option<usize>,

    /// Treat a response as slow from this multiple of the fastest on.
    #[arg(long, value_name = "TIMES", default_value_t = 5.0)]
    pub slow: f64,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            common: Common::default(),
            count: None,
            rate: 100.0,
            batch: 1,
            nodes: Vec::new(),
            server_cpu: None,
            slow: 5.0,
        }
    }
}

/// `bench update`: the server is within the generator's process.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Update {
    /// Signals to set in each cycle.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    pub signals: u32,

    /// Number of threads that share the signals.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,

    /// Interval of the cycles.
    #[arg(short = 'I', long, value_name = "MS", default_value = "500", value_parser = span::millis)]
    pub interval: Duration,

    /// Cycles to measure.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 15)]
    pub count: u64,

    /// CPUs to run on.
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
}

impl Default for Update {
    fn default() -> Self {
        Self { signals: 100, threads: 1, interval: Duration::from_millis(500), count: 15, cpu: None }
    }
}
