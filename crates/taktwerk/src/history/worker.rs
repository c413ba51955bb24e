//! Threads that are woken, and stopped within a limited time.

use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Wakes or stops a thread.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_rung: bool,
    is_stopped: bool,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a wake-up or until `span` is over. Returns whether to stop.
    pub(super) fn wait(&self, span: Duration) -> bool {
        let state = self.lock();
        let is_quiet = |state: &mut State| !state.is_rung && !state.is_stopped;
        let waited = self.rung.wait_timeout_while(state, span, is_quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_rung = false;
        state.is_stopped
    }

    pub(super) fn ring(&self) {
        self.lock().is_rung = true;
        self.rung.notify_one();
    }

    fn stop(&self) {
        self.lock().is_stopped = true;
        self.rung.notify_one();
    }
}

/// A thread with its bell. It runs until it is stopped, whether or not this value is dropped.
#[derive(Debug)]
pub(super) struct Worker {
    bell: Arc<Bell>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl Worker {
    /// Starts a thread. What `run` owns is dropped before the end is known.
    pub(super) fn start(name: &str, run: impl FnOnce(&Bell) + Send + 'static) -> std::io::Result<Self> {
        let bell = Arc::<Bell>::default();
        let (ending, ended): (Sender<()>, _) = channel();
        let told = Arc::clone(&bell);
        let work = move || {
            run(&told);
            drop(ending);
        };
        thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { bell, ended: Mutex::new(ended) })
    }

    pub(super) const fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Stops the thread. Returns whether it has ended within `max`.
    pub(super) fn stop(&self, max: Duration) -> bool {
        self.bell.stop();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(max);
        !matches!(ended, Err(RecvTimeoutError::Timeout))
    }
}
