//! The thread that takes recorded values from the address space and stores them.

use super::counters::RecorderCounters;
use super::priority::Priority;
use super::waiting::WaitingStore;
use super::{HistoryStore, HistoryValue, NodeKey};
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// Wakes or stops the recorder's thread.
#[derive(Debug, Default)]
struct Bell {
    state: Mutex<(bool, bool)>,
    rung: Condvar,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, (bool, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a wake-up or until `span` is over. Returns whether to stop.
    fn wait(&self, span: Duration) -> bool {
        let state = self.lock();
        let waited = self.rung.wait_timeout_while(state, span, |(rung, stop)| !*rung && !*stop);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.0 = false;
        state.1
    }

    fn stop(&self) {
        self.lock().1 = true;
        self.rung.notify_one();
    }
}

struct Ring(Arc<Bell>);

impl Wake for Ring {
    fn wake(&self) {
        self.0.lock().0 = true;
        self.0.rung.notify_one();
    }
}

/// The thread that stores recorded values and events.
#[derive(Debug)]
pub(crate) struct RecorderThread {
    bell: Arc<Bell>,
    store: Arc<WaitingStore>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl RecorderThread {
    /// Starts the thread for the store of an address space with a recorder.
    pub(crate) fn start(
        space: &Arc<AddressSpace>,
        store: &Arc<WaitingStore>,
    ) -> std::io::Result<Option<Self>> {
        let Some(recorder) = Recorder::new(space) else { return Ok(None) };
        let bell = Arc::new(Bell::default());
        space.set_recorder_waker(Box::new(Ring(Arc::clone(&bell))));
        let mut loop_ = Loop { recorder, store: Arc::clone(store), lost_before: 0, maintenance: None };
        let told = Arc::clone(&bell);
        let (ending, ended): (Sender<()>, _) = channel();
        let run = move || {
            loop_.run(&told);
            // The store is free when the end is known.
            drop(loop_);
            drop(ending);
        };
        thread::Builder::new().name("taktwerk-record".to_owned()).spawn(run)?;
        Ok(Some(Self { bell, store: Arc::clone(store), ended: Mutex::new(ended) }))
    }

    pub(crate) fn counters(&self) -> &Arc<RecorderCounters> {
        self.store.counters()
    }

    /// Stops the thread and waits until it has stored everything, but only for `max`: a database may not answer.
    fn stop(&self, max: Duration) {
        self.bell.stop();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(max);
        if matches!(ended, Err(RecvTimeoutError::Timeout)) {
            let (values, events) = self.store.give_up();
            let seconds = max.as_secs_f64();
            tracing::error!(
                target: "taktwerk::outage",
                values,
                events,
                "history: the store has not answered for {seconds} s. The server stops, and what waits is lost"
            );
        }
    }
}

impl Drop for RecorderThread {
    fn drop(&mut self) {
        self.stop(STOP_MAX);
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

struct Loop {
    recorder: Recorder,
    store: Arc<WaitingStore>,
    lost_before: u64,
    maintenance: Option<JoinHandle<()>>,
}

/// The thread yields about every tenth of a millisecond, as the stores do, and has a low [`Priority`]. Otherwise threads that
/// answer clients would wait for a whole time slice when they share its processor.
impl Loop {
    fn run(&mut self, bell: &Bell) {
        let mut priority = Priority::new();
        let mut taken = Vec::new();
        let mut maintained = Instant::now();
        let mut stored = Instant::now();
        let mut pace = Pace::new(stored);
        loop {
            priority.end();
            let stop = bell.wait(STORE_EVERY.saturating_sub(stored.elapsed()).min(pace.every));
            priority.begin();
            let overwritten = self.recorder.take(taktwerk_net::clock::wall(), &mut taken, thread::yield_now);
            pace.note(taken.len(), overwritten, Instant::now());
            let lost = self.recorder.lost();
            self.store.counters().lost_early.fetch_add(lost - self.lost_before, Ordering::Relaxed);
            self.lost_before = lost;
            self.store.queue(taken.drain(..).map(pair), thread::yield_now);
            if let Some((history, events)) = self.recorder.take_events(taktwerk_net::clock::wall()) {
                self.store.queue_events(history, events);
            }
            if stop || stored.elapsed() >= STORE_EVERY {
                stored = Instant::now();
                self.store.flush(stop);
            }
            if stop {
                self.finish();
                return;
            }
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

    fn finish(&self) {
        let (values, events) = self.store.give_up();
        if values + events > 0 {
            tracing::error!(
                target: "taktwerk::outage",
                values,
                events,
                "history: the server stops, and what could not be stored is lost"
            );
        }
        if let Err(error) = self.store.finish() {
            tracing::error!(%error, "history: the store cannot be closed properly");
        }
    }
}

/// A recorded value. The address space has only one store.
fn pair(recorded: Recorded) -> (NodeKey, HistoryValue) {
    (recorded.node, recorded.value)
}

#[cfg(test)]
mod tests {
    use super::super::{MemoryStore, NodeKey, Order, ReadLimit, Span, StoreError};
    use super::*;
    use taktwerk_types::{StatusCode, UtcTime};

    /// A store that never answers while it is locked.
    #[derive(Debug)]
    struct Hanging(Mutex<()>, MemoryStore);

    impl HistoryStore for Hanging {
        fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
            let _unlocked = self.0.lock();
            self.1.append(values)
        }

        fn read(
            &self,
            node: &NodeKey,
            span: Span,
            order: Order,
            limit: ReadLimit,
            out: &mut Vec<HistoryValue>,
        ) -> Result<(), StoreError> {
            self.1.read(node, span, order, limit, out)
        }
    }

    #[test]
    fn a_store_that_hangs_does_not_keep_the_recorder_from_stopping() {
        let store = Arc::new(Hanging(Mutex::default(), MemoryStore::new(10)));
        let waiting = Arc::new(WaitingStore::new((Arc::clone(&store) as Arc<dyn HistoryStore>).into()));
        let space = Arc::new(AddressSpace::with_recorder(1, 16, 16, "urn:test"));
        let thread = RecorderThread::start(&space, &waiting).unwrap().unwrap();
        let locked = store.0.lock().unwrap();
        let source = UtcTime::from_ticks(1);
        let value = HistoryValue { source, server: source, status: StatusCode::GOOD, value: 1.0.into() };
        waiting.queue([("a".into(), value)].into_iter(), || ());
        thread.stop(Duration::from_millis(10));
        assert_eq!(waiting.counters().lost_at_stop(), 1);
        // What is stored nevertheless is not lost.
        drop(locked);
        thread.stop(Duration::from_secs(60));
        assert_eq!((waiting.counters().lost_at_stop(), waiting.counters().recorded()), (0, 1));
    }

    #[test]
    fn values_are_fetched_before_overwriting_but_not_more_often() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut now = start;
        // All of 1 000 variables are written every 100 ms.
        let mut longest = Duration::ZERO;
        for at in 0..10_000 {
            let before = now.duration_since(start).as_millis() / 100;
            now += pace.every;
            let writes = usize::try_from(now.duration_since(start).as_millis() / 100 - before).unwrap();
            pace.note(writes * 1_000, writes.saturating_sub(1) * 1_000, now);
            longest = longest.max(if at < 10 { Duration::ZERO } else { pace.every });
        }
        assert!((TAKE_EVERY_MIN..Duration::from_millis(160)).contains(&longest), "{longest:?}");
        // No more writes.
        for _ in 0..10_000 {
            now += pace.every;
            pace.note(0, 0, now);
        }
        assert_eq!(pace.every, STORE_EVERY);
    }
}
