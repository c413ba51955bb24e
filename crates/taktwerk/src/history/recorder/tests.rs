//! A recorder whose store hangs or fails.

use super::super::{MemoryStore, NodeKey, Order, ReadLimit, Span, StoreError};
use super::*;
use core::sync::atomic::AtomicU32;
use std::sync::Mutex;
use taktwerk_schema::ids::object_ids;
use taktwerk_server::AddressSpace;
use taktwerk_server::history::Rule;
use taktwerk_types::{NodeId, StatusCode, UtcTime};

/// The number of failures of a store that panics.
const PANIC: u32 = u32::MAX;

/// A store that never answers while it is locked, and fails some times.
#[derive(Debug)]
struct Hanging {
    lock: Mutex<()>,
    failures: AtomicU32,
    memory: MemoryStore,
}

impl Hanging {
    fn fail(&self) -> Result<(), StoreError> {
        assert_ne!(self.failures.load(Ordering::Relaxed), PANIC, "a faulty store");
        let less = |left: u32| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Err(StoreError::unavailable("the file is locked")),
            Err(_) => Ok(()),
        }
    }
}

impl HistoryStore for Hanging {
    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        let _unlocked = self.lock.lock();
        self.fail()?;
        self.memory.append(values)
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        self.memory.read(node, span, order, limit, out)
    }

    fn finish(&self) -> Result<(), StoreError> {
        let _unlocked = self.lock.lock();
        self.fail()
    }
}

/// A recorder with a ring of `ring` values, and its store.
fn recorder(ring: usize) -> (Arc<AddressSpace>, Arc<Hanging>, Arc<WaitingStore>, RecorderThread) {
    let memory = MemoryStore::new(100_000);
    let store = Arc::new(Hanging { lock: Mutex::default(), failures: AtomicU32::new(0), memory });
    let waiting = Arc::new(WaitingStore::new((Arc::clone(&store) as Arc<dyn HistoryStore>).into()));
    let space = Arc::new(AddressSpace::with_recorder(1, 16, ring, "urn:test"));
    space.set_history_store(Arc::clone(&waiting) as Arc<dyn HistoryStore>);
    let thread = RecorderThread::start(&space, &waiting).unwrap().unwrap();
    (space, store, waiting, thread)
}

fn good(time: i64) -> HistoryValue {
    let source = UtcTime::from_ticks(time);
    HistoryValue { source, server: source, status: StatusCode::GOOD, value: 1.0.into() }
}

#[test]
fn a_store_that_hangs_does_not_keep_the_recorder_from_stopping() {
    let (_space, store, waiting, thread) = recorder(16);
    let locked = store.lock.lock().unwrap();
    waiting.queue([("a".into(), good(1))].into_iter(), || ());
    thread.0.stop_within(Duration::from_millis(10));
    assert_eq!(waiting.counters().lost_at_stop(), 1);
    // What is stored nevertheless is not lost.
    drop(locked);
    assert!(thread.0.storing.stop(Duration::from_secs(60)));
    let counters = waiting.counters();
    assert_eq!(counters.lost_at_stop() + counters.recorded(), 1);
}

/// Its ring is short: beyond it, the newest values would be lost.
#[test]
fn values_are_taken_while_the_store_hangs() {
    const WRITES: u32 = 2_000;
    let (space, store, waiting, thread) = recorder(64);
    let parent = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
    let folder = crate::space::Node { space: Arc::clone(&space), id: parent, namespace: 1 };
    let variable = folder.variable("Level", 0.0).add().unwrap();
    space.historize(variable.id(), false, Rule::default(), UtcTime::from_ticks(1)).unwrap();
    let locked = store.lock.lock().unwrap();
    let counters = Arc::clone(waiting.counters());
    let end = Instant::now() + Duration::from_secs(60);
    for number in 1..=WRITES {
        variable.set_at(f64::from(number), UtcTime::from_ticks(i64::from(number) + 1_000));
        if number % 16 == 0 {
            thread.0.taking.bell().ring();
            let received = || counters.waiting() + counters.recorded() + counters.lost();
            while received() < u64::from(number) {
                assert!(Instant::now() < end, "{number} written, {counters:?}");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    assert_eq!(thread.0.unstored() + counters.recorded(), u64::from(WRITES) + 1);
    drop(locked);
    thread.0.stop_within(Duration::from_secs(60));
    assert_eq!((counters.recorded(), counters.lost()), (u64::from(WRITES) + 1, 0));
}

/// Another program may have locked the file for a few seconds.
#[test]
fn a_stopping_recorder_tries_again_until_everything_is_stored() {
    let (_space, store, waiting, thread) = recorder(16);
    store.failures.store(3, Ordering::Relaxed);
    waiting.queue([("a".into(), good(1))].into_iter(), || ());
    thread.0.stop_within(Duration::from_secs(60));
    assert_eq!((waiting.counters().recorded(), waiting.counters().lost()), (1, 0));
    assert_eq!(store.failures.load(Ordering::Relaxed), 0);
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

/// Stores are code of the application.
#[test]
fn what_waits_for_a_store_that_has_panicked_is_counted_as_lost() {
    let (_space, store, waiting, thread) = recorder(16);
    store.failures.store(PANIC, Ordering::Relaxed);
    waiting.queue([("a".into(), good(1))].into_iter(), || ());
    assert!(thread.0.storing.stop(Duration::from_secs(60)));
    waiting.queue([("a".into(), good(2))].into_iter(), || ());
    thread.0.stop_within(Duration::from_secs(60));
    assert_eq!((waiting.counters().recorded(), waiting.counters().lost_at_stop()), (0, 2));
}
