//! What a user chooses.

use crate::Attack;
use core::time::Duration;
use std::path::PathBuf;

/// The program that is attacked: the command `taktwerk`, or one that takes the same arguments for `serve`.
#[derive(Debug, Clone)]
pub struct ServerProgram {
    /// The executable.
    pub path: PathBuf,
    /// The ApplicationName that `serve` uses without a configuration.
    pub application_name: String,
    /// The ApplicationUri that `serve` uses without a configuration.
    pub application_uri: String,
}

/// The limits that the server starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limits {
    /// Those for a server that strangers can reach (`serve --guarded`).
    Strangers,
    /// Those of `serve` on loopback.
    Loopback,
}

/// What to do to which server.
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
    /// How long the attack goes on. Some attacks end by themselves.
    pub duration: Duration,
    /// How long to wait after the attack until memory is compared.
    pub settle: Duration,
    /// For [`Attack::Chunks`]: bytes to send in all.
    pub bytes: u64,
    /// Limit for the 99th percentile of the canary's reads, ms.
    pub p99_max_ms: f64,
    /// Whether times and memory are judged, or only reported.
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
