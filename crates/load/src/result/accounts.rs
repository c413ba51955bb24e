//! Resources used by generator, server and network.

use super::parts;
use crate::observed::Observed;
use crate::process::Usage;
use crate::wire::Wire;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

parts!(Accounts);

/// Resources used within the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Accounts {
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Start of the window in milliseconds since 1970, for comparison with other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_ms: Option<u64>,
    /// Energy of the whole processor in joules, by part; empty without counters.
    #[serde(default)]
    pub energy_j: BTreeMap<String, f64>,
    /// Bytes on the connections, if the kernel provides them.
    #[serde(default)]
    pub wire: Option<Wire>,
    /// The generator.
    #[serde(default)]
    pub generator: Generator,
    /// The server, if it runs on this machine.
    #[serde(default)]
    pub server: Option<Server>,
}

/// Resources used by the generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Generator {
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
    /// Part of it spent on busy polling without events, in seconds; `None` if it polled without counting.
    pub polling_s: Option<f64>,
    /// CPU time outside the kernel, seconds.
    pub user_s: f64,
    /// CPU time inside the kernel, seconds.
    pub system_s: f64,
    /// Context switches because a thread waited.
    pub voluntary_switches: u64,
    /// Context switches because a thread was preempted.
    pub involuntary_switches: u64,
    /// Time ready to run but not running, seconds.
    pub runqueue_wait_s: f64,
    /// CPU use of all programs on the machine, in percent of one core.
    pub machine_percent: Option<f64>,
    /// Memory at the end, bytes.
    pub rss_bytes: u64,
    /// Its actual CPU conditions.
    pub conditions: Option<Observed>,
}

/// Resources used by the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// CPU time, context switches and memory.
    #[serde(flatten)]
    pub usage: Usage,
    /// CPU time per unit of work in microseconds, named after the unit (`cpu_us_per_request`).
    #[serde(flatten)]
    pub per: Per,
    /// CPU cycles, if the machine counts them.
    #[serde(default)]
    pub cycles: Option<u64>,
    /// Its actual CPU conditions.
    #[serde(default)]
    pub conditions: Option<Observed>,
    /// CPU use of its threads by name, percent of one core.
    #[serde(default)]
    pub threads_percent: BTreeMap<String, f64>,
}

/// Declares units of work and the cost of one.
macro_rules! units {
    ($($unit:ident $member:ident $name:literal),+ $(,)?) => {
        /// The divisor of a server's CPU time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Unit {
            $(#[doc = concat!("A ", $name, ".")] $unit,)+
        }

        impl Unit {
            /// The name of the unit.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$unit => $name,)+ }
            }
        }

        /// CPU time per unit of work, microseconds.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Per {
            $(
                #[doc = concat!("Per ", $name, ".")]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $member: Option<f64>,
            )+
        }

        impl Per {
            /// The same cost for all units.
            pub(super) fn of_all(micros: f64) -> Self {
                Self { $($member: Some(micros),)+ }
            }

            /// The cost of one unit.
            #[must_use]
            pub fn of(unit: Unit, micros: f64) -> Self {
                let mut per = Self::default();
                match unit { $(Unit::$unit => per.$member = Some(micros),)+ }
                per
            }
        }
    };
}

units! {
    Message cpu_us_per_message "message",
    Request cpu_us_per_request "request",
    RoundTrip cpu_us_per_round_trip "round trip",
    Session cpu_us_per_session "session",
    Signal cpu_us_per_signal "signal",
    Transaction cpu_us_per_transaction "transaction",
    Value cpu_us_per_value "value",
}
