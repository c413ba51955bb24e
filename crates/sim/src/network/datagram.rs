//! Datagrams: they share lines with TCP, may be lost, and are not retransmitted.

use super::{LineId, Medium, Network, Side};
use taktwerk_netem::emulator::Fate;
use taktwerk_types::Instant;

/// Bytes of the headers of IPv4 and UDP.
pub(crate) const HEADERS: usize = 28;

/// Sender or receiver of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    /// A publisher, by its number.
    Publisher(u32),
    /// A subscriber, by its number.
    Subscriber(u32),
    /// All members of a multicast group, by its number.
    Multicast(u32),
}

/// A datagram put on a line.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Time of sending.
    pub at: Instant,
    /// The line.
    pub line: LineId,
    /// Sender.
    pub from: Station,
    /// Receiver.
    pub to: Station,
    /// Content.
    pub payload: &'a [u8],
}

impl Network {
    /// Puts a datagram on a line, in the direction of this sender. Returns its arrival time, unless it is lost, and
    /// whether it arrives twice.
    pub(crate) fn send_datagram(&mut self, from: Side, datagram: &Datagram<'_>) -> Option<(Instant, bool)> {
        let Medium { lines, tap, .. } = &mut self.medium;
        if let Some(tap) = tap {
            tap.datagram(datagram);
        }
        let line = lines.get_mut(datagram.line.0 as usize)?.of(from);
        match line.send(datagram.at.as_nanos(), datagram.payload.len() + HEADERS) {
            Fate::Arrives(at) => Some((Instant::from_nanos(at), line.twice())),
            Fate::Lost | Fate::Dropped => None,
        }
    }

    /// Whether both directions of a line share its capacity.
    pub(crate) fn is_half_duplex(&self, line: LineId) -> bool {
        self.medium.lines.get(line.0 as usize).is_some_and(|shared| shared.is_half_duplex)
    }
}
