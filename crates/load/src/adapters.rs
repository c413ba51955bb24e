//! Adapters of a server under test: child processes that make the values of its variables, as the protocol adapters of
//! a gateway do.

use crate::node::NodeSpec;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Maximum number of processes.
const COUNT_MAX: u32 = 100;
/// Maximum number of tags of each.
const TAGS_MAX: u32 = 100_000;
/// The namespace of the tags: the default of gateways.
const NAMESPACE: &str = "urn:taktwerk:gateway";

/// A number of equal adapters, written as `COUNT:TAGS:MS`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Adapters {
    /// Number of processes.
    pub count: u32,
    /// Number of tags of each.
    pub tags: u32,
    /// Interval between new values of all tags, in milliseconds.
    pub period_ms: f64,
}

/// The text does not describe adapters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} does not describe adapters: write COUNT:TAGS:MS, such as 2:15:10 for two processes with 15 tags each that \
     change every 10 ms"
)]
pub struct ParseAdaptersError(String);

impl Adapters {
    /// The interval between new values.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::try_from_secs_f64(self.period_ms / 1e3).unwrap_or_default()
    }

    /// The names of the processes, which are also the names of their sources.
    pub fn names(&self) -> impl Iterator<Item = String> + use<> {
        (1..=self.count).map(|number| format!("adapter-{number}"))
    }

    /// The names of the tags of each source.
    pub fn tag_names(&self) -> impl Iterator<Item = String> + use<> {
        (1..=self.tags).map(|number| format!("value-{number}"))
    }

    /// The variables: the first tag of each adapter, then the second ones, so that a load uses all adapters.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeSpec> {
        let of_tag = |tag: String| {
            self.names().filter_map(move |name| format!("nsu={NAMESPACE};s={name}/{tag}").parse().ok())
        };
        self.tag_names().flat_map(of_tag).collect()
    }
}

impl fmt::Display for Adapters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.count, self.tags, self.period_ms)
    }
}

impl FromStr for Adapters {
    type Err = ParseAdaptersError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseAdaptersError(text.to_owned());
        let mut parts = text.trim().split(':').map(str::trim);
        let mut next = || parts.next().ok_or_else(error);
        let count: u32 = next()?.parse().map_err(|_| error())?;
        let tags: u32 = next()?.parse().map_err(|_| error())?;
        let period_ms: f64 = next()?.parse().map_err(|_| error())?;
        let is_good = (1..=COUNT_MAX).contains(&count)
            && (1..=TAGS_MAX).contains(&tags)
            && (1.0..=86_400_000.0).contains(&period_ms)
            && parts.next().is_none();
        is_good.then_some(Self { count, tags, period_ms }).ok_or_else(error)
    }
}

impl TryFrom<String> for Adapters {
    type Error = ParseAdaptersError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Adapters> for String {
    fn from(adapters: Adapters) -> Self {
        adapters.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_are_written_and_read_again() {
        for text in ["2:15:10", "1:1:1", "100:100000:2500.5"] {
            let adapters: Adapters = text.parse().unwrap();
            assert_eq!(adapters.to_string(), text);
        }
        for text in
            ["", "2", "2:15", "0:1:10", "101:1:10", "1:0:10", "1:1:0.5", "1:1:nan", "1:1:1:1", "-1:1:1"]
        {
            let error = text.parse::<Adapters>().unwrap_err().to_string();
            assert!(error.contains("COUNT:TAGS:MS"), "{error}");
        }
    }

    #[test]
    fn loads_use_all_adapters() {
        let adapters: Adapters = "2:2:10".parse().unwrap();
        assert_eq!(adapters.period(), Duration::from_millis(10));
        let nodes: Vec<String> = adapters.nodes().iter().map(ToString::to_string).collect();
        let expected = ["adapter-1/value-1", "adapter-2/value-1", "adapter-1/value-2", "adapter-2/value-2"];
        assert_eq!(nodes, expected.map(|node| format!("nsu=urn:taktwerk:gateway;s={node}")));
    }
}
