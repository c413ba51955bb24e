//! The settings that can be chosen, and the resulting figures.

use crate::figures;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How values are transported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Sessions with subscriptions (Part 4).
    Session,
    /// PubSub over UDP with UADP (Part 14).
    PubSub,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::PubSub => "pubsub",
        })
    }
}

/// Policy and mode of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Security {
    /// No security.
    None,
    /// Basic256Sha256, signed.
    Sign,
    /// Basic256Sha256, signed and encrypted.
    SignAndEncrypt,
}

impl Security {
    /// Whether messages are signed or encrypted.
    #[must_use]
    pub fn is_secured(self) -> bool {
        self != Self::None
    }

    /// Names of mode and policy in the specification.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::None => ("None", "None"),
            Self::Sign => ("Sign", "Basic256Sha256"),
            Self::SignAndEncrypt => ("SignAndEncrypt", "Basic256Sha256"),
        }
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Sign => "sign",
            Self::SignAndEncrypt => "sign-and-encrypt",
        })
    }
}

/// A value for each setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Publishing interval in milliseconds.
    pub publishing_ms: f64,
    /// Sampling interval in milliseconds; 0 reports every change.
    pub sampling_ms: f64,
    /// Queue size of each item; 0 chooses one that loses no values.
    pub queue_size: u32,
    /// Maximum number of notifications per message; 0 means unlimited.
    pub notifications_max: u32,
    /// Publishing intervals without changes before a keep-alive.
    pub keep_alive_count: u32,
    /// Publish requests queued at the server; 0 lets the client choose.
    pub publish_requests: u32,
    /// Security of the channel.
    pub security: Security,
    /// How values are transported.
    pub transport: Transport,
    /// Busy-polling time of the server before it sleeps, in microseconds.
    pub busy_poll_us: u32,
    /// Threads of the server.
    pub threads: u32,
}

impl Settings {
    /// Settings of a client without configuration: 500 ms, queue size 1, no security.
    #[must_use]
    pub fn usual() -> Self {
        Self {
            publishing_ms: 500.0,
            sampling_ms: 0.0,
            queue_size: 0,
            notifications_max: 0,
            keep_alive_count: 10,
            publish_requests: 0,
            security: Security::None,
            transport: Transport::Session,
            busy_poll_us: 0,
            threads: 1,
        }
    }
}

/// Results of settings. `None` means unknown, such as CPU without a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Figures {
    /// Mean delay from the write in the server to the client's application, in milliseconds.
    pub delay_mean_ms: f64,
    /// 99th percentile of the delay.
    pub delay_p99_ms: f64,
    /// Maximum delay.
    pub delay_max_ms: f64,
    /// Bits per second in the busier direction, with headers and framing.
    pub bandwidth_bits_s: f64,
    /// Utilisation of the busier direction including other traffic, or of the shared line; `None` if the link has no
    /// rate.
    pub utilisation: Option<f64>,
    /// Traffic of both directions together including other traffic, as a share of the rate of one direction; equals
    /// `utilisation` on a shared line. `None` if the link has no rate.
    pub total_utilisation: Option<f64>,
    /// Share of the written values that the client does not receive.
    pub loss: f64,
    /// CPU of the server, percent of one core.
    pub server_cpu: Option<f64>,
    /// CPU of all clients, percent of one core.
    pub client_cpu: Option<f64>,
    /// Power of the server's CPU for the load, in watts.
    pub energy_w: Option<f64>,
}

/// One of the [`Figures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// [`Figures::delay_mean_ms`].
    DelayMeanMs,
    /// [`Figures::delay_p99_ms`].
    DelayP99Ms,
    /// [`Figures::delay_max_ms`].
    DelayMaxMs,
    /// [`Figures::bandwidth_bits_s`].
    BandwidthBitsS,
    /// [`Figures::utilisation`].
    Utilisation,
    /// [`Figures::total_utilisation`].
    TotalUtilisation,
    /// [`Figures::loss`].
    Loss,
    /// [`Figures::server_cpu`].
    ServerCpu,
    /// [`Figures::client_cpu`].
    ClientCpu,
    /// [`Figures::energy_w`].
    EnergyW,
}

impl Metric {
    /// All figures.
    pub const ALL: [Self; 10] = [
        Self::DelayMeanMs,
        Self::DelayP99Ms,
        Self::DelayMaxMs,
        Self::BandwidthBitsS,
        Self::Utilisation,
        Self::TotalUtilisation,
        Self::Loss,
        Self::ServerCpu,
        Self::ClientCpu,
        Self::EnergyW,
    ];

    /// Name in files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DelayMeanMs => "delay_mean_ms",
            Self::DelayP99Ms => "delay_p99_ms",
            Self::DelayMaxMs => "delay_max_ms",
            Self::BandwidthBitsS => "bandwidth_bits_s",
            Self::Utilisation => "utilisation",
            Self::TotalUtilisation => "total_utilisation",
            Self::Loss => "loss",
            Self::ServerCpu => "server_cpu",
            Self::ClientCpu => "client_cpu",
            Self::EnergyW => "energy_w",
        }
    }

    /// Description in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::DelayMeanMs => "mean delay",
            Self::DelayP99Ms => "delay p99",
            Self::DelayMaxMs => "largest delay",
            Self::BandwidthBitsS => "bandwidth",
            Self::Utilisation => "link utilisation",
            Self::TotalUtilisation => "total utilisation",
            Self::Loss => "lost values",
            Self::ServerCpu => "server CPU",
            Self::ClientCpu => "client CPU",
            Self::EnergyW => "power",
        }
    }

    /// Its value; `None` if it is unknown.
    #[must_use]
    pub fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::DelayMeanMs => Some(figures.delay_mean_ms),
            Self::DelayP99Ms => Some(figures.delay_p99_ms),
            Self::DelayMaxMs => Some(figures.delay_max_ms),
            Self::BandwidthBitsS => Some(figures.bandwidth_bits_s),
            Self::Utilisation => figures.utilisation,
            Self::TotalUtilisation => figures.total_utilisation,
            Self::Loss => Some(figures.loss),
            Self::ServerCpu => figures.server_cpu,
            Self::ClientCpu => figures.client_cpu,
            Self::EnergyW => figures.energy_w,
        }
    }

    /// A value with its unit, for display.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Self::DelayMeanMs | Self::DelayP99Ms | Self::DelayMaxMs => figures::micros(value * 1e3),
            Self::BandwidthBitsS if value >= 1e6 => format!("{} Mbit/s", figures::number(value / 1e6)),
            Self::BandwidthBitsS => format!("{} kbit/s", figures::number(value / 1e3)),
            Self::Utilisation | Self::TotalUtilisation | Self::Loss => {
                format!("{} %", figures::number(value * 100.0))
            }
            Self::ServerCpu | Self::ClientCpu => format!("{} %", figures::number(value)),
            Self::EnergyW => format!("{} W", figures::number(value)),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The figure does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown figure {0:?}; the figures are delay_mean_ms, delay_p99_ms, delay_max_ms, bandwidth_bits_s, utilisation, total_utilisation, loss, server_cpu, client_cpu and energy_w"
)]
pub struct UnknownMetric(pub String);

impl FromStr for Metric {
    type Err = UnknownMetric;
    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| UnknownMetric(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_names_round_trip() {
        for metric in Metric::ALL {
            assert_eq!(metric.name().parse(), Ok(metric));
            assert!(!metric.words().is_empty() && metric.text(1.0).contains(char::is_numeric));
        }
        assert!("delay".parse::<Metric>().unwrap_err().to_string().contains("delay_mean_ms"));
        assert_eq!(Metric::BandwidthBitsS.text(2_500_000.0), "2.50 Mbit/s");
        assert_eq!(Metric::Utilisation.text(0.625), "62.5 %");
    }
}
