//! Sleeping until a point in time or until somebody wakes us, and the kernel's favour for threads that must be on time.

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

/// A time of the monotonic clock as the kernel takes it.
pub(super) fn timespec(time: Instant) -> Timespec {
    let nanos = time.as_nanos();
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

/// A rest before something is due is waited for awake up to this part of the time since the cycle before: so much of a CPU is
/// what being on time costs at most. Who sleeps again may be late again, and on a virtual machine nothing says how late.
const AWAKE_SHARE: u64 = 100;
/// The bounds of that, in nanoseconds: going to sleep and waking up takes as long as the one; cycles of a second do not need
/// more than the other.
const AWAKE: core::ops::RangeInclusive<u64> = 40_000..=250_000;

/// The longest time that is waited for awake in a cycle of so many nanoseconds.
pub(super) fn awake_max(cycle: u64) -> u64 {
    (cycle / AWAKE_SHARE).clamp(*AWAKE.start(), *AWAKE.end())
}

/// Sleeps until the monotonic clock shows `deadline`: a time, not a span, so that lateness never adds up.
pub fn sleep_until(deadline: Instant) {
    let request = timespec(deadline);
    // A signal ends the sleep early.
    while clock_nanosleep_absolute(ClockId::Monotonic, &request).is_err() && monotonic() < deadline {}
}

/// Sleeps until a time, as precisely as [`sleep_until`], or until another thread has something to say. One thread sleeps.
#[derive(Debug, Default)]
pub(crate) struct Alarm(AtomicU32);

impl Alarm {
    /// Ends the sleep, or the next one if nobody sleeps.
    pub(crate) fn wake(&self) {
        if self.0.swap(1, Ordering::AcqRel) == 0 {
            // Nobody may sleep: that is no error.
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }

    /// True: it was woken, perhaps before the deadline.
    pub(crate) fn sleep_until(&self, deadline: Instant) -> bool {
        let request = timespec(deadline);
        while self.0.swap(0, Ordering::AcqRel) == 0 {
            // With a set of bits the time is an absolute one, on the monotonic clock.
            let slept =
                futex::wait_bitset(&self.0, futex::Flags::PRIVATE, 0, Some(&request), NonZeroU32::MAX);
            if slept == Err(Errno::TIMEDOUT) {
                return false;
            }
        }
        true
    }
}

/// What the kernel is asked to do for a thread that must be on time. All of it is optional; without any, the kernel's
/// timer still wakes the thread without slack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RealTime {
    /// Priority 1 to 99 under SCHED_FIFO: runs before everything that is not real-time.
    pub fifo: Option<u8>,
    /// The only CPU it runs on.
    pub cpu: Option<usize>,
    /// Keep all memory of the process in RAM: no page fault can delay a cycle.
    pub lock_memory: bool,
}

impl RealTime {
    /// Applies to the calling thread (and the memory of its process).
    ///
    /// # Errors
    /// Something is not permitted or does not exist.
    pub fn apply(&self) -> Result<(), PubSubError> {
        // 50 µs is the default by which the kernel may be late to save power. Refused only by sandboxes.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        if let Some(cpu) = self.cpu {
            pin_current_thread(cpu)
                .map_err(|source| PubSubError::Thread { thread: "publisher's timer", source })?;
        }
        if let Some(priority) = self.fifo {
            fifo(priority)?;
        }
        if self.lock_memory {
            // As it is touched: locking everything that is mapped would load it all.
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
    fn an_alarm_wakes_at_its_time_or_when_it_is_rung() {
        let alarm = std::sync::Arc::new(Alarm::default());
        for span in [0, 1_000, 2_000_000] {
            let deadline = Instant::from_nanos(monotonic().as_nanos() + span);
            assert!(!alarm.sleep_until(deadline));
            assert!(monotonic() >= deadline);
        }
        alarm.wake();
        alarm.wake();
        assert!(alarm.sleep_until(Instant::FAR), "rung before it slept");
        let theirs = std::sync::Arc::clone(&alarm);
        let sleeper = std::thread::spawn(move || theirs.sleep_until(Instant::FAR));
        std::thread::sleep(core::time::Duration::from_millis(20));
        alarm.wake();
        assert!(sleeper.join().unwrap(), "rung while it slept");
        assert!(!alarm.sleep_until(Instant::ZERO), "rung once is woken once");
    }

    #[test]
    fn what_cannot_be_is_refused_with_advice() {
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
