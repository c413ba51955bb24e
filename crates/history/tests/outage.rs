//! Checks that a server keeps recording while its PostgreSQL database is down, and loses no values.
//!
//! `TAKTWERK_OUTAGE=60 cargo test --release -p taktwerk-history --features postgres --test outage -- --nocapture` tests an outage
//! of one minute; the default is two seconds. The test is skipped if the programs of PostgreSQL are missing, or fails if
//! TAKTWERK_TEST_POSTGRES is "required".

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking, and says how far it has got

#[path = "../src/postgres/database.rs"]
mod database;

use database::Database;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};
use taktwerk::Server;
use taktwerk::types::{UtcTime, Variant};
use taktwerk_history::PostgresStore;
use taktwerk_server::history::{HistoryStore, NodeKey, Order, ReadLimit, Span};

const VARIABLES: usize = 2_000;
/// All variables are written at once: 20 000 values per second.
const PERIOD: Duration = Duration::from_millis(100);
/// How long it records before and after the outage.
const AROUND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

fn open(database: &Database) -> PostgresStore {
    let end = Instant::now() + PATIENCE;
    loop {
        match PostgresStore::open(&database.url(), "urn:test", Duration::ZERO) {
            Ok(store) => return store,
            Err(error) => assert!(Instant::now() < end, "the database does not start: {error}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn no_values_are_lost_during_a_postgres_outage() {
    let outage = std::env::var("TAKTWERK_OUTAGE").map_or(2, |text| text.parse().unwrap());
    let outage = Duration::from_secs(outage);
    let Some(mut database) = Database::start() else { return };
    let store: Arc<dyn HistoryStore> = Arc::new(open(&database));
    let builder = Server::builder().bind("127.0.0.1:0").anonymous().history(Arc::clone(&store));
    let server = builder.build().unwrap();
    let folder = server.namespace("urn:test").folder("Line").unwrap();
    let add = |number: usize| folder.variable(&format!("v{number}"), 0.0).historize().add().unwrap();
    let variables: Vec<_> = (0..VARIABLES).map(add).collect();
    let keys: Vec<NodeKey> =
        variables.iter().map(|variable| server.space().node_key(variable.id())).collect();
    let running = server.spawn().unwrap();
    let counters = Arc::clone(running.recorder().unwrap());

    let (start, began) = (Instant::now(), UtcTime::from_unix(UNIX_EPOCH.elapsed().unwrap()));
    let mut writes = 0u32;
    let mut write_for = |span: Duration| {
        let end = Instant::now() + span;
        while Instant::now() < end {
            writes += 1;
            let time = began.plus(writes * PERIOD);
            variables.iter().for_each(|variable| variable.set_at(f64::from(writes), time));
            std::thread::sleep((start + writes * PERIOD).saturating_duration_since(Instant::now()));
        }
        writes
    };
    write_for(AROUND);
    database.kill();
    let away = Instant::now();
    write_for(outage);
    while counters.failures() == 0 {
        assert!(away.elapsed() < PATIENCE, "the database is still up");
        write_for(PERIOD);
    }
    let waiting = counters.waiting();
    database.go_on();
    let writes = write_for(AROUND);
    let rate = f64::from(writes) * VARIABLES as f64 / start.elapsed().as_secs_f64();
    eprintln!("{rate:.0} values/s, database down for {outage:?}, {waiting} values queued");
    // The initial value of each Variable counts too.
    let all = (u64::from(writes) + 1) * VARIABLES as u64;
    let written = Instant::now();
    while counters.recorded() < all {
        assert!(written.elapsed() < PATIENCE, "of {all} values not all are stored: {counters:?}");
        assert_eq!(counters.lost(), 0);
        std::thread::sleep(Duration::from_millis(50));
    }
    eprintln!("all {all} values stored {:.1} s after the last write", written.elapsed().as_secs_f64());
    running.stop(Duration::from_secs(1));
    assert_eq!((counters.lost(), counters.recorded()), (0, all));
    for key in &keys {
        let mut values = Vec::new();
        store.read(key, Span::ALL, Order::Forward, ReadLimit::NONE, &mut values).unwrap();
        let mut found: Vec<f64> = values.iter().filter_map(|value| Variant::as_f64(&value.value)).collect();
        assert!(values.iter().all(|value| value.status.is_good()), "{key} has marks of lost values");
        // The first value has the time of the Variable's creation.
        found.sort_by(f64::total_cmp);
        assert!(found.iter().copied().eq((0..=writes).map(f64::from)), "{key}: {} of {writes}", found.len());
    }
}
