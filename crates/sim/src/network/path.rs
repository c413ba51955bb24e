//! What lies between two hosts, in one direction.

use super::soap::Soap;
use super::{LineId, Side};
use core::time::Duration;
use taktwerk_netem::Profile;
use taktwerk_netem::emulator::Conditions;
use taktwerk_netem::emulator::delay::{Delay, Jitter};
use taktwerk_netem::emulator::loss::Loss;
use taktwerk_netem::tcp::{Algorithm, Config};

/// One direction of a path through a network, and the TCP settings of the end that sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// How long a bit travels.
    pub delay: Duration,
    /// Added to the delay: evenly distributed between nothing and this.
    pub jitter: Duration,
    /// Bits per second that leave the sender; `None` is infinitely fast.
    pub rate: Option<u64>,
    /// What waits for the line may take so long to send; more is dropped.
    pub queue: Duration,
    /// Segments lost, in parts per million.
    pub loss_ppm: u32,
    /// Most bytes of the stream in one segment.
    pub segment_len: usize,
    /// Bytes that headers and framing add to each segment on the wire. Costs time if there is a rate.
    pub overhead: usize,
    /// Bytes that the sender's socket holds until they are acknowledged; beyond, a write takes only a part.
    pub send_buffer: usize,
    /// Bytes that the receiver's socket holds until they are read; beyond, the sender pauses.
    pub receive_buffer: usize,
    /// Segments that may be under way at the start; the window then grows by slow start.
    pub initial_window: usize,
    /// How the window of segments under way grows and shrinks.
    pub algorithm: Algorithm,
    /// Small segments wait while others are under way (Nagle). Servers and clients switch that off.
    pub nagle: bool,
    /// How long the end that sends here waits with an acknowledgement that could travel with data; zero is not at all.
    pub delayed_ack: Duration,
    /// What the retransmission timer adds to the round trip, at least; doubled with each repetition.
    pub retransmission_min: Duration,
    /// How long a segment may stay without acknowledgement before the sender gives the connection up.
    pub give_up: Duration,
}

impl Path {
    /// Nothing lies between the hosts; buffers as on an ordinary Linux.
    pub const IDEAL: Self = Self {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        rate: None,
        queue: Duration::from_secs(10),
        loss_ppm: 0,
        segment_len: 1448,
        overhead: 90,
        send_buffer: 256 << 10,
        receive_buffer: 128 << 10,
        initial_window: 10,
        algorithm: Algorithm::Cubic,
        nagle: false,
        delayed_ack: Duration::from_millis(40),
        retransmission_min: Duration::from_millis(200),
        give_up: Duration::from_secs(120),
    };

    /// A switched 1 Gbit/s network.
    pub const LAN: Self = Self { delay: Duration::from_micros(50), rate: Some(1_000_000_000), ..Self::IDEAL };

    /// The same with another delay.
    #[must_use]
    pub const fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The line that this is. Headers are counted by the path's own overhead.
    pub(crate) fn conditions(&self) -> Conditions {
        let jitter = if self.jitter.is_zero() { Jitter::None } else { Jitter::Uniform { max: self.jitter } };
        let probability = f64::from(self.loss_ppm) / 1e6;
        Conditions {
            rate: self.rate,
            queue: self.queue,
            delay: Delay { base: self.delay, jitter, repeats: None },
            loss: if self.loss_ppm == 0 { Loss::None } else { Loss::Independent { probability } },
            ..Conditions::default()
        }
    }
}

/// Both directions between a client and a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// From the client to the server.
    pub to_server: Path,
    /// From the server to the client.
    pub to_client: Path,
    /// The line that the packets share with those of other connections. Rate, delay, jitter and loss of the paths are then
    /// those of the line.
    pub line: Option<LineId>,
    /// What carries the messages.
    pub transport: Transport,
}

/// What carries messages over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UA TCP (Part 6 §7.2).
    #[default]
    UaTcp,
    /// SOAP over HTTP, as version 1.02 had it.
    Soap(Soap),
}

impl Route {
    /// The same in both directions, on a line of its own.
    #[must_use]
    pub const fn symmetric(path: Path) -> Self {
        Self { to_server: path, to_client: path, line: None, transport: Transport::UaTcp }
    }

    /// On a line that was made with [`World::add_line`](crate::World::add_line) for this profile.
    #[must_use]
    pub fn on(line: LineId, link: &Profile) -> Self {
        let path = Path {
            segment_len: usize::from(link.mtu).saturating_sub(Config::HEADERS).max(1),
            overhead: Config::HEADERS,
            ..Path::IDEAL
        };
        Self { line: Some(line), ..Self::symmetric(path) }
    }

    /// The settings of an end.
    pub(crate) fn config(&self, side: Side) -> Config {
        let (out, back) = match side {
            Side::Client => (&self.to_server, &self.to_client),
            Side::Server => (&self.to_client, &self.to_server),
        };
        config(out, back)
    }
}

/// The settings of an end that sends along `out` and receives along `back`.
pub(crate) fn config(out: &Path, back: &Path) -> Config {
    Config {
        mss: out.segment_len.max(1),
        send_buffer: out.send_buffer,
        receive_buffer: back.receive_buffer,
        initial_window: u32::try_from(out.initial_window).unwrap_or(u32::MAX),
        algorithm: out.algorithm,
        nagle: out.nagle,
        delayed_ack: out.delayed_ack,
        rto_min: out.retransmission_min,
        give_up: out.give_up,
        ..Config::linux(1500)
    }
}

impl Default for Route {
    fn default() -> Self {
        Self::symmetric(Path::LAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_line() {
        let path = Path { rate: Some(2_000_000), loss_ppm: 20_000, ..Path::LAN };
        let conditions = path.conditions();
        assert_eq!(conditions.line_time(1000), 4_000_000);
        assert!((conditions.loss.share() - 0.02).abs() < 1e-12);
        assert_eq!(conditions.delay, Delay::constant(Duration::from_micros(50)));
        assert_eq!(Path::IDEAL.conditions().line_time(1000), 0);
    }
}
