//! The bytes of one direction of a connection. TCP itself counts bytes; here they are kept.

use std::collections::VecDeque;

/// What crossed the wire in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes that the application wrote.
    pub stream_bytes: u64,
    /// Bytes on the wire: with headers and framing, repetitions and acknowledgements.
    pub wire_bytes: u64,
    /// Segments sent, with repetitions and acknowledgements.
    pub segments: u64,
    /// Segments that were sent again.
    pub repetitions: u64,
    /// Segments that were lost, or dropped because a queue was full.
    pub lost: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Written and not acknowledged; starts at offset `acknowledged`.
    buffer: VecDeque<u8>,
    acknowledged: u64,
    /// Arrived in order, as far as the application may have it.
    arrived: u64,
    /// Arrived in order, not read yet.
    unread: VecDeque<u8>,
    /// The connection breaks when this many bytes have been delivered.
    cut_at: Option<u64>,
    pub(crate) traffic: Traffic,
}

impl Stream {
    pub(crate) fn set_cut(&mut self, at: u64) {
        self.cut_at = Some(at);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.buffer.extend(bytes);
        self.traffic.stream_bytes += bytes.len() as u64;
    }

    /// The bytes of a segment that is being sent.
    pub(crate) fn bytes(&self, from: u64, len: usize) -> impl Iterator<Item = u8> + '_ {
        let from = usize::try_from(from.saturating_sub(self.acknowledged)).unwrap_or(usize::MAX);
        self.buffer.iter().skip(from).take(len).copied()
    }

    /// Everything before this offset has arrived. Says whether the connection breaks behind it.
    pub(crate) fn arrive(&mut self, arrived: u64) -> bool {
        let cut = self.cut_at.filter(|cut| arrived >= *cut);
        let until = cut.unwrap_or(arrived).max(self.arrived);
        // What has arrived is acknowledged afterwards, so the sender still has it.
        let from = (self.arrived - self.acknowledged) as usize;
        let to = ((until - self.acknowledged) as usize).min(self.buffer.len());
        self.unread.extend(self.buffer.range(from.min(to)..to));
        self.arrived = until;
        cut.is_some()
    }

    /// The sender learns that everything before this offset has arrived.
    pub(crate) fn acknowledge(&mut self, acknowledged: u64) {
        let acknowledged = acknowledged.min(self.arrived);
        let fresh = acknowledged.saturating_sub(self.acknowledged) as usize;
        if fresh > 0 {
            self.buffer.drain(..fresh.min(self.buffer.len()));
            self.acknowledged = acknowledged;
        }
    }

    /// How many bytes can be read.
    pub(crate) fn readable(&self) -> usize {
        self.unread.len()
    }

    /// Reads at most `max` bytes; says how many.
    pub(crate) fn read(&mut self, max: usize, into: &mut Vec<u8>) -> usize {
        let len = self.unread.len().min(max);
        into.extend(self.unread.drain(..len));
        len
    }
}
