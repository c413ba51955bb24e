//! History: stores, and what is recorded of variables.
//!
//! ```
//! use std::sync::Arc;
//! use taktwerk::Server;
//! use taktwerk::history::{MemoryStore, Rule};
//!
//! let server = Server::builder()
//!     .bind("127.0.0.1:0")
//!     .anonymous()
//!     .history(Arc::new(MemoryStore::new(100_000)))
//!     .build()?;
//! let boiler = server.namespace("urn:example:boilers").object("Boiler 1").add()?;
//! let temperature = boiler.variable("Temperature", 21.5).historize().add()?;
//! let pressure = boiler
//!     .variable("Pressure", 1.0)
//!     .historize_with(Rule { deadband: 0.1, ..Rule::default() })
//!     .add()?;
//! # let _ = (temperature, pressure);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate `taktwerk-history` has stores in files and databases.

pub use taktwerk_server::history::aggregate::{self, Aggregate};
pub use taktwerk_server::history::{
    EventCursor, HistoryStore, HistoryValue, MemoryStore, Modification, ModifiedValue, NodeHistory, NodeKey,
    Order, Perform, ReadLimit, Rule, Span, StoreError, StoredEvent,
};

mod priority;

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use priority::Priority;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use taktwerk_server::AddressSpace;
use taktwerk_server::account::HeapSize;
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
/// Most values queued for a failing store; beyond, the oldest are dropped and the gap is marked. A value takes about 150 bytes.
const WAITING_MAX: usize = 2_000_000;
/// Most bytes of texts and arrays in that queue.
const WAITING_BYTES_MAX: usize = 256 << 20;
/// Longest pause before a failed store is retried.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Most events queued for a failing store; beyond, the oldest are dropped.
const EVENTS_WAITING_MAX: usize = 100_000;

/// Counters of the recorder.
#[derive(Debug, Default)]
pub struct RecorderCounters {
    recorded: AtomicU64,
    events: AtomicU64,
    lost: AtomicU64,
    failures: AtomicU64,
    waiting: AtomicU64,
}

impl RecorderCounters {
    /// Stored values.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Stored events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Dropped values: they arrived too fast, or a store failed for too long. The history has Bad_DataLost in their place.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Failed writes to a store.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Values queued to be stored.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }
}

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
    counters: Arc<RecorderCounters>,
    thread: Option<JoinHandle<()>>,
}

impl RecorderThread {
    /// Starts the thread, if the address space has a recorder.
    pub(crate) fn start(space: &Arc<AddressSpace>) -> std::io::Result<Option<Self>> {
        let Some(recorder) = Recorder::new(space) else { return Ok(None) };
        let (bell, counters) = (Arc::new(Bell::default()), Arc::new(RecorderCounters::default()));
        space.set_recorder_waker(Box::new(Ring(Arc::clone(&bell))));
        let mut loop_ = Loop {
            recorder,
            counters: Arc::clone(&counters),
            batches: Vec::new(),
            events: None,
            store: space.history_store().map(Arc::clone),
            lost_in_queue: 0,
            maintenance: None,
        };
        let told = Arc::clone(&bell);
        let thread =
            thread::Builder::new().name("taktwerk-record".to_owned()).spawn(move || loop_.run(&told))?;
        Ok(Some(Self { bell, counters, thread: Some(thread) }))
    }

    pub(crate) fn counters(&self) -> &Arc<RecorderCounters> {
        &self.counters
    }
}

impl Drop for RecorderThread {
    fn drop(&mut self) {
        self.bell.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

/// A store that fails: each reason is logged once, and the end. The log prints all of these lines, because they name the only
/// signs of an outage (`taktwerk::outage`, see the command's limit of repeated warnings).
#[derive(Debug, Default)]
struct Outage {
    reason: Option<String>,
}

impl Outage {
    fn note(&mut self, what: &str, error: &StoreError) {
        let reason = error.to_string();
        if self.reason.as_ref() != Some(&reason) {
            tracing::error!(target: "taktwerk::outage", error = reason, "history: cannot store {what}; retrying");
            self.reason = Some(reason);
        }
    }

    fn end(&mut self, what: &str) {
        if self.reason.take().is_some() {
            tracing::warn!(target: "taktwerk::outage", "history: {what} are stored again");
        }
    }
}

/// Values for one store.
struct Batch {
    store: Arc<dyn HistoryStore>,
    values: Vec<(NodeKey, HistoryValue)>,
    /// Bytes of the values' texts and arrays.
    bytes: usize,
    /// The pause after a failure, and its end.
    backoff: Duration,
    not_before: Option<Instant>,
    outage: Outage,
}

/// Events queued for their store.
struct EventBatch {
    history: Arc<NodeHistory>,
    events: Vec<StoredEvent>,
    outage: Outage,
}

impl EventBatch {
    fn new(history: Arc<NodeHistory>) -> Self {
        Self { history, events: Vec::new(), outage: Outage::default() }
    }

    /// Stores all events, or keeps them for the next attempt.
    fn flush(&mut self, counters: &RecorderCounters) {
        if self.events.is_empty() {
            return;
        }
        match self.history.store.append_events(&self.history.key, &self.events) {
            Ok(()) => {
                counters.events.fetch_add(self.events.len() as u64, Ordering::Relaxed);
                self.events.clear();
                self.outage.end("events");
            }
            Err(error) => {
                counters.failures.fetch_add(1, Ordering::Relaxed);
                self.outage.note("events", &error);
                let excess = self.events.len().saturating_sub(EVENTS_WAITING_MAX);
                if excess > 0 {
                    counters.lost.fetch_add(excess as u64, Ordering::Relaxed);
                    tracing::error!(
                        events = excess,
                        "history: the store has failed for too long; events are lost"
                    );
                    self.events.drain(..excess);
                }
            }
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

struct Loop {
    recorder: Recorder,
    counters: Arc<RecorderCounters>,
    batches: Vec<Batch>,
    events: Option<EventBatch>,
    store: Option<Arc<dyn HistoryStore>>,
    lost_in_queue: u64,
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
            self.counters.lost.fetch_add(self.recorder.lost() - self.lost_in_queue, Ordering::Relaxed);
            self.lost_in_queue = self.recorder.lost();
            for (at, recorded) in taken.drain(..).enumerate() {
                if at % 1_024 == 0 {
                    thread::yield_now();
                }
                self.sort(recorded);
            }
            if let Some((history, events)) = self.recorder.take_events(taktwerk_net::clock::wall()) {
                let batch = self.events.get_or_insert_with(|| EventBatch::new(history));
                batch.events.extend(events);
            }
            if stop || stored.elapsed() >= STORE_EVERY {
                stored = Instant::now();
                for batch in &mut self.batches {
                    batch.flush(&self.counters, stop);
                }
                if let Some(events) = &mut self.events {
                    events.flush(&self.counters);
                }
            }
            let waiting: usize = self.batches.iter().map(|batch| batch.values.len()).sum();
            self.counters.waiting.store(waiting as u64, Ordering::Relaxed);
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
        let stores = self.stores();
        let delete = move || {
            for store in stores {
                if let Err(error) = store.maintain(taktwerk_net::clock::wall()) {
                    tracing::warn!(%error, "history: cannot delete expired values");
                }
            }
        };
        match thread::Builder::new().name("taktwerk-expire".to_owned()).spawn(delete) {
            Ok(thread) => self.maintenance = Some(thread),
            Err(error) => tracing::warn!(%error, "history: cannot delete expired values"),
        }
    }

    fn stores(&self) -> Vec<Arc<dyn HistoryStore>> {
        let others = self.batches.iter().map(|batch| Arc::clone(&batch.store));
        let mut all: Vec<Arc<dyn HistoryStore>> = self.store.iter().map(Arc::clone).chain(others).collect();
        all.dedup_by(|one, other| Arc::ptr_eq(one, other));
        all
    }

    fn sort(&mut self, recorded: Recorded) {
        let Recorded { store, node, value } = recorded;
        let known = self.batches.iter().position(|batch| Arc::ptr_eq(&batch.store, &store));
        let index = known.unwrap_or_else(|| {
            self.batches.push(Batch::new(store));
            self.batches.len() - 1
        });
        if let Some(batch) = self.batches.get_mut(index) {
            batch.push(node, value);
        }
    }

    fn finish(&self) {
        for batch in self.batches.iter().filter(|batch| !batch.values.is_empty()) {
            tracing::error!(
                values = batch.values.len(),
                "history: the server stops and these values are lost"
            );
            self.counters.lost.fetch_add(batch.values.len() as u64, Ordering::Relaxed);
        }
        for store in self.stores() {
            if let Err(error) = store.finish() {
                tracing::error!(%error, "history: the store cannot be closed properly");
            }
        }
    }
}

impl Batch {
    fn new(store: Arc<dyn HistoryStore>) -> Self {
        Self {
            store,
            values: Vec::new(),
            bytes: 0,
            backoff: Duration::ZERO,
            not_before: None,
            outage: Outage::default(),
        }
    }

    fn push(&mut self, node: NodeKey, value: HistoryValue) {
        self.bytes += value.heap_size();
        self.values.push((node, value));
    }

    /// Stores all values. After a recent failure it waits, unless `at_once`.
    fn flush(&mut self, counters: &RecorderCounters, at_once: bool) {
        let waits = self.not_before.is_some_and(|until| Instant::now() < until);
        if self.values.is_empty() || (waits && !at_once) {
            return self.bound(counters);
        }
        match self.store.append(&self.values) {
            Ok(()) => {
                counters.recorded.fetch_add(self.values.len() as u64, Ordering::Relaxed);
                self.values.clear();
                self.bytes = 0;
                self.outage.end("values");
                (self.backoff, self.not_before) = (Duration::ZERO, None);
            }
            Err(error) => {
                counters.failures.fetch_add(1, Ordering::Relaxed);
                self.outage.note("values", &error);
                self.backoff = (self.backoff * 2).clamp(STORE_EVERY, BACKOFF_MAX);
                self.not_before = Some(Instant::now() + self.backoff);
                self.bound(counters);
            }
        }
    }

    /// Drops the oldest values if there are too many, and marks the gap in the histories of their variables.
    fn bound(&mut self, counters: &RecorderCounters) {
        if self.values.len() <= WAITING_MAX && self.bytes <= WAITING_BYTES_MAX {
            return;
        }
        // Drop about half of them at once, because the rest is moved.
        let (mut count, mut left) = (0, self.bytes);
        for (_, value) in &self.values {
            if self.values.len() - count <= WAITING_MAX / 2 && left <= WAITING_BYTES_MAX / 2 {
                break;
            }
            count += 1;
            left -= value.heap_size();
        }
        self.bytes = left;
        let dropped: Vec<(NodeKey, HistoryValue)> = self.values.drain(..count).collect();
        counters.lost.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        tracing::error!(
            values = dropped.len(),
            "history: the store has failed for too long; values are lost"
        );
        let mut marked = std::collections::BTreeSet::new();
        let mut marks = Vec::new();
        for (node, value) in dropped {
            if marked.insert(NodeKey::clone(&node)) {
                let status = taktwerk_types::StatusCode::BAD_DATA_LOST;
                marks.push((node, HistoryValue { status, value: taktwerk_types::Variant::Empty, ..value }));
            }
        }
        marks.append(&mut self.values);
        self.values = marks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{StatusCode, UtcTime, Variant};

    /// A store that always fails.
    #[derive(Debug)]
    struct Full;

    impl HistoryStore for Full {
        fn append(&self, _: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
            Err(StoreError::unavailable("the disk is full"))
        }

        fn read(
            &self,
            _: &NodeKey,
            _: Span,
            _: Order,
            _: ReadLimit,
            _: &mut Vec<HistoryValue>,
        ) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[test]
    fn values_queued_for_a_failing_store_are_limited_in_bytes() {
        let (mut batch, counters) = (Batch::new(Arc::new(Full)), RecorderCounters::default());
        let key: NodeKey = "large".into();
        let large = Variant::from("x".repeat(1 << 20));
        for at in 1..=600 {
            let source = UtcTime::from_ticks(at);
            let value =
                HistoryValue { source, server: source, status: StatusCode::GOOD, value: large.clone() };
            batch.push(NodeKey::clone(&key), value);
            batch.flush(&counters, true);
            let held: usize = batch.values.iter().map(|(_, value)| value.heap_size()).sum();
            assert_eq!(held, batch.bytes);
            assert!(held <= WAITING_BYTES_MAX, "{held}");
        }
        assert!(counters.lost() >= 600 - 256 && batch.values.len() > 100);
        let first = batch.values.first().map(|(_, value)| value.status);
        assert_eq!(first, Some(StatusCode::BAD_DATA_LOST), "the gap is marked");
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
