//! Requests and answers, sessions, and writes within the server.

use super::parts;
use crate::latency::{Latency, Summary};
use crate::outliers::{Sample, Slow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

parts!(Answered, Requests, Sessions, Probed, Updates);

/// Latencies of a load with a schedule, or of a closed loop without one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// From the scheduled send time; `None` without a schedule.
    pub corrected: Option<Summary>,
    /// From the real send time.
    pub uncorrected: Summary,
    /// How late the generator sent; `None` without a schedule.
    #[serde(default)]
    pub lateness: Option<Summary>,
}

impl Latencies {
    /// Of samples.
    #[must_use]
    pub fn new(latency: &Latency, is_scheduled: bool) -> Self {
        Self {
            corrected: is_scheduled.then(|| latency.corrected.summary()),
            uncorrected: latency.uncorrected.summary(),
            lateness: is_scheduled.then(|| latency.lateness.summary()),
        }
    }
}

/// How long answers took, of every load that asks for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The times.
    pub latency: Latencies,
    /// Requests without an answer.
    #[serde(default)]
    pub unanswered: u64,
}

/// `bench read`, `write` and `browse`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// What was asked for.
    #[serde(default)]
    pub requested: Value,
    /// Nodes that were found.
    #[serde(default)]
    pub nodes: usize,
    /// Requests sent within the window.
    pub sent: u64,
    /// Requests that were due within it; the same without a schedule.
    pub due: u64,
    /// Requests answered, of those sent in the window.
    pub requests: u64,
    /// Requests that failed as a whole.
    pub failed: u64,
    /// Operations with a Bad status.
    pub bad: u64,
    /// Connections that were lost.
    #[serde(default)]
    pub connections_lost: usize,
    /// How often all clients have renewed their keys, if that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_renewals: Option<u64>,
    /// Answers per second; `None` if the window was not closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
}

/// `bench connect`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// What was asked for.
    #[serde(default)]
    pub requested: Value,
    /// Sessions opened.
    pub sessions: u64,
    /// Sessions that could not be opened.
    pub failed: u64,
    /// Sessions per second.
    pub per_second: f64,
    /// How long closing them took.
    pub closing: Summary,
}

/// `bench probe`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// What was asked for.
    #[serde(default)]
    pub requested: Value,
    /// Requests sent.
    #[serde(default)]
    pub sent: u64,
    /// Requests that were due.
    #[serde(default)]
    pub due: u64,
    /// Requests answered.
    #[serde(default)]
    pub requests: u64,
    /// Connections that were lost.
    #[serde(default)]
    pub connections_lost: usize,
    /// Each request with what happened meanwhile.
    pub samples: Vec<Sample>,
    /// Slow answers with their causes.
    #[serde(default)]
    pub slow: Vec<Slow>,
}

/// `bench update`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Updates {
    /// What was asked for.
    #[serde(default)]
    pub requested: Value,
    /// How long writing all signals took.
    pub run_span: Summary,
}
