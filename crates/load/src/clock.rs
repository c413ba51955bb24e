//! The clocks of this machine, in nanoseconds.

use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_gettime};

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The monotonic clock; all schedules and latencies use it.
#[must_use]
pub fn monotonic() -> u64 {
    nanos(ClockId::Monotonic)
}

/// CPU time of all threads of this process, including those that have ended.
#[must_use]
pub fn own_cpu() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread.
#[must_use]
pub fn thread_cpu() -> u64 {
    nanos(ClockId::ThreadCPUTime)
}

/// Sleeps until the monotonic clock reaches `deadline`; returns at once if it has.
///
/// The deadline is absolute, so cycles that are computed from the previous one do not drift.
pub fn sleep_until(deadline: u64) {
    let request = Timespec {
        tv_sec: i64::try_from(deadline / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(deadline % 1_000_000_000).unwrap_or(0),
    };
    // Signals interrupt the sleep; continue it.
    while clock_nanosleep_absolute(SleepClock::Monotonic, &request) == Err(rustix::io::Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_until_the_deadline() {
        let start = monotonic();
        sleep_until(start + 3_000_000);
        let woken = monotonic();
        assert!(woken >= start + 3_000_000);
        sleep_until(start);
        assert!(monotonic() - woken < 1_000_000_000);
    }
}
