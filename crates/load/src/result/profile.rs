//! Resources used by the processes of a server over time.

use super::parts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

parts!(Profiled);

/// The profile of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profiled {
    /// `None` if the processes were not recorded, or the window was too short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// Resources used by a server and its child processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// The time that it covers, seconds: from the first reading within the window of the load to the last one.
    pub window_s: f64,
    /// Ends of the intervals, in seconds since the begin of the window of the load.
    pub at_s: Vec<f64>,
    /// By name: [`Self::SERVER`], and the names of its child processes. Processes of the same name are one.
    pub processes: BTreeMap<String, OfProcess>,
    /// The sums of all processes.
    pub total: OfProcess,
    /// CPU of the network, in percent of one core: interrupts of the whole machine, and the emulated link with its VPN.
    /// Not part of the total, because the kernel may charge some interrupts to processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_percent: Option<f64>,
    /// The same in each interval; empty if it is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_percents: Vec<f64>,
}

impl Profile {
    /// The name of the server's own process.
    pub const SERVER: &str = "server";

    /// The processes: the server first.
    pub fn in_order(&self) -> impl Iterator<Item = (&str, &OfProcess)> {
        let is_server = |name: &&String| name.as_str() == Self::SERVER;
        let first = self.processes.get_key_value(Self::SERVER).into_iter();
        let all = first.chain(self.processes.iter().filter(move |(name, _)| !is_server(name)));
        all.map(|(name, of)| (name.as_str(), of))
    }
}

/// Resources used by the processes of one name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfProcess {
    /// Number of processes seen: more than one if it was restarted.
    pub starts: u64,
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
    /// Memory at the end, bytes.
    pub rss_bytes: f64,
    /// Context switches because a thread waited.
    pub voluntary_switches: f64,
    /// Context switches because a thread was preempted.
    pub involuntary_switches: f64,
    /// The same in each interval.
    pub over_time: Series,
}

/// The resources used in each interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// CPU use in percent of one core.
    pub cpu_percent: Vec<f64>,
    /// Memory at the end of the interval, bytes.
    pub rss_bytes: Vec<f64>,
    /// Context switches per second because a thread waited.
    pub voluntary_per_s: Vec<f64>,
    /// Context switches per second because a thread was preempted.
    pub involuntary_per_s: Vec<f64>,
}
