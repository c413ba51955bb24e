use super::*;
use crate::destination::block::Builder;
use std::sync::Arc;
use taktwerk_types::StatusCode;

const LIMITS: QueueLimits = QueueLimits {
    bytes_max: 1 << 30,
    age_max: None,
    when_full: WhenFull::DropOldest,
    parked_max: 100,
    sync: false,
};

fn block(values: core::ops::Range<i32>, time: i64) -> Block {
    let mut builder = Builder::default();
    let name: Arc<str> = "T".into();
    let time = UtcTime::from_ticks(time);
    for value in values {
        builder.push(0, &name, &value.into(), StatusCode::GOOD, time, time);
    }
    builder.take().unwrap()
}

fn front(queue: &Queue, most: usize) -> Vec<(u64, i32)> {
    let batch = queue.front(most).unwrap().0;
    let records = batch.into_iter().flat_map(|batch| batch.records);
    records.map(|record| (record.number, record.value.as_f64().unwrap() as i32)).collect()
}

#[test]
fn only_the_owner_can_read_a_new_queue() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let queue = Queue::open(&folder.path().join("new/q.db"), LIMITS).unwrap();
    queue.append(&[block(0..3, 1)], UtcTime::from_ticks(1)).unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path().join("new")).unwrap().map(Result::unwrap).collect();
    let modes: Vec<u32> =
        files.iter().map(|file| file.metadata().unwrap().permissions().mode() & 0o777).collect();
    assert!(modes.len() >= 2 && modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
}

#[test]
fn records_stay_in_order_with_their_numbers_until_they_are_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/q.db");
    let now = UtcTime::from_ticks(100);
    let queue = Queue::open(&path, LIMITS).unwrap();
    assert!(front(&queue, 10).is_empty());
    let outcome = queue.append(&[block(0..3, 1), block(3..6, 2)], now).unwrap();
    assert_eq!(outcome, Outcome { accepted: 6, ..Outcome::default() });
    assert_eq!(front(&queue, 3), [(1, 0), (2, 1), (3, 2)]);
    assert_eq!(front(&queue, 6).len(), 6);
    // Above the records that a batch does not contain, too.
    assert_eq!(queue.front(3).unwrap().0.unwrap().next, 7);
    // A second process is rejected.
    assert!(matches!(Queue::open(&path, LIMITS), Err(QueueError::Locked { .. })));
    queue.confirm(3, &[]).unwrap();
    let key = queue.front(1).unwrap().0.map(|batch| batch.key(&batch.records[0])).unwrap();
    drop(queue);
    let queue = Queue::open(&path, LIMITS).unwrap();
    let again = queue.front(1).unwrap().0.map(|batch| batch.key(&batch.records[0])).unwrap();
    assert_eq!(again, key);
    assert_eq!(queue.size().unwrap().oldest, Some(UtcTime::from_ticks(2)));
    queue.confirm(6, &[]).unwrap();
    assert_eq!(queue.size().unwrap(), Size::default());
    drop(queue);
    // Numbers continue, even after the queue was empty.
    let queue = Queue::open(&path, LIMITS).unwrap();
    queue.append(&[block(6..7, 3)], now).unwrap();
    // The queue was opened again twice.
    let number = 2 * (LOST_MAX as u64 + 1);
    assert_eq!(front(&queue, 10), [(number, 6)]);
    drop(queue);
    let limits = QueueLimits { sync: true, ..LIMITS };
    let queue = Queue::open(&path, limits).unwrap();
    queue.append(&[block(7..8, 3)], now).unwrap();
    assert_eq!(front(&queue, 10)[1], (number + 1, 7), "nothing is lost with sync");
}

#[test]
fn numbers_of_records_lost_in_a_power_failure_are_not_reused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.db");
    let now = UtcTime::from_ticks(100);
    Queue::open(&path, LIMITS).unwrap().append(&[block(0..6, 1)], now).unwrap();
    for _ in 0..2 {
        let queue = Queue::open(&path, LIMITS).unwrap();
        // Only the content at the opening of the queue is surely on disk.
        let files = ["q.db", "q.db-wal"].map(|name| folder.path().join(name));
        let on_disk = files.clone().map(|file| std::fs::read(file).unwrap_or_default());
        queue.append(&[block(10..13, 2)], now).unwrap();
        let sent = front(&queue, 100);
        drop(queue);
        for (file, bytes) in files.iter().zip(on_disk) {
            std::fs::write(file, bytes).unwrap();
        }
        let queue = Queue::open(&path, LIMITS).unwrap();
        queue.append(&[block(20..23, 3)], now).unwrap();
        let used = |number| sent.iter().any(|(other, value)| *other == number && (10..20).contains(value));
        let new: Vec<u64> = front(&queue, 100).into_iter().filter(|it| it.1 >= 20).map(|it| it.0).collect();
        assert!(new.len() >= 3 && !new.iter().any(|number| used(*number)), "{new:?} {sent:?}");
    }
}

/// A destination was changed while its last batch was sent, and both have sent it.
#[test]
fn a_batch_may_be_confirmed_twice() {
    let folder = tempfile::tempdir().unwrap();
    let now = UtcTime::from_ticks(100);
    let older = Queue::open(&folder.path().join("q.db"), LIMITS).unwrap();
    let newer = older.with_limits(LIMITS).unwrap();
    older.append(&[block(0..4, 1)], now).unwrap();
    let batch = older.front(10).unwrap().0.unwrap();
    let parked = batch.records[..2].to_vec();
    newer.confirm(4, &parked).unwrap();
    older.confirm(4, &parked).unwrap();
    let size = newer.size().unwrap();
    assert_eq!((size.records, size.parked), (2, 2));
    let batch = newer.front_parked(10).unwrap().0.unwrap();
    assert_eq!(batch.records.len(), 2);
    newer.confirm_parked(&batch, &HashSet::new()).unwrap();
    assert_eq!(newer.size().unwrap(), Size::default());
    // What was sent meanwhile is not parked again, behind newer values.
    older.confirm(4, &parked).unwrap();
    assert_eq!(newer.size().unwrap(), Size::default());
    assert!(!newer.has_parked());
}

#[test]
fn a_block_may_be_confirmed_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.db");
    let now = UtcTime::from_ticks(100);
    let queue = Queue::open(&path, LIMITS).unwrap();
    queue.append(&[block(0..10, 1), block(10..20, 2)], now).unwrap();
    assert_eq!(front(&queue, 3), [(1, 0), (2, 1), (3, 2)]);
    queue.confirm(3, &[]).unwrap();
    assert_eq!(queue.size().unwrap().records, 17);
    queue.confirm(5, &[]).unwrap();
    assert_eq!((front(&queue, 2), queue.size().unwrap().records), (vec![(6, 5), (7, 6)], 15));
    drop(queue);
    let queue = Queue::open(&path, LIMITS).unwrap();
    assert_eq!((front(&queue, 6).len(), queue.size().unwrap().records), (6, 15));
    queue.confirm(12, &[]).unwrap();
    assert_eq!((front(&queue, 1), queue.size().unwrap().records), (vec![(13, 12)], 8));
    drop(queue);
    // Only queued records are dropped.
    let limits = QueueLimits { bytes_max: block(0..10, 1).body.len() as u64, ..LIMITS };
    let queue = Queue::open(&path, limits).unwrap();
    let outcome = queue.append(&[block(20..30, 3)], now).unwrap();
    assert_eq!((outcome.evicted, outcome.accepted, queue.size().unwrap().records), (8, 10, 10));
    queue.confirm(front(&queue, 100).last().unwrap().0, &[]).unwrap();
    assert_eq!(queue.size().unwrap(), Size::default());
}

#[test]
fn a_full_queue_drops_as_configured() {
    let len = block(0..10, 1).body.len() as u64;
    for (when_full, left) in [(WhenFull::DropOldest, 10..30), (WhenFull::DropNewest, 0..20)] {
        let folder = tempfile::tempdir().unwrap();
        let limits = QueueLimits { bytes_max: 2 * len, when_full, ..LIMITS };
        let queue = Queue::open(&folder.path().join("q.db"), limits).unwrap();
        let now = UtcTime::from_ticks(100);
        queue.append(&[block(0..10, 1), block(10..20, 2)], now).unwrap();
        let outcome = queue.append(&[block(20..30, 3)], now).unwrap();
        assert_eq!(outcome.evicted, 10);
        assert_eq!(queue.size().unwrap().bytes, 2 * len);
        let values: Vec<i32> = front(&queue, 100).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, left.collect::<Vec<_>>(), "{when_full:?}");
    }
}

#[test]
fn old_records_expire_and_damaged_blocks_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.db");
    let limits = QueueLimits { age_max: Some(Duration::from_micros(1)), ..LIMITS };
    let queue = Queue::open(&path, limits).unwrap();
    queue.append(&[block(0..4, 100)], UtcTime::from_ticks(100)).unwrap();
    let outcome = queue.append(&[block(4..6, 120)], UtcTime::from_ticks(120)).unwrap();
    assert_eq!((outcome.accepted, outcome.expired), (2, 4));
    queue.lock().connection.execute("UPDATE block SET body = x'0102'", []).unwrap();
    let (batch, damaged) = queue.front(10).unwrap();
    assert_eq!((batch, damaged), (None, 2));
    assert_eq!(queue.size().unwrap().records, 0);
}

#[test]
fn a_file_that_is_not_a_queue_is_rejected_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.db");
    std::fs::write(&path, "no database at all, but long enough to be looked at").unwrap();
    let error = Queue::open(&path, LIMITS).unwrap_err().to_string();
    assert!(error.contains("q.db: ") && error.contains("set `queue`"), "{error}");
}

fn of_tag(tag: &str, values: core::ops::Range<i32>) -> Block {
    let mut builder = Builder::default();
    let name: Arc<str> = tag.into();
    let time = UtcTime::from_ticks(1);
    for value in values {
        builder.push(0, &name, &value.into(), StatusCode::GOOD, time, time);
    }
    builder.take().unwrap()
}

fn parked(queue: &Queue, most: usize) -> Vec<(String, u64)> {
    let batch = queue.front_parked(most).unwrap().0;
    let records = batch.into_iter().flat_map(|batch| batch.records);
    records.map(|record| (record.tag.to_string(), record.number)).collect()
}

#[test]
fn parked_records_hold_back_later_records_of_their_tags() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.db");
    let now = UtcTime::from_ticks(100);
    let limits = QueueLimits { parked_max: 4, ..LIMITS };
    let queue = Queue::open(&path, limits).unwrap();
    queue.append(&[of_tag("A", 0..2), of_tag("B", 0..2), of_tag("C", 0..2), of_tag("A", 2..5)], now).unwrap();
    let batch = queue.front(6).unwrap().0.unwrap();
    let (batch, held) = queue.split(batch);
    assert!(held.is_empty());
    // A and C are unavailable.
    let away: Vec<Record> = batch.records.iter().filter(|record| &*record.tag != "B").cloned().collect();
    queue.confirm(6, &away[..3]).unwrap();
    assert!(!queue.is_parking_full());
    let size = queue.size().unwrap();
    assert_eq!((size.records, size.parked, size.oldest), (6, 3, Some(UtcTime::from_ticks(1))));
    let (batch, held) = queue.split(queue.front(10).unwrap().0.unwrap());
    assert_eq!((batch.records.len(), held.len()), (0, 3), "later values of A stay behind the parked ones");
    queue.confirm(9, &held).unwrap();
    assert!(queue.is_parking_full());
    let key = queue.front_parked(1).unwrap().0.map(|batch| batch.key(&batch.records[0]));
    assert_eq!(key, Some(format!("{}-1", queue.id)));
    // Everything survives a kill of the process.
    drop(queue);
    let queue = Queue::open(&path, limits).unwrap();
    assert_eq!(queue.size().unwrap().parked, 6);
    // Tags take turns.
    let a = |number| ("A".to_owned(), number);
    let c = |number| ("C".to_owned(), number);
    assert_eq!(parked(&queue, 4), [a(1), a(2), c(5)]);
    let first = queue.front_parked(1).unwrap().0.unwrap();
    assert!(first.is_parked);
    assert_eq!(first.records[0].number, 1);
    queue.confirm_parked(&first, &HashSet::from([1])).unwrap();
    assert_eq!(parked(&queue, 1), [c(5)]);
    let second = queue.front_parked(1).unwrap().0.unwrap();
    queue.confirm_parked(&second, &HashSet::new()).unwrap();
    assert_eq!(parked(&queue, 10), [a(1), a(2), a(7), a(8), a(9)]);
    let all = queue.front_parked(10).unwrap().0.unwrap();
    queue.confirm_parked(&all, &HashSet::from([8, 9])).unwrap();
    assert_eq!(parked(&queue, 10), [a(8), a(9)]);
    let rest = queue.front_parked(10).unwrap().0.unwrap();
    queue.confirm_parked(&rest, &HashSet::new()).unwrap();
    assert_eq!((parked(&queue, 10), queue.size().unwrap()), (vec![], Size::default()));
}

#[test]
fn parked_records_expire_take_space_and_may_be_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let limits = QueueLimits { age_max: Some(Duration::from_micros(1)), ..LIMITS };
    let queue = Queue::open(&folder.path().join("q.db"), limits).unwrap();
    queue.append(&[of_tag("A", 0..3)], UtcTime::from_ticks(1)).unwrap();
    let batch = queue.front(10).unwrap().0.unwrap();
    queue.confirm(3, &batch.records).unwrap();
    let bytes = queue.size().unwrap().bytes;
    assert!(bytes > 0);
    queue.lock().connection.execute("UPDATE parked SET body = x'0102' WHERE number = 2", []).unwrap();
    let (front, damaged) = queue.front_parked(10).unwrap();
    assert_eq!((front.unwrap().records.len(), damaged, queue.size().unwrap().parked), (2, 1, 2));
    let outcome = queue.append(&[], UtcTime::from_ticks(100)).unwrap();
    assert_eq!((outcome.expired, queue.size().unwrap().records), (2, 0));
    // Parked records count for the size limit.
    let full = QueueLimits { bytes_max: 3 * bytes / 2, ..LIMITS };
    let queue = Queue::open(&folder.path().join("full.db"), full).unwrap();
    queue.append(&[of_tag("A", 0..3)], UtcTime::from_ticks(1)).unwrap();
    let batch = queue.front(10).unwrap().0.unwrap();
    queue.confirm(3, &batch.records).unwrap();
    assert!(queue.is_parking_full(), "a quarter of the queue is parked");
    let outcome = queue.append(&[of_tag("B", 0..3), of_tag("B", 3..100)], UtcTime::from_ticks(1)).unwrap();
    assert_eq!((outcome.accepted, outcome.evicted), (0, 100), "{bytes}");
}

#[test]
fn expired_records_are_told_when_the_disk_has_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let limits = QueueLimits { age_max: Some(Duration::from_secs(1)), ..LIMITS };
    let queue = Queue::open(&folder.path().join("q.db"), limits).unwrap();
    queue.append(&[block(0..2, 1)], UtcTime::from_ticks(1)).unwrap();
    let records = queue.front(10).unwrap().0.unwrap().records;
    queue.confirm(2, &records).unwrap();
    let later = 100_000_000;
    queue
        .execute("CREATE TRIGGER full BEFORE INSERT ON block BEGIN SELECT RAISE(ABORT, 'disk is full'); END");
    queue.append(&[block(2..3, later)], UtcTime::from_ticks(later)).unwrap_err();
    queue.execute("DROP TRIGGER full");
    let outcome = queue.append(&[block(2..3, later)], UtcTime::from_ticks(later)).unwrap();
    assert_eq!(outcome, Outcome { accepted: 1, expired: 2, ..Outcome::default() });
}
