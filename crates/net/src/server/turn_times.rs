//! How long the turns of shards take. While a shard is in a turn, its other clients wait.

use crate::clock::{monotonic, thread_cpu};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use taktwerk_types::Instant;

/// Measures the turns of a server's shards. It costs two system calls per turn.
#[derive(Debug, Default)]
pub struct TurnTimes {
    count: AtomicU64,
    elapsed: AtomicU64,
    cpu: AtomicU64,
    long: AtomicU64,
}

/// The turns since the last reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Turns {
    /// Number of turns.
    pub count: u64,
    /// Duration of the longest turn. On a busy machine this includes time in which other programs ran.
    pub elapsed_max: Duration,
    /// CPU time of the turn that used most.
    pub cpu_max: Duration,
    /// Number of turns that used more than a millisecond of CPU time.
    pub long: u64,
}

/// CPU time from which a turn is long.
const LONG: Duration = Duration::from_millis(1);

impl TurnTimes {
    /// The turns of all shards since the last call.
    pub fn take(&self) -> Turns {
        Turns {
            count: self.count.swap(0, Ordering::AcqRel),
            elapsed_max: Duration::from_nanos(self.elapsed.swap(0, Ordering::AcqRel)),
            cpu_max: Duration::from_nanos(self.cpu.swap(0, Ordering::AcqRel)),
            long: self.long.swap(0, Ordering::AcqRel),
        }
    }

    /// The calling thread begins a turn at `now`.
    pub(super) fn begin(now: Instant) -> (Instant, Duration) {
        (now, thread_cpu())
    }

    /// The calling thread ends the turn.
    pub(super) fn end(&self, (start, cpu): (Instant, Duration)) {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::AcqRel);
        self.elapsed.fetch_max(nanos(monotonic().since(start)), Ordering::AcqRel);
        let cpu = thread_cpu().saturating_sub(cpu);
        self.cpu.fetch_max(nanos(cpu), Ordering::AcqRel);
        self.long.fetch_add(u64::from(cpu > LONG), Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_turn_is_kept_until_it_is_read() {
        let times = TurnTimes::default();
        let started = monotonic();
        times.end((started, thread_cpu()));
        let short = times.take();
        assert_eq!(short.count, 1);
        // Simulates a turn that began an hour ago.
        let hour = Duration::from_secs(3600);
        let start = Instant::from_nanos(monotonic().as_nanos().saturating_sub(3_600_000_000_000));
        times.end((start, Duration::ZERO));
        times.end((monotonic(), thread_cpu()));
        let long = times.take();
        let uptime = Duration::from_nanos(monotonic().as_nanos());
        // The CPU time of a thread starts at zero, so the first of the two turns is charged with all of it.
        assert_eq!((long.count, long.long), (2, u64::from(long.cpu_max > LONG)));
        assert!(
            long.elapsed_max >= hour.min(uptime - Duration::from_secs(1)) && long.cpu_max > Duration::ZERO
        );
        assert_eq!(times.take(), Turns::default());
    }
}
