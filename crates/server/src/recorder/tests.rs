//! Recording of writes.

use super::*;
use crate::event::NewEvent;
use crate::event::bus::RING_LEN;
use crate::history::{HistoryStore, MemoryStore};
use crate::space::NodeSpec;
use crate::space::build::Under;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_types::{NodeId, QualifiedName};

fn space(queue: usize) -> Arc<AddressSpace> {
    Arc::new(AddressSpace::with_recorder(1, 16, queue, "urn:test"))
}

fn time(at: i64) -> UtcTime {
    UtcTime::from_ticks(1_000_000_000 + at)
}

fn add(space: &AddressSpace, number: u32) -> NodeId {
    let id = NodeId::numeric(1, number);
    let name = QualifiedName::new(1, format!("v{number}"));
    let under = Under {
        parent: &object_ids::OBJECTS_FOLDER.into(),
        reference_type: &reference_type_ids::HAS_COMPONENT.into(),
        type_definition: None,
    };
    space.add_node(NodeSpec::variable(id.clone(), name, 11u32.into(), None), under, time(0)).unwrap();
    id
}

fn taken(recorder: &mut Recorder) -> Vec<(i64, Option<f64>)> {
    let mut out = Vec::new();
    recorder.take(time(0), &mut out, || ());
    out.iter().map(|one| (one.value.source.ticks() - time(0).ticks(), one.value.value.as_f64())).collect()
}

#[test]
fn every_write_of_a_recorded_variable_is_taken_once() {
    let space = space(64);
    let mut recorder = Recorder::new(&space).unwrap();
    let store = Arc::new(MemoryStore::new(10)) as Arc<dyn HistoryStore>;
    space.set_history_store(store);
    let (one, other) = (add(&space, 1), add(&space, 2));
    let handle = space.variable(&one).unwrap();
    handle.set_at(1.0, time(1));
    space.historize(&one, true, Rule::default(), time(1)).unwrap();
    assert_eq!(taken(&mut recorder), [(1, Some(1.0))], "the present value comes first");
    space.variable(&other).unwrap().set_at(9.0, time(2));
    handle.set_at(2.0, time(2));
    handle.set_at(2.0, time(3));
    assert_eq!(taken(&mut recorder), [(2, Some(2.0)), (3, Some(2.0))]);
    assert_eq!(taken(&mut recorder), []);
    let rule = Rule { on_change: true, ..Rule::default() };
    space.historize(&one, true, rule, time(1)).unwrap();
    handle.set_at(2.0, time(4));
    handle.set_at(3.0, time(5));
    assert_eq!(taken(&mut recorder), [(5, Some(3.0))]);
    // Written before the recorder knows the variable, or its new rule.
    space.historize(&other, false, Rule::default(), time(5)).unwrap();
    space.historize(&one, true, Rule::default(), time(5)).unwrap();
    for at in 6..9 {
        handle.set_at(4.0, time(at));
        space.variable(&other).unwrap().set_at(5.0, time(at));
    }
    space.historize(&one, true, Rule::default(), time(8)).unwrap();
    let mut found = taken(&mut recorder);
    found.sort_by_key(|(at, value)| (value.map(f64::to_bits), *at));
    let of = |value: f64| (6..9).map(move |at| (at, Some(value)));
    assert_eq!(found, of(4.0).chain(of(5.0)).chain([(2, Some(9.0))]).collect::<Vec<_>>());
    assert_eq!((recorder.variables(), recorder.lost()), (2, 0));
}

thread_local! {
    /// What other threads do when the recorder yields.
    static MEANWHILE: core::cell::RefCell<Option<Box<dyn FnOnce()>>> = const { core::cell::RefCell::new(None) };
}

fn yield_now() {
    let meanwhile = MEANWHILE.with_borrow_mut(Option::take);
    meanwhile.into_iter().for_each(|act| act());
}

/// The recorder meets writes of variables that were not recorded yet when it began.
#[test]
fn no_write_is_lost_when_recording_starts_during_a_take() {
    for (queued, writes) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
        let space = space(64);
        let mut recorder = Recorder::new(&space).unwrap();
        space.set_history_store(Arc::new(MemoryStore::new(10)));
        let (one, other) = (add(&space, 1), add(&space, 2));
        space.historize(&one, false, Rule::default(), time(0)).unwrap();
        taken(&mut recorder);
        let handle = space.variable(&one).unwrap();
        // It yields before it examines slots, and before the queue if that is not empty.
        (0..=i64::from(queued)).for_each(|at| handle.set_at(7.0, time(at)));
        let begins = Arc::clone(&space);
        MEANWHILE.set(Some(Box::new(move || {
            let handle = begins.variable(&other).unwrap();
            handle.set_at(0.0, time(10));
            begins.historize(&other, false, Rule::default(), time(0)).unwrap();
            (1..=writes).for_each(|at| handle.set_at(at as f64, time(10 + at)));
        })));
        let mut out = Vec::new();
        for _ in 0..3 {
            recorder.take(time(0), &mut out, yield_now);
        }
        let of_other: Vec<_> = out
            .iter()
            .filter(|one| &*one.node == "nsu=urn:test;i=2")
            .map(|one| one.value.value.as_f64())
            .collect();
        let expected: Vec<_> = (0..=writes).map(|at| Some(at as f64)).collect();
        assert_eq!(of_other, expected, "queued: {queued}");
        assert_eq!(recorder.lost(), 0);
    }
}

/// A Variable that waits for its first value has none, even if its type is known.
#[test]
fn nothing_is_recorded_before_the_first_value() {
    let space = space(64);
    let mut recorder = Recorder::new(&space).unwrap();
    space.set_history_store(Arc::new(MemoryStore::new(10)));
    for (number, status) in [(1, StatusCode::GOOD), (2, StatusCode::BAD_WAITING_FOR_INITIAL_DATA)] {
        let id = NodeId::numeric(1, number);
        let under = Under {
            parent: &object_ids::OBJECTS_FOLDER.into(),
            reference_type: &reference_type_ids::HAS_COMPONENT.into(),
            type_definition: None,
        };
        let name = QualifiedName::new(1, format!("v{number}"));
        let spec = NodeSpec::variable(id.clone(), name, 11u32.into(), Some(0.0.into()));
        space.add_node(spec.initial_status(status), under, time(1)).unwrap();
        space.historize(&id, true, Rule::default(), time(1)).unwrap();
        let mut out = Vec::new();
        recorder.take(time(1), &mut out, || ());
        space.variable(&id).unwrap().set_at(7.0, time(2));
        recorder.take(time(2), &mut out, || ());
        let found: Vec<_> = out.iter().map(|one| (one.value.status, one.value.value.as_f64())).collect();
        let [first, second] = [(StatusCode::GOOD, Some(0.0)), (StatusCode::GOOD, Some(7.0))];
        let expected = if status.is_good() { vec![first, second] } else { vec![second] };
        assert_eq!(found, expected);
    }
}

#[test]
fn writes_beyond_the_queue_are_counted_and_marked() {
    let space = space(4);
    let mut recorder = Recorder::new(&space).unwrap();
    space.set_history_store(Arc::new(MemoryStore::new(10)));
    let id = add(&space, 1);
    let handle = space.variable(&id).unwrap();
    handle.set_at(0.0, time(10));
    space.historize(&id, false, Rule::default(), time(1)).unwrap();
    taken(&mut recorder);
    for at in 1..=20 {
        handle.set_at(f64::from(at), time(10 + i64::from(at)));
    }
    let found = taken(&mut recorder);
    assert_eq!(found.first(), Some(&(11, Some(1.0))));
    assert_eq!(found.last(), Some(&(30, Some(20.0))), "the newest value is always found");
    let marks: Vec<_> = found.iter().filter(|(_, value)| value.is_none()).collect();
    assert_eq!(marks.len(), 1);
    let recorded = found.len() - 1;
    assert_eq!(recorder.lost() as usize + recorded, 20);
}

#[test]
fn events_beyond_the_ring_are_counted() {
    let space = space(4);
    let mut recorder = Recorder::new(&space).unwrap();
    space.set_history_store(Arc::new(MemoryStore::new(10)));
    space.historize_events(false, time(1)).unwrap();
    let raised = RING_LEN + 7;
    for _ in 0..raised {
        let event = NewEvent::new(object_type_ids::BASE_EVENT_TYPE, object_ids::SERVER.into());
        space.raise(event, time(1)).unwrap();
    }
    let (_, events) = recorder.take_events(time(2)).unwrap();
    assert_eq!(events.len() as u64 - 1 + recorder.lost(), raised as u64, "one event tells of the lost ones");
    assert!(recorder.lost() > 0);
}

/// Values overwritten during a take are neither lost nor recorded twice nor reordered.
#[test]
#[allow(clippy::disallowed_methods)] // tests the race
fn writers_that_race_with_the_recorder_lose_nothing() {
    const WRITES: u32 = 20_000;
    let space = space(1 << 17);
    let mut recorder = Recorder::new(&space).unwrap();
    space.set_history_store(Arc::new(MemoryStore::new(10)));
    let ids = [add(&space, 1), add(&space, 2)];
    for id in &ids {
        space.variable(id).unwrap().set_at(0.0, time(0));
        space.historize(id, false, Rule::default(), time(0)).unwrap();
    }
    let mut out = Vec::new();
    recorder.take(time(0), &mut out, || ());
    let mut overwritten = 0;
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|at| {
            let handle = space.variable(&ids[at]).unwrap();
            scope.spawn(move || (1..=WRITES).for_each(|number| handle.set_at(f64::from(number), time(0))))
        });
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            overwritten += recorder.take(time(0), &mut out, || ());
        }
    });
    overwritten += recorder.take(time(0), &mut out, || ());
    assert!(overwritten <= 2 * WRITES as usize);
    assert_eq!(recorder.lost(), 0);
    for key in ["nsu=urn:test;i=1", "nsu=urn:test;i=2"] {
        let values = out.iter().filter(|one| &*one.node == key).map(|one| one.value.value.as_f64());
        assert!(
            values.eq((0..=WRITES).map(|number| Some(f64::from(number)))),
            "{key}: out of order or missing"
        );
    }
}

#[test]
fn a_space_without_a_recorder_records_nothing() {
    let space = Arc::new(AddressSpace::new(1, 16, "urn:test"));
    assert!(Recorder::new(&space).is_none());
    space.set_history_store(Arc::new(MemoryStore::new(1)));
    let id = add(&space, 1);
    assert!(
        space.historize(&id, false, Rule::default(), time(0)).is_ok(),
        "it has a history that is not recorded"
    );
}
