//! Rate groups: their number follows the present items of clients, not earlier ones.

use super::*;
use crate::subscription::item::flag;

impl World {
    /// Groups of living items, counted from the items.
    fn groups_in_use(&self) -> usize {
        let alive = self.engine.items.iter().filter(|item| item.has(flag::ALIVE));
        let groups = alive.map(|item| item.group).filter(|group| self.engine.groups.get(*group).is_some());
        groups.collect::<std::collections::BTreeSet<u32>>().len()
    }
}

#[test]
fn an_item_with_repeatedly_modified_intervals_has_one_group() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    let id = world.item(place, 0, REPORTING, World::settings(200.0, 5));
    let index = world.engine.find_item(place, id).unwrap();
    for step in 0..20_000u32 {
        let (now, interval) = (world.now(), 200.0 + f64::from(step) * 0.37);
        let settings = World::settings(interval, 2 + step % 3);
        world.engine.modify_item(index, 0, TimestampsToReturn::Both, settings, now);
        let (used, room) = world.engine.groups.len();
        assert_eq!(used, 1);
        assert!(room <= 2, "the old group is left after the new one is entered: {room}");
    }
    // It continues in the last one.
    let interval = world.engine.groups.get(world.engine.items[index as usize].group).unwrap().interval;
    for _ in 0..10 {
        world.publish().unwrap();
    }
    world.advance(2 * interval);
    world.out.responses.clear();
    world.set(0, 7.0);
    world.advance(2 * interval);
    assert!(!world.out.responses.is_empty(), "the value arrived");
    world.engine.delete_item(index);
    assert_eq!(world.engine.groups.len(), (0, 0));
}

#[test]
fn intervals_of_many_clients_are_revised_to_few() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1000, 100, 0);
    for step in 0..5_000u32 {
        world.item(place, 0, REPORTING, World::settings(1_000.0 + f64::from(step) * 0.2, 2));
    }
    let (used, _) = world.engine.groups.len();
    assert!(used <= 101, "1000 to 2000 ms in steps of 10 ms: {used}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    /// After any sequence, there are as many groups as the present items need, and none at the end.
    #[test]
    fn groups_follow_their_items(
        steps in prop::collection::vec((0u8..6, 0usize..8, 1.0f64..400.0, 1u32..4), 1..60)
    ) {
        let mut world = World::new(2);
        let place = world.subscribe(100.0, 1000, 100, 0);
        let mut items = Vec::new();
        for (what, which, interval, queue_size) in steps {
            let now = world.now();
            let settings = World::settings(interval, queue_size);
            let chosen = (!items.is_empty()).then(|| which % items.len());
            match (what, chosen) {
                (0 | 1, _) => {
                    let mode = if which % 3 == 0 { MonitoringMode::DISABLED } else { REPORTING };
                    let id = world.item(place, which % 2, mode, settings);
                    items.push(world.engine.find_item(place, id).unwrap());
                }
                (2, Some(at)) => {
                    world.engine.modify_item(items[at], 0, TimestampsToReturn::Both, settings, now);
                }
                (3, Some(at)) => {
                    world.engine.delete_item(items.swap_remove(at));
                }
                (4, _) => {
                    let mut parameters = world.engine.subscription(place).unwrap().parameters;
                    parameters.publishing_interval = interval.max(10.0);
                    world.engine.modify_subscription(place, parameters, now);
                }
                _ => {
                    world.set(which % 2, interval);
                    world.advance(50 * MS);
                }
            }
            prop_assert_eq!(world.engine.groups.len().0, world.groups_in_use());
        }
        for index in items {
            world.engine.delete_item(index);
        }
        prop_assert_eq!(world.engine.groups.len(), (0, 0));
    }
}
