//! The one pending deadline of a host.

use crate::event::Event;
use crate::ids::HostId;
use crate::queue::EventQueue;
use taktwerk_types::Instant;

/// Hosts change their deadlines with every turn; the queue holds an event for the earliest one only. One that was put
/// off since wakes its host in vain, which costs less than taking events out of a heap.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    armed: Option<(Instant, u64)>,
    number: u64,
}

impl Alarm {
    /// Makes sure that the host, or its shard of this number, is woken at `at` at the latest.
    pub(crate) fn arm(&mut self, host: HostId, shard: u32, at: Instant, queue: &mut EventQueue<Event>) {
        if self.armed.is_some_and(|(armed, _)| armed <= at) {
            return;
        }
        self.number += 1;
        self.armed = Some((at, self.number));
        queue.schedule(at, Event::Timer { host, shard, number: self.number });
    }

    /// Whether the event that woke the host is the armed one.
    pub(crate) fn ring(&mut self, number: u64) -> bool {
        let rings = self.armed.is_some_and(|(_, armed)| armed == number);
        if rings {
            self.armed = None;
        }
        rings
    }
}
