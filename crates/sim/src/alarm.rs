//! The pending deadline of a host.

use crate::event::Event;
use crate::ids::HostId;
use crate::queue::EventQueue;
use taktwerk_types::Instant;

/// Deadlines change with every turn of a host, but the queue has only one event, for the earliest deadline. If the
/// deadline was postponed, the event wakes the host unnecessarily, which is cheaper than removing events from a heap.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    armed: Option<(Instant, u64)>,
    number: u64,
}

impl Alarm {
    /// Ensures that the host, or its shard with this number, wakes up at `at` at the latest.
    pub(crate) fn arm(&mut self, host: HostId, shard: u32, at: Instant, queue: &mut EventQueue<Event>) {
        if self.armed.is_some_and(|(armed, _)| armed <= at) {
            return;
        }
        self.number += 1;
        self.armed = Some((at, self.number));
        queue.schedule(at, Event::Timer { host, shard, number: self.number });
    }

    /// Whether the event that woke the host is the current one.
    pub(crate) fn ring(&mut self, number: u64) -> bool {
        let rings = self.armed.is_some_and(|(_, armed)| armed == number);
        if rings {
            self.armed = None;
        }
        rings
    }
}
