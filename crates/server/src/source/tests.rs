//! Sources that hang, panic, answer late, partly or with errors, or return old times.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use super::group::{GroupSpec, Outcome, ReadMany, Readings, WriteMany, Written};
use super::*;
use crate::callback::{CallContext, SourceRead};
use crate::history::{MemoryStore, Rule};
use crate::recorder::Recorder;
use crate::space::build::Under;
use crate::space::{AddressSpace, NodeSpec, VariableHandle};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use taktwerk_types::{NodeId, QualifiedName, UtcTime, Variant};

type Call = Box<dyn FnOnce() + Send>;

/// A driver with the test's clock and threads.
#[derive(Default)]
struct Manual {
    now: Mutex<Instant>,
    number: AtomicUsize,
    calls: Mutex<BTreeMap<(Instant, usize), Call>>,
    work: Mutex<VecDeque<Work>>,
}

impl SourceDriver for Manual {
    fn now(&self) -> Now {
        let instant = *lock(&self.now);
        Now { instant, utc: utc(instant) }
    }
    fn run(&self, work: Work) {
        lock(&self.work).push_back(work);
    }
    fn at(&self, at: Instant, then: Call) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        lock(&self.calls).insert((at, number), then);
    }
    fn stop(&self) {
        lock(&self.calls).clear();
    }
}

fn utc(instant: Instant) -> UtcTime {
    UtcTime::from_ticks(1_000_000 + (instant.as_nanos() / 100) as i64)
}

fn at_ms(millis: u64) -> UtcTime {
    utc(Instant::from_nanos(millis * 1_000_000))
}

impl Manual {
    /// Advances the time; work waits until it is run.
    fn until(&self, millis: u64) {
        let end = Instant::from_nanos(millis * 1_000_000);
        loop {
            let first = lock(&self.calls).keys().next().copied().filter(|(at, _)| *at <= end);
            let Some(key) = first else { break };
            let call = lock(&self.calls).remove(&key).unwrap();
            *lock(&self.now) = key.0;
            call();
        }
        *lock(&self.now) = end;
    }

    /// Takes the oldest work.
    fn take(&self) -> Work {
        lock(&self.work).pop_front().unwrap()
    }

    fn waiting(&self) -> usize {
        lock(&self.work).len()
    }

    /// Runs all waiting work.
    fn work(&self) {
        loop {
            let Some(work) = lock(&self.work).pop_front() else { return };
            do_work(work);
        }
    }
}

/// Runs work like a driver. False for a future that has not finished.
fn do_work(work: Work) -> bool {
    match work {
        Work::Blocking(run) => {
            let _ = catch_unwind(AssertUnwindSafe(run));
            true
        }
        Work::Later(mut future) => future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready(),
    }
}

fn variables(count: usize) -> (AddressSpace, Vec<VariableHandle>) {
    let space = AddressSpace::new(1, 16, "urn:test");
    let (parent, reference_type, kind) =
        (NodeId::numeric(0, 85), NodeId::numeric(0, 35), NodeId::numeric(0, 63));
    let handles = (0..count).map(|number| {
        let id = NodeId::numeric(1, 1000 + number as u32);
        let name = QualifiedName::new(1, format!("V{number}"));
        let spec = NodeSpec::variable(id.clone(), name, NodeId::numeric(0, 11), None);
        let under = Under { parent: &parent, reference_type: &reference_type, type_definition: Some(&kind) };
        space.add_node(spec, under, UtcTime::from_ticks(1)).unwrap();
        space.variable(&id).unwrap()
    });
    let handles = handles.collect();
    (space, handles)
}

/// A source with two values, polled every 100 ms, with a deadline of 250 ms.
struct Setup {
    driver: Arc<Manual>,
    /// The next answer of the source.
    answer: Arc<Mutex<(Vec<Written>, Outcome)>>,
    asked: Arc<AtomicUsize>,
    /// The next request takes until then.
    returns_at: Arc<Mutex<Option<u64>>>,
    variables: Vec<VariableHandle>,
    handle: group::SourceHandle,
    _space: AddressSpace,
}

fn setup(write: Option<WriteMany>) -> Setup {
    let (space, variables) = variables(2);
    let driver = Arc::<Manual>::default();
    let answer = Arc::new(Mutex::new((vec![(0, DataValue::new(1.0)), (1, DataValue::new(2.0))], Ok(()))));
    let asked = Arc::<AtomicUsize>::default();
    let returns_at = Arc::<Mutex<Option<u64>>>::default();
    let (told, counted) = (Arc::clone(&answer), Arc::clone(&asked));
    let (clock, hang) = (Arc::clone(&driver), Arc::clone(&returns_at));
    let read = ReadMany::Blocking(Box::new(move |readings: &mut Readings| {
        counted.fetch_add(1, Ordering::Relaxed);
        let returns_at = lock(&hang).take();
        if let Some(millis) = returns_at {
            // Time advances while it hangs.
            clock.until(millis);
        }
        let (values, result) = lock(&told).clone();
        assert!(!values.is_empty() || result.is_err(), "on purpose");
        values.into_iter().for_each(|(position, value)| readings.set_data(position, value));
        result
    }));
    let deadline = Duration::from_millis(250);
    let interval = Duration::from_millis(100);
    let spec = GroupSpec { deadline, write, ..GroupSpec::new("test", variables.clone(), interval, read) };
    let sources = space.sources();
    sources.start(Arc::clone(&driver) as Arc<dyn SourceDriver>);
    let handle = sources.add(spec);
    Setup { driver, answer, asked, returns_at, variables, handle, _space: space }
}

impl Setup {
    fn values(&self) -> Vec<(Option<Variant>, StatusCode)> {
        self.variables
            .iter()
            .map(|variable| variable.get())
            .map(|value| {
                let status = value.status();
                (value.value.filter(|value| !value.is_empty()), status)
            })
            .collect()
    }

    fn says(&self, values: Vec<Written>, result: Result<(), StatusCode>) {
        *lock(&self.answer) = (values, result);
    }
}

fn good(value: f64) -> (Option<Variant>, StatusCode) {
    (Some(value.into()), StatusCode::GOOD)
}

const UNCERTAIN: StatusCode = StatusCode::UNCERTAIN_LAST_USABLE_VALUE;
const BAD: (Option<Variant>, StatusCode) = (None, StatusCode::BAD_NO_COMMUNICATION);

#[test]
fn all_values_are_read_once_per_interval() {
    let setup = setup(None);
    setup.driver.work();
    assert_eq!(setup.values(), [good(1.0), good(2.0)]);
    for round in 1..=20 {
        setup.driver.until(round * 100);
        setup.driver.work();
    }
    assert_eq!(setup.asked.load(Ordering::Relaxed), 21);
    assert_eq!(setup.variables[0].get().source_timestamp, Some(at_ms(2000)));
}

/// The deadline passes, an interval passes, the source returns much later, and answers again.
#[test]
fn values_of_a_hanging_source_degrade_in_steps() {
    let setup = setup(None);
    setup.driver.work();
    setup.driver.until(100);
    let hanging = setup.driver.take();
    setup.driver.until(349);
    assert_eq!(setup.values(), [good(1.0), good(2.0)], "the deadline is not over");
    setup.driver.until(350);
    assert_eq!(setup.values(), [(Some(1.0.into()), UNCERTAIN), (Some(2.0.into()), UNCERTAIN)]);
    let value = setup.variables[0].get();
    assert_eq!((value.source_timestamp, value.server_timestamp), (Some(at_ms(350)), Some(at_ms(350))));
    setup.driver.until(499);
    assert_eq!(setup.values()[0].1, UNCERTAIN);
    setup.driver.until(500);
    assert_eq!(setup.values(), [BAD, BAD]);
    setup.driver.until(10_000);
    let value = setup.variables[0].get();
    assert_eq!((value.source_timestamp, value.server_timestamp), (Some(at_ms(10_000)), Some(at_ms(10_000))));
    assert_eq!(setup.driver.waiting(), 0, "it gets no further request");
    assert_eq!(setup.asked.load(Ordering::Relaxed), 1);
    do_work(hanging);
    setup.driver.until(10_100);
    setup.driver.work();
    assert_eq!(setup.values(), [good(1.0), good(2.0)]);
    // A late answer is dropped; the next one counts.
    setup.says(vec![(0, DataValue::new(7.0)), (1, DataValue::new(8.0))], Ok(()));
    *lock(&setup.returns_at) = Some(20_000);
    setup.driver.until(10_200);
    setup.driver.work();
    assert_eq!(setup.values(), [BAD, BAD]);
    setup.driver.until(20_100);
    setup.driver.work();
    assert_eq!(setup.values(), [good(7.0), good(8.0)]);
}

/// Work that gets a thread too late is not run.
#[test]
fn expired_work_is_not_run() {
    let setup = setup(None);
    setup.driver.until(260);
    assert_eq!(setup.values(), [BAD, BAD], "there was no value before");
    setup.driver.work();
    assert_eq!(setup.asked.load(Ordering::Relaxed), 0);
    setup.driver.until(300);
    setup.driver.work();
    assert_eq!(setup.values(), [good(1.0), good(2.0)]);
}

#[test]
fn a_partial_answer_only_affects_the_missing_values() {
    let setup = setup(None);
    setup.driver.work();
    setup.says(vec![(1, DataValue::new(3.0)), (9, DataValue::new(9.0))], Ok(()));
    setup.driver.until(100);
    setup.driver.work();
    assert_eq!(setup.values(), [(Some(1.0.into()), UNCERTAIN), good(3.0)]);
    setup.driver.until(200);
    setup.driver.work();
    assert_eq!(setup.values(), [BAD, good(3.0)]);
}

#[test]
fn bad_values_and_errors_are_passed_on() {
    let setup = setup(None);
    let failed = StatusCode::BAD_SENSOR_FAILURE;
    setup.says(vec![(0, DataValue::from_status(failed)), (1, DataValue::new(3.0))], Ok(()));
    setup.driver.work();
    assert_eq!(setup.values(), [(None, failed), good(3.0)]);
    let refused = StatusCode::BAD_DEVICE_FAILURE;
    setup.says(vec![(1, DataValue::new(4.0))], Err(refused));
    setup.driver.until(100);
    setup.driver.work();
    assert_eq!(setup.values(), [(None, refused), good(4.0)], "values read before the error count");
}

#[test]
fn old_times_stay_as_they_are() {
    let setup = setup(None);
    let old = DataValue::new(1.0).at(UtcTime::from_ticks(5), UtcTime::from_ticks(6));
    setup.says(vec![(0, old.clone()), (1, DataValue::new(2.0))], Ok(()));
    setup.driver.work();
    assert_eq!(setup.variables[0].get().source_timestamp, Some(UtcTime::from_ticks(5)));
    assert_eq!(setup.variables[0].get().server_timestamp, Some(UtcTime::from_ticks(6)));
    // Lost and recovered: the same value with the same time is good again.
    setup.driver.until(350);
    assert_eq!(setup.values()[0].1, UNCERTAIN);
    setup.driver.work();
    setup.driver.until(400);
    setup.driver.work();
    assert_eq!(setup.values(), [good(1.0), good(2.0)]);
    assert_eq!(setup.variables[0].get().source_timestamp, Some(UtcTime::from_ticks(5)));
}

#[test]
fn a_source_that_panics_is_polled_again() {
    let setup = setup(None);
    setup.says(Vec::new(), Ok(()));
    setup.driver.work();
    let failed = (None, StatusCode::BAD_INTERNAL_ERROR);
    assert_eq!(setup.values(), [failed.clone(), failed]);
    setup.says(vec![(0, DataValue::new(1.0)), (1, DataValue::new(2.0))], Ok(()));
    setup.driver.until(100);
    setup.driver.work();
    assert_eq!(setup.values(), [good(1.0), good(2.0)]);
}

#[test]
fn writes_are_batched_and_values_are_read_again() {
    let written = Arc::<Mutex<Vec<Vec<Written>>>>::default();
    let told = Arc::clone(&written);
    let setup = setup(Some(WriteMany::Blocking(Box::new(move |values| {
        lock(&told).push(values.to_vec());
        Ok(())
    }))));
    setup.driver.work();
    let context = CallContext::default();
    let write = |position, value: f64| {
        setup.handle.write_handler(position).write(&context, DataValue::new(value)).unwrap_err()
    };
    for (position, value) in [(1, 5.0), (0, 6.0), (1, 7.0)] {
        assert_eq!(write(position, value), StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY);
    }
    setup.driver.work();
    assert_eq!(
        lock(&written).drain(..).collect::<Vec<_>>(),
        [vec![(0, DataValue::new(6.0)), (1, DataValue::new(7.0))]]
    );
    assert_eq!(setup.asked.load(Ordering::Relaxed), 2, "once at the start, once after the write");
    // While a write hangs, pending writes are dropped, and further ones are refused until it returns.
    assert_eq!(write(0, 8.0), StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY);
    let hanging = setup.driver.take();
    setup.driver.until(250);
    assert_eq!(write(0, 9.0), StatusCode::BAD_NO_COMMUNICATION);
    do_work(hanging);
    assert!(lock(&written).is_empty(), "an outdated write is not executed");
    assert_eq!(write(0, 10.0), StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY);
    setup.driver.work();
    assert_eq!(lock(&written).drain(..).collect::<Vec<_>>(), [vec![(0, DataValue::new(10.0))]]);
}

#[test]
fn a_stopped_source_is_not_polled() {
    let setup = setup(None);
    setup.driver.work();
    setup.handle.stop();
    assert_eq!(setup.values(), [(Some(1.0.into()), UNCERTAIN), (Some(2.0.into()), UNCERTAIN)]);
    setup.driver.until(1000);
    setup.driver.work();
    assert_eq!(setup.asked.load(Ordering::Relaxed), 1);
    assert_eq!(setup.handle.write_handler(0).write(&CallContext::default(), DataValue::new(1.0)), Err(BAD.1));
}

/// Futures are dropped at their deadline, and the source is polled again.
#[test]
fn a_future_that_hangs_is_dropped() {
    let (space, variables) = variables(1);
    let driver = Arc::<Manual>::default();
    let (alive, answers) = (Arc::new(()), Arc::<AtomicUsize>::default());
    let (held, ready) = (Arc::clone(&alive), Arc::clone(&answers));
    let read = ReadMany::Later(Box::new(move |mut readings: Readings| {
        let (held, ready) = (Arc::clone(&held), Arc::clone(&ready));
        Box::pin(core::future::poll_fn(move |_| {
            let _ = &held;
            if ready.load(Ordering::Relaxed) == 0 {
                return Poll::Pending;
            }
            readings.set(0, 4.0);
            Poll::Ready(Ok(readings.clone()))
        }))
    }));
    let spec = GroupSpec {
        deadline: Duration::from_millis(50),
        ..GroupSpec::new("test", variables.clone(), Duration::from_millis(100), read)
    };
    let sources = space.sources();
    sources.start(Arc::clone(&driver) as Arc<dyn SourceDriver>);
    let _handle = sources.add(spec);
    let Work::Later(mut future) = driver.take() else { panic!("a future") };
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert_eq!(Arc::strong_count(&alive), 3);
    driver.until(50);
    assert!(future.as_mut().poll(&mut context).is_ready());
    drop(future);
    assert_eq!(Arc::strong_count(&alive), 2, "dropped");
    assert_eq!(variables[0].get().status(), StatusCode::BAD_NO_COMMUNICATION);
    answers.store(1, Ordering::Relaxed);
    driver.until(100);
    driver.work();
    assert_eq!(variables[0].get().value, Some(4.0.into()));
}

// ---- sources of one value

fn poll(read: &mut SourceRead) -> Option<DataValue> {
    match read {
        SourceRead::Now(value) => Some(value.clone()),
        SourceRead::Later(future) => match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        },
        SourceRead::Blocking(_) => panic!("not guarded"),
    }
}

struct Device(Arc<AtomicUsize>);

impl ValueSource for Device {
    fn read(&self) -> SourceRead {
        let asked = Arc::clone(&self.0);
        SourceRead::Blocking(Box::new(move || {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            assert!(number != 3, "on purpose");
            DataValue::new(number as i64)
        }))
    }

    fn deadline(&self) -> Duration {
        Duration::from_millis(50)
    }
}

#[test]
fn one_request_answers_all_readers_and_hanging_ones_are_abandoned() {
    let sources = Arc::<Sources>::default();
    let driver = Arc::<Manual>::default();
    let asked = Arc::<AtomicUsize>::default();
    let source = sources.guard(Arc::new(Device(Arc::clone(&asked))));
    assert!(matches!(source.read(), SourceRead::Blocking(_)), "without a driver it is unchanged");
    sources.start(Arc::clone(&driver) as Arc<dyn SourceDriver>);
    let mut reads: Vec<SourceRead> = (0..50).map(|_| source.read()).collect();
    assert_eq!(driver.waiting(), 1);
    driver.work();
    for read in &mut reads {
        assert_eq!(poll(read).and_then(|value| value.value), Some(Variant::Int64(0)));
    }
    // It hangs.
    let mut read = source.read();
    let hanging = driver.take();
    driver.until(49);
    assert_eq!(poll(&mut read), None);
    driver.until(50);
    let value = poll(&mut read).unwrap();
    assert_eq!((value.value.clone(), value.status()), (Some(Variant::Int64(0)), UNCERTAIN));
    assert_eq!(value.source_timestamp, Some(at_ms(50)));
    assert_eq!(poll(&mut source.read()).unwrap().status(), UNCERTAIN, "at once");
    driver.until(100);
    assert_eq!(poll(&mut source.read()).unwrap().status(), StatusCode::BAD_NO_COMMUNICATION);
    assert_eq!(driver.waiting(), 0);
    do_work(hanging);
    let mut read = source.read();
    driver.work();
    assert_eq!(poll(&mut read).unwrap().status(), StatusCode::GOOD);
    // It panics, and is read again.
    let asked_before = asked.load(Ordering::Relaxed);
    asked.store(3, Ordering::Relaxed);
    assert!(asked_before < 3);
    let mut read = source.read();
    driver.work();
    assert_eq!(poll(&mut read).unwrap().status(), StatusCode::BAD_INTERNAL_ERROR);
    let mut read = source.read();
    driver.work();
    assert_eq!(poll(&mut read).unwrap().status(), StatusCode::GOOD);
}

/// Nobody reads or samples it.
#[test]
fn the_source_of_a_recorded_variable_is_read_without_clients() {
    let space = Arc::new(AddressSpace::with_recorder(1, 16, 64, "urn:test"));
    space.set_history_store(Arc::new(MemoryStore::new(100)));
    let mut recorder = Recorder::new(&space).unwrap();
    let id = NodeId::numeric(1, 1000);
    let spec = NodeSpec::variable(id.clone(), QualifiedName::new(1, "V"), NodeId::numeric(0, 8), None);
    let (parent, reference_type, kind) =
        (NodeId::numeric(0, 85), NodeId::numeric(0, 35), NodeId::numeric(0, 63));
    let under = Under { parent: &parent, reference_type: &reference_type, type_definition: Some(&kind) };
    space.add_node(spec, under, UtcTime::from_ticks(1)).unwrap();
    space.set_source(&id, Arc::new(Device(Arc::new(AtomicUsize::new(10))))).unwrap();
    let driver = Arc::<Manual>::default();
    space.sources().start(Arc::clone(&driver) as Arc<dyn SourceDriver>);
    let mut record_until = |from: u64, to: u64| -> usize {
        let mut out = Vec::new();
        for millis in (from..=to).step_by(10) {
            driver.until(millis);
            driver.work();
            recorder.take(at_ms(millis), &mut out, || ());
        }
        out.iter().filter(|one| one.value.status.is_good()).count()
    };
    assert_eq!(record_until(0, 90), 0);
    let interval = |millis: u64| Rule { interval: Duration::from_millis(millis), ..Rule::default() };
    space.historize(&id, false, interval(100), at_ms(90)).unwrap();
    assert_eq!(record_until(100, 1_000), 10);
    space.historize(&id, false, interval(500), at_ms(1_000)).unwrap();
    assert_eq!(record_until(1_010, 3_000), 4);
    // Without an interval of rule and variable: once a second.
    space.historize(&id, false, Rule::default(), at_ms(3_000)).unwrap();
    assert_eq!(record_until(3_010, 6_000), 4);
    space.delete_node(&id).unwrap();
    record_until(6_010, 7_000);
    assert_eq!(driver.waiting(), 0);
    assert!(lock(&driver.calls).is_empty(), "it is no longer sampled");
}

/// Counts its readings; the second one panics.
#[derive(Debug)]
struct PanicsOnce(Arc<AtomicUsize>);

impl ValueSource for PanicsOnce {
    fn read(&self) -> SourceRead {
        assert_ne!(self.0.fetch_add(1, Ordering::Relaxed), 1, "a defect of the application");
        SourceRead::Now(DataValue::new(1.0))
    }
}

#[test]
fn a_recorded_source_that_panics_is_read_again() {
    let space = Arc::new(AddressSpace::with_recorder(1, 16, 64, "urn:test"));
    space.set_history_store(Arc::new(MemoryStore::new(100)));
    let id = NodeId::numeric(1, 1000);
    let spec = NodeSpec::variable(id.clone(), QualifiedName::new(1, "V"), NodeId::numeric(0, 11), None);
    let (parent, reference_type, kind) =
        (NodeId::numeric(0, 85), NodeId::numeric(0, 35), NodeId::numeric(0, 63));
    let under = Under { parent: &parent, reference_type: &reference_type, type_definition: Some(&kind) };
    space.add_node(spec, under, UtcTime::from_ticks(1)).unwrap();
    let readings = Arc::<AtomicUsize>::default();
    space.set_source(&id, Arc::new(PanicsOnce(Arc::clone(&readings)))).unwrap();
    let driver = Arc::<Manual>::default();
    space.sources().start(Arc::clone(&driver) as Arc<dyn SourceDriver>);
    let rule = Rule { interval: Duration::from_millis(100), ..Rule::default() };
    space.historize(&id, false, rule, at_ms(0)).unwrap();
    assert_eq!(readings.load(Ordering::Relaxed), 1);
    assert!(catch_unwind(AssertUnwindSafe(|| driver.until(100))).is_err());
    driver.until(1_000);
    assert_eq!(readings.load(Ordering::Relaxed), 11);
}
