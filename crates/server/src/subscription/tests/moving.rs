//! Subscriptions between two engines.

use super::*;
use crate::subscription::moving::MovedSubscription;

/// A world with a second engine; the subscription under test is always in [`World::engine`].
struct Pair {
    world: World,
    other: Engine,
}

impl Pair {
    fn new(variables: usize) -> Self {
        let world = World::with_shards(variables, 2);
        let (limits, store) = (SubscriptionLimits::default(), Arc::clone(world.space.slots()));
        let other = Engine::new(
            1,
            limits,
            store,
            Arc::clone(&world.engine.locations),
            Arc::clone(world.space.events()),
            2,
        )
        .with_account(Arc::clone(&world.engine.account));
        Self { world, other }
    }

    fn export(&mut self) -> MovedSubscription {
        let now = self.world.now();
        let id = self.world.engine.session_subscriptions(SESSION).next().unwrap().id;
        let place = self.world.engine.find_any(id).unwrap();
        let moved = self.world.engine.export(place, self.other.shard, now, &mut self.world.out).unwrap();
        assert_eq!((self.world.engine.find_any(id), self.world.engine.item_count()), (None, 0));
        // One session has everything in these tests; its StatusChangeNotifications are ignored.
        self.world.engine.queue_mut(SESSION).status_changes.clear();
        moved
    }

    /// Returns the position in the other engine, which becomes the world's engine.
    fn import(&mut self, moved: MovedSubscription) -> u32 {
        let now = self.world.now();
        core::mem::swap(&mut self.world.engine, &mut self.other);
        self.world.engine.import(moved, Some(SESSION), now)
    }

    /// Advances the time in both engines.
    fn advance(&mut self, span: u64) {
        self.world.advance(span);
        let now = self.world.now();
        while self.other.next_deadline().is_some_and(|at| at <= now.instant) {
            self.other.run(now, &self.world.space, &mut self.world.out);
        }
    }

    fn transfer(&mut self) -> u32 {
        let moved = self.export();
        self.import(moved)
    }
}

/// Receives exactly the first values of a subscription.
fn receive_initial_values(world: &mut World) {
    world.publish().unwrap();
    world.advance(105 * MS);
    assert!(!world.take_values().is_empty());
}

#[test]
fn the_complete_state_moves() {
    let mut pair = Pair::new(3);
    // Positions and indexes differ between the engines.
    let spare = pair.other.create_subscription(
        SessionKey(4),
        Parameters {
            publishing_interval: 1000.0,
            lifetime_count: 100,
            max_keep_alive_count: 10,
            max_notifications: 10,
            priority: 0,
        },
        true,
        pair.world.decisions(),
        pair.world.now(),
    );
    assert_eq!(spare, Ok(0));
    let place = pair.world.subscribe(100.0, 1000, 100, 0);
    let ids: Vec<u32> = (0..3)
        .map(|variable| pair.world.item(place, variable, REPORTING, World::settings(100.0, 1)))
        .collect();
    let index = pair.world.engine.find_item(place, ids[1]).unwrap();
    pair.world.engine.delete_item(index);
    receive_initial_values(&mut pair.world);
    let before = pair.world.engine.subscription(place).unwrap().next_publish;
    let id = pair.world.engine.subscription(place).unwrap().id;
    let moved = pair.export();
    assert_eq!(pair.world.engine.find_any(id), None);
    assert_eq!(pair.other.locations.moved_to(id), Some(1));
    let place = pair.import(moved);
    assert_eq!(place, 1);
    let engine = &mut pair.world.engine;
    assert_eq!(engine.find(SESSION, id), Ok(place));
    assert_eq!(engine.subscription(place).unwrap().next_publish, before);
    assert_eq!(engine.item_handles(place), (vec![ids[0], ids[2]], vec![0, 2]));
    assert!(engine.republish(place, 1, || panic!("nothing must be written")).is_ok());
    assert_eq!(engine.find_item(place, ids[1]), Err(StatusCode::BAD_MONITORED_ITEM_ID_INVALID));
    // A new item gets an id that no item of the subscription has had.
    let fresh = pair.world.item(place, 1, REPORTING, World::settings(100.0, 1));
    assert_eq!(fresh, ids[2] + 1);
    let first = pair.world.engine.find_item(place, ids[0]).unwrap();
    pair.world.engine.delete_item(first);
    for id in [ids[2], fresh] {
        assert!(pair.world.engine.find_item(place, id).is_ok());
    }
    pair.world.publish().unwrap();
    pair.world.set(2, 7.0);
    pair.world.advance(100 * MS);
    assert_eq!(pair.world.out.responses[0].1.notification_message.sequence_number, 2);
    let mut values = pair.world.take_values();
    values.sort_by_key(|value| value.0);
    assert_eq!(values, [(1, 0.0, false), (2, 7.0, false)]);
    // And back again.
    let place = pair.transfer();
    assert_eq!(pair.world.engine.locations.moved_to(id), None);
    assert_eq!(pair.world.engine.item_handles(place), (vec![fresh, ids[2]], vec![1, 2]));
    pair.world.publish().unwrap();
    pair.world.set(1, 8.0);
    pair.world.advance(100 * MS);
    assert_eq!(pair.world.take_values(), [(1, 8.0, false)]);
}

#[test]
fn the_old_session_is_notified() {
    let mut pair = Pair::new(1);
    pair.world.subscribe(100.0, 1000, 100, 0);
    pair.world.publish().unwrap();
    pair.world.publish().unwrap();
    pair.export();
    let change: StatusChangeNotification =
        pair.world.out.responses[0].1.notification_message.notification_data[0].decode().unwrap();
    assert_eq!(change.status, StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED);
    assert_eq!(pair.world.out.faults, [(2, StatusCode::BAD_NO_SUBSCRIPTION)]);
}

#[test]
fn links_find_their_items() {
    let mut pair = Pair::new(3);
    let place = pair.world.subscribe(100.0, 1000, 100, 0);
    pair.world.item(place, 2, MonitoringMode::SAMPLING, World::settings(100.0, 1));
    let linked = pair.world.item(place, 1, MonitoringMode::SAMPLING, World::settings(100.0, 1));
    let trigger = pair.world.item(place, 0, REPORTING, World::settings(100.0, 1));
    let index = pair.world.engine.find_item(place, trigger).unwrap();
    pair.world.engine.set_triggering(place, index, &[linked], &[]);
    receive_initial_values(&mut pair.world);
    let place = pair.transfer();
    pair.world.publish().unwrap();
    pair.world.set(1, 5.0);
    pair.world.set(2, 6.0);
    pair.world.advance(100 * MS);
    assert_eq!(pair.world.take_values(), []);
    pair.world.set(0, 1.0);
    pair.world.advance(100 * MS);
    assert_eq!(pair.world.take_values(), [(0, 1.0, false), (1, 5.0, false)]);
    let index = pair.world.engine.find_item(place, trigger).unwrap();
    let (_, removed) = pair.world.engine.set_triggering(place, index, &[], &[linked]);
    assert_eq!(removed, [StatusCode::GOOD]);
}

#[test]
fn slow_groups_keep_their_sampling_times() {
    let mut pair = Pair::new(2);
    let place = pair.world.subscribe(100.0, 1000, 100, 0);
    pair.world.item(place, 0, REPORTING, World::settings(500.0, 5));
    pair.world.item(place, 1, REPORTING, World::settings(500.0, 1));
    for _ in 0..20 {
        pair.world.publish().unwrap();
    }
    pair.world.advance(1_005 * MS);
    pair.world.take_values();
    let mut values = Vec::new();
    for step in 1..=10 {
        pair.world.set(0, f64::from(step));
        pair.world.set(1, f64::from(step));
        if step % 3 == 0 {
            pair.transfer();
            for _ in 0..20 {
                pair.world.publish().unwrap();
            }
        }
        pair.advance(100 * MS);
        values.extend(pair.world.take_values());
    }
    let of =
        |handle| values.iter().filter(|value| value.0 == handle).map(|value| value.1).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (vec![5.0, 10.0], vec![5.0, 10.0]));
}

#[test]
fn without_a_session_the_lifetime_continues() {
    let mut pair = Pair::new(1);
    let place = pair.world.subscribe(100.0, 9, 3, 0);
    pair.world.item(place, 0, REPORTING, World::settings(100.0, 1));
    let moved = pair.export();
    let (id, now) = (moved.id(), pair.world.now());
    pair.other.import(moved, None, now);
    pair.world.engine = pair.other;
    pair.world.advance(700 * MS);
    assert_eq!(pair.world.engine.subscription_count(), 1);
    pair.world.advance(500 * MS);
    assert_eq!((pair.world.engine.subscription_count(), pair.world.engine.item_count()), (0, 0));
    assert_eq!(pair.world.engine.locations.moved_to(id), None);
}

#[derive(Debug, Clone)]
enum Move {
    Step(Step),
    /// A transfer, with writes in progress.
    Transfer(Vec<(usize, u8)>),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let write = (0usize..3, any::<u8>());
    let step = prop_oneof![
        4 => write.clone().prop_map(|(variable, value)| Move::Step(Step::Set(variable, value))),
        2 => Just(Move::Step(Step::Publish)),
        2 => (1u8..60).prop_map(|ms| Move::Step(Step::Advance(ms))),
        1 => any::<bool>().prop_map(|on| Move::Step(Step::Congest(on))),
        1 => prop::collection::vec(write, 0..4).prop_map(Move::Transfer),
    ];
    prop::collection::vec(step, 1..120)
}

impl Pair {
    /// Executes a step; `set` writes.
    fn step(&mut self, step: Move, mut set: impl FnMut(&World, usize, u8)) {
        match step {
            Move::Step(Step::Set(variable, value)) => set(&self.world, variable, value),
            Move::Step(Step::Publish) => {
                let _ = self.world.publish();
            }
            Move::Step(Step::Advance(ms)) => self.advance(u64::from(ms) * MS),
            Move::Step(Step::Congest(on)) => self.world.out.congested = on,
            Move::Transfer(writes) => {
                let moved = self.export();
                for (variable, value) in writes {
                    set(&self.world, variable, value);
                }
                self.import(moved);
            }
        }
    }

    fn finish(&mut self) {
        self.world.out.congested = false;
        for _ in 0..6 {
            let _ = self.world.publish();
            self.advance(50 * MS);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No silent loss across moves, correct order, no duplicates, and Overflow where values are missing.
    #[test]
    fn queues_agree_with_a_reference_model(steps in moves(), queue_size in 2u32..6) {
        let mut pair = Pair::new(3);
        let place = pair.world.subscribe(50.0, 100_000, 10, 0);
        for variable in 0..3 {
            pair.world.item(place, variable, REPORTING, World::settings(0.0, queue_size));
        }
        let mut written = vec![vec![0.0f64]; 3];
        let mut received: Vec<Vec<(f64, bool)>> = vec![Vec::new(); 3];
        for step in steps {
            pair.step(step, |world, variable, value| {
                let repeat = value < 64;
                let count = written[variable].len();
                let value = (if repeat { count - 1 } else { count }) as f64;
                world.set(variable, value);
                if !repeat {
                    written[variable].push(value);
                }
            });
            for (handle, value, overflow) in pair.world.take_values() {
                received[handle as usize].push((value, overflow));
            }
        }
        pair.finish();
        for (handle, value, overflow) in pair.world.take_values() {
            received[handle as usize].push((value, overflow));
        }
        for (written, received) in written.iter().zip(&received) {
            let mut at = 0;
            for (value, overflow) in received {
                if *overflow {
                    let found = written[at..].iter().position(|candidate| candidate == value);
                    prop_assert!(found.is_some(), "{written:?} {received:?}");
                    at += found.unwrap() + 1;
                } else {
                    prop_assert_eq!(written.get(at), Some(value), "{:?} {:?}", written, received);
                    at += 1;
                }
            }
            prop_assert_eq!(received.last().map(|last| last.0), written.last().copied());
        }
    }

    /// With queue size 1 the newest value always arrives, and nothing is sent twice.
    #[test]
    fn the_newest_value_always_arrives(steps in moves(), sampling in prop_oneof![Just(-1.0), Just(0.0), Just(10.0), Just(120.0)]) {
        let mut pair = Pair::new(3);
        let place = pair.world.subscribe(50.0, 100_000, 10, 0);
        for variable in 0..3 {
            pair.world.item(place, variable, REPORTING, World::settings(sampling, 1));
        }
        let mut last = [0.0f64; 3];
        let mut seen: [Option<f64>; 3] = [None; 3];
        let mut check = |world: &mut World| {
            for (handle, value, overflow) in world.take_values() {
                assert!(!overflow);
                assert_ne!(seen[handle as usize], Some(value), "sent twice");
                seen[handle as usize] = Some(value);
            }
        };
        for step in steps {
            pair.step(step, |world, variable, value| {
                last[variable] = f64::from(value);
                world.set(variable, f64::from(value));
            });
            check(&mut pair.world);
        }
        pair.finish();
        check(&mut pair.world);
        prop_assert_eq!(seen, last.map(Some));
    }
}
