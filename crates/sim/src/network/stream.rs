//! The bytes of one direction of a connection. TCP only counts bytes; they are stored here.

use std::collections::VecDeque;

/// Traffic of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes written by the application.
    pub stream_bytes: u64,
    /// Bytes on the wire: with headers, framing, retransmissions and acknowledgements.
    pub wire_bytes: u64,
    /// Segments sent, including retransmissions and acknowledgements.
    pub segments: u64,
    /// Retransmitted segments.
    pub repetitions: u64,
    /// Segments that were lost, or dropped because a queue was full.
    pub lost: u64,
}

/// Moves the first bytes of a queue to the end of `into`, in at most two pieces. Moving single bytes would take a tenth
/// of a simulation's time.
pub(super) fn take_front(queue: &mut VecDeque<u8>, len: usize, into: &mut Vec<u8>) {
    let (first, second) = queue.as_slices();
    let split = len.min(first.len());
    into.extend_from_slice(first.get(..split).unwrap_or_default());
    into.extend_from_slice(second.get(..len - split).unwrap_or(second));
    queue.drain(..len.min(queue.len()));
}

#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Written but not acknowledged; starts at offset `acknowledged`.
    buffer: VecDeque<u8>,
    acknowledged: u64,
    /// Offset up to which data has arrived in order and may be read.
    arrived: u64,
    /// Arrived in order, but not read.
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

    /// The bytes of a segment to be sent.
    pub(crate) fn bytes(&self, from: u64, len: usize) -> impl Iterator<Item = u8> + '_ {
        let from = usize::try_from(from.saturating_sub(self.acknowledged)).unwrap_or(usize::MAX);
        self.buffer.iter().skip(from).take(len).copied()
    }

    /// Records that everything before this offset has arrived. Returns whether the connection breaks at this point.
    pub(crate) fn arrive(&mut self, arrived: u64) -> bool {
        let cut = self.cut_at.filter(|cut| arrived >= *cut);
        let until = cut.unwrap_or(arrived).max(self.arrived);
        // Data is acknowledged after it has arrived, so the sender still has it.
        let from = (self.arrived - self.acknowledged) as usize;
        let to = ((until - self.acknowledged) as usize).min(self.buffer.len());
        let (first, second) = self.buffer.as_slices();
        let of = |part: &[u8], begin: usize| {
            let within = |at: usize| at.saturating_sub(begin).min(part.len());
            within(from.min(to))..within(to)
        };
        self.unread.extend(first.get(of(first, 0)).unwrap_or_default());
        self.unread.extend(second.get(of(second, first.len())).unwrap_or_default());
        self.arrived = until;
        cut.is_some()
    }

    /// Records that the sender knows that everything before this offset has arrived.
    pub(crate) fn acknowledge(&mut self, acknowledged: u64) {
        let acknowledged = acknowledged.min(self.arrived);
        let fresh = acknowledged.saturating_sub(self.acknowledged) as usize;
        if fresh > 0 {
            self.buffer.drain(..fresh.min(self.buffer.len()));
            self.acknowledged = acknowledged;
        }
    }

    /// Number of readable bytes.
    pub(crate) fn readable(&self) -> usize {
        self.unread.len()
    }

    /// Reads at most `max` bytes. Returns their number.
    pub(crate) fn read(&mut self, max: usize, into: &mut Vec<u8>) -> usize {
        let len = self.unread.len().min(max);
        take_front(&mut self.unread, len, into);
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Independent of the queues' memory layout, bytes are read in order, each once.
    #[test]
    fn bytes_are_read_as_written() {
        let mut stream = Stream::default();
        let (mut written, mut arrived, mut read) = (0u64, 0u64, Vec::new());
        for round in 0..2_000u64 {
            let bytes: Vec<u8> = (0..round * 7 % 61).map(|at| ((written + at) % 251) as u8).collect();
            written += bytes.len() as u64;
            stream.write(&bytes);
            arrived = (arrived + round * 13 % 47).min(written);
            assert!(!stream.arrive(arrived));
            stream.read((round * 5 % 53) as usize, &mut read);
            if round % 3 == 0 {
                stream.acknowledge(arrived);
            }
        }
        stream.read(usize::MAX, &mut read);
        assert!(arrived > 10_000 && read.len() as u64 == arrived, "{arrived}");
        assert!(read.iter().zip(0u64..).all(|(byte, at)| u64::from(*byte) == at % 251));
    }
}
