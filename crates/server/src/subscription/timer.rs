//! Deadlines of publishing cycles and sampling groups: a binary heap that allocates only while it grows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use taktwerk_types::Instant;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A sampling group's tick; before publishing at the same instant, so that fresh samples go out.
    Group(u32),
    /// A subscription's publishing timer.
    Publish(u32),
}

/// The heap. Entries are never removed early: the owner compares [`Timers::pop`]'s instant with its own deadline and
/// drops stale ones.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Due)>>,
}

impl Timers {
    pub(crate) fn push(&mut self, at: Instant, due: Due) {
        self.heap.push(Reverse((at, due)));
    }

    /// The earliest deadline, stale or not: a stale one costs an empty turn.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the earliest entry that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, Due)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}

/// How far apart cycle starts of an interval are kept, ns: cycles of many subscriptions then share wake-ups, and
/// their phases still spread over the interval.
pub(crate) fn grid(interval: u64) -> u64 {
    (interval / 20).clamp(1_000_000, 5_000_000)
}

/// The first grid point not before `at`.
pub(crate) fn align_up(at: Instant, grid: u64) -> Instant {
    let grid = grid.max(1);
    Instant::from_nanos(at.as_nanos().div_ceil(grid).saturating_mul(grid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_before_cycles_of_the_same_instant() {
        let mut timers = Timers::default();
        let at = Instant::from_nanos(5);
        timers.push(at, Due::Publish(1));
        timers.push(at, Due::Group(9));
        timers.push(Instant::from_nanos(1), Due::Publish(2));
        assert_eq!(timers.pop(Instant::ZERO), None);
        let order: Vec<_> = core::iter::from_fn(|| timers.pop(at)).map(|(_, due)| due).collect();
        assert_eq!(order, [Due::Publish(2), Due::Group(9), Due::Publish(1)]);
    }

    #[test]
    fn grid_points() {
        assert_eq!(grid(100_000_000), 5_000_000);
        assert_eq!(grid(1_000_000), 1_000_000);
        assert_eq!(align_up(Instant::from_nanos(7), 5), Instant::from_nanos(10));
        assert_eq!(align_up(Instant::from_nanos(10), 5), Instant::from_nanos(10));
    }
}
