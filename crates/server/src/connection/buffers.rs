//! Reusable send buffers. Idle connections hold none.

use core::time::Duration;
use taktwerk_types::Instant;

/// Most capacity kept, in bytes: enough for the messages of a subscription with some hundred thousand items, which
/// would otherwise be allocated again every cycle.
const KEEP_BYTES_MAX: usize = 32 << 20;
/// Capacity that is kept even if unused, in bytes.
const KEEP_BYTES_IDLE: usize = 1 << 20;
/// How long further buffers may stay unused.
const UNUSED_MAX: Duration = Duration::from_secs(10);

/// The spare send buffers of a shard.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// Used as a stack: the buffers at the front are needed least.
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    max: usize,
    /// The smallest number of spare buffers since `tidied`: this many at the front were not needed.
    unused: usize,
    tidied: Instant,
}

impl Buffers {
    pub(crate) fn new(max: usize) -> Self {
        Self { spare: Vec::new(), spare_bytes: 0, max, unused: 0, tidied: Instant::ZERO }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let buffer = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= buffer.capacity();
        self.unused = self.unused.min(self.spare.len());
        buffer
    }

    #[inline]
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if self.spare.len() < self.max && capacity > 0 && self.spare_bytes + capacity <= KEEP_BYTES_MAX {
            buffer.clear();
            self.spare_bytes += capacity;
            self.spare.push(buffer);
        }
    }

    /// When [`Self::tidy`] is due.
    pub(crate) fn tidy_at(&self) -> Option<Instant> {
        (self.spare_bytes > KEEP_BYTES_IDLE).then(|| self.tidied + UNUSED_MAX)
    }

    /// Frees buffers that have been unused for a while. They remain from load peaks or from clients that did not read.
    pub(crate) fn tidy(&mut self, now: Instant) {
        if self.tidy_at().is_none_or(|at| at > now) {
            return;
        }
        let mut gone = 0;
        for buffer in self.spare.iter().take(self.unused) {
            if self.spare_bytes <= KEEP_BYTES_IDLE {
                break;
            }
            self.spare_bytes -= buffer.capacity();
            gone += 1;
        }
        self.spare.drain(..gone);
        self.unused = self.spare.len();
        self.tidied = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn unused_buffers_are_freed_and_used_ones_kept() {
        let mut buffers = Buffers::new(8);
        for _ in 0..8 {
            buffers.give(Vec::with_capacity(1 << 20));
        }
        assert_eq!(buffers.spare_bytes, 8 << 20);
        // It is not yet known which buffers are needed.
        buffers.tidy(at(100));
        assert_eq!(buffers.spare.len(), 8);
        for second in 101..110 {
            // Two are in use at a time, and the period is not over.
            let taken = [buffers.take(), buffers.take()];
            taken.into_iter().for_each(|buffer| buffers.give(buffer));
            buffers.tidy(at(second));
            assert_eq!(buffers.spare.len(), 8, "{second}");
        }
        assert_eq!(buffers.tidy_at(), Some(at(110)));
        buffers.tidy(at(110));
        assert_eq!((buffers.spare.len(), buffers.spare_bytes), (2, 2 << 20));
        // Buffers in regular use are kept, however large.
        for second in (115..200).step_by(5) {
            let taken = [buffers.take(), buffers.take()];
            taken.into_iter().for_each(|buffer| buffers.give(buffer));
            buffers.tidy(at(second));
        }
        assert_eq!(buffers.spare.len(), 2);
        buffers.tidy(at(210));
        buffers.tidy(at(220));
        assert_eq!((buffers.spare_bytes, buffers.tidy_at()), (1 << 20, None), "a little is always kept");
        // A shard without traffic is not woken for ever.
        while buffers.take().capacity() > 0 {}
        assert_eq!((buffers.spare_bytes, buffers.tidy_at()), (0, None));
    }
}
