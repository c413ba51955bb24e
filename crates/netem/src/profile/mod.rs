//! Profiles of links: named ones, and those described by a user.

mod named;
mod parse;

pub use named::{NAMES, named};
pub use parse::ParseProfileError;

use crate::emulator::Conditions;
use crate::emulator::delay::Jitter;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A tunnel for the packets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vpn {
    /// Additional bytes per packet.
    pub overhead: usize,
    /// Time for encrypting and decrypting a packet, one packet after the other.
    pub per_packet: Duration,
}

impl Vpn {
    /// WireGuard over IPv4: 20 bytes IP, 8 UDP, 16 header, 16 authentication, and 8 on average for padding to 16 bytes.
    /// Encrypting and decrypting a packet takes about 20 µs on a small controller.
    pub const WIREGUARD: Self = Self { overhead: 68, per_packet: Duration::from_micros(20) };
}

/// A link between a client and a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// The requested text.
    pub name: String,
    /// Description in one sentence.
    pub about: String,
    /// Source of its figures.
    pub source: String,
    /// Client to server.
    pub up: Conditions,
    /// Server to client.
    pub down: Conditions,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// The tunnel; its costs are already included in both directions.
    pub vpn: Option<Vpn>,
}

impl Profile {
    /// Mean round trip of a small packet in seconds: both delays and both transmission times.
    #[must_use]
    pub fn round_trip(&self, bytes: usize) -> f64 {
        let line = |conditions: &Conditions| conditions.line_time(bytes) as f64 / 1e9;
        self.up.delay.mean() + self.down.delay.mean() + line(&self.up) + line(&self.down)
    }

    /// Standard deviation of the round trip in seconds.
    #[must_use]
    pub fn round_trip_std(&self) -> f64 {
        self.up.delay.std().hypot(self.down.delay.std())
    }

    /// Probability that a packet or its answer is lost.
    #[must_use]
    pub fn round_trip_loss(&self) -> f64 {
        1.0 - (1.0 - self.up.loss.share()) * (1.0 - self.down.loss.share())
    }

    /// The same link through a tunnel.
    #[must_use]
    pub fn with_vpn(mut self, vpn: Vpn) -> Self {
        for conditions in [&mut self.up, &mut self.down] {
            conditions.overhead += vpn.overhead;
            conditions.per_packet += vpn.per_packet;
        }
        // WireGuard's own value: the inner packet must fit into the outer one.
        self.mtu = self.mtu.saturating_sub(80);
        self.vpn = Some(vpn);
        self
    }

    /// Whether only rate and queue are limited, which a token bucket of the kernel can emulate.
    #[must_use]
    pub fn is_rate_only(&self) -> bool {
        [&self.up, &self.down].into_iter().all(|it| {
            it.rate.is_some()
                && it.delay.is_none()
                && it.loss.share() == 0.0
                && it.reorder == 0.0
                && it.duplicate == 0.0
                && it.per_packet.is_zero()
        })
    }
}

impl FromStr for Profile {
    type Err = ParseProfileError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::profile(text)
    }
}

/// Formats a rate.
#[must_use]
pub fn rate_text(rate: Option<f64>) -> String {
    match rate {
        None => "any rate".to_owned(),
        Some(rate) if rate >= 1e9 => format!("{} Gbit/s", short(rate / 1e9)),
        Some(rate) if rate >= 1e6 => format!("{} Mbit/s", short(rate / 1e6)),
        Some(rate) => format!("{} kbit/s", short(rate / 1e3)),
    }
}

/// Formats three significant digits.
#[must_use]
pub fn short(number: f64) -> String {
    let digits = match number.abs() {
        it if it >= 100.0 => 0,
        it if it >= 10.0 => 1,
        it if it >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats one direction in one line.
impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |span: Duration| short(span.as_secs_f64() * 1e3);
        f.write_str(&rate_text(self.usable_rate()))?;
        if !self.delay.is_none() {
            write!(f, ", {}", ms(self.delay.base))?;
            match self.delay.jitter {
                Jitter::None => {}
                Jitter::Uniform { max } => write!(f, " + 0…{}", ms(max))?,
                Jitter::Normal { std } => write!(f, " ± {}", ms(std))?,
                Jitter::Exponential { mean } => write!(f, " + exp({})", ms(mean))?,
                Jitter::Pareto { std } => write!(f, " + pareto({})", ms(std))?,
                Jitter::LogNormal { mean, std } => write!(f, " + {} ± {}", ms(mean), ms(std))?,
            }
            f.write_str(" ms")?;
        }
        if self.loss.share() > 0.0 {
            write!(f, ", {} % lost", short(self.loss.share() * 100.0))?;
        }
        for (share, what) in [(self.reorder, "overtake"), (self.duplicate, "twice")] {
            if share > 0.0 {
                write!(f, ", {} % {what}", short(share * 100.0))?;
            }
        }
        Ok(())
    }
}
