//! The lists of items that have something to report.

use super::*;

const SAMPLING: MonitoringMode = MonitoringMode::SAMPLING;

fn ready_len(world: &World, place: u32) -> usize {
    world.engine.subscription(place).unwrap().ready.len()
}

#[test]
fn items_that_are_disabled_and_enabled_again_and_again_do_not_fill_the_list() {
    let mut world = World::new(1);
    let place = world.subscribe(3_600_000.0, 1_000, 100, 0);
    let settings = || World::settings(100.0, 1);
    let ids: Vec<u32> = (0..20).map(|_| world.item(place, 0, REPORTING, settings())).collect();
    for _ in 0..200 {
        for mode in [MonitoringMode::DISABLED, REPORTING] {
            for id in &ids {
                let (index, now) = (world.engine.find_item(place, *id).unwrap(), world.now());
                world.engine.set_mode(index, mode, now, &world.space);
            }
        }
        // Those that were just enabled have a new entry each.
        assert!(ready_len(&world, place) <= 2 * 20 + 64 + 20, "{}", ready_len(&world, place));
    }
    // The same with items that come and go.
    for _ in 0..500 {
        let id = world.item(place, 0, REPORTING, settings());
        let index = world.engine.find_item(place, id).unwrap();
        assert_eq!(world.engine.delete_item(index), 0);
        assert!(ready_len(&world, place) <= 2 * 21 + 64);
    }
    // Each still reports once.
    world.publish().unwrap();
    world.advance(3_600_000 * MS + MS);
    assert_eq!(world.take_values().len(), 20);
}

#[test]
fn deleting_looks_for_links_only_where_there_are_some() {
    let mut world = World::new(1);
    let place = world.subscribe(100.0, 1_000, 100, 0);
    let ids: Vec<u32> = (0..10).map(|_| world.item(place, 0, REPORTING, World::settings(100.0, 1))).collect();
    let index = |world: &World, at: usize| world.engine.find_item(place, ids[at]).unwrap();
    let trigger = index(&world, 0);
    world.engine.set_triggering(place, trigger, &[99], &[98]);
    let last = index(&world, 9);
    assert_eq!(world.engine.delete_item(last), 0, "no link was added");
    world.engine.set_triggering(place, trigger, &[ids[1]], &[]);
    let linked = index(&world, 1);
    assert_eq!(world.engine.delete_item(linked), 8, "what a client has to pay for");
}

#[test]
fn what_an_item_with_links_has_sampled_is_told_when_it_may_be() {
    // By its own mode, and by another item that triggers it.
    for is_triggered in [false, true] {
        let mut world = World::new(3);
        let place = world.subscribe(100.0, 1_000, 100, 0);
        let settings = || World::settings(100.0, 1);
        let first = world.item(place, 0, REPORTING, settings());
        let second = world.item(place, 1, SAMPLING, settings());
        let third = world.item(place, 2, SAMPLING, settings());
        let [first, second_at] = [first, second].map(|id| world.engine.find_item(place, id).unwrap());
        world.engine.set_triggering(place, second_at, &[third], &[]);
        if is_triggered {
            world.engine.set_triggering(place, first, &[second], &[]);
        }
        for _ in 0..10 {
            world.publish().unwrap();
        }
        world.advance(205 * MS);
        world.take_values();
        world.set(1, 5.0);
        world.advance(200 * MS);
        world.take_values();
        if is_triggered {
            world.set(0, 1.0);
        } else {
            let now = world.now();
            world.engine.set_mode(second_at, REPORTING, now, &world.space);
        }
        world.advance(200 * MS);
        let told = world.take_values();
        assert!(told.iter().any(|(_, value, _)| *value == 5.0), "{is_triggered}: {told:?}");
    }
}
