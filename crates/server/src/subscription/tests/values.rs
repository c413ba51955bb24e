//! Values in transit: slots that outlive their nodes, lost and late writes, modified items, parts of values.

use super::*;
use crate::callback::{SourceRead, ValueSource};
use crate::subscription::sampling::SampleJob;
use taktwerk_types::{DataValue, NumericRange};

impl World {
    /// A World whose shards have queues of a given length for items that want every write.
    fn with_room(variables: usize, shards: usize, queue_len: usize) -> Self {
        let mut world = Self::with_shards(0, shards);
        world.space = AddressSpace::new(shards, queue_len, "urn:test");
        let (limits, store) = (SubscriptionLimits::default(), Arc::clone(world.space.slots()));
        world.engine = Engine::new(
            0,
            limits,
            store,
            Arc::new(locations::Locations::new(shards)),
            Arc::clone(world.space.events()),
            1,
        );
        for _ in 0..variables {
            world.add_variable(Variant::from(0.0));
        }
        world
    }

    fn add_variable(&mut self, value: Variant) -> usize {
        let at = self.variables.len();
        let (id, name) = (NodeId::numeric(1, 1000 + at as u32), QualifiedName::new(1, format!("v{at}")));
        let spec = NodeSpec::variable(id, name, NodeId::from(11), Some(value));
        let mut nodes = self.space.write();
        let ix = nodes.add(spec, UtcTime::from_ticks(1)).unwrap();
        let handle = VariableHandle::new(nodes.slot_handle(ix).unwrap());
        drop(nodes);
        self.variables.push((ix, handle));
        at
    }

    fn item_of(&mut self, place: u32, variable: usize, change: impl FnOnce(&mut ItemSpec)) -> u32 {
        let (node, _) = self.variables[variable];
        let mut spec = ItemSpec {
            node,
            attribute_id: 13,
            slot: self.space.read().slot_handle(node),
            is_polled: false,
            denial: Denial::No,
            mode: REPORTING,
            client_handle: variable as u32,
            timestamps: TimestampsToReturn::Both,
            index_range: None,
            settings: Self::settings(100.0, 1),
        };
        change(&mut spec);
        let id = self.engine.create_item(place, spec, self.now(), &self.space).unwrap().item_id;
        self.engine.find_item(place, id).unwrap()
    }

    fn modify(&mut self, index: u32, settings: Settings) {
        let (now, handle) = (self.now(), self.engine.items[index as usize].client_handle);
        self.engine.modify_item(index, handle, TimestampsToReturn::Both, settings, now);
    }

    fn set_mode(&mut self, index: u32, mode: MonitoringMode) {
        let now = self.now();
        self.engine.set_mode(index, mode, now, &self.space);
    }

    /// Receives the first message.
    fn begin(&mut self) {
        for _ in 0..50 {
            self.publish().unwrap();
        }
        self.advance(105 * MS);
        self.out.responses.clear();
    }

    /// The whole DataValues of the responses, by client handle.
    fn take_data_values(&mut self) -> Vec<(u32, DataValue)> {
        let messages = self.out.responses.drain(..).map(|(_, response)| response.notification_message);
        let data = messages.flat_map(|message| message.notification_data);
        let changes = data.filter_map(|data| data.decode::<DataChangeNotification>().ok());
        changes
            .flat_map(|change| change.monitored_items)
            .map(|item| (item.client_handle, item.value))
            .collect()
    }
}

/// Answers when its job is run.
struct Slow;

impl ValueSource for Slow {
    fn read(&self) -> SourceRead {
        SourceRead::Blocking(Box::new(|| DataValue::new(77.0)))
    }
}

fn run(read: SourceRead) -> DataValue {
    match read {
        SourceRead::Blocking(run) => run(),
        _ => panic!("not a blocking source"),
    }
}

// ---- slots outlive their nodes

#[test]
fn a_late_sample_does_not_reach_another_variable() {
    let mut world = World::new(1);
    let id = NodeId::numeric(1, 1000);
    world.space.set_source(&id, Arc::new(Slow)).unwrap();
    let place = world.subscribe(100.0, 1000, 100, 0);
    let item = world.item_of(place, 0, |spec| spec.is_polled = true);
    let SampleJob { sample, read } = world.engine.take_job().unwrap();
    world.engine.delete_item(item);
    world.space.delete_node(&id).unwrap();
    world.variables.clear();
    for _ in 0..3 {
        world.add_variable(Variant::from(1.0));
    }
    let now = world.now();
    world.engine.sample_done(&sample, run(read), now);
    for (_, handle) in &world.variables {
        assert_eq!(handle.get().value, Some(Variant::from(1.0)));
    }
    let free = world.space.slots().free_slots();
    drop(sample);
    assert_eq!(world.space.slots().free_slots(), free + 1);
}

#[test]
fn a_late_sample_does_not_restore_a_deleted_node() {
    let mut world = World::new(1);
    let id = NodeId::numeric(1, 1000);
    world.space.set_source(&id, Arc::new(Slow)).unwrap();
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item_of(place, 0, |spec| spec.is_polled = true);
    world.begin();
    let SampleJob { sample, read } = world.engine.take_job().unwrap();
    world.space.delete_node(&id).unwrap();
    let now = world.now();
    world.engine.sample_done(&sample, run(read), now);
    world.set(0, 5.0);
    world.advance(300 * MS);
    let last = world.take_data_values().pop().unwrap().1;
    assert_eq!(last.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(last.value.unwrap_or_default(), Variant::Empty);
}

/// The slot of a polled variable contains the previously read value: it is not reported as the present one.
#[test]
fn the_first_value_of_a_slow_source_is_its_answer() {
    for queue_size in [1, 10] {
        let mut world = World::new(1);
        world.space.set_source(&NodeId::numeric(1, 1000), Arc::new(Slow)).unwrap();
        let place = world.subscribe(100.0, 1000, 100, 0);
        world.item_of(place, 0, |spec| {
            spec.is_polled = true;
            spec.settings.queue_size = queue_size;
        });
        for _ in 0..20 {
            world.publish().unwrap();
        }
        let SampleJob { sample, read } = world.engine.take_job().unwrap();
        world.advance(250 * MS);
        assert_eq!(world.take_data_values(), [], "queue size {queue_size}");
        let now = world.now();
        world.engine.sample_done(&sample, run(read), now);
        world.advance(150 * MS);
        let values: Vec<_> = world.take_data_values().into_iter().map(|(_, value)| value.value).collect();
        assert_eq!(values, [Some(Variant::from(77.0))], "queue size {queue_size}");
    }
}

/// The older of two concurrent answers may arrive last.
#[test]
fn an_older_sample_does_not_replace_a_newer_one() {
    let mut world = World::new(1);
    world.space.set_source(&NodeId::numeric(1, 1000), Arc::new(Slow)).unwrap();
    let place = world.subscribe(100.0, 1000, 100, 0);
    for _ in 0..2 {
        world.item_of(place, 0, |spec| spec.is_polled = true);
    }
    let (first, second) = (world.engine.take_job().unwrap(), world.engine.take_job().unwrap());
    let now = world.now();
    world.engine.sample_done(&second.sample, DataValue::new(2.0), now);
    world.engine.sample_done(&first.sample, DataValue::new(1.0), now);
    assert_eq!(world.variables[0].1.get().value, Some(Variant::from(2.0)));
    // A new read returns the present value.
    world.advance(300 * MS);
    let third = world.engine.take_job().unwrap();
    let now = world.now();
    world.engine.sample_done(&third.sample, DataValue::new(3.0), now);
    assert_eq!(world.variables[0].1.get().value, Some(Variant::from(3.0)));
}

#[test]
fn a_late_sample_belongs_to_the_item_that_requested_it() {
    let mut world = World::new(1);
    world.space.set_source(&NodeId::numeric(1, 1000), Arc::new(Slow)).unwrap();
    let place = world.subscribe(100.0, 1000, 100, 0);
    let first = world.item_of(place, 0, |spec| spec.is_polled = true);
    let late = world.engine.take_job().unwrap();
    world.engine.delete_item(first);
    let second = world.item_of(place, 0, |spec| spec.is_polled = true);
    assert_eq!(first, second, "it has the index of the other one");
    let own = world.engine.take_job().unwrap();
    let now = world.now();
    world.engine.sample_done(&late.sample, run(late.read), now);
    // Its own sample is still in progress: no other one is started.
    world.advance(300 * MS);
    assert!(world.engine.take_job().is_none());
    let now = world.now();
    world.engine.sample_done(&own.sample, run(own.read), now);
    world.advance(100 * MS);
    assert!(world.engine.take_job().is_some());
}

#[test]
fn a_disabled_item_does_not_see_the_next_node_of_its_slot() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let item = world.item_of(place, 0, |spec| spec.mode = MonitoringMode::DISABLED);
    world.space.delete_node(&NodeId::numeric(1, 1000)).unwrap();
    world.variables.clear();
    for value in [5.0, 6.0] {
        world.add_variable(Variant::from(value));
    }
    world.set_mode(item, REPORTING);
    for _ in 0..3 {
        world.publish().unwrap();
    }
    world.set(0, 7.0);
    world.advance(205 * MS);
    let values = world.take_data_values();
    assert!(!values.is_empty());
    for (_, value) in values {
        assert_eq!(value.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    }
}

/// After any sequence of creating, disabling, moving and deleting, each slot is free exactly once.
#[test]
fn every_slot_is_freed_once() {
    let mut world = World::new(8);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let other = world.subscribe(100.0, 1000, 100, 0);
    let mut items = Vec::new();
    for variable in 0..8 {
        for (sampling, queue) in [(100.0, 1), (0.0, 5), (500.0, 1), (10.0, 3)] {
            let place = if queue == 3 { other } else { place };
            items.push(world.item_of(place, variable, |spec| {
                spec.settings = World::settings(sampling, queue);
                spec.mode = if variable % 2 == 0 { REPORTING } else { MonitoringMode::DISABLED };
            }));
        }
    }
    world.begin();
    for variable in 0..4 {
        world.space.delete_node(&NodeId::numeric(1, 1000 + variable)).unwrap();
    }
    assert_eq!(world.space.slots().free_slots(), 0);
    for item in items.iter().step_by(3) {
        world.set_mode(*item, MonitoringMode::DISABLED);
        world.set_mode(*item, REPORTING);
    }
    for item in items.iter().step_by(2) {
        world.engine.delete_item(*item);
    }
    world.engine.delete_subscription(place, &mut world.out);
    let now = world.now();
    let moved = world.engine.export(other, 0, now, &mut world.out).unwrap();
    let other = world.engine.import(moved, Some(SESSION), now);
    world.engine.delete_subscription(other, &mut world.out);
    for variable in 4..8 {
        world.space.delete_node(&NodeId::numeric(1, 1000 + variable)).unwrap();
    }
    world.variables.clear();
    assert_eq!(world.space.slots().free_slots(), 8);
    let mut indexes: Vec<u32> = (0..8).map(|_| world.space.slots().allocate().index()).collect();
    indexes.sort_unstable();
    indexes.dedup();
    assert_eq!((indexes.len(), world.space.slots().free_slots()), (8, 0));
}

// ---- items that want every write

#[test]
fn the_last_value_arrives_after_the_ring_was_full() {
    let mut world = World::with_room(2, 1, 4);
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(0.0, 20));
    world.item(place, 1, REPORTING, World::settings(0.0, 20));
    world.begin();
    for value in 1..=10 {
        world.set(0, f64::from(value));
    }
    world.advance(100 * MS);
    let values = [(0, 1.0, false), (0, 2.0, false), (0, 3.0, false), (0, 4.0, false), (0, 10.0, true)];
    // The item on the other variable has lost nothing and reports nothing.
    assert_eq!(world.take_values(), values);
    world.set(0, 11.0);
    world.set(1, 1.0);
    world.advance(100 * MS);
    assert_eq!(world.take_values(), [(0, 11.0, false), (1, 1.0, false)]);
}

#[test]
fn a_value_that_returned_while_the_ring_was_full_reports_the_loss() {
    let mut world = World::with_room(1, 1, 1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(0.0, 20));
    world.begin();
    for value in [1.0, 2.0, 1.0] {
        world.set(0, value);
    }
    world.advance(100 * MS);
    assert_eq!(world.take_values(), [(0, 1.0, false), (0, 1.0, true)]);
}

#[test]
fn a_semantic_change_is_reported_although_the_ring_is_full() {
    let mut world = World::with_room(1, 1, 1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(0.0, 20));
    world.item(place, 0, REPORTING, World::settings(100.0, 1));
    world.begin();
    let slot = world.space.read().slot_handle(world.variables[0].0).unwrap();
    let changed = |world: &mut World| {
        world.advance(100 * MS);
        let values = world.take_data_values();
        values.iter().filter(|(_, value)| value.status().0 & StatusCode::SEMANTICS_CHANGED != 0).count()
    };
    world.set(0, 1.0);
    slot.semantics_changed();
    assert_eq!(changed(&mut world), 2);
    // Also without a new value, and only once.
    slot.semantics_changed();
    assert_eq!(changed(&mut world), 2);
    world.set(0, 2.0);
    assert_eq!(changed(&mut world), 0);
}

#[test]
fn a_half_full_ring_is_emptied_before_the_next_deadline() {
    let mut world = World::with_room(1, 1, 8);
    let place = world.subscribe(1000.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(0.0, 100));
    for _ in 0..3 {
        world.publish().unwrap();
    }
    world.advance(1005 * MS);
    world.take_values();
    for value in 1..=40 {
        world.set(0, f64::from(value));
        // The driver's reaction when it is woken.
        if value % 5 == 0 {
            let now = world.now();
            world.engine.run(now, &world.space, &mut world.out);
        }
    }
    world.advance(1000 * MS);
    let values: Vec<_> = (1..=40).map(|value| (0, f64::from(value), false)).collect();
    assert_eq!(world.take_values(), values);
}

/// Many items with a queue on the same variables: no turn may visit all of them, because other connections wait.
#[test]
fn many_items_get_every_write_in_bounded_turns() {
    const ITEMS: usize = 50;
    const WRITES: usize = 100;
    let mut world = World::new(20);
    let place = world.subscribe(100.0, 300, 100, 0);
    for variable in 0..20 {
        for _ in 0..ITEMS {
            world.item(place, variable, REPORTING, World::settings(0.0, WRITES as u32 + 1));
        }
    }
    (0..3).for_each(|_| assert!(world.publish().is_ok()));
    world.advance(105 * MS);
    world.take_values();
    for write in 1..=WRITES {
        (0..20).for_each(|variable| world.set(variable, write as f64));
    }
    let (mut most, mut turns, end) = (0, 0, world.now + 100 * MS);
    world.engine.take_work();
    while let Some(at) = world.engine.next_deadline().filter(|at| at.as_nanos() <= end) {
        world.now = world.now.max(at.as_nanos());
        let now = world.now();
        world.engine.run(now, &world.space, &mut world.out);
        most = most.max(world.engine.take_work().items_walked);
        turns += 1;
    }
    assert!((1..=2_048 + 20 * ITEMS as u64).contains(&most), "{most} items in one of {turns} turns");
    let values = world.take_values();
    assert_eq!(values.len(), 20 * ITEMS * WRITES);
    let mut last = vec![Vec::new(); 20];
    for (variable, value, overflow) in values {
        assert!(!overflow);
        last[variable as usize].push(value);
    }
    for mut values in last {
        values.sort_by(f64::total_cmp);
        let expected = (1..=WRITES).flat_map(|write| core::iter::repeat_n(write as f64, ITEMS));
        assert!(values.into_iter().eq(expected));
    }
}

#[test]
fn values_are_handed_over_only_while_items_want_them() {
    let mut world = World::with_room(1, 2, 16);
    let store = Arc::clone(world.space.slots());
    let place = world.subscribe(100.0, 1000, 100, 0);
    let first = world.item_of(place, 0, |spec| spec.settings = World::settings(0.0, 5));
    let second = world.item_of(place, 0, |spec| spec.settings = World::settings(0.0, 5));
    world.item_of(place, 0, |_| ());
    let handed_over = |world: &World| {
        while store.pop_queued(0).is_some() {}
        world.set(0, world.now as f64 + store.queued_len(0) as f64);
        (store.queued_len(0), store.queued_len(1))
    };
    assert_eq!(handed_over(&world), (1, 0));
    world.set_mode(first, MonitoringMode::DISABLED);
    assert_eq!(handed_over(&world), (1, 0));
    world.modify(second, World::settings(100.0, 1));
    assert_eq!(handed_over(&world), (0, 0));
    world.set_mode(first, REPORTING);
    assert_eq!(handed_over(&world), (1, 0));
    world.engine.delete_item(first);
    assert_eq!(handed_over(&world), (0, 0));
}

// ---- modified items and subscriptions

#[test]
fn a_waiting_value_survives_a_longer_queue() {
    for sampling in [0.0, 10.0, 1000.0] {
        let mut world = World::new(1);
        let place = world.subscribe(100.0, 1000, 100, 0);
        let item = world.item_of(place, 0, |_| ());
        world.begin();
        world.set(0, 1.0);
        world.modify(item, World::settings(sampling, 5));
        world.advance(1100 * MS);
        assert_eq!(world.take_values(), [(0, 1.0, false)], "sampling {sampling}");
    }
}

#[test]
fn a_value_waiting_for_a_slow_sample_survives_any_modification() {
    for (sampling, queue) in [(2000.0, 1), (500.0, 1), (500.0, 4), (-1.0, 1), (0.0, 1), (0.0, 4)] {
        let mut world = World::new(1);
        let place = world.subscribe(100.0, 1000, 100, 0);
        let item = world.item_of(place, 0, |spec| spec.settings = World::settings(1000.0, 1));
        world.begin();
        world.set(0, 1.0);
        world.advance(100 * MS);
        assert_eq!(world.take_values(), []);
        world.modify(item, World::settings(sampling, queue));
        world.advance(2100 * MS);
        assert_eq!(world.take_values(), [(0, 1.0, false)], "sampling {sampling}, queue {queue}");
    }
}

#[test]
fn a_kept_sample_survives_a_queue_of_one() {
    for sampling in [0.0, 10.0] {
        for discard_oldest in [true, false] {
            let mut world = World::new(1);
            let place = world.subscribe(100.0, 1000, 100, 0);
            let item = world.item_of(place, 0, |spec| spec.settings = World::settings(sampling, 5));
            world.begin();
            for value in [1.0, 2.0, 3.0] {
                world.set(0, value);
                world.advance(15 * MS);
            }
            world.modify(item, Settings { discard_oldest, ..World::settings(-1.0, 1) });
            world.advance(100 * MS);
            assert_eq!(world.take_values(), [(0, 3.0, false)], "sampling {sampling}");
            // Later writes are reported as well.
            world.set(0, 4.0);
            world.advance(100 * MS);
            assert_eq!(world.take_values(), [(0, 4.0, false)]);
        }
    }
}

#[test]
fn a_newer_value_replaces_the_kept_sample() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let item = world.item_of(place, 0, |spec| spec.settings = World::settings(0.0, 5));
    world.begin();
    world.set(0, 1.0);
    world.modify(item, World::settings(-1.0, 1));
    world.set(0, 2.0);
    world.advance(100 * MS);
    assert_eq!(world.take_values(), [(0, 2.0, false)]);
}

#[test]
fn a_shorter_queue_reports_discarded_values() {
    for (discard_oldest, expected) in
        [(true, [(0, 3.0, true), (0, 4.0, false)]), (false, [(0, 1.0, false), (0, 4.0, true)])]
    {
        let mut world = World::new(1);
        let place = world.subscribe(100.0, 1000, 100, 0);
        let item = world.item_of(place, 0, |spec| spec.settings = World::settings(0.0, 5));
        world.begin();
        for value in [1.0, 2.0, 3.0, 4.0] {
            world.set(0, value);
        }
        world.modify(item, Settings { discard_oldest, ..World::settings(0.0, 2) });
        world.advance(100 * MS);
        assert_eq!(world.take_values(), expected);
    }
}

#[test]
fn a_modified_publishing_interval_does_not_change_sampling() {
    // Number of reports per second for a value that changes every 10 ms.
    let reports = |world: &mut World| {
        world.advance(2000 * MS);
        world.take_values();
        let mut count = 0;
        for _ in 0..100 {
            world.set(0, world.now as f64);
            world.advance(10 * MS);
            while world.publish().is_ok() && world.engine.publish_request_count(SESSION) < 20 {}
            count += world.take_values().len();
        }
        count
    };
    let modify = |world: &mut World, place, interval| {
        let parameters = Parameters {
            publishing_interval: interval,
            ..world.engine.subscription(place).unwrap().parameters
        };
        let now = world.now();
        world.engine.modify_subscription(place, parameters, now);
    };
    let mut world = World::new(1);
    let place = world.subscribe(500.0, 1000, 100, 0);
    world.item(place, 0, REPORTING, World::settings(250.0, 1));
    world.begin();
    assert!((1..=3).contains(&reports(&mut world)));
    modify(&mut world, place, 50.0);
    assert!((3..=5).contains(&reports(&mut world)), "sampled four times a second");
    modify(&mut world, place, 500.0);
    assert!((1..=3).contains(&reports(&mut world)));
    // A change that waits during the modification is reported.
    for interval in [50.0, 500.0] {
        world.set(0, interval);
        modify(&mut world, place, interval);
        world.advance(600 * MS);
        assert_eq!(world.take_values(), [(0, interval, false)]);
    }
    // Sampled at publish again: the newest value, not that of the last tick.
    world.set(0, 1.0);
    world.advance(480 * MS);
    world.set(0, 2.0);
    world.advance(600 * MS);
    let last = world.take_values().pop();
    assert_eq!(last, Some((0, 2.0, false)));
}

// ---- parts of values, and values that come back

#[test]
fn changes_outside_an_index_range_are_ignored() {
    for (sampling, queue) in [(100.0, 1), (0.0, 5), (10.0, 5), (500.0, 1)] {
        let mut world = World::new(0);
        let variable = world.add_variable(Variant::from(vec![1.0f64, 2.0, 3.0]));
        let place = world.subscribe(100.0, 1000, 100, 0);
        world.item_of(place, variable, |spec| {
            spec.index_range = NumericRange::parse("1").unwrap();
            spec.settings = World::settings(sampling, queue);
        });
        world.begin();
        let write = |world: &mut World, value: Vec<f64>| {
            world.variables[variable].1.set_at(value, world.now().utc);
            world.advance(600 * MS);
            let values = world.take_data_values();
            values.into_iter().map(|(_, value)| (value.status(), value.value)).collect::<Vec<_>>()
        };
        let good = |value: f64| vec![(StatusCode::GOOD, Some(Variant::from(vec![value])))];
        assert_eq!(write(&mut world, vec![9.0, 2.0, 9.0]), []);
        assert_eq!(write(&mut world, vec![9.0, 5.0, 9.0]), good(5.0));
        assert_eq!(write(&mut world, vec![9.0, 5.0, 9.0, 9.0]), []);
        let none = vec![(StatusCode::BAD_INDEX_RANGE_NO_DATA, None)];
        assert_eq!(write(&mut world, vec![9.0]), none, "sampling {sampling}");
        assert_eq!(write(&mut world, vec![8.0]), []);
        assert_eq!(write(&mut world, vec![8.0, 5.0]), good(5.0));
    }
}

#[test]
fn a_deadband_applies_to_the_part_that_is_monitored() {
    let mut world = World::new(0);
    let variable = world.add_variable(Variant::from(vec![1.0f64, 2.0]));
    let place = world.subscribe(100.0, 1000, 100, 0);
    world.item_of(place, variable, |spec| {
        spec.index_range = NumericRange::parse("1").unwrap();
        spec.settings.filter.deadband = Some(1.0);
    });
    world.begin();
    for (value, is_told) in [([9.0, 2.9], false), ([9.0, 3.1], true), ([0.0, 2.2], false), ([0.0, 2.0], true)]
    {
        world.variables[variable].1.set_at(value.to_vec(), world.now().utc);
        world.advance(100 * MS);
        assert_eq!(world.take_data_values().len(), usize::from(is_told), "{value:?}");
    }
}

#[test]
fn a_value_that_returned_before_the_next_request_causes_no_empty_message() {
    let mut world = World::new(2);
    let place = world.subscribe(100.0, 1000, 100, 1);
    for variable in 0..2 {
        world.item(place, variable, REPORTING, World::settings(100.0, 1));
    }
    for _ in 0..2 {
        world.publish().unwrap();
    }
    world.advance(105 * MS);
    world.publish().unwrap();
    world.set(0, 1.0);
    world.set(1, 1.0);
    world.advance(100 * MS);
    let (_, last) = world.out.responses.last().unwrap();
    assert!(last.more_notifications);
    let sent = last.notification_message.sequence_number;
    world.out.responses.clear();
    world.set(1, 0.0);
    world.publish().unwrap();
    world.advance(50 * MS);
    assert!(world.out.responses.is_empty(), "nothing is left to report");
    world.set(1, 2.0);
    world.advance(100 * MS);
    assert_eq!(world.out.responses[0].1.notification_message.sequence_number, sent + 1);
    assert_eq!(world.take_values(), [(1, 2.0, false)]);
}

#[test]
fn a_value_that_returns_during_encoding_has_no_effect() {
    for is_late in [false, true] {
        let mut world = World::new(1);
        let place = world.subscribe(100.0, 1000, 3, 0);
        world.item(place, 0, REPORTING, World::settings(100.0, 1));
        world.publish().unwrap();
        world.advance(105 * MS);
        world.out.responses.clear();
        if !is_late {
            world.publish().unwrap();
        }
        world.set(0, 1.0);
        let (handle, time) = (world.variables[0].1.clone(), world.now().utc);
        world.out.before_message = Some(Box::new(move || handle.set_at(0.0, time)) as Box<dyn Fn()>).into();
        world.advance(100 * MS);
        if is_late {
            assert!(world.engine.is_late(place));
            world.publish().unwrap();
        }
        assert!(world.out.before_message.borrow().is_none(), "there seemed to be a notification");
        for (_, response) in &world.out.responses {
            assert!(response.notification_message.notification_data.is_empty(), "a keep-alive");
        }
        world.out.responses.clear();
        // Neither the request nor a sequence number is lost.
        world.publish().unwrap();
        world.set(0, 2.0);
        world.advance(100 * MS);
        assert_eq!(world.out.responses[0].1.notification_message.sequence_number, 2);
        assert_eq!(world.take_values(), [(0, 2.0, false)]);
    }
}

#[test]
fn an_item_switched_to_sampling_reports_no_more() {
    for queue in [1, 5] {
        let mut world = World::new(2);
        let place = world.subscribe(100.0, 1000, 100, 0);
        world.item_of(place, 0, |_| ());
        let item = world.item_of(place, 1, |spec| spec.settings = World::settings(10.0, queue));
        world.begin();
        world.set(0, 1.0);
        world.set(1, 1.0);
        world.advance(50 * MS);
        world.set_mode(item, MonitoringMode::SAMPLING);
        world.advance(100 * MS);
        assert_eq!(world.take_values(), [(0, 1.0, false)]);
        world.set_mode(item, REPORTING);
        world.advance(100 * MS);
        assert_eq!(world.take_values(), [(1, 1.0, false)]);
    }
}

// ---- everything together

#[derive(Debug, Clone)]
enum Turn {
    Set(usize, u8),
    Publish,
    Advance(u8),
    Modify(usize, f64, u32, bool),
    Interval(f64),
    Mode(usize, bool),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let sampling = prop_oneof![Just(-1.0), Just(0.0), Just(10.0), Just(70.0), Just(120.0)];
    let turn = prop_oneof![
        8 => (0usize..3, any::<u8>()).prop_map(|(variable, value)| Turn::Set(variable, value)),
        4 => Just(Turn::Publish),
        4 => (1u8..60).prop_map(Turn::Advance),
        3 => (0usize..3, sampling, 1u32..5, any::<bool>())
            .prop_map(|(item, sampling, queue, oldest)| Turn::Modify(item, sampling, queue, oldest)),
        1 => prop_oneof![Just(20.0), Just(50.0), Just(100.0)].prop_map(Turn::Interval),
        1 => (0usize..3, any::<bool>()).prop_map(|(item, reports)| Turn::Mode(item, reports)),
    ];
    prop::collection::vec(turn, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// With any modification, values arrive in the order of their writes, without duplicates, and the last one arrives.
    /// Items that want every write throughout lose none silently, with any ring length.
    #[test]
    fn modified_items_agree_with_a_reference_model(turns in turns(), room in 1usize..12, every_write in any::<bool>()) {
        let mut world = World::with_room(3, 1, room);
        let place = world.subscribe(50.0, 100_000, 10, 0);
        let items: Vec<u32> = (0..3)
            .map(|variable| world.item_of(place, variable, |spec| spec.settings = World::settings(0.0, 3)))
            .collect();
        let mut written = [0u32; 3];
        let mut received: [Vec<(f64, bool)>; 3] = Default::default();
        for turn in turns {
            match turn {
                Turn::Set(variable, value) => {
                    written[variable] += u32::from(value >= 64);
                    world.set(variable, f64::from(written[variable]));
                }
                Turn::Publish => { let _ = world.publish(); }
                Turn::Advance(ms) => world.advance(u64::from(ms) * MS),
                Turn::Modify(item, sampling, queue, discard_oldest) => {
                    let settings = if every_write {
                        World::settings(0.0, queue + 1)
                    } else {
                        World::settings(sampling, queue)
                    };
                    world.modify(items[item], Settings { discard_oldest, ..settings });
                }
                Turn::Interval(interval) => {
                    let parameters = Parameters {
                        publishing_interval: interval,
                        ..world.engine.subscription(place).unwrap().parameters
                    };
                    let now = world.now();
                    world.engine.modify_subscription(place, parameters, now);
                }
                Turn::Mode(item, reports) => {
                    world.set_mode(items[item], if reports { REPORTING } else { MonitoringMode::SAMPLING });
                }
            }
            for (handle, value, overflow) in world.take_values() {
                received[handle as usize].push((value, overflow));
            }
        }
        for item in &items {
            world.set_mode(*item, REPORTING);
        }
        for _ in 0..20 {
            let _ = world.publish();
            world.advance(100 * MS);
        }
        for (handle, value, overflow) in world.take_values() {
            received[handle as usize].push((value, overflow));
        }
        for (written, received) in written.iter().zip(&received) {
            prop_assert_eq!(received.last().map(|last| last.0), Some(f64::from(*written)));
            for pair in received.windows(2) {
                prop_assert!(pair[0].0 < pair[1].0, "{received:?}");
                let follows = pair[0].0 + 1.0 == pair[1].0;
                prop_assert!(!every_write || follows || pair[1].1, "{received:?}");
            }
        }
    }
}
