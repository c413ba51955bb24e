//! What clients read while a store fails.

use super::super::opener::Times;
use super::super::queue::BLOCK_LEN;
use super::super::{MemoryStore, NodeHistory};
use super::*;
use core::sync::atomic::{AtomicBool, AtomicU32};

const AT_ONCE: Times = Times { retry_every: Duration::ZERO, attempt_max: Duration::from_secs(60) };

/// A store in memory that can fail.
#[derive(Debug)]
struct Failing {
    memory: MemoryStore,
    writes_fail: AtomicBool,
    reads_fail: AtomicBool,
    meanwhile: Meanwhile,
    /// First and last time and number of the values of each append.
    appended: Mutex<Vec<(i64, i64, usize)>>,
}

/// What happens while it appends values or reads events.
#[derive(Default)]
struct Meanwhile(Mutex<Option<Box<dyn FnMut() + Send>>>);

impl core::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Meanwhile {
    fn set(&self, run: impl FnMut() + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(run));
    }

    fn happens(&self) {
        // Not locked while it runs: it may use the store.
        let mut run = self.0.lock().unwrap().take();
        run.iter_mut().for_each(|run| run());
        if run.is_some() {
            *self.0.lock().unwrap() = run;
        }
    }
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
        let time = |one: Option<&(NodeKey, HistoryValue)>| one.map_or(0, |(_, value)| value.source.ticks());
        self.appended.lock().unwrap().push((time(values.first()), time(values.last()), values.len()));
        self.meanwhile.happens();
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
        self.meanwhile.happens();
        self.memory.read_events(node, span, order, after, limit, out)
    }
}

fn failing() -> (Arc<Failing>, WaitingStore) {
    let store = Arc::new(Failing {
        memory: MemoryStore::new(1_000),
        writes_fail: AtomicBool::new(false),
        reads_fail: AtomicBool::new(false),
        meanwhile: Meanwhile::default(),
        appended: Mutex::default(),
    });
    let waiting = WaitingStore::new((Arc::clone(&store) as Arc<dyn HistoryStore>).into());
    (store, waiting)
}

fn value(time: i64, value: impl Into<Variant>) -> HistoryValue {
    let source = UtcTime::from_ticks(time);
    HistoryValue { source, server: source, status: StatusCode::GOOD, value: value.into() }
}

fn event(time: i64, id: u8) -> StoredEvent {
    let field = |name: &str, value| (vec![taktwerk_types::QualifiedName::new(0, name)], value);
    let time = Variant::DateTime(UtcTime::from_ticks(time));
    let id = Variant::ByteString(vec![id].into());
    StoredEvent { condition: None, fields: vec![field("Time", time), field("EventId", id)] }
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
    let values = (0..1_000).map(|time| value(time, "x".repeat(1_000))).chain([value(3, "last")]);
    queue.push(Block::cut(values.map(|value| ("a".into(), value)), || ()), Instant::now());
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

/// While a store answers, a server that stops knows what is left; and one call must not take minutes.
#[test]
fn what_waits_is_stored_in_parts_and_in_order_and_can_be_read_meanwhile() {
    const COUNT: i64 = 120_000;
    let (store, waiting) = failing();
    let waiting = Arc::new(waiting);
    store.writes_fail.store(true, Relaxed);
    record(&waiting, "a", (0..COUNT).map(|at| (at, at as f64)));
    record(&waiting, "b", [(COUNT, 7.0)]);
    assert_eq!(waiting.counters().waiting(), COUNT as u64 + 1);
    store.writes_fail.store(false, Relaxed);
    let found = Arc::<Mutex<Vec<_>>>::default();
    let (reader, noted) = (Arc::clone(&waiting), Arc::clone(&found));
    store.meanwhile.set(move || {
        let counts = (reader.counters().waiting(), reader.counters().recorded());
        noted.lock().unwrap().push((counts, read(&reader, "b", Order::Forward, 10)));
    });
    waiting.flush(true);
    let appended = store.appended.lock().unwrap();
    assert!(appended.iter().all(|(.., len)| *len <= BLOCK_LEN), "{appended:?}");
    assert!(appended.windows(2).all(|pair| pair[0].1 < pair[1].0), "{appended:?}");
    assert_eq!((waiting.counters().waiting(), waiting.counters().recorded()), (0, COUNT as u64 + 1));
    let found = found.lock().unwrap();
    assert_eq!(found.len(), 3);
    let mut stored = 0;
    for ((waits, recorded), values) in found.iter() {
        assert_eq!(values, &[(COUNT, Some(7.0))], "it is late until it is stored");
        assert_eq!((*recorded, waits + recorded), (stored, COUNT as u64 + 1));
        stored += BLOCK_LEN as u64;
    }
    store.meanwhile.set(|| ());
    assert_eq!(read(&waiting, "b", Order::Forward, 10), [(COUNT, Some(7.0))]);
}

/// The index of the queue outlives parts of it.
#[test]
fn waiting_values_are_found_whatever_has_been_stored_or_lost_before_them() {
    let (mut queue, mut index, mut model) = (Queue::default(), Index::default(), Vec::new());
    let (now, backoff) = (Instant::now(), (Duration::ZERO, Duration::ZERO));
    let mut random = 1u64;
    for step in 0..100 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match random >> 61 {
            0..4 => {
                let count = (random >> 33) % 40_000;
                let all =
                    (0..count as i64).map(|at| (["a", "b", "c"][at as usize % 3], step * 1_000_000 + at));
                model.extend(all.clone());
                let all = all.map(|(node, time)| (node.into(), value(time, 1.0)));
                queue.push(Block::cut(all, || ()), now);
            }
            4 if !model.is_empty() => {
                let given = queue.give(now, true).unwrap();
                assert!(given.len() <= BLOCK_LEN);
                queue.failed(given, now, backoff);
            }
            5 => {
                let removed = queue.shrink(300_000, usize::MAX, now);
                model.drain(..removed.len());
                // Only some are marked.
                let marks: Vec<_> = removed.into_iter().take(2).collect();
                if !marks.is_empty() {
                    let times = marks.iter().map(|(node, value)| (known(node), value.source.ticks()));
                    model.splice(..0, times.collect::<Vec<_>>());
                    queue.put_first(marks);
                    index.clear();
                }
            }
            _ if !model.is_empty() => {
                let given = queue.give(now, true).unwrap();
                model.drain(..given.len());
                queue.stored(&given);
            }
            _ => {}
        }
        assert_eq!(queue.len(), model.len());
        for node in ["a", "b", "c"] {
            let found = index.find(&queue, &node.into(), Span::ALL, Order::Forward, ReadLimit::count(100));
            let expected = model.iter().filter(|(of, _)| *of == node).map(|(_, time)| *time).take(100);
            assert!(found.iter().map(|value| value.source.ticks()).eq(expected), "step {step}, {node}");
        }
    }
}

fn known(node: &NodeKey) -> &'static str {
    ["a", "b", "c"].into_iter().find(|name| **name == **node).unwrap()
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

/// An event is stored between the look at the queue and the read of the store.
#[test]
fn events_of_the_same_time_are_not_skipped_if_they_are_stored_during_a_read() {
    for order in [Order::Forward, Order::Backward] {
        let (store, waiting) = failing();
        let waiting = Arc::new(waiting);
        let server: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new(1));
        let node = Arc::new(NodeHistory::new(server, "i=2253".into()));
        store.writes_fail.store(true, Relaxed);
        waiting.queue_events(Arc::clone(&node), vec![event(5, 1), event(5, 2), event(5, 3)]);
        waiting.flush(true);
        let read = |after, limit| {
            let mut out = Vec::new();
            waiting
                .read_events(&node.key, Span::ALL, order, after, ReadLimit::count(limit), &mut out)
                .unwrap();
            out
        };
        let first = read(None, 1);
        let (writer, flushes) = (Arc::clone(&waiting), Arc::clone(&store));
        store.meanwhile.set(move || {
            flushes.writes_fail.store(false, Relaxed);
            writer.flush(true);
        });
        let rest = read(Some(first[0].0), 10);
        let id = |event: &StoredEvent| event.event_id().as_bytes()[0];
        let mut ids: Vec<u8> = first.iter().chain(&rest).map(|(_, event)| id(event)).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, [1, 2, 3], "{order:?}");
        store.meanwhile.set(|| ());
    }
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
    // Marks are not counted, also if they are replaced.
    let counters = waiting.counters();
    assert_eq!(counters.waiting() + counters.lost(), 600);
    store.writes_fail.store(false, Relaxed);
    waiting.flush(true);
    assert_eq!((counters.waiting(), counters.recorded() + counters.lost()), (0, 600));
}

#[test]
fn what_a_stopping_server_gives_up_is_not_stored_and_counted_once() {
    let (store, waiting) = failing();
    store.writes_fail.store(true, Relaxed);
    record(&waiting, "a", [(1, 1.0), (2, 2.0)]);
    assert_eq!(waiting.give_up(), (2, 0));
    store.writes_fail.store(false, Relaxed);
    record(&waiting, "a", [(3, 3.0)]);
    let counters = waiting.counters();
    assert_eq!((counters.recorded(), counters.lost_at_stop(), counters.lost()), (0, 3, 3));
    assert_eq!(waiting.give_up(), (3, 0));
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
    let opener = HistoryOpener::open_with("memory", memory.capabilities(), AT_ONCE, open).unwrap();
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

#[test]
fn a_store_that_never_answers_does_not_hold_the_start() {
    let memory: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new(10));
    let (open, opens) = std::sync::mpsc::channel::<()>();
    let opens = Mutex::new(opens);
    let (attempts, opened) = (Arc::<AtomicU32>::default(), Arc::clone(&memory));
    let counted = Arc::clone(&attempts);
    let hang = move || {
        counted.fetch_add(1, Relaxed);
        // Until the test ends it.
        let _ = opens.lock().unwrap().recv();
        Ok(Arc::clone(&opened))
    };
    let times = Times { attempt_max: Duration::from_millis(10), ..AT_ONCE };
    let opener = HistoryOpener::open_with("memory", memory.capabilities(), times, hang).unwrap();
    let waiting = WaitingStore::new(opener);
    record(&waiting, "a", [(1, 1.0)]);
    assert!(waiting.counters().problem().unwrap().contains("still being opened"));
    assert_eq!(attempts.load(Relaxed), 1, "one attempt at a time");
    open.send(()).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while waiting.counters().recorded() == 0 {
        assert!(Instant::now() < end, "it is not opened");
        waiting.flush(true);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(read(&waiting, "a", Order::Forward, 10), [(1, Some(1.0))]);
    assert_eq!(attempts.load(Relaxed), 1);
}
