//! User settings of an attack.

use crate::Attack;
use core::time::Duration;
use std::path::PathBuf;

/// The server program: `taktwerk`, or a program with the same arguments for `serve`.
#[derive(Debug, Clone)]
pub struct ServerProgram {
    /// The executable.
    pub path: PathBuf,
    /// The ApplicationName that `serve` uses without a configuration.
    pub application_name: String,
    /// The ApplicationUri that `serve` uses without a configuration.
    pub application_uri: String,
}

/// The limits of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limits {
    /// Those of a public server (`serve --guarded`).
    Strangers,
    /// Those of `serve` on loopback.
    Loopback,
}

/// Which server to attack, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The attack.
    pub attack: Attack,
    /// The server.
    pub server: ServerProgram,
    /// Its limits.
    pub limits: Limits,
    /// Connections of the attacker; `None` for the attack's default.
    pub connections: Option<usize>,
    /// Duration of the attack. Some attacks end by themselves.
    pub duration: Duration,
    /// Time between the attack and the comparison of memory.
    pub settle: Duration,
    /// For [`Attack::Chunks`]: total bytes to send.
    pub bytes: u64,
    /// Limit for the 99th percentile of the canary's read latency, ms.
    pub p99_max_ms: f64,
    /// Whether times and memory are judged or only reported.
    pub judges_times: bool,
}

impl Options {
    /// The defaults for an attack.
    #[must_use]
    pub const fn new(attack: Attack, server: ServerProgram) -> Self {
        Self {
            attack,
            server,
            limits: Limits::Strangers,
            connections: None,
            duration: Duration::from_secs(20),
            settle: Duration::from_secs(60),
            bytes: 10_000_000_000,
            p99_max_ms: 200.0,
            judges_times: true,
        }
    }
}
