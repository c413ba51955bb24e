//! What the laboratory adds to a document: isolation and link of the load.

use super::parts;
use serde::{Deserialize, Serialize};

parts!(Laid);

/// The environment of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Laid {
    /// Method of CPU isolation of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The emulated link between load and server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Bits on that link within the window of the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LineRates>,
}

/// Bits per second on a link, with headers and framing, without other traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineRates {
    /// From client to server.
    pub up_bits_s: f64,
    /// From server to client.
    pub down_bits_s: f64,
    /// In the busier direction.
    pub busier_bits_s: f64,
    /// In both directions.
    pub both_bits_s: f64,
}

impl LineRates {
    /// From the rates of both directions.
    #[must_use]
    pub fn new(up_bits_s: f64, down_bits_s: f64) -> Self {
        Self {
            up_bits_s,
            down_bits_s,
            busier_bits_s: up_bits_s.max(down_bits_s),
            both_bits_s: up_bits_s + down_bits_s,
        }
    }
}

/// A link as requested and as probed: the figures that reports show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// Method of emulation.
    pub method: Option<String>,
    /// Requested parameters.
    pub asked: Asked,
    /// Round trips according to the emulator's model.
    pub expected: Trips,
    /// Observed round trips.
    pub round_trips: Trips,
    /// Observations from client to server.
    pub up: Seen,
}

/// Requested properties.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// From client to server.
    pub up: AskedDirection,
}

/// Requested properties of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedDirection {
    /// Bits per second, if it is limited.
    pub rate: Option<f64>,
    /// Packet loss.
    pub loss: AskedLoss,
}

/// Requested packet loss.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedLoss {
    /// Loss probability of each packet, if losses are independent.
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

/// Observations of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Bits per second, if it is limited.
    pub rate: Option<f64>,
    /// Datagrams sent to test loss.
    pub sent: Option<f64>,
    /// Datagrams that did not arrive.
    pub lost: Option<f64>,
}
