//! Thread pools for blocking work: cryptography with private keys, certificate checks, the application's callbacks.
//! Each kind of work has its own pool.
//!
//! Threads start when work arrives and end after an idle time: an idle server has none.

use core::time::Duration;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Stack size, also for the application's callbacks; only touched pages take memory.
const STACK_LEN: usize = 2 << 20;
/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// A pool of worker threads. Clones share it. The submitters bound the queue: a shard limits its outstanding effects.
#[derive(Clone)]
pub(crate) struct Workers(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    ready: Condvar,
    name: &'static str,
    threads_max: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl core::fmt::Debug for Workers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Workers").field("threads_max", &self.0.threads_max).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    pub(crate) fn new(name: &'static str, threads_max: usize) -> Self {
        let threads_max = threads_max.max(1);
        let shared = Shared { state: Mutex::default(), ready: Condvar::new(), name, threads_max };
        Self(Arc::new(shared))
    }

    /// Runs a job soon. The job must report its own outcome, even if it panics.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.0.lock();
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() {
            self.0.ready.notify_one();
        } else if state.threads < self.0.threads_max {
            state.threads += 1;
            drop(state);
            let shared = Arc::clone(&self.0);
            let thread = thread::Builder::new().name(self.0.name.to_owned()).stack_size(STACK_LEN);
            if let Err(error) = thread.spawn(move || work(&shared)) {
                let mut state = self.0.lock();
                state.threads -= 1;
                // Without any thread the jobs would wait for ever. Dropping them reports a failure. They do not run on
                // the submitting thread, which must not block.
                if state.threads == 0 {
                    tracing::error!(%error, "cannot start a {} thread: its work fails", self.0.name);
                    let jobs = core::mem::take(&mut state.jobs);
                    drop(state);
                    drop(jobs);
                }
            }
        }
    }
}

fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            drop(state);
            run(job);
            state = shared.lock();
            continue;
        }
        state.idle += 1;
        let (woken, wait) = shared.ready.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
        state = woken;
        state.idle -= 1;
        if wait.timed_out() && state.jobs.is_empty() {
            state.threads -= 1;
            return;
        }
    }
}

fn run(job: Job) {
    // A panic of a callback must not end the thread.
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a callback panicked on a worker thread");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn jobs_run_in_parallel_and_survive_panics() {
        let workers = Workers::new("test", 2);
        let (tell, told) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        workers.submit(move || gate.recv().unwrap());
        for number in 0..10 {
            let tell = tell.clone();
            workers.submit(move || {
                tell.send(number).unwrap();
                assert!(number != 3, "on purpose");
            });
        }
        let seen: Vec<i32> = (0..10).map(|_| told.recv_timeout(Duration::from_secs(5)).unwrap()).collect();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
        release.send(()).unwrap();
        assert!(workers.0.lock().threads <= 2);
    }
}
