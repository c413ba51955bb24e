//! Sets of signals of a server under test. All variables of a set change together.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Maximum number of signals of a set.
const COUNT_MAX: u32 = 8_000_000;
/// Maximum size of a value.
const BYTES_MAX: usize = 65_536;

/// A set of signals, written as `COUNT:MS:BYTES`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SignalSet {
    /// Number of variables.
    pub count: u32,
    /// Interval between new values in milliseconds.
    pub period_ms: f64,
    /// Encoded size of a value in bytes: 1, 2, 4 and 8 are integers, others are ByteStrings of this length.
    pub bytes: usize,
}

/// The text is not a set of signals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a set of signals: write COUNT:MS:BYTES, such as 5:10:4 for five signals that change every 10 ms and \
     have 4 bytes"
)]
pub struct ParseSignalSetError(String);

impl SignalSet {
    /// The interval between new values.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::try_from_secs_f64(self.period_ms / 1e3).unwrap_or_default()
    }
}

impl fmt::Display for SignalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.count, self.period_ms, self.bytes)
    }
}

impl FromStr for SignalSet {
    type Err = ParseSignalSetError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseSignalSetError(text.to_owned());
        let mut parts = text.trim().split(':');
        let mut next = || parts.next().map(str::trim).ok_or_else(error);
        let count: u32 = next()?.parse().map_err(|_| error())?;
        let period_ms: f64 = next()?.parse().map_err(|_| error())?;
        let bytes: usize = next()?.parse().map_err(|_| error())?;
        let is_good = (1..=COUNT_MAX).contains(&count)
            && (0.1..=86_400_000.0).contains(&period_ms)
            && (1..=BYTES_MAX).contains(&bytes)
            && parts.next().is_none();
        is_good.then_some(Self { count, period_ms, bytes }).ok_or_else(error)
    }
}

impl TryFrom<String> for SignalSet {
    type Error = ParseSignalSetError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SignalSet> for String {
    fn from(set: SignalSet) -> Self {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_and_read_again() {
        for text in ["5:10:4", "1:0.1:65536", "100000:2500.5:8"] {
            let set: SignalSet = text.parse().unwrap();
            assert_eq!(set.to_string(), text);
        }
        assert_eq!("5:7.5:4".parse::<SignalSet>().unwrap().period(), Duration::from_micros(7_500));
    }

    #[test]
    fn wrong_sets_say_how_to_write_one() {
        for text in
            ["", "5", "5:10", "0:10:4", "5:0:4", "5:10:0", "5:10:4:1", "5:nan:4", "5:10:70000", "-1:10:4"]
        {
            let error = text.parse::<SignalSet>().unwrap_err().to_string();
            assert!(error.contains("COUNT:MS:BYTES"), "{error}");
        }
    }
}
