//! Tests of the SQLite store: comparison with the store in memory, crashes, damage, full disks.

use super::*;
use proptest::prelude::*;
use taktwerk_schema::HistoryUpdateType;
use taktwerk_server::history::MemoryStore;

fn time(at: i64) -> UtcTime {
    UtcTime::from_ticks(133_000_000_000_000_000 + at * 10_000_000)
}

fn value(at: i64, number: f64) -> HistoryValue {
    HistoryValue { source: time(at), server: time(at), status: StatusCode::GOOD, value: number.into() }
}

fn by() -> Modification {
    Modification { time: time(0), kind: HistoryUpdateType::UPDATE, user: "somebody".into() }
}

fn key(number: u8) -> NodeKey {
    format!("nsu=urn:test;i={number}").into()
}

fn all(store: &dyn HistoryStore, node: &NodeKey) -> Vec<HistoryValue> {
    let mut out = Vec::new();
    store.read(node, Span::ALL, Order::Forward, ReadLimit::NONE, &mut out).unwrap();
    out
}

fn append(store: &dyn HistoryStore, node: u8, values: impl IntoIterator<Item = HistoryValue>) {
    let values: Vec<_> = values.into_iter().map(|value| (key(node), value)).collect();
    store.append(&values).unwrap();
}

fn open(folder: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::open(folder.path().join("history.db"), Retention::default()).unwrap()
}

/// Simulates a crash: nothing is written on drop.
fn crash(store: SqliteStore) {
    // The system releases the lock when a process ends.
    store.file_lock.release().unwrap();
    core::mem::forget(store);
}

#[derive(Debug, Clone)]
enum Step {
    Append(u8, Vec<(i64, i32)>),
    Update(u8, Perform, Vec<(i64, i32)>),
    Delete(u8, i64, i64),
    DeleteAt(u8, Vec<i64>),
    Read(u8, i64, i64, bool, usize),
    Seal,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let values = || prop::collection::vec((0i64..60, any::<i32>()), 1..12);
    let perform = prop_oneof![Just(Perform::Insert), Just(Perform::Replace), Just(Perform::Update)];
    prop_oneof![
        4 => (0u8..3, values()).prop_map(|(node, values)| Step::Append(node, values)),
        3 => (0u8..3, perform, values()).prop_map(|(node, perform, values)| Step::Update(node, perform, values)),
        2 => (0u8..3, 0i64..60, 0i64..60).prop_map(|(node, from, to)| Step::Delete(node, from, to)),
        2 => (0u8..3, prop::collection::vec(0i64..60, 1..12)).prop_map(|(node, times)| Step::DeleteAt(node, times)),
        3 => (0u8..3, 0i64..60, 0i64..60, any::<bool>(), 0usize..20)
            .prop_map(|(node, from, to, forward, limit)| Step::Read(node, from, to, forward, limit)),
        1 => Just(Step::Seal),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn agrees_with_the_memory_store(steps in prop::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(&folder);
        let model = MemoryStore::new(100_000);
        let make = |values: Vec<(i64, i32)>| -> Vec<HistoryValue> {
            values.into_iter().map(|(at, number)| value(at, f64::from(number))).collect()
        };
        for step in steps {
            match step {
                Step::Append(node, values) => {
                    append(&store, node, make(values.clone()));
                    append(&model, node, make(values));
                }
                Step::Update(node, perform, values) => {
                    let one = store.update(&key(node), perform, make(values.clone()), &by()).unwrap();
                    let other = model.update(&key(node), perform, make(values), &by()).unwrap();
                    prop_assert_eq!(one, other);
                }
                Step::Delete(node, from, to) => {
                    let span = Span { first: time(from), last: time(to) };
                    let one = store.delete(&key(node), span, &by()).unwrap();
                    prop_assert_eq!(one, model.delete(&key(node), span, &by()).unwrap());
                }
                Step::DeleteAt(node, times) => {
                    let times: Vec<UtcTime> = times.into_iter().map(time).collect();
                    let one = store.delete_at(&key(node), &times, &by()).unwrap();
                    prop_assert_eq!(one, model.delete_at(&key(node), &times, &by()).unwrap());
                }
                Step::Read(node, from, to, forward, limit) => {
                    let span = Span { first: time(from), last: time(to) };
                    let order = if forward { Order::Forward } else { Order::Backward };
                    let (mut one, mut other) = (Vec::new(), Vec::new());
                    store.read(&key(node), span, order, ReadLimit::count(limit), &mut one).unwrap();
                    model.read(&key(node), span, order, ReadLimit::count(limit), &mut other).unwrap();
                    prop_assert_eq!(one, other);
                    let one = store.read_modified(&key(node), span, order, 1, ReadLimit::count(limit)).unwrap();
                    let other = model.read_modified(&key(node), span, order, 1, ReadLimit::count(limit)).unwrap();
                    prop_assert_eq!(one, other);
                }
                Step::Seal => {
                    let mut inner = store.lock();
                    let all: Vec<u32> = inner.pending.keys().copied().collect();
                    inner.seal(&all).unwrap();
                }
                Step::Reopen => {
                    drop(store);
                    store = open(&folder);
                }
            }
        }
        for node in 0..3 {
            prop_assert_eq!(all(&store, &key(node)), all(&model, &key(node)));
        }
    }
}

#[test]
fn values_are_split_into_chunks_and_old_batches_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    for batch in 0..50i64 {
        append(&store, 1, (0..100).map(|at| value(batch * 100 + at, at as f64)));
    }
    append(&store, 2, [value(0, 1.0)]);
    let rows =
        |query: &str| -> i64 { store.lock().connection.query_row(query, [], |row| row.get(0)).unwrap() };
    assert!(rows("SELECT max(count) FROM chunk") <= 1_100);
    assert!(rows("SELECT count(*) FROM chunk") >= 4);
    let found = all(&store, &key(1));
    assert_eq!(found.len(), 5_000);
    assert!(found.windows(2).all(|pair| pair[0].source < pair[1].source));
    store.close().unwrap();
    assert_eq!(rows("SELECT count(*) FROM batch"), 0);
    assert_eq!(all(&store, &key(1)), found);
    let mut last = Vec::new();
    store.read(&key(1), Span::ALL, Order::Backward, ReadLimit::count(3), &mut last).unwrap();
    assert_eq!(last, found.iter().rev().take(3).cloned().collect::<Vec<_>>());
}

#[test]
fn values_survive_a_crash_and_the_gap_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    append(&store, 1, (0..10).map(|at| value(at, at as f64)));
    append(&store, 2, [value(3, 1.0)]);
    crash(store);
    let store = open(&folder);
    let found = all(&store, &key(1));
    assert_eq!(found.len(), 11);
    assert_eq!(found[10].status, StatusCode::BAD_DATA_LOST);
    assert!(found[10].source > time(9) && found[10].source < time(10));
    assert_eq!(all(&store, &key(2)).len(), 2);
    append(&store, 1, [value(20, 1.0)]);
    drop(store);
    let store = open(&folder);
    assert_eq!(all(&store, &key(1)).len(), 12, "a proper shutdown leaves no mark");
    assert_eq!(all(&store, &key(2)).len(), 2);
}

/// Otherwise the gap of a crash would not be seen between the values of today.
#[test]
fn a_value_in_the_future_does_not_take_the_mark_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let future = UtcTime::from_ticks(crate::now().ticks() + 10_000_000_000_000);
    // In memory and in a chunk.
    for node in [1, 2] {
        let store = open(&folder);
        append(
            &store,
            node,
            [value(0, 1.0), HistoryValue { source: future, ..value(0, 2.0) }, value(1, 3.0)],
        );
        if node == 2 {
            let mut inner = store.lock();
            let numbers: Vec<u32> = inner.nodes.values().copied().collect();
            inner.seal(&numbers).unwrap();
        }
        let before = crate::now();
        crash(store);
        let store = open(&folder);
        let found = all(&store, &key(node));
        let lost: Vec<_> = found
            .iter()
            .filter(|value| value.status == StatusCode::BAD_DATA_LOST)
            .map(|value| value.source)
            .collect();
        let [first, second] = lost.as_slice() else { panic!("{found:?}") };
        assert!(*first >= before && *first <= crate::now().plus(Duration::from_secs(1)), "{first}");
        assert!(*second > future, "the clock of the server may be wrong instead");
        store.close().unwrap();
    }
}

#[test]
fn a_damaged_chunk_reads_as_a_gap_between_the_other_values() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    append(&store, 1, (0..3_000).map(|at| value(at, at as f64)));
    store.close().unwrap();
    store
        .lock()
        .connection
        .execute("UPDATE chunk SET data = x'0102' WHERE first = (SELECT min(first) FROM chunk)", [])
        .unwrap();
    let found = all(&store, &key(1));
    let lost = found.iter().filter(|value| value.status == StatusCode::BAD_DATA_LOST).count();
    assert_eq!(lost, 1);
    assert!(found.len() > 1_500 && found.len() < 3_000, "{}", found.len());
}

#[test]
fn a_full_disk_is_an_error_and_stored_values_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    append(&store, 1, [value(0, 1.0)]);
    let pages: i64 = store.lock().connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = |pages: i64| {
        store.lock().connection.pragma_update(None, "max_page_count", pages).unwrap();
    };
    limit(pages);
    let many: Vec<_> = (1..20_000).map(|at| (key(1), value(at, (at as f64).sqrt()))).collect();
    let error = store.append(&many).unwrap_err();
    assert_eq!(error.status, StatusCode::BAD_RESOURCE_UNAVAILABLE);
    assert!(error.message.contains("disk is full"), "{error}");
    assert_eq!(all(&store, &key(1)).len(), 1);
    limit(1 << 30);
    store.append(&many).unwrap();
    assert_eq!(all(&store, &key(1)).len(), 20_000);
}

#[test]
fn a_file_that_was_deleted_is_an_error_and_nothing_is_written_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    append(&store, 1, [value(0, 1.0)]);
    let aside = folder.path().join("aside.db");
    std::fs::rename(store.path(), &aside).unwrap();
    for replaced in [false, true] {
        if replaced {
            std::fs::write(store.path(), "another file").unwrap();
        }
        let error = store.append(&[(key(1), value(1, 2.0))]).unwrap_err();
        assert!(error.message.contains("was deleted or replaced"), "{error}");
        assert!(store.append_events(&key(1), &[]).is_err());
    }
    std::fs::rename(&aside, store.path()).unwrap();
    append(&store, 1, [value(1, 2.0)]);
    assert_eq!(all(&store, &key(1)).len(), 2);
}

/// Retrying helps with a full disk, and not with another program's file.
#[test]
fn only_failures_that_pass_are_retried_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    std::fs::write(&path, "this is a text and no database, and it is long enough to be looked at as one")
        .unwrap();
    assert!(SqliteStore::open(&path, Retention::default()).unwrap_err().is_mistake());
    assert!(SqliteStore::open(folder.path(), Retention::default()).unwrap_err().is_mistake());
    let missing = folder.path().join("missing").join("history.db");
    assert!(SqliteStore::open(&missing, Retention::default()).unwrap_err().is_mistake());
    let full = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None);
    let error = super::schema::KIND.not_opened(&path, &full);
    assert!(!error.is_mistake() && !error.message.contains("recording goes on"), "{error}");
}

#[test]
fn retention_by_age_and_size_deletes_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let retention = Retention { age: Duration::from_secs(4_000), size: 0 };
    let path = folder.path().join("history.db");
    let store = SqliteStore::open(&path, retention).unwrap();
    append(&store, 1, (0..8_192).map(|at| value(at, at as f64)));
    store.close().unwrap();
    let deleted = store.retain(time(8_192)).unwrap();
    let left = all(&store, &key(1));
    assert_eq!(deleted as usize + left.len(), 8_192);
    assert!(left.len() >= 4_000 && left.len() <= 4_000 + 1_024, "{}", left.len());
    drop(store);
    let store = SqliteStore::open(&path, Retention { age: Duration::ZERO, size: 1 }).unwrap();
    store.retain(time(8_192)).unwrap();
    assert!(all(&store, &key(1)).is_empty());
}

#[test]
fn files_of_other_programs_are_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    let error = SqliteStore::open(&path, Retention::default()).unwrap_err();
    assert!(error.message.contains("another program"), "{error}");
    std::fs::write(&path, b"this is no database, but a text that is long enough to be looked at as one")
        .unwrap();
    std::fs::remove_file(folder.path().join("other.db-wal")).ok();
    let error = SqliteStore::open(&path, Retention::default()).unwrap_err();
    assert!(error.message.contains("not a history file"), "{error}");
}

#[test]
fn annotations_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let annotation = |text: &str| {
        (time(5), Annotation { message: text.into(), user_name: "me".into(), annotation_time: time(6) })
    };
    let annotate = |perform, text: &str| store.annotate(&key(1), perform, vec![annotation(text)]).unwrap()[0];
    assert_eq!(annotate(Perform::Replace, "a"), StatusCode::BAD_NO_ENTRY_EXISTS);
    assert_eq!(annotate(Perform::Insert, "a"), StatusCode::GOOD_ENTRY_INSERTED);
    assert_eq!(annotate(Perform::Insert, "a"), StatusCode::BAD_ENTRY_EXISTS);
    assert_eq!(annotate(Perform::Update, "b"), StatusCode::GOOD_ENTRY_REPLACED);
    assert_eq!(
        store.annotations(&key(1), Span::ALL, Order::Forward, None, ReadLimit::count(10)).unwrap(),
        [annotation("b")]
    );
    assert_eq!(annotate(Perform::Remove, "b"), StatusCode::GOOD);
    assert!(
        store.annotations(&key(1), Span::ALL, Order::Forward, None, ReadLimit::count(10)).unwrap().is_empty()
    );
}

#[test]
fn events_agree_with_the_memory_store() {
    use crate::event_tests::{agrees_with_memory, events_between, read_page};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    agrees_with_memory(&SqliteStore::open(&path, Retention::default()).unwrap());
    // Events survive a reopening, and expire.
    let age = std::time::Duration::from_nanos(500);
    let file = SqliteStore::open(&path, Retention { age, size: 0 }).unwrap();
    assert_eq!(events_between(&file, (2, 15), Order::Forward, 10).len(), 42);
    // Damaged events are skipped, and the page is filled with the ones after them.
    let raw = rusqlite::Connection::open(&path).unwrap();
    let damaged = "UPDATE event SET data = x'00' WHERE time IN (4, 5)";
    let count = raw.execute(damaged, []).unwrap();
    for order in [Order::Forward, Order::Backward] {
        let page = read_page(&file, order, 10);
        assert_eq!((page, events_between(&file, (2, 15), order, 10).len()), (10, 42 - count), "{order:?}");
    }
    file.retain(UtcTime::from_ticks(15)).unwrap();
    assert_eq!(events_between(&file, (2, 15), Order::Forward, 10).len(), 18);
}

/// Many Variables written together: memory stays bounded, and the chunk work is spread over batches.
#[test]
fn chunks_of_variables_written_together_are_spread_over_batches() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("h.db"), Retention::default()).unwrap();
    let keys: Vec<NodeKey> = (0..300).map(|number| format!("nsu=urn:test;i={number}").into()).collect();
    let (mut before, mut most) = (0, 0);
    for from in (0..1_100).step_by(10) {
        let all = (from..from + 10)
            .flat_map(|second| keys.iter().map(move |key| (Arc::clone(key), value(second, 1.5))));
        let batch: Vec<_> = all.collect();
        store.append(&batch).unwrap();
        let pending = store.lock().pending_len;
        most = most.max((before + batch.len()).saturating_sub(pending));
        before = pending;
    }
    assert!((1..=PORTION_MIN + CHUNK_LEN).contains(&most), "{most} values at once");
    assert!(before < 300 * 250, "{before} values are left");
    let mut values = Vec::new();
    store.read(&keys[299], Span::ALL, Order::Forward, ReadLimit::NONE, &mut values).unwrap();
    assert_eq!(values.len(), 1_100);
    store.close().unwrap();
    assert_eq!(store.lock().pending_len, 0);
}

fn text(at: i64, len: usize) -> HistoryValue {
    HistoryValue { value: format!("{at}{}", "x".repeat(len)).as_str().into(), ..value(at, 0.0) }
}

/// Chunks and batches are read and written as a whole, and pending values are held in memory. So large values must be limited.
#[test]
fn large_values_make_short_chunks_and_leave_memory() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let written: Vec<HistoryValue> = (0..400).map(|at| text(at, 100_000)).collect();
    for batch in written.chunks(100) {
        append(&store, 1, batch.iter().cloned());
        let inner = store.lock();
        assert!(inner.pending_bytes < 2 * CHUNK_BYTES, "{}", inner.pending_bytes);
        assert_eq!(inner.pending_bytes, inner.pending.values().map(|pending| pending.bytes).sum::<usize>());
    }
    let row =
        |query: &str| -> i64 { store.lock().connection.query_row(query, [], |row| row.get(0)).unwrap() };
    assert!(row("SELECT max(length(data)) FROM chunk") < 2 * CHUNK_BYTES as i64);
    assert!(row("SELECT coalesce(max(length(data)), 0) FROM batch") < 2 * BATCH_BYTES as i64);
    assert_eq!(all(&store, &key(1)), written);
    // Large values in chunks, and small pending values with the same times that replace them.
    append(&store, 1, (100..110).map(|at| value(at, 1.0)));
    let expected: Vec<HistoryValue> = written
        .iter()
        .cloned()
        .enumerate()
        .map(|(at, one)| match at {
            100..110 => value(at as i64, 1.0),
            _ => one,
        })
        .collect();
    for order in [Order::Forward, Order::Backward] {
        let (mut found, mut span) = (Vec::new(), Span::ALL);
        loop {
            let (before, limit) = (found.len(), ReadLimit { count: 1_000, bytes: 1_000_000 });
            store.read(&key(1), span, order, limit, &mut found).unwrap();
            assert!(found.len() - before <= 20, "{}", found.len() - before);
            if !limit.behind(&found[before..]).is_reached() {
                break;
            }
            let last = found.last().unwrap().source.ticks();
            match order {
                Order::Forward => span.first = UtcTime::from_ticks(last + 1),
                Order::Backward => span.last = UtcTime::from_ticks(last - 1),
            }
        }
        if order == Order::Backward {
            found.reverse();
        }
        assert!(found == expected, "{order:?}");
    }
}

/// A client chooses the source times of its updates.
#[test]
fn values_far_apart_do_not_open_the_chunks_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let seal = || {
        let mut inner = store.lock();
        let all: Vec<u32> = inner.pending.keys().copied().collect();
        inner.seal(&all).unwrap();
    };
    for batch in 0..10i64 {
        append(&store, 1, (0..1_000).map(|at| value(batch * 1_000 + at, at as f64)));
        seal();
    }
    let ids = || -> Vec<i64> {
        let inner = store.lock();
        let mut query = inner.connection.prepare("SELECT id FROM chunk ORDER BY id").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let before = ids();
    append(&store, 1, [value(-5, 1.0), value(5_500, -1.0), value(20_000, 2.0)]);
    seal();
    let kept = ids().iter().filter(|id| before.contains(id)).count();
    assert!(kept >= before.len() - 2, "{kept} of {}", before.len());
    let found = all(&store, &key(1));
    assert_eq!(found.len(), 10_002);
    assert!(found.windows(2).all(|pair| pair[0].source < pair[1].source));
    assert_eq!((&found[0], &found[5_501]), (&value(-5, 1.0), &value(5_500, -1.0)));
}

/// Recorded data are confidential, whatever the umask is.
#[test]
fn only_the_owner_can_read_a_new_database() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let [history, subscriptions] = ["history.db", "subscriptions.db"].map(|name| folder.path().join(name));
    let _history = SqliteStore::open(&history, Retention::default()).unwrap();
    let _subscriptions = crate::SubscriptionStore::open(&subscriptions).unwrap();
    let mut count = 0;
    for file in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
        count += 1;
    }
    assert!(count >= 4, "databases and locks");
}

/// SQLite creates the missing target of a link.
#[test]
fn only_the_owner_can_read_a_new_database_behind_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (folder, links) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [history, subscriptions] = ["history.db", "subscriptions.db"].map(|name| {
        symlink(folder.path().join(name), links.path().join(name)).unwrap();
        links.path().join(name)
    });
    let _history = SqliteStore::open(&history, Retention::default()).unwrap();
    let _subscriptions = crate::SubscriptionStore::open(&subscriptions).unwrap();
    let modes = std::fs::read_dir(folder.path()).unwrap().map(|file| {
        let file = file.unwrap();
        (file.file_name(), file.metadata().unwrap().permissions().mode() & 0o777)
    });
    let modes: Vec<_> = modes.collect();
    assert!(modes.len() >= 4 && modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
    assert_eq!(std::fs::read_dir(links.path()).unwrap().count(), 2, "everything is beside the database");
}

#[test]
fn annotations_are_kept_through_the_services() {
    use crate::annotation_tests::{are_kept_through_the_services, pages_are_complete};
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&folder));
    pages_are_complete(&*store);
    are_kept_through_the_services(Arc::clone(&store) as _);
    crash(Arc::into_inner(store).unwrap());
    let node: NodeKey = "nsu=urn:test:annotations;s=Level".into();
    let limit = ReadLimit::count(10);
    let found = open(&folder).annotations(&node, Span::ALL, Order::Backward, None, limit).unwrap();
    assert_eq!(found.len(), 4);
    assert_eq!(found[0].1.message.as_str(), "a\0b");
}
