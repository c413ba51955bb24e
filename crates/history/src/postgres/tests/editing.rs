//! Changes of many values.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Notes how many values each statement deletes, and delays it.
const NOTE: &str = "CREATE TABLE noted (count bigint); \
                    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                    INSERT INTO noted SELECT count(*) FROM gone; PERFORM pg_sleep(0.5); RETURN NULL; END $$; \
                    CREATE TRIGGER note AFTER DELETE ON taktwerk_value REFERENCING OLD TABLE AS gone \
                    FOR EACH STATEMENT EXECUTE FUNCTION note()";

/// A store with `count` values of a Variable, and a connection for [`noted`].
fn filled(server: &Server, key: &NodeKey, count: i64) -> (PostgresStore, Client) {
    let store = server.open();
    let values: Vec<_> = (0..count).map(|at| (Arc::clone(key), value(at, at as f64))).collect();
    store.append(&values).unwrap();
    let mut client = server.database.url().parse::<Config>().unwrap().connect(NoTls).unwrap();
    client.batch_execute(NOTE).unwrap();
    (store, client)
}

/// The numbers of values that the statements have deleted.
fn noted(client: &mut Client) -> Vec<i64> {
    let rows = client.query("DELETE FROM noted RETURNING count", &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn values_at_many_times_are_deleted_by_one_statement() {
    let Some(server) = Server::start() else { return };
    let key: NodeKey = "nsu=urn:test;s=a".into();
    let (store, mut client) = filled(&server, &key, 1_000);
    // Every second one, one that has none, and one twice.
    let mut times: Vec<UtcTime> = (0..500).rev().map(|at| time(2 * at)).collect();
    times.extend([time(2_000), time(0)]);
    let found = store.delete_at(&key, &times, &by()).unwrap();
    assert!(found[..500].iter().all(|found| *found));
    assert_eq!(found[500..], [false, false]);
    assert_eq!(noted(&mut client), [500]);
    assert!(all(&store, &key).iter().map(|value| value.source).eq((0..500).map(|at| time(2 * at + 1))));
    let modified = store.read_modified(&key, Span::ALL, Order::Forward, 0, ReadLimit::NONE).unwrap();
    assert!(modified.iter().map(|one| one.value.source).eq((0..500).map(|at| time(2 * at))));
    assert_eq!(store.delete_at(&key, &[], &by()).unwrap(), []);
    assert_eq!(store.delete_at(&"nsu=urn:test;s=b".into(), &times[..2], &by()).unwrap(), [false; 2]);
}

/// The database may limit the time of a statement, and the recorder uses the same connection.
#[test]
fn a_large_range_is_deleted_in_parts_and_values_are_stored_in_between() {
    let Some(server) = Server::start() else { return };
    let key: NodeKey = "nsu=urn:test;s=a".into();
    let (store, mut client) = filled(&server, &key, 35_000);
    let is_deleting = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let deleting = scope.spawn(|| {
            let count = store.delete(&key, Span { first: time(1), last: time(34_998) }, &by());
            is_deleting.store(false, SeqCst);
            count.unwrap()
        });
        while client.query("SELECT 1 FROM taktwerk_modified LIMIT 1", &[]).unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        store.append(&[("nsu=urn:test;s=b".into(), value(1, 1.0))]).unwrap();
        assert!(is_deleting.load(SeqCst), "the recorder had to wait until all were deleted");
        assert_eq!(deleting.join().unwrap(), 34_998);
    });
    assert_eq!(noted(&mut client), [10_000, 10_000, 10_000, 4_998]);
    let left: Vec<UtcTime> = all(&store, &key).iter().map(|value| value.source).collect();
    assert_eq!(left, [time(0), time(34_999)]);
    let modified = store.read_modified(&key, Span::ALL, Order::Forward, 0, ReadLimit::NONE).unwrap();
    assert!(modified.iter().map(|one| one.value.source).eq((1..34_999).map(time)));
    assert_eq!(store.delete_modified(&key, Span { first: time(0), last: time(34_000) }).unwrap(), 34_000);
    assert_eq!(store.delete_modified(&key, Span::ALL).unwrap(), 998);
}
