//! What lies between two hosts, in one direction.

use core::time::Duration;
use taktwerk_netem::Profile;
use taktwerk_netem::emulator::Conditions;

/// Bytes of the headers of IPv4 and TCP with timestamps.
const HEADERS: usize = 52;

/// One direction of a path through a network, and the TCP buffers at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// How long a bit travels.
    pub delay: Duration,
    /// Added to the delay of each segment: evenly distributed between nothing and this.
    pub jitter: Duration,
    /// Bits per second that leave the sender; `None` is infinitely fast.
    pub rate: Option<u64>,
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
    /// How long the sender waits at least before it repeats a lost segment; doubled with each repetition.
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
        loss_ppm: 0,
        segment_len: 1460,
        overhead: 78,
        send_buffer: 256 << 10,
        receive_buffer: 128 << 10,
        initial_window: 10,
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

    /// How long the sender's wire is busy with a segment.
    pub(crate) fn serialisation(&self, len: usize) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let bits = (len + self.overhead) as u128 * 8;
        let nanos = (bits * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Both directions between a client and a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// From the client to the server.
    pub to_server: Path,
    /// From the server to the client.
    pub to_client: Path,
}

impl Route {
    /// The same in both directions.
    #[must_use]
    pub const fn symmetric(path: Path) -> Self {
        Self { to_server: path, to_client: path }
    }

    /// A connection alone on a link.
    #[must_use]
    pub fn over(link: &Profile) -> Self {
        let path = |conditions: &Conditions| Path {
            delay: conditions.delay.base,
            rate: conditions.usable_rate().map(|rate| rate as u64),
            loss_ppm: (conditions.loss.share() * 1e6) as u32,
            segment_len: usize::from(link.mtu).saturating_sub(HEADERS).max(1),
            overhead: conditions.overhead + HEADERS,
            ..Path::IDEAL
        };
        Self { to_server: path(&link.up), to_client: path(&link.down) }
    }

    /// Delay of both directions, with the most that jitter adds.
    pub(crate) fn round_trip(&self) -> Duration {
        let (there, back) = (&self.to_server, &self.to_client);
        there.delay + there.jitter + back.delay + back.jitter
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
    fn framing_costs_time() {
        let path = Path { rate: Some(2_000_000), overhead: 50, ..Path::IDEAL };
        assert_eq!(path.serialisation(950), Duration::from_millis(4));
        assert_eq!(Path::IDEAL.serialisation(950), Duration::ZERO);
        assert_eq!(Route::symmetric(Path::LAN).round_trip(), Duration::from_micros(100));
    }
}
