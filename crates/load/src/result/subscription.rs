//! Subscriptions, and values that come back by them.

use super::parts;
use crate::latency::Summary;
use crate::progress::ProgressSummary;
use serde::{Deserialize, Serialize};
use taktwerk_model::figures;

parts!(Subscribed, Stalled, Returned, RoundTrips, Transactions);

/// The smallest and largest of revised values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Extent {
    /// Makes room for another value.
    pub fn widen(extent: &mut Option<Self>, value: f64) {
        let old = extent.unwrap_or(Self { min: value, max: value });
        *extent = Some(Self { min: old.min.min(value), max: old.max.max(value) });
    }

    /// In words; a dash if no value came.
    #[must_use]
    pub fn show(extent: Option<Self>, unit: &str) -> String {
        // Most are whole numbers, and nobody asks for a queue of 1.00.
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

/// What the server made of the requested parameters.
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
    /// The longest publishing and the longest sampling interval that the server chose, milliseconds.
    #[must_use]
    pub fn longest_ms(&self) -> [Option<f64>; 2] {
        [self.publishing_ms, self.sampling_ms].map(|extent| extent.map(|extent| extent.max))
    }
}

/// `bench subscribe`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subscribed {
    /// What was asked for.
    #[serde(default)]
    pub requested: SubscribedRequested,
    /// What the server made of it.
    #[serde(default)]
    pub revised: Revised,
    /// Nodes that were found.
    #[serde(default)]
    pub nodes: usize,
    /// Values received in the window.
    pub notifications: u64,
    /// Values per second.
    pub per_second: f64,
    /// Messages with values.
    #[serde(default)]
    pub messages: u64,
    /// Messages that are missing by their sequence numbers.
    pub lost_messages: u64,
    /// Whether the load became steady, if that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<bool>,
    /// Clients whose next message was overdue at the end.
    #[serde(default)]
    pub waiting_at_end: usize,
    /// Source timestamp to the application.
    #[serde(default)]
    pub delivery: Summary,
    /// Source timestamps tell when the server sampled, not when values were written.
    #[serde(default)]
    pub source_timestamps_made_when_sampled: bool,
    /// Write to the application, if values tell of their writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Summary>,
    /// Write to source timestamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_to_source_timestamp: Option<Summary>,
    /// Values that do not tell of their writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_without_time: Option<u64>,
    /// Time between two messages of a client.
    pub message_interval: Summary,
    /// Messages whose PublishTime is null.
    #[serde(default)]
    pub unstamped_messages: u64,
    /// PublishTime to the application; `None` of a server that sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Summary>,
    /// What each item received.
    pub progress: ProgressSummary,
    /// Connections that were lost.
    pub connections_lost: usize,
}

/// What `bench subscribe` was asked for.
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
    /// Interval at which each value changes, milliseconds, if it was told.
    pub update_ms: Option<f64>,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// Warm-up, seconds.
    pub warmup_s: f64,
    /// Items of the heavy client, if there is one.
    pub heavy: Option<u32>,
    /// Whether that client stops reading.
    pub stall: bool,
    /// Whether values tell when they were written.
    pub time_in_value: bool,
}

/// `bench subscribe --stall`: a load in which a client stops reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalled {
    /// The same as [`Subscribed::delivery`] before it does.
    pub delivery_before_stall: Summary,
}

/// `bench roundtrip` and `fan` with a server: their times are [`RoundTrips`] or [`Transactions`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Returned {
    /// What was asked for.
    #[serde(default)]
    pub requested: ReturnedRequested,
    /// The publishing interval that the server chose, milliseconds.
    #[serde(default)]
    pub revised_publishing_ms: f64,
}

/// What `bench roundtrip` and `fan` were asked for.
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
    /// A value there and back.
    pub roundtrip: Summary,
}

/// `bench fan`, also over PubSub and MQTT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// From the write to the last answer.
    pub transaction: Summary,
}
