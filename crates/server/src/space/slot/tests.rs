use super::*;

fn drain(store: &SlotStore, shard: usize) -> Vec<u32> {
    let pages = store.pages_from(0);
    let mut found = Vec::new();
    store.take_dirty_pages(shard, pages.len(), |page| {
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
fn values_of_every_kind_come_back() {
    let store = Arc::new(SlotStore::new(1, 4));
    let handle = store.allocate();
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
    let slot = store.allocate();
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
                // Refused only when the other one was always quicker.
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
    let handle = store.allocate();
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
fn only_watching_shards_are_told_once() {
    let store = Arc::new(SlotStore::new(3, 4));
    let handles: Vec<_> = (0..3000).map(|_| store.allocate()).collect();
    for at in [0, 63, 64, 1023, 1024, 2999] {
        handles[at].set_watched(1, true);
    }
    for handle in handles.iter().chain(&handles) {
        handle.set(1.0.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    }
    assert_eq!(drain(&store, 0), []);
    assert_eq!(drain(&store, 1), [0, 63, 64, 1023, 1024, 2999]);
    assert_eq!(drain(&store, 1), []);
    handles[64].touch(1);
    assert_eq!(drain(&store, 1), [64]);
}

#[test]
fn a_slot_serves_another_node_only_when_nobody_holds_it() {
    let store = Arc::new(SlotStore::new(1, 4));
    let handle = store.allocate();
    let index = handle.index();
    let application = handle.clone();
    handle.set_watched(0, true);
    store.disown(index);
    drop(handle);
    assert_ne!(store.allocate().index(), index);
    application.set_watched(0, false);
    assert_ne!(store.allocate().index(), index);
    drop(application);
    assert_eq!(store.allocate().index(), index);
}

#[test]
fn queued_values_are_handed_over_and_overflow_is_told() {
    let store = Arc::new(SlotStore::new(1, 2));
    let handle = store.allocate();
    handle.set_watched(0, true);
    handle.set_queued(true);
    for value in 0..3 {
        handle.set(value.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    }
    for expected in [0, 1] {
        let Some(QueuedChange::Value { value, .. }) = store.pop_queued(0) else { panic!("no value") };
        assert_eq!(value.value(), Variant::from(expected));
    }
    assert!(store.pop_queued(0).is_none());
    assert!(store.take_overflowed(0) && !store.take_overflowed(0));
}

#[test]
#[allow(clippy::disallowed_methods)] // the race is what is tested
fn readers_never_see_a_torn_value() {
    let store = Arc::new(SlotStore::new(1, 4));
    let handle = store.allocate();
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
