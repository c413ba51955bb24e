//! The priority of the thread that records history.
//!
//! Normally the thread runs only when no other thread needs the processor (SCHED_IDLE). With any other priority, however low, it
//! would block a waking thread that answers clients for a time slice of one to three milliseconds. But under constant load,
//! SCHED_IDLE gets almost no processor time. So a guard thread checks whether the recorder is late, and raises its priority for a
//! while ([`NICE`]).

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use taktwerk_net::clock::monotonic;
use taktwerk_types::Instant;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadId, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
};

/// The nice value of a late recorder: it gets about a quarter of a busy processor. (On Linux this is per thread.)
const NICE: i32 = 5;
/// The same value in the units of the crate `thread-priority`.
const NICE_AS_VALUE: u8 = 35;
/// Interval of the guard's checks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The thread is late after working for this long without a pause.
const LATE: Duration = Duration::from_millis(250);
/// How long the raised priority lasts at first, and at most.
const SHARE_MIN: Duration = Duration::from_secs(10);
const SHARE_MAX: Duration = Duration::from_secs(600);

/// State shared by the thread and its guard: monotonic times in nanoseconds, 0 for never.
#[derive(Debug, Default)]
struct Shared {
    /// Start of the current work without a pause.
    works_since: AtomicU64,
    /// End of the raised priority.
    share_until: AtomicU64,
}

impl Shared {
    fn has_share(&self, now: Instant) -> bool {
        now.as_nanos() < self.share_until.load(Ordering::Acquire)
    }

    /// Whether the thread is late and its priority not raised.
    fn is_late(&self, now: Instant) -> bool {
        let since = self.works_since.load(Ordering::Acquire);
        since > 0 && now.since(Instant::from_nanos(since)) >= LATE && !self.has_share(now)
    }

    fn share(&self, now: Instant, span: Duration) {
        self.share_until.store((now + span).as_nanos(), Ordering::Release);
    }
}

/// The thread's own side.
#[derive(Debug)]
pub(super) struct Priority {
    shared: Arc<Shared>,
    /// `None`: the process may not leave SCHED_IDLE, so the thread permanently has [`NICE`].
    is_idle: Option<bool>,
    _guard: Option<Guard>,
}

/// The guard thread. It ends when this value is dropped.
#[derive(Debug)]
struct Guard {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Priority {
    /// The priority of the calling thread.
    pub(super) fn new() -> Self {
        if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
            tracing::debug!(%error, "the thread that records history has the priority of all others");
        }
        let shared = Arc::<Shared>::default();
        let guard = if may_change() { Guard::start(thread_native_id(), &shared) } else { None };
        if guard.is_none() {
            tracing::debug!(
                "the thread that records history has a low priority, but may not have the lowest"
            );
        }
        Self { shared, is_idle: guard.as_ref().map(|_| false), _guard: guard }
    }

    /// Marks the begin of work.
    pub(super) fn begin(&mut self) {
        let now = monotonic();
        self.shared.works_since.store(now.as_nanos(), Ordering::Release);
        let Some(is_idle) = &mut self.is_idle else { return };
        let may_be_idle = !self.shared.has_share(now);
        if *is_idle != may_be_idle {
            *is_idle = may_be_idle;
            let changed = if may_be_idle { be_idle() } else { get_share(thread_native_id()) };
            if !changed {
                tracing::debug!("the priority of the thread that records history cannot be changed");
            }
        }
    }

    /// Marks the end of work.
    pub(super) fn end(&self) {
        self.shared.works_since.store(0, Ordering::Release);
    }
}

impl Guard {
    fn start(native: ThreadId, shared: &Arc<Shared>) -> Option<Self> {
        let (end, ended) = channel();
        let shared = Arc::clone(shared);
        // A pointer in musl, which threads may not share. It is only handed back to the library.
        let native = native as usize;
        let look = move || guard(native as ThreadId, &shared, &ended);
        let thread =
            thread::Builder::new().name("taktwerk-guard".to_owned()).stack_size(64 << 10).spawn(look);
        Some(Self { end: Some(end), thread: Some(thread.ok()?) })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

fn guard(native: ThreadId, shared: &Shared, ended: &Receiver<()>) {
    let mut span = SHARE_MIN;
    while matches!(ended.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout)) {
        let now = monotonic();
        if shared.is_late(now) {
            // Record this before raising the priority: the thread lowers it again when the time is over.
            shared.share(now, span);
            get_share(native);
            tracing::debug!(?span, "recording history is late; its priority is raised for a while");
            span = (span * 2).min(SHARE_MAX);
        }
    }
}

/// Whether a thread of this process may leave SCHED_IDLE: as root, with CAP_SYS_NICE, or if RLIMIT_NICE allows [`NICE`]. A
/// short-lived thread tries it.
fn may_change() -> bool {
    let try_it = || be_idle() && get_share(thread_native_id());
    let thread = thread::Builder::new().name("taktwerk-probe".to_owned()).stack_size(64 << 10).spawn(try_it);
    thread.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Sets the calling thread to SCHED_IDLE.
fn be_idle() -> bool {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // The crate also asks for a nice value of 0. That may fail, and does not matter.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    thread_schedule_policy().is_ok_and(|now| now == policy)
}

/// Raises the priority of a thread. The calling thread has [`NICE`] from then on.
fn get_share(native: ThreadId) -> bool {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    ThreadPriorityValue::try_from(NICE_AS_VALUE).is_ok_and(|value| {
        set_thread_priority_and_policy(native, ThreadPriority::Crossplatform(value), policy).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    const IDLE: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    const OTHER: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);

    fn nice() -> i32 {
        getpriority_process(Some(rustix::thread::gettid())).unwrap()
    }

    #[test]
    fn a_thread_is_late_only_while_it_works_with_low_priority() {
        let (shared, start) = (Shared::default(), Instant::from_nanos(1_000_000_000_000));
        assert!(!shared.is_late(start), "it does not work");
        shared.works_since.store(start.as_nanos(), Ordering::Release);
        assert!(!shared.is_late(start + LATE / 2) && shared.is_late(start + LATE));
        shared.share(start + LATE, SHARE_MIN);
        assert!(!shared.is_late(start + LATE * 2) && shared.has_share(start + LATE * 2));
        let over = start + LATE + SHARE_MIN;
        assert!(shared.is_late(over) && !shared.has_share(over));
        shared.works_since.store(0, Ordering::Release);
        assert!(!shared.is_late(over));
    }

    #[test]
    fn the_guard_raises_the_priority_of_a_late_thread() {
        if !may_change() {
            let priority = Priority::new();
            assert!(
                priority.is_idle.is_none() && thread_schedule_policy().unwrap() == OTHER && nice() == NICE
            );
            return;
        }
        let mut priority = Priority::new();
        assert_eq!((thread_schedule_policy().unwrap(), nice()), (OTHER, NICE));
        priority.begin();
        assert_eq!((thread_schedule_policy().unwrap(), nice()), (IDLE, NICE));
        let start = std::time::Instant::now();
        while thread_schedule_policy().unwrap() != OTHER {
            assert!(start.elapsed() < Duration::from_secs(30), "the guard does not look");
            thread::yield_now();
        }
        assert!(start.elapsed() >= LATE - LOOK_EVERY && nice() == NICE);
        priority.end();
        priority.begin();
        assert_eq!(thread_schedule_policy().unwrap(), OTHER, "it keeps the share for a while");
        priority.shared.share_until.store(0, Ordering::Release);
        priority.begin();
        assert_eq!(thread_schedule_policy().unwrap(), IDLE);
        assert!(get_share(thread_native_id()) && nice() == NICE);
    }
}
