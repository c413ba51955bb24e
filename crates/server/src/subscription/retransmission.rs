//! Sent NotificationMessages that the client has not acknowledged (Part 4 §5.14.1.1, point 6), and the pool of their
//! buffers.

use crate::account::{Account, Category, Charge};
use std::collections::VecDeque;
use std::sync::Arc;

/// A pool of buffers for NotificationMessages. Buffers are reused, so that steady publishing allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Vec<Vec<u8>>,
    free_bytes: usize,
}

/// Maximum capacity of the pool in bytes; more is freed.
const POOL_BYTES_MAX: usize = 32 << 20;
/// Maximum number of buffers in the pool.
const POOL_LEN_MAX: usize = 4096;

impl BufferPool {
    /// Takes an empty buffer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let buffer = self.free.pop().unwrap_or_default();
        self.free_bytes -= buffer.capacity();
        buffer
    }

    /// Returns a buffer.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > 0 && self.free.len() < POOL_LEN_MAX && self.free_bytes + capacity <= POOL_BYTES_MAX {
            buffer.clear();
            self.free_bytes += capacity;
            self.free.push(buffer);
        }
    }
}

/// The sent messages of a subscription, the oldest first.
#[derive(Debug)]
pub(crate) struct Retransmission {
    messages: VecDeque<(u32, Vec<u8>)>,
    /// Capacity of all messages, which is the charged amount.
    bytes: usize,
    charge: Charge,
    /// The newest message exceeds the account's limit and is kept only until it is sent.
    is_excess: bool,
}

impl Retransmission {
    /// For the subscription with the account.
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        let charge = account.nothing(Category::Retransmission);
        Self { messages: VecDeque::new(), bytes: 0, charge, is_excess: false }
    }

    /// Stores a message. While `len_max`, `bytes_max` or the account's limit is exceeded, the oldest ones are dropped.
    /// Returns how many were dropped. Call [`Self::forget_excess`] when the message is sent.
    pub(crate) fn push(
        &mut self,
        sequence_number: u32,
        message: Vec<u8>,
        len_max: usize,
        bytes_max: usize,
        pool: &mut BufferPool,
    ) -> u32 {
        let mut discarded = 0;
        let bytes = message.capacity();
        while self.messages.len() >= len_max.max(1)
            || (!self.messages.is_empty()
                && (self.bytes + bytes > bytes_max || self.charge.resize(self.bytes + bytes).is_err()))
        {
            self.forget_oldest(pool);
            discarded += 1;
        }
        self.is_excess = self.charge.resize(self.bytes + bytes).is_err();
        self.bytes += bytes;
        self.messages.push_back((sequence_number, message));
        discarded
    }

    /// Drops the last message if it exceeds the account's limit. Returns how many were dropped.
    pub(crate) fn forget_excess(&mut self, pool: &mut BufferPool) -> u32 {
        if !self.is_excess {
            return 0;
        }
        self.is_excess = false;
        self.forget_oldest(pool);
        1
    }

    fn forget_oldest(&mut self, pool: &mut BufferPool) {
        if let Some((_, oldest)) = self.messages.pop_front() {
            self.bytes -= oldest.capacity();
            pool.give(oldest);
        }
        self.charge.resize_anyway(self.bytes);
    }

    /// Removes an acknowledged message; false if there is none with that number.
    pub(crate) fn acknowledge(&mut self, sequence_number: u32, pool: &mut BufferPool) -> bool {
        // Clients acknowledge in order, so this usually checks one entry.
        let Some(at) = self.messages.iter().position(|(number, _)| *number == sequence_number) else {
            return false;
        };
        if let Some((_, message)) = self.messages.remove(at) {
            self.bytes -= message.capacity();
            self.charge.resize_anyway(self.bytes);
            pool.give(message);
        }
        true
    }

    /// Whether there are no messages.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The encoded message with a number.
    pub(crate) fn find(&self, sequence_number: u32) -> Option<&[u8]> {
        self.messages
            .iter()
            .find(|(number, _)| *number == sequence_number)
            .map(|(_, message)| message.as_slice())
    }

    /// The available sequence numbers, the oldest first.
    pub(crate) fn sequence_numbers(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.messages.iter().map(|(number, _)| *number)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns all buffers to the pool.
    pub(crate) fn clear(&mut self, pool: &mut BufferPool) {
        self.bytes = 0;
        self.messages.drain(..).for_each(|(_, message)| pool.give(message));
        self.charge.resize_anyway(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Retransmission {
        Retransmission::new(&Account::server(crate::Limits::default().maxima()))
    }

    #[test]
    fn bounded_and_acknowledged() {
        let mut pool = BufferPool::default();
        let mut queue = kept();
        for number in 1..=5 {
            queue.push(number, vec![number as u8; 10], 3, 1000, &mut pool);
        }
        assert_eq!(queue.sequence_numbers().collect::<Vec<_>>(), [3, 4, 5]);
        assert!(queue.acknowledge(4, &mut pool) && !queue.acknowledge(4, &mut pool));
        assert_eq!(queue.find(3), Some([3u8; 10].as_slice()));
        assert_eq!(queue.find(4), None);
        assert_eq!(queue.push(6, vec![0; 985], 10, 1000, &mut pool), 1);
        assert_eq!(queue.sequence_numbers().collect::<Vec<_>>(), [5, 6]);
        assert_eq!(pool.free.len(), 4);
    }

    #[test]
    fn a_message_over_the_byte_limit_is_still_kept_alone() {
        let mut pool = BufferPool::default();
        let mut queue = kept();
        queue.push(1, vec![0; 10], 10, 100, &mut pool);
        assert_eq!(queue.push(2, vec![0; 500], 10, 100, &mut pool), 1);
        assert_eq!(queue.len(), 1);
    }
}
