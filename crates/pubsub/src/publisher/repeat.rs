//! Repetition of NetworkMessages for lossy networks (MessageRepeatCount, Part 14 §6.4.1.3.1 and §6.4.1.3.2).
//!
//! A repetition is identical to the first message, including sequence numbers and nonce, so that receivers detect
//! duplicates.

use super::GroupIndex;
use crate::config::WriterGroupTransport;
use crate::time::nanos;
use crate::transmit::{About, Transmit};
use core::convert::Infallible;
use std::collections::VecDeque;
use taktwerk_types::Instant;

/// Maximum bytes of a WriterGroup's messages that wait for repetition; beyond, the oldest are dropped.
const BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
struct Waiting {
    due: Instant,
    left: u8,
    writer: Option<usize>,
    bytes: Vec<u8>,
}

/// The messages of a WriterGroup to repeat.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    count: u8,
    delay_nanos: u64,
    /// Ordered by due time: all wait equally long.
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl Repeats {
    pub(super) fn new(transport: &WriterGroupTransport) -> Self {
        let (count, delay) = match transport {
            WriterGroupTransport::Datagram(of) => (of.message_repeat_count, of.message_repeat_delay),
            WriterGroupTransport::Datagram2(of) => (of.message_repeat_count, of.message_repeat_delay),
            _ => (0, 0.0),
        };
        Self { count, delay_nanos: nanos(delay), ..Self::default() }
    }

    /// Stores the messages just created, from position `from` on. Returns the number of repetitions dropped for them.
    pub(super) fn remember(&mut self, out: &Transmit, from: usize) -> u64 {
        if self.count == 0 {
            return 0;
        }
        for datagram in out.iter().skip(from) {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            bytes.extend_from_slice(datagram.bytes);
            self.bytes += bytes.len();
            let due = later(datagram.due, self.delay_nanos);
            self.waiting.push_back(Waiting { due, left: self.count, writer: datagram.writer, bytes });
        }
        let mut gone = 0;
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.waiting.pop_front()
        {
            gone += u64::from(oldest.left);
            self.bytes -= oldest.bytes.len();
        }
        gone
    }

    /// When the next repetition is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|waiting| waiting.due)
    }

    /// Sends due repetitions. Returns their number.
    pub(super) fn poll(&mut self, index: GroupIndex, now: Instant, out: &mut Transmit) -> u64 {
        let mut sent = 0;
        while self.deadline().is_some_and(|due| due <= now)
            && let Some(mut waiting) = self.waiting.pop_front()
        {
            let about = About {
                connection: index.connection,
                writer_group: Some(index.group),
                writer: waiting.writer,
                kind: super::DATA,
                due: waiting.due,
                address: None,
            };
            let written: Result<(), Infallible> = out.push(about, |out| {
                out.extend_from_slice(&waiting.bytes);
                Ok(())
            });
            let _ = written;
            sent += 1;
            waiting.left -= 1;
            if waiting.left > 0 {
                waiting.due = later(waiting.due, self.delay_nanos);
                self.waiting.push_back(waiting);
            } else {
                self.bytes -= waiting.bytes.len();
                self.spare.push(waiting.bytes);
            }
        }
        sent
    }

    /// Drops all repetitions, because the group has stopped.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }
}

fn later(from: Instant, nanos: u64) -> Instant {
    Instant::from_nanos(from.as_nanos().saturating_add(nanos))
}
