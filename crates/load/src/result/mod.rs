//! The result of a load as a document: written by the generators, read by the laboratory, its reports and the comparison with
//! peers.
//!
//! A document is one JSON object. Each [`Part`] is a type that owns some of its members: the [`Head`], the [`Accounts`] of the
//! programs, the [`Ending`], and a part for each kind of load. A part reads only its own members, so that documents with
//! members of other versions can be read. Members that came later, or that not all documents have, are `Option`s or have a
//! default; all others must be there: a document without them is an error that names the member, not a figure of zero.

mod accounts;
mod figure;
mod gateway;
mod messages;
mod names;
mod requests;
mod subscription;
mod surroundings;

pub use accounts::{Accounts, Generator, Per, Server, Unit};
pub use figure::Figure;
pub use gateway::{
    Aggregated, AggregatedRequested, Alternative, Compared, ComparedRequested, Contest, Cost, Hanging,
    LimitedBy, Load, Polled, PolledRequested, Reconfigured, ReconfiguredRequested, Relayed, RelayedRequested,
};
pub use messages::{
    Brokered, BrokeredRequested, Crew, Datagrams, Delivered, Drift, FanOut, Heard, HeardRequested, Igmp,
    IgmpRequested, Late, Multicast, Published, PublishedRequested, Received, Receiver, Security, Stations,
    StationsRequested,
};
pub use names::unknown_figure;
pub use requests::{
    Answered, Latencies, Probed, ProbedRequested, Requests, RequestsRequested, Sessions, SessionsRequested,
    Updates, UpdatesRequested,
};
pub use subscription::{
    Extent, Returned, ReturnedRequested, Revised, RoundTrips, Stalled, Subscribed, SubscribedRequested,
    Transactions,
};
pub use surroundings::{Asked, AskedDirection, AskedLoss, Laid, Link, Seen, Trips};

use crate::latency::Times;
use crate::machine::Machine;
use crate::validity::Invalid;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Some members of a document.
pub trait Part: Serialize + DeserializeOwned {}

/// Declares types to be parts.
macro_rules! parts {
    ($($name:ty),+ $(,)?) => { $(impl $crate::result::Part for $name {})+ };
}
use parts;

parts!(Head, Ending, Histograms);

/// Who measured what where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The program.
    pub tool: String,
    /// Its version.
    pub version: String,
    /// The kind of load, as on the command line.
    pub command: String,
    /// What was measured: a server's endpoint, an address, the name of a broker.
    pub url: String,
    /// The machine of the generator.
    pub machine: Machine,
}

/// A reason why a measurement is worth nothing, with its figures and in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The reason with its figures; `None` for one that this version does not know.
    #[serde(flatten)]
    pub reason: Option<Invalid>,
    /// In words.
    #[serde(default)]
    pub message: String,
}

impl From<&Invalid> for Reason {
    fn from(reason: &Invalid) -> Self {
        Self { message: reason.to_string(), reason: Some(reason.clone()) }
    }
}

/// How a measurement ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// Whether it counts.
    #[serde(default)]
    pub valid: bool,
    /// Why not.
    #[serde(default)]
    pub invalid: Vec<Reason>,
    /// Whether somebody ended it.
    #[serde(default)]
    pub interrupted: bool,
}

/// Whole distributions by name, in HdrHistogram's compressed V2 form and base64: nothing is lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histograms {
    /// By name.
    #[serde(default)]
    pub histograms: BTreeMap<String, String>,
}

impl Histograms {
    /// Adds a distribution.
    pub fn add(&mut self, name: &str, times: &Times) {
        self.histograms.insert(name.to_owned(), BASE64_STANDARD.encode(times.to_bytes()));
    }

    /// All that can be read.
    #[must_use]
    pub fn times(&self) -> BTreeMap<String, Times> {
        let times = |text: &String| Times::from_bytes(&BASE64_STANDARD.decode(text).ok()?);
        self.histograms.iter().filter_map(|(name, text)| Some((name.clone(), times(text)?))).collect()
    }
}

/// A part that cannot be read from a document.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the result: {0}. Was it written by another version?")]
pub struct ResultError(#[from] serde_json::Error);

/// A result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Document(Map<String, Value>);

impl Document {
    /// What a program printed, or a file holds.
    ///
    /// # Errors
    /// If it is not a JSON object.
    pub fn parse(json: &[u8]) -> Result<Self, ResultError> {
        Ok(serde_json::from_slice(json)?)
    }

    /// Adds the members of a part, in place of those that have their names.
    pub fn add(&mut self, part: &impl Part) {
        // Parts are structures with names for keys, which always serialize to an object.
        if let Ok(Value::Object(members)) = serde_json::to_value(part) {
            self.0.extend(members);
        }
    }

    /// Adds one member that no part owns.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Reads a part.
    ///
    /// # Errors
    /// Names the member that is missing or of another type.
    pub fn part<P: Part>(&self) -> Result<P, ResultError> {
        Ok(P::deserialize(&self.0)?)
    }

    /// Takes the distributions out of it, which are most of its bytes.
    pub fn take_histograms(&mut self) -> BTreeMap<String, Times> {
        let histograms = self.part::<Histograms>().unwrap_or_default();
        self.0.remove("histograms");
        histograms.times()
    }

    /// All numbers by their place, such as `server.cpu_percent`; what is true or false is 1 or 0. Without those of the machine,
    /// which are no figures.
    #[must_use]
    pub fn figures(&self) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        for (name, value) in self.0.iter().filter(|(name, _)| *name != "machine") {
            flatten(name, value, &mut figures);
        }
        figures
    }

    /// As JSON.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// Tests write documents as JSON.
impl From<Value> for Document {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(members) => Self(members),
            _ => Self::default(),
        }
    }
}

impl core::fmt::Display for Document {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        serde_json::to_string(&self.0).map_err(|_| core::fmt::Error).and_then(|text| f.write_str(&text))
    }
}

fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(number) => into.extend(number.as_f64().map(|number| (path.to_owned(), number))),
        Value::Bool(is_so) => into.extend([(path.to_owned(), f64::from(u8::from(*is_so)))]),
        Value::Object(map) => {
            map.iter().for_each(|(name, value)| flatten(&format!("{path}.{name}"), value, into));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
