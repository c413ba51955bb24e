//! Sent NotificationMessages that the client has not acknowledged (Part 4 §5.14.1.1, point 6), and the pool their
//! buffers come from.

use crate::account::{Account, Category, Charge};
use std::collections::VecDeque;
use std::sync::Arc;

/// Buffers for NotificationMessages: what one message gives back the next one takes, so that steady publishing
/// allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Vec<Vec<u8>>,
    free_bytes: usize,
}

/// Capacity that the pool keeps at most; more is given back to the allocator.
const POOL_BYTES_MAX: usize = 32 << 20;
/// Buffers that the pool keeps at most.
const POOL_LEN_MAX: usize = 4096;

impl BufferPool {
    /// An empty buffer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let buffer = self.free.pop().unwrap_or_default();
        self.free_bytes -= buffer.capacity();
        buffer
    }

    /// Gives a buffer back.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > 0 && self.free.len() < POOL_LEN_MAX && self.free_bytes + capacity <= POOL_BYTES_MAX {
            buffer.clear();
            self.free_bytes += capacity;
            self.free.push(buffer);
        }
    }
}

/// One subscription's sent messages, oldest first.
#[derive(Debug)]
pub(crate) struct Retransmission {
    messages: VecDeque<(u32, Vec<u8>)>,
    /// Capacity of all messages, which is what is charged for them.
    bytes: usize,
    charge: Charge,
    /// The newest message is kept only until it is sent: the account has no room for it.
    is_excess: bool,
}

impl Retransmission {
    /// For the subscription that has the account.
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        let charge = account.nothing(Category::Retransmission);
        Self { messages: VecDeque::new(), bytes: 0, charge, is_excess: false }
    }

    /// Keeps a message; while there are more than `len_max` or `bytes_max`, or than the account allows, the oldest ones
    /// go. Returns how many went. Call [`Self::forget_excess`] when the message is sent.
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

    /// Forgets the message that was pushed last if the account has no room for it. Returns how many that were.
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

    /// Forgets an acknowledged message; false if there is none of that number.
    pub(crate) fn acknowledge(&mut self, sequence_number: u32, pool: &mut BufferPool) -> bool {
        // Clients acknowledge in order, so this looks at one entry.
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

    /// Whether no message is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The encoded message of a number.
    pub(crate) fn find(&self, sequence_number: u32) -> Option<&[u8]> {
        self.messages
            .iter()
            .find(|(number, _)| *number == sequence_number)
            .map(|(_, message)| message.as_slice())
    }

    /// The numbers that can be asked for, oldest first.
    pub(crate) fn sequence_numbers(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.messages.iter().map(|(number, _)| *number)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Gives all buffers back.
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
