//! Results of requests, sessions, and writes within the server.

use super::parts;
use crate::latency::{Latency, Summary};
use crate::outliers::{Sample, Slow};
use serde::{Deserialize, Serialize};

parts!(Answered, Requests, Sessions, Probed, Updates);

/// Latencies of a load, with or without a schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// From the scheduled send time; `None` without a schedule.
    pub corrected: Option<Summary>,
    /// From the real send time.
    pub uncorrected: Summary,
    /// Lateness of the generator; `None` without a schedule.
    #[serde(default)]
    pub lateness: Option<Summary>,
}

impl Latencies {
    /// From samples.
    #[must_use]
    pub fn new(latency: &Latency, is_scheduled: bool) -> Self {
        Self {
            corrected: is_scheduled.then(|| latency.corrected.summary()),
            uncorrected: latency.uncorrected.summary(),
            lateness: is_scheduled.then(|| latency.lateness.summary()),
        }
    }
}

/// Latencies and unanswered requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// Latencies.
    pub latency: Latencies,
    /// Requests without an answer.
    #[serde(default)]
    pub unanswered: u64,
}

/// `bench read`, `write` and `browse`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Requested parameters.
    #[serde(default)]
    pub requested: RequestsRequested,
    /// Number of nodes found.
    #[serde(default)]
    pub nodes: usize,
    /// Requests sent within the window.
    pub sent: u64,
    /// Requests scheduled within the window; equal to `sent` without a schedule.
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
    /// Number of key renewals over all clients, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_renewals: Option<u64>,
    /// Answers per second; `None` if the window was not closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
}

/// Parameters of `bench read`, `write` and `browse`.
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
    /// Whether each request waits for the previous answer.
    pub closed: bool,
}

/// `bench connect`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// Requested parameters.
    #[serde(default)]
    pub requested: SessionsRequested,
    /// Sessions opened.
    pub sessions: u64,
    /// Sessions that could not be opened.
    pub failed: u64,
    /// Sessions per second.
    pub per_second: f64,
    /// Time to close them.
    pub closing: Summary,
}

/// Parameters of `bench connect`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionsRequested {
    /// Maximum number of sessions being opened at the same time.
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
    /// Requested parameters.
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
    /// Each request with the events during it.
    pub samples: Vec<Sample>,
    /// Slow answers with their causes.
    #[serde(default)]
    pub slow: Vec<Slow>,
}

/// Parameters of `bench probe`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbedRequested {
    /// Requests per second.
    pub rate: f64,
    /// Requests.
    pub count: u64,
    /// Nodes per request.
    pub batch: u32,
    /// Answers are slow from this multiple of the fastest.
    pub slow: f64,
}

/// `bench update`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Updates {
    /// Requested parameters.
    #[serde(default)]
    pub requested: UpdatesRequested,
    /// Time to write all signals.
    pub run_span: Summary,
}

/// Parameters of `bench update`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdatesRequested {
    /// Signals of each cycle.
    pub signals: u32,
    /// Number of threads that share them.
    pub threads: u32,
    /// Cycles.
    pub count: u64,
    /// Interval of the cycles, milliseconds.
    pub interval_ms: f64,
}
