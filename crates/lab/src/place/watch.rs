//! A thread that reads counters while a load runs, until it is asked for what it has read.

use crate::pin::CpuList;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use taktwerk_load::result::Accounts;

/// The thread, which fills a `T`.
pub(super) struct Watch<T> {
    stop: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Watch<T> {
    /// Starts to read in an interval. `read` is told the time in milliseconds since 1970. The thread stays on `cpus`, if
    /// this process may use them.
    pub(super) fn start(
        name: &str,
        every: Duration,
        cpus: CpuList,
        mut kept: T,
        mut read: impl FnMut(&mut T, f64) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Elsewhere, it would only disturb more.
            let _ = cpus.pin();
            loop {
                read(&mut kept, now_ms());
                if stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                    read(&mut kept, now_ms());
                    return kept;
                }
            }
        })?;
        Ok(Self { stop, thread })
    }

    /// What was read; `None` if the thread has failed.
    pub(super) fn end(self) -> Option<T> {
        // The thread may have ended already.
        let _ = self.stop.send(());
        self.thread.join().ok()
    }
}

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3
}

/// Begin and end of the window of a load in milliseconds since 1970; `None` if its time is unknown.
pub(super) fn window(accounts: &Accounts) -> Option<(f64, f64)> {
    let from = accounts.started_unix_ms? as f64;
    Some((from, from + accounts.window_s * 1e3))
}
