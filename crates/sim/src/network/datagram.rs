//! Datagrams: they share lines with TCP, are lost, and nobody repeats them.

use super::{LineId, Medium, Network, Side};
use taktwerk_netem::emulator::Fate;
use taktwerk_types::Instant;

/// Bytes of the headers of IPv4 and UDP.
pub(crate) const HEADERS: usize = 28;

/// Who sends or receives datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    /// A publisher, by its number.
    Publisher(u32),
    /// A subscriber, by its number.
    Subscriber(u32),
    /// All who listen to a multicast group, by its number.
    Multicast(u32),
}

/// A datagram that is put on a line.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// When.
    pub at: Instant,
    /// The line.
    pub line: LineId,
    /// Who sends it.
    pub from: Station,
    /// To whom.
    pub to: Station,
    /// What it carries.
    pub payload: &'a [u8],
}

impl Network {
    /// Puts a datagram on a line, in the direction in which this side sends. Gives when it arrives, if it does, and whether
    /// it arrives twice.
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

    /// Whether both directions of a line take turns.
    pub(crate) fn is_half_duplex(&self, line: LineId) -> bool {
        self.medium.lines.get(line.0 as usize).is_some_and(|shared| shared.is_half_duplex)
    }
}
