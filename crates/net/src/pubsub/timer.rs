//! Sleeping until an absolute time or a wake-up, and real-time options of threads.

use super::PubSubError;
use crate::affinity::pin_current_thread;
use crate::clock::monotonic;
use core::num::{NonZeroU32, NonZeroU64};
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{clock_nanosleep_absolute, futex, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};
use std::io;
use taktwerk_types::Instant;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Converts a time of the monotonic clock for the kernel.
pub(super) fn timespec(time: Instant) -> Timespec {
    let nanos = time.as_nanos();
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

/// A thread spins before a due time for at most this fraction of the cycle, which limits the CPU cost of being on time.
/// Sleeping again could be late again, by an unknown time on a virtual machine.
const AWAKE_SHARE: u64 = 100;
/// Bounds of the spin time, in nanoseconds. The lower one is the time for going to sleep and waking up; cycles of a
/// second need no more than the upper one.
const AWAKE: core::ops::RangeInclusive<u64> = 40_000..=250_000;

/// The maximum spin time in a cycle of this many nanoseconds.
pub(super) fn awake_max(cycle: u64) -> u64 {
    (cycle / AWAKE_SHARE).clamp(*AWAKE.start(), *AWAKE.end())
}

/// Sleeps until the monotonic clock shows `deadline`. An absolute time, so that lateness does not add up.
pub fn sleep_until(deadline: Instant) {
    let request = timespec(deadline);
    // A signal may end the sleep early.
    while clock_nanosleep_absolute(ClockId::Monotonic, &request).is_err() && monotonic() < deadline {}
}

/// Sleeps until a time, as precisely as [`sleep_until`], or until another thread wakes it. Only one thread may sleep.
#[derive(Debug, Default)]
pub(crate) struct Alarm(AtomicU32);

impl Alarm {
    /// Ends the current sleep, or the next one if the thread is awake.
    pub(crate) fn wake(&self) {
        if self.0.swap(1, Ordering::AcqRel) == 0 {
            // It is no error if no thread sleeps.
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }

    /// True if it was woken, perhaps before the call.
    pub(crate) fn sleep_until(&self, deadline: Instant) -> bool {
        let request = timespec(deadline);
        while self.0.swap(0, Ordering::AcqRel) == 0 {
            // FUTEX_WAIT_BITSET takes an absolute time on the monotonic clock.
            let slept =
                futex::wait_bitset(&self.0, futex::Flags::PRIVATE, 0, Some(&request), NonZeroU32::MAX);
            if slept == Err(Errno::TIMEDOUT) {
                return false;
            }
        }
        true
    }
}

/// Real-time options of a thread. All are optional; without any, the thread still wakes without timer slack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RealTime {
    /// Priority 1 to 99 under SCHED_FIFO: runs before all threads without real-time priority.
    pub fifo: Option<u8>,
    /// The CPU to pin the thread to.
    pub cpu: Option<usize>,
    /// Lock all memory of the process in RAM, so that page faults cannot delay a cycle.
    pub lock_memory: bool,
}

impl RealTime {
    /// Applies the options to the calling thread (and the memory of its process).
    ///
    /// # Errors
    /// An option is not permitted or not available.
    pub fn apply(&self) -> Result<(), PubSubError> {
        // The default slack is 50 µs, which saves power. Only sandboxes refuse the change.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        if let Some(cpu) = self.cpu {
            pin_current_thread(cpu)
                .map_err(|source| PubSubError::Thread { thread: "publisher's timer", source })?;
        }
        if let Some(priority) = self.fifo {
            fifo(priority)?;
        }
        if self.lock_memory {
            // Lock pages when they are touched: locking the whole mapping would load all of it.
            let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
            mlockall(flags).map_err(|error| PubSubError::NotPermitted {
                what: "locking the memory".to_owned(),
                source: error.into(),
                advice: "raise the limit memlock (ulimit -l), or run with the capability CAP_IPC_LOCK",
            })?;
        }
        Ok(())
    }
}

fn fifo(priority: u8) -> Result<(), PubSubError> {
    let refused = |reason: String| PubSubError::NotPermitted {
        what: format!("SCHED_FIFO with priority {priority}"),
        source: io::Error::other(reason),
        advice: "use 1 to 99, and run as root, with the capability CAP_SYS_NICE or under a limit rtprio that allows it",
    };
    if !(1..=99).contains(&priority) {
        return Err(refused("priorities are 1 to 99".to_owned()));
    }
    let value = ThreadPriorityValue::try_from(priority).map_err(|reason| refused(reason.to_owned()))?;
    set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(value),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wakes_early() {
        for span in [0, 1_000, 2_000_000] {
            let deadline = Instant::from_nanos(monotonic().as_nanos() + span);
            sleep_until(deadline);
            assert!(monotonic() >= deadline);
        }
        sleep_until(Instant::ZERO);
    }

    #[test]
    fn an_alarm_wakes_at_its_time_or_when_woken() {
        let alarm = std::sync::Arc::new(Alarm::default());
        for span in [0, 1_000, 2_000_000] {
            let deadline = Instant::from_nanos(monotonic().as_nanos() + span);
            assert!(!alarm.sleep_until(deadline));
            assert!(monotonic() >= deadline);
        }
        alarm.wake();
        alarm.wake();
        assert!(alarm.sleep_until(Instant::FAR), "woken before it slept");
        let theirs = std::sync::Arc::clone(&alarm);
        let sleeper = std::thread::spawn(move || theirs.sleep_until(Instant::FAR));
        std::thread::sleep(core::time::Duration::from_millis(20));
        alarm.wake();
        assert!(sleeper.join().unwrap(), "woken while it slept");
        assert!(!alarm.sleep_until(Instant::ZERO), "one wake-up ends one sleep");
    }

    #[test]
    fn invalid_options_are_refused_with_advice() {
        std::thread::spawn(|| {
            let error = RealTime { fifo: Some(0), ..RealTime::default() }.apply().unwrap_err().to_string();
            assert!(error.contains("1 to 99"), "{error}");
            assert!(RealTime { cpu: Some(9999), ..RealTime::default() }.apply().is_err());
            RealTime::default().apply().unwrap();
        })
        .join()
        .unwrap();
    }
}
