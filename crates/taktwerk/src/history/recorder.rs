//! The threads that take recorded values from the address space and store them.
//!
//! Two threads: taking must go on while the store hangs, because the ring of the address space is short.

use super::counters::RecorderCounters;
use super::priority::Priority;
use super::waiting::WaitingStore;
use super::worker::{Bell, Worker};
use super::{HistoryStore, HistoryValue, NodeKey};
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;
use taktwerk_server::AddressSpace;
use taktwerk_server::recorder::{Recorded, Recorder};
use taktwerk_server::space::Wake;

/// Longest queue to the recorder's thread, in values. Beyond it values are dropped and marked as lost.
pub(crate) const QUEUE_LEN: usize = 1 << 17;
/// Interval for storing values: the most that a crash can lose.
const STORE_EVERY: Duration = Duration::from_millis(500);
/// Shortest interval for fetching values from variables. A value that is overwritten before it is fetched costs its writer more.
const TAKE_EVERY_MIN: Duration = Duration::from_millis(20);
/// After this time with hardly any overwritten values, values are fetched less often.
const CALM: Duration = Duration::from_secs(10);
/// Interval at which stores delete expired values.
const MAINTAIN_EVERY: Duration = Duration::from_secs(600);
/// How long a stopping server waits for its store. Supervisors must give it more time (`TimeoutStopSec`).
const STOP_MAX: Duration = Duration::from_secs(10);
/// Pause before a stopping server tries again to store what waits.
const STOP_RETRY: Duration = Duration::from_millis(100);
/// How long a process that ends at once waits for the thread that takes values.
const TAKE_MAX: Duration = Duration::from_secs(1);

struct Ring(Arc<Bell>);

impl Wake for Ring {
    fn wake(&self) {
        self.0.ring();
    }
}

/// The threads that store recorded values and events. They end when this value is dropped.
#[derive(Debug)]
pub(crate) struct RecorderThread(Arc<Recording>);

/// The part of [`RecorderThread`] that a [`Stopper`](crate::server::Stopper) shares.
#[derive(Debug)]
pub(crate) struct Recording {
    taking: Worker,
    storing: Worker,
    store: Arc<WaitingStore>,
}

impl RecorderThread {
    /// Starts the threads for the store of an address space with a recorder.
    pub(crate) fn start(
        space: &Arc<AddressSpace>,
        store: &Arc<WaitingStore>,
    ) -> std::io::Result<Option<Self>> {
        let Some(recorder) = Recorder::new(space) else { return Ok(None) };
        let storing = Storing { store: Arc::clone(store), maintenance: None };
        let storing = Worker::start("taktwerk-store", move |bell| storing.run(bell))?;
        let due = Arc::clone(storing.bell());
        let taking = Taking { recorder, store: Arc::clone(store), lost_before: 0, due };
        let taking = Worker::start("taktwerk-record", move |bell| taking.run(bell));
        let taking = taking.inspect_err(|_| {
            storing.stop(Duration::ZERO);
            store.give_up();
        })?;
        space.set_recorder_waker(Box::new(Ring(Arc::clone(taking.bell()))));
        Ok(Some(Self(Arc::new(Recording { taking, storing, store: Arc::clone(store) }))))
    }

    pub(crate) fn counters(&self) -> &Arc<RecorderCounters> {
        self.0.store.counters()
    }

    pub(crate) const fn recording(&self) -> &Arc<Recording> {
        &self.0
    }
}

impl Drop for RecorderThread {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Recording {
    /// How many values and events are not stored. No further ones are recorded after a call.
    pub(crate) fn unstored(&self) -> u64 {
        // Also what was written since values were taken last.
        self.taking.stop(TAKE_MAX);
        let counters = self.store.counters();
        counters.waiting() + counters.waiting_events()
    }

    /// Stops the threads and waits until everything is stored, at most [`STOP_MAX`]: a database may not answer.
    pub(crate) fn stop(&self) {
        self.stop_within(STOP_MAX);
    }

    fn stop_within(&self, max: Duration) {
        let end = Instant::now() + max;
        self.taking.stop(max);
        let has_ended = self.storing.stop(end.saturating_duration_since(Instant::now()));
        // A thread that has panicked has ended, too.
        if has_ended && self.store.is_empty() {
            return;
        }
        let (values, events) = self.store.give_up();
        let seconds = max.as_secs_f64();
        if values + events > 0 {
            tracing::error!(
                target: "taktwerk::outage",
                values,
                events,
                "history: the store has failed, or has not stored everything within {seconds} s. The server stops, and what \
                 waits is lost"
            );
        } else {
            tracing::error!("history: the store cannot be closed within {seconds} s");
        }
    }
}

/// Adapts the interval of fetching values: short enough that few are overwritten, and no shorter, because each fetch wakes the
/// processor.
#[derive(Debug)]
struct Pace {
    every: Duration,
    since: Instant,
}

impl Pace {
    const fn new(now: Instant) -> Self {
        Self { every: STORE_EVERY, since: now }
    }

    /// Adapts the interval after fetching `taken` values, of which some had been overwritten.
    fn note(&mut self, taken: usize, overwritten: usize, now: Instant) {
        if overwritten * 10 > taken {
            *self = Self { every: (self.every / 2).max(TAKE_EVERY_MIN), since: now };
        } else if now.duration_since(self.since) >= CALM {
            *self = Self { every: (self.every * 5 / 4).min(STORE_EVERY), since: now };
        }
    }
}

/// Takes values and events, and queues them for the store. It waits for no store.
struct Taking {
    recorder: Recorder,
    store: Arc<WaitingStore>,
    lost_before: u64,
    /// Rung when values should be stored.
    due: Arc<Bell>,
}

/// The threads yield about every tenth of a millisecond, as the stores do, and have a low [`Priority`]. Otherwise threads that
/// answer clients would wait for a whole time slice when they share their processor.
impl Taking {
    fn run(mut self, bell: &Bell) {
        let mut priority = Priority::new();
        let mut taken = Vec::new();
        let mut stored = Instant::now();
        let mut pace = Pace::new(stored);
        loop {
            priority.end();
            let stop = bell.wait(STORE_EVERY.saturating_sub(stored.elapsed()).min(pace.every));
            priority.begin();
            let overwritten = self.recorder.take(taktwerk_net::clock::wall(), &mut taken, thread::yield_now);
            pace.note(taken.len(), overwritten, Instant::now());
            self.store.queue(taken.drain(..).map(pair), thread::yield_now);
            if let Some((history, events)) = self.recorder.take_events(taktwerk_net::clock::wall()) {
                self.store.queue_events(history, events);
            }
            self.count_lost();
            if stop {
                return;
            }
            if stored.elapsed() >= STORE_EVERY {
                stored = Instant::now();
                self.due.ring();
            }
        }
    }

    fn count_lost(&mut self) {
        let lost = self.recorder.lost();
        let more = lost - self.lost_before;
        if more > 0 {
            self.store.counters().lost_early.fetch_add(more, Ordering::Relaxed);
            self.lost_before = lost;
            tracing::warn!(
                count = more,
                "history: values or events arrived faster than they can be recorded, and are lost"
            );
        }
    }
}

/// Gives to the store what is queued, and waits for it.
struct Storing {
    store: Arc<WaitingStore>,
    maintenance: Option<JoinHandle<()>>,
}

impl Storing {
    fn run(mut self, bell: &Bell) {
        let mut priority = Priority::new();
        let mut maintained = Instant::now();
        loop {
            priority.end();
            let stop = bell.wait(MAINTAIN_EVERY.saturating_sub(maintained.elapsed()));
            priority.begin();
            if stop {
                return self.finish();
            }
            self.store.flush(false);
            if maintained.elapsed() >= MAINTAIN_EVERY {
                maintained = Instant::now();
                self.maintain();
            }
        }
    }

    /// Deletes what has expired, on a thread of its own: a database may take long, and values are recorded meanwhile.
    fn maintain(&mut self) {
        if self.maintenance.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let store = Arc::clone(&self.store);
        let delete = move || {
            if let Err(error) = store.maintain(taktwerk_net::clock::wall()) {
                tracing::warn!(%error, "history: cannot delete expired values");
            }
        };
        match thread::Builder::new().name("taktwerk-expire".to_owned()).spawn(delete) {
            Ok(thread) => self.maintenance = Some(thread),
            Err(error) => tracing::warn!(%error, "history: cannot delete expired values"),
        }
    }

    /// Stores everything and closes the store. Both are repeated until [`Recording::stop`] gives up: a file may be locked for
    /// a few seconds only.
    fn finish(&self) {
        loop {
            self.store.flush(true);
            let result = if self.store.is_empty() { self.store.finish() } else { Ok(()) };
            let is_over = self.store.has_given_up();
            match result {
                Ok(()) if self.store.is_empty() => return,
                Err(error) if is_over => {
                    return tracing::error!(%error, "history: the store cannot be closed properly");
                }
                _ if is_over => return,
                _ => thread::sleep(STOP_RETRY),
            }
        }
    }
}

/// A recorded value. The address space has only one store.
fn pair(recorded: Recorded) -> (NodeKey, HistoryValue) {
    (recorded.node, recorded.value)
}

#[cfg(test)]
mod tests;
