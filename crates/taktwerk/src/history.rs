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

/// Values on their way to the recorder's thread; beyond, values are lost and marked.
pub(crate) const QUEUE_LEN: usize = 1 << 17;
/// How often values are stored: what a crash can lose.
const STORE_EVERY: Duration = Duration::from_millis(500);
/// How often values are taken from the variables, at most: a value that is overwritten before that costs its writer more.
const TAKE_EVERY_MIN: Duration = Duration::from_millis(20);
/// How long hardly any value is overwritten before values are taken less often.
const CALM: Duration = Duration::from_secs(10);
/// How often the stores delete what is too old.
const MAINTAIN_EVERY: Duration = Duration::from_secs(600);
/// Values that wait for a store that fails; beyond, the oldest are dropped and the gap is marked. They take about 150
/// bytes each.
const WAITING_MAX: usize = 2_000_000;
/// Bytes of their texts and arrays.
const WAITING_BYTES_MAX: usize = 256 << 20;
/// How long a store that failed is left alone, at most.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Events that wait for a store that fails; beyond, the oldest are dropped.
const EVENTS_WAITING_MAX: usize = 100_000;

/// What the recorder has done.
#[derive(Debug, Default)]
pub struct RecorderCounters {
    recorded: AtomicU64,
    events: AtomicU64,
    lost: AtomicU64,
    failures: AtomicU64,
    waiting: AtomicU64,
}

impl RecorderCounters {
    /// Values that are stored.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Events that are stored.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Values that were dropped, because they came too fast or a store failed for too long. The history says Bad_DataLost
    /// where they are missing.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Batches that a store could not take.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Values that wait to be stored.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// What the thread is told.
#[derive(Debug, Default)]
struct Bell {
    state: Mutex<(bool, bool)>,
    rung: Condvar,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, (bool, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is rung or the time is over; says whether to stop.
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

/// The thread that stores what is recorded.
#[derive(Debug)]
pub(crate) struct RecorderThread {
    bell: Arc<Bell>,
    counters: Arc<RecorderCounters>,
    thread: Option<JoinHandle<()>>,
}

impl RecorderThread {
    /// Starts it, if the space has a recorder.
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
            // A panic of the thread was told already.
            let _ = thread.join();
        }
    }
}

/// Values for one store.
struct Batch {
    store: Arc<dyn HistoryStore>,
    values: Vec<(NodeKey, HistoryValue)>,
    /// What the values own.
    bytes: usize,
    /// How long a failed store is left alone, and until when.
    backoff: Duration,
    not_before: Option<Instant>,
    is_failing: bool,
}

/// Events on their way to their store.
struct EventBatch {
    history: Arc<NodeHistory>,
    events: Vec<StoredEvent>,
    is_failing: bool,
}

impl EventBatch {
    fn new(history: Arc<NodeHistory>) -> Self {
        Self { history, events: Vec::new(), is_failing: false }
    }

    /// Stores all of them, or keeps them for the next time.
    fn flush(&mut self, counters: &RecorderCounters) {
        if self.events.is_empty() {
            return;
        }
        match self.history.store.append_events(&self.history.key, &self.events) {
            Ok(()) => {
                counters.events.fetch_add(self.events.len() as u64, Ordering::Relaxed);
                self.events.clear();
                if core::mem::take(&mut self.is_failing) {
                    tracing::info!("history: events are stored again");
                }
            }
            Err(error) => {
                counters.failures.fetch_add(1, Ordering::Relaxed);
                if !core::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(%error, "history: events wait until they can be stored");
                }
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

/// How often values are taken: so often that few of them are overwritten before, and no more, because each time wakes the
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

    /// So many values have been taken, of which some had been overwritten.
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
}

/// The thread asks every tenth of a millisecond or so whether somebody else wants to run, as the stores do, and has a low
/// [`Priority`]: those that answer clients would wait for a whole time slice of it otherwise when they share its processor.
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
                for store in self.stores() {
                    if let Err(error) = store.maintain(taktwerk_net::clock::wall()) {
                        tracing::warn!(%error, "history: old values stay");
                    }
                }
            }
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
                "history: the server ends and these values are not stored"
            );
            self.counters.lost.fetch_add(batch.values.len() as u64, Ordering::Relaxed);
        }
        for store in self.stores() {
            if let Err(error) = store.finish() {
                tracing::error!(%error, "history: the store does not end in order");
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
            is_failing: false,
        }
    }

    fn push(&mut self, node: NodeKey, value: HistoryValue) {
        self.bytes += value.heap_size();
        self.values.push((node, value));
    }

    /// Stores everything, unless the store has failed a moment ago.
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
                if core::mem::take(&mut self.is_failing) {
                    tracing::info!("history: values are stored again");
                }
                (self.backoff, self.not_before) = (Duration::ZERO, None);
            }
            Err(error) => {
                counters.failures.fetch_add(1, Ordering::Relaxed);
                if !core::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(%error, "history: values wait until they can be stored");
                }
                self.backoff = (self.backoff * 2).clamp(STORE_EVERY, BACKOFF_MAX);
                self.not_before = Some(Instant::now() + self.backoff);
                self.bound(counters);
            }
        }
    }

    /// Drops the oldest values if there are too many, and says so in the histories of their variables.
    fn bound(&mut self, counters: &RecorderCounters) {
        if self.values.len() <= WAITING_MAX && self.bytes <= WAITING_BYTES_MAX {
            return;
        }
        // About half of them at once: what is left is moved.
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

    /// A store that fails.
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
    fn values_that_wait_for_a_store_that_fails_have_a_limit_of_bytes() {
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
    fn values_are_taken_before_they_are_overwritten_and_no_more_often() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut now = start;
        // Every 100 ms all of 1 000 variables are written.
        let mut longest = Duration::ZERO;
        for at in 0..10_000 {
            let before = now.duration_since(start).as_millis() / 100;
            now += pace.every;
            let writes = usize::try_from(now.duration_since(start).as_millis() / 100 - before).unwrap();
            pace.note(writes * 1_000, writes.saturating_sub(1) * 1_000, now);
            longest = longest.max(if at < 10 { Duration::ZERO } else { pace.every });
        }
        assert!((TAKE_EVERY_MIN..Duration::from_millis(160)).contains(&longest), "{longest:?}");
        // Nothing is written any more.
        for _ in 0..10_000 {
            now += pace.every;
            pace.note(0, 0, now);
        }
        assert_eq!(pace.every, STORE_EVERY);
    }
}
