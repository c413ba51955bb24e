//! The runtime of a server's sources in virtual time.

use core::fmt;
use core::task::{Context, Poll, Waker};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk_server::Now;
use taktwerk_server::source::{SourceDriver, Work};
use taktwerk_types::Instant;

type Call = Box<dyn FnOnce() + Send>;

/// Clock and threads of sources. The host sets the time, makes the due calls, and takes the work.
pub(crate) struct VirtualSources(Mutex<State>);

struct State {
    now: Now,
    /// Ordered by time; the number distinguishes calls at the same instant.
    calls: BTreeMap<(Instant, u64), Call>,
    number: u64,
    work: VecDeque<Work>,
}

impl fmt::Debug for VirtualSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualSources").field("next", &self.next()).finish_non_exhaustive()
    }
}

impl VirtualSources {
    pub(crate) fn new(now: Now) -> Self {
        Self(Mutex::new(State { now, calls: BTreeMap::new(), number: 0, work: VecDeque::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_now(&self, now: Now) {
        self.lock().now = now;
    }

    /// The time of the next call.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().calls.first_key_value().map(|((at, _), _)| *at)
    }

    /// Makes the next call if it is due. Returns whether it was.
    pub(crate) fn call_due(&self) -> bool {
        let mut state = self.lock();
        let Some((at, _)) = state.calls.first_key_value().map(|(key, _)| *key) else { return false };
        if at > state.now.instant {
            return false;
        }
        let call = state.calls.pop_first();
        drop(state);
        if let Some((_, call)) = call {
            call();
        }
        true
    }

    /// Whether there is something to do now.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        !state.work.is_empty()
            || state.calls.first_key_value().is_some_and(|((at, _), _)| *at <= state.now.instant)
    }

    /// The next work item.
    pub(crate) fn take_work(&self) -> Option<Work> {
        self.lock().work.pop_front()
    }
}

impl SourceDriver for VirtualSources {
    fn now(&self) -> Now {
        self.lock().now
    }

    fn run(&self, work: Work) {
        self.lock().work.push_back(work);
    }

    fn at(&self, at: Instant, then: Call) {
        let mut state = self.lock();
        state.number += 1;
        let number = state.number;
        state.calls.insert((at, number), then);
    }

    fn stop(&self) {
        let calls = core::mem::take(&mut self.lock().calls);
        drop(calls);
    }
}

/// Does work as far as possible; a future that is not ready is returned.
pub(crate) fn do_work(work: Work) -> Option<Work> {
    match work {
        Work::Blocking(run) => {
            run();
            None
        }
        Work::Later(mut future) => match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(()) => None,
            Poll::Pending => Some(Work::Later(future)),
        },
    }
}
