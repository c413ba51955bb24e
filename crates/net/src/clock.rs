//! Clocks: a monotonic clock for deadlines, and the wall-clock time that corresponds to a monotonic reading.

use rustix::time::{ClockId, Timespec, clock_gettime};
use taktwerk_types::{Instant, UtcTime};

/// How long one anchor is used. Both clocks run at the same (NTP-steered) rate, so only steps of the wall clock are
/// noticed with this delay.
const ANCHOR_LIFE_NANOS: u64 = 1_000_000_000;

/// The monotonic clock, in nanoseconds since the system started. All threads and processes have the same origin.
#[must_use]
#[inline]
pub fn monotonic() -> Instant {
    Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// The wall clock.
#[must_use]
pub fn wall() -> UtcTime {
    UtcTime::from_unix(core::time::Duration::from_nanos(nanos(clock_gettime(ClockId::Realtime))))
}

/// The wall-clock time at which the monotonic clock showed zero.
#[must_use]
pub fn origin() -> UtcTime {
    UtcTime::from_ticks(wall().ticks() - (monotonic().as_nanos() / 100) as i64)
}

/// CPU time used by the calling thread.
#[must_use]
pub fn thread_cpu() -> core::time::Duration {
    core::time::Duration::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

/// CPU time used by all threads of this process.
#[must_use]
pub fn process_cpu() -> core::time::Duration {
    core::time::Duration::from_nanos(nanos(clock_gettime(ClockId::ProcessCPUTime)))
}

#[inline]
fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Both clocks from one reading: one vDSO call per turn, two once per second.
#[derive(Debug, Clone)]
pub struct Clock {
    anchor: Instant,
    utc: UtcTime,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock anchored now.
    #[must_use]
    pub fn new() -> Self {
        Self { anchor: monotonic(), utc: wall() }
    }

    /// The time on both clocks.
    #[inline]
    pub fn read(&mut self) -> (Instant, UtcTime) {
        let instant = monotonic();
        let age = instant.as_nanos() - self.anchor.as_nanos();
        if age >= ANCHOR_LIFE_NANOS {
            *self = Self { anchor: instant, utc: wall() };
            return (instant, self.utc);
        }
        // Less than 10^7 ticks: fits.
        (instant, UtcTime::from_ticks(self.utc.ticks() + (age / 100) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_move_together() {
        let mut clock = Clock::new();
        let (first, first_utc) = clock.read();
        std::thread::sleep(core::time::Duration::from_millis(20));
        let (second, second_utc) = clock.read();
        let passed = second.since(first).as_nanos() as i64 / 100;
        let ticks = second_utc.ticks() - first_utc.ticks();
        assert!((passed - ticks).abs() <= 1, "{passed} {ticks}");
        let wall = wall();
        assert!((wall.ticks() - second_utc.ticks()).abs() < 10_000_000, "{wall} {second_utc}");
    }
}
