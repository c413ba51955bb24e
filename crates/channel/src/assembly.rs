//! Messages that arrive in more than one chunk (Part 6 §6.7.3).

use crate::error::{ChannelError, LimitHit, PeerFault};
use taktwerk_types::Instant;

/// The chunks of the message that is arriving. A sender finishes one message before it starts the next.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) request_id: u32,
    /// Reserves at most a quarter more than what has arrived.
    body: Vec<u8>,
    chunks: u32,
    /// A limit was exceeded: the remaining chunks are dropped as they arrive.
    dropping: bool,
    pub(crate) deadline: Instant,
}

/// What happens when a message exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overrun {
    /// A server ends the connection, so that a peer cannot make it store more.
    Fail,
    /// A client drops the message and keeps the connection. Only the request fails.
    Drop,
}

/// Limits of a received message: bytes of the body and number of chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageLimits {
    pub(crate) size_max: u32,
    pub(crate) chunk_count_max: u32,
    pub(crate) overrun: Overrun,
}

impl Assembly {
    pub(crate) const fn new(request_id: u32, deadline: Instant) -> Self {
        Self { request_id, body: Vec::new(), chunks: 0, dropping: false, deadline }
    }

    /// Adds a chunk. The limits are checked before anything is stored.
    pub(crate) fn push(
        &mut self,
        request_id: u32,
        part: &[u8],
        limits: MessageLimits,
    ) -> Result<(), ChannelError> {
        if request_id != self.request_id {
            return Err(PeerFault::Interleaved.into());
        }
        self.chunks = self.chunks.saturating_add(1);
        let over = self.chunks > limits.chunk_count_max
            || self.body.len().saturating_add(part.len()) > limits.size_max as usize;
        match (over || self.dropping, limits.overrun) {
            (true, Overrun::Fail) => return Err(LimitHit::MessageTooLarge.into()),
            (true, Overrun::Drop) => {
                self.dropping = true;
                self.body = Vec::new();
            }
            (false, _) => {
                // Growing by a quarter copies slightly more than doubling but wastes at most a quarter.
                if self.body.capacity() - self.body.len() < part.len() {
                    let room = (limits.size_max as usize).saturating_sub(self.body.len());
                    self.body.reserve_exact((self.body.len() / 4).min(room).max(part.len()));
                }
                self.body.extend_from_slice(part);
            }
        }
        Ok(())
    }

    /// Memory reserved for the message so far, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.body.capacity()
    }

    /// The whole body, or `None` if it was dropped.
    pub(crate) fn finish(self) -> Option<Vec<u8>> {
        (!self.dropping).then_some(self.body)
    }

    #[cfg(test)]
    pub(crate) fn reserved(&self) -> usize {
        self.body.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_before_storing() {
        let limits = |overrun| MessageLimits { size_max: 10, chunk_count_max: 3, overrun };
        let mut server = Assembly::new(1, Instant::FAR);
        server.push(1, &[0; 10], limits(Overrun::Fail)).unwrap();
        assert_eq!(server.push(1, &[0], limits(Overrun::Fail)), Err(LimitHit::MessageTooLarge.into()));
        assert_eq!(server.push(2, &[], limits(Overrun::Fail)), Err(PeerFault::Interleaved.into()));
        let mut client = Assembly::new(1, Instant::FAR);
        for _ in 0..4 {
            client.push(1, &[], limits(Overrun::Drop)).unwrap();
        }
        client.push(1, &[0; 8], limits(Overrun::Drop)).unwrap();
        assert_eq!((client.reserved(), client.finish()), (0, None));
    }
}
