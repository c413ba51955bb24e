use super::*;
use crate::slot::Slot;
use taktwerk_types::Variant;

fn fresh(store: &SlotStore) -> SlotHandle {
    let share = store.allocate();
    let handle = store.handle(&share);
    store.release(share);
    handle
}

fn drain(store: &SlotStore, shard: usize) -> Vec<u32> {
    let pages = store.pages_from(0);
    let mut found = Vec::new();
    store.take_dirty_pages(shard, pages.len(), |page| {
        let pages = &pages;
        pages[page].take_dirty(shard, |at| found.push((page * PAGE_SLOTS + at) as u32));
    });
    found.sort_unstable();
    found
}

#[test]
fn a_slot_is_one_cache_line_and_its_handle_two_words() {
    assert_eq!(size_of::<Slot>(), 64);
    assert_eq!(size_of::<SlotHandle>(), 16);
}

#[test]
fn values_of_every_kind_are_stored() {
    let store = Arc::new(SlotStore::new(1, 4));
    let handle = fresh(&store);
    assert_eq!(handle.read().status, StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
    for value in [
        Variant::from(true),
        Variant::from(-1i8),
        Variant::from(-2i16),
        Variant::from(-3i32),
        Variant::from(-4i64),
        Variant::from(1.5f32),
        Variant::from(-1.5f64),
        Variant::from("text"),
        Variant::from(vec![1.0f64, 2.0]),
        Variant::from(UtcTime::from_ticks(5)),
        Variant::from(StatusCode::BAD_TIMEOUT),
        Variant::Empty,
    ] {
        handle.set(value.clone(), StatusCode::GOOD, UtcTime::from_ticks(1), UtcTime::from_ticks(2));
        assert_eq!(handle.read().value(), value);
    }
}

#[test]
fn an_update_loses_no_write_of_another_thread() {
    const TIMES: i32 = 2_000;
    let store = SlotStore::new(1, 1);
    let slot = fresh(&store);
    slot.set(Variant::from(vec![0, 0]), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    let count = |at: usize| {
        let slot = slot.clone();
        move || {
            let mut done = 0;
            while done < TIMES {
                let outcome = slot.update(StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL, |present| {
                    let mut numbers: Vec<i32> = present.try_into().unwrap();
                    numbers[at] += 1;
                    Ok(Variant::from(numbers))
                });
                // Refused only if the other thread always interfered.
                assert!(matches!(outcome, Ok(()) | Err(StatusCode::BAD_RESOURCE_UNAVAILABLE)));
                done += i32::from(outcome.is_ok());
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(count(0));
        scope.spawn(count(1));
    });
    assert_eq!(slot.read().value(), Variant::from(vec![TIMES, TIMES]));
    let refused = slot
        .update(StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL, |_| Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
    assert_eq!(refused, Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
    assert_eq!(slot.read().value(), Variant::from(vec![TIMES, TIMES]));
}

#[test]
fn changes_are_counted_and_repeats_are_not() {
    let store = Arc::new(SlotStore::new(1, 4));
    let handle = fresh(&store);
    let set = |value: Variant| {
        handle.set(value, StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
        handle.read().change
    };
    let first = set(1.0.into());
    assert_eq!(set(1.0.into()), first);
    assert_eq!(set(2.0.into()), first + 1);
    assert_eq!(set("a".into()), first + 2);
    assert_eq!(set("a".into()), first + 2);
    assert_eq!(set(f64::NAN.into()), first + 3);
    assert_eq!(set(f64::NAN.into()), first + 3);
}

#[test]
fn watching_shards_are_notified_once() {
    let store = Arc::new(SlotStore::new(3, 4));
    let handles: Vec<_> = (0..3000).map(|_| fresh(&store)).collect();
    for at in [0, 63, 64, 1023, 1024, 2999] {
        handles[at].set_watched(1, true);
    }
    for handle in handles.iter().chain(&handles) {
        handle.set(1.0.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    }
    assert_eq!(drain(&store, 0), []);
    assert_eq!(drain(&store, 1), [0, 63, 64, 1023, 1024, 2999]);
    assert_eq!(drain(&store, 1), []);
    handles[64].semantics_changed();
    assert_eq!(drain(&store, 1), [64]);
}

#[test]
fn a_slot_is_reused_only_without_shares() {
    let store = Arc::new(SlotStore::new(1, 4));
    let node = store.allocate();
    let index = node.index();
    let application = store.handle(&node);
    let item = application.share();
    store.handle(&node).close();
    store.release(node);
    assert_ne!(fresh(&store).index(), index);
    drop(application.clone());
    drop(application);
    assert_ne!(fresh(&store).index(), index);
    assert_eq!(store.free_slots(), 1);
    store.release(item);
    assert_eq!(store.free_slots(), 2);
    assert_eq!(store.allocate().index(), index);
    assert_eq!(store.free_slots(), 1, "it was freed once");
}

#[test]
fn a_closed_slot_accepts_no_values_until_it_is_reused() {
    let store = Arc::new(SlotStore::new(1, 4));
    let node = store.allocate();
    let late = store.handle(&node);
    store.handle(&node).close();
    store.release(node);
    late.set(1.0.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    let refused = late.update(StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL, |_| Ok(2.0.into()));
    assert_eq!(refused, Ok(()));
    assert_eq!((late.read().status, late.read().value()), (StatusCode::BAD_NODE_ID_UNKNOWN, Variant::Empty));
    drop(late);
    let next = fresh(&store);
    assert_eq!(next.read().status, StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
    next.set(1.0.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    assert_eq!(next.read().value(), Variant::from(1.0));
}

fn pop(store: &SlotStore, shard: usize) -> Option<(Variant, u32)> {
    store.pop_queued(shard).map(|queued| (queued.value.value(), queued.value.write))
}

#[test]
fn queued_values_are_handed_over_with_their_numbers_up_to_the_limit() {
    let store = Arc::new(SlotStore::new(1, 2));
    let handle = fresh(&store);
    handle.set_watched(0, true);
    let before = handle.set_queued(0, true).write;
    for value in 0..3 {
        handle.set(value.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    }
    for expected in [0, 1] {
        assert_eq!(pop(&store, 0), Some((Variant::from(expected), before + 1 + expected as u32)));
    }
    assert_eq!(pop(&store, 0), None);
    // A value that did not fit is found in the slot.
    assert_eq!(drain(&store, 0), [handle.index()]);
    let newest = handle.read();
    assert_eq!((newest.value(), newest.write), (Variant::from(2), before + 3));
    assert!(newest.is_after(before + 2) && !newest.is_after(before + 3));
}

#[test]
fn only_the_shards_that_want_every_write_get_it() {
    let store = Arc::new(SlotStore::new(3, 16));
    let handle = fresh(&store);
    let write = || handle.set(1.0.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    let lens = || [store.queued_len(0), store.queued_len(1), store.queued_len(2)];
    for shard in 0..3 {
        handle.set_watched(shard, true);
    }
    handle.set_queued(1, true);
    handle.set_queued(1, true);
    handle.set_queued(2, true);
    write();
    assert_eq!(lens(), [0, 1, 1]);
    handle.set_queued(1, false);
    handle.set_queued(1, false);
    write();
    assert_eq!(lens(), [0, 1, 2]);
    handle.set_queued(2, false);
    write();
    assert_eq!(lens(), [0, 1, 2]);
}

#[derive(Debug, Default)]
struct Bell(core::sync::atomic::AtomicU32);

impl Wake for Arc<Bell> {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_shard_is_woken_once_when_its_queue_is_half_full() {
    let store = Arc::new(SlotStore::new(1, 8));
    let bell = Arc::<Bell>::default();
    store.set_waker(0, Box::new(Arc::clone(&bell)));
    let handle = fresh(&store);
    handle.set_watched(0, true);
    handle.set_queued(0, true);
    let write = |count: u32| {
        for value in 0..count {
            handle.set(value.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
        }
        bell.0.load(Ordering::Relaxed)
    };
    assert_eq!((write(3), store.take_pressed(0)), (0, false));
    assert_eq!(write(6), 1);
    assert!(store.take_pressed(0) && !store.take_pressed(0));
    while store.pop_queued(0).is_some() {}
    assert_eq!(write(4), 2);
}

/// Values of concurrent writers of a slot are handed over in the order of their writes, without gaps.
#[test]
#[allow(clippy::disallowed_methods)] // tests the race
fn concurrent_writes_are_handed_over_in_order() {
    const WRITES: u32 = 20_000;
    let store = Arc::new(SlotStore::new(1, 4 * WRITES as usize));
    let handle = fresh(&store);
    handle.set_watched(0, true);
    let mut last = handle.set_queued(0, true).write;
    std::thread::scope(|scope| {
        for writer in 0..3i64 {
            let handle = &handle;
            scope.spawn(move || {
                for count in 0..i64::from(WRITES) {
                    let value = writer << 32 | count;
                    handle.set(value.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
                }
            });
        }
    });
    let mut counts = [0i64; 3];
    while let Some(queued) = store.pop_queued(0) {
        assert_eq!(queued.value.write, last + 1);
        last += 1;
        let value = queued.value.bits as i64;
        let count = &mut counts[(value >> 32) as usize];
        assert_eq!(value & 0xffff_ffff, *count);
        *count += 1;
    }
    assert_eq!(counts, [i64::from(WRITES); 3]);
}

#[test]
#[allow(clippy::disallowed_methods)] // tests the race
fn readers_never_see_a_torn_value() {
    let store = Arc::new(SlotStore::new(1, 4));
    let handle = fresh(&store);
    let zero = UtcTime::from_ticks(0);
    handle.set(0i64.into(), StatusCode::GOOD, zero, zero);
    let writer = handle.clone();
    let thread = std::thread::spawn(move || {
        for count in 1..200_000i64 {
            let time = UtcTime::from_ticks(count);
            writer.set(count.into(), StatusCode::GOOD, time, time);
        }
    });
    while !thread.is_finished() {
        let seen = handle.read();
        assert_eq!(seen.bits as i64, seen.source.ticks());
        assert_eq!(seen.source, seen.server);
    }
    thread.join().unwrap();
    assert_eq!(handle.read().value(), Variant::from(199_999i64));
}
