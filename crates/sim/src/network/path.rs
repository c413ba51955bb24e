//! One direction of a path between two hosts.

use super::soap::Soap;
use super::{LineId, Side};
use core::time::Duration;
use taktwerk_netem::Profile;
use taktwerk_netem::emulator::Conditions;
use taktwerk_netem::emulator::delay::{Delay, Jitter};
use taktwerk_netem::emulator::loss::Loss;
use taktwerk_netem::tcp::{Algorithm, Config};

/// One direction of a path through a network, with the TCP settings of the sending end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Propagation delay.
    pub delay: Duration,
    /// Added to the delay: uniform between zero and this.
    pub jitter: Duration,
    /// Bits per second; `None` for unlimited.
    pub rate: Option<u64>,
    /// Maximum queue, as the time that the line needs to send it; packets beyond are dropped.
    pub queue: Duration,
    /// Segments lost, in parts per million.
    pub loss_ppm: u32,
    /// Maximum payload of a segment in bytes.
    pub segment_len: usize,
    /// Bytes of headers and framing per segment. They take time if there is a rate.
    pub overhead: usize,
    /// Send buffer in bytes, which holds data until it is acknowledged; writes beyond it are partial.
    pub send_buffer: usize,
    /// Receive buffer in bytes, which holds data until it is read; beyond it the sender pauses.
    pub receive_buffer: usize,
    /// Initial window in segments; it grows by slow start.
    pub initial_window: usize,
    /// Congestion control algorithm.
    pub algorithm: Algorithm,
    /// Nagle's algorithm: small segments wait while data is in flight. Servers and clients disable it.
    pub nagle: bool,
    /// Maximum delay of acknowledgements by the sending end; zero for none.
    pub delayed_ack: Duration,
    /// Minimum addition to the round trip in the retransmission timer, which doubles with each retransmission.
    pub retransmission_min: Duration,
    /// Time without an acknowledgement after which the sender aborts the connection.
    pub give_up: Duration,
}

impl Path {
    /// No delay, rate or loss; buffers of an ordinary Linux.
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

    /// The same path with another delay.
    #[must_use]
    pub const fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The line of this path. The path's own overhead counts headers.
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
    /// The line, if packets share it with other connections. It then determines rate, delay, jitter and loss.
    pub line: Option<LineId>,
    /// Transport of the messages.
    pub transport: Transport,
}

/// Transport of messages over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UA TCP (Part 6 §7.2).
    #[default]
    UaTcp,
    /// SOAP over HTTP, as in version 1.02.
    Soap(Soap),
}

impl Route {
    /// The same path in both directions, on a separate line.
    #[must_use]
    pub const fn symmetric(path: Path) -> Self {
        Self { to_server: path, to_client: path, line: None, transport: Transport::UaTcp }
    }

    /// A route over a line that was created with [`World::add_line`](crate::World::add_line) for this profile.
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
