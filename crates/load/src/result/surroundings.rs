//! What the laboratory adds to a document: where the load was run.

use super::parts;
use serde::{Deserialize, Serialize};

parts!(Laid);

/// The surroundings of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Laid {
    /// By what the server's core was kept free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The emulated link between load and server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// A link as it was asked for and as it was seen: the figures of the laboratory's probe that reports show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// How it was made.
    pub method: Option<String>,
    /// What was asked for.
    pub asked: Asked,
    /// The round trips that the emulator's own model gives.
    pub expected: Trips,
    /// The round trips that were seen.
    pub round_trips: Trips,
    /// What was seen from client to server.
    pub up: Seen,
}

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// From client to server.
    pub up: AskedDirection,
}

/// One direction as it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedDirection {
    /// Bits per second, if it is limited.
    pub rate: Option<f64>,
    /// How packets are lost.
    pub loss: AskedLoss,
}

/// How packets are to be lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedLoss {
    /// The probability for each, where it is lost whatever happened to the one before.
    pub probability: Option<f64>,
}

/// Round trips, milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trips {
    /// Mean.
    pub mean_ms: Option<f64>,
    /// Standard deviation.
    pub std_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
}

/// One direction as it was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Bits per second, if it is limited.
    pub rate: Option<f64>,
    /// Datagrams sent in order to see what is lost.
    pub sent: Option<f64>,
    /// How many of them did not arrive.
    pub lost: Option<f64>,
}
