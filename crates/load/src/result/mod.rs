//! The result of a load as a document. Generators write it; the laboratory, its reports, and the comparison with peers
//! read it.
//!
//! A document is one JSON object. Each [`Part`] is a type that owns some of its members: the [`Head`], the [`Accounts`]
//! of the programs, the [`Ending`], and a part for each kind of load. A part reads only its own members, so that
//! documents of other versions can be read. Members that were added later or are not in all documents are `Option`s or
//! have a default. All others are required: if one is missing, the error names it.

mod accounts;
mod figure;
mod gateway;
mod messages;
mod names;
mod profile;
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
pub use profile::{OfProcess, Profile, Profiled, Series};
pub use requests::{
    Answered, Latencies, Probed, ProbedRequested, Requests, RequestsRequested, Sessions, SessionsRequested,
    Updates, UpdatesRequested,
};
pub use subscription::{
    Extent, Returned, ReturnedRequested, Revised, RoundTrips, Stalled, Subscribed, SubscribedRequested,
    Transactions,
};
pub use surroundings::{Asked, AskedDirection, AskedLoss, Laid, LineRates, Link, Seen, Trips};

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

/// Declares types as parts.
macro_rules! parts {
    ($($name:ty),+ $(,)?) => { $(impl $crate::result::Part for $name {})+ };
}
use parts;

parts!(Head, Ending, Histograms);

/// Program, load, target and machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The program.
    pub tool: String,
    /// Its version.
    pub version: String,
    /// The kind of load, as on the command line.
    pub command: String,
    /// The target: a server's endpoint, an address, or the name of a broker.
    pub url: String,
    /// The machine of the generator.
    pub machine: Machine,
}

/// A reason why a measurement is invalid, with its figures and in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The reason with its figures; `None` if this version does not know it.
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

/// Validity of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// Whether it is valid.
    #[serde(default)]
    pub valid: bool,
    /// Why it is invalid.
    #[serde(default)]
    pub invalid: Vec<Reason>,
    /// Whether a user stopped it.
    #[serde(default)]
    pub interrupted: bool,
}

/// Complete distributions by name, in HdrHistogram's lossless compressed V2 form and base64.
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

    /// All distributions that can be decoded.
    #[must_use]
    pub fn times(&self) -> BTreeMap<String, Times> {
        let times = |text: &String| Times::from_bytes(&BASE64_STANDARD.decode(text).ok()?);
        self.histograms.iter().filter_map(|(name, text)| Some((name.clone(), times(text)?))).collect()
    }
}

/// A part that cannot be read from a document.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the result: {0}. It may have been written by another version")]
pub struct ResultError(#[from] serde_json::Error);

/// A result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Document(Map<String, Value>);

impl Document {
    /// Parses the output of a program or the content of a file.
    ///
    /// # Errors
    /// If it is not a JSON object.
    pub fn parse(json: &[u8]) -> Result<Self, ResultError> {
        Ok(serde_json::from_slice(json)?)
    }

    /// Adds the members of a part; replaces existing members with the same names.
    pub fn add(&mut self, part: &impl Part) {
        // Parts are structures, which always serialize to an object.
        if let Ok(Value::Object(members)) = serde_json::to_value(part) {
            self.0.extend(members);
        }
    }

    /// Adds a member that belongs to no part.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Reads a part.
    ///
    /// # Errors
    /// The member that is missing or has the wrong type.
    pub fn part<P: Part>(&self) -> Result<P, ResultError> {
        Ok(P::deserialize(&self.0)?)
    }

    /// Removes and returns the distributions, which are most of its bytes.
    pub fn take_histograms(&mut self) -> BTreeMap<String, Times> {
        let histograms = self.part::<Histograms>().unwrap_or_default();
        self.0.remove("histograms");
        histograms.times()
    }

    /// All numbers by path, such as `server.cpu_percent`; booleans are 1 or 0. Excludes the description of the machine.
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

/// For tests, which write documents as JSON.
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
