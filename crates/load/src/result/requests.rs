//! Requests and answers, sessions, and writes within the server.

use super::parts;
use crate::latency::{Latency, Summary};
use crate::outliers::{Sample, Slow};
use serde::{Deserialize, Serialize};

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
    pub requested: RequestsRequested,
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

/// What `bench read`, `write` and `browse` were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestsRequested {
    /// Sessions.
    pub clients: u32,
    /// Requests per second of a schedule.
    pub rate: Option<f64>,
    /// Requests, if their number ends the load.
    pub count: Option<u64>,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// Warm-up, seconds.
    pub warmup_s: f64,
    /// Nodes per request.
    pub batch: u32,
    /// Whether each request waits for the answer to the one before.
    pub closed: bool,
}

/// `bench connect`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// What was asked for.
    #[serde(default)]
    pub requested: SessionsRequested,
    /// Sessions opened.
    pub sessions: u64,
    /// Sessions that could not be opened.
    pub failed: u64,
    /// Sessions per second.
    pub per_second: f64,
    /// How long closing them took.
    pub closing: Summary,
}

/// What `bench connect` was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionsRequested {
    /// Sessions that are being opened at a time.
    pub concurrency: u32,
    /// Sessions per second of a schedule.
    pub rate: Option<f64>,
    /// Sessions, if their number ends the load.
    pub count: Option<u64>,
    /// How long to measure, seconds.
    pub duration_s: f64,
    /// Whether sessions stay open until the end.
    pub hold: bool,
}

/// `bench probe`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// What was asked for.
    #[serde(default)]
    pub requested: ProbedRequested,
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

/// What `bench probe` was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbedRequested {
    /// Requests per second.
    pub rate: f64,
    /// Requests.
    pub count: u64,
    /// Nodes per request.
    pub batch: u32,
    /// From which multiple of the fastest answer on one is slow.
    pub slow: f64,
}

/// `bench update`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Updates {
    /// What was asked for.
    #[serde(default)]
    pub requested: UpdatesRequested,
    /// How long writing all signals took.
    pub run_span: Summary,
}

/// What `bench update` was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdatesRequested {
    /// Signals of each cycle.
    pub signals: u32,
    /// Threads that share them.
    pub threads: u32,
    /// Cycles.
    pub count: u64,
    /// Interval of the cycles, milliseconds.
    pub interval_ms: f64,
}
