//! Operation of the database: dumps, locks, expiry, compression, outages.

use super::*;

#[test]
fn a_server_starts_and_others_read_while_the_database_is_dumped() {
    let Some(server) = Server::start() else { return };
    let first = server.open();
    first.append(&[("nsu=urn:test;s=a".into(), value(1, 1.0))]).unwrap();
    let mut dump = server.database.url().parse::<Config>().unwrap().connect(NoTls).unwrap();
    let mut dump = dump.transaction().unwrap();
    // What pg_dump holds until it ends.
    for table in ["node", "value", "modified", "annotation", "event"] {
        dump.batch_execute(&format!("LOCK TABLE taktwerk_{table} IN ACCESS SHARE MODE")).unwrap();
    }
    let (done, is_done) = std::sync::mpsc::channel();
    let url = server.database.url();
    std::thread::spawn(move || {
        let second = PostgresStore::open(&url, "urn:second", Duration::ZERO).unwrap();
        second.append(&[("nsu=urn:second;s=a".into(), value(1, 1.0))]).unwrap();
        done.send(all(&second, &"nsu=urn:test;s=a".into()).len()).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(1));
    assert_eq!(all(&first, &"nsu=urn:second;s=a".into()).len(), 1);
    dump.rollback().unwrap();
}

/// An administrator may lock a table for a long time. Clients get an answer, and can read afterwards.
#[test]
fn a_locked_table_is_an_error_of_the_read() {
    let Some(server) = Server::start() else { return };
    let store = server.open();
    let key: NodeKey = "nsu=urn:test;s=a".into();
    store.append(&[(NodeKey::clone(&key), value(1, 1.0))]).unwrap();
    let mut other = server.database.url().parse::<Config>().unwrap().connect(NoTls).unwrap();
    let mut locking = other.transaction().unwrap();
    locking.batch_execute("LOCK TABLE taktwerk_value IN ACCESS EXCLUSIVE MODE").unwrap();
    let mut out = Vec::new();
    let read = store.read(&key, Span::ALL, Order::Forward, ReadLimit::NONE, &mut out);
    assert_eq!(read.unwrap_err().status_of_read(), StatusCode::BAD_DATA_UNAVAILABLE);
    locking.rollback().unwrap();
    assert_eq!(all(&store, &key).len(), 1);
}

#[test]
fn values_expire_however_long_it_takes() {
    let Some(server) = Server::start() else { return };
    let store = PostgresStore::open(&server.database.url(), "urn:test", Duration::from_nanos(1)).unwrap();
    let key: NodeKey = "nsu=urn:test;s=a".into();
    store.append(&[(NodeKey::clone(&key), value(1, 1.0))]).unwrap();
    assert_eq!(all(&store, &key).len(), 1, "there is a connection for reading");
    let mut other = server.database.url().parse::<Config>().unwrap().connect(NoTls).unwrap();
    let mut locking = other.transaction().unwrap();
    locking.batch_execute("LOCK TABLE taktwerk_value IN ACCESS EXCLUSIVE MODE").unwrap();
    std::thread::scope(|scope| {
        let expiring = scope.spawn(|| store.maintain(time(9)));
        // Longer than a read may wait for the lock.
        std::thread::sleep(Duration::from_secs(7));
        locking.rollback().unwrap();
        expiring.join().unwrap().unwrap();
    });
    assert!(all(&store, &key).is_empty());
}

/// With the extension, where it is installed: it is in no package of Debian.
#[test]
#[allow(clippy::print_stderr)] // a test that is skipped says why
fn compressed_values_are_read_changed_and_expire() {
    let Some(server) = Server::start() else { return };
    let mut client = server.database.url().parse::<Config>().unwrap().connect(NoTls).unwrap();
    if let Err(error) = client.batch_execute("CREATE EXTENSION timescaledb") {
        eprintln!("skipped: {}", explained(&error));
        return;
    }
    let store = server.open();
    let compress = |client: &mut Client| {
        let chunks = "SELECT count(compress_chunk(chunk, if_not_compressed => true)) FROM show_chunks('taktwerk_value') chunk";
        client.query_one(chunks, &[]).unwrap().get::<_, i64>(0)
    };
    let policy = "SELECT count(*) FROM timescaledb_information.jobs WHERE proc_name = 'policy_compression'";
    assert_eq!(client.query_one(policy, &[]).unwrap().get::<_, i64>(0), 1);
    let key: NodeKey = "nsu=urn:test;s=many".into();
    // More than the extension decompresses by itself for one change.
    let many = 150_000;
    let other: NodeKey = "nsu=urn:other;s=many".into();
    let others = PostgresStore::open(&server.database.url(), "urn:other", Duration::ZERO).unwrap();
    for (store, key) in [(&store, &key), (&others, &other)] {
        for from in (0..many).step_by(10_000) {
            let batch: Vec<_> =
                (from..from + 10_000).map(|at| (Arc::clone(key), value(at, at as f64))).collect();
            store.append(&batch).unwrap();
        }
    }
    assert_eq!(compress(&mut client), 1);
    let size = "SELECT before_compression_total_bytes, after_compression_total_bytes FROM \
                hypertable_compression_stats('taktwerk_value')";
    let row = client.query_one(size, &[]).unwrap();
    let (before, after): (i64, i64) = (row.get(0), row.get(1));
    assert!(after * 4 < before, "{before} bytes before, {after} after");
    assert_eq!(all(&store, &key).len(), many as usize);
    drop(store);
    // A new start finds the settings, and the same batch again is stored once.
    let day = 24 * 3_600 * 10_000_000 / 3;
    let store = PostgresStore::open(&server.database.url(), "urn:test", Duration::from_hours(24)).unwrap();
    store.append(&[(Arc::clone(&key), value(7, 7.0)), (Arc::clone(&key), value(day, 7.0))]).unwrap();
    assert_eq!(all(&store, &key).len(), many as usize + 2, "one for the gap, one of the next day");
    // Neither changes nor expiry decompress what belongs to others.
    let chunk: String = client
        .query_one("SELECT show_chunks('taktwerk_value')::text ORDER BY 1 LIMIT 1", &[])
        .unwrap()
        .get(0);
    let decompressed = format!(
        "SELECT count(*) FROM ONLY {chunk} WHERE node = (SELECT id FROM taktwerk_node WHERE key = '{other}')"
    );
    store.delete(&key, Span { first: time(0), last: time(50_000) }, &by()).unwrap();
    store.maintain(time(day + day / 2)).unwrap();
    assert!(all(&store, &key).len() > many as usize / 2, "only whole days expire");
    store.maintain(time(2 * day)).unwrap();
    assert_eq!(all(&store, &key).len(), 1);
    assert_eq!(client.query_one(&decompressed, &[]).unwrap().get::<_, i64>(0), 0);
    assert_eq!(all(&others, &other).len(), many as usize);
    drop(store);
    let store = server.open();
    let other = std::cell::RefCell::new(client);
    agrees_with_the_model(&store, &|| {
        compress(&mut other.borrow_mut());
    });
}

#[test]
fn a_database_that_hangs_holds_nobody_who_connects() {
    let Some(server) = Server::start() else { return };
    server.database.freeze(true);
    let begun = std::time::Instant::now();
    let opened = PostgresStore::open(&server.database.url(), "urn:test", Duration::ZERO);
    server.database.freeze(false);
    let error = opened.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(error.message.contains("does not answer") && !error.is_mistake(), "{error}");
    server.open();
}
