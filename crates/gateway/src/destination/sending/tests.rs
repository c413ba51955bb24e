use super::*;
use crate::destination::block::Builder;
use crate::destination::queue::{Queue, QueueLimits, WhenFull};
use crate::destination::settings::DestinationSettings;
use core::sync::atomic::{AtomicUsize, Ordering};
use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use taktwerk_types::{StatusCode, UtcTime};

const RETRY: Duration = Duration::from_millis(1);

/// Accepts everything, and counts the calls.
struct Takes(Arc<AtomicUsize>);

impl Sink for Takes {
    fn describe(&self) -> String {
        "takes all".to_owned()
    }

    fn send<'a>(&'a mut self, _: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(Taken::default()) })
    }
}

fn settings(queue: &Path) -> DestinationSettings {
    DestinationSettings {
        name: "d".to_owned(),
        include: Vec::new(),
        tags_line: 0,
        exclude: Vec::new(),
        nodes: Vec::new(),
        nodes_every: Duration::from_secs(1),
        every: true,
        queue: queue.to_owned(),
        limits: QueueLimits {
            bytes_max: 1 << 30,
            age_max: None,
            when_full: WhenFull::DropOldest,
            parked_max: 100,
            sync: false,
        },
        flush: RETRY,
        batch_max: 100,
        deadline: Duration::from_secs(60),
        retry: RETRY,
        retry_max: RETRY * 100,
    }
}

/// A queue with three records, optionally parked, and its sender. `sql` is applied to the file.
fn sending(folder: &Path, is_parked: bool, sql: &str) -> (Sending, Arc<AtomicUsize>) {
    let settings = settings(&folder.join("q.db"));
    let mut builder = Builder::default();
    let (name, time): (Arc<str>, _) = ("T".into(), UtcTime::from_ticks(1));
    for value in 0..3 {
        builder.push(0, &name, &value.into(), StatusCode::GOOD, time, time);
    }
    let queue = Queue::open(&settings.queue, settings.limits).unwrap();
    queue.append(&[builder.take().unwrap()], time).unwrap();
    if is_parked {
        let records = queue.front(100).unwrap().0.unwrap().records;
        queue.confirm(records[2].number, &records).unwrap();
    }
    drop(queue);
    rusqlite::Connection::open(&settings.queue).unwrap().execute_batch(sql).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let queue = Queue::open(&settings.queue, settings.limits).unwrap();
    let destination = Destination::with_queue(settings, "takes all".to_owned(), queue).unwrap();
    (Sending::new(destination, Box::new(Takes(Arc::clone(&asked)))), asked)
}

#[tokio::test]
async fn an_unwritable_queue_pauses_and_counts_nothing_as_sent() {
    for (is_parked, table) in [(false, "block"), (true, "parked")] {
        let folder = tempfile::tempdir().unwrap();
        let sql = format!(
            "CREATE TRIGGER full BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        );
        let (mut sending, asked) = sending(folder.path(), is_parked, &sql);
        for turn in 1..=3_u32 {
            sending.turn().await;
            assert_eq!(asked.load(Ordering::Relaxed), turn as usize, "{table}");
            assert_eq!(sending.pause, RETRY * 2_u32.pow(turn), "{table}: each pause is longer");
        }
        let seen = sending.destination.counters().snapshot();
        assert_eq!((seen.sent, seen.batches, seen.queued), (0, 0, 3), "{table}");
        assert!(seen.errors >= 3 && !seen.is_connected, "{seen:?}");
        let told = seen.last_error.unwrap_or_default();
        assert!(told.contains("the queue cannot be written; values are sent again"), "{told}");
    }
}

#[tokio::test]
async fn a_writable_queue_is_emptied() {
    for is_parked in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (mut sending, asked) = sending(folder.path(), is_parked, "");
        sending.turn().await;
        let seen = sending.destination.counters().snapshot();
        assert_eq!((asked.load(Ordering::Relaxed), seen.sent, seen.queued), (1, 3, 0), "{is_parked}");
        assert_eq!(sending.pause, RETRY);
    }
}

#[tokio::test]
async fn unreadable_parked_records_are_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    // The file is valid when opened, but parked records can neither be read nor removed.
    let sql = "UPDATE parked SET body = x'FF';
               CREATE TRIGGER full BEFORE DELETE ON parked BEGIN SELECT RAISE(ABORT, 'disk is full'); END";
    let (mut sending, asked) = sending(folder.path(), true, sql);
    assert!(sending.next().await.is_none());
    assert!(sending.parked_due.is_some(), "they are looked at again");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    // Nothing is parked, so nothing is due.
    let folder = tempfile::tempdir().unwrap();
    let (mut sending, _) = self::sending(folder.path(), false, "");
    assert!(sending.next().await.is_some());
    assert!(sending.parked_due.is_none());
}

/// While the disk is full, values wait in memory. Beyond that they are lost, and the state says so.
#[tokio::test]
async fn a_full_disk_is_survived_and_losses_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("q.db"));
    let queue = Queue::open(&settings.queue, settings.limits).unwrap();
    let destination = Destination::with_queue(settings, "d".to_owned(), queue).unwrap();
    let tapped = crate::destination::tap::Tap::add(&destination.tap());
    let (name, time): (Arc<str>, _) = ("T".into(), UtcTime::from_ticks(1));
    let push = |value: &str| tapped.push(&name, &value.into(), StatusCode::GOOD, (time, time), true);
    let full = "CREATE TRIGGER full BEFORE INSERT ON block BEGIN SELECT RAISE(ABORT, 'disk is full'); END";
    destination.queue().execute(full);
    push("a");
    destination.store_once();
    push("b");
    destination.store_once();
    push("not written yet");
    assert_eq!(destination.view().unwritten, 3);
    destination.store_once();
    assert_eq!(destination.view().unwritten, 3);
    let seen = destination.view().counters;
    assert_eq!((seen.accepted, seen.overrun, seen.loss.clone()), (0, 0, None), "{seen:?}");
    assert!(seen.last_error.unwrap().contains("disk is full"));
    destination.queue().execute("DROP TRIGGER full");
    push("c");
    destination.store_once();
    let values = |destination: &Destination| -> Vec<String> {
        let batch = destination.front(10).unwrap().0;
        batch.records.iter().map(|record| record.value.to_string()).collect()
    };
    assert_eq!(destination.view().unwritten, 0);
    let kept = values(&destination);
    assert_eq!(kept.len(), 4, "{kept:?}");
    assert!(
        kept.iter().zip(["a", "b", "not written yet", "c"]).all(|(kept, value)| kept.contains(value)),
        "in order: {kept:?}"
    );
    // More than the memory for waiting values.
    destination.queue().execute(full);
    for _ in 0..40 {
        push(&"x".repeat(1 << 20));
    }
    destination.store_once();
    let seen = destination.view().counters;
    assert!(seen.overrun > 0, "{seen:?}");
    assert!(seen.loss.unwrap().contains("the queue cannot be written"));
}

/// It is no sign of a full disk.
#[test]
fn blocks_that_cannot_be_read_are_counted_on_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "UPDATE block SET body = x'0102'";
    let (sending, _) = sending(folder.path(), false, sql);
    assert!(sending.destination.front(10).is_none());
    sending.destination.store_once();
    let seen = sending.destination.view().counters;
    assert_eq!((seen.damaged, seen.overrun, seen.loss), (3, 0, None));
    assert!(seen.last_error.unwrap().contains("cannot be read"));
}
