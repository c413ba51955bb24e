//! Results of subscriptions, and of values that return through them.

use super::parts;
use crate::latency::Summary;
use crate::progress::ProgressSummary;
use serde::{Deserialize, Serialize};
use taktwerk_model::figures;

parts!(Subscribed, Stalled, Returned, RoundTrips, Transactions);

/// Minimum and maximum of revised values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl Extent {
    /// Extends the range by a value.
    pub fn widen(extent: &mut Option<Self>, value: f64) {
        let old = extent.unwrap_or(Self { min: value, max: value });
        *extent = Some(Self { min: old.min.min(value), max: old.max.max(value) });
    }

    /// Formats the range; a dash without values.
    #[must_use]
    pub fn show(extent: Option<Self>, unit: &str) -> String {
        // Most are whole numbers, which need no decimals.
        let number = |value: f64| {
            if value.fract() == 0.0 { figures::thousands(value as i64) } else { figures::number(value) }
        };
        match extent {
            None => "–".to_owned(),
            Some(Self { min, max }) if min == max => format!("{}{unit}", number(min)),
            Some(Self { min, max }) => format!("{} to {}{unit}", number(min), number(max)),
        }
    }
}

/// The parameters revised by the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Revised {
    /// Publishing intervals, milliseconds.
    pub publishing_ms: Option<Extent>,
    /// Sampling intervals, milliseconds.
    pub sampling_ms: Option<Extent>,
    /// Queue sizes.
    pub queue: Option<Extent>,
}

impl Revised {
    /// The longest revised publishing and sampling interval, in milliseconds.
    #[must_use]
    pub fn longest_ms(&self) -> [Option<f64>; 2] {
        [self.publishing_ms, self.sampling_ms].map(|extent| extent.map(|extent| extent.max))
    }
}

/// `bench subscribe`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subscribed {
    /// Requested parameters.
    #[serde(default)]
    pub requested: SubscribedRequested,
    /// The parameters revised by the server.
    #[serde(default)]
    pub revised: Revised,
    /// Number of nodes found.
    #[serde(default)]
    pub nodes: usize,
    /// Values received in the window.
    pub notifications: u64,
    /// Values per second.
    pub per_second: f64,
    /// Messages with values.
    #[serde(default)]
    pub messages: u64,
    /// Missing messages, by sequence number.
    pub lost_messages: u64,
    /// Whether the load became steady; `None` if this was not awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<bool>,
    /// Clients whose next message was overdue at the end.
    #[serde(default)]
    pub waiting_at_end: usize,
    /// From the source timestamp to the application.
    #[serde(default)]
    pub delivery: Summary,
    /// The same for every value, if each one was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Summary>,
    /// Publish requests that the server refused because there were too many, if they were sent by a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_requests_refused: Option<u64>,
    /// Whether source timestamps are the time of sampling, not of writing.
    #[serde(default)]
    pub source_timestamps_made_when_sampled: bool,
    /// From the write to the application, if values contain their time of writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Summary>,
    /// From the write to the source timestamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_to_source_timestamp: Option<Summary>,
    /// Values without a time of writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_without_time: Option<u64>,
    /// Time between two messages of a client.
    pub message_interval: Summary,
    /// Messages whose PublishTime is null.
    #[serde(default)]
    pub unstamped_messages: u64,
    /// From the PublishTime to the application; `None` if the server sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Summary>,
    /// Values received per item.
    pub progress: ProgressSummary,
    /// Connections that were lost.
    pub connections_lost: usize,
}

/// Parameters of `bench subscribe`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscribedRequested {
    /// Sessions.
    pub clients: u32,
    /// Monitored items over all of them.
    pub items: u32,
    /// Publishing interval, milliseconds.
    pub publishing_ms: f64,
    /// Sampling interval, milliseconds.
    pub sampling_ms: f64,
    /// Queue size of each item.
    pub queue: u32,
    /// Interval at which each value changes in milliseconds, if given.
    pub update_ms: Option<f64>,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// Warm-up, seconds.
    pub warmup_s: f64,
    /// Items of the heavy client, if there is one.
    pub heavy: Option<u32>,
    /// Whether that client stops reading.
    pub stall: bool,
    /// Whether values contain their time of writing.
    pub time_in_value: bool,
}

/// `bench subscribe --stall`: a load in which a client stops reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalled {
    /// Like [`Subscribed::delivery`], before the client stops reading.
    pub delivery_before_stall: Summary,
}

/// `bench roundtrip` and `fan` with a server; their times are [`RoundTrips`] or [`Transactions`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Returned {
    /// Requested parameters.
    #[serde(default)]
    pub requested: ReturnedRequested,
    /// The publishing interval revised by the server, in milliseconds.
    #[serde(default)]
    pub revised_publishing_ms: f64,
}

/// Parameters of `bench roundtrip` and `fan`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReturnedRequested {
    /// Bytes of each value of a round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u32>,
    /// Clients of a fan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Publishing interval, milliseconds.
    pub publishing_ms: f64,
    /// Round trips or transactions, if their number ends the load.
    pub count: Option<u64>,
}

/// `bench roundtrip`, also over PubSub and MQTT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// Round trip of a value.
    pub roundtrip: Summary,
}

/// `bench fan`, also over PubSub and MQTT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// From the write to the last answer.
    pub transaction: Summary,
}
