//! The end of a server whose main thread hangs: applying a configuration or closing a destination may wait for a file or a disk
//! that does not answer. One signal must be enough to end the process in the time that supervisors give it.

use super::pubsub::Receivers;
use super::{GRACE, gateway, history, supervisor};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use signal_hook::low_level;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use taktwerk::history::RecorderCounters;
use taktwerk::server::Stopper;

/// How long the main thread may take until it stops the server. With [`GRACE`] and the time for the history, this is less than
/// `TimeoutStopSec` of the package's service.
const HANG_MAX: Duration = Duration::from_secs(5);
/// How often the thread looks whether the server is to end.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long it may take to write the queues of destinations, the states of alarms and the sequence numbers of PubSub for the
/// last time.
const FLUSH_MAX: Duration = Duration::from_secs(1);
/// As for other failures of the environment.
const EXIT_CODE_LOST: i32 = 6;

/// Ends the server in the place of the main thread if that hangs.
pub(super) struct Ending {
    /// Set by the thread that stops the server.
    is_claimed: Arc<AtomicBool>,
    queues: Arc<Mutex<gateway::Queues>>,
}

impl Ending {
    /// Starts to watch. `end` asks the server to end, as a signal does.
    pub(super) fn watch(
        interrupt: &Interrupt,
        end: &Arc<AtomicBool>,
        (stopper, receivers): (Stopper, Receivers),
        recorder: Option<Arc<RecorderCounters>>,
    ) -> Result<Self, Failure> {
        let ending = Self { is_claimed: Arc::default(), queues: Arc::default() };
        let (is_claimed, queues) = (Arc::clone(&ending.is_claimed), Arc::clone(&ending.queues));
        let (signals, end) = (interrupt.flag(), Arc::clone(end));
        let watch = move || {
            let mut since = None;
            while !is_claimed.load(Ordering::Acquire) {
                thread::sleep(LOOK_EVERY);
                let is_asked = signals.load(Ordering::Relaxed) || end.load(Ordering::Relaxed);
                let since = is_asked.then(|| *since.get_or_insert_with(Instant::now));
                if since.is_some_and(|since| since.elapsed() >= HANG_MAX)
                    && !is_claimed.swap(true, Ordering::AcqRel)
                {
                    let queues = queues.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    stop(&stopper, recorder.as_deref(), queues, receivers.clone());
                }
            }
        };
        let thread = thread::Builder::new().name("ending".to_owned()).stack_size(256 << 10).spawn(watch);
        thread.map_err(|error| Failure::Environment(format!("cannot start a thread: {error}")))?;
        Ok(ending)
    }

    /// The queues of destinations, to be written at the end.
    pub(super) fn keep(&self, queues: gateway::Queues) {
        *self.queues.lock().unwrap_or_else(PoisonError::into_inner) = queues;
    }

    /// The main thread stops the server. If the other thread does already, it ends the process, and this function does not return.
    pub(super) fn claim(&self) {
        if self.is_claimed.swap(true, Ordering::AcqRel) {
            loop {
                thread::park();
            }
        }
    }
}

/// Stops the server and ends the process.
fn stop(
    stopper: &Stopper,
    recorder: Option<&RecorderCounters>,
    queues: gateway::Queues,
    receivers: Receivers,
) {
    tracing::error!(
        "a configuration change, a source or a destination does not respond. The server stops without waiting for it"
    );
    supervisor::stopping();
    let (stopping, is_stopped) = mpsc::channel::<()>();
    let (written, is_written) = mpsc::channel();
    let last = stopper.clone();
    // The disk may be what hangs.
    let write = move || {
        queues.flush();
        // Sources and clients go on until the server has stopped. Then this fails, because `stopping` is dropped.
        let _ = is_stopped.recv();
        queues.flush();
        last.save_alarms();
        if !receivers.end_within(FLUSH_MAX) {
            return;
        }
        // This fails if the time is over. The process is about to end then.
        let _ = written.send(());
    };
    let writing = thread::Builder::new().name("queues".to_owned()).spawn(write);
    stopper.stop(GRACE);
    drop(stopping);
    if writing.is_ok() && is_written.recv_timeout(FLUSH_MAX).is_err() {
        tracing::error!(
            "cannot write the last values for destinations to their queues, the states of alarms, or the sequence numbers of \
             PubSub: they are lost"
        );
    }
    match recorder.and_then(|recorder| history::unstored(recorder.lost_at_stop(), recorder)) {
        Some(lost) => {
            tell!("error: {lost}");
            low_level::exit(EXIT_CODE_LOST)
        }
        None => low_level::exit(0),
    }
}
