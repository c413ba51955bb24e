//! What a link is like: the named ones, and those that a user describes.

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

/// A tunnel around the packets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vpn {
    /// Bytes that it adds to each packet.
    pub overhead: usize,
    /// Time that encryption and decryption of one packet take, one packet after the other.
    pub per_packet: Duration,
}

impl Vpn {
    /// WireGuard over IPv4: 20 bytes IP, 8 UDP, 16 its own header, 16 authentication; what it carries is padded to
    /// 16 bytes, on average by 8. Sealing and opening a packet takes a small controller some 20 µs.
    pub const WIREGUARD: Self = Self { overhead: 68, per_packet: Duration::from_micros(20) };
}

/// A link between a client and a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// How it was asked for.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Where its figures come from.
    pub source: String,
    /// Client to server.
    pub up: Conditions,
    /// Server to client.
    pub down: Conditions,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// The tunnel, whose costs are already part of both directions.
    pub vpn: Option<Vpn>,
}

impl Profile {
    /// Mean round trip of a small packet in seconds, as the conditions say: both delays and both line times.
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

    /// Probability that a packet or the answer to it is lost.
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
        // What WireGuard itself takes: the packet inside has to fit into one outside.
        self.mtu = self.mtu.saturating_sub(80);
        self.vpn = Some(vpn);
        self
    }

    /// Whether the rate and the queue are all there is: what a token bucket of the kernel can do alone.
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

/// A rate as people write it.
#[must_use]
pub fn rate_text(rate: Option<f64>) -> String {
    match rate {
        None => "any rate".to_owned(),
        Some(rate) if rate >= 1e9 => format!("{} Gbit/s", short(rate / 1e9)),
        Some(rate) if rate >= 1e6 => format!("{} Mbit/s", short(rate / 1e6)),
        Some(rate) => format!("{} kbit/s", short(rate / 1e3)),
    }
}

/// Three significant digits.
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

/// One direction in a line.
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
