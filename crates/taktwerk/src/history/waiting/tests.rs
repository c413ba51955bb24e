//! What clients read while a store fails.

use super::super::{MemoryStore, NodeHistory};
use super::*;
use core::sync::atomic::AtomicBool;

/// A store in memory that can fail.
#[derive(Debug)]
struct Failing {
    memory: MemoryStore,
    writes_fail: AtomicBool,
    reads_fail: AtomicBool,
}

impl Failing {
    fn check(is_failing: &AtomicBool) -> Result<(), StoreError> {
        if is_failing.load(Relaxed) { Err(StoreError::unavailable("the disk is full")) } else { Ok(()) }
    }
}

impl HistoryStore for Failing {
    fn capabilities(&self) -> StoreCapabilities {
        self.memory.capabilities()
    }

    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        Self::check(&self.writes_fail)?;
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
        Self::check(&self.reads_fail)?;
        self.memory.read(node, span, order, limit, out)
    }

    fn delete(&self, node: &NodeKey, span: Span, by: &Modification) -> Result<u64, StoreError> {
        Self::check(&self.writes_fail)?;
        self.memory.delete(node, span, by)
    }

    fn append_events(&self, node: &NodeKey, events: &[StoredEvent]) -> Result<(), StoreError> {
        Self::check(&self.writes_fail)?;
        self.memory.append_events(node, events)
    }

    fn read_events(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<EventCursor>,
        limit: ReadLimit,
        out: &mut Vec<(EventCursor, StoredEvent)>,
    ) -> Result<(), StoreError> {
        Self::check(&self.reads_fail)?;
        self.memory.read_events(node, span, order, after, limit, out)
    }
}

fn failing() -> (Arc<Failing>, WaitingStore) {
    let store = Arc::new(Failing {
        memory: MemoryStore::new(1_000),
        writes_fail: AtomicBool::new(false),
        reads_fail: AtomicBool::new(false),
    });
    let waiting = WaitingStore::new((Arc::clone(&store) as Arc<dyn HistoryStore>).into());
    (store, waiting)
}

fn value(time: i64, value: impl Into<Variant>) -> HistoryValue {
    let source = UtcTime::from_ticks(time);
    HistoryValue { source, server: source, status: StatusCode::GOOD, value: value.into() }
}

fn record(store: &WaitingStore, node: &str, values: impl IntoIterator<Item = (i64, f64)>) {
    let key: NodeKey = node.into();
    store.queue(values.into_iter().map(|(time, number)| (NodeKey::clone(&key), value(time, number))), || ());
    store.flush(true);
}

fn read(store: &WaitingStore, node: &str, order: Order, limit: usize) -> Vec<(i64, Option<f64>)> {
    let mut out = Vec::new();
    store.read(&node.into(), Span::ALL, order, ReadLimit::count(limit), &mut out).unwrap();
    out.iter().map(|value| (value.source.ticks(), value.value.as_f64())).collect()
}

#[test]
fn reads_include_what_waits_for_a_failing_store() {
    let (store, waiting) = failing();
    record(&waiting, "a", [(1, 1.0), (4, 4.0)]);
    store.writes_fail.store(true, Relaxed);
    record(&waiting, "a", [(5, 5.0), (2, 2.0), (4, 40.0)]);
    record(&waiting, "b", [(3, 3.0)]);
    let all = [(1, Some(1.0)), (2, Some(2.0)), (4, Some(40.0)), (5, Some(5.0))];
    assert_eq!(read(&waiting, "a", Order::Forward, 10), all);
    assert_eq!(read(&waiting, "a", Order::Forward, 2), all[..2]);
    assert_eq!(read(&waiting, "a", Order::Backward, 2), [all[3], all[2]]);
    assert_eq!(read(&waiting, "b", Order::Forward, 10), [(3, Some(3.0))]);
    assert_eq!((waiting.counters().waiting(), waiting.counters().recorded()), (4, 2));
    assert_eq!(waiting.counters().problem().as_deref(), Some("the disk is full"));
    store.writes_fail.store(false, Relaxed);
    record(&waiting, "a", [(6, 6.0)]);
    assert_eq!(read(&waiting, "a", Order::Forward, 4), all);
    assert_eq!(waiting.counters().waiting(), 0);
    assert_eq!(waiting.counters().problem(), None);
}

/// The queue can have hundreds of megabytes, and several clients can read it.
#[test]
fn a_read_copies_no_more_of_the_queue_than_it_may_return() {
    let (mut queue, mut index) = (Queue::default(), Index::default());
    for time in 0..1_000 {
        queue.push(("a".into(), value(time, "x".repeat(1_000))), Instant::now());
    }
    queue.push(("a".into(), value(3, "last")), Instant::now());
    let mut times = |order, limit| -> Vec<i64> {
        let found = index.find(&queue, &"a".into(), Span::ALL, order, limit);
        assert!(found.iter().all(|value| value.source.ticks() != 3 || value.value == "last".into()));
        found.iter().map(|value| value.source.ticks()).collect()
    };
    assert_eq!(times(Order::Forward, ReadLimit::count(5)), [0, 1, 2, 3, 4]);
    assert_eq!(times(Order::Backward, ReadLimit::count(2)), [999, 998]);
    let few = times(Order::Forward, ReadLimit { count: usize::MAX, bytes: 5_000 });
    assert!((4..=6).contains(&few.len()), "{few:?}");
    assert_eq!(times(Order::Forward, ReadLimit::NONE).len(), 1_000);
}

/// A crash must not take back what clients have read.
#[test]
fn values_that_will_be_stored_soon_are_not_read_yet() {
    let (_, waiting) = failing();
    waiting.queue([("a".into(), value(1, 1.0))].into_iter(), || ());
    assert_eq!(read(&waiting, "a", Order::Forward, 10), []);
}

#[test]
fn a_store_that_cannot_be_read_is_an_error_and_not_empty() {
    let (store, waiting) = failing();
    store.writes_fail.store(true, Relaxed);
    store.reads_fail.store(true, Relaxed);
    record(&waiting, "a", [(1, 1.0)]);
    let read = waiting.read(&"a".into(), Span::ALL, Order::Forward, ReadLimit::NONE, &mut Vec::new());
    assert_eq!(read.unwrap_err().status_of_read(), StatusCode::BAD_DATA_UNAVAILABLE);
}

/// Reads show the queued value, so a client may expect that it is deleted.
#[test]
fn clients_do_not_change_a_history_before_what_they_read_is_stored() {
    let (store, waiting) = failing();
    store.writes_fail.store(true, Relaxed);
    record(&waiting, "a", [(1, 1.0)]);
    let kind = taktwerk_schema::HistoryUpdateType::DELETE;
    let by = Modification { time: UtcTime::from_ticks(9), kind, user: "olaf".into() };
    assert!(waiting.delete(&"a".into(), Span::ALL, &by).is_err());
    store.writes_fail.store(false, Relaxed);
    assert_eq!(waiting.delete(&"a".into(), Span::ALL, &by).unwrap(), 1);
    waiting.flush(true);
    assert_eq!(read(&waiting, "a", Order::Forward, 10), []);
}

#[test]
fn event_reads_include_what_waits_and_continue_when_it_is_stored() {
    let (store, waiting) = failing();
    let server: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new(1));
    let node = Arc::new(NodeHistory::new(server, "i=2253".into()));
    let event = |time: i64, id: u8| {
        let field = |name: &str, value| (vec![taktwerk_types::QualifiedName::new(0, name)], value);
        let time = Variant::DateTime(UtcTime::from_ticks(time));
        let id = Variant::ByteString(vec![id].into());
        StoredEvent { condition: None, fields: vec![field("Time", time), field("EventId", id)] }
    };
    let raise = |events: Vec<StoredEvent>| {
        waiting.queue_events(Arc::clone(&node), events);
        waiting.flush(true);
    };
    let read = |order, after, limit| -> Vec<(EventCursor, u8)> {
        let mut out = Vec::new();
        let limit = ReadLimit::count(limit);
        waiting.read_events(&node.key, Span::ALL, order, after, limit, &mut out).unwrap();
        let id = |event: &StoredEvent| event.event_id().as_bytes()[0];
        out.iter().map(|(cursor, event)| (*cursor, id(event))).collect()
    };
    let ids = |found: &[(EventCursor, u8)]| found.iter().map(|(_, id)| *id).collect::<Vec<_>>();
    raise(vec![event(1, 1), event(3, 2)]);
    store.writes_fail.store(true, Relaxed);
    raise(vec![event(2, 3), event(3, 4)]);
    assert_eq!(ids(&read(Order::Forward, None, 10)), [1, 3, 2, 4]);
    assert_eq!(ids(&read(Order::Backward, None, 10)), [4, 2, 3, 1]);
    let page = read(Order::Forward, None, 2);
    assert_eq!(ids(&page), [1, 3]);
    let after = Some(page[1].0);
    assert_eq!(ids(&read(Order::Forward, after, 10)), [2, 4]);
    store.writes_fail.store(false, Relaxed);
    waiting.flush(true);
    // The last event of the page is returned again, because it has another number now.
    assert_eq!(ids(&read(Order::Forward, after, 10)), [3, 2, 4]);
}

#[test]
fn values_queued_for_a_failing_store_are_limited_in_bytes() {
    let (store, waiting) = failing();
    store.writes_fail.store(true, Relaxed);
    let large = Variant::from("x".repeat(1 << 20));
    for at in 1..=600 {
        waiting.queue([("large".into(), value(at, large.clone()))].into_iter(), || ());
        waiting.flush(true);
        assert!(waiting.counters().waiting_bytes() <= BYTES_MAX as u64 + (1 << 16));
    }
    assert!(waiting.counters().lost_full() >= 600 - 256 && waiting.counters().waiting() > 100);
    let mut found = Vec::new();
    waiting.read(&"large".into(), Span::ALL, Order::Forward, ReadLimit::count(1), &mut found).unwrap();
    assert_eq!(found[0].status, StatusCode::BAD_DATA_LOST, "the gap is marked");
}

#[test]
fn a_store_that_is_unavailable_at_the_start_is_opened_later() {
    let is_there = Arc::new(AtomicBool::new(false));
    let memory: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new(10));
    let open = {
        let (is_there, memory) = (Arc::clone(&is_there), Arc::clone(&memory));
        move || {
            if is_there.load(Relaxed) {
                Ok(Arc::clone(&memory))
            } else {
                Err(StoreError::unavailable("full"))
            }
        }
    };
    let opener = HistoryOpener::open_every("memory", memory.capabilities(), Duration::ZERO, open).unwrap();
    let waiting = WaitingStore::new(opener);
    record(&waiting, "a", [(1, 1.0)]);
    assert_eq!(waiting.counters().problem().as_deref(), Some("full"));
    let read_all = |out: &mut _| waiting.read(&"a".into(), Span::ALL, Order::Forward, ReadLimit::NONE, out);
    assert_eq!(read_all(&mut Vec::new()).unwrap_err().status_of_read(), StatusCode::BAD_DATA_UNAVAILABLE);
    is_there.store(true, Relaxed);
    waiting.flush(true);
    assert_eq!(read(&waiting, "a", Order::Forward, 10), [(1, Some(1.0))]);
    assert_eq!(waiting.counters().problem(), None);
    let mistake = || Err(StoreError::mistake("another program's file"));
    assert!(HistoryOpener::open("memory", memory.capabilities(), mistake).unwrap_err().is_mistake());
}
