//! Threads for the application's sources, so that a device that does not respond delays no other source.
//!
//! A source processes one request at a time, so a source that blocks holds one thread, and a second one if a write
//! blocks, too. Up to [`ServerOptions::source_threads_max`](crate::ServerOptions::source_threads_max) threads can block
//! before other sources have to wait. Deadlines have a thread of their own, which starts with the first deadline and
//! never waits for a source.

use crate::clock::{monotonic, wall};
use crate::executor::Executor;
use crate::workers::Workers;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use taktwerk_server::Now;
use taktwerk_server::source::{SourceDriver, Work};
use taktwerk_types::Instant;

type Call = Box<dyn FnOnce() + Send>;

/// Stack size of the deadline thread, which only reads clocks and stores values.
const STACK_LEN: usize = 512 << 10;

/// The threads of a server's sources.
pub(crate) struct SourceThreads {
    workers: Workers,
    executor: Executor,
    timer: Arc<Timer>,
}

#[derive(Default)]
struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Ordered by time; the number distinguishes calls with the same time.
    calls: BTreeMap<(Instant, u64), Call>,
    number: u64,
    is_running: bool,
    is_stopped: bool,
}

impl SourceThreads {
    pub(crate) fn new(threads_max: usize) -> Self {
        Self {
            workers: Workers::new("taktwerk-source", threads_max),
            executor: Executor::new(),
            timer: Arc::default(),
        }
    }
}

impl SourceDriver for SourceThreads {
    fn now(&self) -> Now {
        Now { instant: monotonic(), utc: wall() }
    }

    fn run(&self, work: Work) {
        match work {
            Work::Blocking(run) => self.workers.submit(run),
            Work::Later(future) => {
                // If it cannot be run, it is dropped, which reports a failure.
                self.executor.spawn(future);
            }
        }
    }

    fn at(&self, at: Instant, then: Call) {
        let mut state = self.timer.lock();
        if state.is_stopped {
            return;
        }
        state.number += 1;
        let number = state.number;
        let is_first = state.calls.first_key_value().is_none_or(|((first, _), _)| at < *first);
        state.calls.insert((at, number), then);
        if !state.is_running {
            let timer = Arc::clone(&self.timer);
            let thread = thread::Builder::new().name("taktwerk-sources".to_owned()).stack_size(STACK_LEN);
            match thread.spawn(move || timer.run()) {
                Ok(_) => state.is_running = true,
                Err(error) => {
                    tracing::error!(%error, "cannot start the thread for the deadlines of sources")
                }
            }
        } else if is_first {
            self.timer.changed.notify_one();
        }
    }

    fn stop(&self) {
        self.timer.stop();
    }
}

impl Drop for SourceThreads {
    fn drop(&mut self) {
        self.timer.stop();
    }
}

impl Timer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        let calls = core::mem::take(&mut state.calls);
        drop(state);
        self.changed.notify_one();
        // Dropping the calls may drop the last handles of other objects.
        drop(calls);
    }

    fn run(&self) {
        let mut state = self.lock();
        while !state.is_stopped {
            let first = state.calls.first_key_value().map(|(key, _)| *key);
            let left = first.map(|(at, _)| at.since(monotonic()));
            state = match (first, left) {
                (Some(key), Some(left)) if left.is_zero() => {
                    let call = state.calls.remove(&key);
                    drop(state);
                    if let Some(call) = call
                        && catch_unwind(AssertUnwindSafe(call)).is_err()
                    {
                        tracing::error!("a source panicked");
                    }
                    self.lock()
                }
                (_, Some(left)) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                (_, None) => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use std::sync::mpsc;

    #[test]
    fn calls_run_in_time_order_and_survive_panics() {
        let threads = SourceThreads::new(2);
        let (tell, told) = mpsc::channel();
        let start = monotonic();
        for (number, millis) in [(3, 60), (1, 20), (0, 0), (2, 40)] {
            let tell = tell.clone();
            let call = move || {
                tell.send((number, monotonic())).unwrap();
                assert!(number != 1, "on purpose");
            };
            threads.at(start + Duration::from_millis(millis), Box::new(call));
        }
        for expected in 0..4u64 {
            let (number, at) = told.recv_timeout(Duration::from_secs(5)).unwrap();
            assert_eq!(number, expected);
            assert!(at >= start + Duration::from_millis(expected * 20));
        }
        threads.stop();
        threads.at(monotonic(), Box::new(move || tell.send((9, start)).unwrap()));
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
    }
}
