//! The store against a real server, which the tests start themselves. Without the programs `initdb` and `postgres` they are
//! skipped, or fail if TAKTWERK_TEST_POSTGRES is "required".

use super::database::Database;
use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config as ProptestConfig, TestRunner};
use taktwerk_server::history::MemoryStore;

/// A database that takes connections.
struct Server {
    database: Database,
}

impl Server {
    fn start() -> Option<Self> {
        let server = Self { database: Database::start()? };
        server.wait();
        Some(server)
    }

    fn wait(&self) {
        for _ in 0..600 {
            if self.database.url().parse::<Config>().unwrap().connect(NoTls).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the database does not start");
    }

    fn kill(&mut self) {
        self.database.kill();
    }

    fn go_on(&mut self) {
        self.database.go_on();
        self.wait();
    }

    fn restart(&mut self) {
        self.kill();
        self.go_on();
    }

    fn open(&self) -> PostgresStore {
        PostgresStore::open(&self.database.url(), "urn:test", Duration::ZERO).unwrap()
    }
}

fn time(at: i64) -> UtcTime {
    UtcTime::from_ticks(133_000_000_000_000_001 + at * 3)
}

fn value(at: i64, value: impl Into<Variant>) -> HistoryValue {
    HistoryValue { source: time(at), server: time(at + 1), status: StatusCode::GOOD, value: value.into() }
}

fn by() -> Modification {
    Modification { time: time(0), kind: HistoryUpdateType::UPDATE, user: "somebody".into() }
}

fn all(store: &dyn HistoryStore, node: &NodeKey) -> Vec<HistoryValue> {
    let mut out = Vec::new();
    store.read(node, Span::ALL, Order::Forward, ReadLimit::NONE, &mut out).unwrap();
    out
}

#[test]
fn it_does_what_the_one_in_memory_does_and_survives_a_restart() {
    let Some(mut server) = Server::start() else { return };
    let store = server.open();
    let key: NodeKey = "nsu=urn:test;s=a".into();
    let values: Vec<Variant> = vec![
        true.into(),
        (-5i8).into(),
        7u64.into(),
        u64::MAX.into(),
        i64::MIN.into(),
        1.5f32.into(),
        f64::NAN.into(),
        "text".into(),
        vec![1.0, 2.0].into(),
        Variant::Empty,
    ];
    let values: Vec<(NodeKey, HistoryValue)> =
        (0..).zip(values).map(|(at, one)| (Arc::clone(&key), value(at, one))).collect();
    store.append(&values).unwrap();
    // The same once more, as after a connection that broke before the answer came.
    store.append(&values).unwrap();
    let found = all(&store, &key);
    assert_eq!(found.len(), values.len());
    assert!(found.iter().zip(&values).all(|(one, (_, other))| one.same_as(other)), "{found:?}");

    server.restart();
    let late = [(Arc::clone(&key), value(100, 1.0))];
    let mut tries = 0;
    while store.append(&late).is_err() {
        tries += 1;
        assert!(tries < 3, "the connection is not made again");
    }
    assert_eq!(all(&store, &key).len(), values.len() + 1);
    // A second process of the same server finds that the first one did not end in order.
    let second = server.open();
    let found = all(&second, &key);
    assert_eq!(found.last().unwrap().status, StatusCode::BAD_DATA_LOST);
    store.finish().unwrap();

    let mut runner =
        TestRunner::new(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() });
    let steps = prop::collection::vec((0u8..6, 0i64..40, 0i64..40, any::<i32>()), 1..25);
    let number = std::cell::Cell::new(0);
    runner
        .run(&steps, |steps| {
            number.set(number.get() + 1);
            let key: NodeKey = format!("nsu=urn:test;i={}", number.get()).into();
            let model = MemoryStore::new(1_000);
            for (kind, from, to, value_of) in steps {
                let span = Span { first: time(from), last: time(to) };
                let new = vec![value(from, value_of), value(to, f64::from(value_of))];
                let both: [&dyn HistoryStore; 2] = [&store, &model];
                match kind {
                    0 => {
                        let new: Vec<_> = new.into_iter().map(|value| (Arc::clone(&key), value)).collect();
                        both.iter().for_each(|store| store.append(&new).unwrap());
                    }
                    1..=3 => {
                        let perform =
                            [Perform::Insert, Perform::Replace, Perform::Update][usize::from(kind) - 1];
                        let [one, other] =
                            both.map(|store| store.update(&key, perform, new.clone(), &by()).unwrap());
                        prop_assert_eq!(one, other);
                    }
                    4 => {
                        let [one, other] = both.map(|store| store.delete(&key, span, &by()).unwrap());
                        prop_assert_eq!(one, other);
                    }
                    _ => {
                        let order = if value_of % 2 == 0 { Order::Forward } else { Order::Backward };
                        let [one, other] = both.map(|store| {
                            let mut out = Vec::new();
                            store.read(&key, span, order, ReadLimit::count(5), &mut out).unwrap();
                            (out, store.read_modified(&key, span, order, 1, ReadLimit::count(5)).unwrap())
                        });
                        prop_assert_eq!(one, other);
                    }
                }
            }
            prop_assert_eq!(all(&store, &key), all(&model, &key));
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_database_that_is_away_is_an_error_that_says_so_and_nothing_that_was_stored_is_lost() {
    let Some(mut server) = Server::start() else { return };
    let store = server.open();
    let key: NodeKey = "nsu=urn:test;s=away".into();
    let mut stored = 0i64;
    let append = |from: i64| {
        let batch: Vec<_> = (from..from + 1_000).map(|at| (Arc::clone(&key), value(at, at as f64))).collect();
        store.append(&batch)
    };
    for _ in 0..5 {
        append(stored).unwrap();
        stored += 1_000;
    }
    server.kill();
    for _ in 0..3 {
        let error = append(stored).unwrap_err();
        assert_eq!(error.status, StatusCode::BAD_RESOURCE_UNAVAILABLE);
        assert!(error.message.starts_with("PostgreSQL: "), "{error}");
    }
    let mut nothing = Vec::new();
    assert!(store.read(&key, Span::ALL, Order::Forward, ReadLimit::count(10), &mut nothing).is_err());
    server.go_on();
    // The recorder tries a batch that failed again and again.
    let mut tries = 0;
    while stored < 10_000 {
        match append(stored) {
            Ok(()) => stored += 1_000,
            Err(error) => {
                tries += 1;
                assert!(tries < 5, "{error}");
            }
        }
    }
    let found = all(&store, &key);
    assert_eq!(found.len(), 10_000);
    assert!((0..).zip(&found).all(|(at, value)| value.source == time(at)), "a value is missing");
    store.finish().unwrap();
}

#[test]
fn events_are_what_the_store_in_memory_has() {
    use crate::event_tests::{NODE, agrees_with_memory, event, events_between};
    let Some(mut server) = Server::start() else { return };
    let store = server.open();
    agrees_with_memory(&store);
    // The same once more, as after a connection that broke before the answer came: nothing is there twice.
    let node: NodeKey = NODE.into();
    store.append_events(&node, &[event(40, 5), event(200, 1), event(41, 5)]).unwrap();
    assert_eq!(events_between(&store, (2, 15), Order::Forward, 10).len(), 42);
    assert_eq!(events_between(&store, (60, 70), Order::Forward, 10), [event(200, 1)]);
    // Another server has a Server Object too.
    let keep = Duration::from_nanos(500);
    let other = PostgresStore::open(&server.database.url(), "urn:other", keep).unwrap();
    assert!(events_between(&other, (0, 100), Order::Forward, 10).is_empty());
    other.append_events(&node, &[event(7, 1)]).unwrap();
    other.maintain(UtcTime::from_ticks(15)).unwrap();
    assert!(events_between(&other, (0, 100), Order::Forward, 10).is_empty());
    assert_eq!(events_between(&store, (2, 15), Order::Forward, 10).len(), 42);
    // What is committed survives, and queries find what they may want to show.
    server.restart();
    let late = || store.append_events(&node, &[event(300, 1)]);
    let mut tries = 0;
    while late().is_err() {
        tries += 1;
        assert!(tries < 3, "the connection is not made again");
    }
    let mut client = server.database.url().parse::<Config>().unwrap().connect(NoTls).unwrap();
    let query = "SELECT message, count(*) OVER () FROM taktwerk_event WHERE severity = 9 ORDER BY ticks";
    let rows = client.query(query, &[]).unwrap();
    let found: Vec<(&str, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, [("event 7\u{fffd}", 2), ("event 100\u{fffd}", 2)]);
    let keep = PostgresStore::open(&server.database.url(), "urn:test", Duration::from_nanos(500)).unwrap();
    keep.maintain(UtcTime::from_ticks(15)).unwrap();
    assert_eq!(events_between(&keep, (2, 15), Order::Forward, 10).len(), 18);
    keep.maintain(UtcTime::from_ticks(1_000)).unwrap();
    assert_eq!(events_between(&keep, (2, 100), Order::Forward, 10), []);
}
