//! Model checking of the slots under every interleaving that the memory model allows, with up to three preemptions
//! (`cargo xtask loom`).
//!
//! Each model checks one guarantee of the slots. Pages have two slots here; `arc_swap` and `crossbeam` are trusted
//! ([`crate::sync`]).

use super::*;
use loom::thread;

/// Preemptions per run. More find no further errors in code of this size, and take minutes.
const PREEMPTIONS_MAX: usize = 3;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(model);
}

fn store(queue_len: usize) -> Arc<SlotStore> {
    Arc::new(SlotStore::new(1, queue_len))
}

fn fresh(store: &SlotStore) -> SlotHandle {
    let share = store.allocate();
    let handle = store.handle(&share);
    store.release(share);
    handle
}

/// Writes a value whose parts all contain the same number.
fn put(slot: &SlotHandle, number: i64) {
    let time = UtcTime::from_ticks(number);
    slot.set(Variant::from(number), StatusCode(number as u32), time, time);
}

fn put_long(slot: &SlotHandle, number: i64) {
    let time = UtcTime::from_ticks(number);
    slot.set(Variant::from(vec![number; 2]), StatusCode(number as u32), time, time);
}

/// The number in all parts of a copy.
fn number(copy: &Snapshot) -> i64 {
    let value = match copy.value() {
        Variant::Int64(value) => value,
        Variant::Array(array) => match array.values {
            taktwerk_types::ArrayValues::Int64(values) => {
                assert_eq!(values.len(), 2);
                assert_eq!(values[0], values[1]);
                values[0]
            }
            other => panic!("an array of something else: {other:?}"),
        },
        other => panic!("a value that was never written: {other:?}"),
    };
    let parts = (i64::from(copy.status.0), copy.source.ticks(), copy.server.ticks());
    assert_eq!(parts, (value, value, value), "parts of different writes");
    value
}

/// The dirty slots of the shard.
fn drain(store: &SlotStore) -> Vec<u32> {
    let pages = store.pages_from(0);
    let mut found = Vec::new();
    store.take_dirty_pages(0, pages.len(), |page| {
        pages[page].take_dirty(0, |at| found.push((page * PAGE_SLOTS + at) as u32));
    });
    found
}

#[test]
fn copies_are_consistent() {
    check(|| {
        let store = store(1);
        let slot = fresh(&store);
        put(&slot, 1);
        let writer = slot.clone();
        let writing = thread::spawn(move || put(&writer, 2));
        let copy = slot.read();
        assert!(matches!(number(&copy), 1 | 2));
        let scalar = slot.page.read_scalar(slot.index).unwrap();
        let parts = (scalar.bits as i64, i64::from(scalar.status.0), scalar.source.ticks());
        assert!(matches!(parts, (1, 1, 1) | (2, 2, 2)), "parts of different writes: {parts:?}");
        assert!(parts.0 >= number(&copy), "an older value after a newer one");
        writing.join().unwrap();
        assert_eq!(number(&slot.read()), 2);
    });
}

#[test]
fn copies_of_long_values_are_consistent() {
    check(|| {
        let store = store(1);
        let slot = fresh(&store);
        put_long(&slot, 1);
        let writer = slot.clone();
        let writing = thread::spawn(move || {
            put(&writer, 2);
            put_long(&writer, 3);
        });
        let copy = slot.read();
        assert!(matches!(number(&copy), 1..=3));
        writing.join().unwrap();
        assert_eq!(number(&slot.read()), 3);
    });
}

#[test]
fn writers_are_serialized() {
    check(|| {
        let store = store(1);
        let slot = fresh(&store);
        put(&slot, 1);
        let before = slot.read().write;
        let writer = slot.clone();
        let writing = thread::spawn(move || put(&writer, 2));
        put_long(&slot, 3);
        writing.join().unwrap();
        let after = slot.read();
        assert!(matches!(number(&after), 2 | 3));
        assert_eq!(after.write, before + 2, "each write has its number");
    });
}

#[test]
fn an_update_loses_no_write() {
    check(|| {
        let store = store(1);
        let slot = fresh(&store);
        slot.set(Variant::from(0i64), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
        let add = |slot: &SlotHandle, more: i64| {
            slot.update(StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL, |value| match value {
                Variant::Int64(value) => Ok(Variant::from(value + more)),
                other => panic!("a value that was never written: {other:?}"),
            })
        };
        let writer = slot.clone();
        let writing = thread::spawn(move || add(&writer, 1));
        assert_eq!(add(&slot, 10), Ok(()));
        assert_eq!(writing.join().unwrap(), Ok(()));
        assert_eq!(slot.read().value(), Variant::from(11i64));
    });
}

#[test]
fn a_shard_that_starts_to_watch_misses_no_write() {
    check(|| {
        let store = store(1);
        let slot = fresh(&store);
        put(&slot, 1);
        let writer = slot.clone();
        let writing = thread::spawn(move || put(&writer, 2));
        let mut known = number(&slot.set_watched(0, true));
        if !drain(&store).is_empty() {
            known = number(&slot.read());
        }
        writing.join().unwrap();
        if !drain(&store).is_empty() {
            known = number(&slot.read());
        }
        assert_eq!(known, 2, "the shard was not told");
    });
}

#[test]
fn a_shard_that_has_stopped_watching_is_not_notified() {
    check(|| {
        let store = store(1);
        let slot = fresh(&store);
        slot.set_watched(0, true);
        let writer = slot.clone();
        let writing = thread::spawn(move || {
            put(&writer, 1);
            writer.read().write
        });
        let last = slot.set_watched(0, false);
        let written = writing.join().unwrap();
        let told = !drain(&store).is_empty();
        assert!(last.write < written || told, "it was watching when the value was written");
        put(&slot, 2);
        assert!(drain(&store).is_empty(), "it does not watch any more");
    });
}

#[test]
fn marks_are_never_lost() {
    check(|| {
        let store = store(1);
        // On two pages, so that both levels are marked.
        let slots = [fresh(&store), fresh(&store), fresh(&store)];
        let [first, _, second] = &slots;
        for slot in [first, second] {
            put(slot, 1);
            slot.set_watched(0, true);
        }
        let (one, two) = (first.clone(), second.clone());
        let writing = [thread::spawn(move || put(&one, 2)), thread::spawn(move || put(&two, 2))];
        let mut known = [1; 3];
        let mut turn = || {
            for index in drain(&store) {
                known[index as usize] = number(&slots[index as usize].read());
            }
        };
        turn();
        for writing in writing {
            writing.join().unwrap();
        }
        turn();
        assert_eq!((known[0], known[2]), (2, 2), "a mark was lost, or came before its value");
    });
}

#[test]
fn every_write_is_in_the_copy_or_handed_over() {
    check(|| {
        let store = store(4);
        let slot = fresh(&store);
        put(&slot, 1);
        let writer = slot.clone();
        let writing = thread::spawn(move || {
            put(&writer, 2);
            put(&writer, 3);
        });
        slot.set_watched(0, true);
        let copy = slot.set_queued(0, true);
        writing.join().unwrap();
        let mut last = copy.write;
        while let Some(queued) = store.pop_queued(0) {
            number(&queued.value);
            if queued.value.is_after(last) {
                assert_eq!(queued.value.write, last + 1, "a write is missing");
                last = queued.value.write;
            }
        }
        assert_eq!(last, slot.read().write, "the newest write is missing");
    });
}

#[test]
fn writers_hand_over_in_the_order_of_their_writes() {
    check(|| {
        let store = store(4);
        let slot = fresh(&store);
        slot.set_watched(0, true);
        let mut last = slot.set_queued(0, true).write;
        let writers = [slot.clone(), slot.clone()];
        let writing = writers.map(|writer| thread::spawn(move || put(&writer, 7)));
        let mut take = |store: &SlotStore| {
            while let Some(queued) = store.pop_queued(0) {
                assert_eq!(queued.value.write, last + 1, "out of order");
                last = queued.value.write;
            }
        };
        take(&store);
        for writing in writing {
            writing.join().unwrap();
        }
        take(&store);
        assert_eq!(last, slot.read().write);
    });
}

#[test]
fn every_write_of_a_recorded_slot_is_taken_in_order() {
    check(|| {
        let store = Arc::new(SlotStore::with_recorder(1, 1, Some(4)));
        let recorder = store.recorder().unwrap();
        let slot = fresh(&store);
        let mut last = slot.set_recorded(recorder, true).write;
        let writer = slot.clone();
        let writing = thread::spawn(move || {
            put(&writer, 1);
            put(&writer, 2);
        });
        let queued = |store: &SlotStore, last: &mut u32| {
            while let Some(queued) = store.pop_queued(recorder) {
                if queued.value.is_after(*last) {
                    assert_eq!(queued.value.write, *last + 1, "a write is missing");
                    *last = queued.value.write;
                }
            }
        };
        let mut turn = || {
            queued(&store, &mut last);
            let pages = store.pages_from(0);
            let mut is_dirty = false;
            store.take_dirty_pages(recorder, pages.len(), |page| {
                pages[page].take_dirty(recorder, |_| is_dirty = true);
            });
            if is_dirty {
                let present = slot.read();
                if present.write != last + 1 {
                    queued(&store, &mut last);
                    assert!(!present.is_after(last + 1), "a write is missing");
                }
                last = last.max(present.write);
                slot.page.note_taken(slot.index, present.write);
            }
        };
        turn();
        writing.join().unwrap();
        turn();
        assert_eq!(last, slot.read().write, "the newest value is lost");
    });
}

#[test]
fn a_full_queue_leaves_the_newest_value_dirty() {
    check(|| {
        let store = store(1);
        let slot = fresh(&store);
        put(&slot, 1);
        slot.set_watched(0, true);
        let mut known = slot.set_queued(0, true);
        let writer = slot.clone();
        let writing = thread::spawn(move || {
            put(&writer, 2);
            put(&writer, 3);
        });
        let mut turn = || {
            while let Some(queued) = store.pop_queued(0) {
                if queued.value.is_after(known.write) {
                    known = queued.value;
                }
            }
            if !drain(&store).is_empty() {
                let present = slot.read();
                if present.is_after(known.write) {
                    known = present;
                }
            }
        };
        turn();
        writing.join().unwrap();
        turn();
        assert_eq!(number(&known), 3, "the newest value is lost");
    });
}

#[test]
fn a_half_full_queue_wakes_its_shard() {
    check(|| {
        let store = store(2);
        let slot = fresh(&store);
        slot.set_watched(0, true);
        slot.set_queued(0, true);
        let writer = slot.clone();
        let writing = thread::spawn(move || {
            put(&writer, 1);
            put(&writer, 2);
        });
        store.take_pressed(0);
        while store.pop_queued(0).is_some() {}
        writing.join().unwrap();
        let is_pressed = store.queued_len(0) * 2 >= 2;
        assert!(!is_pressed || store.take_pressed(0), "half full, and the shard sleeps");
    });
}

#[test]
fn the_last_share_frees_the_slot_once() {
    check(|| {
        let store = store(1);
        let first = fresh(&store);
        let (second, third) = (first.clone(), first.share());
        let other = Arc::clone(&store);
        let threads = [thread::spawn(move || drop(second)), thread::spawn(move || other.release(third))];
        drop(first);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(store.free_slots(), 1);
    });
}

#[test]
fn a_slot_is_reused_only_without_shares() {
    check(|| {
        let store = store(1);
        let old = fresh(&store);
        put(&old, 1);
        let index = old.index();
        let leaving = thread::spawn(move || {
            // A share still reads the value of its own node.
            assert_eq!(number(&old.read()), 1);
            old.close();
            drop(old);
        });
        let share = store.allocate();
        let new = store.handle(&share);
        assert_eq!(new.read().status, StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
        put(&new, 2);
        assert_eq!(number(&new.read()), 2);
        leaving.join().unwrap();
        assert_eq!(number(&new.read()), 2, "the old node wrote into the new one's slot");
        assert_eq!(store.free_slots(), usize::from(share.index() != index));
    });
}

#[test]
fn a_closed_slot_accepts_no_value() {
    check(|| {
        let store = store(1);
        let slot = fresh(&store);
        put(&slot, 1);
        let writer = slot.clone();
        let writing = thread::spawn(move || put(&writer, 2));
        slot.close();
        let closed = slot.read();
        assert_eq!(closed.status, StatusCode::BAD_NODE_ID_UNKNOWN);
        writing.join().unwrap();
        let last = slot.read();
        assert_eq!((last.status, last.write), (closed.status, closed.write));
    });
}
