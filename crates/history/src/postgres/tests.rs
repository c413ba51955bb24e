//! Tests of the store against a real server, which the tests start. They are skipped if the programs `initdb` and `postgres` are
//! missing, or fail if TAKTWERK_TEST_POSTGRES is "required".

mod editing;
mod operation;

use super::database::Database;
use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config as ProptestConfig, TestRunner};
use taktwerk_schema::HistoryUpdateType;
use taktwerk_server::history::MemoryStore;

/// A database that accepts connections.
struct Server {
    database: Database,
}

impl Server {
    fn start() -> Option<Self> {
        let mut server = Self { database: Database::start()? };
        server.wait();
        Some(server)
    }

    fn wait(&mut self) {
        for _ in 0..600 {
            self.database.start_if_ended();
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
fn agrees_with_the_memory_store_and_survives_a_restart() {
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
    // The same batch again, as after a connection that broke before the answer arrived.
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
    // A second process of the same server detects that the first one was not shut down properly.
    let second = server.open();
    let found = all(&second, &key);
    assert_eq!(found.last().unwrap().status, StatusCode::BAD_DATA_LOST);
    store.finish().unwrap();

    agrees_with_the_model(&store, &|| {});
}

/// Random changes and reads, `between` runs before each.
fn agrees_with_the_model(store: &PostgresStore, between: &dyn Fn()) {
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() });
    let steps = prop::collection::vec((0u8..7, 0i64..40, 0i64..40, any::<i32>()), 1..25);
    let number = std::cell::Cell::new(0);
    runner
        .run(&steps, |steps| {
            number.set(number.get() + 1);
            let key: NodeKey = format!("nsu=urn:test;i={}", number.get()).into();
            let model = MemoryStore::new(1_000);
            for (kind, from, to, value_of) in steps {
                between();
                let span = Span { first: time(from), last: time(to) };
                let new = vec![value(from, value_of), value(to, f64::from(value_of))];
                let both: [&dyn HistoryStore; 2] = [store, &model];
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
                    5 => {
                        let times = [time(to), time(from), time(to), time(from + 1)];
                        let [one, other] = both.map(|store| store.delete_at(&key, &times, &by()).unwrap());
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
            prop_assert_eq!(all(store, &key), all(&model, &key));
            Ok(())
        })
        .unwrap();
}

#[test]
fn an_unreachable_database_is_reported_and_stored_values_are_kept() {
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
    // The recorder retries a failed batch.
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
fn events_agree_with_the_memory_store() {
    use crate::event_tests::{NODE, agrees_with_memory, event, events_between};
    let Some(mut server) = Server::start() else { return };
    let store = server.open();
    agrees_with_memory(&store);
    // The same batch again, as after a connection that broke before the answer arrived: no event is stored twice.
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
    // Committed events survive a restart, and SQL queries find the columns.
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

#[test]
fn annotations_are_kept_through_the_services() {
    use crate::annotation_tests::{are_kept_through_the_services, pages_are_complete};
    let Some(mut server) = Server::start() else { return };
    let store = server.open();
    pages_are_complete(&store);
    are_kept_through_the_services(Arc::new(server.open()));
    // Annotations survive a restart of the database.
    server.restart();
    let node: NodeKey = "nsu=urn:test:annotations;s=Level".into();
    let read = || store.annotations(&node, Span::ALL, Order::Backward, None, ReadLimit::count(10));
    let mut tries = 0;
    let found = loop {
        match read() {
            Ok(found) => break found,
            Err(error) => {
                tries += 1;
                assert!(tries < 5, "{error}");
            }
        }
    };
    assert_eq!(found.len(), 4);
    assert_eq!(found[0].1.message.as_str(), "a\u{fffd}b");
}

#[test]
fn each_server_decides_how_long_its_values_are_kept() {
    let Some(server) = Server::start() else { return };
    let open = |owner, keep| PostgresStore::open(&server.database.url(), owner, keep).unwrap();
    let (short, long) = (open("urn:short", Duration::from_nanos(500)), open("urn:long", Duration::ZERO));
    let keys: [NodeKey; 2] = ["nsu=urn:short;s=a".into(), "nsu=urn:long;s=a".into()];
    for (store, key) in [&short, &long].into_iter().zip(&keys) {
        let values: Vec<_> = (0..100).map(|at| (Arc::clone(key), value(at, at as f64))).collect();
        store.append(&values).unwrap();
        store.update(key, Perform::Replace, vec![value(5, 1.0), value(99, 1.0)], &by()).unwrap();
    }
    short.maintain(time(99)).unwrap();
    // Another Variable that was only changed, and values that cannot be deleted: the rest expires all the same.
    let changed: NodeKey = "nsu=urn:short;s=changed".into();
    short.update(&changed, Perform::Insert, vec![value(5, 1.0)], &by()).unwrap();
    let mut client = server.database.url().parse::<Config>().unwrap().connect(NoTls).unwrap();
    client
        .batch_execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$; \
             CREATE TRIGGER refuse BEFORE DELETE ON taktwerk_value EXECUTE FUNCTION refuse()",
        )
        .unwrap();
    assert!(short.maintain(time(99)).unwrap_err().to_string().contains("not now"));
    let modified_of =
        |key| short.read_modified(key, Span::ALL, Order::Forward, 0, ReadLimit::NONE).unwrap().len();
    assert_eq!((modified_of(&changed), all(&short, &changed).len()), (0, 1));
    client.batch_execute("DROP TRIGGER refuse ON taktwerk_value").unwrap();
    short.maintain(time(99)).unwrap();
    assert_eq!(all(&short, &changed).len(), 0);
    // 500 ns are 5 ticks; values are 3 ticks apart. The database's times, which decide, are in µs.
    let modified = |store: &PostgresStore, key| {
        store.read_modified(key, Span::ALL, Order::Forward, 0, ReadLimit::NONE).unwrap().len()
    };
    assert!((2..=6).contains(&all(&short, &keys[0]).len()));
    assert_eq!(modified(&short, &keys[0]), 1);
    assert_eq!((all(&long, &keys[1]).len(), modified(&long, &keys[1])), (100, 2));
}
