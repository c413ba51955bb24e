//! Sleeping until a point in time, and the kernel's favour for threads that must be on time.

use super::PubSubError;
use crate::affinity::pin_current_thread;
use crate::clock::monotonic;
use core::num::NonZeroU64;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};
use std::io;
use taktwerk_types::Instant;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Sleeps until the monotonic clock shows `deadline`: a time, not a span, so that lateness never adds up.
pub fn sleep_until(deadline: Instant) {
    let nanos = deadline.as_nanos();
    let request = Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    };
    // A signal ends the sleep early.
    while clock_nanosleep_absolute(ClockId::Monotonic, &request).is_err() && monotonic() < deadline {}
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
